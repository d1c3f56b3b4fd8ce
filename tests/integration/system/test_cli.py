#!/usr/bin/env python3
"""The command line as people and scripts use it: exit codes, stdin and stdout, a terminal of 80 columns."""
import http.server
import json
import pathlib
import re
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, SLOW, Cluster, bin_dir  # noqa: E402

PROGRAM = str(bin_dir() / "millrace")
GRAPH = {"dsk": {"x": 1, "y": ["inc", "x"], "z": ["add", "x", "y"]}, "targets": ["y", "z"]}
FAILS = {"dsk": {"good": ["inc", 1], "bad": ["fail", "on purpose"]}, "targets": ["good", "bad"]}


def commands():
    text = subprocess.run([PROGRAM, "help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z]+) +\S", text, re.M)


class TooLate(http.server.BaseHTTPRequestHandler):
    """A gateway that always says that time is over."""

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

    @classmethod
    def tearDownClass(cls):
        cls.c.close()

    def millrace(self, *args, **kw):
        return subprocess.run([PROGRAM, *args], env=dict(self.c.env, MILLRACE_URL=self.c.url), cwd=ROOT, timeout=120 * SLOW,
                              **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **kw})

    def test_help_names_a_command(self):
        """Issue 11, 14: `help CMD` is `CMD --help`, for every command."""
        self.assertIn("run", commands())
        for name in commands():
            flag = self.millrace(name, "--help")
            word = self.millrace("help", name)
            self.assertEqual((word.returncode, word.stdout), (0, flag.stdout), name)
            self.assertIn("millrace " + name, word.stdout)
        self.assertEqual(self.millrace("help", "frobnicate").returncode, 2)

    def test_exit_codes_are_those_of_the_document(self):
        """Issue 11, 14: every row of the table in docs/cli.md is seen."""
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

    def test_what_cannot_be_written_is_an_error(self):
        """Issue 11, 14: stdout on a full device, or closed."""
        job = self.millrace("submit", "-", "--wait", input=json.dumps(GRAPH)).stdout.strip()
        for args in (["help"], ["status", "--help"], ["--version"], ["status"], ["status", job], ["get", job, "z"], ["ops", "--json"],
                     ["run", "examples/hello.json"], ["run", "examples/hello.json", "--json"], ["watch", job], ["logs", job, "--help"]):
            with open("/dev/full", "w") as full:
                r = self.millrace(*args, stdout=full)
            self.assertEqual(r.returncode, 1, args)
            self.assertIn("cannot write to stdout", r.stderr, args)
        closed = subprocess.run(["sh", "-c", f"{PROGRAM} ops --url {self.c.url} >&-"], capture_output=True, text=True)
        self.assertEqual(closed.returncode, 1, closed.stderr)
        # More than stdout's buffer holds: the write fails while the answer comes.
        big = self.millrace("submit", "-", "--wait", input=json.dumps({"dsk": {"a": ["array.zeros", [1000000]]}, "targets": ["a"]})).stdout.strip()
        with open("/dev/full", "w") as full:
            r = self.millrace("get", big, "a", stdout=full)
        self.assertEqual(r.returncode, 1, r.stderr)
        self.assertIn("No space left", r.stderr)

    def test_graphs_come_from_stdin_and_results_leave_as_json(self):
        """Issue 11, 14: `submit -`, `run -` and `run --json`, with nothing else on stdout."""
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
