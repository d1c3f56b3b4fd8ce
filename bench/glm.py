#!/usr/bin/python3
"""Logistic regression by gradient descent, 1,000,000 × 20 float64 in 8 chunks, 50 iterations. Compares a release
build with NumPy on one thread and, with --dask, with Dask distributed (4 workers of 1 thread), in one run, on equal
data, with the same algorithm. The coefficients are compared, too.

    bench/glm.py [--forms 1x4,4x1,2x2] [--parts 1] [--rounds 3] [--dask] [--json FILE]

The fastest form of the cluster (workers x threads) and of the fit (tasks a chunk) is measured, and printed.

*wall* is the time from the submission of the fit until the client has the coefficients; the data are in the cluster
before. *White space* is 1 - thread-CPU time of the operators / (wall × slots). It is given for the client's wall time
and for the job's own, from the first start to the last finish. *No processor* is the part of it in which threads of
the workers were ready and other threads had the processors; *beside the operators* is the part in which our own
processes ran other code. For Dask, compute is the time that its workers report as computed."""
import argparse
import contextlib
import http.client
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
    """Runs gradient descent. evaluate(w) returns (loss, gradient) as means; the intercept is the last element of
    w."""
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

def ranges(rows, parts):
    """The range [from, to) of rows of each part of a chunk, in whole blocks of eight rows."""
    at = [rows * i // parts // 8 * 8 for i in range(parts)] + [rows]
    return list(zip(at, at[1:]))


def fit_graph(a, parts=1):
    """The short loop of docs/learning.md, in which the parts of a round make the step of the round before themselves.
    `parts` tasks read each chunk."""
    data = {f"{k}/{i}": {"name": f"bench/{k}/{i}"} for k in "xy" for i in range(a.chunks)}
    cut = [(i, list(r)) for i in range(a.chunks) for r in ranges(a.rows // a.chunks, parts)]
    answers = {"each": {"ref": "p${k}"}, "for": {"k": len(cut)}}
    return {"name": "bench glm", "targets": ["summary"], "tasks": {
        **data, "start": {"op": "glm.start", "args": ["logistic", "gd"], "kwargs": {"iterations": a.iterations, "tol": 0}},
        "summary": {"op": "glm.summary", "args": [{"ref": "fit.state"}]}},
        "repeat": {"fit": {
            "max": a.iterations + a.iterations // 5 + 2,
            "carry": {"state": {"ref": "start"}, **{f"p{k}": {"value": None} for k in range(len(cut))}},
            "tasks": {
                **{f"part/{k}": {"op": "glm.part", "args": [{"ref": f"x/{i}"}, {"ref": f"y/{i}"}, {"ref": "state"}, i],
                                 "kwargs": {"parts": answers, "rows": rows}} for k, (i, rows) in enumerate(cut)},
                "next": {"op": "glm.step", "args": [{"ref": "state"}], "kwargs": {"parts": answers}, "priority": 1},
                "done": {"op": "glm.converged", "args": [{"ref": "next"}], "priority": 1}},
            "next": {"state": {"ref": "next"}, **{f"p{k}": {"ref": f"part/{k}"} for k in range(len(cut))}},
            "until": {"ref": "done"}}}}


PROGRAMS = ("mr-worker", "mr-scheduler", "mr-objectstore", "mr-trainer", "mr-gateway", "redis-server")


def clocks(c):
    """(seconds of processor time by program, seconds in which threads of the workers were ready and had no
    processor)."""
    ran, waited = {}, 0
    for program in PROGRAMS:
        for pid in c.pids(program):
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                try:
                    run, wait = (task / "schedstat").read_text().split()[:2]
                except OSError:
                    continue
                ran[program] = ran.get(program, 0) + int(run) / 1e9
                waited += int(wait) / 1e9 if program == "mr-worker" else 0
    return ran, waited


def hurry(a, c, on):
    """With --realtime, gives all threads of the cluster and the waiting client a real-time priority. Executors get a
    lower priority than the threads that hand them work, to which equals would not give way. Each executor gets a
    processor of its own, because equals are not moved out of each other's way."""
    settled = 0
    if a.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO if on else os.SCHED_OTHER, os.sched_param(on * 5))
    for pid in [pid for program in PROGRAMS for pid in c.pids(program)] if a.realtime else ():
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                executes = (task / "comm").read_text().startswith("exec-")
                if executes:
                    os.sched_setaffinity(int(task.name), {settled % os.cpu_count()} if on else range(os.cpu_count()))
                    settled += 1
                os.sched_setscheduler(int(task.name), os.SCHED_FIFO if on else os.SCHED_OTHER, os.sched_param(on * (5 - executes)))


class Line:
    """A client's connection to the gateway, which stays open."""

    def __init__(self, c):
        self.http = http.client.HTTPConnection(c.host, c.port, timeout=120)

    def __enter__(self):
        self("GET", "/healthz")
        return self

    def __exit__(self, *_):
        self.http.close()

    def __call__(self, method, path, body=None):
        self.http.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = self.http.getresponse()
        data = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{method} {path}: {answer.status}: {data.decode(errors='replace')}")
        return json.loads(data)


def install(a, c, parts):
    """Installs the fit as a template: its graph is parsed once, and each fit names the template."""
    c.call("POST", "/v1/templates?name=fit", fit_graph(a, parts))


def our_round(a, c):
    hurry(a, c, True)
    before, waited = clocks(c)
    with Line(c) as ask:
        begun = time.perf_counter()
        job = ask("POST", "/v1/templates/fit:instantiate", "{}")["id"]
        accepted = time.perf_counter() - begun
        s = ask("GET", f"/v1/jobs/{job}/results/summary?wait_s=30")
        wall = time.perf_counter() - begun
    after, waited_after = clocks(c)
    hurry(a, c, False)
    c.wait(job)
    p = c.get(f"/v1/jobs/{job}/profile")
    cpu = sum(int(r.get("cpu_ns", 0)) for r in p["ops"]) / 1e9
    times = [s["times"] for s in c.get(f"/v1/jobs/{job}/timeline?spans_max=100000")["spans"]]
    inner = (max(int(x["finished_ns"]) for x in times) - min(int(x["started_ns"]) for x in times)) / 1e9
    c.call("DELETE", f"/v1/jobs/{job}")
    ran = {program: after[program] - before.get(program, 0) for program in after}
    ran["mr-worker"] -= cpu
    return {"wall": wall, "inner": inner, "cpu": cpu, "white": 1 - cpu / (wall * a.slots), "white_inner": 1 - cpu / (inner * a.slots),
            "starved": (waited_after - waited) / (wall * a.slots), "others": sum(ran.values()) / (wall * a.slots), "ran": ran, "accepted": accepted,
            "coef": np.append(s["coef"], s["intercept"]), "loss": s["objective"], "evaluations": s["evaluations"],
            "ops": {r["op"]: {"tasks": int(r["tasks"]), "wall_ms": int(r["wall_ns"]) / 1e6, "cpu_ms": int(r.get("cpu_ns", 0)) / 1e6,
                              "queue_ms": int(r.get("queue_ns", 0)) / 1e6} for r in p["ops"]}}


@contextlib.contextmanager
def our_cluster(a, workers, threads):
    """A cluster whose store has the data."""
    with tempfile.TemporaryDirectory(prefix="mr-bench-") as d:
        c = Cluster("--workers", str(workers), "--threads", str(threads), "--memory", "1GiB", directory=d)
        try:
            if c.run(data_graph(a))["state"] != "JOB_DONE":
                raise SystemExit("the data were not made: " + c.logs())
            yield c
        finally:
            c.close()


def choose(a):
    """The fastest of the forms, in three fits each: (workers, threads, parts), and the times of all forms."""
    tried = {}
    for workers, threads in a.forms:
        with our_cluster(a, workers, threads) as c:
            for parts in a.parts:
                install(a, c, parts)
                our_round(a, c)
                rounds = [our_round(a, c) for _ in range(3)]
                tried[workers, threads, parts] = min(r["wall"] for r in rounds)
                print(f"  tried {form_text(workers, threads, parts)}: {1e3 * tried[workers, threads, parts]:.0f} ms, white space "
                      f"{100 * min(r['white'] for r in rounds):.1f} %", flush=True)
    return min(tried, key=tried.get), tried


def form_text(workers, threads, parts):
    return f"{workers} x {threads}" + (f", {parts} tasks a chunk" if parts > 1 else "")


# ---- Dask distributed ----

def dask_rounds(a, chunks, client, count):
    """Runs the algorithm as a user of Dask's arrays writes it: X and y persisted, one compute() for each
    evaluation."""
    import dask
    import dask.array as da
    import distributed
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
    for _ in range(count):
        with distributed.get_task_stream(client) as stream:
            begun = time.perf_counter()
            w, loss, evaluations = descend(evaluate, a.columns, a.iterations, 0)
            wall = time.perf_counter() - begun
        busy = sum(s["stop"] - s["start"] for t in stream.data for s in t["startstops"] if s["action"] == "compute")
        rounds.append({"wall": wall, "cpu": busy, "white": 1 - busy / (wall * a.slots), "coef": w, "loss": loss, "evaluations": evaluations})
    return rounds


def dask_local(a, chunks):
    """Runs on a LocalCluster of 4 workers with 1 thread; bench/peer_dask.py chooses the form."""
    import logging
    import dask
    import distributed
    logging.getLogger("distributed").setLevel(logging.ERROR)
    dask.config.set({"distributed.scheduler.worker-saturation": float("inf"), "distributed.worker.profile.interval": "1h",
                     "distributed.worker.profile.cycle": "2h", "distributed.admin.tick.interval": "1h"})
    with distributed.LocalCluster(n_workers=a.slots, threads_per_worker=1, processes=True, dashboard_address=None) as cluster, \
            distributed.Client(cluster) as client:
        return dask_rounds(a, chunks, client, a.rounds), distributed.__version__


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
        text += f"; beside the operators {100 * median(rounds, 'others'):.1f} %"
    print(text, flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    p.add_argument("--rows", type=int, default=1_000_000)
    p.add_argument("--columns", type=int, default=20)
    p.add_argument("--chunks", type=int, default=8)
    p.add_argument("--iterations", type=int, default=50)
    p.add_argument("--forms", default="1x4,4x1,2x2", help="workers x threads to choose from")
    p.add_argument("--parts", default="1", help="tasks a chunk to choose from")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--realtime", action="store_true", help="the cluster and the client go before all other processes while a fit runs (needs the right to)")
    p.add_argument("--dask", action="store_true", help="also Dask distributed, if /usr/bin/python3 has it")
    p.add_argument("--json", help="write everything there")
    a = p.parse_args()
    a.forms = [tuple(int(n) for n in f.split("x")) for f in a.forms.split(",")]
    a.parts = [int(n) for n in a.parts.split(",")]
    a.slots = a.forms[0][0] * a.forms[0][1]
    if any(w * t != a.slots for w, t in a.forms):
        p.error("--forms: all need as many slots")
    if a.rows % a.chunks:
        p.error("--rows is not a multiple of --chunks")
    model = next((v.split(":")[1].strip() for v in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if v.startswith("model name")), "")
    report = {"date": time.strftime("%Y-%m-%d"), "machine": f"{platform.machine()}, {os.cpu_count()} cores, {model}", "load": os.getloadavg(),
              "rows": a.rows, "columns": a.columns, "chunks": a.chunks, "iterations": a.iterations}
    print(f"{report['date']}  {report['machine']}  load {report['load'][0]:.2f}")
    chunks = [chunk_of(a, i) for i in range(a.chunks)]
    x, y = np.concatenate([c[0] for c in chunks]), np.concatenate([c[1] for c in chunks])
    ours, theirs = [], []
    (workers, threads, parts), tried = choose(a) if len(a.forms) * len(a.parts) > 1 else ((*a.forms[0], a.parts[0]), {})
    with our_cluster(a, workers, threads) as c:
        install(a, c, parts)
        our_round(a, c)
        for _ in range(a.rounds):
            ours.append(our_round(a, c))
            theirs.append(numpy_round(a, x, y))
    base = median(theirs, "wall")
    line("NumPy, one thread", theirs, base)
    line(f"millrace, {form_text(workers, threads, parts)}", ours, base)
    report["form"], report["tried"] = form_text(workers, threads, parts), {form_text(*k): v for k, v in tried.items()}
    far = np.abs(ours[0]["coef"] - theirs[0]["coef"]).max()
    print(f"coefficients differ by {far:.1e} at most, the loss by {abs(ours[0]['loss'] / theirs[0]['loss'] - 1):.1e}")
    for op, r in sorted(ours[-1]["ops"].items()):
        print(f"  {op:14s} {r['tasks']:5d} tasks  wall {r['wall_ms']:9.2f} ms  cpu {r['cpu_ms']:9.2f} ms  queued {r['queue_ms']:9.2f} ms")
    if a.dask:
        del x, y
        try:
            rounds, version = dask_local(a, chunks)
            line(f"Dask {version}, {a.slots} workers", rounds, base)
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
