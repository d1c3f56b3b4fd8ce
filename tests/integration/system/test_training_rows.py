#!/usr/bin/env python3
"""Workers train on the partitions of their own node. With ten partitions on each of two nodes
nothing moves; with twelve and eight, only what an even split needs. The death of the trainer or
of a worker does not change which worker has which rows."""
import os
import pathlib
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Cluster, wait_for  # noqa: E402
from training_cases import ENDED, document, ended, member, pid_of, start, upload  # noqa: E402

ROWS, FEATURES = 400, 16  # rows of a partition, and features


class Rows(unittest.TestCase):
    cluster = None

    def setUp(self):
        cls = type(self)
        if not cls.cluster:
            cls.cluster = Cluster("--nodes", "2", "--workers", "2", "--threads", "1", "--lease", "3s")
            upload(cls.cluster, validation=200)
        self.c = cls.cluster
        self.c.wait_for_workers(4)

    def tearDown(self):
        result = self._outcome.result
        if any(test is self for test, _ in result.failures + result.errors):
            print(self.c.output(), self.c.logs(), file=sys.stderr)
            self.tearDownClass()

    @classmethod
    def tearDownClass(cls):
        if cls.cluster:
            cluster, cls.cluster = cls.cluster, None
            cluster.close()

    # ---- helpers ----

    def nodes(self):
        """Names of workers by node."""
        found = {}
        for w in self.c.workers():
            found.setdefault(w["node"], []).append(w["name"])
        return found

    def graph(self, *counts):
        """x and y of this many partitions on each node, made alternately; the partitions of y are
        small and inline."""
        names = [sorted(names) for _, names in sorted(self.nodes().items())]
        left, tasks, parts = list(counts), {}, []
        while any(left):
            for node in range(len(counts)):
                if left[node]:
                    left[node] -= 1
                    parts.append(node)
        for i, node in enumerate(parts):
            made = {"op": "array.random", "args": [[ROWS, FEATURES]], "kwargs": {"seed": i, "dtype": "float32"},
                    "workers": names[node]}
            tasks[f"x/{i}"] = made
            tasks[f"y/{i}"] = {"op": "array.full", "args": [[ROWS], i % 4], "kwargs": {"dtype": "int32"}}
        for part in "xy":
            tasks[part] = {"op": "collection", "args": [[{"ref": f"{part}/{i}"} for i in range(len(parts))]]}
        return {"tasks": tasks}

    def session(self, rule, graph, **more):
        d = document(rule, workers=4, scorer=0, graph=graph, stop={"epochs": 3}, **more)
        d["data"] = {"train": {"x": "x", "y": "y"}, "batch": 50, "seed": 3}
        return d

    def moved(self, t):
        """(partitions, bytes)"""
        c = t["counters"]
        return int(c.get("moved_parts", 0)), int(c.get("moved_bytes", 0))

    def brief(self, t):
        return {k: t.get(k) for k in ("state", "reason", "counters")}, [
            (m["role"], m["node"], m["state"], self.moved(m)) for m in t["members"]]

    def shape(self, t):
        """The number of the session's workers on each node."""
        nodes = [m["node"] for m in t["members"] if m["role"] == "TRAINING_WORKER"]
        return {node: nodes.count(node) for node in nodes}

    def learn(self, counts, parts, rule="sync"):
        """Runs a session over these partitions and expects that `parts` of them move."""
        t = ended(self.c, start(self.c, self.session(rule, self.graph(*counts))), 120)
        self.assertEqual(t["state"], "TRAINING_DONE", self.brief(t))
        self.assertEqual(self.shape(t), {"node-0": 2, "node-1": 2}, t["members"])
        moved, bytes_moved = self.moved(t)
        self.assertEqual(moved, parts, self.brief(t))
        self.assertTrue(4 * ROWS * FEATURES * parts <= bytes_moved <= (4 * ROWS * FEATURES + 1024) * parts, self.brief(t))
        # Each worker passes three times over its quarter, on whatever node its partitions are.
        steps = {int(m["counters"]["steps"]) for m in t["members"] if m["role"] == "TRAINING_WORKER"}
        self.assertEqual(steps, {3 * sum(counts) * ROWS // (4 * 50)} if rule == "allreduce" else steps)
        return t

    def test_balanced_partitions_stay_where_they_are(self):
        self.learn((10, 10), 0)
        self.learn((10, 10), 0, rule="allreduce")

    def test_of_twelve_and_eight_two_move(self):
        self.learn((12, 8), 2, rule="allreduce")

    def test_a_restart_changes_nothing(self):
        """The trainer dies, then a worker. The restarted roles have the same rows and need nothing
        from the other node."""
        graph = self.graph(10, 10)
        session = start(self.c, {**self.session("async", graph), "stop": {"epochs": 1000000, "time_s": 200}})
        t = self.learns(session)
        self.assertEqual(self.moved(t), (0, 0), self.brief(t))
        os.kill(self.c.pids("mr-trainer")[0], signal.SIGKILL)
        steps = self.steps(t)
        self.until(session, "the session to go on", lambda t: self.steps(t) > steps + 100)
        t = self.learns(session)
        lost = member(t, "TRAINING_WORKER", 2)
        self.before = {int(m.get("index", 0)): {"address": m["address"], "task": m["task"], "steps": int(m["counters"]["steps"])}
                       for m in t["members"] if m["role"] == "TRAINING_WORKER"}
        os.kill(pid_of(self.c, lost), signal.SIGKILL)
        was = self.places(t)
        back = self.until(session, "all to learn again", lambda t: self.is_back(t, lost))
        # A role that was restarted on the other node has the same rows, from five partitions that
        # this node does not have.
        elsewhere = sum(1 for a, b in zip(was, self.places(back)) if a != b)
        self.assertEqual(self.moved(back)[0], 5 * elsewhere, self.brief(back))
        self.c.call("POST", f"/v1/trainings/{session}:stop", {"reason": "enough"})
        self.assertEqual(ended(self.c, session)["state"], "TRAINING_DONE")

    def test_a_replacement_on_another_node_has_the_same_rows(self):
        """The workers of one node are stopped for longer than their leases: their roles move to the
        other node and bring the missing partitions."""
        session = start(self.c, {**self.session("async", self.graph(10, 10)), "stop": {"epochs": 1000000, "time_s": 200}})
        t = self.learns(session)
        self.assertEqual(self.moved(t), (0, 0), self.brief(t))
        asleep = [self.c.pid_of(f"--name={name}") for name in self.nodes()["node-1"]]
        try:
            for pid in asleep:
                os.kill(pid, signal.SIGSTOP)
            back = self.until(session, "all roles to be on one node", lambda t: self.shape(t) == {"node-0": 4} and all(
                m["state"] == "here" for m in t["members"]) and self.moved(t)[0] >= 10)
            self.assertEqual(self.moved(back)[0], 10, self.brief(back))
            self.assertGreaterEqual(self.moved(back)[1], 10 * 4 * ROWS * FEATURES)
            steps = self.steps(back)
            self.until(session, "the session to go on", lambda t: self.steps(t) > steps + 100)
        finally:
            for pid in asleep:
                os.kill(pid, signal.SIGCONT)
        self.c.call("POST", f"/v1/trainings/{session}:stop", {"reason": "enough"})
        self.assertEqual(ended(self.c, session)["state"], "TRAINING_DONE")

    # ---- a running session ----

    def steps(self, t):
        return int(t["counters"].get("steps", 0))

    def places(self, t):
        return [m["node"] for m in t["members"] if m["role"] == "TRAINING_WORKER"]

    def is_back(self, t, lost):
        """Waits until a new attempt of the role and all other roles have learned; the partitions
        that they had to copy are counted."""
        at = lost["address"]
        for m in (m for m in t["members"] if m["role"] == "TRAINING_WORKER"):
            before = self.before.get(int(m.get("index", 0)))
            if m["state"] != "here" or int(m["counters"]["steps"]) < before["steps"] + 200:
                return False
            if before["address"] == at and m["task"] == before["task"]:
                return False
        return True

    def until(self, session, what, ready):
        def there():
            try:
                t = self.c.get(f"/v1/trainings/{session}")
            except Exception:  # noqa: BLE001 - the trainer is away for a moment
                return None
            self.assertNotIn(t["state"], ENDED, self.brief(t))
            return ready(t) and t
        return wait_for(what, there, 90, every=0.1)

    def learns(self, session):
        """Waits until all workers of both nodes have learned."""
        t = self.until(session, "all to learn", lambda t: all(
            int(m.get("counters", {}).get("steps", 0)) > 20 for m in t["members"] if m["role"] == "TRAINING_WORKER"))
        self.assertEqual(self.shape(t), {"node-0": 2, "node-1": 2}, t["members"])
        return t


class OneNode(unittest.TestCase):
    def test_one_node_is_as_ever(self):
        """On a single node no store is asked and nothing moves."""
        with Cluster("--workers", "2", "--threads", "1") as c:
            upload(c, train=2000, validation=200)
            t = ended(c, start(c, document("allreduce", stop={"epochs": 2})))
            self.assertEqual(t["state"], "TRAINING_DONE", t["reason"])
            self.assertEqual((t["counters"]["moved_parts"], t["counters"]["moved_bytes"]), ("0", "0"))
            self.assertNotIn("rows.planned", c.logs(1000))


if __name__ == "__main__":
    unittest.main(verbosity=2)
