#!/usr/bin/env python3
"""The death of an object store fails no job that can be run again: lost values are computed again,
whatever the tasks were doing with the store at that moment."""
import os
import pathlib
import signal
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Cluster, wait_for  # noqa: E402

KILLS = int(os.environ.get("MILLRACE_STORE_KILLS", "6"))  # scripts/soak.sh asks for more
OF_ONE = 3  # kills of one cluster: `up` gives up when a child dies five times in a minute
# jobs at the same time: parts on both nodes, collections of them, tasks that read the parts, tasks
# that persist
WIDE = 40


def graph(rows, tag):
    tasks, targets = {}, []
    for i in range(WIDE):
        for k in range(3):
            tasks[f"x/{i}/{k}"] = {"op": "array.full", "args": [[rows], i + k]}
        tasks[f"all/{i}"] = {"op": "collection", "args": [[{"ref": f"x/{i}/{k}"} for k in range(3)]]}
        for k in range(3):
            tasks[f"part/{i}/{k}"] = {"op": "array.partition", "args": [{"ref": f"all/{i}"}, k]}
        both = {"op": "add", "args": [{"ref": f"part/{i}/0"}, {"op": "add", "args": [{"ref": f"part/{i}/1"}, {"ref": f"part/{i}/2"}]}]}
        tasks[f"sum/{i}"] = {"op": "array.sum", "args": [both]}
        targets.append(f"sum/{i}")
        if i % 8 == 0:
            tasks[f"kept/{i}"] = {"op": "add", "args": [{"ref": f"x/{i}/0"}, 1], "persist": f"{tag}/{i}"}
            tasks[f"size/{i}"] = {"op": "array.sum", "args": [{"ref": f"kept/{i}"}]}
            targets.append(f"size/{i}")
    return {"tasks": tasks, "targets": targets}


class StoreDeaths(unittest.TestCase):
    def check(self, c, job, rows):
        done = c.wait(job, 240)
        self.assertEqual(done["state"], "JOB_DONE", done)
        values = c.results(job)["results"]
        for i in range(WIDE):
            self.assertEqual(values[f"sum/{i}"], rows * (3 * i + 3))
            if i % 8 == 0:
                self.assertEqual(values[f"size/{i}"], rows * (i + 1))

    def kill_stores(self, nodes):
        """Kills one store after another while jobs run."""
        for begin in range(0, KILLS, OF_ONE):
            with Cluster("--nodes", str(nodes), "--workers", "2", "--threads", "1") as c:
                wait_for("the workers", lambda: len(c.workers()) == 2 * nodes)
                for kill in range(begin, min(begin + OF_ONE, KILLS)):
                    self.kill_one(c, kill)

    def kill_one(self, c, kill):
        rows = 60000
        jobs = [c.submit(graph(rows, f"t{kill}-{i}")) for i in range(2)]
        wait_for("some tasks", lambda: int(c.job(jobs[0])["counts"]["done"]) > WIDE * (kill % 5))
        stores = c.pids("mr-objectstore")
        os.kill(stores[kill % len(stores)], signal.SIGKILL)
        for job in jobs:
            self.check(c, job, rows)

    def test_no_death_of_a_store_fails_a_job(self):
        """One node."""
        self.kill_stores(1)

    def test_no_death_of_one_of_two_stores_fails_a_job(self):
        """Two nodes: values that are read across nodes, and parts of collections, which no input
        names."""
        self.kill_stores(2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
