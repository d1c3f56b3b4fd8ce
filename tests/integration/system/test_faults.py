#!/usr/bin/env python3
"""Every accepted job reaches exactly one terminal state, with the right result, whatever dies."""
import collections
import http.client
import os
import pathlib
import signal
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Cluster, HttpError, wait_for  # noqa: E402

PLUGIN = os.environ.get("MILLRACE_TEST_PLUGIN", "")


def layered(width, layers, bytes_each=0, seconds=0.0, every=1):
    """A graph of `width` chains with `layers` recorded tasks each, of which every `every`-th waits,
    and a sum over all chains."""
    tasks = {}
    for i in range(width):
        tasks[f"n/{i:05d}/000"] = {"op": "test.record", "args": [i, seconds if i % every == 0 else 0]}
        for k in range(1, layers):
            before = {"ref": f"n/{i:05d}/{k - 1:03d}"}
            tasks[f"n/{i:05d}/{k:03d}"] = {"op": "test.record", "args": [before, seconds if (i + k) % every == 0 else 0]}
        if bytes_each:
            tasks[f"b/{i:05d}"] = {"op": "test.record", "args": [i, 0, bytes_each]}
            tasks[f"s/{i:05d}"] = {"op": "test.size", "args": [{"ref": f"b/{i:05d}"}]}
    tasks["sum"] = {"op": "sum", "args": [[{"ref": f"n/{i:05d}/{layers - 1:03d}"} for i in range(width)]]}
    targets = ["sum"]
    if bytes_each:
        tasks["size"] = {"op": "sum", "args": [[{"ref": f"s/{i:05d}"} for i in range(width)]]}
        targets.append("size")
    return {"tasks": tasks, "targets": targets}


class Faults(unittest.TestCase):
    def setUp(self):
        self.cluster = None

    def tearDown(self):
        if self.cluster:
            failed = any(e for _, e in getattr(self._outcome, "errors", []) if e) or getattr(self._outcome.result, "errors", [])
            if failed:
                print(self.cluster.output(), self.cluster.logs(), file=sys.stderr)
            self.cluster.close()

    def start(self, *flags, workers=4, says=None):
        record = f"/tmp/mr-record-{os.getpid()}-{self.id().rsplit('.', 1)[1]}"
        self.record = pathlib.Path(record)
        self.record.unlink(missing_ok=True)
        self.cluster = Cluster("--workers", str(workers), "--threads", "1", "--lease", "3s", "--plugin", PLUGIN, *flags,
                               env={"MILLRACE_RECORD": record}, says=says)
        self.addCleanup(self.record.unlink, missing_ok=True)
        return self.cluster

    def starts(self):
        """(job, index) -> how many attempts of the task have started, as the workers recorded."""
        counts = collections.Counter()
        for line in self.record.read_text().splitlines():
            job, index, _ = line.split()
            counts[int(job), int(index)] += 1
        return counts

    def some_progress(self, c, job, least):
        def enough():
            try:
                return c.job(job)["counts"]["done"]
            except HttpError:
                return 0
        wait_for("progress", lambda: int(enough() or 0) >= least, 60)

    def check_sum(self, c, job, width):
        self.assertEqual(c.value(job, "sum"), width * (width - 1) // 2)

    def test_a_killed_worker_costs_only_time(self):
        c = self.start()
        width = 1000
        graph = layered(width, 18, bytes_each=20000, seconds=0.002, every=5)
        self.assertEqual(len(graph["tasks"]), 20002)
        job = c.submit(graph)
        self.some_progress(c, job, 4000)
        os.kill(c.pid_of("--name=worker-0-1"), signal.SIGKILL)
        done = c.wait(job, 180)
        self.assertEqual(done["state"], "JOB_DONE", done)
        self.check_sum(c, job, width)
        self.assertEqual(c.value(job, "size"), width * 20000)
        wait_for("the worker to be replaced", lambda: len([w for w in c.workers() if w["state"] == "connected"]) == 4, 20)

    def test_a_retried_job_runs_on_after_the_scheduler_dies(self):
        with tempfile.TemporaryDirectory() as data:
            c = self.start("--data-root", data)
            text = os.path.join(data, "late.txt")
            tasks = {"text": {"op": "text.read", "args": [text]}}
            job = c.submit({"tasks": tasks, "targets": ["text"], "on_error": "continue"})
            self.assertEqual(c.wait(job, 60)["state"], "JOB_FAILED")
            pathlib.Path(text).write_text("here now")
            # keeps the job from ending before the scheduler is killed
            for pid in c.pids("mr-worker"):
                os.kill(pid, signal.SIGSTOP)
            c.call("POST", f"/v1/jobs/{job}:retry", {})
            time.sleep(0.5)  # gives the journal time to receive the record
            os.kill(c.pids("mr-scheduler")[0], signal.SIGKILL)
            for pid in c.pids("mr-worker"):
                os.kill(pid, signal.SIGCONT)
            done = c.wait(job, 120)
            self.assertEqual(done["state"], "JOB_DONE", done)

    def test_a_job_finds_the_keys_of_an_older_one_after_the_scheduler_dies(self):
        c = self.start()
        forgotten = c.submit({"tasks": {"x": {"value": 1}}, "targets": ["x"]})
        slow = {"tasks": {"k": {"op": "test.record", "args": [7, 5]}}, "targets": ["k"], "namespace": "shared"}
        # the forgotten job's slot has a lower number than this job's, and the next job takes it
        older = c.submit(slow)
        c.call("DELETE", f"/v1/jobs/{forgotten}")
        younger = c.submit({"tasks": {"y": {"op": "add", "args": [{"ref": "k"}, 1]}}, "targets": ["y"], "namespace": "shared"})
        os.kill(c.pids("mr-scheduler")[0], signal.SIGKILL)
        self.assertEqual(c.wait(older, 60)["state"], "JOB_DONE")
        self.assertEqual(c.wait(younger, 60)["state"], "JOB_DONE")
        self.assertEqual(c.value(younger, "y"), 8)

    def test_a_killed_scheduler_repeats_nothing_that_is_held(self):
        c = self.start()
        width = 400
        job = c.submit(layered(width, 8, seconds=0.01, every=2))
        seen, done = [], threading.Event()

        def follow():
            last = None
            while not done.is_set():
                try:
                    for event_id, info in c.events(job, last):
                        last = event_id or last
                        seen.append((event_id, info["state"]))
                    if seen and seen[-1][1] in ("JOB_DONE", "JOB_FAILED"):
                        return
                except (OSError, http.client.HTTPException, HttpError, AssertionError):
                    pass
                time.sleep(0.1)
        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        self.some_progress(c, job, 800)
        os.kill(c.pids("mr-scheduler")[0], signal.SIGKILL)
        finished = c.wait(job, 180)
        self.assertEqual(finished["state"], "JOB_DONE", finished)
        self.check_sum(c, job, width)
        follower.join(20)
        done.set()
        self.assertEqual(seen[-1][1], "JOB_DONE")
        ids = [int(i) for i, _ in seen if i]
        self.assertEqual(ids, sorted(set(ids)), "an event came twice or out of order")
        again = [k for k, n in self.starts().items() if n > 1]
        self.assertEqual(again, [], "these tasks started again though a living worker held them")

    def test_a_job_survives_a_scheduler_that_dies_right_after_accepting(self):
        c = self.start()
        job = c.submit(layered(50, 4, seconds=0.05))
        os.kill(c.pids("mr-scheduler")[0], signal.SIGKILL)
        self.assertEqual(c.wait(job, 120)["state"], "JOB_DONE")
        self.check_sum(c, job, 50)

    def test_a_killed_object_store_costs_only_time(self):
        c = self.start()
        width = 300
        job = c.submit(layered(width, 10, bytes_each=50000, seconds=0.01, every=2))
        self.some_progress(c, job, 600)
        os.kill(c.pids("mr-objectstore")[0], signal.SIGKILL)
        done = c.wait(job, 180)
        self.assertEqual(done["state"], "JOB_DONE", done)
        self.check_sum(c, job, width)
        self.assertEqual(c.value(job, "size"), width * 50000)

    def test_an_object_store_that_slept_past_its_lease_comes_back(self):
        c = self.start()
        job = c.submit({"tasks": {"x": {"op": "array.full", "args": [[1000, 200], 1.5]}, "sum": {"op": "array.sum", "args": [{"ref": "x"}]}},
                        "targets": ["x", "sum"]})
        self.assertEqual(c.wait(job, 60)["state"], "JOB_DONE")

        def joined():
            return c.log("scheduler").count("event=store.joined")
        before = joined()
        store = c.pids("mr-objectstore")[0]
        os.kill(store, signal.SIGSTOP)
        try:
            wait_for("the store to be lost", lambda: "event=store.lost" in c.log("scheduler"), 40)
        finally:
            os.kill(store, signal.SIGCONT)
        wait_for("the store to join again", lambda: joined() > before, 30)
        # replayed from the journal, or computed again
        self.assertEqual(c.value(job, "sum"), 300000.0)
        after = c.submit({"tasks": {"x": {"op": "array.full", "args": [[1000, 200], 2.5]}, "sum": {"op": "array.sum", "args": [{"ref": "x"}]}},
                          "targets": ["x", "sum"]})
        self.assertEqual(c.wait(after, 60)["state"], "JOB_DONE")
        self.assertEqual(c.value(after, "sum"), 500000.0)

    def test_a_crashed_machine_that_is_there_again_waits_for_no_lease(self):
        """`kill -9` of `up`, and `up` again."""
        c = self.start(workers=2)
        tasks = {"big": {"op": "test.record", "args": [7, 0, 20000]}, "size": {"op": "test.size", "args": [{"ref": "big"}]},
                 "gate": {"op": "test.record", "args": [5, 3]}, "end": {"op": "sum", "args": [[{"ref": "size"}, {"ref": "gate"}]]}}
        job = c.submit({"tasks": tasks, "targets": ["big", "end"]})
        # an object, which the journal locates in a store
        self.assertEqual(len(c.value(job, "big")), 20000)
        c.kill()
        c.start()
        self.assertEqual(c.wait(job, 120)["state"], "JOB_DONE")
        self.assertEqual(c.value(job, "end"), 20005)
        log = c.log("scheduler")
        # the node's new store has replaced the old one
        self.assertEqual(log.count("store.replaced"), 1, log)
        self.assertEqual(log.count("store.lost"), 0, log)  # and no lease has expired

    def test_redis_stopped_for_ten_seconds(self):
        c = self.start()
        width = 200
        running = c.submit(layered(width, 10, seconds=0.02))
        redis = c.pids("redis-server")[0]
        self.some_progress(c, running, 100)
        os.kill(redis, signal.SIGSTOP)
        answers = []

        def submit():
            try:
                answers.append(c.submit({"tasks": {"x": {"op": "inc", "args": [1]}}, "targets": ["x"]}))
            except (HttpError, OSError) as e:
                answers.append(e)
        late = threading.Thread(target=submit, daemon=True)
        late.start()
        time.sleep(10)
        acknowledged_while_away = bool(answers) and isinstance(answers[0], str)
        os.kill(redis, signal.SIGCONT)
        late.join(60)
        self.assertFalse(acknowledged_while_away, "a job was acknowledged while Redis could not have it")
        self.assertTrue(answers)
        if isinstance(answers[0], str):
            self.assertEqual(c.wait(answers[0])["state"], "JOB_DONE")
        else:
            self.assertIn(getattr(answers[0], "status", 503), (503, 504))
        self.assertEqual(c.wait(running, 120)["state"], "JOB_DONE")
        self.check_sum(c, running, width)

    def test_redis_restarted_empty(self):
        c = self.start()
        width = 200
        job = c.submit(layered(width, 10, seconds=0.02))
        finished = c.run({"tasks": {"x": {"op": "inc", "args": [41]}}, "targets": ["x"]})
        self.some_progress(c, job, 200)
        aof = c.dir / "c" / "redis" / "appendonlydir"
        redis = c.pids("redis-server")[0]
        os.kill(redis, signal.SIGKILL)
        for path in aof.glob("*"):
            path.unlink()
        self.assertEqual(c.wait(job, 120)["state"], "JOB_DONE")
        self.check_sum(c, job, width)
        self.assertEqual(c.value(finished["id"], "x"), 42)
        # The journal was replaced by a snapshot: a scheduler that dies now must still know both
        # jobs.
        os.kill(c.pids("mr-scheduler")[0], signal.SIGKILL)
        self.assertEqual(c.wait(job, 60)["state"], "JOB_DONE")
        self.check_sum(c, job, width)
        self.assertEqual(c.value(finished["id"], "x"), 42)

    def test_a_cancel_waits_for_redis_and_is_kept(self):
        c = self.start()
        job = c.submit({"tasks": {"x": {"op": "sleep", "args": [300, 1]}}, "targets": ["x"]})
        wait_for("the job to run", lambda: c.job(job)["state"] == "JOB_RUNNING", 30)
        redis, scheduler = c.pids("redis-server")[0], c.pids("mr-scheduler")[0]
        answers = []
        os.kill(redis, signal.SIGSTOP)
        try:
            self.assert_unavailable(c, "Cancel", job)
            cancel = threading.Thread(target=lambda: answers.append(c.call("POST", f"/v1/jobs/{job}:cancel", {})))
            cancel.start()
            time.sleep(1)
            self.assertEqual(answers, [])
        finally:
            os.kill(redis, signal.SIGCONT)
        cancel.join(30)
        os.kill(scheduler, signal.SIGKILL)
        self.assertEqual(answers[0]["state"], "JOB_CANCELLED")
        self.assertEqual(c.wait(job, 60)["state"], "JOB_CANCELLED")

    def assert_unavailable(self, c, method, job):
        """The job has a deadline of 2 s; the scheduler announces it shortly before."""
        try:
            import grpc
        except ImportError:
            return
        with grpc.insecure_channel(c.scheduler) as channel:
            call = channel.unary_unary(f"/millrace.v1.Jobs/{method}", lambda text: b"\x0a" + bytes([len(text)]) + text.encode(),
                                       lambda data: data)
            begin = time.monotonic()
            with self.assertRaises(grpc.RpcError) as e:
                call(job, timeout=2, metadata=[("authorization", f"Bearer {c.secret()}")])
            self.assertEqual(e.exception.code(), grpc.StatusCode.UNAVAILABLE, e.exception)
            self.assertIn("ask again", e.exception.details())
            self.assertGreater(time.monotonic() - begin, 1.5)

    def test_what_was_answered_holds_after_the_scheduler_dies(self):
        c = self.start()
        slow = {"tasks": {"x": {"op": "test.record", "args": [7, 2]}}, "targets": ["x"]}
        done, job = c.submit({"tasks": {"x": {"op": "inc", "args": [1]}}, "targets": ["x"]}), c.submit(slow)
        self.assertEqual(c.wait(done)["state"], "JOB_DONE")
        self.assertEqual(c.call("POST", f"/v1/jobs/{job}:cancel", {})["state"], "JOB_CANCELLED")
        os.kill(c.pids("mr-scheduler")[0], signal.SIGKILL)
        self.assertEqual(c.wait(job, 60)["state"], "JOB_CANCELLED")
        self.assertEqual(c.request("DELETE", f"/v1/jobs/{done}")[0], 200)
        os.kill(c.pids("mr-scheduler")[0], signal.SIGKILL)
        self.assertEqual(c.wait(job, 60)["state"], "JOB_CANCELLED")
        status, _, body = c.request("GET", f"/v1/jobs/{done}")
        self.assertEqual(status, 404)
        self.assertIn(b"forgotten", body)
        # deleting it again is harmless
        self.assertEqual(c.request("DELETE", f"/v1/jobs/{done}")[0], 200)
        for _ in range(2):
            self.assertEqual(c.call("POST", f"/v1/jobs/{job}:retry", {})["state"], "JOB_RUNNING")
        os.kill(c.pids("mr-scheduler")[0], signal.SIGKILL)
        self.assertEqual(c.wait(job, 60)["state"], "JOB_DONE")
        self.assertEqual(c.value(job, "x"), 7)
        self.assertEqual(c.call("POST", f"/v1/jobs/{job}:retry", {})["state"], "JOB_DONE")

    def test_the_gateway_restarted(self):
        c = self.start()
        job = c.submit(layered(100, 10, seconds=0.02))
        self.some_progress(c, job, 50)
        os.kill(c.pids("mr-gateway")[0], signal.SIGKILL)
        self.assertEqual(c.wait(job, 120)["state"], "JOB_DONE")
        self.check_sum(c, job, 100)

    def test_a_worker_asleep_for_longer_than_its_lease(self):
        c = self.start()
        width = 400
        job = c.submit(layered(width, 8, seconds=0.01, every=2))
        self.some_progress(c, job, 400)
        pid = c.pid_of("--name=worker-0-2")
        os.kill(pid, signal.SIGSTOP)
        time.sleep(6)
        os.kill(pid, signal.SIGCONT)
        done = c.wait(job, 180)
        self.assertEqual(done["state"], "JOB_DONE", done)
        self.check_sum(c, job, width)
        wait_for("the worker to come back", lambda: len([w for w in c.workers() if w["state"] == "connected"]) == 4, 30)

    def test_a_poison_task_fails_with_its_story_and_nobody_else(self):
        c = self.start(workers=2)
        crash = os.environ.get("MILLRACE_EXAMPLE_PLUGIN")
        if not crash:
            self.skipTest("MILLRACE_EXAMPLE_PLUGIN is not set")
        c.close()
        c = self.cluster = Cluster("--workers", "2", "--threads", "1", "--lease", "3s", "--plugin", PLUGIN, "--plugin", crash)
        tasks = {f"ok/{i}": {"op": "sleep", "args": [0.05, i]} for i in range(40)}
        tasks["bad"] = {"op": "example.crash", "args": []}
        job = c.submit({"tasks": tasks, "targets": list(tasks), "on_error": "continue"})
        done = c.wait(job, 180)
        self.assertEqual(done["state"], "JOB_FAILED", done)
        self.assertEqual(done["error"]["key"], "bad", done["error"])
        self.assertEqual(int(done["counts"]["erred"]), 1, done["counts"])
        values = c.results(job, *[f"ok/{i}" for i in range(40)])["results"]
        self.assertEqual(values, {f"ok/{i}": i for i in range(40)})

    def test_up_keeps_its_only_worker_through_three_poison_tasks(self):
        crash = os.environ.get("MILLRACE_EXAMPLE_PLUGIN")
        if not crash:
            self.skipTest("MILLRACE_EXAMPLE_PLUGIN is not set")
        c = self.start("--plugin", crash, workers=1)
        # nine crashes within a minute
        tasks = {f"bad/{i}": {"op": "example.crash", "args": []} for i in range(3)}
        tasks["ok"] = {"op": "inc", "args": [1]}
        job = c.submit({"tasks": tasks, "targets": list(tasks), "on_error": "continue"})
        done = c.wait(job, 120)
        self.assertEqual(done["state"], "JOB_FAILED", done)
        self.assertEqual(int(done["counts"]["erred"]), 3, done["counts"])
        self.assertEqual(c.value(job, "ok"), 2)
        self.assertIsNone(c.up.poll())

    def test_up_outlives_whoever_read_what_it_says(self):
        reader, writer = os.pipe()
        self.addCleanup(os.close, writer)
        os.close(reader)  # `up` can write none of its messages
        c = self.start(workers=1, says=writer)
        old = c.pid_of("--name=worker-0-0")
        os.kill(old, signal.SIGKILL)  # now `up` tries to write that the worker is started again
        wait_for("the worker to be replaced", lambda: c.pid_of("--name=worker-0-0") not in (None, old), 20)
        job = c.submit({"tasks": {"x": {"op": "inc", "args": [1]}}, "targets": ["x"]})
        self.assertEqual(c.wait(job, 60)["state"], "JOB_DONE")
        self.assertEqual(c.stop(), 0)

    def test_ops_of_workers_that_are_coming_back_are_not_unknown(self):
        c = self.start(workers=2)
        scheduler = c.pids("mr-scheduler")[0]
        for pid in c.pids("mr-worker"):
            os.kill(pid, signal.SIGSTOP)
        os.kill(scheduler, signal.SIGKILL)
        wait_for("another scheduler", lambda: [p for p in c.pids("mr-scheduler") if p != scheduler], 20)
        answers, graph = [], {"tasks": {"x": {"op": "test.record", "args": [7]}}, "targets": ["x"]}

        def accepted():
            try:
                return c.submit(graph)
            except HttpError as e:
                answers.append(e)
                if len(answers) == 10:
                    for pid in c.pids("mr-worker"):
                        os.kill(pid, signal.SIGCONT)
                return None
        job = wait_for("the job to be accepted", accepted, 30, every=0.1)
        self.assertEqual([a.status for a in answers], [503] * len(answers), answers[-1])
        self.assertTrue([a for a in answers if "test.record" in a.body], answers[-1])
        self.assertEqual(c.wait(job)["state"], "JOB_DONE")


if __name__ == "__main__":
    unittest.main(verbosity=2)
