#!/usr/bin/python3
"""Logistic regression by gradient descent, 1,000,000 × 20 float64 in 8 chunks, 50 iterations: a release build beside
NumPy on one thread and, with --dask, Dask distributed with 4 workers of 1 thread, in one run, on equal data, with the
same algorithm; coefficients are compared.

    bench/glm.py [--rounds 3] [--dask] [--json FILE]

*wall* is from the submission of the fit to its coefficients in the client's hands; the data lie in the cluster before.
*White space* is 1 - thread-CPU time of the operators / (wall × slots), wall once the client's and once the job's own,
from the first start to the last finish; *no processor* is the part of it in which threads of the workers were ready
and others had the machine. For Dask compute is the time that its workers say they computed."""
import argparse
import json
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time

for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"
import numpy as np  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
os.environ.setdefault("MILLRACE_BIN", str(ROOT / "build" / "release" / "bin"))
from harness import Cluster  # noqa: E402

SEED, HALF_WIDTH = 7, 3 ** 0.5
RECENT, ARMIJO, SLACK = 10, 1e-4, 1e-14


# ---- data: the same bits everywhere ----

def coefficients(columns):
    return [round(float(v), 6) for v in np.linspace(-1, 1, columns)]


def generator(seed, chunk):
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(chunk,))))


def chunk_of(a, i):
    rows = a.rows // a.chunks
    x = -HALF_WIDTH + 2 * HALF_WIDTH * generator(SEED, i).random((rows, a.columns))
    eta = x @ np.array(coefficients(a.columns)) + 0.5
    return x, (generator(SEED + 1, i).random(rows) < 1 / (1 + np.exp(-eta))).astype("f8")


def data_graph(a):
    rows = a.rows // a.chunks
    return {"tasks": {
        "x/${i}": {"op": "array.random", "args": [[rows, a.columns], SEED, "uniform", -HALF_WIDTH, HALF_WIDTH],
                   "kwargs": {"generator": "pcg64", "stream": "${i}"}, "persist": "bench/x/${i}", "for": {"i": a.chunks}},
        "y/${i}": {"op": "glm.sample", "args": [{"ref": "x/${i}"}, coefficients(a.columns), "logistic", 0.5, SEED + 1, "${i}"],
                   "persist": "bench/y/${i}", "for": {"i": a.chunks}}}}


# ---- the algorithm: what glm.step does for the solver gd ----

def descend(evaluate, columns, iterations, tol):
    """evaluate(w) is (loss, gradient) as means; w has the intercept last."""
    w = np.zeros(columns + 1)
    loss, gradient = evaluate(w)
    recent, step, done, evaluations = [loss] * RECENT, 1 / max(1, np.sqrt(gradient @ gradient)), 0, 1
    while done < iterations and np.abs(gradient).max() > tol:
        trial = w - step * gradient
        new, new_gradient = evaluate(trial)
        evaluations += 1
        moved = trial - w
        if not new <= max(recent) - ARMIJO / step * (moved @ moved) + SLACK * abs(max(recent)):
            step *= 0.5
            continue
        sy = moved @ (new_gradient - gradient)
        step = moved @ moved / sy if sy > 0 else 2 * step
        done += 1
        recent[done % RECENT] = new
        w, loss, gradient = trial, new, new_gradient
    return w, loss, evaluations


def numpy_round(a, x, y):
    n = len(y)

    def evaluate(w):
        eta = x @ w[:-1] + w[-1]
        e = np.exp(-np.abs(eta))
        loss = (np.log1p(e) + np.maximum(eta, 0) - y * eta).sum() / n
        residual = np.where(eta < 0, e, 1) / (1 + e) - y
        return loss, np.append(x.T @ residual, residual.sum()) / n

    begun, cpu = time.perf_counter(), time.thread_time()
    w, loss, evaluations = descend(evaluate, a.columns, a.iterations, 0)
    return {"wall": time.perf_counter() - begun, "cpu": time.thread_time() - cpu, "coef": w, "loss": loss, "evaluations": evaluations}


# ---- millrace ----

def fit_graph(a):
    """The short loop of docs/learning.md: parts of a round make the step of the round before themselves."""
    data = {f"{k}/{i}": {"name": f"bench/{k}/{i}"} for k in "xy" for i in range(a.chunks)}
    answers = {"each": {"ref": "p${k}"}, "for": {"k": a.chunks}}
    return {"name": "bench glm", "targets": ["summary"], "tasks": {
        **data, "start": {"op": "glm.start", "args": ["logistic", "gd"], "kwargs": {"iterations": a.iterations, "tol": 0}},
        "summary": {"op": "glm.summary", "args": [{"ref": "fit.state"}]}},
        "repeat": {"fit": {
            "max": 2 * a.iterations + 2,
            "carry": {"state": {"ref": "start"}, **{f"p{i}": {"value": None} for i in range(a.chunks)}},
            "tasks": {
                "part/${i}": {"op": "glm.part", "args": [{"ref": "x/${i}"}, {"ref": "y/${i}"}, {"ref": "state"}, "${i}"],
                              "kwargs": {"parts": answers}, "for": {"i": a.chunks}},
                "next": {"op": "glm.step", "args": [{"ref": "state"}], "kwargs": {"parts": answers}, "priority": 1},
                "done": {"op": "glm.converged", "args": [{"ref": "next"}], "priority": 1}},
            "next": {"state": {"ref": "next"}, **{f"p{i}": {"ref": f"part/{i}"} for i in range(a.chunks)}},
            "until": {"ref": "done"}}}}


def waited_s(c):
    """Seconds that threads of the workers were ready to run and had no processor."""
    total = 0
    for pid in c.pids("mr-worker"):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            try:
                total += int((task / "schedstat").read_text().split()[1])
            except OSError:
                pass
    return total / 1e9


def our_round(a, c, graph):
    waited = waited_s(c)
    begun = time.perf_counter()
    job = c.submit(graph)
    s = c.value(job, "summary")
    wall = time.perf_counter() - begun
    waited = waited_s(c) - waited
    c.wait(job)
    p = c.get(f"/v1/jobs/{job}/profile")
    cpu = sum(int(r.get("cpu_ns", 0)) for r in p["rows"]) / 1e9
    inner = int(p["wall_ns"]) / 1e9
    c.call("DELETE", f"/v1/jobs/{job}")
    return {"wall": wall, "inner": inner, "cpu": cpu, "white": 1 - cpu / (wall * a.workers), "white_inner": 1 - cpu / (inner * a.workers),
            "starved": waited / (wall * a.workers),
            "coef": np.append(s["coef"], s["intercept"]), "loss": s["objective"], "evaluations": s["evaluations"],
            "ops": {r["op"]: {"tasks": int(r["tasks"]), "wall_ms": int(r["wall_ns"]) / 1e6, "cpu_ms": int(r.get("cpu_ns", 0)) / 1e6,
                              "queue_ms": int(r.get("queue_ns", 0)) / 1e6} for r in p["rows"]}}


# ---- Dask distributed ----

def dask_rounds(a, chunks):
    """The algorithm as it is written with Dask's arrays: X and y persisted, one compute() an evaluation."""
    import logging
    import dask
    import dask.array as da
    import distributed
    logging.getLogger("distributed").setLevel(logging.ERROR)
    dask.config.set({"distributed.scheduler.worker-saturation": float("inf"), "distributed.worker.profile.interval": "1h",
                     "distributed.worker.profile.cycle": "2h", "distributed.admin.tick.interval": "1h"})
    with distributed.LocalCluster(n_workers=a.workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, \
            distributed.Client(cluster) as client:
        x = da.concatenate([da.from_delayed(d, (a.rows // a.chunks, a.columns), "f8") for d in client.scatter([c[0] for c in chunks])]).persist()
        y = da.concatenate([da.from_delayed(d, (a.rows // a.chunks,), "f8") for d in client.scatter([c[1] for c in chunks])]).persist()
        distributed.wait([x, y])

        def evaluate(w):
            eta = x @ w[:-1] + w[-1]
            e = da.exp(-da.fabs(eta))
            loss = (da.log1p(e) + da.maximum(eta, 0) - y * eta).sum()
            residual = da.where(eta < 0, e, 1) / (1 + e) - y
            loss, g, b = dask.compute(loss, x.T @ residual, residual.sum())
            return loss / a.rows, np.append(g, b) / a.rows

        rounds = []
        for _ in range(a.rounds):
            with distributed.get_task_stream(client) as stream:
                begun = time.perf_counter()
                w, loss, evaluations = descend(evaluate, a.columns, a.iterations, 0)
                wall = time.perf_counter() - begun
            busy = sum(s["stop"] - s["start"] for t in stream.data for s in t["startstops"] if s["action"] == "compute")
            rounds.append({"wall": wall, "cpu": busy, "white": 1 - busy / (wall * a.workers), "coef": w, "loss": loss, "evaluations": evaluations})
        return rounds, distributed.__version__


# ---- the whole ----

def median(rounds, what):
    return statistics.median(r[what] for r in rounds)


def line(name, rounds, base):
    wall = median(rounds, "wall")
    text = f"{name:34s} wall {wall * 1e3:9.1f} ms  {base / wall:6.2f} × NumPy  {rounds[0]['evaluations']} evaluations"
    if "white" in rounds[0]:
        text += f"  white space {100 * median(rounds, 'white'):5.1f} %"
    if "white_inner" in rounds[0]:
        text += f" (of the job's own {median(rounds, 'inner') * 1e3:.1f} ms: {100 * median(rounds, 'white_inner'):.1f} %); no processor {100 * median(rounds, 'starved'):.1f} %"
    print(text, flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--rows", type=int, default=1_000_000)
    p.add_argument("--columns", type=int, default=20)
    p.add_argument("--chunks", type=int, default=8)
    p.add_argument("--iterations", type=int, default=50)
    p.add_argument("--workers", type=int, default=4)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--dask", action="store_true", help="also Dask distributed, if /usr/bin/python3 has it")
    p.add_argument("--json", help="write everything there")
    a = p.parse_args()
    if a.rows % a.chunks:
        p.error("--rows is not a multiple of --chunks")
    model = next((v.split(":")[1].strip() for v in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if v.startswith("model name")), "")
    report = {"date": time.strftime("%Y-%m-%d"), "machine": f"{platform.machine()}, {os.cpu_count()} cores, {model}", "load": os.getloadavg(),
              "rows": a.rows, "columns": a.columns, "chunks": a.chunks, "iterations": a.iterations}
    print(f"{report['date']}  {report['machine']}  load {report['load'][0]:.2f}")
    chunks = [chunk_of(a, i) for i in range(a.chunks)]
    x, y = np.concatenate([c[0] for c in chunks]), np.concatenate([c[1] for c in chunks])
    ours, theirs = [], []
    with tempfile.TemporaryDirectory(prefix="mr-bench-") as d:
        c = Cluster("--workers", str(a.workers), "--threads", "1", "--memory", "1GiB", directory=d)
        try:
            if c.run(data_graph(a))["state"] != "JOB_DONE":
                raise SystemExit("the data were not made: " + c.logs())
            graph = json.dumps(fit_graph(a))
            our_round(a, c, graph)
            for _ in range(a.rounds):
                ours.append(our_round(a, c, graph))
                theirs.append(numpy_round(a, x, y))
        finally:
            c.close()
    base = median(theirs, "wall")
    line("NumPy, one thread", theirs, base)
    line(f"millrace, {a.workers} workers of 1 thread", ours, base)
    far = np.abs(ours[0]["coef"] - theirs[0]["coef"]).max()
    print(f"coefficients differ by {far:.1e} at most, the loss by {abs(ours[0]['loss'] / theirs[0]['loss'] - 1):.1e}")
    for op, r in sorted(ours[-1]["ops"].items()):
        print(f"  {op:14s} {r['tasks']:5d} tasks  wall {r['wall_ms']:9.2f} ms  cpu {r['cpu_ms']:9.2f} ms  queued {r['queue_ms']:9.2f} ms")
    if a.dask:
        del x, y
        try:
            rounds, version = dask_rounds(a, chunks)
            line(f"Dask {version}, {a.workers} workers", rounds, base)
            print(f"coefficients differ from NumPy's by {np.abs(rounds[0]['coef'] - theirs[0]['coef']).max():.1e} at most")
            report["dask"] = [{k: v for k, v in r.items() if k != "coef"} for r in rounds]
        except ImportError as e:
            print(f"Dask is not measured: {e}")
    report["millrace"] = [{k: v for k, v in r.items() if k != "coef"} for r in ours]
    report["numpy"] = [{k: v for k, v in r.items() if k != "coef"} for r in theirs]
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(report, indent=1))
    if far > 1e-9:
        sys.exit("the coefficients do not agree")


if __name__ == "__main__":
    main()
