#!/usr/bin/env bash
# format.sh [--check]: formats all C++ files in place, or fails on the first that is not formatted.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
if [ "${1:-}" = --check ]; then mode=(--dry-run -Werror); fi

formatter=$(command -v clang-format-14 || command -v clang-format || true)
case "$("${formatter:-false}" --version 2>/dev/null)" in
  *"version 14."*) ;;
  *)
    echo "format: needs clang-format 14 (other versions format differently); nothing done" >&2
    exit 1
    ;;
esac
find . -path ./build -prune -o \( -name '*.[ch]pp' -o -name '*.h' \) -print | sort | xargs "$formatter" "${mode[@]}"
