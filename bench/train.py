#!/usr/bin/env python3
"""Measures training beside PyTorch, in one run: bench/train.py [--quick] [--data DIR] [--seconds 6]
[--rounds 3] [--nets cnn,dense] [--workers 1,2,4] [--nodes 1] [--rules async,sync,allreduce] [--no-peer] [--json
FILE].

For each net, rule and number of workers, one session runs on a cluster of `millrace up --workers 4 --threads 1`: the
nets of examples/mnist.json and examples/mnist-cnn.json, batch 64 a worker, Adam, no scorer, images prepared by the
session's own graph. The session's counters are read twice, SECONDS apart. images/s and the shares of the training
workers' time are differences of the two. "accounted" is the part of the wall-clock time that the shares cover.

PyTorch trains the same net with the same Adam in one process (bench/torch_peer.py), with as many threads as there are
workers and as many examples an update: 64 for async, 64 a worker for sync and allreduce, which are the same case for
PyTorch. In the first round PyTorch runs with OpenMP's default and with waiting threads asleep and, for images, in
both memory layouts. Later rounds use the fastest setting.

`--nodes 1,2` adds rows of so many nodes, with equally many workers on each. They exchange gradients over gRPC (under
allreduce in a ring) instead of in shared memory; "ring" shows what a rank sends in a step. Each round goes over all
rules and PyTorch in turn, so that a busy minute slows all of them. Medians count. The last lines are a table for
docs/results/. --quick: windows of 1.5 s, 8 minutes in all."""
import argparse
import contextlib
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
from harness import Cluster  # noqa: E402

EXAMPLES = {"dense": "mnist.json", "cnn": "mnist-cnn.json"}
PARTS = ("compute", "feed", "pull", "push", "wait")
BATCH = 64


def document(net, rule, workers, data):
    d = json.loads((ROOT / "examples" / EXAMPLES[net]).read_text())
    d["params"].update(data=data, rule=rule, workers=workers, ps=0 if rule == "allreduce" else 1, batch=BATCH, learning_rate=0.001)
    if "copies" in d["params"]:
        d["params"]["copies"] = 1
    d["name"] = f"bench-{net}-{rule}-{workers}"
    d["roles"]["scorer"] = 0
    d.pop("score")
    d.pop("checkpoint", None)
    d["optimizer"] = {"type": "adam", "learning_rate": 0.001}  # as in torch_peer.py
    d["stop"] = {"time_s": 3600}
    d["save"] = "bench/model"
    return d


def ring(c):
    """The counters of all ranks' rings in the cluster: steps, messages, bytes, wakes."""
    _, _, body = c.request("GET", "/metrics")
    found = re.findall(r"^millrace_train_ring_(\w+)_total\{.*\} (\S+)$", body.decode(), re.MULTILINE)
    return {what: sum(float(v) for w, v in found if w == what) for what in {w for w, _ in found}}


def counters(c, session):
    t = c.call("GET", f"/v1/trainings/{session}")
    if t["state"] == "TRAINING_FAILED":
        raise SystemExit(f"{session} failed: {t.get('reason')}")
    return t["state"], time.monotonic(), {k: float(v) for k, v in t.get("counters", {}).items()}


def at_report(c, session, since=None):
    """Reads the counters when they have just changed, which is when a report has arrived."""
    while True:
        state, now, k = counters(c, session)
        if state == "TRAINING_RUNNING" and k.get("examples", 0) > 0 and (since is None or k != since):
            return now, k
        time.sleep(0.01)


def nodes_of(c, session):
    return {m["node"] for m in c.call("GET", f"/v1/trainings/{session}").get("members", [])}


def measure(c, nodes, net, rule, workers, data, seconds):
    session = c.call("POST", "/v1/trainings", document(net, rule, workers, data))["id"]
    begun = at_report(c, session)
    time.sleep(0.5)  # by then oneDNN has made its primitives, and pages have been touched
    if len(nodes_of(c, session)) != nodes:
        raise SystemExit(f"{session}: its roles are on {sorted(nodes_of(c, session))}, wanted were {nodes} nodes")
    ring_a, (a_at, a) = ring(c), at_report(c, session, begun[1])
    time.sleep(seconds)
    ring_b, (b_at, b) = ring(c), at_report(c, session, counters(c, session)[2])
    c.call("POST", f"/v1/trainings/{session}:stop", {"abandon": True})
    while c.call("GET", f"/v1/trainings/{session}")["state"] not in ("TRAINING_DONE", "TRAINING_FAILED"):
        time.sleep(0.1)
    c.call("DELETE", f"/v1/trainings/{session}")
    spent = {p: b.get(f"{p}_s", 0) - a.get(f"{p}_s", 0) for p in PARTS}
    whole = sum(spent.values()) or 1
    sent = {what: ring_b[what] - ring_a.get(what, 0) for what in ring_b}
    return {"ring": {what: n / sent["steps"] for what, n in sent.items()} if sent.get("steps") else {},
            "rate": (b["examples"] - a["examples"]) / (b_at - a_at), "share": {p: spent[p] / whole for p in PARTS},
            "accounted": whole / (workers * (b_at - a_at))}


SETTINGS = {"as it comes": {}, "waiting asleep": {"OMP_WAIT_POLICY": "passive", "OPENBLAS_NUM_THREADS": "1"}}


def peer_once(net, threads, batch, options, setting, layout):
    """One round of PyTorch; None if PyTorch is not installed."""
    env = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
    env.update(SETTINGS[setting])
    p = subprocess.run(["/usr/bin/python3", str(ROOT / "bench" / "torch_peer.py"), options.data, str(options.seconds), "1",
                        f"{net}:{threads}:{batch}" + (f":{layout}" if layout else "")], capture_output=True, text=True, env=env)
    if p.returncode:
        print(f"PyTorch is left out, as torch_peer.py failed: {(p.stderr.strip().splitlines() or ['it said nothing'])[-1]}", file=sys.stderr)
        return None
    answer = json.loads(p.stdout)
    case = next(iter(answer["cases"].values()))
    return {"rate": case["rates"][0], "setting": setting, "layout": case["layout"], "version": answer["version"]}


def peer(net, threads, batch, options, before):
    """Runs all settings in the first round, later only the best one."""
    if before:
        return peer_once(net, threads, batch, options, before[0]["setting"], before[0]["layout"])
    tried = [peer_once(net, threads, batch, options, name, None) for name in SETTINGS]
    tried = [t for t in tried if t]
    return max(tried, key=lambda t: t["rate"]) if tried else None


def summed_up(nodes, net, rule, workers, ours, theirs, loads):
    rates = [o["rate"] for o in ours]
    out = {"net": net, "rule": rule, "workers": workers, "nodes": nodes, "ring": ours[-1]["ring"], "batch": batch_of(rule, workers), "rates": rates,
           "images_per_s": statistics.median(rates),
           "share": {p: statistics.median(o["share"][p] for o in ours) for p in PARTS},
           "outside": statistics.median(1 - o["share"]["compute"] for o in ours),
           "accounted": statistics.median(o["accounted"] for o in ours), "load": loads}
    if theirs:
        out["torch_rates"] = [t["rate"] for t in theirs]
        out["torch"] = statistics.median(out["torch_rates"])
        out["torch_setting"] = f"{theirs[0]['setting']}, {theirs[0]['layout']}"
        out["torch_version"] = theirs[0]["version"]
        out["ratio"] = out["images_per_s"] / out["torch"]
    return out


def batch_of(rule, workers):
    return BATCH if rule == "async" else BATCH * workers


def cluster(nodes, workers, directory, options):
    """Starts a cluster with `workers` processes on all nodes together. Idle processes cost next to nothing."""
    each = -(-workers // nodes)  # so few that no node has slots for all roles
    return Cluster("--nodes", str(nodes), "--workers", str(each), "--threads", "1", "--memory", "2GiB", "--data-root", options.data,
                   directory=directory)


def rows_of(here, net, workers, options):
    """Measures all rules with `workers` workers, on `here` and on clusters of more nodes in turns, and PyTorch in the
    same rounds."""
    rules, nodes = options.rules.split(","), [int(n) for n in options.nodes.split(",")]
    cases = [(n, r) for n in nodes if n <= workers for r in rules]
    ours, theirs, loads = {case: [] for case in cases}, {}, []
    with contextlib.ExitStack() as stack:
        clusters = {}
        for n, r in cases:
            roles = workers + (r != "allreduce")
            directory = stack.enter_context(tempfile.TemporaryDirectory(prefix="mr-")) if n > 1 else None
            clusters[n, r] = stack.enter_context(cluster(n, roles, directory, options)) if n > 1 else here
        for _ in range(options.rounds):
            loads.append(os.getloadavg()[0])
            for n, rule in cases:
                ours[n, rule].append(measure(clusters[n, rule], n, net, rule, workers, options.data, options.seconds))
            theirs_once(theirs, rules, net, workers, options)
    return [summed_up(n, net, r, workers, ours[n, r], theirs[batch_of(r, workers)], loads) for n, r in cases]


def theirs_once(theirs, rules, net, workers, options):
    for batch in sorted({batch_of(r, workers) for r in rules}):
        found = None if options.no_peer else peer(net, workers, batch, options, theirs.get(batch))
        theirs.setdefault(batch, []).extend([found] if found else [])


def print_row(r):
    share = " ".join(f"{r['share'][p] * 100:5.1f}" for p in PARTS)
    torch = f"{r['torch']:10,.0f} {r['ratio']:6.2f}" if "torch" in r else f"{'-':>10} {'-':>6}"
    print(f"{r['net']:6} {r['rule']:10} {r['workers']:2} {r['nodes']:2}  {r['images_per_s']:10,.0f} ({min(r['rates']):,.0f}-{max(r['rates']):,.0f}) "
          f"{torch}   {share}   {r['accounted'] * 100:5.1f}   {max(r['load']):4.1f}"
          + "".join(f"  {what} {r['ring'][what]:.1f}" for what in ("messages", "bytes", "wakes") if what in r["ring"]), flush=True)


def print_table(rows, options, seconds):
    version = next((r["torch_version"] for r in rows if "torch_version" in r), "none")
    loads = [x for r in rows for x in r["load"]]
    print(f"\n{time.strftime('%Y-%m-%d')}, `bench/train.py{' --quick' if options.quick else ''}`: {os.cpu_count()} cores, PyTorch {version}, "
          f"medians of {options.rounds} rounds with windows of {options.seconds:g} s, {seconds / 60:.0f} minutes in all, "
          f"load average {min(loads):.1f} to {max(loads):.1f}.\n")
    print("| net | rule | workers | nodes | images/s (least to most) | PyTorch | ratio | compute | feed | pull | push | wait | outside compute |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|---|")
    for r in rows:
        share = " | ".join(f"{r['share'][p] * 100:.1f} %" for p in PARTS)
        torch = f"{r['torch']:,.0f} | {r['ratio']:.1f}" if "torch" in r else "- | -"
        print(f"| {r['net']} | {r['rule']} | {r['workers']} | {r['nodes']} | {r['images_per_s']:,.0f} ({min(r['rates']):,.0f} to {max(r['rates']):,.0f}) | "
              f"{torch} | {share} | {r['outside'] * 100:.1f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", default=str(ROOT.parent / "shared" / "data" / "mnist"))
    parser.add_argument("--quick", action="store_true", help="three rounds with windows of 1.5 s")
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nets", default="cnn,dense")
    parser.add_argument("--rules", default="async,sync,allreduce")
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--nodes", default="1", help="1: one node; 2: two; 1,2: both, in turns")
    parser.add_argument("--no-peer", action="store_true", help="without PyTorch")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.data = str(pathlib.Path(options.data).resolve())
    options.seconds = options.seconds or (1.5 if options.quick else 6)
    rows, begun = [], time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mr-") as d, \
            cluster(1, 4, d, options) as c:
        print("net    rule        w  n    images/s (least-most)     PyTorch  ratio   comp  feed  pull  push  wait %  accounted %  load")
        for net in options.nets.split(","):
            for workers in options.workers.split(","):
                new = rows_of(c, net, int(workers), options)
                for r in new:
                    print_row(r)
                rows += new
                if options.json:
                    pathlib.Path(options.json).write_text(json.dumps({"rows": rows}, indent=1))
    print_table(rows, options, time.monotonic() - begun)
    return 0


if __name__ == "__main__":
    sys.exit(main())
