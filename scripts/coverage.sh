#!/usr/bin/env bash
# coverage.sh: runs the tests of the coverage build and reports which lines and which error sentences they reach, as
# text and below build/coverage/html. Fails below 95 % of the library's lines, and for each sentence that no test hears.
# A line that is compiled once per instruction set counts as reached if one of them reached it.
set -euo pipefail
cd "$(dirname "$0")/.."
out=build/coverage
library=(--filter 'src/(core|kernels|io)/' --filter 'include/')
command=(--filter 'src/(callers|cli|lab|report)/')

# What this processor can't run, no test reaches.
if ! grep -qw avx512_bf16 /proc/cpuinfo; then
  echo "coverage: src/kernels/engines/avx512bf16.cpp is left out, because this processor has no AVX512_BF16"
  library+=(--exclude 'src/kernels/engines/avx512bf16')
fi

find "$out" -name '*.gcda' -delete
ctest --preset coverage -j "$(nproc)" -E '^(compile_fail|docs)\.'
gcovr -r . "$out" -j "$(nproc)" --filter 'src/' --filter 'include/' --json "$out/lines.json"
mkdir -p "$out/html"
gcovr -r . -a "$out/lines.json" --html-details "$out/html/index.html"
# An output of its own each time: gcovr unlinks what it is given before it writes, were it a device.
total() { gcovr -r . -a "$out/lines.json" "${@:2}" --print-summary -o "$out/summary.txt" | sed -n "s/^lines:/coverage: lines of $1:/p"; }
total 'the library' "${library[@]}"
total 'the command' "${command[@]}"
echo "coverage: by file in $out/html/index.html"
status=0
python3 scripts/error_sentences.py "$out/lines.json" tests/unreached.txt || status=1
gcovr -r . -a "$out/lines.json" "${library[@]}" --fail-under-line 95 -o "$out/library.txt" || status=1
exit $status
