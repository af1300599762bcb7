#!/usr/bin/env bash
# lint.sh: runs clang-tidy (.clang-tidy, warnings are errors) on every source below src/.
set -euo pipefail
cd "$(dirname "$0")/.."
# Compile commands of each file, where the other builds put several into one, and the generated headers.
cmake --preset release -B build/lint -D CMAKE_UNITY_BUILD=OFF >/dev/null
cmake --build build/lint --target levelhead_report_hashes
mapfile -t sources < <(find src -name '*.cpp' | sort)
# Lines like "27994 warnings generated" count what .clang-tidy leaves out; they would hide the rest.
printf '%s\n' "${sources[@]}" |
  xargs -P "$(nproc)" -n 1 clang-tidy-14 -p build/lint --quiet --warnings-as-errors='*' 2> >(grep -v ' generated\.$' >&2)
echo "lint: ${#sources[@]} files are clean"
