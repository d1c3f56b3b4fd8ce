#!/usr/bin/env bash
# Prints one digest for each mode of the simulators, of SEEDS seeds from START. A change that is to
# change no behaviour prints the same before and after it:
#   tests/sim/digests.sh [BUILD [SEEDS [START]]]     default: build/release 100 1
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/release} seeds=${2:-100} start=${3:-1}
for mode in '' --roles --loops --templates --tears --rewinds --stores --fair; do
  line=$("$build/bin/sim" --quiet ${mode:+"$mode"} --start "$start" --seeds "$seeds" | grep digest)
  echo "sim${mode:+ $mode}: ${line##* }"
done
line=$("$build/bin/sim_trainer" --quiet --start "$start" --seeds "$seeds")
echo "sim_trainer: ${line##* }"
