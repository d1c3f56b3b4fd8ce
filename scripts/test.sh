#!/usr/bin/env bash
# Installs what is missing, builds everything and runs all the tests: lint, unit, fuzz corpora,
# simulation and integration under ASan and UBSan, then what has threads under TSan.
#   scripts/test.sh [dev|tsan|release]...     default: dev tsan
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/install-deps.sh test
[ $# -gt 0 ] || set -- dev tsan
jobs=$(nproc)
# Where threads meet: inboxes, the gRPC loop, executors, parameters, the store's client, Redis links, the gateway,
# and one job through all the real processes.
threads='^(unit_(host|host_inbox|host_gate|rpc|rpc_server|rpc_sync|rpc_doorman|worker_executor|pin_model|params|params_early|params_remote|reduce|feed)|integration_(journal|journal_snapshot|meta_directory|meta_queue|objectstore|worker)|gateway_http|system_readme)$'
for preset in "$@"; do
  cmake --preset "$preset" -DMR_TESTS=ON # a demo has switched them off
  cmake --build --preset "$preset" -j "$jobs"
  case $preset in
    tsan) ctest --preset tsan -j "$jobs" -R "$threads" --repeat until-pass:2 ;;
    *) ctest --preset "$preset" -j "$jobs" -LE '^(integration|system|schemathesis)$'
       # Real processes on a machine that others may be using: what fails once is tried once more.
       ctest --preset "$preset" -j "$jobs" -L '^(integration|system|schemathesis)$' --repeat until-pass:2 ;;
  esac
done
