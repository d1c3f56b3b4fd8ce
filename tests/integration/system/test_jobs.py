#!/usr/bin/env python3
"""Jobs over HTTP: their results, and the error texts for malformed jobs."""
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Cluster, HttpError, bin_dir, wait_for  # noqa: E402

DSK = {"dsk": {"x": 1, "y": ["inc", "x"], "z": ["add", "x", "y"]}, "targets": ["z"]}


class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--workers", "2", "--threads", "1")

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()

    def refused(self, body, *words, status=400, headers=None, path="/v1/jobs"):
        """Submits; expects this status and a sentence that contains all these words."""
        got, _, data = self.cluster.request("POST", path, body, headers)
        text = data.decode(errors="replace")
        self.assertEqual(got, status, text)
        message = json.loads(text)["message"]
        for word in words:
            self.assertIn(word, message)
        return message

    def test_a_large_graph_stops_nobody_from_being_heard(self):
        """While 200,000 tasks are parsed and added, the core thread answers other calls within a
        third of a lease."""
        c = self.cluster
        body = '{"tasks":{' + ",".join(f'"leaf{i:08d}":{{"op":"inc","args":[{i}]}}' for i in range(200_000)) + "}}"
        before, jobs, longest = {(w["name"], w["incarnation"]) for w in c.workers()}, [], 0.0
        submitting = threading.Thread(target=lambda: jobs.append(c.submit(body)))
        submitting.start()
        while submitting.is_alive() or not jobs or c.job(jobs[0])["state"] != "JOB_DONE":
            self.assertTrue(submitting.is_alive() or jobs, "the submission failed")
            begun = time.monotonic()
            workers = c.workers()
            longest = max(longest, time.monotonic() - begun)
        self.assertLess(longest, 3.3)
        self.assertEqual({(w["name"], w["incarnation"]) for w in workers}, before)

    def test_a_small_job_does_not_wait_for_a_large_one(self):
        """Only a few tasks of the other job run while the large job is added."""
        c = self.cluster
        large = c.submit({"tasks": {"s-${i}": {"op": "sleep", "args": [0.02], "for": {"i": 1000}}}})
        wait_for("the large job to run", lambda: self.done(large) >= 20)
        before = self.done(large)
        job = c.run({"tasks": {"one": {"op": "sleep", "args": [0.02]}}})
        after = self.done(large)
        self.assertEqual(job["state"], "JOB_DONE", job)
        c.call("POST", f"/v1/jobs/{large}:cancel", {})
        self.assertLess(after - before, 300)

    def test_small_jobs_pass_a_large_one_that_is_being_read(self):
        """While a body with a very long loop is read (and refused at its end), other requests are
        served."""
        c, answered, passed = self.cluster, threading.Event(), 0
        body = {"tasks": {"a-${i}": {"value": 1, "for": {"i": 3_000_000}}, "z": {"op": "no-such-op", "args": []}}}

        def large():
            got.append(c.request("POST", "/v1/jobs", json.dumps(body)))
            answered.set()

        got, thread = [], threading.Thread(target=large)
        thread.start()
        time.sleep(0.2)  # gives the gateway time to begin reading
        # A large job waits among the large ones, so small ones are answered at once again.
        wait_for("no small job to wait behind it", lambda: answered.is_set() or self.small_unread() == 0)
        passed_on = not answered.is_set()
        for i in range(10):
            options = {"labels": {"n": str(i)}} if i % 2 else {}
            job = c.call("POST", "/v1/jobs?wait_s=60", {"tasks": {"x": {"op": "inc", "args": [i], "retries": 1}}} | options)
            passed += job["job"]["state"] == "JOB_DONE" and not answered.is_set()
        thread.join()
        self.assertEqual(got[0][0], 400, got[0][2][:300])
        self.assertGreaterEqual(passed, 3)
        self.assertTrue(passed_on)

    def small_unread(self):
        text = self.cluster.request("GET", "/metrics")[2].decode()
        return float(next(line.split()[-1] for line in text.splitlines() if line.startswith("millrace_scheduler_small_jobs_unread")))

    def done(self, job):
        return int(self.cluster.job(job)["counts"].get("done", 0))

    def test_the_readmes_first_job(self):
        c = self.cluster
        job = c.submit(DSK)
        states = [info["state"] for _, info in c.events(job)]
        self.assertEqual(states[-1], "JOB_DONE")
        self.assertEqual(c.value(job, "z"), 3)
        status, headers, data = c.request("GET", f"/v1/jobs/{job}/results/z")
        self.assertEqual((status, data.strip()), (200, b"3"))

    def test_an_ended_jobs_events_can_still_be_read(self):
        c = self.cluster
        job = c.run(DSK)["id"]
        events = list(c.events(job))
        self.assertEqual(events[-1][1]["state"], "JOB_DONE")
        self.assertTrue(events[-1][0])

    def test_values_keep_their_types(self):
        c = self.cluster
        values = {"i": 2**63 - 1, "u": 2**64 - 1, "n": -(2**63), "f": 1.0, "one": 1, "t": "h\u00e9", "l": [1, 2.5, None, True], "d": {"a": {"b": []}}}
        graph = {"tasks": {k: {"op": "identity", "args": [{"literal": v}]} for k, v in values.items()}, "targets": list(values)}
        job = c.run(graph)
        self.assertEqual(job["state"], "JOB_DONE", job)
        got = c.request("GET", f"/v1/jobs/{job['id']}/results")[2].decode()
        results = json.loads(got)["results"]
        self.assertEqual(results, values)
        self.assertIsInstance(results["f"], float)
        self.assertIsInstance(results["one"], int)

    def test_only_what_the_target_needs_runs(self):
        c = self.cluster
        graph = json.loads((ROOT / "examples/cv-shape.json").read_text())
        keys = [t for t in graph["targets"]]
        whole = c.run(graph)
        self.assertEqual(whole["state"], "JOB_DONE", whole)
        graph["targets"] = ["svm/cv/fit-00"]
        one = c.run(graph)
        self.assertEqual(one["state"], "JOB_DONE", one)
        counts = {k: int(v) for k, v in one["counts"].items()}
        self.assertEqual(counts["submitted"], int(whole["counts"]["submitted"]))
        self.assertGreater(counts["culled"], 0)
        self.assertEqual(counts["done"], counts["submitted"] - counts["culled"])
        self.assertLess(counts["done"], int(whole["counts"]["done"]))
        spans = c.get(f"/v1/jobs/{one['id']}/timeline").get("spans", [])
        ran = {s["key"] for s in spans}
        self.assertIn("svm/cv/fit-00", ran)
        self.assertFalse([k for k in ran if k.startswith("svm/cv/fit-") and k != "svm/cv/fit-00"])
        self.assertIn("fit-00", c.explain(one["id"], "svm/cv/fit-00")["sentence"])
        culled = [k for k in ("svm/cv/fit-01",) if k not in ran]
        for key in culled:
            x = c.explain(one["id"], key)
            self.assertEqual(x["state"], "TASK_CULLED", x)
        self.assertTrue(keys)

    def test_explain_tells_why_a_task_waits(self):
        c = self.cluster
        job = c.submit({"tasks": {"slow": {"op": "sleep", "args": [3, 1]}, "after": {"op": "inc", "args": [{"ref": "slow"}]},
                                  "never": {"op": "inc", "args": [1], "resources": {"unobtainium": 1}}},
                        "targets": ["after", "never"]})
        wait_for("slow to run", lambda: c.explain(job, "slow")["state"] == "TASK_RUNNING", 10)
        x = c.explain(job, "after")
        self.assertEqual((x["state"], x["waits_for"]), ("TASK_WAITING", ["slow"]))
        self.assertIn("slow", x["sentence"])
        x = c.explain(job, "never")
        self.assertIn("unobtainium", x["sentence"] + " ".join(x.get("reasons", [])))
        c.call("POST", f"/v1/jobs/{job}:cancel", {"reason": "enough"})
        ended = c.wait(job, 20)
        self.assertEqual(ended["state"], "JOB_CANCELLED")
        self.assertEqual(c.explain(job, "never")["state"], "TASK_CANCELLED")

    def test_a_failing_task_names_itself_and_what_fell_with_it(self):
        c = self.cluster
        job = c.run({"tasks": {"a": {"op": "fail", "args": ["no such luck"], "retries": 2}, "b": {"op": "inc", "args": [{"ref": "a"}]},
                               "c": {"op": "inc", "args": [{"ref": "b"}]}}, "targets": ["c"]})
        self.assertEqual(job["state"], "JOB_FAILED")
        error = job["error"]
        self.assertEqual(error["key"], "a")
        self.assertIn("no such luck", error["message"])
        self.assertEqual(int(error["fallen"]), 2)
        self.assertEqual(int(error["attempts"]), 3)
        with self.assertRaises(HttpError) as e:
            c.value(job["id"], "c")
        self.assertIn("no such luck", e.exception.body)
        self.assertLess(e.exception.status, 500)
        x = c.explain(job["id"], "c")
        self.assertIn("a", x["sentence"] + " ".join(x.get("reasons", [])))
        again = c.call("POST", f"/v1/jobs/{job['id']}:retry", {})
        self.assertEqual(again["id"], job["id"])
        self.assertEqual(c.wait(job["id"])["state"], "JOB_FAILED")

    def test_issue_11_2_results_of_failed_and_cancelled_jobs(self):
        """The values of a failed or cancelled job can be fetched, small and large ones; each other
        key has an error of its own."""
        c = self.cluster
        tasks = {"large": {"op": "array.full", "args": [[2000], 3]}, "small": {"op": "inc", "args": [1]},
                 "bad": {"op": "fail", "args": ["bad luck"]}, "worse": {"op": "fail", "args": ["worse luck"]},
                 "fell": {"op": "inc", "args": [{"ref": "worse"}]}}
        job = c.run({"on_error": "continue", "tasks": tasks, "targets": list(tasks)})
        self.assertEqual(job["state"], "JOB_FAILED")

        def good(job):
            status, headers, data = c.request("GET", f"/v1/jobs/{job}/results/large")
            self.assertEqual((status, data[:6]), (200, b"\x93NUMPY"), data[:200])
            self.assertEqual(c.value(job, "small"), 2)

        good(job["id"])
        for key, words in {"bad": ["bad luck"], "worse": ["worse luck"], "fell": ['"worse"', "worse luck"]}.items():
            with self.assertRaises(HttpError) as e:
                c.value(job["id"], key)
            for word in words:
                self.assertIn(word, json.loads(e.exception.body)["message"])
        many = c.get(f"/v1/jobs/{job['id']}/results")
        self.assertEqual(many["results"], {"small": 2})
        self.assertEqual(list(many["places"]), ["large"])
        self.assertEqual({k: v["message"].split(":")[0] for k, v in many["errors"].items()},
                         {"bad": many["errors"]["bad"]["message"].split(":")[0],
                          "worse": many["errors"]["worse"]["message"].split(":")[0], "fell": 'it needs "worse", which failed'})
        self.assertIn("bad luck", many["errors"]["bad"]["message"])
        self.assertIn("worse luck", many["errors"]["worse"]["message"])
        # `run` writes the values that exist, and its exit code says that the job has failed
        with tempfile.TemporaryDirectory() as out:
            graph = pathlib.Path(out) / "job.json"
            graph.write_text(json.dumps({"on_error": "continue", "tasks": tasks, "targets": list(tasks)}))
            r = subprocess.run([str(bin_dir() / "millrace"), "run", "--url", c.url, "--out", out + "/got", str(graph)],
                               capture_output=True, text=True)
            self.assertEqual(r.returncode, 4, r.stderr)
            self.assertEqual(sorted(os.listdir(out + "/got")), ["large.npy", "small.json"])
            for word in ("worse: ", "bad: ", "fell: ", "worse luck"):
                self.assertIn(word, r.stderr)
        job = c.submit({"tasks": dict(list(tasks.items())[:2], slow={"op": "sleep", "args": [60, 1]}), "targets": ["large", "small", "slow"]})
        for key in ("large", "small"):
            c.get(f"/v1/jobs/{job}/results?key={key}&wait_s=20")
        c.call("POST", f"/v1/jobs/{job}:cancel", {"reason": "enough"})
        self.assertEqual(c.wait(job, 20)["state"], "JOB_CANCELLED")
        good(job)
        with self.assertRaises(HttpError) as e:
            c.value(job, "slow")
        self.assertIn("enough", json.loads(e.exception.body)["message"])

    def test_issue_11_3_counts_add_up_and_no_more_run_than_there_are_slots(self):
        """At every moment the counts of the states add up to the nodes of the graph, and `running`
        is at most the number of slots."""
        c, states = self.cluster, ("waiting", "ready", "sent", "running", "done", "erred", "cancelled", "skipped")
        tasks = {f"s{i}": {"op": "sleep", "args": [0.05, i]} for i in range(40)}
        # the scheduler now knows how long the task takes, and sends more at once
        c.run({"tasks": {"s": {"op": "sleep", "args": [0.001, 1]}}})
        job, most = c.submit({"tasks": dict(tasks, x={"value": 1}), "targets": list(tasks) + ["x"]}), 0
        while True:
            info = c.job(job)
            counts = {k: int(info["counts"].get(k, 0)) for k in (*states, "submitted", "culled")}
            self.assertEqual(sum(counts[k] for k in states), counts["submitted"] - counts["culled"], counts)
            self.assertLessEqual(counts["running"], 2, counts)
            graph = [n["state"] for n in c.get(f"/v1/jobs/{job}/graph")["nodes"]]
            self.assertLessEqual(graph.count("TASK_RUNNING"), 2)
            most = max(most, counts["running"])
            if info["state"] == "JOB_DONE":
                break
        self.assertEqual(counts["done"], 41)
        self.assertGreater(most, 0)

    def test_the_same_request_id_is_the_same_job(self):
        c = self.cluster
        first = c.submit(DSK, request_id="once")
        self.assertEqual(c.submit(DSK, request_id="once"), first)
        other = dict(DSK, targets=["y"])
        self.refused(other, "once", status=409, headers={"Idempotency-Key": "once", "Content-Type": "application/json"})

    # A cancelled task waits in the executor's inbox behind a running one.
    def test_submitting_and_cancelling_ends_no_worker(self):
        c = self.cluster
        c.run({"tasks": {f"s{i}": {"op": "sleep", "args": [0.00001, i]} for i in range(500)}})
        before = c.pids("mr-worker")
        long = c.submit({"tasks": {f"l{i}": {"op": "sleep", "args": [300, i]} for i in range(2)}})
        wait_for("both workers to be busy", lambda: sum(w.get("queued", 0) + w.get("running", 0) for w in c.workers()) >= 2)
        for i in range(40):
            job = c.submit({"tasks": {"x": {"op": "inc", "args": [1000 + i]}}})
            c.call("POST", f"/v1/jobs/{job}:cancel", {})
            self.assertEqual(c.wait(job)["state"], "JOB_CANCELLED")
        self.assertEqual(c.pids("mr-worker"), before)
        c.call("POST", f"/v1/jobs/{long}:cancel", {})
        self.assertEqual(c.wait(long)["state"], "JOB_CANCELLED")
        self.assertEqual(c.pids("mr-worker"), before)

    def test_a_timeout_and_a_cancel_stop_what_runs(self):
        c = self.cluster
        begun = time.monotonic()
        job = c.run({"tasks": {"s": {"op": "sleep", "args": [60, 1], "timeout_s": 0.3}}, "targets": ["s"]})
        self.assertEqual(job["state"], "JOB_FAILED")
        self.assertLess(time.monotonic() - begun, 50)  # less than the 60 s of the task
        job = c.submit({"tasks": {"s": {"op": "sleep", "args": [60, 1]}}, "targets": ["s"]})
        wait_for("it to run", lambda: c.explain(job, "s")["state"] == "TASK_RUNNING", 10)
        c.call("POST", f"/v1/jobs/{job}:cancel", {})
        self.assertEqual(c.wait(job, 20)["state"], "JOB_CANCELLED")
        self.assertEqual(c.run(DSK)["state"], "JOB_DONE")

    def test_arrays_come_back_as_npy_and_json(self):
        c = self.cluster
        job = c.run({"tasks": {"a": {"op": "array.arange", "args": [100000]}, "s": {"op": "array.sum", "args": [{"ref": "a"}]}}, "targets": ["a", "s"]})
        self.assertEqual(job["state"], "JOB_DONE", job)
        self.assertEqual(c.value(job["id"], "s"), 4999950000)
        npy = c.value(job["id"], "a", accept="application/x-npy")
        self.assertTrue(npy.startswith(b"\x93NUMPY"))
        self.assertEqual(len(npy), 100000 * 8 + 128)
        self.assertEqual(c.value(job["id"], "a", accept="application/json")[:3], [0, 1, 2])
        place = c.results(job["id"], "a")["places"]["a"]
        self.assertEqual(int(place["nbytes"]) // 100000, 8)

    def test_a_shared_namespace_joins_equal_keys_and_refuses_others(self):
        c = self.cluster
        graph = {"namespace": "shared", "tasks": {"k": {"op": "add", "args": [20, 22]}}, "targets": ["k"]}
        first, second = c.run(graph), c.run(graph)
        self.assertEqual((first["state"], second["state"]), ("JOB_DONE", "JOB_DONE"))
        self.assertEqual(int(second["counts"]["joined"]), 1)
        self.assertEqual(c.value(second["id"], "k"), 42)
        using = c.run({"namespace": "shared", "tasks": {"m": {"op": "inc", "args": [{"ref": "k"}]}}, "targets": ["m"]})
        self.assertEqual(c.value(using["id"], "m"), 43)
        graph["tasks"]["k"]["args"] = [1, 1]
        self.refused(graph, "k", status=409)

    def test_a_large_literal_is_a_result_too(self):
        job = self.cluster.run({"tasks": {"x": {"value": "a" * 100000}}, "targets": ["x"]})["id"]
        self.assertEqual(self.cluster.value(job, "x"), "a" * 100000)

    def test_a_list_of_jobs_goes_on_after_a_page_whose_next_job_is_forgotten(self):
        c = self.cluster
        ids = [c.submit({"tasks": {"x": {"value": i}}, "targets": ["x"]}) for i in range(5)]
        token = c.get("/v1/jobs?page_size=2")["next_page_token"]
        self.assertEqual(token.split(".")[0], ids[2])
        c.call("DELETE", f"/v1/jobs/{ids[2]}")
        rest = [j["id"] for j in c.get(f"/v1/jobs?page_size=1000&page_token={token}")["jobs"]]
        self.assertEqual(rest[:2], [ids[1], ids[0]])

    def test_jobs_with_large_keys_come_in_smaller_pages(self):
        c = self.cluster
        tasks = {f"{i:04}".ljust(1000, "x"): {"value": i} for i in range(1000)}
        ids = [c.submit({"tasks": tasks, "targets": list(tasks)}) for _ in range(8)]
        seen, token = [], ""
        while True:
            page = c.get(f"/v1/jobs?page_size=1000&page_token={token}")
            seen += [j["id"] for j in page["jobs"]]
            token = page.get("next_page_token")
            if not token:
                break
        self.assertEqual(seen[:8], ids[::-1])
        self.assertEqual(len(seen), len(set(seen)))

    def test_every_key_without_a_value_is_named_however_many_there_are(self):
        c = self.cluster
        tasks = {f"{i:05}".ljust(300, "x"): {"op": "add", "args": [{"ref": "slow"}, i]} for i in range(70000)}
        targets = list(tasks)
        tasks["slow"] = {"op": "sleep", "args": [60]}
        job = c.submit({"tasks": tasks, "targets": targets})
        errors = c.get(f"/v1/jobs/{job}/results?wait_s=1")["errors"]
        self.assertEqual(sorted(errors), sorted(targets))
        c.call("POST", f"/v1/jobs/{job}:cancel", {})

    def test_a_key_that_is_no_target_is_refused_in_words(self):
        job = self.cluster.run(DSK)["id"]
        with self.assertRaises(HttpError) as e:
            self.cluster.value(job, "y")
        self.assertEqual(e.exception.status, 404)
        self.assertIn("target", self.cluster.results(job, "y", "z")["errors"]["y"]["message"])
        self.assertEqual(self.cluster.value(job, "z"), 3)

    def test_a_forgotten_job_says_so(self):
        c = self.cluster
        job = c.run(DSK)["id"]
        self.assertEqual(c.request("DELETE", f"/v1/jobs/{job}")[0], 200)
        with self.assertRaises(HttpError) as e:
            c.job(job)
        self.assertEqual(e.exception.status, 404)
        self.assertIn("forgotten", e.exception.body)

    # ---- bad input ----

    def test_bad_json_is_refused_with_its_place(self):
        self.refused('{"tasks": {', "line 1")
        self.refused('{"tasks": {"x": {"value": 1}},\n "targets": [x]}', "line 2")
        self.refused('{"tasks": {"x": {"value": NaN}}, "targets": ["x"]}')
        self.refused('{"tasks": {"x": {"value": 1e999}}, "targets": ["x"]}')
        self.refused('{"tasks": {"x": {"value": 123456789012345678901234567890}}, "targets": ["x"]}')
        self.refused('{"tasks": {"x": {"value": 1}, "x": {"value": 2}}, "targets": ["x"]}', "x", "twice")
        self.refused(b'{"tasks": {"\xff": {"value": 1}}, "targets": []}', "UTF-8")
        self.refused('{"tasks": {"x": {"value": ' + "[" * 1000 + "]" * 1000 + '}}, "targets": ["x"]}')
        self.refused("", status=400)
        self.refused("[]")

    def test_bad_graphs_are_refused_by_name(self):
        self.refused({"tasks": {"a": {"op": "inc", "args": [{"ref": "b"}]}, "b": {"op": "inc", "args": [{"ref": "a"}]}}, "targets": ["a"]}, "cycle", "a", "b")
        self.refused({"tasks": {"a": {"op": "incc", "args": [1]}}, "targets": ["a"]}, "incc", "inc")
        self.refused({"tasks": {"a": {"op": "inc", "args": [{"ref": "nope"}]}}, "targets": ["a"]}, "nope")
        self.refused({"tasks": {"a": {"op": "inc", "args": [1], "retires": 1}}, "targets": ["a"]}, "retires", "retries")
        self.refused({"tasks": {"a": {"op": "inc", "args": [1, 2, 3]}}, "targets": ["a"]}, "a", "inc")
        self.refused({"tasks": {"a": {"op": "inc", "args": []}}, "targets": ["a"]}, "a", "inc")
        self.refused({"tasks": {"a": {"value": 1}}, "targets": ["b"]}, "b")
        self.refused({"tasks": {"a\nb": {"value": 1}}, "targets": ["a\nb"]})
        self.refused({"tasks": {"a" * 1025: {"value": 1}}, "targets": []}, "1024")
        self.refused({"tasks": {"a": {"value": 1, "retries": -1}}, "targets": ["a"]}, "retries")
        self.refused({"tasks": {"a": {"op": "inc", "args": [{"name": "no such name"}]}}, "targets": ["a"]}, "no such name", status=404)

    def test_wrong_dtypes_fail_the_task_with_a_sentence(self):
        job = self.cluster.run({"tasks": {"t": {"op": "array.matmul", "args": [[[1, 2]], [[1, 2]]]}}, "targets": ["t"]})
        self.assertEqual(job["state"], "JOB_FAILED")
        self.assertIn("array.matmul", job["error"]["message"])
        self.assertEqual(int(job["error"]["attempts"]), 1)

    def test_paths_outside_the_data_root_are_refused(self):
        with tempfile.NamedTemporaryFile(suffix=".npy") as f:
            for path in (f.name, "../../../../etc/passwd", "/etc/passwd"):
                job = self.cluster.run({"tasks": {"t": {"op": "array.from_npy", "args": [path]}}, "targets": ["t"]})
                self.assertEqual(job["state"], "JOB_FAILED", path)
                self.assertIn("--data-root", job["error"]["message"])

    def test_a_body_over_the_limit_is_refused_and_the_service_stays(self):
        c = self.cluster
        s = socket.create_connection((c.host, c.port), 10)
        s.sendall(b"POST /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{" % c.port)
        s.settimeout(20)
        self.assertIn(b"413", s.recv(4096).split(b"\r\n")[0])
        s.close()
        self.assertEqual(c.run(DSK)["state"], "JOB_DONE")

    def test_a_query_of_thousands_of_names_is_answered(self):
        c = self.cluster
        for names in (3000, 10000):
            target = "/v1/jobs/j9-99/results?json=null" + "&key=" * names
            self.assertEqual(c.request("GET", target, timeout=10)[0], 400 if len(target) <= 32 << 10 else 414)

    def test_half_open_connections_and_slow_readers_hurt_nobody(self):
        c = self.cluster
        idle = [socket.create_connection((c.host, c.port), 10) for _ in range(100)]
        for s in idle[:50]:
            s.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: x")
        job = c.submit({"tasks": {f"t{i}": {"op": "sleep", "args": [0.01, i]} for i in range(200)}})
        slow = socket.create_connection((c.host, c.port), 10)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.sendall(b"GET /v1/jobs/%s/events HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\n\r\n" % (job.encode(), c.port))
        self.assertEqual(c.wait(job)["state"], "JOB_DONE")
        self.assertEqual(c.run(DSK)["state"], "JOB_DONE")
        for s in [*idle, slow]:
            s.close()

    # ---- the command line ----

    def test_texts_are_put_and_listed_with_their_size(self):
        """`ls` shows a text file as text, and a collection with the size of its data."""
        c = self.cluster
        with tempfile.TemporaryDirectory() as d:
            path = pathlib.Path(d) / "note.txt"
            path.write_text("a text\n")
            c.cli("put", str(path), "--name", "issue18/note")
        self.assertIn('text "a text', c.cli("ls", "issue18/")[1])
        part = {"op": "array.full", "args": [[250000], 1.5], "for": {"i": 4}}
        c.run({"tasks": {"p/${i}": part, "all": {"op": "collection", "args": {"each": {"ref": "p/${i}"}, "for": {"i": 4}},
                                                 "persist": "issue18/all"}}, "targets": ["all"]})
        line = [x for x in c.cli("ls", "issue18/")[1].splitlines() if "issue18/all" in x][0]
        self.assertIn("in 4 parts 7.6 MiB", line)
        self.assertNotRegex(line, r"\d B\b")

    def test_no_help_says_twice_that_a_flag_may_be_repeated(self):
        """A repeatable flag says so once in --help, not twice."""
        for program in ("mr-worker", "mr-scheduler", "mr-objectstore", "mr-trainer", "mr-gateway", "millrace up"):
            name, *command = program.split()
            text = subprocess.run([str(bin_dir() / name), *command, "--help"], capture_output=True, text=True).stdout
            self.assertIn("may be repeated", text, program)
            for line in text.splitlines():
                self.assertLessEqual(line.count("may be repeated"), 1, program + ": " + line)

    def test_the_command_line_runs_a_file_and_sets_parameters(self):
        c = self.cluster
        out = c.cli("run", "examples/hello.json")[1]
        self.assertIn("z = 3", out)
        with tempfile.TemporaryDirectory() as d:
            c.cli("run", "examples/word-count.json", "--set", "top=3", "--out", d)
            words = json.loads((pathlib.Path(d) / "words.json").read_text())
            self.assertEqual(len(words), 3)
        code, _, err = c.cli("run", "examples/word-count.json", "--set", "topp=3", check=False)
        self.assertEqual(code, 1)
        self.assertIn("topp", err)
        self.assertIn("top", err)
        self.assertEqual(c.cli("status", "j9-99", check=False)[0], 5)
        self.assertEqual(c.cli("frobnicate", check=False)[0], 2)
        self.assertIn("array.mean", c.cli("ops")[1])
        self.assertIn("axis", c.cli("ops", "array.mean")[1])
        job = c.cli("submit", "examples/hello.json", "--wait")[1].strip()
        self.assertIn("done", c.cli("status", job)[1])
        self.assertEqual(c.cli("get", job, "z")[1].strip(), "3")
        self.assertEqual(json.loads(c.cli("workers", "--json")[1])["workers"][0]["state"], "connected")
        self.assertIn("ready", c.cli("top", "-n", "1")[1])

    def test_objects_go_up_and_come_down(self):
        c = self.cluster
        with tempfile.TemporaryDirectory() as d:
            path = pathlib.Path(d) / "t.csv"
            path.write_text("a,b\n1,x\n2,y\n")
            object_id = c.cli("put", str(path), "--name", "my/table", "--persist")[1].split()[0]
            self.assertEqual(len(object_id), 32)
            self.assertIn("my/table", c.cli("ls")[1])
            self.assertEqual(c.cli("get", "my/table")[1].replace("\r", ""), "a,b\n1,x\n2,y\n")
            job = c.run({"tasks": {"n": {"op": "len", "args": [{"name": "my/table"}]}}, "targets": ["n"]})
            self.assertIn(job["state"], ("JOB_DONE", "JOB_FAILED"))
            c.cli("rm", "my/table")
            self.assertNotIn("my/table", c.cli("ls")[1])

    def test_a_named_result_is_found_again(self):
        c = self.cluster
        graph = {"tasks": {"a": {"op": "array.arange", "args": [5000]}, "m": {"op": "array.sum", "args": [{"ref": "a"}], "persist": "sums/5000"}}, "targets": ["m"]}
        first = c.run(graph)
        self.assertEqual(first["state"], "JOB_DONE", first)
        second = c.run(graph)
        self.assertEqual(second["state"], "JOB_DONE", second)
        self.assertGreaterEqual(int(second["counts"]["joined"]), 1)
        self.assertEqual(c.value(second["id"], "m"), 12497500)
        other = c.run({"tasks": {"twice": {"op": "mul", "args": [{"name": "sums/5000"}, 2]}}, "targets": ["twice"]})
        self.assertEqual(c.value(other["id"], "twice"), 24995000)


class Restart(unittest.TestCase):
    def test_a_second_ctrl_c_ends_the_waiting(self):
        with Cluster("--workers", "1", "--threads", "1") as c:
            os.kill(c.pids("mr-objectstore")[0], signal.SIGSTOP)
            c.up.send_signal(signal.SIGINT)
            time.sleep(3)
            self.assertIsNone(c.up.poll(), "it does not wait for the store")
            c.up.send_signal(signal.SIGINT)
            self.assertEqual(c.up.wait(20), 0)

    def test_a_second_up_finds_the_jobs_and_results_of_the_first(self):
        with tempfile.TemporaryDirectory(prefix="mr-") as d:
            c = Cluster("--workers", "1", directory=d)
            try:
                small = c.run(DSK)["id"]
                large = c.run({"tasks": {"a": {"op": "array.arange", "args": [100000]}}, "targets": ["a"]})["id"]
                self.assertEqual(c.stop(), 0)
                c.start()
                self.assertEqual(c.job(small)["state"], "JOB_DONE")
                self.assertEqual(c.value(small, "z"), 3)
                self.assertEqual(len(c.value(large, "a", accept="application/x-npy")), 100000 * 8 + 128)
                c.up.kill()  # the kernel kills its child processes too
                c.up.wait()
                wait_for("the children to die", lambda: not c.pids("mr-worker"), 10)
                c.start()
                self.assertEqual(c.value(small, "z"), 3)
            finally:
                c.close()

    def test_a_collection_keeps_its_parts_until_its_job_is_forgotten(self):
        rows, parts = 50000, 4
        graph = {"tasks": {"p/${i}": {"op": "array.full", "args": [[rows], "${i}"], "kwargs": {"dtype": "f64"}, "for": {"i": parts}},
                           "c": {"op": "array.collection", "args": [{"each": {"ref": "p/${i}"}, "for": {"i": parts}}]}},
                 "targets": ["c"]}
        with Cluster("--workers", "2", "--threads", "1") as c:
            used = lambda: int(c.get("/v1/store/stats").get("used_bytes", 0))  # noqa: E731
            before = used()
            job = c.run(graph)
            self.assertEqual(job["state"], "JOB_DONE", job)

            def check_parts():
                listed = c.value(job["id"], "c")
                self.assertEqual(len(listed["parts"]), parts)
                for i, part in enumerate(listed["parts"]):
                    status, _, data = c.request("GET", f"/v1/objects/{part['object']}", headers={"Accept": "application/x-npy"})
                    self.assertEqual((status, len(data)), (200, rows * 8 + 128))
                    self.assertEqual(struct.unpack("<d", data[-8:]), (float(i),))
            check_parts()
            time.sleep(2.5)  # time for heartbeats and their effects
            check_parts()
            os.kill(c.pids("mr-scheduler")[0], signal.SIGKILL)
            wait_for("the scheduler to be back", lambda: self.is_up(c), 60)
            check_parts()
            time.sleep(2.5)
            check_parts()
            self.assertGreaterEqual(used(), before + parts * rows * 8)
            c.call("DELETE", f"/v1/jobs/{job['id']}")
            wait_for("the store's bytes to fall", lambda: used() < before + rows * 8, 20)

    def is_up(self, c):
        try:
            return c.request("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def test_two_clusters_on_one_directory_are_refused(self):
        with Cluster("--workers", "1") as c:
            code, _, err = c.cli("up", "--dir", str(c.dir / "c"), "--listen", "127.0.0.1:0", check=False)
            self.assertEqual(code, 1)
            self.assertIn("already", err)
            code, _, err = c.cli("up", "--dir", str(c.dir / "d"), "--listen", f"{c.host}:{c.port}", check=False)
            self.assertEqual(code, 1)
            self.assertIn("--listen", err)


class TwoNodes(unittest.TestCase):
    def test_values_travel_between_nodes(self):
        with Cluster("--nodes", "2", "--workers", "1") as c:
            wait_for("both workers", lambda: len(c.workers()) == 2)
            names = sorted(w["name"] for w in c.workers())
            self.assertEqual(len(names), 2)
            graph = {"tasks": {"a": {"op": "array.arange", "args": [300000], "workers": [names[0]]},
                               "b": {"op": "array.sum", "args": [{"ref": "a"}], "workers": [names[1]]},
                               "c": {"op": "add", "args": [{"ref": "a"}, {"ref": "b"}], "workers": [names[0]]}}, "targets": ["b", "c"]}
            job = c.run(graph)
            self.assertEqual(job["state"], "JOB_DONE", job)
            self.assertEqual(c.value(job["id"], "b"), 300000 * 299999 // 2)
            self.assertEqual(len(c.value(job["id"], "c", accept="application/x-npy")), 300000 * 8 + 128)


if __name__ == "__main__":
    unittest.main(verbosity=2)
