#!/usr/bin/env python3
"""What TLS costs on one machine: bench/tls.py [--rounds 5] [--latency 500].

Two clusters of `millrace up --grpc`, one of them with --tls, are measured in turns. Rows: one task over gRPC and over
HTTP, from client to client (`millrace bench`, which opens a connection for each request over HTTP, and Python on a
connection that stays open). Then store_pull_bench and ring_bench run over TCP, with the cluster's certificates and
without. Prints medians of the rounds with least and most, as a table for docs/results/."""
import argparse
import http.client
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
BIN = pathlib.Path(os.environ.setdefault("MILLRACE_BIN", str(ROOT / "build" / "release" / "bin")))
from harness import Cluster, wait_for  # noqa: E402

FLAGS = ("--workers", "1", "--threads", "1", "--memory", "512MiB", "--grpc", "127.0.0.1:0")
RING = re.compile(r"p50 (\d+), p90 \d+, p99 (\d+)")


def run(args, **env):
    p = subprocess.run([str(a) for a in args], capture_output=True, text=True, env=dict(os.environ, **env), timeout=300)
    if p.returncode:
        raise SystemExit(f"{args[0]}: {p.stderr or p.stdout}")
    return p.stdout


def address(cluster):
    """The address of the scheduler's gRPC over TCP, from the messages of `up`."""
    def said():
        return re.search(r"scheduler (127\.0\.0\.1:\d+)", cluster.output())
    return wait_for("the address of gRPC", said)[1]


def latency(cluster, env, n):
    args = [BIN / "millrace", "bench", "--json", "--http", "--url", cluster.url, "--scheduler", address(cluster), "--tasks", 0, "--chain", 0,
            "--latency", n, "--rounds", 1]
    found = {}
    for r in json.loads(run(args, **env)):
        if "warming" not in r["name"]:
            where = ", a connection each" if "HTTP" in r["name"] else ""
            found[f"{r['name']}{where}, us"] = r["median"]
    return found


def kept(cluster, n):
    """One task over HTTP from Python, on a connection that stays open."""
    make = http.client.HTTPSConnection if cluster.trust else http.client.HTTPConnection
    more = {"context": cluster.trust} if cluster.trust else {}
    c, times = make(cluster.host, cluster.port, **more), []
    body = json.dumps({"tasks": {"x": {"op": "identity", "args": [1]}}})
    for _ in range(n):
        begun = time.perf_counter()
        c.request("POST", "/v1/jobs?wait_s=30", body, {"Content-Type": "application/json"})
        answer = json.loads(c.getresponse().read())
        times.append((time.perf_counter() - begun) * 1e6)
        if "JOB_DONE" not in json.dumps(answer):
            raise SystemExit(f"a task over HTTP: {answer}")
    times.sort()
    return {"one task over HTTP, p50, one connection, us": times[len(times) // 2],
            "one task over HTTP, p99, one connection, us": times[-1 - len(times) // 100]}


def pull(env):
    rows = [json.loads(line) for line in run([BIN / "store_pull_bench", BIN / "mr-objectstore", "json"], **env).splitlines()]
    return {r["name"] + ", GB/s": r["median"] for r in rows if r["name"].startswith("store to store, 256 MiB, TCP")}


def ring(env):
    flags = ["--tls", env["MILLRACE_TLS_CERT"], env["MILLRACE_TLS_KEY"], env["MILLRACE_TLS_CA"]] if env else []
    m = RING.search(run([BIN / "ring_bench", "--tcp", "--steps", 1000, *flags]))
    return {"all-reduce of 318 kB, 2 ranks, p50, us": float(m[1]), "all-reduce of 318 kB, 2 ranks, p99, us": float(m[2])}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--latency", type=int, default=500)
    options = parser.parse_args()
    rows, loads = {}, []
    with tempfile.TemporaryDirectory(prefix="mr-") as a, tempfile.TemporaryDirectory(prefix="mr-") as b, \
            Cluster(*FLAGS, directory=a) as plain, Cluster(*FLAGS, "--tls", directory=b) as tls:
        files = pathlib.Path(b) / "c" / "tls"
        certificates = {"MILLRACE_TLS_CERT": str(files / "cert.pem"), "MILLRACE_TLS_KEY": str(files / "key.pem"),
                        "MILLRACE_TLS_CA": str(files / "ca.pem")}
        for _ in range(options.rounds):
            loads.append(os.getloadavg()[0])
            for kind, cluster, env in (("plain", plain, {}), ("tls", tls, certificates)):
                ca = {"MILLRACE_TLS_CA": certificates["MILLRACE_TLS_CA"]} if env else {}
                for name, value in {**latency(cluster, ca, options.latency), **kept(cluster, options.latency), **pull(env), **ring(env)}.items():
                    rows.setdefault(name, {"plain": [], "tls": []})[kind].append(value)
    print(f"{time.strftime('%Y-%m-%d')}, `bench/tls.py`: {os.cpu_count()} cores, medians of {options.rounds} rounds (least to most), "
          f"load average {min(loads):.1f} to {max(loads):.1f}.\n\n| | plain | TLS |\n|---|---|---|")
    for name, found in rows.items():
        print(f"| {name} | " + " | ".join(f"{statistics.median(v):,.2f} ({min(v):,.2f} to {max(v):,.2f})" for v in found.values()) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
