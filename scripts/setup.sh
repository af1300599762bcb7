#!/usr/bin/env bash
# setup.sh GROUP...: installs the Debian packages of these groups of packages.txt that are missing, naming them first.
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=()
for group in "$@"; do
  mapfile -t -O "${#wanted[@]}" wanted < <(awk -v group="$group" '$1 == group { print $2 }' scripts/packages.txt)
done

installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "setup: no apt-get here; going on with what is installed. Needed, by their Debian names: ${wanted[*]}"
else
  missing=()
  for package in "${wanted[@]}"; do
    installed "$package" || missing+=("$package")
  done
  if [ "${#missing[@]}" -gt 0 ]; then
    echo "setup: installing the Debian packages ${missing[*]}"
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
    "${as_root[@]}" apt-get update -q || echo "setup: apt-get update failed; trying with the package lists at hand"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
  fi
fi

for tool in cmake ninja; do
  "$tool" --version >/dev/null 2>&1 || { echo "setup: $tool is needed but does not run" >&2; exit 1; }
done
version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p')
if [ "$(printf '%s\n' 3.25 "$version" | sort -V | head -n 1)" != 3.25 ]; then
  echo "setup: CMake 3.25 or newer is needed, but $(command -v cmake) is $version" >&2
  exit 1
fi
