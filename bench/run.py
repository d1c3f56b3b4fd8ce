#!/usr/bin/env python3
"""Measures a release build beside its peers and ceilings, in one run: bench/run.py [--quick] [--json FILE].

Starts `millrace up --workers 4 --threads 1` with every default, runs `millrace bench` against it, then
what cannot be seen from a client: memory a task, idle CPU. Where Dask distributed is installed for
/usr/bin/python3, its rows come from the same run."""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
BIN = pathlib.Path(os.environ.setdefault("MILLRACE_BIN", str(ROOT / "build" / "release" / "bin")))
STORE = str(BIN / "mr-objectstore")
from harness import Cluster  # noqa: E402


def millrace_rows(c, *flags):
    out = c.cli("bench", "--scheduler", c.scheduler, "--json", *flags, timeout=1200)[1]
    return json.loads(out)


def rss(pid, field="VmRSS"):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    return 0


def cpu_ns(pid):
    """CPU time of a process over all its threads."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except OSError:
            pass
    return total


def children(c):
    pids = [c.up.pid]
    for program in ("redis-server", "mr-objectstore", "mr-scheduler", "mr-worker", "mr-gateway"):
        pids += c.pids(program)
    return pids


def idle_cpu(c, seconds):
    pids = children(c)
    before = {p: cpu_ns(p) for p in pids}
    begun = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - begun
    return 100 * sum(cpu_ns(p) - before[p] for p in pids) / 1e9 / took


def memory_per_task(c, tasks):
    """Scheduler memory at the peak of a job of n tasks with 12-byte keys and two inputs, less before.
    The peak is the kernel's, so the cluster must be a fresh one; reading the JSON and the cache of
    inline values are inside."""
    scheduler = c.pids("mr-scheduler")[0]
    before = rss(scheduler)
    width = tasks // 2
    body = ['{"tasks":{']
    body.append(",".join(f'"leaf{i:08d}":{{"op":"inc","args":[{i}]}}' for i in range(width)))
    body.append(",")
    body.append(",".join(f'"pair{i:08d}":{{"op":"add","args":[{{"ref":"leaf{i:08d}"}},{{"ref":"leaf{(i + 1) % width:08d}"}}]}}' for i in range(width)))
    body.append("}}")
    job = c.submit("".join(body))
    while c.job(job)["state"] in ("JOB_PENDING", "JOB_RUNNING"):
        time.sleep(0.1)
    return (rss(scheduler, "VmHWM") - before) / tasks


def gateway_rate(c):
    """Requests a second for a small answer, by wrk where it is installed."""
    try:
        out = subprocess.run(["wrk", "-t2", "-c32", "-d5s", f"{c.url}/v1/cluster"], capture_output=True, text=True, timeout=30).stdout
        return float(next(line.split()[1] for line in out.splitlines() if line.startswith("Requests/sec")))
    except (OSError, StopIteration):
        return None


def run_bench(program, *args):
    path = BIN / program
    if not path.exists():
        return None
    return subprocess.run([str(path), *args], capture_output=True, text=True, timeout=900).stdout


def dask(tasks, chain, latency, rounds):
    run = subprocess.run(["/usr/bin/python3", str(ROOT / "bench" / "dask_peer.py"), str(tasks), str(chain), str(latency), str(rounds)],
                         capture_output=True, text=True, timeout=1800)
    if run.returncode:
        print("Dask is not measured:", run.stderr.strip().splitlines()[-1] if run.stderr else run.returncode)
        return None
    return json.loads(run.stdout.strip().splitlines()[-1])


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--quick", action="store_true", help="fewer and smaller rounds")
    p.add_argument("--json", help="write everything there")
    p.add_argument("--no-peers", action="store_true")
    a = p.parse_args()
    rounds = 3 if a.quick else 5
    sizes = (10_000, 100_000) if a.quick else (10_000, 100_000, 1_000_000)
    cpu = next((line.split(":")[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    report = {"date": time.strftime("%Y-%m-%d"), "machine": f"{platform.machine()}, {os.cpu_count()} cores, {cpu}", "load": os.getloadavg(), "rows": []}
    print(f"{report['date']}  {report['machine']}  load {report['load'][0]:.2f}")

    def row(name, value, unit):
        report["rows"].append({"name": name, "value": value, "unit": unit})
        print(f"{name:58s} {value:14.2f} {unit}", flush=True)

    with tempfile.TemporaryDirectory(prefix="mr-bench-") as d:
        c = Cluster("--workers", "4", "--threads", "1", "--memory", "4GiB", directory=d)
        try:
            time.sleep(2)
            row("idle CPU of the whole cluster", idle_cpu(c, 10 if a.quick else 60), "% of a core")
            for n in sizes:
                first = n == sizes[0]
                flags = ["--tasks", str(n), "--rounds", str(rounds)] + ([] if first else ["--latency", "0", "--chain", "0"])
                for r in millrace_rows(c, *flags, *(["--http"] if n <= 100_000 else [])):
                    row(r["name"], r["median"], r["unit"])
            rate = gateway_rate(c)
            if rate:
                row("gateway, GET /v1/cluster (wrk -t2 -c32)", rate, "requests/s")
        finally:
            c.close()
    with tempfile.TemporaryDirectory(prefix="mr-bench-") as d:
        c = Cluster("--workers", "4", "--threads", "1", "--memory", "4GiB", directory=d)  # whose scheduler has grown for no other job
        try:
            tasks = 200_000 if a.quick else 1_000_000
            row(f"scheduler memory a task, two inputs, {tasks} tasks", memory_per_task(c, tasks), "B")
        finally:
            c.close()
    for program, args in (("store_bench", (STORE,)), ("store_pull_bench", (STORE,)), ("bench_graph", ("1000000", "3")), ("ops_bench", ())):
        out = run_bench(program, *args)
        if out:
            report[program] = out
            print(f"--- {program}\n{out}")
    if not a.no_peers:
        peer = dask(10_000, 1000, 200, rounds)
        if peer:
            report["dask"] = peer
            print("--- Dask", peer["version"], "as", peer["shape"])
            for key, value in peer.items():
                if isinstance(value, float):
                    print(f"{key:58s} {value:14.2f}")
    if a.json:
        pathlib.Path(a.json).write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
