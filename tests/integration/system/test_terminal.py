#!/usr/bin/env python3
"""The command line in a terminal of 80 columns: tables that fit, `top` and `watch` that redraw in
place, Ctrl-C in `run`. Afterwards the terminal must be in its first state."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, SLOW, Cluster, bin_dir, wait_for  # noqa: E402
from terminal import ENTER, LEAVE, Terminal, lines, width  # noqa: E402

PROGRAM = str(bin_dir() / "millrace")
KEY = "a-namespace-of-some-team/of/a/key/that/is/very/long/indeed/and/wide/漢字漢字漢字/fold-"
GRAPH = {"name": "a job with a name that is longer than any column of a terminal should be: 漢字漢字漢字漢字漢字漢字",
         "tasks": {KEY + "0": {"op": "array.arange", "args": [1234567]},
                   KEY + "1": {"op": "array.sum", "args": [{"ref": KEY + "0"}], "persist": KEY + "sum"},
                   KEY + "2": {"op": "add", "args": [{"ref": KEY + "1"}, {"ref": KEY + "0"}]},
                   "bad": {"op": "fail", "args": ["on purpose, with a sentence that goes on for longer than one line of a terminal has columns"]}},
         "targets": [KEY + "1", KEY + "2", "bad"], "on_error": "continue", "labels": {"of": "terminal"}}
SLEEP = {"name": "sleeper", "tasks": {"a": {"op": "inc", "args": [1]}, KEY + "s": {"op": "sleep", "args": [300, 1]}}, "targets": ["a", KEY + "s"]}


class OnTerminal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster("--workers", "2", "--threads", "1")
        cls.job = cls.c.submit(GRAPH)
        cls.c.wait(cls.job)
        cls.c.call("PUT", "/v1/names/" + "n" * 90, {"object": cls.place()})
        for name in ("c" * 70, "short"):
            cls.c.call("POST", f"/v1/channels/{name}:append", {"value_json": ["1"]})
            cls.c.call("PUT", f"/v1/queues/{name}", {"items_max": 123456})

    @classmethod
    def place(cls):
        places = cls.c.results(cls.job)["places"]
        return next(iter(places.values()))["object"]

    @classmethod
    def tearDownClass(cls):
        cls.c.close()

    def env(self, **more):
        env = {k: v for k, v in self.c.env.items() if k not in ("COLUMNS", "LINES")}
        return dict(env, MILLRACE_URL=self.c.url, **more)

    def terminal(self, *args, columns=80, stdout=None, env=None, **kw):
        return Terminal([PROGRAM, *args], self.env(**(env or {})), columns=columns, stdout=stdout, **kw)

    def shown(self, *args, columns=80, **kw):
        with self.terminal(*args, columns=columns, **kw) as t:
            code = t.end()
            self.assertEqual(code, 0, t.text())
            return lines(t.text())

    def piped(self, *args):
        return subprocess.run([PROGRAM, *args], env=self.env(), cwd=ROOT, stdout=subprocess.PIPE, text=True, timeout=60 * SLOW, check=True).stdout

    def sleeper(self):
        job = self.c.submit(SLEEP)
        self.addCleanup(self.c.call, "POST", f"/v1/jobs/{job}:cancel", {})
        wait_for("the sleeper to run", lambda: self.c.job(job)["counts"].get("running"))
        return job

    TABLES = [["status"], ["status", "JOB"], ["workers"], ["ls"], ["ls", "--objects"], ["ops"], ["ops", "array.mean"], ["graph", "JOB"],
              ["profile", "JOB"], ["timeline", "JOB"], ["explain", "JOB", KEY + "2"], ["channel", "list"], ["queue", "list"],
              ["queue", "get", "c" * 70], ["trainings"], ["template", "list"], ["top", "-n", "1"], ["help"]]

    def test_every_table_fits(self):
        self.c.call("POST", "/v1/templates?name=" + "t" * 60, {"tasks": {"a": {"op": "inc", "args": [1]}}, "targets": ["a"]})
        for args in self.TABLES:
            args = [self.job if a == "JOB" else a for a in args]
            for columns in (80, 100):
                for line in self.shown(*args, columns=columns):
                    # a single word is not broken: a name in a list of names
                    alone = " " not in line.strip()
                    self.assertTrue(width(line) <= columns or alone, f"{args} at {columns}: {width(line)}: {line}")
            whole = self.piped(*args)
            self.assertNotIn("…", re.sub("… and| … ", "", whole), args)
            self.assertNotIn("\x1b", whole, args)

    def test_keys_are_cut_in_their_middle_and_only_on_a_terminal(self):
        table = self.shown("timeline", self.job)
        row = next(line for line in table if "array.sum" in line)
        self.assertRegex(row, r"a-name\S*…\S*fold-1")
        self.assertIn(KEY + "1", self.piped("timeline", self.job))
        row = next(line for line in self.shown("ls") if "nnn" in line)
        self.assertIn("n…n", row)
        self.assertIn("n" * 90, self.piped("ls"))
        row = next(line for line in self.shown("queue", "list") if "c…c" in line)
        self.assertIn(" 123456 ", row)
        self.assertIn(" 123456 ", next(line for line in self.shown("queue", "list", columns=40) if "c…c" in line) + " 123456 ")
        self.assertIn(self.job, "".join(self.shown("status", columns=50)))
        self.assertIn(GRAPH["name"], self.piped("status"))

    def test_a_terminal_that_does_not_know_its_size(self):
        with Terminal([PROGRAM, "status"], self.env(), columns=0, rows=0) as t:
            self.assertEqual(t.end(), 0)
            # half of a wide character is not shown
            self.assertIn(max(map(width, lines(t.text()))), (79, 80))
        with Terminal([PROGRAM, "status"], self.env(COLUMNS="64"), columns=0, rows=0) as t:
            self.assertEqual(t.end(), 0)
            self.assertIn(max(map(width, lines(t.text()))), (63, 64))

    def test_top_is_drawn_in_place_and_left_by_q(self):
        with self.terminal("top", "--every", "100ms") as t:
            t.wait_for(r"(?s)(\x1b\[H.*worker-0-1.*){3}")
            self.assertEqual(t.text().count(ENTER), 1)
            before = len(t.text())
            t.resize(60, 10)
            t.wait_for(r"(?s)(\x1b\[H.*connected.*){2}", since=before)
            t.type("xq")
            self.assertEqual(t.end(), 0)
            self.assertTrue(t.is_as_before(), t.text())
            first, last = t.pictures()[0], t.pictures()[-1]
            self.assertTrue(all(width(line) <= 80 for line in first), first)
            self.assertTrue(all(width(line) <= 60 for line in last), last)
            self.assertTrue(any("q: leave" in line for line in first), first)

    def test_ctrl_c_leaves_top_with_the_terminal_as_it_was(self):
        for keys, number in (("\x03", signal.SIGINT), (None, signal.SIGTERM), (None, signal.SIGHUP)):
            with self.terminal("top") as t:
                t.wait_for("worker-0-1")
                t.type(keys) if keys else t.p.send_signal(number)
                self.assertEqual(t.end(), -number)
                self.assertTrue(t.is_as_before(), t.text())

    def test_ctrl_z_gives_the_terminal_back_until_top_goes_on(self):
        with self.terminal("top") as t:
            t.wait_for("worker-0-1")
            t.p.send_signal(signal.SIGTSTP)
            wait_for("top to stop", lambda: pathlib.Path(f"/proc/{t.p.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T")
            t.wait_for(re.escape(LEAVE))
            self.assertTrue(t.is_as_before(), t.text())
            before = len(t.text())
            t.p.send_signal(signal.SIGCONT)
            t.wait_for(r"(?s)" + re.escape(ENTER) + ".*worker-0-1", since=before)
            t.type("q")
            self.assertEqual(t.end(), 0)
            self.assertTrue(t.is_as_before(), t.text())

    def test_top_that_is_no_terminal_writes_plain_lines(self):
        text = self.piped("top", "-n", "2", "--every", "50ms")
        self.assertEqual(text.count("millrace "), 2)
        self.assertNotIn("\x1b", text)

    def test_watch_is_drawn_in_place_and_left_by_q(self):
        job = self.sleeper()
        with self.terminal("watch", job) as t:
            t.wait_for(r"(?s)(\x1b\[H.*1/2 tasks.*){3}")
            t.type("q")
            self.assertEqual(t.end(), 4)
            self.assertTrue(t.is_as_before(), t.text())
            self.assertIn(f"job {job} goes on", t.text())
            self.assertTrue(all(width(line) <= 80 for p in t.pictures() for line in p), t.pictures())
        with self.terminal("watch", job) as t:
            t.wait_for("1/2 tasks")
            t.type("\x03")
            self.assertEqual(t.end(), -signal.SIGINT)
            self.assertTrue(t.is_as_before(), t.text())
        with self.terminal("watch", job) as t:
            t.wait_for("1/2 tasks")
            self.c.call("POST", f"/v1/jobs/{job}:cancel", {})
            self.assertEqual(t.end(), 4)
            self.assertTrue(t.is_as_before(), t.text())
            self.assertIn(f"job {job} sleeper: cancelled", t.text())

    def test_watch_of_what_is_not_there_gives_the_terminal_back(self):
        with self.terminal("watch", "j1-99") as t:
            self.assertEqual(t.end(), 5)
            self.assertTrue(t.is_as_before(), t.text())
            self.assertIn("millrace watch: ", t.text()[t.text().rfind(LEAVE):])

    def test_watch_that_is_no_terminal_writes_plain_lines(self):
        job = self.c.submit({"tasks": {"a": {"op": "inc", "args": [1]}}, "targets": ["a"]})
        text = self.piped("watch", job)
        self.assertRegex(text, r"(?m)^done      1 of 1 tasks done, 0 running, 0 failed$")
        self.assertNotIn("\x1b", text)

    def run_sleeper(self):
        path = self.c.dir / "sleeper.json"
        path.write_text(json.dumps(SLEEP))
        return self.terminal("run", str(path))

    def live_job(self):
        """The newest job; it is cancelled at the end of the test."""
        job = self.c.get("/v1/jobs?page_size=1")["jobs"][0]["id"]
        self.addCleanup(self.c.call, "POST", f"/v1/jobs/{job}:cancel", {})
        return job

    def test_ctrl_c_once_twice_three_times_in_run(self):
        with self.run_sleeper() as t:
            t.wait_for("1/2 tasks")
            job = self.live_job()
            t.type("\x03")
            t.wait_for(f"job {job} goes on; Ctrl-C again cancels it")
            self.assertIsNone(t.p.poll())
            t.type("\x03")
            self.assertEqual(t.end(), 4)
            self.assertIn(f"job {job} is being cancelled", t.text())
            self.assertIn("cancelled by Ctrl-C", t.text())
            self.assertTrue(t.is_as_before())
            long = [line for line in lines(t.text()) if width(line) > 80 and not line.startswith(KEY)]
            self.assertEqual(long, [])
        self.assertEqual(self.c.job(job)["state"], "JOB_CANCELLED")

    def test_a_third_ctrl_c_leaves_although_nobody_answers(self):
        gateway = self.c.pids("mr-gateway")[0]
        with self.run_sleeper() as t:
            t.wait_for("1/2 tasks")
            job = self.live_job()
            os.kill(gateway, signal.SIGSTOP)
            self.addCleanup(os.kill, gateway, signal.SIGCONT)
            t.type("\x03")
            t.wait_for("Ctrl-C again cancels it")
            t.type("\x03")
            # The thread that handles signals waits for an answer, so a second SIGINT is not held
            # back.
            wait_for("the cancel to be on its way", lambda: any(
                not int(re.search(r"SigBlk:\s*(\w+)", task.read_text()).group(1), 16) & 1 << (signal.SIGINT - 1)
                for task in pathlib.Path(f"/proc/{t.p.pid}/task").glob("*/status")) or t.p.poll() is not None)
            t.type("\x03")
            self.assertEqual(t.end(), 130)  # by the signal, and not by an answer, which never comes
            self.assertIn(f"job {job}: left", t.text())

    def test_the_bar_says_which_task_it_waits_for(self):
        with self.run_sleeper() as t:
            t.wait_for("1/2 tasks")
            job = self.live_job()
            t.wait_for(r"1/2 tasks, 1 running, [^;]*; a-\S*…\S*s runs for ")
            self.assertTrue(all(width(line) <= 80 for line in lines(t.text())), t.text())
            longest = self.c.job(job)["longest_running"]
            self.assertEqual((longest["key"], longest["worker"] in ("worker-0-0", "worker-0-1")), (KEY + "s", True))
            self.c.call("POST", f"/v1/jobs/{job}:cancel", {})
            self.assertEqual(t.end(), 4)
            self.assertNotIn("longest_running", self.c.job(job))

    def test_the_bar_says_how_much_is_being_persisted(self):
        store = self.c.pids("mr-objectstore")[0]
        over = threading.Event()

        def slow_down():  # makes a persist take longer than a heartbeat
            while not over.is_set():
                os.kill(store, signal.SIGSTOP)
                time.sleep(0.19)
                os.kill(store, signal.SIGCONT)
                time.sleep(0.01)
        parts = {f"p{i}": {"op": "array.zeros", "args": [3000000]} for i in range(4)}
        path = self.c.dir / "persist.json"
        path.write_text(json.dumps({"tasks": {**parts, "all": {"op": "collection", "args": [[{"ref": p} for p in parts]], "persist": True}},
                                    "targets": ["all"]}))

        def seen():  # tries again if everything was written between two heartbeats
            with self.terminal("run", str(path)) as t:
                self.assertEqual(t.end(), 0, t.text())
                said = re.search(r"; persisting [0-9.]+ MiB", t.text())
                self.c.call("DELETE", "/v1/jobs/" + self.c.get("/v1/jobs?page_size=1")["jobs"][0]["id"])
                return said
        slow = threading.Thread(target=slow_down)
        slow.start()
        try:
            wait_for("the bar to say what is persisted", seen, 60)
        finally:
            over.set()
            slow.join()


class Crash(unittest.TestCase):
    def test_a_gateway_that_dies_leaves_no_broken_terminal(self):
        c = Cluster("--workers", "1", "--threads", "1")
        self.addCleanup(c.close)
        env = dict(c.env, MILLRACE_URL=c.url)
        job = c.submit(SLEEP)
        with Terminal([PROGRAM, "top", "--every", "100ms"], env) as top, Terminal([PROGRAM, "watch", job], env) as watch:
            top.wait_for("worker-0-0")
            watch.wait_for("1/2 tasks")
            c.kill()
            top.wait_for("no answer for")
            top.type("q")
            self.assertEqual(top.end(), 0)
            self.assertTrue(top.is_as_before(), top.text())
            watch.type("q")
            self.assertEqual(watch.end(), 4)
            self.assertTrue(watch.is_as_before(), watch.text())


if __name__ == "__main__":
    unittest.main(verbosity=2)
