#!/usr/bin/env python3
"""Many fits of each solver, one after the other. A loop that ends cancels what was sent ahead of it; no such
task may cost a worker its process, and no fit may take more than three times as long as the median of its kind.

    tests/integration/fits.py FITS [SOLVER ...]      # MILLRACE_BIN: where the programs are
"""
import json
import os
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import ROOT, SLOW, Cluster  # noqa: E402

SOLVERS = {"newton": ("none", "l2"), "lbfgs": ("none", "l2"), "gd": ("none", "l2"), "proximal": ("l1", "elasticnet"),
           "admm": ("l1", "none")}
FAMILIES = ("logistic", "normal", "poisson")


def lost(cluster):
    """Log events about worker processes that ended early."""
    logs = (cluster.dir / "c" / "log").glob("worker-*.log")
    words = ("task.cancel_ignored", "panic at", "ERROR: ", "store.lost")
    return [line for log in logs for line in log.read_text(errors="replace").splitlines() if any(w in line for w in words)]


def main():
    fits = int(sys.argv[1])
    solvers = sys.argv[2:] or list(SOLVERS)
    graph = json.loads((ROOT / "examples" / "glm.json").read_text())
    took, bad = {}, []
    with Cluster() as c:
        c.call("POST", "/v1/templates?name=glm", graph)
        before = c.pids("mr-worker")
        for solver in solvers:
            for i in range(fits):
                family, penalty = FAMILIES[i % 3], SOLVERS[solver][i // 3 % 2]
                params = {"family": family, "solver": solver, "penalty": penalty, "rows": 2000}
                begun = time.monotonic()
                if i % 2:
                    job = c.wait(c.call("POST", "/v1/templates/glm:instantiate", {"params": params})["id"], 300)
                else:
                    job = c.run({**graph, "params": {**graph["params"], **params}}, 300)
                took.setdefault((solver, family, penalty), []).append(time.monotonic() - begun)
                if job["state"] != "JOB_DONE":
                    bad.append(f"{solver} {family} {penalty}: {job['state']} {job.get('error')}")
                c.call("DELETE", f"/v1/jobs/{job['id']}")
        after, events = c.pids("mr-worker"), lost(c)
    print(f"{'fit':<28} {'count':>6} {'median s':>9} {'most s':>8} {'most/median':>12}")
    slow = 0
    for kind, seconds in took.items():
        median = statistics.median(seconds)
        slow += sum(s > 3 * median for s in seconds)
        print(f"{' '.join(kind):<28} {len(seconds):>6} {median:>9.3f} {max(seconds):>8.3f} {max(seconds) / median:>12.2f}")
    print(f"{sum(map(len, took.values()))} fits: {len(bad)} not done, {slow} slower than 3 medians, "
          f"{len(events)} processes lost, workers {'the same' if before == after else 'replaced'}")
    for line in bad[:10] + events[:10]:
        print("  " + line)
    # Times are only judged on an idle machine; MILLRACE_TEST_SLOW says that this one is busy.
    return 1 if bad or events or before != after or (slow and SLOW == 1) else 0


if __name__ == "__main__":
    os.environ.setdefault("MILLRACE_BIN", str(ROOT / "build" / "release" / "bin"))
    sys.exit(main())
