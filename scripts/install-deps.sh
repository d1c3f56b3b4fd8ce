#!/usr/bin/env bash
# Installs what millrace is built, tested and run with: Debian's packages, and into .deps/ what
# Debian 12 does not carry, pinned by checksum. Safe to run again; does nothing when all is there.
#   scripts/install-deps.sh [build|test]     default: test (build, and what the tests need)
set -euo pipefail
usage() { sed -n '2,4s/^# \{0,1\}//p' "$0"; }
case ${1:-test} in
  build|test) what=${1:-test} ;;
  -h|--help) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."

build=(build-essential cmake ninja-build pkg-config ca-certificates curl libgrpc-dev libssl-dev protobuf-compiler
  protobuf-c-compiler libprotobuf-c-dev libprotobuf-dev python3 python3-protobuf libmicrohttpd-dev libgnutls28-dev libhiredis-dev redis-server
  libxxhash-dev libjemalloc-dev libopenblas-dev libdnnl-dev libpng-dev zlib1g-dev libdeflate-dev
  libcurl4-openssl-dev)
tests=(libcmocka-dev clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev llvm-14 ccache git jq
  python3-numpy python3-yaml python3-sklearn python3-grpcio python3-venv protobuf-compiler-grpc chromium zsh fish)
packages=("${build[@]}")
[ "$what" = build ] || packages+=("${tests[@]}")

# Tests of generated clients need Node and Go: those of the machine, or else Debian's.
go_is_new() { # since 1.21 Go downloads the version that go.mod asks for
  local minor
  minor=$(go env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p')
  [ "${minor:-0}" -ge 21 ]
}
if [ "$what" = test ]; then
  command -v npm >/dev/null || packages+=(nodejs npm)
  PATH=$PWD/.deps/go/bin:$PATH
  go_is_new || packages+=(golang-go)
fi

root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Prints a line for every tenth of the packages, because the installation takes minutes.
progress() { # packages
  awk -v n="$1" '/^Setting up / { i++; if (i * 10 >= (t + 1) * n) { t = int(i * 10 / n); print "  " i " are set up"; fflush() } }'
}

missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing+=("$p")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    printf 'these packages are missing, and only root can install them:\n  apt-get install %s\n' "${missing[*]}" >&2
    exit 1
  fi
  echo "installing ${#missing[@]} packages and what they depend on: ${missing[*]}"
  root apt-get update -qq
  count=$(apt-get install --simulate --no-install-recommends "${missing[@]}" | grep -c '^Inst ') || true
  echo "  $count packages in all; a bare machine takes some minutes"
  root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" | progress "$count"
fi

# The Debian mirror that apt uses also has the packages of the newer release.
pool() { apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | sort -u | head -n 1; }
fetch_deb() { # arguments: path in the mirror, SHA-256
  local file
  file=.deps/$(basename "$1")
  if ! echo "$2  $file" | sha256sum --check --status 2>/dev/null; then
    local base
    base=$(pool)
    curl -fsSL --retry 3 -o "$file" "${base%/}/$1"
    echo "$2  $file" | sha256sum --check --quiet
  fi
  dpkg-deb --extract "$file" .deps
}
if [ ! -e /usr/include/yyjson.h ] && ! ls .deps/usr/lib/*/libyyjson.so.0 >/dev/null 2>&1; then
  mkdir -p .deps
  case $(dpkg --print-architecture) in
    amd64) fetch_deb pool/main/y/yyjson/libyyjson-dev_0.10.0+ds-1+b1_amd64.deb \
             295f23a9c3d6bd08c0afea051a04aa0bba22c2fa248e39e6e7e0406ef0c068f5
           fetch_deb pool/main/y/yyjson/libyyjson0_0.10.0+ds-1+b1_amd64.deb \
             37980c1c76344e0af7ffeac2a3ed65db2e1a7e5de3a050225498e77935cf367e ;;
    arm64) fetch_deb pool/main/y/yyjson/libyyjson-dev_0.10.0+ds-1+b1_arm64.deb \
             d8ecc58ca1ff13926181d6c2d8fc298a11151f8e803b9bc51b040a36849b6d40
           fetch_deb pool/main/y/yyjson/libyyjson0_0.10.0+ds-1+b1_arm64.deb \
             f42688c9a65f615ae52db9e21ab4e37fd9a6fc8c16539f1272eb5c2093d085e6 ;;
    *) echo "no pinned yyjson for this architecture: install libyyjson-dev" >&2; exit 1 ;;
  esac
fi

# The dashboard draws series with uPlot, a package of npm. Without npm it draws plain lines.
if command -v npm >/dev/null && [ ! -e .deps/uplot/package/dist/uPlot.esm.js ]; then
  mkdir -p .deps/uplot
  if (cd .deps/uplot && npm pack --silent uplot@1.6.32 >/dev/null) &&
    echo "4b8a8191e425658e3ea8c8c1314b0fc679c861ee3a1af2b20c7b16ba50b5133d  .deps/uplot/uplot-1.6.32.tgz" | sha256sum --check --quiet; then
    tar -xzf .deps/uplot/uplot-1.6.32.tgz -C .deps/uplot
  else
    echo "uPlot cannot be fetched: the dashboard will draw plain lines" >&2
  fi
fi

# Debian's Go is older than the Go clients need. It downloads a newer Go as a module, which Go's
# checksum database verifies. Files of a module are read-only and not executable.
go_version=1.26.0
if [ "$what" = test ] && ! go_is_new; then
  module=golang.org/toolchain@v0.0.1-go$go_version.linux-$(dpkg --print-architecture)
  if GOFLAGS='' GOPATH=$PWD/.deps/gopath go mod download "$module"; then
    cp -r ".deps/gopath/pkg/mod/$module" .deps/go
    chmod -R u+w .deps/go .deps/gopath
    chmod +x .deps/go/bin/* .deps/go/pkg/tool/*/*
    rm -r .deps/gopath
  else
    echo "Go $go_version cannot be fetched: tests of Go clients will be skipped" >&2
  fi
fi
