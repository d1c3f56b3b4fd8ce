#!/usr/bin/env bash
# What bench/run.sh measures against: Debian's Dask distributed (2022.12, apt), and the newest Dask and Ray
# in a virtual environment of their own, build/peers, outside git. Prints the versions. Versions are pinned here so
# that figures can be compared; --newest takes what the package index has today and prints what to pin.
set -euo pipefail
cd "$(dirname "$0")/.."
pins=(dask==2026.8.0 distributed==2026.8.0 ray==2.60.0 numpy==2.4.6)
[ "${1:-}" != --newest ] || pins=(dask distributed ray numpy)
venv=build/peers

if ! /usr/bin/python3 -c 'import distributed, numpy' 2>/dev/null; then
  echo "python3-distributed and python3-numpy are missing; installing them with apt-get"
  as_root=() && [ "$(id -u)" = 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get install -y --no-install-recommends python3-distributed python3-numpy >/dev/null ||
    echo "apt-get install python3-distributed python3-numpy failed: Debian's Dask will be missing" >&2
fi

python=''
for candidate in /usr/bin/python3.11 python3.12 python3.11 python3.13 python3; do
  if "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then python=$candidate; break; fi
done
[ -n "$python" ] || { echo "no python3 with venv (apt-get install python3-venv)" >&2; exit 1; }
stamp=$venv/.pins
if [ "${1:-}" = --newest ] || [ "$(cat "$stamp" 2>/dev/null)" != "${pins[*]}" ] || ! "$venv/bin/python" -c 'import distributed, ray' 2>/dev/null; then
  rm -rf "$venv"
  mkdir -p build
  "$python" -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "${pins[@]}"
  echo "${pins[*]}" >"$stamp"
fi
/usr/bin/python3 -c 'import distributed, sys; print("Debian: Dask distributed", distributed.__version__, "on Python", sys.version.split()[0])' 2>/dev/null ||
  echo "Debian: no Dask distributed"
"$venv/bin/python" -c 'import sys; print("build/peers: Python", sys.version.split()[0])'
"$venv/bin/pip" freeze --disable-pip-version-check 2>/dev/null | grep -E '^(dask|distributed|ray|numpy)=='
