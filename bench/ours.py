"""The rows of the table on a release build of this tree: `up --workers 4 --threads 1` with defaults for everything
but the directories of state and sockets. The clients are processes of their own: `millrace bench`, `shape_client`,
and HTTP for the array job."""
import contextlib
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import time

import measure
import mnist
import processes
import shapes

ROOT = pathlib.Path(__file__).resolve().parents[1]
BIN = pathlib.Path(os.environ.setdefault("MILLRACE_BIN", str(ROOT / "build" / "release" / "bin")))
sys.path.insert(0, str(ROOT / "tests" / "integration"))
from harness import Cluster  # noqa: E402

SHORT_ROUNDS = 15  # rounds of a few milliseconds each, so a single late wake-up would double one
IDLE_PROGRAMS = ("redis-server", "mr-objectstore", "mr-scheduler", "mr-trainer", "mr-worker", "mr-gateway")


# ---- shapes as shape_client reads them ----

def pack(v):
    """MessagePack of a value, in the shortest form."""
    if isinstance(v, float):
        return b"\xcb" + struct.pack(">d", v)
    if isinstance(v, int):
        return struct.pack("B", v) if v < 128 else b"\xce" + struct.pack(">I", v) if v > 65535 else b"\xcd" + struct.pack(">H", v) if v > 255 else b"\xcc" + struct.pack("B", v)
    if isinstance(v, str):
        return struct.pack("B", 0xa0 + len(v)) + v.encode()
    if isinstance(v, dict):
        return struct.pack("B", 0x80 + len(v)) + b"".join(pack(k) + pack(x) for k, x in v.items())
    return struct.pack("B", 0x90 + len(v)) + b"".join(map(pack, v))


def draw(side, stream):
    return {"": [[side, side]], "seed": shapes.SEED, "stream": stream}


# operator of a shape: our operator, and a function of its arguments (None: the same arguments)
OPS = {"inc": ("inc", None), "double": ("mul", lambda x: [x, 2]), "add": ("add", None), "sum": ("sum", None), "max": ("max", None), "min": ("min", None),
       "range": ("range", None), "item": ("get_item", None), "wait_ms": ("sleep", lambda ms, v: [ms / 1000, v]), "arange": ("array.arange", None),
       "total": ("array.sum", None), "transpose": ("array.transpose", None), "draw": ("array.random", draw)}


def write_shape(graph, expected, path):
    names = list(OPS)
    out = [b"mrshape1", struct.pack("<I", len(names))]
    for name in names:
        op = OPS[name][0].encode()
        out += [struct.pack("<I", len(op)), op]
    out.append(struct.pack("<I", len(graph.nodes)))
    for name, args in graph.nodes:
        change = OPS[name][1]
        args = change(*args) if change else args
        out.append(struct.pack("<II", names.index(name) + 1, 0xffffffff if isinstance(args, dict) else len(args)))
        if isinstance(args, dict):
            raw = pack(args)
            out += [struct.pack("<I", len(raw)), raw]
            continue
        for a in args:
            if isinstance(a, shapes.Ref):
                out.append(struct.pack("<BI", 0, a))
            elif isinstance(a, int):
                out.append(struct.pack("<Bq", 1, a))
            else:
                raw = pack(a)
                out.append(struct.pack("<BI", 2, len(raw)) + raw)
    out.append(struct.pack("<I", len(graph.targets)))
    for t, v in zip(graph.targets, expected):
        out.append(struct.pack("<IBdd", t, 2, v, abs(v) * 1e-9) if isinstance(v, float) else struct.pack("<IBqd", t, 1, v, 0))
    pathlib.Path(path).write_bytes(b"".join(out))


# ---- rows ----

class Ours:
    def __init__(self, rows, directory, mode):
        self.rows, self.directory, self.mode, self.c = rows, pathlib.Path(directory), mode, None

    def start(self, name, memory):
        d = self.directory / name
        d.mkdir()
        self.c = Cluster("--workers", "4", "--threads", "1", "--memory", memory, "--data-root", "/", directory=d)
        return self.c

    def bench(self, *flags):
        """Runs `millrace bench`; returns its rows by name."""
        out = self.c.cli("bench", "--scheduler", self.c.scheduler, "--json", *flags, timeout=600)[1]
        return json.loads(out)

    def client_rows(self, rounds):
        def find(found, start):
            r = next(r for r in found if r["name"].startswith(start))
            return {"median": r["median"], "min": r["min"], "max": r["max"], "runs": r["rounds"], "load": os.getloadavg()[0], "note": ""}
        big = 1_000_000 if self.mode == "full" else 100_000
        empty = 10_000 if self.mode == "full" else 5_000
        latency = 1000 if self.mode == "full" else 300
        common = ("--rounds", str(rounds))
        self.bench("--tasks", "10000", "--chain", "100", "--latency", "50", "--rounds", "2")  # warms up the cluster

        def half_of_calls():
            found = [find(self.bench("--tasks", "0", "--chain", "0", "--latency", str(latency)), "one task over gRPC, p50") for _ in range(rounds)]
            return {**measure.cell([r["median"] for r in found], latency), "unit": "us"}
        self.rows.row("latency", half_of_calls)
        chain = shapes.Shape("chain", "", shapes.chain, (1000, 1000, 50), True)
        self.rows.row("chain", lambda: {**measure.cell([s * 1e3 for s in self.shape(chain, 1000, SHORT_ROUNDS, "unfused")], 1000), "unit": "us/task"})
        self.rows.row("chain-fused", lambda: {**measure.cell([s * 1e3 for s in self.shape(chain, 1000, SHORT_ROUNDS)], 1000), "unit": "us/task"})
        many = big // 10 if self.mode == "full" else big // 5
        for name, n, times in (("empty", empty, SHORT_ROUNDS), ("empty-many", many, rounds), ("empty-big", big, rounds)):
            found = []
            self.rows.row(name, lambda: {**find(found.extend(self.bench("--latency", "0", "--chain", "0", "--tasks", str(n), "--rounds", str(times))) or found, "empty tasks"), "n": n, "unit": "tasks/s"})
        self.rows.row("accepted", lambda: {**find(found, "graph of"), "n": big, "unit": "s"})
        http = min(big, 100_000)
        self.rows.row("empty-http", lambda: {**find(self.bench("--http", "--latency", "0", "--chain", "0", "--tasks", str(http), *common), "empty tasks over HTTP"), "n": http, "unit": "tasks/s"})

    def shape(self, s, n, rounds, *options):
        path = self.directory / f"{s.name}-{n}"
        graph = s.make(n)
        write_shape(graph, shapes.evaluate(graph), path)
        out = subprocess.run([str(BIN / "shape_client"), self.c.scheduler, str(path), str(rounds), *options], capture_output=True, text=True, timeout=300)
        path.unlink()
        if out.returncode:
            raise RuntimeError(out.stderr.strip())
        return [r["total_s"] for r in json.loads(out.stdout)]

    def shape_rows(self, rounds):
        for s in shapes.SHAPES:
            def measured():
                n = s.sizes[self.mode]
                self.shape(s, s.sizes["small"], 1)
                return {**measure.cell(self.shape(s, n, SHORT_ROUNDS if s.empty else rounds), n), "unit": "s"}
            self.rows.row(s.name, measured)

    def idle(self, seconds):
        pids = [self.c.up.pid] + [p for program in IDLE_PROGRAMS for p in self.c.pids(program)]
        before, begun = sum(map(cpu_ns, pids)), time.monotonic()
        time.sleep(seconds)
        return {**measure.cell([100 * (sum(map(cpu_ns, pids)) - before) / 1e9 / (time.monotonic() - begun)], seconds), "unit": "% of a core"}

    def scheduler_memory(self, n):
        """Bytes a task of the scheduler of a fresh cluster, by the kernel's peak. So parsing the JSON and the values
        of the targets are included."""
        scheduler, half = self.c.pids("mr-scheduler")[0], n // 2
        before = measure.memory(scheduler)
        leaves = ",".join(f'"leaf{i:08d}":{{"op":"inc","args":[{i}]}}' for i in range(half))
        pairs = ",".join(f'"pair{i:08d}":{{"op":"add","args":[{{"ref":"leaf{i:08d}"}},{{"ref":"leaf{(i + 1) % half:08d}"}}]}}' for i in range(half))
        job = self.c.wait(self.c.submit('{"tasks":{' + leaves + "," + pairs + "}}"))
        if job["state"] != "JOB_DONE":
            raise RuntimeError(str(job.get("error")))
        return {**measure.cell([(measure.memory(scheduler, "VmHWM") - before) / n], n), "unit": "B"}

    def all(self, data, quick, copying):
        """Runs the stages, each on a cluster of its own. A stage that fails does not stop the next one. Returns texts
        about the failures."""
        memory = "2GiB" if quick else "8GiB"

        def fresh():
            self.rows.row("idle", lambda: self.idle(5 if quick else 60))
            self.rows.row("memory", lambda: self.scheduler_memory(200_000 if quick else 1_000_000))

        def many():
            self.client_rows(5)
            self.shape_rows(3 if quick else 5)

        def images():
            copying()
            mnist.measure_ours(self.rows, self.c, data, self.mode)
            copying()
        failed = []
        for name, room, stage in (("fresh", memory, fresh), ("many", memory, many), ("images", "2GiB" if quick else "10GiB", images if data else None),
                                  ("glm", None, lambda: self.glm_rows(quick)), ("store", None, self.store_rows),
                                  ("spill", None, lambda: self.spill_rows(quick))):
            try:
                if stage and room:
                    self.start(name, room)
                if stage:
                    stage()
            except Exception as e:
                failed.append(f"{name}: {type(e).__name__}: {e}"[:300])
            finally:
                self.end()
        return failed

    def end(self):
        """Ends the cluster, whatever its state is."""
        if self.c:
            with contextlib.suppress(Exception):
                self.c.close()
            self.c = None

    def glm_rows(self, quick):
        """Runs bench/glm.py, which starts clusters of its own and takes the fastest form. peer_dask.py measures the
        same fit on Dask."""
        if not GLM.exists():
            return
        out, flags = self.directory / "glm.json", ("--rounds", "3", "--rows", "200000") if quick else ("--rounds", "5")

        def run():
            processes.end_all(os.environ[processes.VARIABLE])  # no other process of this run may be left
            done = subprocess.run(["/usr/bin/python3", str(GLM), *flags, "--json", str(out)], capture_output=True, text=True, timeout=600,
                                  env=dict(os.environ, TMPDIR=str(self.directory)))
            if done.returncode:
                raise RuntimeError((done.stderr.strip() or done.stdout.strip()).splitlines()[-1])
            seen = json.loads(out.read_text())
            numpy_s = statistics.median(r["wall"] for r in seen["numpy"])
            return glm_cell(seen, "millrace", f"{seen['form']}; NumPy, one thread: {numpy_s:.2f} s")
        self.rows.row("glm", run)
        processes.end_all(os.environ[processes.VARIABLE])

    def spill_rows(self, quick):
        """Runs bench/spill.py, which starts clusters of its own and measures the disk in the same run."""
        out, memory = self.directory / "spill.json", "256MiB" if quick else "1GiB"

        def run():
            done = subprocess.run(["/usr/bin/python3", str(SPILL), "--memory", memory, "--rounds", "3", "--json", str(out), "--dir", str(self.directory)],
                                  capture_output=True, text=True, timeout=600)
            if done.returncode:
                raise RuntimeError((done.stderr.strip() or done.stdout.strip()).splitlines()[-1])
            seen = json.loads(out.read_text())
            moved = seen["written_bytes"] + seen["read_bytes"]
            note = (f"store of {memory}; {moved / 2**30:.1f} GiB written and read back, for which the disk alone would take "
                    f"{seen['cached']['share']:.0%} of this time through the page cache, {seen['device']['share']:.0%} with O_DIRECT; "
                    f"{seen['in_memory_s']:.2f} s with a store in which nothing spills")
            return {**measure.cell(seen["walls_s"], seen["times"], note), "unit": "s"}
        self.rows.row("spill", run)

    def store_rows(self):
        """Runs store_bench and put_bench: their rows for one object are compared with Ray's."""
        found = {}
        for program in ("store_bench", "put_bench"):
            run = subprocess.run([str(BIN / program), str(BIN / "mr-objectstore"), "json"], capture_output=True, text=True, timeout=300,
                                 env=dict(os.environ, TMPDIR=str(self.directory)))
            found.update((r["name"], r) for r in map(json.loads, run.stdout.splitlines()))

        def from_store(name, factor, unit, note):
            r = found[name]
            return {"median": r["median"] * factor, "min": r["min"] * factor, "max": r["max"] * factor, "runs": 5, "n": 1, "unit": unit,
                    "load": os.getloadavg()[0], "note": note}
        for row, *rest in STORE_ROWS:
            self.rows.row(row, lambda: from_store(*rest))


GLM = ROOT / "bench" / "glm.py"
SPILL = ROOT / "bench" / "spill.py"
STORE_ROWS = (("put-small", "create, seal and unhold, 1 kB", 1e-3, "us", "C client"), ("get-small", "local get and release, 1 kB", 1e-3, "us", "C client"),
              ("get-big", "local get and release, 64 MiB", 1e-3, "us", "C client"),
              ("put-one", "put and delete, 64 MiB, warm pages, 1 thread", 1, "GB/s", "C client"),
              ("put-big", "put and delete, 64 MiB, warm pages, 4 threads", 1, "GB/s", "C client"))


def glm_cell(seen, system, note):
    rounds = seen[system]
    notes = [note] if note else []
    if "white" in rounds[0]:
        notes.append(f"white space {statistics.median(r['white'] for r in rounds):.1%}")
    if seen["rows"] != 1_000_000:
        notes.append(f"{seen['rows']:,} rows")
    return {**measure.cell([r["wall"] for r in rounds], seen["iterations"], "; ".join(notes)), "unit": "s"}


def cpu_ns(pid):
    """CPU time of a process over all its threads."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except OSError:
            pass
    return total
