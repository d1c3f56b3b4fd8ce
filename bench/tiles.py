#!/usr/bin/env python3
"""Pictures of the timeline of a job that ran: bench/tiles.py [--tasks 10000000] [--rounds 60].

Runs `inc` that many times on 8 workers with 8 threads each, summed a thousand at a time. Then asks
GET /v1/jobs/{id}/tiles for random windows at each scale, 64 rows of 1,024 pixels, on one connection, and prints the
times and sizes of the answers; first pictures, also by class; and what bench_tiles (if it was built) says of the same
trace without gateway and gRPC."""
import argparse
import http.client
import json
import os
import pathlib
import random
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BIN = pathlib.Path(os.environ.setdefault("MILLRACE_BIN", str(ROOT / "build" / "release" / "bin")))
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from harness import Cluster  # noqa: E402

GROUP = 1000


def graph(tasks):
    """Yields the JSON of the graph in pieces of about 100 KB."""
    groups = [range(i, min(i + GROUP, tasks)) for i in range(0, tasks, GROUP)]
    yield b'{"fuse":false,"dsk":{'
    for g, numbers in enumerate(groups):
        rows = [f'"n{i:x}":["inc",{i % 97}],' for i in numbers]
        rows.append(f'"s{g}":["sum",[{",".join(chr(34) + f"n{i:x}" + chr(34) for i in numbers)}]],')
        yield "".join(rows).encode()
    names = ",".join(f'"s{g}"' for g in range(len(groups)))
    yield f'"all":["sum",[{names}]]}},"targets":["all"]}}'.encode()


def quantile(values, share):
    return sorted(values)[int(len(values) * share)]


class Pictures:
    def __init__(self, cluster, job):
        self.c, self.path = http.client.HTTPConnection(cluster.host, cluster.port, timeout=300), f"/v1/jobs/{job}/tiles"

    def get(self, query):
        begun = time.monotonic()
        self.c.request("GET", f"{self.path}?width=1024&rows=64&{query}")
        answer = self.c.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{answer.status}: {body[:300]}")
        return time.monotonic() - begun, body


def measure(cluster, job, rounds):
    pictures = Pictures(cluster, job)
    took, body = pictures.get("")
    whole = json.loads(body)
    begin, end = int(whole["from_ns"]), int(whole["until_ns"])
    print(f"first picture {took * 1e3:.0f} ms, {len(body)} bytes; the job took {(end - begin) / 1e9:.1f} s")
    every, size, rng = [], [], random.Random(1)
    for power in range(0, 21):
        window, times = max((end - begin) >> power, 4096), []
        for _ in range(rounds):
            at = begin + rng.randrange(end - begin - window + 1)
            took, body = pictures.get(f"from_ns={at}&until_ns={at + window}")
            times.append(took * 1e3)
            size.append(len(body))
        every += times
        print(f"  1/2^{power:<3} p50 {quantile(times, 0.5):6.1f} ms  p95 {quantile(times, 0.95):6.1f} ms  max {max(times):6.1f} ms")
    print(f"all scales p50 {quantile(every, 0.5):.1f} ms  p95 {quantile(every, 0.95):.1f} ms  max {max(every):.1f} ms; "
          f"answers p50 {quantile(size, 0.5)} bytes, max {max(size)} bytes")
    took, body = pictures.get("color=TILE_COLOR_CLASS")
    again = [pictures.get("color=TILE_COLOR_CLASS")[0] * 1e3 for _ in range(rounds)]
    print(f"by class: first picture {took:.1f} s, then p50 {quantile(again, 0.5):.1f} ms  p95 {quantile(again, 0.95):.1f} ms")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tasks", type=int, default=10_000_000)
    p.add_argument("--rounds", type=int, default=60)
    a = p.parse_args()
    with Cluster("--workers", "8", "--threads", "8", "--memory", "512MiB") as cluster:
        cluster.wait_for_workers(8)
        begun = time.monotonic()
        c = http.client.HTTPConnection(cluster.host, cluster.port, timeout=900)
        c.request("POST", "/v1/jobs", body=graph(a.tasks), headers={"content-type": "application/json"}, encode_chunked=True)
        answer = json.loads(c.getresponse().read())
        job = answer.get("id") or sys.exit(str(answer))
        state = cluster.wait(job, 900)["state"]
        print(f"{a.tasks} tasks: {state} after {time.monotonic() - begun:.1f} s")
        time.sleep(3)  # until the last blocks are written
        measure(cluster, job, a.rounds)
        if (BIN / "bench_tiles").exists():
            here = cluster.dir / "c"
            subprocess.run([BIN / "bench_tiles", f"unix:{here / 'run' / 'redis.sock'}", here, job], check=True)


if __name__ == "__main__":
    main()
