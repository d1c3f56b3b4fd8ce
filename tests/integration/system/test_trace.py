#!/usr/bin/env python3
"""The trace of a job survives the scheduler's death, in Redis or in files, and is deleted with the
job."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Cluster, HttpError, wait_for  # noqa: E402


def wide(width, op="inc", seconds=None):
    """`width` tasks and their sum."""
    args = (lambda i: [seconds, i]) if seconds is not None else (lambda i: [i])
    tasks = {f"n/{i:06d}": {"op": op, "args": args(i)} for i in range(width)}
    tasks["sum"] = {"op": "sum", "args": [[{"ref": f"n/{i:06d}"} for i in range(width)]]}
    return {"tasks": tasks, "targets": ["sum"]}


class Trace(unittest.TestCase):
    def start(self, *flags):
        self.cluster = c = Cluster("--workers", "2", "--lease", "3s", *flags)
        self.addCleanup(c.close)
        return c

    def redis(self, c, *args):
        r = subprocess.run(["redis-cli", "-s", str(c.dir / "c" / "run" / "redis.sock"), *args], capture_output=True, text=True)
        return r.stdout.strip()

    def page(self, c, job, query=""):
        return c.get(f"/v1/jobs/{job}/timeline{query}")

    def timeline(self, c, job, page=10000):
        """All spans, read in pages, and the number of spans that were not recorded."""
        spans, after, lost = [], 0, 0
        while True:
            r = self.page(c, job, f"?spans_max={page}&after_ns={after}")
            spans += r.get("spans", [])
            lost = int(r.get("not_recorded", 0))
            if not r.get("more"):
                return spans, lost
            after = spans[-1]["times"]["finished_ns"]

    def until_written(self, c, job):
        """Waits until the trace is written: until nothing is added for a second. The last half
        second may otherwise die with the scheduler."""
        path, seen = c.dir / "c" / "trace" / f"{job}.trace", [(0, 0)]

        def written():
            seen.append((int(self.redis(c, "XLEN", f"millrace:trace:{job}") or 0), path.stat().st_size if path.exists() else 0))
            return seen[-1] == seen[-2] != (0, 0)
        wait_for("the trace to be written", written, 60, every=1)

    def kill_scheduler(self, c):
        old = c.pids("mr-scheduler")[0]
        os.kill(old, signal.SIGKILL)

        def back():
            try:
                return [p for p in c.pids("mr-scheduler") if p != old] and c.get("/v1/cluster") is not None
            except (HttpError, OSError):
                return False
        wait_for("the scheduler to be back", back, 30)

    def retrying(self, call):
        def attempt():
            try:
                return call()
            except HttpError as e:
                if e.status in (502, 503, 504):
                    return None
                raise
        return wait_for("an answer", attempt, 30)

    def test_a_timeline_survives_the_scheduler(self):
        c = self.start()
        width = 20000
        done = c.run(wide(width))
        self.assertEqual(done["state"], "JOB_DONE")
        before, lost = self.timeline(c, done["id"], 7000)
        self.assertEqual((len(before), lost), (width + 1, 0))
        profile = {r["op"]: int(r["tasks"]) for r in c.get(f"/v1/jobs/{done['id']}/profile")["ops"]}
        self.assertEqual(profile, {"inc": width, "sum": 1})
        told = c.explain(done["id"], "n/000007")
        self.until_written(c, done["id"])
        self.kill_scheduler(c)
        after, lost = self.retrying(lambda: self.timeline(c, done["id"], 7000))
        self.assertEqual((len(after), lost), (width + 1, 0))
        self.assertEqual(len({s["key"] for s in after}), width + 1)
        self.assertEqual(after, before)
        profile = {r["op"]: int(r["tasks"]) for r in c.get(f"/v1/jobs/{done['id']}/profile")["ops"]}
        self.assertEqual(profile, {"inc": width, "sum": 1})
        again = c.explain(done["id"], "n/000007")
        self.assertEqual((again["times"], again["worker"]), (told["times"], told["worker"]))
        for s in after:
            t = {k: int(v) for k, v in s["times"].items()}
            self.assertLessEqual(t["ready_ns"], t["accounted_ns"])
            self.assertTrue(s["worker"].startswith("worker-0-"))

    def test_a_span_says_what_its_time_went_into(self):
        c = self.start()
        big = {"op": "array.full", "args": [{"literal": [4_000_000]}, 1.5]}
        again = {"op": "array.add", "args": [{"ref": "x"}, {"literal": 1.0}]}
        job = c.run({"tasks": {"x": big, "y": again, "nap": {"op": "sleep", "args": [0.05]}}, "targets": ["x", "y", "nap"],
                     "fuse": False})
        self.assertEqual(job["state"], "JOB_DONE")
        spans = {s["key"]: s for s in self.timeline(c, job["id"])[0]}
        self.assertEqual(set(spans), {"x", "y", "nap"})
        for s in spans.values():
            t = {k: int(v) for k, v in s["times"].items()}
            # the scheduler's and the workers' clock are one, so the steps of a task are in order
            steps = [t[k] for k in ("sent_ns", "received_ns", "started_ns", "finished_ns", "accounted_ns")]
            self.assertEqual(steps, sorted(steps), s)
            wall = t["finished_ns"] - t["started_ns"]
            self.assertLessEqual(int(s["input_ns"]) + int(s["output_ns"]), wall, s)
            self.assertLessEqual(int(s["late_ns"]), wall, s)  # may lie within the other two
            self.assertEqual(s["held"], "SPAN_HELD_UNSPECIFIED")
        self.assertGreater(int(spans["x"]["output_ns"]), 0)
        self.assertGreater(int(spans["y"]["input_ns"]), 0)
        self.assertEqual((spans["nap"]["input_ns"], spans["nap"]["output_ns"]), ("0", "0"))

    def tiles(self, c, job, query=""):
        """A picture of a timeline, after a check of its rows."""
        r = c.get(f"/v1/jobs/{job}/tiles?{query}")
        width = int(dict(p.split("=") for p in query.split("&")).get("width", 1024))
        for row in r["rows"]:
            self.assertEqual(sum(row["lengths"]), width)
            self.assertEqual((len(row["colors"]), len(row["fill"])), (len(row["lengths"]),) * 2)
            for color, fill in zip(row["colors"], row["fill"]):
                self.assertLessEqual(color, len(r["names"]))
                self.assertEqual(color == 0, fill == 0)
        return r

    def busy(self, r, names=None):
        """The share of a picture, 0-1, in which slots had one of the names."""
        numbers = [i + 1 for i, name in enumerate(r["names"]) if names is None or name in names]
        runs = [x for row in r["rows"] for x in zip(row["lengths"], row["colors"], row["fill"])]
        return sum(n * fill / 255 for n, color, fill in runs if color in numbers) / sum(n for n, _, _ in runs)

    def test_tiles_show_what_slots_did(self):
        c = self.start("--threads", "2")
        c.wait_for_workers(2)
        job = c.run(wide(40, "sleep", 0.05))["id"]
        spans = self.timeline(c, job)[0]
        took = sum(int(s["times"]["finished_ns"]) - int(s["times"]["started_ns"]) for s in spans)
        r = self.tiles(c, job, "width=500")
        window = int(r["until_ns"]) - int(r["from_ns"])
        self.assertEqual((len(r["rows"]), r["rows_count"]), (4, 4))
        self.assertEqual([(x["worker"], x["slot"]) for x in r["rows"]],
                         sorted((w, i) for w in {s["worker"] for s in spans} for i in (0, 1)))
        self.assertAlmostEqual(self.busy(r) * 4 * window / took, 1, delta=0.05)
        self.assertGreater(self.busy(r, {"sleep"}), 0.9 * self.busy(r))
        # a window of one row, around the middle span of a slot
        own = sorted((int(s["times"]["started_ns"]), int(s["times"]["finished_ns"]), s["key"]) for s in spans
                     if (s["worker"], s["slot"]) == (r["rows"][3]["worker"], 1))
        begin, end, key = own[len(own) // 2]
        edge = (end - begin) // 10
        q = f"width=10&first_row=3&rows=1&from_ns={begin + edge}&until_ns={end - edge}"
        row = self.tiles(c, job, q)["rows"]
        self.assertEqual([(x["lengths"], x["fill"], x["slot"]) for x in row], [([10], [255], 1)])
        there = c.get(f"/v1/jobs/{job}/timeline?from_ns={begin + edge}&until_ns={end - edge}"
                      f"&worker={r['rows'][3]['worker']}&slot=1")["spans"]
        self.assertEqual([s["key"] for s in there], [key])
        # by class: each slot has some class all the time
        r = self.tiles(c, job, "width=200&color=TILE_COLOR_CLASS")
        profile = c.get(f"/v1/jobs/{job}/profile")
        self.assertGreater(self.busy(r), 0.6)
        self.assertTrue(all(0 not in row["colors"] for row in r["rows"]))
        asleep = int(profile["classes"]["blocked"]) / int(profile["slot_ns"])
        self.assertAlmostEqual(self.busy(r, {"blocked"}), asleep, delta=0.15)
        for bad in ("width=5000", "rows=300", "from_ns=9&until_ns=8", "color=TILE_COLOR_X", "from_ns=5&until_ns=8"):
            with self.assertRaises(HttpError) as e:
                c.get(f"/v1/jobs/{job}/tiles?{bad}")
            self.assertEqual(e.exception.status, 400)

    def test_watching_a_job_that_runs_keeps_its_blocks_whole(self):
        """A block of spans stays open for a second, or a quarter of a second while somebody looks
        at the job. Each block is an entry of the job's stream."""
        c = self.start("--threads", "2")
        c.wait_for_workers(2)
        began, asked = time.time(), 0
        job = c.submit(wide(100, "sleep", 0.08))
        while c.get(f"/v1/jobs/{job}")["state"] != "JOB_DONE":
            c.get(f"/v1/jobs/{job}/tiles?width=100&color=TILE_COLOR_CLASS")
            c.get(f"/v1/jobs/{job}/timeline?from_ns={int(began * 1e9)}&until_ns={int(time.time() * 1e9)}")
            asked += 2
        took = time.time() - began
        self.until_written(c, job)
        self.assertLess(int(self.redis(c, "XLEN", f"millrace:trace:{job}")), 4 * took + 3, f"{asked} questions in {took:.1f} s")
        self.assertEqual(len(self.timeline(c, job)[0]), 101)

    def test_a_timeline_can_be_read_without_the_scheduler(self):
        c = self.start()
        width = 300
        job = c.run(wide(width))["id"]
        with_it = json.loads(c.cli("timeline", job, "--json")[1])
        self.assertEqual(len(with_it["spans"]), width + 1)
        self.until_written(c, job)
        scheduler = c.pids("mr-scheduler")[0]
        os.kill(scheduler, signal.SIGSTOP)  # the scheduler hangs
        try:
            without = json.loads(c.cli("timeline", job, "--offline", "--json")[1])
            self.assertEqual(without["spans"], with_it["spans"])
            self.assertEqual(without["not_recorded"], "0")
            text = c.cli("timeline", job, "--dir", str(c.dir / "c"), "--offline", "--spans", "10")[1]
            self.assertIn("there are more: --after", text)
            self.assertEqual(c.cli("timeline", "j1-99", "--offline", check=False)[0], 5)
        finally:
            os.kill(scheduler, signal.SIGCONT)

    def test_a_job_that_the_scheduler_died_in_has_spans_of_both_lives(self):
        c = self.start()
        width = 120
        job = c.submit(wide(width, "sleep", 0.05))
        wait_for("progress", lambda: int(c.job(job)["counts"]["done"]) > 30, 30)
        time.sleep(0.6)
        self.kill_scheduler(c)
        self.assertEqual(c.wait(job)["state"], "JOB_DONE")
        spans, _ = self.timeline(c, job)
        self.assertGreater(len({s["key"] for s in spans}), width // 2)

    def test_pages_are_bounded_however_long_the_keys_are(self):
        c = self.start()
        width = 12000
        name = "k" * 900
        tasks = {f"{name}{i:06d}": {"op": "inc", "args": [i]} for i in range(width)}
        job = c.run({"tasks": tasks, "targets": list(tasks)})["id"]
        first = self.page(c, job, "?spans_max=100000")
        self.assertTrue(first["more"])
        self.assertLess(len(first["spans"]), width)
        spans, lost = self.timeline(c, job, 100000)
        self.assertEqual((len(spans), len({s["key"] for s in spans}), lost), (width, width, 0))

    def jobs_with_traces(self, c):
        # ids that begin with j0- are segments of the cluster's events
        return [k for k in self.redis(c, "HKEYS", "millrace:traces").split() if not k.startswith("j0-")]

    def test_forgetting_a_job_deletes_its_trace(self):
        c = self.start()
        kept = c.run(wide(50))["id"]
        gone = c.run(wide(50))["id"]
        for job in (kept, gone):
            wait_for("the trace to be written", lambda j=job: self.redis(c, "EXISTS", f"millrace:trace:{j}") == "1", 10)
        c.call("DELETE", f"/v1/jobs/{gone}")
        wait_for("it to be deleted", lambda: self.redis(c, "EXISTS", f"millrace:trace:{gone}") == "0", 10)
        self.assertEqual(self.jobs_with_traces(c), [kept])
        self.assertEqual(len(self.timeline(c, kept)[0]), 51)
        # A deletion that a dead scheduler could not send is made by the next scheduler.
        self.redis(c, "XADD", "millrace:trace:j1-999999", "1-1", "b", "x")
        self.redis(c, "HSET", "millrace:traces", "j1-999999", "x")
        self.kill_scheduler(c)
        wait_for("it to be deleted", lambda: self.redis(c, "EXISTS", "millrace:trace:j1-999999") == "0", 10)
        self.assertEqual(self.jobs_with_traces(c), [kept])

    def test_past_the_cap_spans_go_to_files_and_without_them_are_counted(self):
        os.environ["MILLRACE_TRACE_JOB_BYTES"] = "1KiB"
        self.addCleanup(os.environ.pop, "MILLRACE_TRACE_JOB_BYTES")
        c = self.start()
        width = 30000
        job = c.run(wide(width))["id"]
        spans, lost = self.timeline(c, job)
        self.assertEqual((len(spans), lost), (width + 1, 0))
        path = c.dir / "c" / "trace" / f"{job}.trace"
        wait_for("the file", lambda: path.exists() and path.stat().st_size > 50000, 10)
        self.until_written(c, job)
        self.kill_scheduler(c)
        again, lost = self.retrying(lambda: self.timeline(c, job))
        self.assertEqual((again, lost), (spans, 0))
        path.unlink()
        left, lost = self.timeline(c, job)
        self.assertEqual(len(left) + lost, width + 1)
        self.assertGreater(lost, 0)
        path.touch()
        c.call("DELETE", f"/v1/jobs/{job}")
        wait_for("the file to go", lambda: not path.exists(), 10)

    def test_jobs_run_and_timelines_answer_while_redis_is_away(self):
        c = self.start()
        width = 60
        job = c.submit(wide(width, "sleep", 0.05))
        wait_for("progress", lambda: int(c.job(job)["counts"]["done"]) > 10, 30)
        redis = c.pids("redis-server")[0]
        os.kill(redis, signal.SIGSTOP)
        try:
            done = int(c.job(job)["counts"]["done"])
            wait_for("progress without Redis", lambda: int(c.job(job)["counts"]["done"]) > done + 10, 30)
            r = self.page(c, job)
            self.assertTrue(r.get("spans"))
        finally:
            os.kill(redis, signal.SIGCONT)
        self.assertEqual(c.wait(job)["state"], "JOB_DONE")
        spans, lost = self.timeline(c, job)
        self.assertEqual((len(spans), lost), (width + 1, 0))


if __name__ == "__main__":
    unittest.main(verbosity=2)
