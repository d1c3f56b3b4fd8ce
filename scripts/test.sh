#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all the tests: lint, unit, fuzz corpora,
# simulation and integration under ASan and UBSan, then what has threads under TSan.
#   scripts/test.sh [dev|tsan|release]...     default: dev tsan
set -euo pipefail
for word in "$@"; do
  case $word in
    dev|tsan|release) ;;
    -h|--help) sed -n '2,4s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) sed -n '2,4s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
cd "$(dirname "$0")/.."
scripts/install-deps.sh test
[ $# -gt 0 ] || set -- dev tsan
jobs=$(nproc)
PATH=$PWD/.deps/go/bin:$PATH # used if the machine's Go is too old

# Collects the tests that were skipped, with their reasons: lines with "SKIPPED" in the log of each
# run.
skipped=$(mktemp)
failed=0
run() { # arguments: preset, then arguments of ctest
  local preset=$1
  shift
  ctest --preset "$preset" "$@" || failed=1
  scripts/skipped.awk -v preset="$preset" "build/$preset/Testing/Temporary/LastTest.log" >>"$skipped"
}
say_skipped() {
  local count
  count=$(sort -u "$skipped" | wc -l)
  echo "$count tests or parts of tests were skipped"
  sort -u "$skipped"
}
# Tests of code with several threads: inboxes, the gRPC loop, executors, parameters, the store's
# client, connections to Redis, the gateway, and one job through all real processes.
unit=(host_os host_inbox host_work_sharing host_thread_pool host_parker rpc_call rpc_server rpc_sync rpc_unix_listener rpc_tls
  worker_delegate worker_executor arena_pin_model train_params train_params_early train_params_remote
  train_allreduce train_feed scheduler_trace_job_account)
real=(journal journal_snapshot meta_directory meta_queue meta_redis objectstore)
either() { local IFS='|'; echo "$*"; }
threads="^(unit_($(either "${unit[@]}"))|integration_($(either "${real[@]}")|worker)|gateway_http|system_readme)$"
threads_need=("${unit[@]/#/test_}" "${real[@]/#/test_}" millrace mr-scheduler mr-worker mr-objectstore mr-trainer
  mr-gateway mr_stubborn_plugin)
trap 'say_skipped; rm -f "$skipped"' EXIT
for preset in "$@"; do
  # scripts/demo.sh switches the tests off in the same build directory
  cmake --preset "$preset" -DMR_TESTS=ON
  case $preset in
    tsan) cmake --build --preset tsan -j "$jobs" --target "${threads_need[@]}"
          run tsan -j "$jobs" -R "$threads" ;;
    *) cmake --build --preset "$preset" -j "$jobs"
       run "$preset" -j "$jobs" -LE '^(integration|system|schemathesis)$'
       # Real processes wait more than they compute: two clusters for each processor.
       run "$preset" -j "$((2 * jobs))" -L '^(integration|system|schemathesis)$' ;;
  esac
done
exit $failed
