#!/usr/bin/env bash
# fuzz.sh SECONDS [TARGET...]: runs each built fuzzer that long, starting from its committed corpus. Ends with status 1
# and the name of the file that reproduces it when one finds something. What it learns stays in build/fuzz/learned.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=$1
shift
targets=(safetensors capture attend)
if [ $# -gt 0 ]; then targets=("$@"); fi
declare -A dictionary=([safetensors]=json [capture]=json [attend]=attend)
export UBSAN_OPTIONS=print_stacktrace=1

for target in "${targets[@]}"; do
  fuzzer=build/fuzz/tests/fuzz/fuzz_$target
  learned=build/fuzz/learned/$target
  findings=build/fuzz/findings/$target-
  log=build/fuzz/$target.log
  mkdir -p "$learned" build/fuzz/findings
  echo "fuzz: $target, $seconds s"
  status=0
  "$fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -len_control=0 -print_final_stats=1 \
    -dict="tests/fuzz/${dictionary[$target]}.dict" -artifact_prefix="$findings" \
    "$learned" "tests/fuzz/corpus/$target" >"$log" 2>&1 || status=$?
  if [ "$status" -ne 0 ]; then
    tail -n 60 "$log" >&2
    file=$(sed -n 's/^artifact_prefix=.*Test unit written to //p' "$log" | tail -n 1)
    echo "fuzz: $target: ${file:-no file was written, see $log}; run $fuzzer ${file:-} to see it again, fix it, and" \
      "keep it as tests/fuzz/corpus/$target/found-NAME" >&2
    exit 1
  fi
  sed -n 's/^stat::number_of_executed_units: */fuzz: inputs tried: /p' "$log"
done
