#!/usr/bin/env bash
# Builds a release and measures it beside Debian's Dask, the newest Dask and Ray in one run. Prints one table with
# ratios and writes JSON. A full run needs a quiet machine, 16 GiB of memory and about twenty-five minutes.
#   bench/run.sh [--quick] [--json FILE] [--data DIR] [--no-peers] [--no-build] [--only SYSTEM,…]
#   bench/run.sh --markdown [FILE]
# --quick: smaller and fewer rounds, five minutes, 4 GiB. --json: where to write (build/bench.json). --data: where MNIST's
# IDX files are (../shared/data/mnist). --only: of millrace, dask-debian, dask-newest, ray. --markdown: measures nothing;
# writes the report in FILE to a page of docs/results/ and its rows into the table of docs/benchmarks.md.
set -euo pipefail
cd "$(dirname "$0")/.."
json=build/bench.json markdown='' peers=yes build=yes flags=()
while [ $# -gt 0 ]; do
  case $1 in
    --quick) flags+=("$1"); shift ;;
    --no-peers) peers='' flags+=("$1"); shift ;;
    --no-build) build=''; shift ;;
    --json) json=$2; shift 2 ;;
    --data) flags+=("$1" "$(cd "$2" && pwd)"); shift 2 ;;
    --only) flags+=("$1" "$2"); shift 2 ;;
    --markdown) markdown=yes; shift; [ $# -eq 0 ] || { json=$1; shift; } ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
python=/usr/bin/python3 # Debian's, which has NumPy; peers.sh installs it
if [ -n "$markdown" ]; then
  exec "$python" bench/table.py "$json" docs/benchmarks.md docs/results
fi
[ -z "$peers" ] || bench/peers.sh || echo "bench/peers.sh failed: peers that are missing are rows of the table" >&2
if [ -n "$build" ]; then
  scripts/install-deps.sh build
  tests=OFF targets=(millrace mr-scheduler mr-worker mr-objectstore mr-trainer mr-gateway shape_client store_bench put_bench)
  if pkg-config --exists cmocka; then # the cores' own benchmarks are built with the tests
    tests=ON
    targets+=(bench_sched bench_graph)
  fi
  cmake --preset release -DMR_TESTS=$tests >/dev/null
  cmake --build --preset release -j "$(nproc)" --target "${targets[@]}" | tail -n 1
fi
"$python" -c 'import numpy' || { echo "python3-numpy is missing: bench/peers.sh installs it" >&2; exit 1; }

directory=$(mktemp -d "${TMPDIR:-/tmp}/mrb-XXXXXX")
mark=$(basename "$directory")-$$
run=''
clean() {
  trap '' INT TERM HUP
  [ -z "$run" ] || kill -TERM "$run" 2>/dev/null || true
  [ -z "$run" ] || wait "$run" 2>/dev/null || true
  "$python" bench/processes.py "$mark" || true
  rm -rf "$directory"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
export PYTHONDONTWRITEBYTECODE=1
MILLRACE_BENCH_RUN=$mark "$python" bench/run.py "$directory" --json "$json" "${flags[@]}" &
run=$!
code=0
wait "$run" || code=$?
run=''
exit "$code"
