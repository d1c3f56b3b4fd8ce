#!/usr/bin/env python3
"""Roles that are programs: they get the right environment, two ranks connect, and their exit ends
the session."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from harness import Cluster, wait_for  # noqa: E402
from training_cases import ended, member, start  # noqa: E402


def has_torch():
    return subprocess.run(["/usr/bin/python3", "-c", "import torch.distributed"], capture_output=True).returncode == 0


def is_alive(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    return False


class Exec(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--workers", "5", "--threads", "1", "--lease", "3s", "--allow-exec").wait_for_workers(5)

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def tearDown(self):
        if any(e for _, e in getattr(self._outcome, "errors", []) if e) or self._outcome.result.failures:
            print(self.cluster.logs(30), file=sys.stderr)

    def begin(self, mode, restart=False, **env):
        return start(self.cluster, {"name": f"exec-{mode}", "data": {}, "roles": {"worker": {
            "count": 2, "restart": restart, "exec": ["/usr/bin/python3", "-B", str(HERE / "exec_role.py")],
            "env": {"MODE": mode, "GATEWAY": self.cluster.url, **env}}}, "limits": {"lease_s": 2, "recovering_s": 30, "stopping_s": 20}})

    def scores(self, session):
        entries = self.cluster.get(f"/v1/channels/{session}.scores/entries").get("entries", [])
        return [json.loads(e["value_json"]) for e in entries]

    def test_two_ranks_meet_and_end_their_session(self):
        session = self.begin("meet")
        t = ended(self.cluster, session, 40)
        self.assertEqual(t["state"], "TRAINING_DONE", t)
        self.assertEqual(t["reason"], "all workers ended")
        self.assertEqual({(s["rank"], s["sum"]) for s in self.scores(session)}, {(0, 3), (1, 3)})

    def test_two_sessions_at_once_do_not_share_a_port(self):
        sessions = [self.begin("meet") for _ in range(2)]
        for s in sessions:
            t = ended(self.cluster, s, 40)
            self.assertEqual(t["state"], "TRAINING_DONE", t)
        ports = [{score["port"] for score in self.scores(s)} for s in sessions]
        self.assertEqual([len(p) for p in ports], [1, 1])
        self.assertNotEqual(*ports)

    def test_a_program_that_fails_fails_its_session_with_its_last_words(self):
        t = ended(self.cluster, self.begin("fail"), 40)
        self.assertEqual(t["state"], "TRAINING_FAILED", t)
        self.assertIn("status 3", t["reason"])
        self.assertIn("the disk of rank 1 is full of cats", t["reason"])
        self.assertIn("worker 1", t["reason"])

    def test_a_program_dies_with_its_worker_and_is_started_again(self):
        session = self.begin("sleep", SECONDS="6")
        wait_for("both programs", lambda: len(self.scores(session)) == 2, 30)
        pids = {s["rank"]: s["pid"] for s in self.scores(session)}
        t = self.cluster.get(f"/v1/trainings/{session}")
        worker = next(p for p in self.cluster.pids("mr-worker") if pids[1] in self.children(p))
        left = pathlib.Path(os.readlink(f"/proc/{pids[1]}/cwd"))
        os.kill(worker, signal.SIGKILL)
        wait_for("the program to die", lambda: not is_alive(pids[1]), 5)
        wait_for("another", lambda: len([s for s in self.scores(session) if s["rank"] == 1]) == 2, 30)
        self.assertTrue(is_alive(pids[0]))
        over = ended(self.cluster, session, 40)
        self.assertEqual(over["state"], "TRAINING_DONE", over)
        self.assertNotEqual(member(t, "TRAINING_WORKER", 1)["incarnation"], member(over, "TRAINING_WORKER", 1)["incarnation"])
        wait_for("the next worker to remove what the killed one left", lambda: not left.exists(), 30)

    def kill_rank_1(self, session):
        wait_for("both programs", lambda: {s["rank"] for s in self.scores(session)} == {0, 1}, 30)
        pid = next(s["pid"] for s in self.scores(session) if s["rank"] == 1)
        os.kill(next(p for p in self.cluster.pids("mr-worker") if pid in self.children(p)), signal.SIGKILL)

    def test_a_program_that_runs_on_is_told_where_another_is_now(self):
        session = self.begin("follow")
        self.kill_rank_1(session)
        over = ended(self.cluster, session, 40)
        self.assertEqual(over["state"], "TRAINING_DONE", over)
        first, last = (s for s in self.scores(session) if s["rank"] == 0)
        self.assertEqual(first["pid"], last["pid"])
        self.assertNotEqual(first["at"], last["at"])
        self.assertEqual(last["at"], over["cluster"]["worker"][1])

    def test_programs_begin_again_together_if_their_document_says_so(self):
        # stopped by the session, or failed because the other rank died
        for fragile in ("no", "yes"):
            with self.subTest(fragile=fragile):
                session = self.begin("again", restart=True, FRAGILE=fragile)
                self.kill_rank_1(session)
                over = ended(self.cluster, session, 60)
                self.assertEqual(over["state"], "TRAINING_DONE", over)
                self.assertEqual(over["reason"], "all workers ended")
                lives = {(s["rank"], s["life"]): s for s in self.scores(session)}
                self.assertEqual(sorted(lives), [(0, 1), (0, 2), (1, 1), (1, 2)])
                self.assertNotEqual(lives[0, 1]["pid"], lives[0, 2]["pid"])
                self.assertGreater(lives[0, 2]["generation"], lives[0, 1]["generation"])
                self.assertEqual(lives[0, 2]["generation"], lives[1, 2]["generation"])

    @staticmethod
    def children(pid):
        found = set()
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(OSError):
                found.update(int(p) for p in (task / "children").read_text().split())
        return found

    def test_torch_trains_in_two_ranks(self):
        if not has_torch():
            self.skipTest("python3-torch is not installed: torch.distributed was NOT tried")
        session = self.begin("torch", OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo")
        t = ended(self.cluster, session, 60)
        self.assertEqual(t["state"], "TRAINING_DONE", t)
        self.assertLess(self.scores(session)[-1]["loss"], 0.01)


if __name__ == "__main__":
    unittest.main(verbosity=2)
