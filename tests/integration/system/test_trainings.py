"""Training sessions of a real trainer, with simulated roles (training_rig.py)."""
import json
import pathlib
import socket
import sys
import threading
import time
import unittest

import grpc

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from training_rig import EXIT, HALT, KEEP, PS, RUN, SCORER, WORKER, Rig  # noqa: E402
from harness import HttpError, wait_for  # noqa: E402

STATES = ["TRAINING_PREPARING", "TRAINING_FORMING", "TRAINING_RUNNING", "TRAINING_RECOVERING", "TRAINING_STOPPING",
          "TRAINING_DONE", "TRAINING_FAILED"]


def fail(_):
    raise RuntimeError("the disk is made of cheese")


OPS = {"fake.data": lambda x: x, "fake.fail": fail, "fake.put": lambda x: x}
GRAPH = {"tasks": {"x": {"op": "fake.data", "args": ["${n}"]}, "y": {"op": "fake.data", "args": [2]}}}


def document(**more):
    d = {"name": "test", "params": {"n": 1}, "graph": GRAPH,
         "model": {"input": [4], "layers": [{"type": "Dense", "units": 2, "activation": "softmax"}]},
         "data": {"train": {"x": "x", "y": "y"}, "validation": {"x": "x", "y": "y"}},
         "roles": {"ps": 1, "worker": 2, "scorer": 1},
         "stop": {"threshold": {"field": "cross_entropy", "below": 0.12}, "time_s": 600},
         "limits": {"forming_s": 20, "recovering_s": 20, "stopping_s": 20, "lease_s": 2}}
    d.update(more)
    return d


class Trainings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rig = Rig(OPS)
        cls.worker = cls.rig.worker

    @classmethod
    def tearDownClass(cls):
        cls.rig.close()

    def setUp(self):
        self.worker.hold, self.worker.has_scorer = set(), True

    def start(self, **more):
        session = self.rig.train(document(**more))
        self.addCleanup(self.abandon, session)
        return session

    def abandon(self, session):
        try:
            if self.rig.session(session)["state"] not in STATES[5:]:
                self.rig.call("POST", f"/v1/trainings/{session}:stop", {"abandon": True})
                self.rig.wait_state(session, *STATES[5:])
        except HttpError as e:
            if e.status != 404:
                raise

    def running(self, **more):
        session = self.start(**more)
        return session, self.rig.wait_state(session, "TRAINING_RUNNING", "TRAINING_FAILED")

    def finish(self, session):
        self.rig.score(f"{session}.scores", step=7, version=7, cross_entropy=0.1, accuracy=0.97)
        return self.rig.wait_state(session, *STATES[5:])

    def test_a_session_forms_runs_and_ends_by_a_score(self):
        session, now = self.running()
        self.assertEqual(now["state"], "TRAINING_RUNNING", now)
        self.assertEqual([m["role"] for m in now["members"]],
                         ["TRAINING_PS", "TRAINING_WORKER", "TRAINING_WORKER", "TRAINING_SCORER"])
        self.assertEqual({m["state"] for m in now["members"]}, {"here"})
        self.assertEqual(now["cluster"]["worker"], ["127.0.0.1:20200", "127.0.0.1:20201"])
        self.assertEqual(now["channel"], f"{session}.scores")
        self.assertTrue(now["graph_job"] and now["role_job"], now)
        self.assertEqual(json.loads(now["document_json"])["name"], "test")
        # a bad score: the session continues
        self.rig.score(f"{session}.scores", step=1, cross_entropy=2.3)
        time.sleep(0.3)
        self.assertEqual(self.rig.session(session)["state"], "TRAINING_RUNNING")
        end = self.finish(session)
        self.assertEqual(end["state"], "TRAINING_DONE", end)
        self.assertEqual(end["model_object"], self.worker.model)
        self.assertEqual(end["model_name"], "test/model")
        self.assertIn("cross_entropy", end["reason"])
        self.assertIn("cross_entropy", end["score_json"])
        worker = self.worker.role(session, WORKER, 1)
        scorer = self.worker.role(session, SCORER, 0)
        wait_for("roles to end", lambda: worker.ended and scorer.ended)
        self.assertEqual(worker.phases[0], RUN)
        self.assertEqual(worker.phases[-1], EXIT)
        self.assertIn(HALT, worker.phases)
        self.assertIn(KEEP, scorer.phases)
        self.assertEqual(self.rig.get(f"/v1/jobs/{end['role_job']}?wait_s=10")["state"], "JOB_DONE")

    def test_roles_get_the_data_by_reference(self):
        session, _ = self.running()
        self.assertEqual(sorted(self.worker.role(session, WORKER, 0).data), ["train"])
        self.assertEqual(sorted(self.worker.role(session, SCORER, 0).data), ["validation"])
        self.assertIsNone(self.worker.role(session, PS, 0).data)

    def test_forming_fails_by_its_bound_and_names_who_is_missing(self):
        self.worker.hold = {("train.worker", 1)}
        session = self.start(limits={"forming_s": 2})
        begun = time.monotonic()
        end = self.rig.wait_state(session, *STATES[5:])
        self.assertEqual(end["state"], "TRAINING_FAILED")
        self.assertIn("worker 1", end["reason"].replace("/", " "))
        self.assertLess(time.monotonic() - begun, 40)
        others = self.worker.role(session, WORKER, 0)
        wait_for("the others to be cancelled", lambda: others.ended)
        self.assertNotIn(RUN, others.phases)  # all roles run or none

    def test_a_graph_that_fails_fails_the_session_with_its_reason(self):
        graph = {"tasks": {"x": {"op": "fake.fail", "args": [1]}, "y": {"value": 1}}}
        session = self.start(graph=graph)
        end = self.rig.wait_state(session, *STATES[5:])
        self.assertEqual(end["state"], "TRAINING_FAILED")
        self.assertIn("cheese", end["reason"])
        self.assertFalse(end.get("role_job"))

    def test_a_graph_may_fill_the_queue_while_the_session_trains(self):
        put = []
        self.worker.ops["fake.put"] = put.append
        graph = {"tasks": {"x": {"op": "fake.data", "args": [1]}, "y": {"value": 2},
                           "feed-${i}": {"op": "fake.put", "args": ["${i}"], "pure": False, "for": {"i": 3}}}}
        data = {"queue": "q", "validation": {"x": "x", "y": "y"}}
        session, now = self.running(graph=graph, data=data)
        self.assertEqual(now["state"], "TRAINING_RUNNING", now)
        wait_for("the feed", lambda: sorted(put) == [0, 1, 2])
        self.assertEqual(self.finish(session)["state"], "TRAINING_DONE")

    def test_a_feed_that_fails_fails_the_session(self):
        graph = {"tasks": {"x": {"value": 1}, "feed": {"op": "fake.fail", "args": [1]}}}
        session = self.start(graph=graph, data={"queue": "q", "validation": {"x": "x", "y": "x"}})
        end = self.rig.wait_state(session, *STATES[5:])
        self.assertEqual(end["state"], "TRAINING_FAILED")
        self.assertIn("cheese", end["reason"])

    def test_a_graph_that_the_scheduler_refuses_does_too(self):
        session = self.start(graph={"tasks": {"x": {"op": "no.such.op"}, "y": {"value": 1}}})
        end = self.rig.wait_state(session, *STATES[5:])
        self.assertEqual(end["state"], "TRAINING_FAILED")
        self.assertIn("no.such.op", end["reason"])

    def test_a_wrong_document_is_refused_with_the_field(self):
        for change, word in (({"roles": {"ps": 1, "worker": -1}}, "roles"), ({"colour": "red"}, "colour"),
                             ({"loss": "sorrow"}, "loss")):
            with self.assertRaises(HttpError) as e:
                self.rig.train(document(**change))
            self.assertEqual(e.exception.status, 400)
            self.assertIn(word, e.exception.body)
        status, body = self.rig.request("POST", "/v1/trainings", "{", {"Content-Type": "application/json"})
        self.assertEqual(status, 400, body)

    def test_the_same_request_is_one_session(self):
        one = self.rig.train(document(), request_id="once")
        self.addCleanup(self.abandon, one)
        self.assertEqual(self.rig.train(document(), request_id="once"), one)
        with self.assertRaises(HttpError) as e:
            self.rig.train(document(name="other"), request_id="once")
        self.assertEqual(e.exception.status, 409)

    def test_two_sessions_at_once_do_not_touch_each_other(self):
        one, first = self.running()
        two, second = self.running()
        self.assertNotEqual(first["channel"], second["channel"])
        self.assertEqual(self.finish(one)["state"], "TRAINING_DONE")
        self.assertEqual(self.rig.session(two)["state"], "TRAINING_RUNNING")
        self.assertEqual(self.finish(two)["state"], "TRAINING_DONE")

    def test_stop_keeps_the_model(self):
        session, _ = self.running()
        self.rig.call("POST", f"/v1/trainings/{session}:stop", {"reason": "tired"})
        end = self.rig.wait_state(session, *STATES[5:])
        self.assertEqual(end["state"], "TRAINING_DONE")
        self.assertIn("tired", end["reason"])
        again = self.rig.call("POST", f"/v1/trainings/{session}:stop", {"reason": "again"})
        self.assertIn("tired", again["reason"])

    def test_abandon_cancels_the_roles_and_keeps_nothing(self):
        session, now = self.running()
        self.rig.call("POST", f"/v1/trainings/{session}:stop", {"abandon": True, "reason": "wrong data"})
        end = self.rig.wait_state(session, *STATES[5:])
        self.assertEqual(end["state"], "TRAINING_FAILED")
        self.assertIn("wrong data", end["reason"])
        self.assertFalse(end.get("model_object"))
        role = self.worker.role(session, PS, 0)
        wait_for("roles to be cancelled", lambda: role.cancelled or role.ended)

    def test_a_worker_that_dies_is_replaced(self):
        session, before = self.running()
        role = self.worker.role(session, WORKER, 1)
        role.dead = True  # its task fails, and the scheduler runs it again
        other = wait_for("another attempt",
                         lambda: (lambda r: r is not role and r.joined and r)(self.worker.role(session, WORKER, 1)))
        now = self.rig.wait_state(session, "TRAINING_RUNNING", *STATES[5:])
        self.assertEqual(now["state"], "TRAINING_RUNNING")
        self.assertGreater(other.joined[-1].incarnation, role.joined[-1].incarnation)
        wait_for("a new generation",
                 lambda: self.rig.session(session).get("generation", 0) > before.get("generation", 0))
        self.assertEqual(self.rig.session(session).get("restores", 0), 0)
        self.assertEqual(self.finish(session)["state"], "TRAINING_DONE")

    def test_a_parameter_server_that_dies_is_restored(self):
        session, _ = self.running()
        self.worker.role(session, PS, 0).dead = True
        wait_for("a restore", lambda: self.rig.session(session).get("restores", 0) == 1)
        self.rig.wait_state(session, "TRAINING_RUNNING")
        self.assertEqual(self.finish(session)["state"], "TRAINING_DONE")

    def test_the_trainer_may_be_killed_in_the_middle(self):
        session, before = self.running()
        self.rig.kill("trainer")
        time.sleep(0.5)
        self.rig.start_trainer()
        wait_for("the trainer", self.rig.trainer_answers)
        now = self.rig.wait_state(session, "TRAINING_RUNNING", *STATES[5:])
        self.assertEqual(now["state"], "TRAINING_RUNNING", now)
        self.assertEqual(now["role_job"], before["role_job"])
        role = self.worker.role(session, WORKER, 0)
        steps = role.steps
        wait_for("its roles to go on", lambda: role.steps > steps + 3)
        end = self.finish(session)
        self.assertEqual(end["state"], "TRAINING_DONE", end)
        self.assertEqual(end.get("restores", 0), 0)

    def test_the_trainer_may_be_killed_while_the_graph_runs(self):
        gate = threading.Event()
        self.addCleanup(gate.set)
        self.worker.ops["fake.slow"] = lambda x: gate.wait(20)
        session = self.start(graph={"tasks": {"x": {"op": "fake.data", "args": [1]}, "y": {"value": 1}}})
        self.rig.kill("trainer")
        self.rig.start_trainer()
        wait_for("the trainer", self.rig.trainer_answers)
        self.assertEqual(self.rig.wait_state(session, "TRAINING_RUNNING", *STATES[5:])["state"], "TRAINING_RUNNING")

    def test_redis_may_be_away_for_a_while(self):
        session, _ = self.running()
        self.rig.stop_cont("redis", 3)
        role = self.worker.role(session, WORKER, 0)
        steps = role.steps
        wait_for("its roles to go on", lambda: role.steps > steps + 3)
        end = self.finish(session)
        self.assertEqual(end["state"], "TRAINING_DONE", end)

    def test_redis_may_die_and_come_back_while_a_member_changes(self):
        session, _ = self.running()
        self.rig.kill("redis")
        role = self.worker.role(session, WORKER, 1)
        role.dead = True
        time.sleep(1)
        self.rig.start_redis()
        wait_for("another attempt", lambda: self.worker.role(session, WORKER, 1) is not role)
        wait_for("the trainer", self.rig.trainer_answers)
        self.assertEqual(self.finish(session)["state"], "TRAINING_DONE")
        self.assertIsNone(self.rig.children["trainer"].poll())

    def test_events_are_followed_and_resumed(self):
        session, _ = self.running()
        seen, all_of_it = [], threading.Event()

        def follow():
            for event in self.rig.events(session):
                seen.append(event)
            all_of_it.set()
        threading.Thread(target=follow, daemon=True).start()
        wait_for("progress", lambda: any(not e[0] for e in seen))
        self.finish(session)
        self.assertTrue(all_of_it.wait(10))
        states = [t["state"] for i, t in seen if i]
        self.assertEqual(states[-1], "TRAINING_DONE")
        self.assertIn("TRAINING_STOPPING", states)
        ids = [int(i) for i, _ in seen if i]
        self.assertEqual(ids, sorted(set(ids)))
        self.assertEqual([i for i, _ in self.rig.events(session, str(ids[-1]))], [])
        self.assertEqual([i for i, _ in self.rig.events(session, str(ids[0]))], [str(ids[-1])])
        rate = sum(1 for i, _ in seen if not i)
        self.assertLess(rate, 60)

    def test_a_waiting_get_answers_at_the_end(self):
        session, _ = self.running()
        answer = []
        t = threading.Thread(target=lambda: answer.append(self.rig.session(session, wait_s=20)))
        t.start()
        time.sleep(0.2)
        self.assertFalse(answer)
        self.finish(session)
        t.join(5)
        self.assertEqual(answer[0]["state"], "TRAINING_DONE")

    def test_ended_sessions_are_listed_and_forgotten(self):
        session, _ = self.running()
        with self.assertRaises(HttpError) as e:
            self.rig.call("DELETE", f"/v1/trainings/{session}")
        self.assertEqual(e.exception.status, 400)
        self.finish(session)
        page = self.rig.get("/v1/trainings?page_size=1")
        self.assertEqual(page["trainings"][0]["id"], session)
        if page.get("next_page_token"):
            rest = self.rig.get(f"/v1/trainings?page_token={page['next_page_token']}")
            self.assertNotIn(session, [t["id"] for t in rest["trainings"]])
        self.rig.call("DELETE", f"/v1/trainings/{session}")
        with self.assertRaises(HttpError) as e:
            self.rig.session(session)
        self.assertEqual(e.exception.status, 404)

    def test_a_role_of_another_life_is_refused(self):
        session, now = self.running()
        worker = self.worker.role(session, WORKER, 0)
        for task in (worker.task.replace(now["role_job"], now["graph_job"]), "j9-9/1/99", "x"):
            with self.assertRaises(grpc.RpcError) as e:
                worker.call("Join", "JoinRequest", "JoinResponse", task=task, address="127.0.0.1:1")
            self.assertEqual(e.exception.code(), grpc.StatusCode.FAILED_PRECONDITION)
            self.assertIn(f'worker 0: task "{task}" is of another life', e.exception.details())
            self.assertIn(f"tasks of job {now['role_job']}", e.exception.details())
        self.assertEqual(self.rig.session(session)["generation"], now["generation"])
        self.assertEqual(self.finish(session)["state"], "TRAINING_DONE")

    def test_what_is_no_session_says_so(self):
        for path, status in (("/v1/trainings/j1-1", 400), ("/v1/trainings/t77-7", 404)):
            with self.assertRaises(HttpError) as e:
                self.rig.get(path)
            self.assertEqual(e.exception.status, status)

    def test_counters_are_told(self):
        session, _ = self.running()
        wait_for("steps", lambda: int(self.rig.session(session)["counters"].get("steps", 0)) > 3)
        self.assertGreater(int(self.rig.session(session)["version"]), 0)


class LostIds(unittest.TestCase):
    """Redis has lost the trainer's sessions and its epoch."""

    def test_a_session_has_an_id_and_jobs_of_its_own(self):
        rig = Rig(OPS)
        self.addCleanup(rig.close)
        jobs, ids = [], []
        for _ in range(2):
            session = rig.train(document())
            ids.append(session)
            now = rig.wait_state(session, "TRAINING_RUNNING", "TRAINING_FAILED")
            self.assertEqual(now["state"], "TRAINING_RUNNING", now)
            jobs += [now["graph_job"], now["role_job"]]
            rig.call("POST", f"/v1/trainings/{session}:stop", {"abandon": True})
            rig.wait_state(session, *STATES[5:])
            rig.kill("trainer")
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(str(rig.dir / "redis.sock"))
                s.sendall(b"DEL millrace:trainer:epoch millrace:trainings millrace:trainings:documents\r\n")
                self.assertEqual(s.recv(16), b":3\r\n")
            rig.start_trainer()
            wait_for("the trainer", rig.trainer_answers)
        self.assertEqual(len(set(jobs)), 4, jobs)
        first, second = (tuple(map(int, i[1:].split("-"))) for i in ids)
        self.assertLess(first, second)  # newer sessions are listed after older ones


if __name__ == "__main__":
    unittest.main(verbosity=2)
