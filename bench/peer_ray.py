"""The rows of the table on Ray: peer_ray.py full|quick SYSTEM DATA [ROW…]. Prints one line of JSON a row.

`ray.init(num_cpus=4)` runs on this machine, and this process is the only client. Values are fetched with one
`ray.get` for all of them and, if there are several, also with one `ray.get` each. The faster way counts and is in the
note."""
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import time

import numpy

import measure
import shapes

ROW_SECONDS = 400
SCHEDULING = ("raylet", "gcs_server")


class Tasks:
    """The ops of the shapes as remote functions."""

    def __init__(self, ray):
        self.ray = ray
        self.remote = {name: ray.remote(function) for name, function in shapes.OPS.items()}

    def submit(self, graph):
        """Submits a graph and returns the references of its targets. Other references are dropped after their last
        use, so that Ray may free the values."""
        users, refs = shapes.users_of(graph), {}
        for i, (op, args) in enumerate(graph.nodes):
            refs[i] = self.remote[op].remote(*[refs[a] if isinstance(a, shapes.Ref) else a for a in args])
            for a in args:
                if isinstance(a, shapes.Ref):
                    users[a] -= 1
                    if not users[a]:
                        del refs[a]
        return [refs[t] for t in graph.targets]

    def run(self, graph, expected, batched=True):
        begun = time.perf_counter()
        refs = self.submit(graph)
        values = self.ray.get(refs) if batched else [self.ray.get(r) for r in refs]
        took = time.perf_counter() - begun
        if not shapes.agree(values, expected):
            raise AssertionError("a wrong value")
        return took


def at_most(seconds, call):
    def over(*_):
        raise TimeoutError(f"not done in {seconds} s")
    signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        return call()
    finally:
        signal.alarm(0)


def shape_row(tasks, make, n, small, rounds, result):
    few = make(small)
    known, ways = shapes.evaluate(few), {}
    for batched in (True, False) if len(few.targets) > 1 else (True,):
        tasks.run(few, known, batched)
        ways[batched] = min(tasks.run(few, known, batched) for _ in range(2))
    way = min(ways, key=ways.get)
    graph = make(n)
    expected = shapes.evaluate(graph)
    runs = [tasks.run(graph, expected, way) for _ in range(rounds)]
    return result(runs, n, "one get" if way else "a get each")


def latency(tasks, n, rounds=3):
    """The median over the rounds of each round's median."""
    half_of_calls(tasks, 20)
    return {**measure.cell([half_of_calls(tasks, n) for _ in range(rounds)], n), "unit": "us"}


def half_of_calls(tasks, n):
    times = []
    for i in range(n):
        took, value = measure.timed(lambda: tasks.ray.get(tasks.remote["inc"].remote(i)))
        if value != i + 1:
            raise AssertionError("a wrong value")
        times.append(took * 1e6)
    return statistics.median(times)


def processes():
    """Pids of this Ray's raylet and gcs_server, and of this process, which owns its tasks."""
    mine, found = os.environ.get("MILLRACE_BENCH_RUN", ""), [os.getpid()]
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "comm").read_text().strip() in SCHEDULING and mine.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def memory(tasks, n):
    """Ray has no central scheduler. So this is the growth of its raylet, of its control store and of the owner of the
    tasks."""
    pids, half = processes(), n // 2
    before = sum(map(measure.memory, pids))
    leaves = [tasks.remote["inc"].remote(i) for i in range(half)]
    pairs = [tasks.remote["add"].remote(leaves[i], leaves[(i + 1) % half]) for i in range(half)]
    tasks.ray.wait(pairs, num_returns=half)
    return {**measure.cell([(sum(map(measure.memory, pids)) - before) / n], n, "raylet, GCS and owner"), "unit": "B"}


def median_us(rounds, count, call):
    runs = []
    for _ in range(rounds):
        took, _ = measure.timed(lambda: [call() for _ in range(count)])
        runs.append(took * 1e6 / count)
    return {**measure.cell(runs, 1, "Python client"), "unit": "us"}


def object_rows(rows, ray):
    little, big = b"x" * 1000, numpy.arange(8 << 20)
    little_ref, big_ref = ray.put(little), ray.put(big)
    rows.row("put-small", lambda: median_us(5, 1000, lambda: ray.put(little)))
    rows.row("get-small", lambda: median_us(5, 1000, lambda: ray.get(little_ref)))
    rows.row("get-big", lambda: median_us(5, 200, lambda: ray.get(big_ref)))

    def eight():
        for _ in range(8):
            ray.put(big)  # the reference is dropped before the next put: Ray frees the object and may use its memory again

    def put_big():
        eight()  # warms the pages
        runs = [8 * big.nbytes / measure.timed(eight)[0] / 1e9 for _ in range(5)]
        return {**measure.cell(runs, 1, "Python client"), "unit": "GB/s"}
    rows.row("put-big", put_big)


def all_rows(ray, rows, mode, wanted):
    tasks, full = Tasks(ray), mode == "full"

    def row(name, call):
        if not wanted or name in wanted:
            rows.row(name, lambda: at_most(ROW_SECONDS, call))

    def as_seconds(runs, n, note):
        return {**measure.cell(runs, n, note if note != "one get" else ""), "unit": "s"}
    ray.get([tasks.remote["inc"].remote(i) for i in range(1000)])  # starts all worker processes
    row("memory", lambda: memory(tasks, 50_000 if full else 10_000))  # first, because later it would find memory that other rows have freed
    row("empty", lambda: shape_row(tasks, shapes.bag, 10_000 if full else 5_000, 1000, 3,
                                   lambda runs, n, note: {**measure.cell([n / r for r in runs], n, note), "unit": "tasks/s"}))
    row("latency", lambda: latency(tasks, 300 if full else 100))
    row("chain", lambda: shape_row(tasks, shapes.chain, 1000, 50, 3,
                                   lambda runs, n, note: {**measure.cell([r * 1e6 / n for r in runs], n), "unit": "us/task"}))
    for s in shapes.SHAPES:
        row(s.name, lambda: shape_row(tasks, s.make, s.sizes[mode], s.sizes["small"], 3, as_seconds))
    if not wanted or "objects" in wanted:
        object_rows(rows, ray)


def main():
    mode, system = sys.argv[1:3]
    wanted = set(sys.argv[4:])
    import ray
    measure.emit("version", system, {"version": f"Ray {ray.__version__}, Python {sys.version.split()[0]}"})
    here = str(pathlib.Path(__file__).resolve().parent)
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as d:
        ray.init(num_cpus=4, include_dashboard=False, logging_level="ERROR", log_to_driver=False, _temp_dir=d,
                 object_store_memory=(4 << 30) if mode == "full" else (1 << 30), runtime_env={"env_vars": {"PYTHONPATH": here, "OMP_NUM_THREADS": "1"}})
        try:
            all_rows(ray, measure.Rows(system), mode, wanted)
        finally:
            ray.shutdown()


if __name__ == "__main__":
    main()
