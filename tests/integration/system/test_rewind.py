#!/usr/bin/env python3
"""Redis and the scheduler lose their state at the same time, while workers, store and trainer go
on. Values from before are never taken for values of the new state, and a client that asks for an
old job is told that it is gone."""
import http.client
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Cluster, HttpError, wait_for  # noqa: E402

WIDTH = 200


def job_of(base):
    """Small values and a large one, all of them targets; the keys and their order do not depend on
    `base`."""
    tasks = {f"k{i:03d}": {"op": "add", "args": [base, i]} for i in range(WIDTH)}
    tasks["large"] = {"op": "array.full", "args": [[5000], base]}
    tasks["sum"] = {"op": "array.sum", "args": [{"ref": "large"}]}
    return {"tasks": tasks, "targets": list(tasks)}


class Rewind(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster("--workers", "4", "--threads", "1")
        self.addCleanup(self.cluster.close)
        self.journal = self.cluster.dir / "c" / "redis" / "appendonlydir"

    def killed(self, *programs):
        """Kills all processes of these programs."""
        for program in programs:
            for pid in self.cluster.pids(program):
                os.kill(pid, signal.SIGKILL)

    def rewind(self, copy=None):
        """Redis comes back empty, or from an older copy, together with a scheduler without memory."""
        up, workers = self.cluster.up.pid, self.cluster.pids("mr-worker")
        os.kill(up, signal.SIGSTOP)
        try:
            self.killed("mr-scheduler", "redis-server")
            shutil.rmtree(self.journal)
            if copy:
                shutil.copytree(copy, self.journal)
        finally:
            os.kill(up, signal.SIGCONT)
        self.here(4)
        self.assertEqual(self.cluster.pids("mr-worker"), workers, "the workers were to live on")

    def here(self, workers):
        """Waits until so many workers are connected that the new scheduler knows which worker has
        died."""
        def connected():
            try:
                return len([w for w in self.cluster.workers() if w["state"] == "connected"]) == workers
            except (OSError, HttpError):
                return False
        wait_for("the workers to be back", connected, 60)

    def run_job(self, base):
        c = self.cluster
        job = c.submit(job_of(base))
        self.assertEqual(c.wait(job)["state"], "JOB_DONE")
        return job

    def check_values(self, job, base):
        keys = [f"k{i:03d}" for i in range(WIDTH)]
        rows = {}
        for at in range(0, WIDTH, 50):
            rows.update({k: self.cluster.value(job, k) for k in keys[at:at + 50]})
        wrong = {k: v for k, v in rows.items() if v != base + int(k[1:])}
        self.assertEqual(wrong, {})
        self.assertEqual(self.cluster.value(job, "sum"), 5000 * base)

    def check_is_refused(self, job):
        for method, path in (("GET", f"/v1/jobs/{job}?wait_s=5"), ("GET", f"/v1/jobs/{job}/results/k000?wait_s=5"),
                             ("GET", f"/v1/jobs/{job}/events"), ("POST", f"/v1/jobs/{job}:cancel"),
                             ("POST", f"/v1/jobs/{job}:retry"), ("DELETE", f"/v1/jobs/{job}")):
            status, _, body = self.cluster.request(method, path, b"{}" if method == "POST" else None,
                                                   {"Content-Type": "application/json"} if method == "POST" else None)
            self.assertEqual((path, status), (path, 404), body)
            self.assertIn(b"is from a journal that Redis has lost", body)

    def info(self):
        return self.cluster.get("/v1/cluster")

    def test_values_of_a_dead_cluster_are_nobodys(self):
        old, told = [self.run_job(1000)], self.info()
        for i in range(2):
            self.rewind()
            young = self.run_job(2000 + 1000 * i)
            self.assertNotIn(young, old)
            self.check_values(young, 2000 + 1000 * i)
            for job in old:
                self.check_is_refused(job)
            now = self.info()
            self.assertGreater(now["epoch"], told["epoch"])
            self.assertNotEqual(now["incarnation"], told["incarnation"])
            old.append(young)
            told = now
        self.assertIn("session.other_life", self.cluster.log("scheduler"))

    def test_who_waits_for_a_lost_job_is_told(self):
        """Clients that waited for a job when its cluster lost its state: for its end, a result, its
        events, and in the terminal. None of them gets an answer about another job, and none
        waits for ever."""
        c = self.cluster
        job = c.submit({"tasks": {"k000": {"op": "sleep", "args": [600, 1]}}, "targets": ["k000"]})
        wait_for("it to run", lambda: c.job(job)["state"] == "JOB_RUNNING")
        said = {}

        def ask(what):
            def until_told():
                try:
                    if what == "watch":
                        said[what] = "".join(map(str, c.cli("watch", job, check=False)))
                    else:
                        headers = {"Accept": "text/event-stream"} if what == "/events" else None
                        said[what] = c.request("GET", f"/v1/jobs/{job}{what}", headers=headers)[2].decode()
                except (OSError, http.client.HTTPException):
                    return False  # the gateway, or its scheduler, is away
                return "is from a journal that Redis has lost" in said[what]
            wait_for(f"{what} to end", until_told, 90)
        whats = ["?wait_s=60", "/results/k000?wait_s=60", "/results?wait_s=60", "/events", "watch"]
        threads = [threading.Thread(target=ask, args=(what,)) for what in whats]
        for t in threads:
            t.start()
        self.rewind()
        young = self.run_job(5000)
        for t in threads:
            t.join(200)
            self.assertFalse(t.is_alive(), said)
        for what in whats:
            self.assertIn("is from a journal that Redis has lost", said.get(what, ""), what)
            self.assertNotIn(young, said[what], what)
            self.assertNotIn("JOB_DONE", said[what], what)
        self.check_values(young, 5000)

    def test_nor_are_those_of_a_start_that_redis_has_lost(self):
        c = self.cluster
        kept = self.run_job(1000)
        with tempfile.TemporaryDirectory() as place:
            copy = pathlib.Path(place) / "copy"
            shutil.copytree(self.journal, copy)
            self.killed("mr-scheduler")
            self.here(4)
            lost, told = self.run_job(2000), self.info()
            self.rewind(copy)
        young = self.run_job(3000)
        self.assertNotIn(young, (kept, lost))
        self.check_values(young, 3000)
        self.check_is_refused(lost)
        self.assertEqual(c.job(kept)["state"], "JOB_DONE")  # the copy of the journal has this job
        self.check_values(kept, 1000)
        # an event number from the time that Redis has lost
        events = [(id, job["state"]) for id, job in c.events(kept, last_id="1000000")]
        self.assertEqual([state for _, state in events], ["JOB_DONE"])
        self.assertGreater(self.info()["epoch"], told["epoch"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
