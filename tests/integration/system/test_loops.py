#!/usr/bin/env python3
"""Loops and templates with real processes. A loop ends by its own condition, even if processes are
killed meanwhile; templates are stored as long as Redis lives."""
import json
import os
import pathlib
import signal
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Cluster, HttpError, wait_for  # noqa: E402


def loop(rounds, stop, seconds=0.0):
    """A loop that adds 1 + 2 + 3 to a number in each round, until the number is at least `stop`."""
    part = {"op": "sleep", "args": [seconds, {"op": "add", "args": [{"ref": "n"}, "${i}"]}], "for": {"i": [1, 2, 3]}}
    return {"params": {"stop": stop},
            "repeat": {"l": {"max": rounds, "carry": {"n": {"value": 0}},
                             "tasks": {"part-${i}": part,
                                       "all": {"op": "sum", "args": {"each": {"ref": "part-${i}"}, "for": {"i": [1, 2, 3]}}},
                                       "next": {"op": "sub", "args": [{"ref": "all"}, {"op": "mul", "args": [{"ref": "n"}, 2]}]}},
                             "next": {"n": {"ref": "next"}},
                             "until": {"op": "compare", "args": [{"ref": "next"}, ">=", "${stop}"]}}},
            "targets": ["l.n", "l.count"]}


class Loops(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster("--workers", "3", "--threads", "1", "--lease", "3s")

    @classmethod
    def tearDownClass(cls):
        cls.c.close()

    def done(self, job, rounds):
        self.assertEqual(job["state"], "JOB_DONE", job)
        values = self.c.results(job["id"], "l.n", "l.count")["results"]
        self.assertEqual(values, {"l.n": 6 * rounds, "l.count": rounds})
        counts = job["counts"]
        for what in ("erred", "cancelled", "waiting", "ready", "running"):
            self.assertEqual(counts[what], "0", counts)

    def test_a_loop_ends_by_its_condition(self):
        job = self.c.run(loop(500, 60))
        self.done(job, 10)
        self.assertGreater(int(job["counts"]["skipped"]), 400 * 9)
        x = self.c.get(f"/v1/jobs/{job['id']}/explain?key=l[10].next")
        self.assertEqual(x["state"], "TASK_SKIPPED", x)
        self.assertIn("ended after 10 rounds", " ".join([x["sentence"]] + x["reasons"]))
        spans = self.c.get(f"/v1/jobs/{job['id']}/timeline")["spans"]
        self.assertIn("l[3].part-2", {s["key"] for s in spans})

    def test_who_did_not_converge_is_told(self):
        """A loop that ended because it reached its limit of rounds is not shown as a plain success:
        in every view of the job, after a restart of the scheduler, and for a job from a
        template."""
        c = self.c
        c.call("POST", "/v1/templates?name=bounded", loop(5, 60))
        by_until = c.run(loop(500, 60))
        by_max = [c.run(loop(5, 60)), c.call("POST", "/v1/templates/bounded:instantiate?wait_s=60", {})["job"]]

        def told():
            listed = {j["id"]: j for j in c.get("/v1/jobs")["jobs"]}
            for job in by_max:
                for x in (c.job(job["id"]), listed[job["id"]]):
                    self.assertEqual(x["loops"], [{"name": "l", "end": "JOB_LOOP_END_MAX", "rounds": 5}], x)
            self.assertEqual(c.job(by_until["id"])["loops"], [{"name": "l", "end": "JOB_LOOP_END_UNTIL", "rounds": 10}])
            words = c.cli("status", by_max[0]["id"])[1]
            self.assertIn("  loop 'l': ended after 5 rounds without `until`: not converged\n", words)
            self.assertIn("  loop 'l': ended after 10 rounds\n", c.cli("status", by_until["id"])[1])
            table = {line.split()[0]: line for line in c.cli("status")[1].splitlines()}
            self.assertIn("(not converged)", table[by_max[1]["id"]])
            self.assertNotIn("converged", table[by_until["id"]])
        told()
        x = c.get(f"/v1/jobs/{by_max[0]['id']}/explain?key=l.n")
        self.assertIn('ended after all its 5 rounds, without "until"', " ".join([x["sentence"]] + x["reasons"]))
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump(loop(5, 60), f)
            f.flush()
            for args in (["run"], ["submit", "--wait"]):
                said = "".join(c.cli(*args, f.name)[1:])
                self.assertEqual(said.count("loop 'l': ended after 5 rounds without `until`: not converged"), 1, said)
        os.kill(c.pids("mr-scheduler")[0], signal.SIGKILL)
        wait_for("the scheduler to be back", lambda: c.request("GET", "/v1/templates")[0] == 200)
        told()
        c.call("DELETE", "/v1/templates/bounded")

    def test_a_failure_names_its_round(self):
        graph = loop(50, 60)
        graph["repeat"]["l"]["tasks"]["part-${i}"] = {"op": "floor_div", "args": [6, {"op": "sub", "args": [18, {"ref": "n"}]}],
                                                      "for": {"i": [1, 2, 3]}}
        graph["repeat"]["l"]["tasks"]["next"] = {"op": "add", "args": [{"ref": "n"}, 6]}
        graph["repeat"]["l"]["until"] = {"op": "compare", "args": [{"ref": "all"}, ">", 99]}
        job = self.c.run(graph)
        self.assertEqual(job["state"], "JOB_FAILED", job)
        self.assertRegex(job["error"]["key"], r"^l\[3\]\.part-[123]$")

    def test_what_dies_in_the_middle_changes_nothing(self):
        ident = self.c.submit(loop(400, 60, 0.15))
        some = lambda n: lambda: int(self.c.job(ident)["counts"]["done"]) >= n  # noqa: E731
        wait_for("two rounds", some(14))
        os.kill(self.c.pids("mr-worker")[0], signal.SIGKILL)
        wait_for("four rounds", some(28))
        os.kill(self.c.pids("mr-scheduler")[0], signal.SIGKILL)
        time.sleep(1)
        self.done(self.c.wait(ident, 120), 10)

    def test_a_loop_as_a_typed_message(self):
        ref = lambda key: {"ref": key}  # noqa: E731
        body = [{"key": "part", "op": "add", "args": [ref("n"), ref("six")]},
                {"key": "done", "op": "compare", "args": [ref("part"), {"text": ">="}, {"integer": 60}]}]
        graph = {"tasks": [{"key": "six", "value": {"integer": 6}}],
                 "repeat": [{"name": "l", "max": 50, "carry": [{"name": "n", "first": {"integer": 0}, "next": ref("part")}],
                             "tasks": body, "until": ref("done")}],
                 "targets": ["l.n", "l.count"]}
        self.done(self.c.wait(self.c.call("POST", "/v1/jobs:graph", graph)["id"]), 10)
        graph["repeat"][0]["max"] = 0
        with self.assertRaises(HttpError) as e:
            self.c.call("POST", "/v1/jobs:graph", graph)
        self.assertIn('repeat \\"l\\": \\"max\\" is 0', str(e.exception))

    def test_templates(self):
        c = self.c
        made = c.call("POST", "/v1/templates?name=steps", loop(500, 60))
        self.assertEqual((made["name"], made["params"]), ("steps", ["stop"]))
        same = c.call("POST", "/v1/templates?name=steps", loop(500, 60))
        self.assertEqual(same["installed_ns"], made["installed_ns"])
        with self.assertRaises(HttpError) as e:
            c.call("POST", "/v1/templates?name=steps", loop(400, 60))
        self.assertEqual(e.exception.status, 409)
        path = "/v1/templates/steps:instantiate?wait_s=60"
        self.done(c.call("POST", path, {"params": {"stop": 120}})["job"], 20)
        once = [c.call("POST", path, {}, {"Idempotency-Key": "once"}) for _ in range(2)]
        self.assertEqual(once[0]["id"], once[1]["id"])
        self.done(once[0]["job"], 10)
        for params, words in (({"stip": 1}, 'did you mean \\"stop\\"'), ({"stop": "x"}, 'parameter \\"stop\\" is a text')):
            with self.assertRaises(HttpError) as e:
                c.call("POST", path, {"params": params})
            self.assertIn(words, str(e.exception))
            self.assertEqual(e.exception.status, 400)
        os.kill(c.pids("mr-scheduler")[0], signal.SIGKILL)
        wait_for("the scheduler to be back", lambda: c.request("GET", "/v1/templates")[0] == 200)
        self.assertEqual([t["name"] for t in c.get("/v1/templates")["templates"]], ["steps"])

        def runs():
            try:
                return c.call("POST", path, {"params": {"stop": 30}})
            except HttpError as e:
                self.assertEqual(e.status, 503)
        self.done(wait_for("a job of it", runs)["job"], 5)
        c.call("DELETE", "/v1/templates/steps")
        self.assertEqual(c.request("GET", "/v1/templates/steps")[0], 404)


if __name__ == "__main__":
    unittest.main()
