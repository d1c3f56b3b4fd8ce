#!/usr/bin/env python3
"""Short tasks in a chain run in one message (task fusion); events, traces and errors still name
each task's own key."""
import contextlib
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Cluster, wait_for  # noqa: E402


def inc(*inputs):
    return {"op": "inc", "args": [{"ref": i} if isinstance(i, str) else i for i in inputs]}


def chain(n, first=1):
    return {f"c{i}": inc(f"c{i - 1}" if i else first) for i in range(n)}


def diamonds(n):
    """n chains: y = (x + 1) + -x, where x = i + 1."""
    each = {"for": {"i": n}}
    return {"tasks": {"x-${i}": {"op": "inc", "args": ["${i}"], **each},
                      "up-${i}": {"op": "inc", "args": [{"ref": "x-${i}"}], **each},
                      "down-${i}": {"op": "neg", "args": [{"ref": "x-${i}"}], **each},
                      "y-${i}": {"op": "add", "args": [{"ref": "up-${i}"}, {"ref": "down-${i}"}], **each}},
            "targets": [{"each": "y-${i}", "for": {"i": n}}]}


class Fusion(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--workers", "2", "--threads", "2")
        cls.addClassCleanup(cls.cluster.close)
        # from now on the scheduler knows how long an `inc` takes
        cls.cluster.run({"tasks": chain(200), "targets": ["c199"]})

    def tasks(self, job):
        """How many tasks are done; `counts.done` includes the literals."""
        nodes = self.cluster.get(f"/v1/jobs/{job}/graph?nodes_max=10000")["nodes"]
        return sum(n["op"] != "" and n["state"] in ("TASK_DONE", "TASK_RELEASED") for n in nodes)

    def spans(self, job, count):
        """Spans by key; waits until this many are there, because the trace is written a moment
        after the tasks."""
        def all_of_them():
            found = self.cluster.get(f"/v1/jobs/{job}/timeline?spans_max=10000").get("spans", [])
            return found if len(found) >= count else None
        found = wait_for("the spans", all_of_them, 10)
        keys = {s["key"]: s for s in found}
        self.assertEqual(len(keys), len(found))
        return keys

    def test_every_task_of_a_fused_chain_is_in_the_timeline(self):
        job = self.cluster.run({"tasks": chain(50), "targets": ["c49"]})
        self.assertEqual(job["state"], "JOB_DONE", job)
        self.assertEqual(self.cluster.value(job["id"], "c49"), 51)
        self.assertEqual(int(job["counts"]["done"]), 50)
        spans = self.spans(job["id"], 50)
        self.assertEqual(set(spans), {f"c{i}" for i in range(50)})
        times = [spans[f"c{i}"]["times"] for i in range(50)]
        for a, b in zip(times, times[1:]):
            # a tick has 100 ns
            self.assertLessEqual(int(a["finished_ns"]), int(b["started_ns"]) + 1000)
        for t in times:
            self.assertLessEqual(int(t["ready_ns"]), int(t["started_ns"]) + 1000)

    def test_every_task_of_fused_diamonds_is_in_the_timeline(self):
        job = self.cluster.run(diamonds(500))
        self.assertEqual(job["state"], "JOB_DONE", job)
        for i in (0, 7, 499):
            self.assertEqual(self.cluster.value(job["id"], f"y-{i}"), 1)
        self.assertEqual(self.tasks(job["id"]), 2000)
        self.assertEqual(len(self.spans(job["id"], 2000)), 2000)

    def test_a_failure_inside_a_unit_names_its_own_task(self):
        c = self.cluster
        tasks = chain(10)
        tasks["c5"] = {"op": "array.reshape", "args": [{"ref": "c4"}, [-7]]}
        job = c.run({"tasks": tasks, "targets": ["c9"]})
        self.assertEqual(job["state"], "JOB_FAILED", job)
        self.assertEqual(job["error"]["key"], "c5", job)
        self.assertEqual(int(job["error"]["fallen"]), 4)
        x = c.explain(job["id"], "c5")
        self.assertEqual(x["state"], "TASK_ERRED", x)
        self.assertIn("c5", x["sentence"])
        logs = c.request("GET", f"/v1/jobs/{job['id']}/logs?key=c5")
        self.assertEqual(logs[0], 200, logs)
        self.assertLessEqual({f"c{i}" for i in range(6)}, set(self.spans(job["id"], 6)))

    def test_an_unfused_job_has_the_same_values(self):
        c = self.cluster
        for graph in (diamonds(50), {"tasks": chain(50), "targets": ["c49"]}):
            job = c.run({**graph, "fuse": False})
            self.assertEqual(job["state"], "JOB_DONE", job)
            self.assertEqual(len(self.spans(job["id"], self.tasks(job["id"]))), self.tasks(job["id"]))
            self.assertEqual(c.value(job["id"], "y-49" if "y-${i}" in graph["tasks"] else "c49"), 1 if "y-${i}" in graph["tasks"] else 51)

    def test_a_later_job_may_want_what_was_used_up(self):
        c = self.cluster
        one = c.run({"namespace": "shared", "tasks": chain(20), "targets": ["c19"]})
        self.assertEqual(one["state"], "JOB_DONE", one)
        two = c.run({"namespace": "shared", "tasks": {"more": inc("c10")}, "targets": ["more"]})
        self.assertEqual(two["state"], "JOB_DONE", two)
        self.assertEqual(c.value(two["id"], "more"), 13)

    def test_arrays_inside_a_unit_have_the_same_values(self):
        c = self.cluster
        each = {"for": {"i": 12}}

        def op(name, *inputs):
            return {"op": name, "args": [{"ref": i} if isinstance(i, str) else i for i in inputs], **each}
        graph = {"tasks": {"x-${i}": {"op": "array.random", "args": [[500, 64]], "kwargs": {"seed": "${i}"}, **each},
                           "e-${i}": op("array.exp", "x-${i}"), "r-${i}": op("div", 1.0, "e-${i}"),
                           "d-${i}": op("sub", "e-${i}", "r-${i}"), "s-${i}": op("array.sum", "d-${i}"),
                           "total": {"op": "sum", "args": [[{"ref": f"s-{i}"} for i in range(12)]]}}, "targets": ["total"]}
        values = []
        for fuse in (True, True, False):
            job = c.run({**graph, "fuse": fuse})
            self.assertEqual(job["state"], "JOB_DONE", job)
            values.append(c.value(job["id"], "total"))
            self.assertEqual(len(self.spans(job["id"], 61)), 61)
        self.assertEqual(values[0], values[1])
        self.assertEqual(values[0], values[2])

    def test_long_branches_run_side_by_side(self):
        c = self.cluster
        nap = {"op": "sleep", "args": [3, {"ref": "x"}]}
        graph = {"tasks": {"x": inc(1), "a": nap, "b": nap, "c": nap, "d": nap,
                           "sum": {"op": "sum", "args": [[{"ref": k} for k in "abcd"]]}}, "targets": ["sum"]}
        begun = time.monotonic()
        job = c.run(graph)
        self.assertEqual(job["state"], "JOB_DONE", job)
        self.assertEqual(c.value(job["id"], "sum"), 8)
        spans = self.spans(job["id"], 6)
        starts = [int(spans[k]["times"]["started_ns"]) for k in "abcd"]
        ends = [int(spans[k]["times"]["finished_ns"]) for k in "abcd"]
        self.assertLess(max(starts), min(ends), f"{time.monotonic() - begun:.2f} s")


class Sharing(unittest.TestCase):
    """Extending a graph costs only as much as its new part."""
    def cpu_ms(self, cluster):
        pid = cluster.pids("mr-scheduler")[0]
        total = 0
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                total += int((task / "schedstat").read_text().split()[0])
        return total / 1e6

    def test_ten_new_tasks_cost_the_same_on_a_small_graph_and_on_a_large_one(self):
        cluster = Cluster("--workers", "1")
        self.addCleanup(cluster.close)
        cost = {}
        for size in (100, 100000):
            each = {"for": {"i": size}}
            whole = cluster.run({"namespace": f"n{size}", "tasks": {"t-${i}": {"op": "inc", "args": ["${i}"], **each}},
                                 "targets": [{"each": "t-${i}", "for": {"i": size}}]})
            self.assertEqual(whole["state"], "JOB_DONE", whole)
            time.sleep(1)  # gives the trace time to be written
            begun = self.cpu_ms(cluster)
            for k in range(20):
                keys = [f"new-{k}-{i}" for i in range(10)]
                job = cluster.run({"namespace": f"n{size}", "targets": keys,
                                   "tasks": {key: inc(f"t-{(7919 * i + k) % size}") for i, key in enumerate(keys)}})
                self.assertEqual(job["state"], "JOB_DONE", job)
                # including the keys that they refer to
                self.assertEqual(int(job["counts"]["done"]), 20)
            cost[size] = self.cpu_ms(cluster) - begun
        self.assertLess(cost[100000], 3 * cost[100] + 50, cost)


if __name__ == "__main__":
    unittest.main(verbosity=2)
