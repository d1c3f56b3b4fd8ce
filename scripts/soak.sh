#!/usr/bin/env bash
# Long tests, for a night: fuzzing with coverage, Schemathesis, the simulator, random stress. Without arguments all
# of them except compose; an argument chooses a part and how much of it:
#   scripts/soak.sh [fuzz=SECONDS] [schemathesis=EXAMPLES] [sim=SEEDS] [stress=SECONDS] [fits=FITS]
#                   [stores=KILLS] [compose=PORT] [only=WORD]
# fuzz: each target of tests/fuzz for so many seconds (1200) from its committed corpus, then the lines
# covered in the modules it ran most of. schemathesis: so many examples an operation (1000) against the
# gateway before a fake cluster and against a real one. sim: so many seeds (2000). stress: random jobs and
# random faults on real clusters for so many seconds (600) with and without sanitizers; SEED chooses. fits: so many
# fits of each solver (1000), none of which may cost a worker or take three times the median. stores: an object store
# is killed so many times (60) under jobs that read, make and persist values, on one node and on two. compose: the
# containers of docker-compose.yml are built and started as a project of their own, with the gateway on this port of
# loopback; a browser uses every page of the dashboard; then the containers and their volumes are deleted. It needs
# Docker. only: fuzz targets whose name has the word. Reports, findings and what a corpus grew to are in build/soak/.
set -euo pipefail
cd "$(dirname "$0")/.."
fuzz='' schemathesis='' sim='' stress='' fits='' stores='' compose='' only=''
[ $# -gt 0 ] || set -- fuzz=1200 schemathesis=1000 sim=2000 stress=600 fits=1000 stores=60
for part in "$@"; do
  case $part in
    fuzz=*) fuzz=${part#*=} ;;
    schemathesis=*) schemathesis=${part#*=} ;;
    sim=*) sim=${part#*=} ;;
    stress=*) stress=${part#*=} ;;
    fits=*) fits=${part#*=} ;;
    stores=*) stores=${part#*=} ;;
    compose=*) compose=${part#*=} ;;
    only=*) only=${part#*=} ;;
    -h|--help) sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) sed -n '2,14s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done
scripts/install-deps.sh test
out=$PWD/build/soak
mkdir -p "$out"
jobs=${JOBS:-$(nproc)}
failed=()

# Fuzzes one target in a copy of its corpus. Its exit code is libFuzzer's.
fuzz_one() { # argument: name of the target
  local dir=$out/fuzz/$1
  rm -rf "$dir"
  mkdir -p "$dir/corpus"
  LLVM_PROFILE_FILE=$dir/profraw build/fuzz/bin/fuzz_$1 -max_total_time="$fuzz" -timeout=20 -rss_limit_mb=3072 \
    -print_final_stats=1 -artifact_prefix="$dir/" "$dir/corpus" "tests/fuzz/corpus/$1" >"$dir/log" 2>&1
}

stat_of() { sed -n "s/^stat::$2: *//p" "$out/fuzz/$1/log"; }

# Prints the three modules in which the target covers the most lines; the file `coverage` has all.
coverage_of() { # argument: name of the target
  local dir=$out/fuzz/$1
  [ -s "$dir/profraw" ] || { echo 'no profile: it did not end well'; return 0; }
  llvm-profdata-14 merge -o "$dir/profdata" "$dir/profraw"
  llvm-cov-14 report "build/fuzz/bin/fuzz_$1" -instr-profile="$dir/profdata" >"$dir/coverage" 2>/dev/null
  awk '$1 ~ /\.c$/ && $1 !~ /alloc|assert|buf\.c|fuzz_|pb-c/ && $8 > $9 {print $8 - $9, $1, $10}' "$dir/coverage" |
    sort -rn | head -n 3 | awk '{printf "%s %s  ", $2, $3}'
}

fuzz_all() {
  local names=() name
  for f in tests/fuzz/fuzz_*.c; do
    name=${f#tests/fuzz/fuzz_}
    [[ $name != *"$only"* ]] || names+=("${name%.c}")
  done
  cmake --preset fuzz >/dev/null
  cmake --build --preset fuzz -j "$jobs" --target "${names[@]/#/fuzz_}" | tail -n 1
  export -f fuzz_one
  export fuzz out
  printf '%s\n' "${names[@]}" | xargs -P "$jobs" -I{} bash -c 'fuzz_one {} || touch "$out/fuzz/{}/finding"'
  printf '%-16s %12s %8s %10s  %s\n' target executions 'per s' 'new inputs' 'lines covered'
  for name in "${names[@]}"; do
    printf '%-16s %12s %8s %10s  %s\n' "$name" "$(stat_of "$name" number_of_executed_units)" \
      "$(stat_of "$name" average_exec_per_sec)" "$(find "$out/fuzz/$name/corpus" -type f | wc -l)" \
      "$(coverage_of "$name")"
  done | tee "$out/fuzz.txt"
  for name in "${names[@]}"; do
    [ ! -e "$out/fuzz/$name/finding" ] || failed+=("fuzz $name: see $out/fuzz/$name")
  done
}

schemathesis_all() {
  local bin=$PWD/build/release/bin
  cmake --preset release -DMR_TESTS=ON >/dev/null
  cmake --build --preset release -j "$jobs" | tail -n 1
  export EXAMPLES=$schemathesis MR_BIN=$bin MILLRACE_BIN=$bin MR_DESCRIPTORS
  MR_DESCRIPTORS=$(find "$PWD/build/release" -name descriptors.binpb -path '*/proto/*' | head -n 1)
  for before in --fake ''; do
    # shellcheck disable=SC2086
    /usr/bin/python3 -B tests/integration/schemathesis.py "$out/schemathesis" $before >"$out/schemathesis$before.txt" 2>&1 ||
      failed+=("schemathesis $before: see $out/schemathesis$before.txt")
    tail -n 25 "$out/schemathesis$before.txt"
  done
}

# Runs seeds that no run has tried: they begin at the present time and are divided among the
# processors.
sim_all() {
  local share=$(((sim + jobs - 1) / jobs)) first i pids=()
  first=${SEED:-$(date +%s)000}
  cmake --preset release -DMR_TESTS=ON >/dev/null
  cmake --build --preset release -j "$jobs" --target sim sim_trainer | tail -n 1
  for ((i = 0; i < jobs; i++)); do
    build/release/bin/sim --quiet --start $((first + i * share)) --seeds "$share" >"$out/sim-$i.txt" 2>&1 &
    pids+=($!)
  done
  for ((i = 0; i < jobs; i++)); do
    wait "${pids[i]}" || failed+=("sim: see $out/sim-$i.txt")
    tail -n 3 "$out/sim-$i.txt"
  done
  build/release/bin/sim_trainer --start "$first" --seeds $((sim * 10)) >"$out/sim-trainer.txt" 2>&1 ||
    failed+=("sim_trainer: see $out/sim-trainer.txt")
  tail -n 1 "$out/sim-trainer.txt"
}

# Runs each build for half of the time, in runs of a minute, so that a failure has a short history.
stress_all() {
  local preset seed=${SEED:-$(date +%s)} until
  for preset in dev release; do
    cmake --preset "$preset" -DMR_TESTS=ON >/dev/null
    cmake --build --preset "$preset" -j "$jobs" | tail -n 1
    until=$((SECONDS + stress / 2))
    while [ "$SECONDS" -lt "$until" ]; do
      MILLRACE_BIN=$PWD/build/$preset/bin MILLRACE_TEST_PLUGIN=$PWD/build/$preset/lib/librecord_op.so \
        /usr/bin/python3 -B tests/integration/stress.py --seconds 60 --seed "$seed" --nodes $((1 + seed % 2)) \
        --out "$out/stress-$preset-$seed" >"$out/stress-$preset-$seed.txt" 2>&1 ||
        failed+=("stress $preset, seed $seed: see $out/stress-$preset-$seed.txt")
      tail -n 1 "$out/stress-$preset-$seed.txt"
      seed=$((seed + 1))
    done
  done
}

# The run has a time limit: a fit takes some tenths of a second.
fits_all() {
  cmake --preset release >/dev/null
  cmake --build --preset release -j "$jobs" | tail -n 1
  MILLRACE_BIN=$PWD/build/release/bin timeout $((600 + fits * 15)) \
    /usr/bin/python3 -B tests/integration/fits.py "$fits" >"$out/fits.txt" 2>&1 || failed+=("fits: see $out/fits.txt")
  tail -n 40 "$out/fits.txt"
}

stores_all() {
  cmake --preset release >/dev/null
  cmake --build --preset release -j "$jobs" | tail -n 1
  MILLRACE_BIN=$PWD/build/release/bin MILLRACE_STORE_KILLS=$stores timeout $((600 + stores * 60)) \
    /usr/bin/python3 -B tests/integration/system/test_store_deaths.py >"$out/stores.txt" 2>&1 ||
    failed+=("stores: see $out/stores.txt")
  tail -n 4 "$out/stores.txt"
}

compose_run() {
  local c='docker-compose -p millrace-soak' tokens
  # The test needs five slots.
  export MILLRACE_PORT=$compose MILLRACE_THREADS=3
  $c up --build -d || return
  timeout 120 bash -c "until $c exec -T gateway millrace ready; do sleep 1; done" || return
  $c exec -T gateway millrace run /opt/millrace/examples/hello.json || return
  tokens="$($c exec -T gateway cat token) $($c exec -T gateway add-user user user) $($c exec -T gateway add-user reader reader)"
  MILLRACE_BUILD=$PWD/build/release MILLRACE_DASHBOARD_URL=http://127.0.0.1:$compose MILLRACE_DASHBOARD_TOKENS=$tokens \
    MILLRACE_DASHBOARD_KILL="$c kill scheduler" MILLRACE_DASHBOARD_START="$c up -d scheduler" \
    /usr/bin/python3 -B tests/integration/system/test_dashboard.py
}

compose_all() {
  cmake --preset release >/dev/null
  cmake --build --preset release -j "$jobs" --target dashboard | tail -n 1
  compose_run >"$out/compose.txt" 2>&1 || failed+=("compose: see $out/compose.txt")
  docker-compose -p millrace-soak logs --no-color >"$out/compose-logs.txt" 2>&1 || true
  docker-compose -p millrace-soak down -v >>"$out/compose.txt" 2>&1 || failed+=("compose: the containers are left")
  grep -E '^(ok|SKIPPED|FAILED)' "$out/compose.txt" || true
}

[ -z "$fuzz" ] || fuzz_all
[ -z "$schemathesis" ] || schemathesis_all
[ -z "$sim" ] || sim_all
[ -z "$stress" ] || stress_all
[ -z "$fits" ] || fits_all
[ -z "$stores" ] || stores_all
[ -z "$compose" ] || compose_all
for f in "${failed[@]}"; do echo "FAILED: $f" >&2; done
[ ${#failed[@]} -eq 0 ]
