#!/usr/bin/env bash
# lint.sh: runs clang-tidy (.clang-tidy, warnings are errors) on every source below src/.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release levelhead_cli # clang-tidy reads its compile commands and generated files
mapfile -t sources < <(find src -name '*.cpp' | sort)
printf '%s\n' "${sources[@]}" |
  xargs -P "$(nproc)" -n 1 clang-tidy-14 -p build/release --quiet --warnings-as-errors='*'
echo "lint: ${#sources[@]} files are clean"
