#!/usr/bin/env python3
"""Compares the predictions of `millrace whatif` with measured runs. A run on 1 slot predicts one on
2 slots, and a run on 2 slots predicts one on 1 slot. If tasks only sleep, a run on 2 slots also
predicts runs on 4 and 16 slots. The cluster has one worker. Each shape of graph runs at least N
times. The fastest run counts, since other work on the machine only adds time. Prints a table in
Markdown.
  bench/whatif.py [--rounds N] [--only SHAPE,…] [--flags FLAGS] [--verbose]
First build, with the preset release: millrace mr-scheduler mr-worker mr-objectstore mr-trainer
mr-gateway"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
BIN = pathlib.Path(os.environ.setdefault("MILLRACE_BIN", str(ROOT / "build" / "release" / "bin")))
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from harness import Cluster  # noqa: E402


def ref(key):
    return {"ref": key}


def empty(n=100_000):
    tasks = {f"n{i}": {"op": "inc", "args": [i]} for i in range(n)}
    return {"tasks": tasks, "targets": list(tasks)}


def chain(n=10_000, fuse=False):
    tasks = {"n0": {"op": "inc", "args": [0]}}
    for i in range(1, n):
        tasks[f"n{i}"] = {"op": "inc", "args": [ref(f"n{i - 1}")]}
    return {"tasks": tasks, "targets": [f"n{n - 1}"], "fuse": fuse}


def tree(n=20_000):
    tasks, level, count = {f"n{i}": {"op": "inc", "args": [i]} for i in range(n)}, [f"n{i}" for i in range(n)], 0
    while len(level) > 1:
        above = []
        for i in range(0, len(level) - 1, 2):
            tasks[f"a{count}"] = {"op": "add", "args": [ref(level[i]), ref(level[i + 1])]}
            above.append(f"a{count}")
            count += 1
        level = above + level[len(level) // 2 * 2:]
    return {"tasks": tasks, "targets": level}


def all_to_all(n=24, floats=20_000):
    tasks = {f"m{i}": {"op": "array.full", "args": [[floats], float(i)]} for i in range(n)}
    for i in range(n):
        for k in range(n):
            tasks[f"s{i}-{k}"] = {"op": "array.add", "args": [ref(f"m{i}"), ref(f"m{k}")]}
    return {"tasks": tasks, "targets": [k for k in tasks if k[0] != "m"]}


def matmul(n=300, side=200):
    tasks = {f"x{i}": {"op": "array.random", "args": [[side, side], i]} for i in range(4)}
    for i in range(n):
        tasks[f"m{i}"] = {"op": "array.matmul", "args": [ref(f"x{i % 4}"), ref(f"x{(i + 1) % 4}")]}
        tasks[f"s{i}"] = {"op": "array.reduce_partial", "args": [ref(f"m{i}"), "sum"]}
    return {"tasks": tasks, "targets": [f"s{i}" for i in range(n)]}


def rounds(blocks=4, count=60, side=120):
    """Each round multiplies the blocks, and sums the products before the next round."""
    tasks = {f"r0-{k}": {"op": "array.random", "args": [[side, side], k]} for k in range(blocks)}
    for i in range(1, count):
        for k in range(blocks):
            tasks[f"p{i}-{k}"] = {"op": "array.matmul", "args": [ref(f"r{i - 1}-{k}"), ref(f"r0-{k}")]}
        tasks[f"s{i}-0"] = {"op": "array.add", "args": [ref(f"p{i}-0"), ref(f"p{i}-1")]}
        for k in range(2, blocks):
            tasks[f"s{i}-{k - 1}"] = {"op": "array.add", "args": [ref(f"s{i}-{k - 2}"), ref(f"p{i}-{k}")]}
        for k in range(blocks):
            tasks[f"r{i}-{k}"] = {"op": "array.divide", "args": [ref(f"s{i}-{blocks - 2}"), float(side * side)]}
    return {"tasks": tasks, "targets": [f"r{count - 1}-{k}" for k in range(blocks)]}


def glm():
    return json.loads((ROOT / "examples" / "glm.json").read_text())


def naps(count, seconds):
    def make():
        tasks = {f"n{i}": {"op": "sleep", "args": [seconds, i]} for i in range(count)}
        return {"tasks": tasks, "targets": list(tasks)}
    return make


SHORT_S = 4.0  # short shapes run again until this time has passed: other work disturbs them more
TWO = ((1, 2), (2, 1))
SHAPES = {
    "empty": ("100,000 empty tasks", empty, TWO),
    "chain": ("chain of 10,000, unfused", chain, TWO),
    "fused": ("chain of 10,000, fused", lambda: chain(fuse=True), TWO),
    "tree": ("tree of 20,000 leaves", tree, TWO),
    "all-to-all": ("all to all, 24 x 24, 160 KB each", all_to_all, TWO),
    "matmul": ("300 products of 200 x 200", matmul, TWO),
    "rounds": ("60 rounds of 4 products of 120 x 120", rounds, TWO),
    "glm": ("examples/glm.json", glm, TWO),
    "naps-1ms": ("400 sleeps of 1 ms", naps(400, 0.001), TWO + ((2, 4), (2, 16))),
    "naps-10ms": ("160 sleeps of 10 ms", naps(160, 0.01), TWO + ((2, 4), (2, 16))),
    "naps-100ms": ("32 sleeps of 100 ms", naps(32, 0.1), TWO + ((2, 4), (2, 16))),
}


def measure(names, slots, count, asks):
    """Runs the shapes on `slots` slots. Returns for each shape the seconds of its fastest run, and
    the predictions from this run for other numbers of slots."""
    with Cluster("--workers", "1", "--threads", str(slots), "--memory", "512MiB") as c:
        c.wait_for_workers(1)
        found = {}
        for name in names:
            graph, best = SHAPES[name][1](), None
            begun, i = time.monotonic(), -1
            while i < count or (i < 8 * count and time.monotonic() - begun < SHORT_S):
                i += 1
                job = c.run(graph)
                if job["state"] != "JOB_DONE":
                    raise SystemExit(f"{name}: {job}")
                wall = int(c.get(f"/v1/jobs/{job['id']}/profile")["wall_ns"]) / 1e9
                old = job["id"]
                if i and (best is None or wall < best[0]):  # the first run only warms up
                    best, old = (wall, job["id"]), best and best[1]
                if old:  # delete it, so that results of earlier runs do not fill the store
                    c.call("DELETE", f"/v1/jobs/{old}")
            wanted = [b for a, b in SHAPES[name][2] if a == slots]
            found[name] = best[0], {b: predict(c, best[1], b, asks) for b in wanted}
    return found


def predict(c, job, slots, asks):
    args = [str(BIN / "millrace"), "whatif", "--url", c.url, "--json", "--slots", str(slots), job, *asks]
    return json.loads(subprocess.run(args, check=True, capture_output=True, text=True).stdout)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--only", default=",".join(SHAPES))
    p.add_argument("--verbose", action="store_true")
    p.add_argument("--flags", default="", help="flags of `millrace whatif`")
    o = p.parse_args()
    names = o.only.split(",")
    slots = sorted({s for n in names for pair in SHAPES[n][2] for s in pair})
    runs = {s: measure([n for n in names if any(s in pair for pair in SHAPES[n][2])], s, o.rounds, o.flags.split()) for s in slots}
    print(f"`bench/whatif.py --rounds {o.rounds}{' --flags=' + repr(o.flags) if o.flags else ''}`, {platform.machine()}, "
          f"{os.cpu_count()} cores, {datetime.date.today()}\n")
    print("| shape | slots | recorded s | predicted s | measured s | error |\n|---|---|---|---|---|---|")
    for name in names:
        for a, b in SHAPES[name][2]:
            recorded, answers = runs[a][name]
            answer, measured = answers[b], runs[b][name][0]
            predicted = int(answer["predicted"]["wall_ns"]) / 1e9
            print(f"| {SHAPES[name][0]} | {a} → {b} | {recorded:.4f} | {predicted:.4f} | {measured:.4f} | {100 * (predicted / measured - 1):+.0f} % |")
            if o.verbose:
                k = answer["costs"]
                print("   replayed %.4f scale %.2f begin %.0f us end %.0f us" % (int(answer["replayed"]["wall_ns"]) / 1e9, k["scale"],
                      int(k["begin_ns"]) / 1e3, int(k["end_ns"]) / 1e3), " ".join(f"{q}={v['ns'] / 1e3 / k['scale']:.2f}({v['samples']})"
                      for q, v in k.items() if isinstance(v, dict)), file=sys.stderr)
                print("   ", {q: round(int(v) / 1e6, 1) for q, v in answer["recorded"]["classes"].items() if int(v) > 1e5}, file=sys.stderr)
                print("   ", {q: round(int(v) / 1e6, 1) for q, v in answer["predicted"]["classes"].items() if int(v) > 1e5}, file=sys.stderr)


if __name__ == "__main__":
    main()
