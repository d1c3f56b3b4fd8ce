#!/usr/bin/env python3
"""Measures training beside PyTorch, in one run: bench/train.py [--data DIR] [--seconds 6] [--rounds 3]
[--nets dense,cnn] [--workers 1,2,4] [--rules async,sync,allreduce] [--json FILE].

For each net, rule and number of workers one session on a cluster of `millrace up --workers 4 --threads 1`:
the nets of examples/mnist.json and examples/mnist-cnn.json, batch 64 a worker, Adam, no scorer, the images
prepared by the session's own graph. Between two looks at its counters lie SECONDS; images/s is what they
say, and so are the shares of the workers' time. Right after it PyTorch trains the same net with the same
Adam in one process (bench/torch_peer.py): as many threads as there were workers, as many examples an
update - 64 for async, 64 a worker for sync and allreduce. It runs with OpenMP as it comes and with waiting
threads asleep, in both memory layouts where there are images; the best median counts. Rounds alternate
between the two, so that a busy minute meets both."""
import argparse
import json
import os
import pathlib
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
    d["optimizer"].pop("schedule", None)
    d["stop"] = {"time_s": 3600}
    d["save"] = "bench/model"
    return d


def counters(c, session):
    t = c.call("GET", f"/v1/trainings/{session}")
    if t["state"] == "TRAINING_FAILED":
        raise SystemExit(f"{session} failed: {t.get('reason')}")
    return t["state"], time.monotonic(), {k: float(v) for k, v in t.get("counters", {}).items()}


def at_report(c, session, since=None):
    """The counters when they have just changed, which is when a report came."""
    while True:
        state, now, k = counters(c, session)
        if state == "TRAINING_RUNNING" and k.get("examples", 0) > 0 and (since is None or k != since):
            return now, k
        time.sleep(0.01)


def measure(c, net, rule, workers, data, seconds):
    session = c.call("POST", "/v1/trainings", document(net, rule, workers, data))["id"]
    begun = at_report(c, session)
    time.sleep(1)  # primitives are made, pages are there
    a_at, a = at_report(c, session, begun[1])
    time.sleep(seconds)
    b_at, b = at_report(c, session, counters(c, session)[2])
    c.call("POST", f"/v1/trainings/{session}:stop", {"abandon": True})
    while c.call("GET", f"/v1/trainings/{session}")["state"] not in ("TRAINING_DONE", "TRAINING_FAILED"):
        time.sleep(0.1)
    c.call("DELETE", f"/v1/trainings/{session}")
    spent = {p: b.get(f"{p}_s", 0) - a.get(f"{p}_s", 0) for p in PARTS}
    whole = sum(spent.values()) or 1
    return {"rate": (b["examples"] - a["examples"]) / (b_at - a_at), "share": {p: spent[p] / whole for p in PARTS},
            "accounted": whole / (workers * (b_at - a_at))}


def peer(net, threads, batch, data, seconds):
    """One round of PyTorch: the best of its settings, or None where it is not installed."""
    best = None
    for name, more in (("as it comes", {}), ("waiting asleep", {"OMP_WAIT_POLICY": "passive", "OPENBLAS_NUM_THREADS": "1"})):
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads))
        env.update(more)
        p = subprocess.run(["/usr/bin/python3", str(ROOT / "bench" / "torch_peer.py"), data, str(seconds), "1",
                            f"{net}:{threads}:{batch}"], capture_output=True, text=True, env=env)
        if p.returncode:
            return None
        answer = json.loads(p.stdout)
        case = next(iter(answer["cases"].values()))
        found = {"rate": case["rates"][0], "setting": f"{name}, {case['layout']}", "version": answer["version"]}
        if best is None or found["rate"] > best["rate"]:
            best = found
    return best


def row(c, net, rule, workers, options):
    ours, theirs, loads = [], [], []
    batch = BATCH if rule == "async" else BATCH * workers
    for _ in range(options.rounds):
        loads.append(os.getloadavg()[0])
        ours.append(measure(c, net, rule, workers, options.data, options.seconds))
        if not options.no_peer:
            theirs.append(peer(net, workers, batch, options.data, options.seconds))
    theirs = [t for t in theirs if t]
    rates = [o["rate"] for o in ours]
    out = {"net": net, "rule": rule, "workers": workers, "batch": batch, "rates": rates, "images_per_s": statistics.median(rates),
           "share": {p: statistics.median(o["share"][p] for o in ours) for p in PARTS},
           "accounted": statistics.median(o["accounted"] for o in ours), "load": loads}
    if theirs:
        out["torch_rates"] = [t["rate"] for t in theirs]
        out["torch"] = statistics.median(out["torch_rates"])
        out["torch_setting"] = [t["setting"] for t in theirs]
        out["torch_version"] = theirs[0]["version"]
        out["ratio"] = out["images_per_s"] / out["torch"]
    return out


def print_row(r):
    share = " ".join(f"{r['share'][p] * 100:5.1f}" for p in PARTS)
    torch = f"{r['torch']:10,.0f} {r['ratio']:6.2f}" if "torch" in r else f"{'-':>10} {'-':>6}"
    print(f"{r['net']:6} {r['rule']:10} {r['workers']:2}  {r['images_per_s']:10,.0f} ({min(r['rates']):,.0f}-{max(r['rates']):,.0f}) "
          f"{torch}   {share}   {r['accounted'] * 100:5.1f}   {max(r['load']):4.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", default=str(ROOT.parent / "shared" / "data" / "mnist"))
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nets", default="dense,cnn")
    parser.add_argument("--rules", default="async,sync,allreduce")
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--no-peer", action="store_true", help="without PyTorch")
    parser.add_argument("--json")
    options = parser.parse_args()
    options.data = str(pathlib.Path(options.data).resolve())
    rows = []
    with tempfile.TemporaryDirectory(prefix="mr-") as d, \
            Cluster("--workers", "4", "--threads", "1", "--memory", "4GiB", "--data-root", options.data, directory=d) as c:
        print("net    rule        w    images/s (least-most)     PyTorch  ratio   comp  feed  pull  push  wait %  accounted %  load")
        for net in options.nets.split(","):
            for workers in options.workers.split(","):
                for rule in options.rules.split(","):
                    rows.append(row(c, net, rule, int(workers), options))
                    print_row(rows[-1])
                    if options.json:
                        pathlib.Path(options.json).write_text(json.dumps({"rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
