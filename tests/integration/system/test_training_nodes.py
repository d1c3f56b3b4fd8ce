#!/usr/bin/env python3
"""Roles on two nodes train over gRPC as well as in one node; between roles of one node, no
parameters pass through gRPC."""
import functools
import pathlib
import re
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Cluster, wait_for  # noqa: E402
from training_cases import document, ended, start, upload, validation  # noqa: E402


class Nodes(unittest.TestCase):
    def learn(self, cluster, rule, **more):
        cluster.wait_for_workers(4)  # the roles of the last session leave a moment after its end
        d = document(rule, stop={"threshold": {"field": "cross_entropy", "below": 0.3}, "epochs": 1000, "time_s": 40}, **more)
        t = ended(cluster, start(cluster, d))
        self.assertEqual(t["state"], "TRAINING_DONE", t)
        self.assertIn("below 0.3", t["reason"])
        self.assertGreater(validation(t)["accuracy"], 0.85)
        return t

    def learn_until_gone(self, cluster, gone, **more):
        """Trains with the rule async, by which one worker alone may reach any score before the other
        has started: stops the session when the score is good and `gone` says that parameters have
        passed between the nodes."""
        session = start(cluster, document("async", stop={"epochs": 1000, "time_s": 120}, **more))

        def enough():
            t = cluster.get(f"/v1/trainings/{session}")
            self.assertEqual(t.get("reason", ""), "", t)
            return t.get("score_json") and validation(t)["cross_entropy"] < 0.3 and gone()
        wait_for("a good score, and roles to be reached from the other node", enough, 60)
        cluster.call("POST", f"/v1/trainings/{session}:stop", {"reason": "enough"})
        t = ended(cluster, session)
        self.assertEqual(t["state"], "TRAINING_DONE", t)
        self.assertGreater(validation(t)["accuracy"], 0.85)
        return t

    def traffic(self, cluster):
        """(connections by shared memory, connections by gRPC, bytes by gRPC), summed over all
        workers so far."""
        status, _, body = cluster.request("GET", "/metrics")
        self.assertEqual(status, 200)
        sums = {"memory": 0, "grpc": 0, "bytes": 0}
        for line in body.decode().splitlines():
            way = re.match(r'millrace_train_links_total\{.*path="(memory|grpc)".*\} (\S+)', line)
            through = re.match(r"millrace_train_grpc_bytes_total\{.*\} (\S+)", line)
            if way:
                sums[way[1]] += float(way[2])
            if through:
                sums["bytes"] += float(through[1])
        return sums

    def ring(self, cluster):
        """The counters of all rings so far."""
        status, _, body = cluster.request("GET", "/metrics")
        self.assertEqual(status, 200)
        sums = dict.fromkeys(("steps", "streams", "messages", "bytes", "wakes"), 0.0)
        for what, value in re.findall(r"^millrace_train_ring_(\w+)_total\{.*\} (\S+)$", body.decode(), re.MULTILINE):
            sums[what] += float(value)
        return sums

    def has_gone(self, cluster, before, bytes_min):
        now = self.traffic(cluster)
        return now["grpc"] > before["grpc"] and now["bytes"] - before["bytes"] > bytes_min

    def settled(self, cluster):
        """Waits until the counters that workers send with their heartbeats have arrived."""
        was = now = None
        while was is None or was != now:
            was, now = now, self.traffic(cluster)
            time.sleep(1.5)
        return now

    def test_two_nodes_learn_under_each_rule(self):
        with Cluster("--nodes", "2", "--workers", "2", "--threads", "1") as c:
            upload(c, train=4000, validation=500)
            before = self.traffic(c)
            # There are as many roles as slots, so no node has all roles that exchange parameters:
            # three ranks do not fit on one.
            for rule, more in (("async", {}), ("sync", {}), ("sync", {"ps": 2}), ("allreduce", {"workers": 3})):
                with self.subTest(rule, **more):
                    one = 4 * (16 * 32 + 32 + 32 * 4 + 4)  # bytes of the model's parameters
                    gone = functools.partial(self.has_gone, c, before, 10 * one / 2)
                    t = self.learn_until_gone(c, gone, **more) if rule == "async" else self.learn(c, rule, **more)
                    self.assertEqual({m["node"] for m in t["members"]}, {"node-0", "node-1"}, t["members"])
                    wait_for("roles to be reached from the other node", gone)
                    before = self.settled(c)
            self.ring_is_cheap(c)

    def ring_is_cheap(self, cluster):
        """In a step, a rank sends one message a round, is woken at most once a round, and opens no
        stream."""
        ring, rounds = self.ring(cluster), 2 * (3 - 1)
        self.assertGreater(ring["steps"], 100, ring)
        self.assertGreaterEqual(ring["messages"], (ring["steps"] - 3 * ring["streams"]) * rounds, ring)
        self.assertLessEqual(ring["messages"], ring["steps"] * rounds, ring)
        self.assertLessEqual(ring["wakes"], ring["steps"] * rounds, ring)
        self.assertLess(ring["streams"] * 10, ring["steps"], ring)
        self.assertGreater(ring["bytes"], ring["messages"] * 4, ring)

    def test_one_node_uses_memory_alone(self):
        with Cluster("--workers", "4", "--threads", "1") as c:
            upload(c, train=4000, validation=500)
            for rule in ("async", "sync", "allreduce"):
                with self.subTest(rule):
                    before = self.traffic(c)
                    self.learn(c, rule)
                    now = self.traffic(c)
                    self.assertGreater(now["memory"], before["memory"])
                    self.assertEqual((now["grpc"], now["bytes"]), (0, 0))


if __name__ == "__main__":
    unittest.main(verbosity=2)
