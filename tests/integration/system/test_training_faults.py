#!/usr/bin/env python3
"""Whatever process dies, a training session reaches its target, or fails with a reason within a
bound."""
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from clouds import CLASSES, FEATURES, clouds  # noqa: E402
from harness import SLOW, Cluster, HttpError, bin_dir, wait_for  # noqa: E402

ENDED = ("TRAINING_DONE", "TRAINING_FAILED")
WORKERS = 4  # worker processes; most sessions have six roles, so some processes have several


class TrainingFaults(unittest.TestCase):
    """The tests share a cluster: before the next test, killed processes have to be back."""
    cluster = None

    def setUp(self):
        cls = type(self)
        if cls.cluster is None:
            cls.cluster = Cluster("--workers", str(WORKERS), "--threads", "1", "--lease", "3s", "--allow-exec")
            self.upload()
        self.cluster.wait_for_workers(WORKERS)
        self.seen, self.sessions = [], []

    def upload(self):
        for name, n, seed in (("train", 4000, 1), ("validation", 500, 2)):
            for part, data in zip("xy", clouds(n, seed)):
                status, _, body = self.cluster.request("POST", f"/v1/objects?name=clouds/{name}/{part}&persist=true", data,
                                                       {"Content-Type": "application/x-npy"})
                self.assertIn(status, (200, 201), body)

    def tearDown(self):
        result = self._outcome.result
        if any(test is self for test, _ in result.failures + result.errors):
            print(self.cluster.output(), self.cluster.logs(), "\n".join(map(str, self.seen[-5:])), file=sys.stderr)
            self.tearDownClass()  # the state of the cluster is unknown now
            return
        for session in self.sessions:
            t = self.get(session)
            self.assertTrue(t and t["state"] in ENDED, t)

    @classmethod
    def tearDownClass(cls):
        if cls.cluster:
            cluster, cls.cluster = cls.cluster, None
            cluster.close()

    # ---- a session ----

    def document(self, rule, **more):
        """A session of six roles on four processes. It runs until it is told to stop."""
        def data(name):
            return {part: {"name": f"clouds/{name}/{part}"} for part in "xy"}
        roles = {"worker": 5, "scorer": 1} if rule == "allreduce" else {"ps": 1, "worker": 4, "scorer": 1}
        d = {"name": "faults", "model": {"input": [FEATURES], "layers": [{"type": "Dense", "units": 32, "activation": "relu"},
                                                                         {"type": "Dense", "units": CLASSES, "activation": "softmax"}]},
             "init": {"seed": 1}, "data": {"train": data("train"), "validation": data("validation"), "batch": 32, "seed": 3},
             "roles": roles, "update": {"rule": rule},
             "optimizer": {"type": "adam", "learning_rate": 0.002}, "loss": "cross_entropy", "score": {"every_s": 0.5},
             "stop": {"epochs": 1000000, "time_s": 300}, "checkpoint": {"every_steps": 200, "keep": 2},
             "limits": {"forming_s": 30, "recovering_s": 30, "stopping_s": 30, "lease_s": 2}}
        for key, value in more.items():
            d[key] = {**d.get(key, {}), **value} if isinstance(value, dict) else value
        return d

    def start(self, document):
        session = self.cluster.call("POST", "/v1/trainings", document)["id"]
        self.sessions.append(session)
        return session

    def get(self, session):
        """The session, or None while a process between the test and the trainer is away."""
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

    def until(self, what, session, ready, bound=60):
        def there():
            t = self.get(session)
            if t and not ready(t):
                self.assertNotIn(t["state"], ENDED, t)
                return None
            return t
        return wait_for(what, there, bound, every=0.05)

    def running(self, session, version=400, bound=60):
        return self.until("the session to make progress", session,
                          lambda t: t["state"] == "TRAINING_RUNNING" and int(t.get("version", 0)) >= version, bound)

    def end(self, session, bound):
        def over():
            t = self.get(session)
            return t and t["state"] in ENDED and t
        return wait_for("the session to end", over, bound, every=0.05)

    def stop(self, session, bound=45):
        wait_for("the stop to be heard", lambda: self.ask_to_stop(session), 20)
        return self.end(session, bound)

    def ask_to_stop(self, session):
        try:
            return self.cluster.call("POST", f"/v1/trainings/{session}:stop", {"reason": "enough"})
        except (OSError, http.client.HTTPException, HttpError):
            return None

    def member(self, training, role, index=0):
        for m in training["members"]:
            if m["role"] == role and int(m.get("index", 0)) == index:
                return m
        self.fail(f"no {role} {index} in {training['members']}")

    def process_of(self, member):
        """The pid of the mr-worker that runs a role: the worker that listens at the role's address."""
        path = member["address"].removeprefix("unix:")
        pid = self.cluster.pid_of(path)
        self.assertIsNotNone(pid, f"nobody listens at {path}")
        return pid

    def beside(self, training, role, index=0):
        """The roles in the same process."""
        address = self.member(training, role, index)["address"]
        return [m for m in training["members"] if m["address"] == address and m is not self.member(training, role, index)]

    def check_kept(self, t):
        self.assertEqual(t["state"], "TRAINING_DONE", t)
        score = json.loads(t["score_json"])
        validation = score.get("validation", score)
        self.assertGreater(validation["accuracy"], 0.9, score)
        self.assertTrue(t["model_object"])
        status, _, body = self.cluster.request("GET", f"/v1/objects/{t['model_object']}/stat")
        self.assertEqual(status, 200, body)

    def survive(self, rule, kill, lost=(), **options):
        """A process dies in the middle of the session; the session continues, and saves a good
        model when it is told to stop. `lost`: the roles that must be replaced, besides the
        others in the same process."""
        session = self.start(self.document(rule, **options))
        before = self.running(session)
        kill(before)
        gone = [(role, index) for role, index in lost]
        for role, index in lost:
            gone += [(m["role"], int(m.get("index", 0))) for m in self.beside(before, role, index)]

        def is_well(t):
            there = all(self.member(t, *who).get("incarnation", "0") not in ("0", self.member(before, *who)["incarnation"])
                        for who in gone)
            return t["state"] == "TRAINING_RUNNING" and there
        well = self.until("the session to recover", session, is_well)
        self.until("the session to learn on", session, lambda t: t["state"] == "TRAINING_RUNNING" and
                   int(t["version"]) > int(well["version"]) + 400)
        if lost:
            self.assertGreater(int(well["generation"]), int(before["generation"]))
        t = self.stop(session)
        self.check_kept(t)
        return before, t

    def kill_role(self, role, index=0):
        def kill(t):
            os.kill(self.process_of(self.member(t, role, index)), signal.SIGKILL)
        return kill

    def kill_program(self, program):
        return lambda t=None: os.kill(self.cluster.pids(program)[0], signal.SIGKILL)

    def check_restored(self, t, lost=0):
        """At least so many versions count as lost: those since the last checkpoint."""
        self.assertGreaterEqual(int(t.get("restores", 0)), 1)
        self.assertGreaterEqual(int(t["counters"].get("steps_lost", 0)), lost, "what was lost is not counted")

    # ---- the death of one process ----

    def test_a_training_worker_under_the_asynchronous_rule(self):
        _, t = self.survive("async", self.kill_role("TRAINING_WORKER", 2), lost=[("TRAINING_WORKER", 2)])
        self.assertEqual(int(t.get("restores", 0)), 0, "the parameters were not lost")

    def test_a_training_worker_and_the_scorer_under_the_synchronous_rule(self):
        before, _ = self.survive("sync", self.kill_role("TRAINING_WORKER", 0), lost=[("TRAINING_WORKER", 0)])
        self.assertEqual([m["role"] for m in self.beside(before, "TRAINING_WORKER", 0)], ["TRAINING_SCORER"])

    def test_a_training_worker_when_others_back_it_up(self):
        self.survive("sync", self.kill_role("TRAINING_WORKER", 2), update={"replicas_to_aggregate": 2}, roles={"worker": 3},
                     lost=[("TRAINING_WORKER", 2)])

    def test_a_rank_of_the_ring(self):
        _, t = self.survive("allreduce", self.kill_role("TRAINING_WORKER", 2), lost=[("TRAINING_WORKER", 2)])
        self.check_restored(t)

    def test_two_ranks_of_the_ring_in_one_process(self):
        before, t = self.survive("allreduce", self.kill_role("TRAINING_WORKER", 0), lost=[("TRAINING_WORKER", 0)])
        self.assertEqual([m["role"] for m in self.beside(before, "TRAINING_WORKER", 0)], ["TRAINING_WORKER"])
        self.check_restored(t)

    def test_the_parameter_server_and_a_worker_of_the_same_process(self):
        before, t = self.survive("async", self.kill_role("TRAINING_PS"), lost=[("TRAINING_PS", 0)])
        self.assertEqual([m["role"] for m in self.beside(before, "TRAINING_PS")], ["TRAINING_WORKER"])
        self.check_restored(t)

    def test_one_of_two_parameter_servers_under_the_synchronous_rule(self):
        """Without a checkpoint, the session begins again from the start."""
        before, t = self.survive("sync", self.kill_role("TRAINING_PS", 1), lost=[("TRAINING_PS", 1)], roles={"ps": 2, "worker": 3},
                                 checkpoint={"every_steps": 0})
        self.check_restored(t, lost=int(before["version"]))

    def test_the_scorer(self):
        before, t = self.survive("async", self.kill_role("TRAINING_SCORER"), lost=[("TRAINING_SCORER", 0)])
        entries = self.cluster.get(f"/v1/channels/{t['channel']}/entries")["entries"]
        steps = [json.loads(e["value_json"])["version"] for e in entries]
        self.assertEqual(steps, sorted(steps))
        self.assertTrue([s for s in steps if s > int(before["version"])], "nobody scored after the scorer died")

    def test_the_trainer(self):
        before, t = self.survive("async", self.kill_program("mr-trainer"))
        self.assertEqual(int(t.get("restores", 0)), 0, "the roles did not notice, and need not go back")

    def test_the_scheduler(self):
        before, t = self.survive("sync", self.kill_program("mr-scheduler"))
        self.assertEqual(int(t["generation"]), int(before["generation"]), "no role was lost, so none is replaced")

    def test_the_gateway(self):
        before, t = self.survive("async", self.kill_program("mr-gateway"))
        self.assertEqual(int(t["generation"]), int(before["generation"]), "no role was lost, so none is replaced")

    def test_redis_stopped_for_ten_seconds(self):
        def stop(_):
            redis = self.cluster.pids("redis-server")[0]
            os.kill(redis, signal.SIGSTOP)
            time.sleep(10)
            os.kill(redis, signal.SIGCONT)
        before, t = self.survive("async", stop)
        self.assertEqual(int(t["generation"]), int(before["generation"]), "no role was lost, so none is replaced")

    def test_redis_killed_and_back(self):
        before, t = self.survive("sync", self.kill_program("redis-server"))
        self.assertEqual(int(t["generation"]), int(before["generation"]), "no role was lost, so none is replaced")

    def test_the_object_store(self):
        """The workers of the store end with it and start again; the new store finds persisted
        objects on its disk."""
        _, t = self.survive("async", self.kill_program("mr-objectstore"), lost=[("TRAINING_PS", 0), ("TRAINING_WORKER", 2)])
        self.check_restored(t)

    def freeze(self, session, seconds):
        """Stops the process of a training worker for a time, and continues it."""
        before = self.running(session)
        pid = self.process_of(self.member(before, "TRAINING_WORKER", 2))
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)
        who = self.member(before, "TRAINING_WORKER", 2)["incarnation"]
        well = self.until("another to take its place", session, lambda t: t["state"] == "TRAINING_RUNNING" and
                          self.member(t, "TRAINING_WORKER", 2).get("incarnation", "0") not in ("0", who))
        self.until("the session to learn on", session, lambda t: int(t["version"]) > int(well["version"]) + 400)
        t = self.stop(session)
        self.check_kept(t)
        return before, t

    def test_a_worker_that_sleeps_past_its_lease_of_the_session(self):
        """The trainer's lease ends before the scheduler's: the task goes on, and the role joins
        again."""
        document = self.document("sync")
        document["limits"]["lease_s"] = 1
        self.freeze(self.start(document), 2)

    def test_a_worker_that_sleeps_past_all_leases(self):
        """Both leases end: another process has its roles when the stopped process continues."""
        self.freeze(self.start(self.document("async")), 5)

    # ---- faults while a session begins and ends ----

    def test_a_worker_dies_while_the_session_forms(self):
        session = self.start(self.document("sync"))
        self.until("the session to form", session, lambda t: t["state"] in ("TRAINING_FORMING", "TRAINING_RUNNING"))
        os.kill(self.cluster.pids("mr-worker")[1], signal.SIGKILL)
        self.running(session)
        self.check_kept(self.stop(session))

    def stopping(self, rule):
        session = self.start(self.document(rule))
        self.running(session)
        t = self.until("a checkpoint", session, lambda t: t.get("checkpoint", {}).get("objects"))
        self.ask_to_stop(session)
        return session, t

    def test_the_trainer_dies_while_the_session_stops(self):
        session, _ = self.stopping("sync")
        self.kill_program("mr-trainer")()
        self.check_kept(self.end(session, 45))

    def test_the_saver_dies_while_the_session_stops(self):
        session, t = self.stopping("async")
        self.kill_role("TRAINING_SCORER")(t)
        self.check_kept(self.end(session, 45))

    def test_the_parameter_server_dies_while_the_session_stops(self):
        session, t = self.stopping("async")
        self.kill_role("TRAINING_PS")(t)
        self.check_kept(self.end(session, 45))

    def test_a_rank_dies_while_the_session_stops(self):
        session, t = self.stopping("allreduce")
        self.kill_role("TRAINING_WORKER", 2)(t)
        self.check_kept(self.end(session, 45))

    # ---- sessions that cannot continue fail with a reason ----

    def test_a_role_that_nobody_can_replace_fails_the_session_within_its_bound(self):
        document = self.document("async")
        document["limits"].update(recovering_s=4)
        session = self.start(document)
        self.running(session)
        stopped = self.cluster.pids("mr-worker")
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            begin = time.monotonic()
            t = self.end(session, 40)
            self.assertEqual(t["state"], "TRAINING_FAILED", t)
            self.assertLess(time.monotonic() - begin, 20 * SLOW)
            self.assertRegex(t["reason"], r"ps|worker|scorer")
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)

    def test_one_session_fails_and_its_neighbour_does_not_notice(self):
        good = self.start(self.document("async"))
        before = self.running(good)
        document = self.document("async", name="bad")
        document["model"]["layers"][-1]["units"] = CLASSES - 1  # some labels have no output unit
        bad = self.end(self.start(document), 45)
        self.assertEqual(bad["state"], "TRAINING_FAILED", bad)
        self.assertRegex(bad["reason"], r"worker \d|scorer \d")
        t = self.running(good, int(self.get(good)["version"]) + 200)
        self.assertEqual(t["generation"], before["generation"])
        self.check_kept(self.stop(good))

    def test_a_role_that_kills_its_worker_is_convicted_and_its_neighbours_are_not(self):
        good = self.start(self.document("async", roles={"worker": 3}))
        self.running(good)
        document = self.document("async", name="poison", roles={"ps": 0, "scorer": 0, "worker": {
            "count": 1, "exec": ["/bin/sh", "-c", "kill -9 $PPID; sleep 5"]}})
        bad = self.end(self.start(document), 60)
        self.assertEqual(bad["state"], "TRAINING_FAILED", bad)
        self.assertRegex(bad["reason"], r"3 workers died|was lost \d+ times")
        self.running(good, int(self.get(good)["version"]) + 400)
        self.check_kept(self.stop(good))

    # ---- clients that follow a session ----

    def test_the_command_line_follows_through_a_killed_gateway_and_a_killed_trainer(self):
        document = self.document("async", stop={"time_s": 12})
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump(document, f)
            f.flush()
            command = [str(bin_dir() / "millrace"), "train"]
            how = {"env": dict(self.cluster.env, MILLRACE_URL=self.cluster.url), "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
            both = [subprocess.Popen([*command, f.name], **how)]
            try:
                session = wait_for("the session", lambda: next((t["id"] for t in self.cluster.get("/v1/trainings")["trainings"]
                                                                if t["state"] not in ENDED), None), 30)
                self.running(session)
                self.kill_program("mr-gateway")()
                # the session does not exist yet
                both.append(subprocess.Popen([*command, "--follow", session], **how))
                self.running(session, int(wait_for("the gateway", lambda: self.get(session), 20)["version"]) + 100)
                self.kill_program("mr-trainer")()
                said = [one.communicate(timeout=60 * SLOW)[0] for one in both]
            finally:
                for one in both:
                    one.kill()
        for one, out in zip(both, said):
            self.assertEqual(one.returncode, 0, out)
            self.assertIn("done", out.lower())
        self.assertIn(session, said[0])
        self.check_kept(self.get(session))


if __name__ == "__main__":
    unittest.main(verbosity=2)
