#!/usr/bin/env bash
# python.sh [EXTRA]: installs the Python package with what its tests need (EXTRA: test, or test-torch, which downloads
# PyTorch) into build/python/venv, and runs them. It takes the libraries of build/release, so build that first: compiling
# them again is what `pip install .` takes its time for.
set -euo pipefail
cd "$(dirname "$0")/.."
extra=${1:-test}
venv=build/python/venv

if ! "$venv/bin/python" -c '' 2>/dev/null; then python3 -m venv --clear "$venv"; fi
"$venv/bin/pip" install --quiet --disable-pip-version-check ".[$extra]" \
  --config-settings=build-dir=build/python/module \
  --config-settings=cmake.define.LEVELHEAD_BUILT="$PWD/build/release" \
  --config-settings=cmake.define.LEVELHEAD_WARNINGS_AS_ERRORS=ON
# Not from the sources' folder, so that the installed package is what runs.
"$venv/bin/python" -P -m pytest -q -p no:cacheprovider
