"""The dashboard in a real Chromium, against a real cluster with tokens: every page and every action,
as admin, user and reader, with the scheduler killed under an open page. axe-core checks each page. And
the JavaScript client in Node, and the types of both. What needs npm is skipped without it, loudly.

If MILLRACE_DASHBOARD_URL is set, the browser uses the gateway at this URL, and no cluster is started.
The cluster behind the gateway should be new: with old jobs and objects the lists have several pages.
It needs five slots: a job of the test keeps two, and a training uses three.
  MILLRACE_DASHBOARD_TOKENS  tokens of an admin, a user and a reader, separated by spaces
  MILLRACE_DASHBOARD_KILL    a shell command that kills the scheduler, which must stay dead, and
  MILLRACE_DASHBOARD_START   one that starts it again; without both, the step that needs them is
                             skipped, loudly
"""
import collections
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "dashboard"))

import chromium  # noqa: E402
import sample  # noqa: E402
from harness import ROOT, SKIP, SLOW, Cluster, main  # noqa: E402

PACKAGES = {"playwright-core": "1.57.0", "axe-core": "4.11.0", "typescript": "5.9.3"}
HERE = ROOT / "tests/integration/dashboard"
BUILD = pathlib.Path(os.environ["MILLRACE_BUILD"])
PAGES = BUILD / "share/millrace/dashboard"
ROLES = ("admin", "user", "reader")
URL = os.environ.get("MILLRACE_DASHBOARD_URL")
TOKENS = {role: f"{role}-0123456789abcdef" for role in ROLES}
if URL:
    TOKENS = dict(zip(ROLES, os.environ["MILLRACE_DASHBOARD_TOKENS"].split(), strict=True))


def install(folder):
    """Installs the npm packages into a folder, once. Returns why they cannot be installed, or ""."""
    if not shutil.which("npm"):
        return "npm is not installed"
    folder.mkdir(parents=True, exist_ok=True)
    package = json.dumps({"private": True, "type": "module", "dependencies": PACKAGES}, indent=1)
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark = folder / "installed"
        if mark.exists() and mark.read_text() == package:
            return ""
        (folder / "package.json").write_text(package)
        done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            return f"npm cannot install {', '.join(PACKAGES)}: {done.stderr[-500:]}"
        mark.write_text(package)
    return ""


NODE = BUILD / "dashboard-npm"
missing = install(NODE) or ("" if chromium.find() else "Chromium is missing (Debian: chromium)")
if missing:
    print(f"SKIPPED: the dashboard and the JavaScript client: {missing}", file=sys.stderr)
    sys.exit(SKIP)


def node(script, *args, **more):
    """Starts a script of this folder beside the installed packages, where Node finds them."""
    shutil.copy(HERE / script, NODE)
    env = dict(os.environ, CHROMIUM=chromium.find())
    return subprocess.Popen(["node", str(NODE / script), *args], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)


Scheduler = collections.namedtuple("Scheduler", "kill start")


def shell(command):
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL)


class Dashboard(unittest.TestCase):
    def test_types_are_right(self):
        text = (HERE / "tsconfig.json").read_text().replace("DASHBOARD", str(PAGES))
        (NODE / "tsconfig.json").write_text(text)
        done = subprocess.run([NODE / "node_modules/.bin/tsc", "-p", NODE], capture_output=True, text=True)
        self.assertEqual(done.stdout, "")

    @unittest.skipIf(URL, "it needs a cluster without tokens")
    def test_client_in_node(self):
        with Cluster("--workers", "1", "--threads", "1") as c:
            out, _ = (p := node("client.mjs", str(PAGES / "client/millrace.js"), c.url)).communicate(timeout=60 * SLOW)
            print(out)
            self.assertEqual(p.returncode, 0)
            self.comparison_agrees_with_the_command_line(c)

    def comparison_agrees_with_the_command_line(self, c):
        """Compares jobs with different numbers of tasks, and one that was cancelled."""
        small, large = (c.run(sample.reconstruction(parts, 32))["id"] for parts in (4, 6))
        stopped = c.submit(sample.slow(600))
        c.call("POST", f"/v1/jobs/{stopped}:cancel", {})
        c.wait(stopped)
        for before, after in ((small, large), (large, small), (small, small), (large, stopped)):
            with self.subTest(before=before, after=after):
                told = json.loads(c.cli("compare", before, after, "--json")[1])
                out, _ = (p := node("compare.mjs", str(PAGES), c.url, before, after)).communicate(timeout=60 * SLOW)
                self.assertEqual(p.returncode, 0, out)
                self.assertEqual(json.loads(out), told)

    @contextlib.contextmanager
    def cluster(self):
        """Yields (URL of the gateway, the Scheduler that the test may kill or None)."""
        if URL:
            kill, start = (os.environ.get(f"MILLRACE_DASHBOARD_{what}") for what in ("KILL", "START"))
            yield URL, kill and start and Scheduler(lambda: shell(kill), lambda: shell(start))
            return
        with tempfile.TemporaryDirectory(prefix="mr-dashboard-") as directory:
            tokens = os.path.join(directory, "tokens")
            with open(os.open(tokens, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
                f.writelines(f"{token} {role} {role}\n" for role, token in TOKENS.items())
            with Cluster("--workers", "2", "--threads", "3", "--token-file", tokens) as c:
                def kill():
                    c.up.send_signal(signal.SIGSTOP)  # `up` would start another scheduler at once
                    os.kill(c.pids("mr-scheduler")[0], signal.SIGKILL)
                try:
                    yield c.url, Scheduler(kill, lambda: c.up.send_signal(signal.SIGCONT))
                finally:
                    c.up.send_signal(signal.SIGCONT)

    def test_pages_in_a_browser(self):
        with self.cluster() as (url, scheduler):
            api = sample.Api(url, TOKENS["admin"])
            ids = sample.fill(api)
            api.call("POST", "/v1/objects?format=text&name=scratch", "a text that is deleted")
            p = node("browser.mjs", url, json.dumps(ids), json.dumps(TOKENS), stdin=subprocess.PIPE)
            self.addCleanup(p.wait)
            self.addCleanup(p.stdin.close)
            self.addCleanup(p.stdout.close)
            self.addCleanup(p.kill)
            out = []
            for line in p.stdout:
                out.append(line)
                print(line, end="", flush=True)
                if line == "kill scheduler\n":
                    if scheduler:
                        scheduler.kill()
                    print("killed" if scheduler else "cannot", file=p.stdin, flush=True)
                if line == "start scheduler\n":
                    scheduler.start()
                    print("started", file=p.stdin, flush=True)
                if line == "start a training\n":
                    print(sample.start_training(api, 60), file=p.stdin, flush=True)
            self.assertEqual(p.wait(), 0, "".join(out[-200:]))


if __name__ == "__main__":
    main()
