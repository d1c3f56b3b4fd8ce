#!/usr/bin/env python3
"""A training session reaches its target, or fails with a reason within a bound, whatever dies."""
import array
import http.client
import json
import os
import pathlib
import random
import signal
import struct
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Cluster, HttpError, wait_for  # noqa: E402

ENDED = ("TRAINING_DONE", "TRAINING_FAILED")
FEATURES, CLASSES = 16, 4


def npy(typecode, descr, shape, values):
    """The bytes of a .npy file, version 1.0."""
    dims = "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {dims}, }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + array.array(typecode, values).tobytes()


def clouds(n, seed):
    """Points around one corner a class: easy to tell apart, by any rule that works at all."""
    r = random.Random(seed)
    x, y = [], []
    for _ in range(n):
        label = r.randrange(CLASSES)
        x += [r.gauss(1.5 if i % CLASSES == label else 0, 1) for i in range(FEATURES)]
        y.append(label)
    return npy("f", "<f4", (n, FEATURES), x), npy("i", "<i4", (n,), y)


class TrainingFaults(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster("--workers", "5", "--threads", "1", "--lease", "3s")
        self.addCleanup(self.cluster.close)
        for name, n, seed in (("train", 4000, 1), ("validation", 500, 2)):
            for part, data in zip("xy", clouds(n, seed)):
                status, _, body = self.cluster.request("POST", f"/v1/objects?name=clouds/{name}/{part}&persist=true", data,
                                                       {"Content-Type": "application/x-npy"})
                self.assertIn(status, (200, 201), body)
        self.seen = []

    def tearDown(self):
        failed = any(e for _, e in getattr(self._outcome, "errors", []) if e) or getattr(self._outcome.result, "errors", [])
        if failed:
            print(self.cluster.output(), self.cluster.logs(), "\n".join(map(str, self.seen[-5:])), file=sys.stderr)

    # ---- a session ----

    def document(self, rule, seconds, ps=1, workers=3, scorer=1, **more):
        def data(name):
            return {part: {"name": f"clouds/{name}/{part}"} for part in "xy"}
        d = {"name": "faults", "model": {"input": [FEATURES], "layers": [{"type": "Dense", "units": 32, "activation": "relu"},
                                                                         {"type": "Dense", "units": CLASSES, "activation": "softmax"}]},
             "init": {"seed": 1}, "data": {"train": data("train"), "validation": data("validation"), "batch": 32, "seed": 3},
             "roles": {"worker": workers, "scorer": scorer}, "update": {"rule": rule},
             "optimizer": {"type": "adam", "learning_rate": 0.002}, "loss": "cross_entropy", "score": {"every_s": 0.5},
             "stop": {"epochs": 1000000, "time_s": seconds}, "checkpoint": {"every_steps": 200, "keep": 2},
             "limits": {"forming_s": 30, "recovering_s": 30, "stopping_s": 30, "lease_s": 2}}
        if rule != "allreduce":
            d["roles"]["ps"] = ps
        for key, value in more.items():
            d[key] = {**d.get(key, {}), **value} if isinstance(value, dict) else value
        return d

    def start(self, document):
        return self.cluster.call("POST", "/v1/trainings", document)["id"]

    def get(self, session):
        """None while something on the way is away."""
        try:
            t = self.cluster.get(f"/v1/trainings/{session}")
        except (OSError, http.client.HTTPException):
            return None
        except HttpError as e:
            if e.status in (502, 503, 504):
                return None
            raise
        self.seen.append({k: t.get(k) for k in ("state", "reason", "generation", "restores", "version", "counters")})
        return t

    def running(self, session, version=400):
        def there():
            t = self.get(session)
            if t:
                self.assertNotIn(t["state"], ENDED, t)
            return t and t["state"] == "TRAINING_RUNNING" and int(t.get("version", 0)) >= version and t
        return wait_for("the session to make progress", there, 60, every=0.1)

    def end(self, session, bound):
        def over():
            t = self.get(session)
            return t and t["state"] in ENDED and t
        return wait_for("the session to end", over, bound, every=0.1)

    def member(self, training, role, index=0):
        for m in training["members"]:
            if m["role"] == role and int(m.get("index", 0)) == index:
                return m
        self.fail(f"no {role} {index} in {training['members']}")

    def process_of(self, member):
        """The mr-worker that runs a role: the one that listens at its address."""
        path = member["address"].removeprefix("unix:")
        pid = self.cluster.pid_of(path)
        self.assertIsNotNone(pid, f"nobody listens at {path}")
        return pid

    def check_kept(self, t):
        self.assertEqual(t["state"], "TRAINING_DONE", t)
        score = json.loads(t["score_json"])
        validation = score.get("validation", score)
        self.assertGreater(validation["accuracy"], 0.9, score)
        self.assertTrue(t["model_object"])
        status, _, body = self.cluster.request("GET", f"/v1/objects/{t['model_object']}/stat")
        self.assertEqual(status, 200, body)

    def survive(self, rule, kill, seconds=10, bound=75, **options):
        session = self.start(self.document(rule, seconds, **options))
        before = self.running(session)
        kill(before)
        t = self.end(session, bound)
        self.check_kept(t)
        self.assertGreater(int(t["version"]), int(before["version"]), "nothing was learned after the fault")
        return before, t

    def kill_role(self, role, index=0):
        def kill(t):
            os.kill(self.process_of(self.member(t, role, index)), signal.SIGKILL)
        return kill

    def kill_program(self, program):
        return lambda t: os.kill(self.cluster.pids(program)[0], signal.SIGKILL)

    # ---- one death each ----

    def check_replaced(self, before, t, role, index=0):
        self.assertGreater(int(t["generation"]), int(before["generation"]))
        self.assertNotEqual(self.member(before, role, index)["incarnation"], self.member(t, role, index)["incarnation"])

    def test_a_training_worker_under_the_asynchronous_rule(self):
        before, t = self.survive("async", self.kill_role("TRAINING_WORKER", 1))
        self.check_replaced(before, t, "TRAINING_WORKER", 1)

    def test_a_training_worker_under_the_synchronous_rule(self):
        before, t = self.survive("sync", self.kill_role("TRAINING_WORKER", 1))
        self.check_replaced(before, t, "TRAINING_WORKER", 1)

    def test_a_training_worker_when_others_back_it_up(self):
        before, t = self.survive("sync", self.kill_role("TRAINING_WORKER", 2), update={"replicas_to_aggregate": 2})
        self.check_replaced(before, t, "TRAINING_WORKER", 2)

    def test_a_rank_of_the_ring(self):
        before, t = self.survive("allreduce", self.kill_role("TRAINING_WORKER", 1))
        self.check_replaced(before, t, "TRAINING_WORKER", 1)
        self.assertGreaterEqual(int(t["restores"]), 1)

    def test_the_first_rank_of_the_ring(self):
        before, t = self.survive("allreduce", self.kill_role("TRAINING_WORKER", 0))
        self.check_replaced(before, t, "TRAINING_WORKER", 0)

    def test_a_parameter_server_goes_back_to_its_checkpoint(self):
        before, t = self.survive("async", self.kill_role("TRAINING_PS"))
        self.check_replaced(before, t, "TRAINING_PS")
        self.assertGreaterEqual(int(t["restores"]), 1)
        self.assertGreater(int(t["counters"].get("steps_lost", 0)), 0, "what was lost is not counted")

    def test_one_of_two_parameter_servers_under_the_synchronous_rule(self):
        before, t = self.survive("sync", self.kill_role("TRAINING_PS", 1), ps=2, workers=2)
        self.check_replaced(before, t, "TRAINING_PS", 1)
        self.assertGreaterEqual(int(t["restores"]), 1)

    def test_the_scorer(self):
        session = self.start(self.document("async", 10))
        before = self.running(session)
        self.kill_role("TRAINING_SCORER")(before)
        t = self.end(session, 75)
        self.check_kept(t)
        self.check_replaced(before, t, "TRAINING_SCORER")
        entries = self.cluster.get(f"/v1/channels/{t['channel']}/entries")["entries"]
        steps = [json.loads(e["value_json"])["version"] for e in entries]
        self.assertEqual(steps, sorted(steps))
        self.assertGreater(len([s for s in steps if s > int(before["version"])]), 2, "nobody scored after the scorer died")

    def test_the_trainer(self):
        before, t = self.survive("async", self.kill_program("mr-trainer"))
        self.assertEqual(t["restores"] if "restores" in t else 0, 0, "the roles did not notice, and need not go back")

    def test_the_scheduler(self):
        self.survive("sync", self.kill_program("mr-scheduler"))

    def test_redis_stopped_for_ten_seconds(self):
        def stop(_):
            redis = self.cluster.pids("redis-server")[0]
            os.kill(redis, signal.SIGSTOP)
            time.sleep(10)
            os.kill(redis, signal.SIGCONT)
        before, t = self.survive("async", stop, seconds=16)
        self.assertEqual(int(t["generation"]), int(before["generation"]), "no role was lost, so none is replaced")

    # ---- and what cannot go on says so ----

    def test_a_role_that_nobody_can_replace_fails_the_session_within_its_bound(self):
        document = self.document("async", 120, workers=2)
        document["limits"].update(recovering_s=6)
        session = self.start(document)
        t = self.running(session)
        for pid in self.cluster.pids("mr-worker"):
            os.kill(pid, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            t = self.end(session, 40)
            self.assertEqual(t["state"], "TRAINING_FAILED", t)
            self.assertLess(time.monotonic() - begin, 25)
            self.assertRegex(t["reason"], r"ps|worker|scorer")
        finally:
            for pid in self.cluster.pids("mr-worker"):
                os.kill(pid, signal.SIGCONT)

    def test_the_trainer_dies_while_the_session_stops(self):
        session = self.start(self.document("sync", 4))
        self.running(session, 100)

        def stopping():
            t = self.get(session)
            return t and t["state"] in ("TRAINING_STOPPING", *ENDED)
        wait_for("the session to stop", stopping, 30, every=0.005)
        self.kill_program("mr-trainer")(None)
        self.check_kept(self.end(session, 60))


if __name__ == "__main__":
    unittest.main(verbosity=2)
