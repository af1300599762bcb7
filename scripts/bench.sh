#!/usr/bin/env bash
# bench.sh [FOLDER]: times forward and decode against PyTorch in alternating turns, and each kernel by itself, and writes
# the figures as JSON to FOLDER (bench/results/CPU). PyTorch goes into build/bench/venv. Takes about half an hour on a
# machine without other work, and means little on another.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=build/bench/venv

cmake --preset release -B build/bench -DLEVELHEAD_BUILD_BENCH=ON -DLEVELHEAD_BUILD_TESTS=OFF >/dev/null
cmake --build build/bench --parallel "$(nproc)" --target levelhead_cli levelhead_shim bench_kernels
if ! "$venv/bin/python" -c '' 2>/dev/null; then python3 -m venv --clear "$venv"; fi
"$venv/bin/pip" install --quiet --disable-pip-version-check torch==2.13.0 numpy

# epyc-avx512bf16: the maker's word for the processor, and the kernel it takes for bf16.
folder=${1:-bench/results/$(build/bench/bin/levelhead kernels --json | python3 -c '
import json, sys
said = json.load(sys.stdin)
names = [word for word in ("epyc", "ryzen", "xeon", "core") if word in said["cpu"].lower()] + ["cpu"]
taken = next(k["name"] for k in said["kernels"] if k["available"] and "bf16" in k["types"] and "-" not in k["name"])
print(names[0] + "-" + taken)')}
mkdir -p "$folder"
"$venv/bin/python" bench/peers/torch_forward.py --json "$folder/forward.json"
"$venv/bin/python" bench/peers/torch_decode.py --json "$folder/decode.json"
# Alone among these, one thread: the clock counts its time only.
build/bench/bench/kernels --benchmark_filter='/D:(64|128)/n:(256|1024|4096)/' --benchmark_repetitions=3 \
  --benchmark_report_aggregates_only=true --benchmark_out_format=json --benchmark_out="$folder/kernels.partial"
mv "$folder/kernels.partial" "$folder/kernels.json"
