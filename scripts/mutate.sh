#!/usr/bin/env bash
# Mutation test: changes N lines of the four cores, one at a time, and says which changes the unit tests and the
# simulator catch. The changes follow from SEED. See tests/mutate/README.md.
#   scripts/mutate.sh N SEED [--files WORD] [--jobs J] [--keep FILE]
#   scripts/mutate.sh --again FILE [--jobs J] [--keep FILE]
set -euo pipefail
exec python3 -B "$(dirname "$0")/../tests/mutate/mutate.py" "$@"
