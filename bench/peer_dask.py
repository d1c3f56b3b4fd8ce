"""The rows of the table on Dask distributed: peer_dask.py full|quick SYSTEM DATA [ROW…]. Prints one line of JSON a
row.

Scheduler, workers and client are processes of their own. This is faster here than a LocalCluster, whose scheduler
shares its process with the client. Each row runs in the form that was fastest in a small run of the same graph: 4 x
1, 1 x 4 or 2 x 2 processes x threads, tasks as given or fused by dask.optimization.fuse. The row's note has the form.
worker-saturation is inf and the profiler is off. Keys are new in every round, so no value exists before."""
import argparse
import collections
import contextlib
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import dask
import distributed
from dask.optimization import fuse

import glm
import measure
import mnist
import shapes

FORMS = ((4, 1), (1, 4), (2, 2))
ROW_SECONDS = 400
EMPTY = ("empty", "empty-many")
FUSIBLE = ("map-fold", "transpose-sum")
round_number = 0


def environment():
    """The environment of a cluster's processes, which import `shapes` by name."""
    here = str(pathlib.Path(__file__).resolve().parent)
    return dict(os.environ, PYTHONPATH=here, DASK_DISTRIBUTED__SCHEDULER__WORKER_SATURATION="inf", DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED="False",
                DASK_DISTRIBUTED__WORKER__PROFILE__INTERVAL="1h", DASK_DISTRIBUTED__WORKER__PROFILE__CYCLE="2h",
                DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL="1h", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


class Cluster:
    def __init__(self, workers, threads):
        self.form, self.stack = f"{workers} x {threads}", contextlib.ExitStack()
        with contextlib.ExitStack() as stack:
            d = stack.enter_context(tempfile.TemporaryDirectory(prefix="dask-"))
            where, quiet = os.path.join(d, "scheduler.json"), {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment()}
            self.scheduler = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
                                               "--scheduler-file", where], **quiet)
            stack.callback(stop, self.scheduler)
            self.workers = subprocess.Popen([sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", where, "--nworkers", str(workers),
                                             "--nthreads", str(threads), "--no-dashboard", "--memory-limit", "0", "--local-directory", d], **quiet)
            stack.callback(stop, self.workers)
            end = time.monotonic() + 60
            while not os.path.exists(where):
                if self.scheduler.poll() is not None or time.monotonic() > end:
                    raise RuntimeError("dask-scheduler does not start")
                time.sleep(0.05)
            self.client = stack.enter_context(distributed.Client(scheduler_file=where))
            self.client.wait_for_workers(workers, timeout=60)
            self.stack = stack.pop_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stack.close()


def stop(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@contextlib.contextmanager
def at_most(seconds):
    def over(*_):
        raise TimeoutError(f"not done in {seconds} s")
    signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def graph_of(shape, prefix):
    def value(a):
        return f"{prefix}-{a:08d}" if isinstance(a, shapes.Ref) else a
    return ({f"{prefix}-{i:08d}": (shapes.OPS[op], *map(value, args)) for i, (op, args) in enumerate(shape.nodes)},
            [value(t) for t in shape.targets])


def run_graph(client, shape, expected, fused):
    """Seconds from the finished graph until its values are there and checked."""
    global round_number
    round_number += 1
    dsk, targets = graph_of(shape, f"r{round_number}")
    begun = time.perf_counter()
    if fused:
        dsk, _ = fuse(dsk, targets)
    values = client.get(dsk, targets, optimize_graph=False)
    took = time.perf_counter() - begun
    if not shapes.agree(values, expected):
        raise AssertionError("a wrong value")
    return took


def run_map(client, n):
    begun = time.perf_counter()
    values = client.gather(client.map(shapes.inc, range(n), pure=False))
    took = time.perf_counter() - begun
    if values != list(range(1, n + 1)):
        raise AssertionError("a wrong value")
    return took


def run_latency(client, n):
    times = []
    for i in range(n):
        took, value = measure.timed(lambda: client.submit(shapes.inc, i, pure=False).result())
        if value != i + 1:
            raise AssertionError("a wrong value")
        times.append(took)
    return statistics.median(times)


class Plan:
    """For a size of run, the function of each row, which takes a client and returns seconds."""

    def __init__(self, mode):
        self.sizes = {"empty": 10_000 if mode == "full" else 5_000, "chain": 1000 if mode == "full" else 300, "latency": 100 if mode == "full" else 50}
        self.small = {"empty": 4000 if mode == "full" else 2000, "chain": 50, "latency": 10}
        self.sizes["empty-many"], self.small["empty-many"] = 100_000 if mode == "full" else 20_000, self.small["empty"]
        self.graphs = {}
        for s in shapes.SHAPES:
            self.sizes[s.name], self.small[s.name] = s.sizes[mode], s.sizes["small"]

    def graph(self, name, n):
        if (name, n) not in self.graphs:
            g = (shapes.chain if name == "chain" else shapes.bag if name in EMPTY else next(s.make for s in shapes.SHAPES if s.name == name))(n)
            self.graphs[name, n] = g, shapes.evaluate(g)
        return self.graphs[name, n]

    def forms(self, name):
        return ("map", "get") if name in EMPTY else ("", "fused") if name in FUSIBLE else ("",)

    def run(self, client, name, n, form):
        if name == "latency":
            return run_latency(client, n)
        if form == "map":
            return run_map(client, n)
        return run_graph(client, *self.graph(name, n), form == "fused")


def choose(plan, names):
    """The fastest form of each row: {row: (workers, threads, form)}."""
    seen = collections.defaultdict(dict)
    for workers, threads in FORMS:
        with contextlib.suppress(Exception), Cluster(workers, threads) as c:
            for name in names:
                for form in plan.forms(name):
                    with contextlib.suppress(Exception), at_most(60):
                        plan.run(c.client, name, plan.small[name], form)
                        seen[name][workers, threads, form] = min(plan.run(c.client, name, plan.small[name], form) for _ in range(3))
    return {name: min(seen[name], key=seen[name].get) if seen[name] else (4, 1, plan.forms(name)[0]) for name in names}


def measure_rows(rows, plan, names, rounds):
    chosen = choose(plan, names)
    for workers, threads in FORMS:
        mine = [name for name in names if chosen[name][:2] == (workers, threads)]
        while mine:  # after a row that failed, a fresh cluster, because the old one may still compute
            try:
                with Cluster(workers, threads) as c:
                    while mine and rows.row(mine[0], lambda: one_row(c, plan, mine[0], chosen[mine[0]][2], rounds)):
                        mine.pop(0)
            except Exception as e:  # the cluster does not start, or does not stop
                for name in mine[:1]:
                    rows.out(name, rows.system, {"error": f"{type(e).__name__}: {e}"[:300]})
            mine = mine[1:]


def one_row(c, plan, name, form, rounds):
    n, note = plan.sizes[name], ", ".join(filter(None, (c.form, form)))
    with at_most(ROW_SECONDS):
        plan.run(c.client, name, plan.small[name], form)
        runs = [plan.run(c.client, name, n, form) for _ in range(rounds)]
    if name == "latency":
        return {**measure.cell([r * 1e6 for r in runs], n, note), "unit": "us"}
    if name in EMPTY:
        return {**measure.cell([n / r for r in runs], n, note), "unit": "tasks/s"}
    if name == "chain":
        return {**measure.cell([r * 1e6 / n for r in runs], n, note), "unit": "us/task"}
    return {**measure.cell(runs, n, note), "unit": "s"}


def scheduler_memory(n):
    """Bytes a task of the scheduler's process at its peak, with 12-byte keys and two inputs."""
    with Cluster(4, 1) as c, at_most(ROW_SECONDS):
        c.client.gather(c.client.map(shapes.inc, range(1000), pure=False))
        before, half = measure.memory(c.scheduler.pid), n // 2
        dsk = {f"leaf{i:08d}": (shapes.inc, i) for i in range(half)}
        dsk.update({f"pair{i:08d}": (shapes.add, f"leaf{i:08d}", f"leaf{(i + 1) % half:08d}") for i in range(half)})
        futures = c.client.get(dsk, [f"pair{i:08d}" for i in range(half)], sync=False, optimize_graph=False)
        distributed.wait(futures)
        return {**measure.cell([(measure.memory(c.scheduler.pid, "VmHWM") - before) / n], n), "unit": "B"}


def glm_fit(mode):
    """Runs the logistic model of bench/glm.py on the same data, in the form that was fastest in fits of five
    iterations."""
    def settings(rows, iterations):
        return argparse.Namespace(rows=rows, columns=20, chunks=8, iterations=iterations, slots=4)
    rows = 200_000 if mode == "quick" else 1_000_000
    a, trial, seen = settings(rows, 50), settings(rows, 5), {}
    chunks = [glm.chunk_of(a, i) for i in range(a.chunks)]
    for workers, threads in FORMS:
        with contextlib.suppress(Exception), at_most(60), Cluster(workers, threads) as c:
            seen[workers, threads] = min(r["wall"] for r in glm.dask_rounds(trial, chunks, c.client, 2))
    with Cluster(*(min(seen, key=seen.get) if seen else FORMS[0])) as c, at_most(ROW_SECONDS):
        rounds = glm.dask_rounds(a, chunks, c.client, 1 if mode == "quick" else 3)
        note = f"{c.form}; white space {statistics.median(r['white'] for r in rounds):.1%}" + (f"; {rows:,} rows" if mode == "quick" else "")
        return {**measure.cell([r["wall"] for r in rounds], a.iterations, note), "unit": "s"}


def main():
    mode, system, data = sys.argv[1:4]
    wanted = set(sys.argv[4:])
    dask.config.set({"distributed.worker.profile.interval": "1h"})
    plan, rows = Plan(mode), measure.Rows(system)
    measure.emit("version", system, {"version": f"Dask distributed {distributed.__version__}, Python {sys.version.split()[0]}"})
    names = [name for name in plan.sizes if not wanted or name in wanted]
    if names:
        measure_rows(rows, plan, names, 3)
    if not wanted or "memory" in wanted:
        rows.row("memory", lambda: scheduler_memory(10_000))  # time grows with the square of the number of tasks: 44 s for 10,000
    if not wanted or "glm" in wanted:
        rows.row("glm", lambda: glm_fit(mode))
    if not wanted or "mnist" in wanted:
        mnist.measure_dask(system, data, mode, Cluster, FORMS)


if __name__ == "__main__":
    main()
