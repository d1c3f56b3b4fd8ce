#!/usr/bin/env bash
# Builds the programs for use, without the tests, in build/release, and says how far it is.
#   scripts/build.sh
set -euo pipefail
case ${1:-} in
  '') ;;
  -h|--help) sed -n '2,3s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) sed -n '2,3s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."
cmake --preset release -DMR_TESTS=OFF >/dev/null
echo "building in build/release, with $(nproc) processes at a time"
# Shows every hundredth line of ninja's output; after a failure, the end of the output.
log=build/release/build.log
if ! NINJA_STATUS='[%f/%t] ' cmake --build --preset release -j "$(nproc)" | tee "$log" |
  awk -F'[][/]' '/^\[[0-9]+\/[0-9]+\]/ && ($2 % 100 == 0 || $2 == $3) { printf "  %d of %d steps\n", $2, $3; fflush() }'; then
  tail -n 40 "$log" >&2
  exit 1
fi
