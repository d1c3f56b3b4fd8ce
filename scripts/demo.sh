#!/usr/bin/env bash
# Shows millrace at work on this machine: installs what is missing, builds, starts a cluster, runs the
# main job on real input and trains a network on it, prints the results and where to look, and stops.
#   scripts/demo.sh [--data DIR] [--keep]
# --data DIR: where the MNIST IDX files are (tried first: ../shared/data/mnist; without any, digits are
# drawn, and the results say so). --keep: the cluster goes on until Ctrl-C.
set -euo pipefail
cd "$(dirname "$0")/.."
data='' keep=''
while [ $# -gt 0 ]; do
  case $1 in
    -h|--help) sed -n '2,6s/^# \{0,1\}//p' "$0"; exit 0 ;;
    --data) data=$(cd "${2:?a directory is wanted behind --data}" && pwd); shift 2 ;;
    --keep) keep=yes; shift ;;
    *) sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
done

scripts/install-deps.sh build
scripts/build.sh
bin=build/release/bin
PATH=$PWD/$bin:$PATH

if [ -z "$data" ]; then
  for d in ../shared/data/mnist data/mnist; do
    [ -e "$d/train-images-idx3-ubyte.gz" ] && data=$(cd "$d" && pwd) && break
  done
fi
given=()
[ -z "$data" ] || given=(--data "$data")

# A copy is 60,000 x 784 float32; as many as fit a quarter of the memory.
total_kib=$(awk '/^MemTotal/ {print $2}' /proc/meminfo)
copies=$((total_kib / 4 * 1024 / (60000 * 784 * 4)))
[ "$copies" -le 20 ] || copies=20
[ "$copies" -ge 1 ] || copies=1

state=$(mktemp -d)
out=$PWD/build/demo
export MILLRACE_HOME=$state
mkdir -p "$out"
millrace up --dir "$state/cluster" --listen 127.0.0.1:0 --workers 4 --threads 1 --data-root "$PWD" ${data:+--data-root "$data"} >"$state/up.log" 2>&1 &
up=$!
stop() { kill -INT "$up" 2>/dev/null || true; wait "$up" 2>/dev/null || true; rm -rf "$state"; }
trap stop EXIT
for _ in $(seq 600); do
  [ -e "$state/last.json" ] && break
  kill -0 "$up" 2>/dev/null || { cat "$state/up.log" >&2; exit 1; }
  sleep 0.1
done
[ -e "$state/last.json" ] || { cat "$state/up.log" >&2; exit 1; }
cat "$state/up.log"

echo
if [ -n "$data" ]; then
  images='the MNIST training images'
else
  images='60,000 drawn digits'
  echo "No MNIST files are here and no --data was given: the digits are DRAWN, and so all figures below are of drawn data."
fi
echo "== examples/mnist-stats.json: mean and variance of $copies copies of $images"
millrace run examples/mnist-stats.json "${given[@]}" --set "copies=$copies" --out "$out"
echo
echo "== the same again: it finds its results by name"
millrace run examples/mnist-stats.json "${given[@]}" --set "copies=$copies" --out "$out" | head -n 3
echo
millrace ls
few=$copies
[ "$few" -le 4 ] || few=4
echo
echo "== examples/mnist.json: a parameter server, four workers and a scorer train until the score is good enough"
millrace train examples/mnist.json "${given[@]}" --set "copies=$few" --set every_s=0.2 --set time_s=40 --out "$out"
url=$(sed -n 's/.*"url": "\(.*\)".*/\1/p' "$state/last.json")
echo
echo "The mean image is $out/mean.png; $out/mean.npy and $out/var.npy are for NumPy."
echo "While a cluster runs: $url is its dashboard in the browser."
echo "Beside it: $url/openapi.json says what can be asked, $url/metrics is for Prometheus."
echo
echo "Next:"
echo "  export PATH=$PWD/$bin:\$PATH    # or scripts/install.sh, which installs it"
echo "  millrace up                     # a cluster on this machine, until Ctrl-C"
echo "  millrace run examples/hello.json"
if [ -n "$keep" ]; then
  echo "The cluster goes on at $url; Ctrl-C stops it."
  wait "$up"
fi
