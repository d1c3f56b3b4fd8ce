#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all the tests: lint, unit, fuzz corpora,
# simulation and integration under ASan and UBSan, then what has threads under TSan.
#   scripts/test.sh [dev|tsan|release]...     default: dev tsan
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install-deps.sh test
[ $# -gt 0 ] || set -- dev tsan
jobs=$(nproc)
for preset in "$@"; do
  cmake --preset "$preset"
  cmake --build --preset "$preset" -j "$jobs"
  case $preset in
    tsan) ctest --preset tsan -j "$jobs" -L threads ;;
    *) ctest --preset "$preset" -j "$jobs" ;;
  esac
done
