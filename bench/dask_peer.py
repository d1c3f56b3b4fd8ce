#!/usr/bin/python3
"""The rows of `millrace bench` on Dask distributed, in this process: dask_peer.py TASKS CHAIN LATENCY
ROUNDS. Prints one JSON object. Of several cluster shapes the fastest for empty tasks is kept."""
import json
import logging
import os
import statistics
import sys
import time

import dask
import distributed
from distributed import Client, LocalCluster


def inc(x):
    return x + 1


def rss(pid):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith("VmRSS"):
                return int(line.split()[1]) * 1024
    return 0


def empty(client, n):
    begun = time.perf_counter()
    futures = client.map(inc, range(n), pure=False)
    accepted = time.perf_counter() - begun
    values = client.gather(futures)
    took = time.perf_counter() - begun
    assert values == list(range(1, n + 1))
    return n / took, accepted


def chain(client, n):
    dsk = {"k0": (inc, 0), **{f"k{i}": (inc, f"k{i - 1}") for i in range(1, n)}}
    begun = time.perf_counter()
    value = client.get(dsk, f"k{n - 1}", optimize_graph=False)
    took = time.perf_counter() - begun
    assert value == n
    return took * 1e6 / n


def latency(client, n):
    times = []
    for i in range(n):
        begun = time.perf_counter()
        assert client.submit(inc, i, pure=False).result() == i + 1
        times.append((time.perf_counter() - begun) * 1e6)
    return sorted(times)


def main():
    tasks, chained, one, rounds = map(int, sys.argv[1:5])
    logging.getLogger("distributed").setLevel(logging.ERROR)
    dask.config.set({"distributed.scheduler.worker-saturation": float("inf"), "distributed.worker.profile.interval": "1h",
                     "distributed.worker.profile.cycle": "2h", "distributed.admin.tick.interval": "1h"})
    best = None
    for workers, threads, processes in ((4, 1, True), (1, 4, True), (2, 2, True)):
        with LocalCluster(n_workers=workers, threads_per_worker=threads, processes=processes, dashboard_address=None) as cluster, Client(cluster) as client:
            client.gather(client.map(inc, range(1000), pure=False))
            rates = [empty(client, tasks) for _ in range(rounds)]
            rate = statistics.median(r for r, _ in rates)
            row = {"shape": f"{workers} x {threads}", "version": distributed.__version__, "empty_tasks_per_s": rate,
                   "accepted_s": statistics.median(a for _, a in rates)}
            if best is None or rate > best["empty_tasks_per_s"]:
                times = latency(client, one)
                row["latency_p50_us"] = times[len(times) // 2]
                row["latency_p99_us"] = times[len(times) * 99 // 100]
                row["chain_us_per_task"] = statistics.median(chain(client, chained) for _ in range(rounds))
                before = rss(os.getpid())
                futures = client.map(inc, range(tasks), pure=False)
                distributed.wait(futures)
                row["scheduler_and_client_bytes_per_task"] = (rss(os.getpid()) - before) / tasks
                del futures
                best = row
    print(json.dumps(best))


if __name__ == "__main__":
    main()
