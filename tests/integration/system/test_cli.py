#!/usr/bin/env python3
"""The command line: exit codes, stdin and stdout, a terminal of 80 columns."""
import http.server
import json
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

PROGRAM = str(bin_dir() / "millrace")
GRAPH = {"dsk": {"x": 1, "y": ["inc", "x"], "z": ["add", "x", "y"]}, "targets": ["y", "z"]}
FAILS = {"dsk": {"good": ["inc", 1], "bad": ["fail", "on purpose"]}, "targets": ["good", "bad"]}


def commands():
    text = subprocess.run([PROGRAM, "help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z]+) +\S", text, re.M)


class TooLate(http.server.BaseHTTPRequestHandler):
    """A gateway that answers every request with 504."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        body = b'{"code": 4, "message": "time is over", "details": []}'
        self.send_response(504)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Cli(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster("--workers", "1", "--threads", "1")
        cls.dir = cls.c.dir

    @classmethod
    def tearDownClass(cls):
        cls.c.close()

    def millrace(self, *args, **kw):
        return subprocess.run([PROGRAM, *args], timeout=120 * SLOW,
                              **{"env": dict(self.c.env, MILLRACE_URL=self.c.url), "cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **kw})

    def test_help_names_a_command(self):
        """`help CMD` is `CMD --help`, for every command."""
        self.assertIn("run", commands())
        for name in commands():
            flag = self.millrace(name, "--help")
            word = self.millrace("help", name)
            self.assertEqual((word.returncode, word.stdout), (0, flag.stdout), name)
            self.assertIn("millrace " + name, word.stdout)
        self.assertEqual(self.millrace("help", "frobnicate").returncode, 2)

    def test_exit_codes_are_those_of_the_document(self):
        """Every exit code in the table of docs/cli.md occurs."""
        job = json.loads(self.millrace("run", "-", "--json", input=json.dumps(FAILS)).stdout)["job"]["id"]
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), TooLate)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        late = f"http://127.0.0.1:{server.server_port}"
        seen = {
            0: [["status"], ["status", job], ["help"]],
            1: [["run", "examples/word-count.json", "--set", "topp=3"], ["get", job, "good", "-o", "/no/such/dir/x"]],
            2: [["frobnicate"], ["run"], ["status", "--frobnicate"], ["queue", "frobnicate"], ["channel", "read"], []],
            3: [["status", "--url", "http://127.0.0.1:1"], ["ops", "--url", "http://127.0.0.1:1"], ["ls", "--url", "127.0.0.1:1"]],
            4: [["watch", job], ["run", "-"]],
            5: [["status", "j9-99"], ["watch", "j9-99"], ["cancel", "j9-99"], ["get", "no/name"], ["explain", job, "nothing"],
                ["submit", "/no/such/file.json"], ["queue", "get", "none"]],
            6: [["status", "--url", late], ["ls", "--url", late], ["workers", "--url", late]],
        }
        for code, calls in seen.items():
            for args in calls:
                r = self.millrace(*args, input=json.dumps(FAILS))
                self.assertEqual(r.returncode, code, f"{args}: {r.stdout}{r.stderr}")
        server.shutdown()
        server.server_close()
        nobody = subprocess.run([PROGRAM, "status"], env={"MILLRACE_HOME": "/no/such/home"}, capture_output=True)
        self.assertEqual(nobody.returncode, 3, nobody.stderr)
        table = re.findall(r"^\| (\d) \|", (ROOT / "docs" / "cli.md").read_text(), re.M)
        self.assertEqual(sorted(seen), [int(n) for n in table])

    def test_what_would_have_no_effect_is_refused(self):
        """Flags and arguments that would be ignored beside the others."""
        for line, why in (("dashboard /tmp", '"/tmp" has no effect without --offline'),
                          ("dashboard --dir /tmp", "--dir has no effect without --offline"),
                          ("dashboard --listen 127.0.0.1:0", "--listen has no effect without --offline"),
                          ("dashboard --offline --dir /tmp /", "--dir cannot be used with the argument"),
                          ("timeline j1-1 --dir /tmp", "--dir has no effect without --offline"),
                          ("timeline j1-1 --chrome - --json", "--chrome cannot be used with --json"),
                          ("profile j1-1 --redis-password-file x", "--redis-password-file has no effect without --offline"),
                          ("profile j1-1 --last 5m", '--last cannot be used with the argument "j1-1"'),
                          ("profile --steps 5", "--steps: expected the id of a job"),
                          ("report j1-1 --html - --json", "--html cannot be used with --json"),
                          ("compare j1-1 j1-2 --offline --url http://x", "--url cannot be used with --offline"),
                          ("whatif j1-1 --redis unix:x --token t", "--token cannot be used with --redis")):
            r = self.millrace(*line.split())
            self.assertIn(r.returncode, (1, 2), line)
            self.assertIn(why, r.stderr, line)
            self.assertEqual(r.stdout, "", line)

    def test_what_cannot_be_written_is_an_error(self):
        """Stdout is a full device, or closed."""
        job = self.millrace("submit", "-", "--wait", input=json.dumps(GRAPH)).stdout.strip()
        for args in (["help"], ["status", "--help"], ["--version"], ["status"], ["status", job], ["get", job, "z"], ["ops", "--json"],
                     ["run", "examples/hello.json"], ["run", "examples/hello.json", "--json"], ["watch", job], ["logs", job, "--help"]):
            with open("/dev/full", "w") as full:
                r = self.millrace(*args, stdout=full)
            self.assertEqual(r.returncode, 1, args)
            self.assertIn("cannot write to stdout", r.stderr, args)
        closed = subprocess.run(["sh", "-c", f"{PROGRAM} ops --url {self.c.url} >&-"], capture_output=True, text=True)
        self.assertEqual(closed.returncode, 1, closed.stderr)
        # The output is larger than stdout's buffer, so the write fails while the answer arrives.
        big = self.millrace("submit", "-", "--wait", input=json.dumps({"dsk": {"a": ["array.zeros", [1000000]]}, "targets": ["a"]})).stdout.strip()
        with open("/dev/full", "w") as full:
            r = self.millrace("get", big, "a", stdout=full)
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("No space left", r.stderr)

    def test_graphs_come_from_stdin_and_results_leave_as_json(self):
        """`submit -`, `run -` and `run --json`, with nothing else on stdout."""
        r = self.millrace("run", "-", "--json", input=json.dumps(GRAPH))
        self.assertEqual(r.returncode, 0, r.stderr)
        said = json.loads(r.stdout)
        self.assertEqual(said["results"], {"y": 2, "z": 3})
        self.assertEqual(said["job"]["state"], "JOB_DONE")
        r = self.millrace("run", "-", "--json", "--set", "n=4", input=json.dumps(
            {"params": {"n": 1}, "tasks": {"a": {"op": "inc", "args": ["${n}"]}}, "targets": ["a"]}))
        self.assertEqual(json.loads(r.stdout)["results"], {"a": 5}, r.stderr)
        r = self.millrace("run", "-", "--json", input=json.dumps(FAILS))
        self.assertEqual(r.returncode, 4, r.stderr)
        said = json.loads(r.stdout)
        self.assertEqual(said["results"], {"good": 2})
        self.assertIn("on purpose", said["errors"]["bad"]["message"])
        r = self.millrace("submit", "-", input="{")
        self.assertEqual(r.returncode, 1)
        self.assertTrue(r.stderr.strip())

    def test_data_is_of_this_machine_only_where_up_runs_the_cluster(self):
        """With a cluster on another machine, --data is a path of that machine: it is sent unchanged
        and checked there."""
        graph = json.dumps({"params": {"data": None}, "tasks": {"a": {"op": "text.read", "args": ["${data}/x.txt"]}}, "targets": ["a"]})
        home = self.dir / "elsewhere"  # no cluster was started from this directory
        for command in (["run", "-"], ["submit", "-", "--wait"]):
            r = self.millrace(*command, "--data", "/no/such/data", input=graph)
            self.assertEqual((r.returncode, "--data /no/such/data: " in r.stderr), (5, True), r.stderr)
            for data in ("/no/such/data", "no/such/data", str(ROOT.parent)):
                r = self.millrace(*command, "--data", data, input=graph, env=dict(self.c.env, MILLRACE_URL=self.c.url, MILLRACE_HOME=str(home)))
                self.assertEqual(r.returncode, 4, r.stdout + r.stderr)
                job = self.c.get("/v1/jobs?page_size=1")["jobs"][0]
                self.assertIn(data + "/x.txt", job["error"]["message"] + job["error"]["arguments"])
                self.assertNotIn("--data", r.stderr)
        # The same machine under another name, and a relative path.
        other = self.c.url.replace("127.0.0.1", "localhost")
        (self.dir / "x.txt").write_text("x")
        r = self.millrace("run", "-", "--data", ".", input=graph, cwd=self.dir, env=dict(self.c.env, MILLRACE_URL=other))
        self.assertEqual(r.returncode, 4, r.stdout + r.stderr)  # the path is outside the data roots
        self.assertIn(str(self.dir.resolve()) + "/x.txt", r.stdout)
        for command in ("run", "submit", "train"):
            self.assertIn("a path of this machine if `up` runs the cluster here", self.millrace(command, "--help").stdout)

    def start_run(self):
        """Starts `run`, which waits for its job and handles signals: (process, job id)."""
        label = str(time.monotonic_ns())
        graph = self.dir / f"{label}.json"
        graph.write_text(json.dumps({"tasks": {"s": {"op": "sleep", "args": [60, 1]}}, "targets": ["s"], "labels": {"of": label}}))
        p = subprocess.Popen([PROGRAM, "run", str(graph)], env=dict(self.c.env, MILLRACE_URL=self.c.url), stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        self.addCleanup(p.communicate)
        self.addCleanup(p.kill)

        def holds():
            status = pathlib.Path(f"/proc/{p.pid}/status").read_text()
            return int(re.search(r"SigBlk:\s*(\w+)", status).group(1), 16) & 1 << (signal.SIGINT - 1)
        wait_for("run to hold its signals", holds)
        return p, self.c.get(f"/v1/jobs?label=of%3D{label}")["jobs"][0]["id"]

    def test_ctrl_c_in_run_says_the_job_and_twice_cancels_it(self):
        """Ctrl-C cancels the job, a second one leaves at once; SIGTERM leaves without a cancel."""
        p, job = self.start_run()
        p.send_signal(signal.SIGINT)
        said = p.stderr.readline()
        self.assertIn(f"job {job} goes on; Ctrl-C again cancels it", said)
        self.assertIsNone(p.poll())
        self.assertIn(self.c.job(job)["state"], ("JOB_RUNNING", "JOB_PENDING"))
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=60 * SLOW)
        self.assertEqual(p.returncode, 4, err)
        self.assertIn(f"job {job} is being cancelled", err)
        self.assertIn("cancelled", out)
        self.assertEqual(self.c.job(job)["state"], "JOB_CANCELLED")
        p, job = self.start_run()
        p.send_signal(signal.SIGTERM)
        _, err = p.communicate(timeout=60 * SLOW)
        self.assertEqual(p.returncode, 128 + signal.SIGTERM)
        self.assertIn(f"job {job} is left to itself", err)
        self.assertIn(self.c.job(job)["state"], ("JOB_RUNNING", "JOB_PENDING"))
        self.millrace("cancel", job)

    def test_jobs_are_retried_forgotten_and_looked_into(self):
        """Retry, profile, graph, forget, and the filters of `status`."""
        def listed(*flags):
            return [j["id"] for j in json.loads(self.millrace("status", "--json", *flags).stdout).get("jobs", [])]
        labelled = {"tasks": {"a": {"op": "inc", "args": [1]}, "b": {"op": "inc", "args": [{"ref": "a"}]}}, "targets": ["b"],
                    "labels": {"of": "cli"}}
        ids = [self.millrace("submit", "-", "--wait", input=json.dumps(labelled)).stdout.strip() for _ in range(3)]
        failed = self.millrace("submit", "-", "--wait", input=json.dumps(dict(FAILS, labels={"of": "cli"}))).stdout.strip()
        self.assertEqual(listed("--label", "of=cli"), [failed, *ids[::-1]])
        self.assertEqual(listed("--label", "of=cli", "--state", "done"), ids[::-1])
        self.assertEqual(listed("--label", "of=cli", "--state", "failed"), [failed])
        self.assertEqual(listed("--label", "of=cli", "--limit", "2"), [failed, ids[2]])
        table = self.millrace("status", "--label", "of=cli", "-n", "1").stdout
        self.assertIn(failed, table)
        self.assertIn("older ones", table)
        self.assertEqual(self.millrace("status", "--state", "odd").returncode, 1)
        graph = self.millrace("graph", ids[0]).stdout
        self.assertRegex(graph, r"DONE +inc +b \(target\) <- a")
        self.assertIn("more", self.millrace("graph", ids[0], "--limit", "1").stdout)
        profile = self.millrace("profile", ids[0]).stdout
        self.assertRegex(profile, r"OPERATOR +ATTEMPTS ")
        self.assertRegex(profile, r"inc +2 ")
        self.assertIn("  value: 1 byte, inline\n", self.millrace("explain", ids[0], "b").stdout)
        retried = self.millrace("retry", failed)
        self.assertEqual(retried.returncode, 0, retried.stderr)
        self.assertEqual(self.millrace("watch", failed).returncode, 4)
        self.assertEqual(self.millrace("forget", *ids).returncode, 0)
        self.assertEqual(self.millrace("status", ids[0]).returncode, 5)
        self.assertEqual(listed("--label", "of=cli"), [failed])

    def test_templates_and_queues_are_made(self):
        """Template list/show/install/instantiate/delete, queue create."""
        body = json.dumps({"params": {"n": 1}, "tasks": {"a": {"op": "inc", "args": ["${n}"]}}, "targets": ["a"]})
        other = body.replace('"n": 1', '"n": 2')
        self.assertEqual(self.millrace("template", "install", "-", "--name", "one", input=body).stdout, "one\n")
        self.assertEqual(self.millrace("template", "install", "-", "--name", "one", input=other).returncode, 1)
        self.assertEqual(self.millrace("template", "install", "-", "--name", "one", "--replace", input=body).returncode, 0)
        self.assertIn("one", self.millrace("template", "list").stdout)
        self.assertIn("parameters: n", self.millrace("template", "show", "one").stdout)
        job = self.millrace("template", "instantiate", "one", "--set", "n=41", "--wait")
        self.assertEqual(job.returncode, 0, job.stderr)
        self.assertEqual(self.millrace("get", job.stdout.strip(), "a").stdout.strip(), "42")
        self.assertEqual(self.millrace("template", "delete", "one").returncode, 0)
        self.assertEqual(self.millrace("template", "show", "one").returncode, 5)
        self.assertEqual(self.millrace("template", "show").returncode, 2)
        made = self.millrace("queue", "create", "small", "--items", "3", "--deliveries", "2", "--json")
        self.assertEqual(json.loads(made.stdout)["items_max"], 3, made.stderr)
        self.assertIn("of 3", self.millrace("queue", "get", "small").stdout)

    def test_worker_retires(self):
        """`retire`. Its name is the last in the alphabet, so this test runs last: the worker
        leaves."""
        self.assertEqual(self.millrace("retire", "nobody").returncode, 5)
        name = self.c.workers()[0]["name"]
        r = self.millrace("retire", name)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn(name + ": leaves", r.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)
