#!/usr/bin/env python3
"""The account of a job that ran: bench/account.py [--tasks 100000 --tasks 10000000] [--rounds 10] [--shape wide].

Runs jobs of that many tasks `inc` on 8 workers with 8 threads each. In the shape `wide` the tasks need no other task; in
the shape `chains` each task needs the one before it, in chains of a thousand. A task `sum` takes each thousand together.
Then asks GET /v1/jobs/{id}/profile on one connection, and prints the times of the answers, and the processor time that
the scheduler and Redis took for one answer."""
import argparse
import http.client
import json
import os
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from tiles import GROUP, Cluster, graph, quantile  # noqa: E402


def chains(tasks):
    """Yields the JSON of the graph in pieces of about 30 KB."""
    groups = [range(i, min(i + GROUP, tasks)) for i in range(0, tasks, GROUP)]
    yield b'{"fuse":false,"dsk":{'
    for g, numbers in enumerate(groups):
        rows = [f'"n{i:x}":["inc",{json.dumps(f"n{i - 1:x}") if i > numbers[0] else g}],' for i in numbers]
        rows.append(f'"s{g}":["sum",["n{numbers[-1]:x}"]],')
        yield "".join(rows).encode()
    names = ",".join(f'"s{g}"' for g in range(len(groups)))
    yield f'"all":["sum",[{names}]]}},"targets":["all"]}}'.encode()


SHAPES = {"wide": graph, "chains": chains}


def cpu_s(pid):
    """Processor time of all threads of a process, also of those that have ended; in steps of 10 ms."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(cluster, shape, tasks):
    begun = time.monotonic()
    c = http.client.HTTPConnection(cluster.host, cluster.port, timeout=900)
    c.request("POST", "/v1/jobs", body=SHAPES[shape](tasks), headers={"content-type": "application/json"}, encode_chunked=True)
    answer = json.loads(c.getresponse().read())
    job = answer.get("id") or sys.exit(str(answer))
    state = cluster.wait(job, 900)["state"]
    print(f"{shape}, {tasks} tasks: {state} after {time.monotonic() - begun:.1f} s")
    time.sleep(3)  # until the last blocks are written
    return job


def measure(cluster, job, rounds):
    pids = {name: cluster.pids(name)[0] for name in ("mr-scheduler", "redis-server")}
    c, took, body = http.client.HTTPConnection(cluster.host, cluster.port, timeout=300), [], b""
    before = {name: cpu_s(pid) for name, pid in pids.items()}
    for _ in range(rounds):
        begun = time.monotonic()
        c.request("GET", f"/v1/jobs/{job}/profile")
        answer = c.getresponse()
        body = answer.read()
        if answer.status != 200:
            sys.exit(f"{answer.status}: {body[:300]}")
        took.append((time.monotonic() - begun) * 1e3)
    cpu = {name: (cpu_s(pid) - before[name]) / rounds * 1e3 for name, pid in pids.items()}
    account = json.loads(body)
    whole, parts = int(account["slot_ns"]), sum(int(ns) for ns in account["classes"].values())
    attempts = sum(int(op["tasks"]) for op in account["ops"])
    print(f"  {attempts} spans, {len(body)} bytes; first {took[0]:.1f} ms, p50 {quantile(took, 0.5):.1f} ms  p95 {quantile(took, 0.95):.1f} ms  "
          f"max {max(took):.1f} ms; processor time an answer: scheduler {cpu['mr-scheduler']:.0f} ms, Redis {cpu['redis-server']:.0f} ms")
    if whole != parts:
        sys.exit(f"the classes add up to {parts} ns, not to {whole} ns")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--tasks", type=int, action="append")
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--shape", choices=SHAPES, default="wide")
    p.add_argument("--workers", default="8")
    p.add_argument("--threads", default="8")
    a = p.parse_args()
    with Cluster("--workers", a.workers, "--threads", a.threads, "--memory", "512MiB") as cluster:
        cluster.wait_for_workers(int(a.workers))
        for tasks in a.tasks or [100_000, 10_000_000]:
            measure(cluster, run(cluster, a.shape, tasks), a.rounds)


if __name__ == "__main__":
    main()
