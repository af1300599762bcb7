#!/usr/bin/env bash
# lint.sh: runs clang-tidy (.clang-tidy, warnings are errors) on every source below src/.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset release >/dev/null # clang-tidy reads its compile commands
mapfile -t sources < <(find src -name '*.cpp' | sort)
printf '%s\n' "${sources[@]}" |
  xargs -P "$(nproc)" -n 1 clang-tidy-14 -p build/release --quiet --warnings-as-errors='*'
echo "lint: ${#sources[@]} files are clean"
