#!/usr/bin/env python3
"""What a watcher of Cluster.Live costs the scheduler: bench/live.py [--turns 9] [--tasks 100000] [--rounds 10].

One cluster runs `millrace bench` with empty tasks, in turns without and with a client that reads /v1/cluster/live.
Prints the scheduler's processor time a task of both: medians of the turns with least and most, and how many states
and bytes the client got a second. The processor time is that of all threads, from the kernel's schedstat."""
import argparse
import contextlib
import http.client
import os
import pathlib
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "integration"))
BIN = pathlib.Path(os.environ.setdefault("MILLRACE_BIN", str(ROOT / "build" / "release" / "bin")))
from harness import Cluster  # noqa: E402


def cpu_ns(pid):
    return sum(int((t / "schedstat").read_text().split()[0]) for t in pathlib.Path(f"/proc/{pid}/task").iterdir())


class Watcher:
    def __init__(self, cluster):
        self.bytes, self.states, self.begun = 0, 0, time.monotonic()
        self.connection = cluster.connect(3600)
        self.connection.request("GET", "/v1/cluster/live", headers={"Accept": "text/event-stream"})
        self.response = self.connection.getresponse()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            for line in self.response:
                self.bytes += len(line)
                self.states += line.startswith(b"data:")

    def close(self):
        took = time.monotonic() - self.begun
        with contextlib.suppress(OSError):
            self.connection.sock and self.connection.sock.shutdown(2)
        self.connection.close()
        self.thread.join(10)
        return self.states / took, self.bytes / took


def turn(cluster, pid, args, watched):
    """The scheduler's processor time a task, and the states and bytes that the client got a second."""
    watcher = Watcher(cluster) if watched else None
    done, begin = tasks_done(cluster), cpu_ns(pid)
    subprocess.run([str(BIN / "millrace"), "bench", "--url", cluster.url, "--scheduler", cluster.scheduler, "--tasks", str(args.tasks),
                    "--chain", "0", "--latency", "0", "--rounds", str(args.rounds)], check=True, stdout=subprocess.DEVNULL, timeout=600)
    used = (cpu_ns(pid) - begin) / (tasks_done(cluster) - done)
    return used, watcher.close() if watcher else (0, 0)


def tasks_done(cluster):
    return int(cluster.get("/v1/cluster")["tasks_done"])


def main():
    p = argparse.ArgumentParser(description=__doc__)
    for flag, init in (("--turns", 9), ("--tasks", 100000), ("--rounds", 10)):
        p.add_argument(flag, type=int, default=init)
    args = p.parse_args()
    used, got = {False: [], True: []}, []
    with Cluster("--workers", "2", "--threads", "1", "--memory", "512MiB") as cluster:
        pid = cluster.pids("mr-scheduler")[0]
        turn(cluster, pid, args, False)
        for i in range(2 * args.turns):
            watched = i % 4 in (1, 2)  # without, with, with, without: a drift falls on both
            ns, rate = turn(cluster, pid, args, watched)
            used[watched].append(ns)
            if watched:
                got.append(rate)
    for watched, name in ((False, "nobody watches"), (True, "one client watches")):
        v = used[watched]
        print(f"{name}: {statistics.median(v):.1f} ns a task ({min(v):.1f} to {max(v):.1f}), {len(v)} turns")
    without, watched = statistics.median(used[False]), statistics.median(used[True])
    print(f"difference: {100 * (watched - without) / without:+.2f} %")
    print(f"the client got {statistics.median(g[0] for g in got):.1f} states and {statistics.median(g[1] for g in got):,.0f} bytes a second")


if __name__ == "__main__":
    main()
