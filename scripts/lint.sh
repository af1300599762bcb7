#!/usr/bin/env bash
# lint.sh: runs clang-tidy (.clang-tidy, warnings are errors) on every source below src/.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/build.sh release levelhead_cli # for the compile commands and the generated headers
mapfile -t sources < <(find src -name '*.cpp' | sort)
# Lines like "27994 warnings generated" count what .clang-tidy leaves out; they would hide the rest.
printf '%s\n' "${sources[@]}" |
  xargs -P "$(nproc)" -n 1 clang-tidy-14 -p build/release --quiet --warnings-as-errors='*' 2> >(grep -v ' generated\.$' >&2)
echo "lint: ${#sources[@]} files are clean"
