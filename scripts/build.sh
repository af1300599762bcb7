#!/usr/bin/env bash
# build.sh PRESET [TARGET...]: configures and builds. A build folder that no longer fits (the clone was moved, a
# compiler is gone) is configured anew.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT

if ! cmake --preset "$preset" >"$log" 2>&1; then
  if [ ! -f "build/$preset/CMakeCache.txt" ] || ! cmake --fresh --preset "$preset" >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
  fi
fi
cmake --build "build/$preset" --parallel "$(nproc)" ${1:+--target "$@"}
