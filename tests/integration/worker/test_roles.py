#!/usr/bin/python3
"""Roles of a training session in real workers, with a simulated trainer: each rule learns, goes
back to a checkpoint, halts and saves its model; queues deliver; errors are reported."""
import json
import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from clouds import CLASSES, FEATURES, clouds  # noqa: E402
from harness import Cluster  # noqa: E402
from scripted_trainer import EXIT, HALT, KEEP, Trainer  # noqa: E402


class Roles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory(prefix="mr-roles-")
        cls.cluster = Cluster("--workers", "4", "--threads", "1", "--allow-exec")
        for name, n, seed in (("train", 4000, 1), ("validation", 500, 2), ("test", 300, 3)):
            for part, data in zip("xy", clouds(n, seed)):
                status, _, body = cls.cluster.request("POST", f"/v1/objects?name=clouds/{name}/{part}&persist=true", data,
                                                      {"Content-Type": "application/x-npy"})
                assert status in (200, 201), body

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()
        cls.work.cleanup()

    def tearDown(self):
        if any(e for _, e in getattr(self._outcome, "errors", []) if e) or self._outcome.result.failures:
            print(self.cluster.logs(40), file=sys.stderr)

    def document(self, rule, roles, **more):
        d = {"name": "clouds", "model": {"input": [FEATURES], "layers": [
                {"type": "Dense", "units": 64, "activation": "relu"}, {"type": "Dense", "units": CLASSES, "activation": "softmax"}]},
             "init": {"seed": 1}, "data": {"train": {}, "validation": {}, "batch": 32, "shuffle": True, "seed": 3, "remainder": "drop"},
             "roles": roles, "update": {"rule": rule}, "optimizer": {"type": "adam", "learning_rate": 0.002}, "loss": "cross_entropy",
             "score": {"every_s": 0.2}, "stop": {"epochs": 0}, "checkpoint": {"every_steps": 50, "keep": 2}, "save": f"clouds/{rule}"}
        d.update(more)
        return d

    def session(self, document, data=True, extra=None):
        """Starts the simulated trainer and the job of the roles."""
        # Replaces the cluster's own trainer, whose address the workers know, because they call no
        # other.
        t = Trainer(self.cluster.dir / "c" / "run" / "trainer.sock", self.work.name, document)
        self.addCleanup(t.stop)
        tasks = dict(extra or {})
        for role, index in t.wanted:
            named = {s: {p: {"name": f"clouds/{s}/{p}"} for p in "xy"} for s in ("train", "validation", "test")} if data else None
            op = "exec" if isinstance(document["roles"].get("exec"), str) else role
            tasks[f"{role}/{index}"] = {"op": f"train.{op}", "args": ["t1-1", index, t.address], "kwargs": {"data": named},
                                        "long_running": True, "retries": 5, "pure": False}
        job = self.cluster.submit({"tasks": tasks, "targets": [k for k in tasks if "for" not in tasks[k]]})
        self.addCleanup(self.cluster.request, "POST", f"/v1/jobs/{job}:cancel", {})
        return t, job

    def version(self, t):
        return max((r.version for r in t.reports.values()), default=0)

    def learn(self, t, version):
        t.wait(f"version {version}", lambda: self.version(t) >= version)

    def end(self, t, job):
        """Phases halt, keep and exit; returns the report of the role that saves."""
        t.set_phase(HALT)
        t.wait("the workers to finish", lambda: all(t.reports[k].finished for k in t.wanted if k[0] == "worker"))
        t.set_phase(KEEP)
        saver = ("scorer", 0) if ("scorer", 0) in t.wanted else ("worker", 0)
        t.wait("the model", lambda: t.reports[saver].finished and t.reports[saver].model_object)
        kept = t.reports[saver]
        t.set_phase(EXIT)
        over = self.cluster.wait(job, 20)
        self.assertEqual(over["state"], "JOB_DONE", over)
        return kept

    def check_kept(self, kept, name):
        score = json.loads(kept.score_json)
        self.assertGreater(score["validation"]["accuracy"], 0.9, score)
        self.assertGreater(score["test"]["accuracy"], 0.9, score)
        self.assertEqual(score["accuracy"], score["validation"]["accuracy"])
        info = self.cluster.get(f"/v1/names/{name}")
        self.assertEqual(info["object"], kept.model_object)
        self.assertTrue(info["durable"])

    def run_rule(self, rule, roles, **more):
        t, job = self.session(self.document(rule, roles, **more))
        self.learn(t, 300)
        self.check_kept(self.end(t, job), f"clouds/{rule}")
        return t

    def test_asynchronous(self):
        t = self.run_rule("async", {"ps": 1, "worker": 2, "scorer": 1})
        self.assertGreater(len(t.scores), 0)
        self.assertEqual({"step", "version", "cross_entropy", "accuracy", "examples_per_s", "seconds"} - set(t.scores[0]), set())
        self.assertTrue(t.checkpoints)

    def test_asynchronous_on_two_servers_without_a_scorer(self):
        t = self.run_rule("async", {"ps": 2, "worker": 2})
        self.assertTrue(any(len(c) == 2 for c in t.checkpoints.values()))

    def test_synchronous(self):
        t = self.run_rule("sync", {"ps": 1, "worker": 3, "scorer": 1})
        ps = t.reports[("ps", 0)].counters
        self.assertEqual(ps.gradients_applied, 3 * ps.steps)

    def test_all_reduce(self):
        self.run_rule("allreduce", {"worker": 3, "scorer": 1})

    def test_all_reduce_without_a_scorer(self):
        self.run_rule("allreduce", {"worker": 2})

    def check_going_back(self, rule, roles):
        t, job = self.session(self.document(rule, roles))
        owners = roles.get("ps") or roles["worker"]
        self.learn(t, 120)
        t.wait("a checkpoint", lambda: any(len(c) == owners for c in t.checkpoints.values()))
        with t.changed:
            version = max(v for v, c in t.checkpoints.items() if len(c) == owners)
            before = self.version(t)
        t.go_back(version)
        t.wait("all to be in the new epoch", lambda: all(r.restore_epoch == 1 for r in t.reports.values()))
        self.learn(t, before + 100)
        self.check_kept(self.end(t, job), f"clouds/{rule}")

    def test_a_server_goes_back_to_a_checkpoint(self):
        self.check_going_back("async", {"ps": 2, "worker": 2, "scorer": 1})

    def test_ranks_go_back_to_a_checkpoint(self):
        self.check_going_back("allreduce", {"worker": 2, "scorer": 1})

    def test_epochs_end_with_all_workers_exhausted(self):
        for rule, roles in (("async", {"ps": 1, "worker": 2}), ("sync", {"ps": 1, "worker": 2}), ("allreduce", {"worker": 2})):
            with self.subTest(rule):
                t, job = self.session(self.document(rule, roles, stop={"epochs": 2}))
                t.wait("the data to be used up", lambda: all(t.reports.get(("worker", i)) and t.reports[("worker", i)].exhausted for i in (0, 1)))
                steps = 2 * (4000 // 64)
                self.assertEqual(t.reports[("worker", 0)].counters.steps, steps)
                self.check_kept(self.end(t, job), f"clouds/{rule}")

    def test_a_queue_feeds(self):
        for rule, roles in (("async", {"ps": 1, "worker": 2}), ("sync", {"ps": 1, "worker": 2}), ("allreduce", {"worker": 2})):
            with self.subTest(rule):
                d = self.document(rule, roles)
                d["data"] = {"queue": "batches", "batch": 32, "remainder": "drop", "validation": {}}
                t, job = self.session(d)
                t.hold = lambda o: self.cluster.call("PUT", f"/v1/names/held/{o}", {"object": o})
                feed = {"x": {"name": "clouds/train/x"}, "y": {"name": "clouds/train/y"}}
                for i in range(100):
                    for p in "xy":
                        feed[f"{p}/{i}"] = {"op": "array.slice", "args": [{"ref": p}, i * 40, (i + 1) * 40]}
                    feed[f"put/{i}"] = {"op": "queue.put", "args": ["batches", {"ref": f"x/{i}"}, {"ref": f"y/{i}"}],
                                         "kwargs": {"trainer": t.address}, "pure": False}
                fed = self.cluster.submit({"tasks": feed, "targets": [f"put/{i}" for i in range(100)]})
                over = self.cluster.wait(fed, 60)
                self.assertEqual(over["state"], "JOB_DONE", over)
                with t.changed:
                    t.closed = True
                    t.changed.notify_all()
                t.wait("the queue to be used up", lambda: all(t.reports[("worker", i)].exhausted for i in (0, 1)))
                self.end(t, job)
                self.assertEqual(t.dead, [])
                self.assertEqual(len({item for item, _ in t.acked}), 100)
                self.assertFalse(t.queue or t.leased)

    def test_a_cancelled_role_ends_at_once(self):
        t, job = self.session(self.document("async", {"ps": 1, "worker": 2, "scorer": 1}))
        self.learn(t, 20)
        start = time.monotonic()
        self.cluster.call("POST", f"/v1/jobs/{job}:cancel", {})
        self.cluster.wait(job, 60)
        # without a stop rule the session would go on for ever
        self.assertLess(time.monotonic() - start, 20)

    def test_data_that_does_not_fit_is_a_failure_in_words(self):
        d = self.document("async", {"ps": 1, "worker": 1})
        d["model"]["input"] = [17]
        t, _ = self.session(d)
        with t.changed:
            self.assertTrue(t.changed.wait_for(lambda: any(r.failure for r in t.reports.values()), 20))
        self.assertIn("data.train.x: expected 17 numbers a row", [r.failure for r in t.reports.values() if r.failure][0])

    def test_a_worker_dies_and_its_next_attempt_goes_on(self):
        for rule in ("async", "sync"):
            with self.subTest(rule):
                t, job = self.session(self.document(rule, {"ps": 1, "worker": 2, "scorer": 1}))
                self.learn(t, 50)
                with t.changed:
                    victim = t.members[("worker", 1)]
                    mates = [k for k, m in t.members.items() if m["address"] == victim["address"]]
                if ("ps", 0) in mates:
                    continue  # the server ended with its worker, which another test checks
                os.kill(self.cluster.pid_of(victim["address"].removeprefix("unix:")), signal.SIGKILL)
                t.wait("another attempt", lambda: t.members[("worker", 1)]["incarnation"] != victim["incarnation"], 60)
                self.learn(t, self.version(t) + 200)
                self.check_kept(self.end(t, job), f"clouds/{rule}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
