#!/usr/bin/env python3
"""Measures a release build and its peers in one run and prints one table. bench/run.sh builds first, calls this
program and cleans up after it.

    run.py DIRECTORY --json FILE [--quick] [--data DIR] [--no-peers] [--only dask-debian,dask-newest,ray]

All temporary files are in DIRECTORY, and every process has MILLRACE_BENCH_RUN in its environment. A row that fails,
and a peer that is not installed, are shown as such in the table."""
import argparse
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import time

import measure
import ours
import processes
import table

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
# system: interpreter, script, seconds of a full run and of a quick one
PEERS = {table.OLD_DASK: ("/usr/bin/python3", "peer_dask.py", 1200, 700), table.NEW_DASK: (str(ROOT / "build/peers/bin/python"), "peer_dask.py", 1200, 420),
         table.RAY: (str(ROOT / "build/peers/bin/python"), "peer_ray.py", 900, 400)}
NAMES = {table.OLD_DASK: "Dask of Debian", table.NEW_DASK: "newest Dask", table.RAY: "Ray"}


def cpu_name():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def commit():
    run = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True)
    return run.stdout.strip() or "unknown"


class Report:
    def __init__(self, a):
        self.path, self.directory = pathlib.Path(a.json), a.directory
        self.began = time.monotonic()
        self.seen = {"date": time.strftime("%Y-%m-%d"), "quick": a.quick, "commit": commit(), "machine": f"{os.cpu_count()} cores, {cpu_name()}",
                     "load_before": os.getloadavg()[0], "systems": {table.OURS: "this tree"}, "rows": {}, "alone": {}}
        self.save()

    def add(self, row, system, value):
        if row == "version":
            self.seen["systems"][system] = value["version"]
        else:
            if "error" in value:  # reports are published, so paths of this machine are removed
                value = {**value, "error": value["error"].replace(f"{ROOT}/", "").replace(f"{self.directory}/", "")}
            self.seen["rows"].setdefault(row, {})[system] = {k: v for k, v in value.items() if k not in ("row", "system")}
        self.save()

    def add_copy(self, bytes_per_s):
        """Keeps the best result of the run, because other work on the machine can only slow copying down."""
        self.seen["copy_bytes_per_s"] = max(bytes_per_s, self.seen.get("copy_bytes_per_s", 0))

    def line(self, text):
        try:
            value = json.loads(text)
            row, system = value.pop("row"), value.pop("system")
        except (ValueError, KeyError, AttributeError):
            return  # a line that a library printed to stdout
        self.add(row, system, value)

    def save(self):
        """Saves after each row, so that a run that is cut short keeps its results."""
        self.seen.update(load_after=os.getloadavg()[0], seconds=time.monotonic() - self.began)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(self.seen, indent=1))
        part.replace(self.path)


def run_peer(report, system, directory, mode, data):
    python, script, full, quick = PEERS[system]
    report.seen["systems"][system] = NAMES[system]
    why = None if os.access(python, os.X_OK) else f"{python} is missing: bench/peers.sh makes it"
    if not why:
        env = dict(os.environ, TMPDIR=str(directory), RAY_USAGE_STATS_ENABLED="0", PYTHONWARNINGS="ignore", PYTHONPATH=str(HERE))
        why = processes.stream_lines([python, str(HERE / script), mode, system, str(data)], env, full if mode == "full" else quick, report.line)
        processes.end_all(os.environ[processes.VARIABLE])  # processes of this peer must not slow the next one down
    if why:
        print(f"  {system}: {why}", file=sys.stderr)
        for name in table.ROWS:
            if table.applies(name, system) and name not in table.ALONE and system not in report.seen["rows"].get(name, {}):
                report.add(name, system, {"error": why})


def run_alone(report, quick):
    """Runs the programs that need no cluster."""
    sizes = ((1_000_000, 10), (1_000_000, 10_000)) if quick else ((1_000_000, 10), (1_000_000, 100), (1_000_000, 1000), (1_000_000, 10_000), (10_000_000, 10))
    runs = [("bench_sched", [str(n), str(workers), "wide"]) for n, workers in sizes]
    runs += [("bench_sched", ["1000000", "10", shape]) for shape in ("chain", "tree")] + [("bench_graph", ["1000000", "3"])]
    for program, args in runs:
        path = ours.BIN / program
        try:
            done = subprocess.run([str(path), *args], capture_output=True, text=True, timeout=300)
            lines = done.stdout.strip().splitlines() if not done.returncode else [f"failed with code {done.returncode}: {' '.join(args)}"]
        except (OSError, subprocess.TimeoutExpired) as e:
            lines = [f"failed: {e}"]
        report.seen["alone"].setdefault(program, []).extend(lines)
    report.save()


def find_data(given):
    for d in filter(None, (given, ROOT.parent / "shared/data/mnist", ROOT / "data/mnist")):
        if (pathlib.Path(d) / "train-images-idx3-ubyte.gz").exists():
            return pathlib.Path(d).resolve()
    return None


def measure_all(a, report, directory, data):
    mode = "quick" if a.quick else "full"
    only = set(a.only.split(",")) if a.only else None
    copying = lambda: report.add_copy(measure.copy_bandwidth(megabytes=64 if a.quick else 256))  # noqa: E731
    copying()
    if only is None or table.OURS in only:
        rows = measure.Rows(table.OURS, report.add)
        failed = ours.Ours(rows, directory, mode).all(data, a.quick, copying)
        for f in failed:
            print(f"  millrace: {f}", file=sys.stderr)
        for name in table.ROWS if failed else ():
            if table.OURS not in report.seen["rows"].get(name, {}) and name != "glm" and (data or not name.startswith("mnist")):
                report.add(name, table.OURS, {"error": "; ".join(failed)})
        run_alone(report, a.quick)
    for system in PEERS:
        if not a.no_peers and (only is None or system in only):
            run_peer(report, system, directory, mode, data or "")
    return mode


def main():
    p = argparse.ArgumentParser()
    p.add_argument("directory")
    p.add_argument("--json", required=True)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--data")
    p.add_argument("--no-peers", action="store_true")
    p.add_argument("--only")
    a = p.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore SIGINT, and our children would inherit that
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    processes.die_with_parent()  # run.sh cleans up; if run.sh is killed, the lines below do
    report, directory = Report(a), pathlib.Path(a.directory)
    data = find_data(a.data)
    if not data:
        print("MNIST's training images are not there (--data DIR): the array job is not measured", file=sys.stderr)
    try:
        measure_all(a, report, directory, data)
    finally:
        left = processes.end_all(os.environ[processes.VARIABLE])
        report.save()
        if left:
            print(f"processes that do not end: {left}", file=sys.stderr)
        shutil.rmtree(directory, ignore_errors=True)
    print(table.text(report.seen))
    print(f"\nwritten: {a.json}")
    return 1 if any("error" in row.get(table.OURS, {}) for row in report.seen["rows"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
