#!/usr/bin/env bash
# Installs millrace from this clone: Debian's packages that it builds with, the build, and the result under a
# prefix. Run again, it updates.
#   scripts/install.sh [--prefix DIR]     default: /usr/local as root, else ~/.local
set -euo pipefail
prefix=$HOME/.local
[ "$(id -u)" != 0 ] || prefix=/usr/local
while [ $# -gt 0 ]; do
  case $1 in
    -h|--help) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --prefix) prefix=${2:?a directory is wanted behind --prefix}; shift 2 ;;
    *) sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd)
cd "$(dirname "$0")/.."
scripts/install-deps.sh build
scripts/build.sh
cmake --install build/release --prefix "$prefix" --strip >/dev/null
echo "installed: $prefix/bin/millrace, examples in $prefix/share/millrace/examples, documents in $prefix/share/doc/millrace"
case :$PATH: in
  *:"$prefix/bin":*) echo "Next: millrace up" ;;
  *) printf 'Next:\n  export PATH=%s:$PATH\n  millrace up\n' "$prefix/bin" ;;
esac
