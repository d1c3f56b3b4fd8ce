"""A real cluster for tests: `millrace up` on a directory of its own, HTTP to its gateway, and the
processes by name, so that a test may kill or stop one. Standard library only."""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIP = 77  # CTest's SKIP_RETURN_CODE
SLOW = float(os.environ.get("MILLRACE_TEST_SLOW", "1"))  # a factor for all timeouts


def bin_dir():
    path = os.environ.get("MILLRACE_BIN")
    if not path:
        raise SystemExit("MILLRACE_BIN is not set: the directory with the programs (ctest sets it)")
    return pathlib.Path(path)


def data_dir():
    """The directory of real data sets without symbolic links, as --data-root wants it; or None."""
    path = pathlib.Path(os.environ.get("MILLRACE_TEST_DATA", ROOT.parent / "shared" / "data"))
    return path.resolve() if path.is_dir() else None


def wait_for(what, ready, timeout=30.0, every=0.02):
    """Calls `ready` until its result is true, and returns the result."""
    end = time.monotonic() + timeout * SLOW
    while True:
        value = ready()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {timeout * SLOW:.0f} s for {what}")
        time.sleep(every)


def job_text(job):
    """The text of a job id from its number in worker sessions: tag << 32 | number."""
    tag, number = job >> 32, job & 0xffffffff
    digits = "".join("0123456789abcdefghjkmnpqrstvwxyz"[tag >> 5 * i & 31] for i in reversed(range(7)))
    return f"j{tag if tag < 1000000 else digits}-{number}"


class HttpError(Exception):
    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body


def read_events(response):
    """Yields (id, value) of a stream of Server-Sent Events."""
    event_id, data = None, []
    for raw in response:
        line = raw.decode().rstrip("\r\n")
        if line.startswith("id: "):
            event_id = line[4:]
        elif line.startswith("data: "):
            data.append(line[6:])
        elif not line and data:
            yield event_id, json.loads("\n".join(data))
            event_id, data = None, []


class Cluster:
    url, trust = "", None  # for tests that give host and port only

    def __init__(self, *flags, directory=None, env=None, says=None):
        """`says`: the file to which `up` writes its messages, instead of the one that output()
        reads."""
        self.keep, self.says = directory is not None, says
        self.dir = pathlib.Path(directory or tempfile.mkdtemp(prefix="mr-"))
        self.flags, self.env, self.up = list(flags), dict(os.environ, **(env or {})), None
        self.env["MILLRACE_HOME"] = str(self.dir / "home")
        self.start()

    # ---- start and end ----

    def start(self):
        self.out = open(self.dir / "up.out", "a+")
        args = [str(bin_dir() / "millrace"), "up", "--dir", str(self.dir / "c"), "--listen", "127.0.0.1:0", "--memory", "256MiB",
                "--data-root", str(ROOT)]
        self.up = subprocess.Popen(args + self.flags, stdout=self.says or self.out, stderr=subprocess.STDOUT, env=self.env,
                                   cwd=ROOT, start_new_session=True)
        last = self.dir / "home" / "last.json"
        if last.exists():
            last.unlink()

        def ready():
            if self.up.poll() is not None:
                raise AssertionError("millrace up ended:\n" + self.output())
            return last.exists() and last.read_text().strip()
        try:
            wait_for("the cluster to be ready", ready, 70)
        except AssertionError as e:
            self.kill()
            raise AssertionError(f"{e}\n{self.output()}\n{self.logs()}") from None
        info = json.loads(last.read_text())
        self.url, self.scheduler = info["url"], info["scheduler"]
        u = urllib.parse.urlsplit(self.url)
        self.host, self.port = u.hostname, u.port
        self.trust = ssl.create_default_context(cafile=info["ca"]) if info.get("ca") else None

    def stop(self, timeout=60):
        """Stops the cluster with SIGINT; returns the exit code of `up`."""
        if self.up and self.up.poll() is None:
            self.up.send_signal(signal.SIGINT)
            try:
                self.up.wait(timeout * SLOW)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError("millrace up did not stop\n" + self.output()) from None
        self.out.close()
        return self.up.returncode

    def kill(self):
        if self.up and self.up.poll() is None:
            self.up.kill()  # the kernel kills its child processes too
            self.up.wait()

    def close(self):
        try:
            self.stop()
        finally:
            self.kill()
            if not self.keep:
                shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            print(self.output(), self.logs(), file=sys.stderr)
        self.close()

    def output(self):
        return (self.dir / "up.out").read_text()

    def logs(self, lines=15):
        parts = []
        for path in sorted((self.dir / "c" / "log").glob("*.log")):
            parts.append(f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-lines:]))
        return "\n".join(parts)

    def log(self, name):
        return (self.dir / "c" / "log" / f"{name}.log").read_text(errors="replace")

    def secret(self):
        """The cluster's secret."""
        return (self.dir / "c" / "secret").read_text().strip()

    def pids(self, program):
        """The pids of the children of `up` that run this program ("mr-worker", "redis-server")."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with contextlib.suppress(OSError):
                stat = (entry / "stat").read_text()
                parent = int(stat.rsplit(")", 1)[1].split()[1])
                argv0 = (entry / "cmdline").read_bytes().split(b"\0")[0].decode().split(" ")[0]
                if parent == self.up.pid and os.path.basename(argv0) == program:
                    found.append(int(entry.name))
        return sorted(found)

    def pid_of(self, name):
        """The pid of the child whose command line contains `name`, e.g. "--name=worker-0-1"."""
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                    if parent == self.up.pid and name in (entry / "cmdline").read_text():
                        return int(entry.name)
        return None

    # ---- HTTP ----

    def connect(self, timeout):
        if self.url.startswith("https:"):
            return http.client.HTTPSConnection(self.host, self.port, timeout=timeout * SLOW, context=self.trust)
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout * SLOW)

    def request(self, method, path, body=None, headers=None, timeout=120):
        """(status, headers, bytes)"""
        c = self.connect(timeout)
        try:
            h = dict(headers or {})
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            if body is not None:
                h.setdefault("Content-Type", "application/json")
            c.request(method, path, body, h)
            r = c.getresponse()
            return r.status, r.headers, r.read()
        finally:
            c.close()

    def call(self, method, path, body=None, headers=None, timeout=120):
        status, _, data = self.request(method, path, body, headers, timeout)
        if not 200 <= status < 300:
            raise HttpError(status, data.decode(errors="replace"))
        return json.loads(data) if data else None

    def get(self, path, **kw):
        return self.call("GET", path, **kw)

    def submit(self, graph, request_id=None):
        headers = {"Idempotency-Key": request_id} if request_id else None
        return self.call("POST", "/v1/jobs", graph, headers)["id"]

    def job(self, job_id, wait_s=0):
        return self.get(f"/v1/jobs/{job_id}?wait_s={wait_s}")

    def wait(self, job_id, timeout=120):
        """The job after its end; waits even if the gateway goes away meanwhile."""
        def over():
            if self.up.poll() is not None:
                raise AssertionError(f"millrace up ended before job {job_id} did")
            try:
                job = self.job(job_id, wait_s=2)
            except (OSError, http.client.HTTPException):
                time.sleep(0.1)
                return None
            except HttpError as e:
                if e.status in (502, 503, 504):
                    time.sleep(0.1)
                    return None
                raise
            return job if job["state"] in ("JOB_DONE", "JOB_FAILED", "JOB_CANCELLED") else None
        return wait_for(f"job {job_id} to end", over, timeout)

    def run(self, graph, timeout=120):
        return self.wait(self.submit(graph), timeout)

    def results(self, job_id, *keys, wait_s=30):
        query = urllib.parse.urlencode([("key", k) for k in keys] + [("wait_s", wait_s)])
        return self.get(f"/v1/jobs/{job_id}/results?{query}")

    def value(self, job_id, key, accept=None):
        path = f"/v1/jobs/{job_id}/results/{urllib.parse.quote(key, safe='')}?wait_s=30"
        status, headers, data = self.request("GET", path, headers={"Accept": accept} if accept else None)
        if status != 200:
            raise HttpError(status, data.decode(errors="replace"))
        return json.loads(data) if headers.get_content_type() == "application/json" else data

    def events(self, job_id, last_id=None, timeout=120):
        """Yields (id, job) of a job's event stream; ends with the stream."""
        c = self.connect(timeout)
        headers = {"Accept": "text/event-stream"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        try:
            c.request("GET", f"/v1/jobs/{job_id}/events", headers=headers)
            r = c.getresponse()
            if r.status != 200:
                raise HttpError(r.status, r.read().decode(errors="replace"))
            for event_id, value in read_events(r):
                yield event_id, value["job"]
        finally:
            c.close()

    def explain(self, job_id, key):
        return self.get(f"/v1/jobs/{job_id}/explain?key={urllib.parse.quote(key, safe='')}")

    def workers(self):
        return self.get("/v1/workers").get("workers", [])

    def wait_for_workers(self, n):
        """Waits until the cluster has all its workers and no roles of earlier sessions. A cluster
        is ready with its first worker; killed workers come back; the last roles of a session
        leave after its end."""
        def there():
            # a worker or role that is just starting may still appear
            with contextlib.suppress(OSError, http.client.HTTPException, HttpError):
                idle = [w for w in self.workers() if w.get("state") == "connected" and not w.get("running") and not w.get("queued")]
                return len(idle) >= n
        wait_for(f"{n} workers without a task", there, 30)
        return self

    def cli(self, *args, check=True, timeout=120):
        """Runs a command of `millrace` against this cluster: (exit code, stdout, stderr)."""
        r = subprocess.run([str(bin_dir() / "millrace"), *args], env=dict(self.env, MILLRACE_URL=self.url), capture_output=True,
                           text=True, timeout=timeout * SLOW, cwd=ROOT)
        if check and r.returncode:
            raise AssertionError(f"millrace {' '.join(args)}: exit {r.returncode}\n{r.stdout}{r.stderr}")
        return r.returncode, r.stdout, r.stderr


def main():
    unittest.main(verbosity=2)
