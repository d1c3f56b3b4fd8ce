"""Jobs that tasks submit. A task that waits for such a job must not occupy its slot, and if the
parent job ends early, the child job must end too. The cluster has one worker with one slot, so
an occupied slot is noticed."""
import json
import os
import pathlib
import signal
import socket
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Cluster, HttpError, main, read_events, wait_for  # noqa: E402

# A program for the operator `exec`: submits a job, waits for it even if the scheduler goes away,
# and prints the value.
SUBMIT = r"""
import json, os, time, urllib.error, urllib.parse, urllib.request
def ask(path, body=None, **headers):
    headers = {k.replace("_", "-"): v for k, v in headers.items()}
    request = urllib.request.Request(os.environ["URL"] + path, body, {"Content-Type": "application/json", **headers})
    while True:
        try:
            return json.load(urllib.request.urlopen(request, timeout=90))
        except urllib.error.HTTPError as e:
            if e.code != 503:
                raise SystemExit(e.read().decode())
        except OSError:
            pass
        time.sleep(0.1)
graph = os.environ["GRAPH"].encode()
job = ask("/v1/jobs", graph, Millrace_Parent=os.environ["MILLRACE_TASK"], Idempotency_Key=os.environ.get("KEY", ""))["id"]
while ask(f"/v1/jobs/{job}?wait_s=20")["state"] in ("JOB_PENDING", "JOB_RUNNING"):
    pass
state = ask(f"/v1/jobs/{job}")["state"]
if state != "JOB_DONE":
    raise SystemExit(f"the child ended as {state}")
print(json.dumps([job, ask(f"/v1/jobs/{job}/results/y")]))
"""


class Children(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster("--workers", "1", "--threads", "1", "--allow-exec")

    @classmethod
    def tearDownClass(cls):
        cls.c.close()

    def parent(self, child, **more):
        """A graph whose only task submits `child` and waits for it."""
        env = {"URL": self.c.url, "GRAPH": json.dumps(child), **more}
        args = [{"literal": ["/usr/bin/python3", "-c", SUBMIT]}, None, {"literal": env}, {"literal": {}}, "json"]
        return {"tasks": {"y": {"op": "exec", "args": args}}, "targets": ["y"]}

    def child_of(self, job, what="the child"):
        jobs = wait_for(what, lambda: [j for j in self.c.get("/v1/jobs?page_size=100")["jobs"] if j.get("parent") == job])
        self.assertEqual(len(jobs), 1)
        return jobs[0]["id"]

    def test_ready_asks_each_service(self):
        """The command that health checks of containers run."""
        self.assertEqual(self.c.cli("ready")[1], "ready\n")
        self.assertEqual(self.c.cli("ready", self.c.url)[1], "ready\n")
        sockets = self.c.dir / "c" / "run"
        for name in ("scheduler", "store-0", "trainer", "worker-0-0"):
            self.assertEqual(self.c.cli("ready", f"unix:{sockets}/{name}.sock")[1], "ready\n")
        code, _, why = self.c.cli("ready", f"unix:{sockets}/none.sock", check=False)
        self.assertEqual(code, 3, why)
        code, _, why = self.c.cli("ready", "--url", self.c.url + "/v1", check=False)
        self.assertEqual(code, 1, why)

    def test_a_task_waits_for_a_job_of_its_own_without_a_slot(self):
        job = self.c.run(self.parent({"dsk": {"x": 1, "y": ["inc", "x"]}, "targets": ["y"]}), 60)
        self.assertEqual(job["state"], "JOB_DONE", job)
        child, value = self.c.value(job["id"], "y")
        self.assertEqual(value, 2)
        self.assertEqual(self.c.job(child)["parent"], job["id"])
        self.assertEqual(job.get("parent", ""), "")

    def test_children_have_children(self):
        graph = {"dsk": {"y": ["inc", 40]}, "targets": ["y"]}
        for _ in range(3):
            graph = self.parent(graph)
        job = self.c.run(graph, 120)
        self.assertEqual(job["state"], "JOB_DONE", job)
        value = self.c.value(job["id"], "y")
        self.assertEqual(value[1][1][1], 41)

    def test_cancelling_the_parent_cancels_the_child_and_its_child(self):
        job = self.c.submit(self.parent(self.parent({"dsk": {"y": ["sleep", 100]}, "targets": ["y"]})))
        child = self.child_of(job)
        grandchild = self.child_of(child, "the grandchild")
        wait_for("it to run", lambda: self.c.explain(grandchild, "y")["state"] == "TASK_RUNNING")
        self.c.call("POST", f"/v1/jobs/{job}:cancel", {})
        for x in (job, child, grandchild):
            self.assertEqual(self.c.wait(x, 30)["state"], "JOB_CANCELLED")
        self.assertEqual(self.c.run({"dsk": {"x": ["inc", 1]}, "targets": ["x"]}, 30)["state"], "JOB_DONE")

    def test_a_parent_that_fails_leaves_no_child(self):
        graph = self.parent({"dsk": {"y": ["sleep", 100]}, "targets": ["y"]})
        graph["tasks"]["y"]["timeout_s"] = 2
        job = self.c.submit(graph)
        child = self.child_of(job)
        self.assertEqual(self.c.wait(job, 30)["state"], "JOB_FAILED")
        self.assertEqual(self.c.wait(child, 30)["state"], "JOB_CANCELLED")

    def test_a_parent_waits_over_a_restart_of_the_scheduler(self):
        job = self.c.submit(self.parent({"dsk": {"x": ["sleep", 4, 6], "y": ["inc", "x"]}, "targets": ["y"]}, KEY="over"))
        child = self.child_of(job)
        pid = self.c.pids("mr-scheduler")[0]
        os.kill(pid, signal.SIGKILL)
        wait_for("another scheduler", lambda: self.c.pids("mr-scheduler") not in ([], [pid]))
        self.assertEqual(self.c.wait(job, 90)["state"], "JOB_DONE")
        self.assertEqual(self.c.value(job, "y"), [child, 7])

    def test_what_was_journaled_is_cancelled_after_a_restart(self):
        job = self.c.submit(self.parent({"dsk": {"y": ["sleep", 100]}, "targets": ["y"]}, KEY="journaled"))
        child = self.child_of(job)
        pid = self.c.pids("mr-scheduler")[0]
        os.kill(pid, signal.SIGKILL)

        def cancelled():
            try:
                return self.c.call("POST", f"/v1/jobs/{job}:cancel", {})
            except HttpError as e:
                self.assertEqual(e.status, 503)
        wait_for("the cancel", cancelled)
        for x in (job, child):
            self.assertEqual(self.c.wait(x, 60)["state"], "JOB_CANCELLED")

    def test_only_a_task_that_runs_has_children(self):
        done = self.c.run({"dsk": {"x": ["inc", 1]}, "targets": ["x"]}, 30)["id"]
        graph = {"dsk": {"y": ["inc", 1]}, "targets": ["y"]}
        for parent, words in ((f"{done}/0/1", "does not run"), ("j9-9/0/1", "does not run"), ("me", "no task"),
                              (f"{done}/0", "no task"), (f"{done}/x/1", "no task"), (f"{done}/0/0", "no task")):
            with self.assertRaises(HttpError) as e:
                self.c.call("POST", "/v1/jobs", graph, {"Millrace-Parent": parent})
            self.assertEqual(e.exception.status, 400, parent)
            self.assertIn(words, e.exception.body)


class Logs(unittest.TestCase):
    """The output of tasks can be read while they run and afterwards, whether they fail or not."""

    @classmethod
    def setUpClass(cls):
        cls.c = Cluster("--workers", "1", "--threads", "2", "--allow-exec")

    @classmethod
    def tearDownClass(cls):
        cls.c.close()

    @staticmethod
    def sh(script):
        return {"op": "exec", "args": [{"literal": ["/bin/sh", "-c", script]}]}

    def logs(self, job, key):
        return self.c.get(f"/v1/jobs/{job}/logs?key={key}")

    def follow(self, job, query, last=None):
        """Yields (id, event) of the stream of log events."""
        s = socket.create_connection((self.c.host, self.c.port), timeout=300)
        self.addCleanup(s.close)
        s.sendall((f"GET /v1/jobs/{job}/logs/events?{query} HTTP/1.0\r\nHost: {self.c.host}:{self.c.port}\r\n"
                   f"Accept: text/event-stream\r\n{f'Last-Event-ID: {last}' if last else 'X-No: id'}\r\n\r\n").encode())
        r = s.makefile("rb")
        self.assertIn(b" 200 ", r.readline())
        yield from read_events(r)

    def test_issue_11_5_a_running_task_is_followed(self):
        c, go = self.c, self.c.dir / "go"
        job = c.submit({"tasks": {"x": self.sh(f"echo one >&2; while [ ! -e {go} ]; do sleep 0.05; done; echo two >&2; printf three >&2; echo 5"),
                                  "y": self.sh("echo of y >&2")}, "targets": ["x", "y"]})
        events = self.follow(job, "key=x&follow=true")
        first, event = next(events)
        self.assertEqual((event["text"], event["key"], event["attempt"]), ("one\n", "x", 1))
        self.assertTrue(event["worker"].startswith("worker-0-"))
        self.assertEqual(c.job(job)["state"], "JOB_RUNNING")
        self.assertEqual(self.logs(job, "x")["text"], "one\n")
        go.touch()
        # the stream ends after this text
        self.assertEqual("".join(e["text"] for _, e in events), "two\nthree\n")
        self.assertEqual(c.wait(job)["state"], "JOB_DONE")
        self.assertEqual(self.logs(job, "x")["text"], "one\ntwo\nthree\n")
        self.assertEqual(self.logs(job, "y")["text"], "of y\n")
        self.assertEqual("".join(e["text"] for _, e in self.follow(job, "key=x", last=first)), "two\nthree\n")
        everything = list(self.follow(job, ""))
        self.assertEqual({e["key"] for _, e in everything}, {"x", "y"})
        said = c.cli("logs", job)[1].splitlines()
        self.assertEqual(sorted(said), ["x | one", "x | three", "x | two", "y | of y"])
        self.assertEqual(c.cli("logs", job, "x", "--follow")[1], "one\ntwo\nthree\n")
        c.call("DELETE", f"/v1/jobs/{job}")
        with self.assertRaises(HttpError) as e:
            self.logs(job, "x")
        self.assertEqual(e.exception.status, 404)

    def test_issue_11_5_the_end_of_much_is_kept_and_the_rest_is_counted(self):
        c, total = self.c, sum(len(f"{i}\n") for i in range(1, 40001))
        job = c.run({"tasks": {"x": self.sh("seq 1 40000 >&2"), "bad": self.sh("seq 1 40000 >&2; exit 3")}, "targets": ["x", "bad"], "on_error": "continue"}, 60)
        self.assertEqual(job["state"], "JOB_FAILED")
        for key in ("x", "bad"):
            r = self.logs(job["id"], key)
            self.assertTrue(r["text"].endswith("\n39999\n40000\n"), (key, r["text"][-40:]))
            self.assertLessEqual(len(r["text"]), 65536)
            self.assertGreater(len(r["text"]), 20000)
            self.assertTrue(r["cut"])
            if key == "x" or int(r["dropped"]):
                self.assertEqual(len(r["text"]) + int(r["dropped"]), total)

    def test_issue_11_5_a_stream_of_much_comes_to_its_end(self):
        """More output than the scheduler queues for one stream. The rest must follow when the
        stream has room again, without another event."""
        keys = [f"x{i}" for i in range(40)]
        job = self.c.run({"tasks": {k: self.sh("seq 1 12000 >&2") for k in keys}, "targets": keys})
        self.assertEqual(job["state"], "JOB_DONE")
        texts = dict.fromkeys(keys, "")
        for _, e in self.follow(job["id"], ""):
            texts[e["key"]] += e["text"]
        self.assertGreater(sum(map(len, texts.values())), 2 << 20)
        for key, text in texts.items():
            self.assertTrue(text.endswith("\n11999\n12000\n"), key)


if __name__ == "__main__":
    main()
