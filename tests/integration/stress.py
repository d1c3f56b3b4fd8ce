"""Random work under random faults on a real cluster, checked against what Python computes.

    stress.py [--seconds 60] [--seed N] [--clients 6] [--calm] [--out DIR] [--only KIND,...]

Clients submit jobs of many shapes and cancel, retry, forget, follow and read them, while (unless
--calm) single processes are killed and Redis is stopped. Then faults stop, and: every accepted job
ends, its values are what they should be, a failure is one that was meant; nothing hung, no process
died of itself, no sanitizer spoke; when all is forgotten, memory, descriptors and files return to
what they were. What a client does follows from seed, client and number alone, and is written to
DIR/ops.jsonl. Exit code 1 and a list when something is wrong. MILLRACE_BIN and MILLRACE_TEST_PLUGIN
as for the system tests."""
import argparse
import collections
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import stress_jobs  # noqa: E402
from harness import SLOW, Cluster, HttpError, bin_dir, wait_for  # noqa: E402

ENDED = ("JOB_DONE", "JOB_FAILED", "JOB_CANCELLED")
AWAY = (OSError, http.client.HTTPException)
REQUEST_S = 60      # limit of the time of an answer
END_S = 120         # limit of a job's time after the faults have stopped
QUIET_S = 150       # time until memory is returned: orphans wait 60 s and are looked for every 30 s
SANITIZED = b"__asan_init" in (bin_dir() / "mr-scheduler").read_bytes()
PROGRAMS = ("mr-scheduler", "mr-objectstore", "mr-gateway", "redis-server")


class Stress:
    def __init__(self, args, cluster):
        self.args, self.c = args, cluster
        self.lock, self.stop = threading.Lock(), threading.Event()
        self.wrong, self.seen = [], collections.Counter()
        self.jobs = {}  # id -> stress_jobs.Job
        self.uploads = set()
        self.killed = collections.Counter()  # program -> how often this test has killed it
        self.log = open(args.out / "ops.jsonl", "w")
        self.began = time.monotonic()

    # ---- notes ----

    def note(self, who, **fields):
        with self.lock:
            print(json.dumps({"t": round(time.monotonic() - self.began, 3), "who": who, **fields}), file=self.log, flush=True)

    def fault(self, text):
        with self.lock:
            self.wrong.append(text)
            print(f"{time.monotonic() - self.began:7.1f} s  WRONG: {text}", file=sys.stderr, flush=True)

    # ---- one request ----

    def ask(self, who, method, path, body=None, headers=None, fine=(404, 409)):
        """Sends a request: (status, data), or (0, None) without an answer. Records answers that a
        calm cluster must not give."""
        begun = time.monotonic()
        try:
            status, _, data = self.c.request(method, path, body, headers, timeout=REQUEST_S)
        except AWAY as e:
            status, data = 0, None
            if isinstance(e, TimeoutError) or time.monotonic() - begun > REQUEST_S * SLOW:
                self.fault(f"{method} {path[:200]}: no answer within {REQUEST_S * SLOW:.0f} s")
            elif self.args.calm:
                self.fault(f"{method} {path[:200]}: {e!r}")
        took = time.monotonic() - begun
        with self.lock:
            self.seen[f"{method} {status}"] += 1
        away = status in (502, 503, 504)
        # a failed precondition: a key of another job, or a job that has not ended
        if status == 400 and b'"code":9,' in data:
            status = 409
        if status and not 200 <= status < 300 and status not in fine and (not away or self.args.calm):
            self.fault(f"{method} {path[:200]}: {status} {data[:300]!r}")
        self.note(who, m=method, p=path[:200], s=status, ms=round(took * 1e3))
        return status, data

    # ---- actions of clients ----

    def submit(self, who, number, rng):
        job = stress_jobs.make(rng, self.args.only, ("worker-0-0", "worker-0-1"))
        headers = {"Content-Type": "application/json", "Idempotency-Key": f"{self.args.seed}-{who}-{number}"}
        body = json.dumps(job.graph)
        self.note(who, submit=job.kind, n=number, bytes=len(body))
        while not self.stop.is_set():
            status, data = self.ask(who, "POST", "/v1/jobs", body, headers)
            if status == 200:
                job.id = json.loads(data)["id"]
                with self.lock:
                    self.jobs[job.id] = job
                    self.seen["job " + job.kind] += 1
                return job
            if status and status < 500:
                self.fault(f"a {job.kind} was refused: {status} {data[:300]!r}")
                return None
            time.sleep(0.2)
        # The job may have been accepted although the request failed; the list of jobs tells.
        return None

    def follow(self, who, job, rng):
        """Reads the event stream for a while: ids must ascend, and the last state must be a final
        one."""
        last, until = -1, time.monotonic() + rng.uniform(0.2, 5)
        try:
            for event_id, info in self.c.events(job.id, timeout=30):
                if event_id:
                    if int(event_id) <= last:
                        self.fault(f"{job.id}: event {event_id} after {last}")
                    last = int(event_id)
                if time.monotonic() > until or info["state"] in ENDED:
                    break
        except AWAY:
            pass
        except (HttpError, KeyError, ValueError) as e:
            if getattr(e, "status", 0) not in (204, 404, 502, 503, 504):
                self.note(who, events=repr(e)[:300])
        self.note(who, events=job.id)

    def look(self, who, job, rng):
        key = urllib.parse.quote(rng.choice(list(job.graph["tasks"])), safe="")
        path = rng.choice((f"/explain?key={key}", "/timeline?spans_max=100", "/profile", "/graph", f"/logs?key={key}", "?wait_s=1", ""))
        self.ask(who, "GET", f"/v1/jobs/{job.id}{path}")

    def check_values(self, who, job):
        """Checks that each target with a value has the right one. True if all targets have a value."""
        targets = job.graph["targets"]
        whole = True
        for at in range(0, len(targets), 200):
            part = targets[at:at + 200]
            status, data = self.ask(who, "GET", f"/v1/jobs/{job.id}/results?" + urllib.parse.urlencode([("key", k) for k in part] + [("wait_s", 2)]))
            if status != 200:
                return False
            got = json.loads(data)
            for key in part:
                if key in got["results"]:
                    if key in job.values and got["results"][key] != job.values[key]:
                        self.fault(f"{job.kind} {job.id}: {key} is {str(got['results'][key])[:100]}, not {str(job.values[key])[:100]}")
                elif key in got["places"]:
                    n = int(got["places"][key]["nbytes"])
                    if key in job.sizes and not job.sizes[key] <= n <= job.sizes[key] + 4096:
                        self.fault(f"{job.kind} {job.id}: {key} has {n} bytes, not {job.sizes[key]}")
                else:
                    whole = False
        return whole

    def client(self, who):
        number = 0
        mine = collections.deque()
        while not self.stop.is_set() and number < self.args.jobs:
            rng = random.Random(f"{self.args.seed}/{who}/{number}")
            job = self.submit(who, number, rng)
            number += 1
            if job:
                mine.append(job)
            for _ in range(rng.randint(0, 3)):
                if mine and not self.stop.is_set():
                    self.act(who, rng.choice(mine), rng)
            while len(mine) > 12:
                old = mine.popleft()
                if rng.random() < 0.7:
                    self.check_values(who, old)
                    old.is_forgotten = True  # whatever the answer is, the job may be forgotten
                    self.ask(who, "DELETE", f"/v1/jobs/{old.id}")
            if rng.random() < 0.15:
                self.objects(who, number, rng)
            time.sleep(rng.choice((0, 0, 0.05, 0.3)))

    def act(self, who, job, rng):
        what = rng.random()
        if what < 0.15:
            job.may_cancel = True
            self.ask(who, "POST", f"/v1/jobs/{job.id}:cancel", {"reason": "stress"})
        elif what < 0.3:
            self.ask(who, "POST", f"/v1/jobs/{job.id}:retry", {})
        elif what < 0.5:
            self.follow(who, job, rng)
        elif what < 0.7:
            self.check_values(who, job)
        else:
            self.look(who, job, rng)

    def objects(self, who, number, rng):
        name = f"up/{who}/{number}"
        data = bytes([number % 251]) * rng.choice((0, 1, 5000, 300000))
        with self.lock:
            self.uploads.add(name)
        status, _ = self.ask(who, "POST", f"/v1/objects?name={urllib.parse.quote(name, safe='')}", data, {"Content-Type": "application/octet-stream"})
        if status != 200:
            return
        status, answer = self.ask(who, "GET", f"/v1/names/{name}")
        if status != 200:
            return
        object_id = json.loads(answer)["object"]
        if rng.random() < 0.5:
            self.ask(who, "POST", f"/v1/objects/{object_id}:persist", {})
        status, answer = self.ask(who, "GET", f"/v1/objects/{object_id}", headers={"Accept": "application/octet-stream"})
        if status == 200 and answer != data:
            self.fault(f"the object {name} has {len(answer)} other bytes")
        if rng.random() < 0.7:
            self.ask(who, "DELETE", f"/v1/names/{name}")

    # ---- faults ----

    def chaos(self):
        """Kills a process every few seconds; one program at most four times a minute, because `up`
        gives up at five."""
        rng = random.Random(f"{self.args.seed}/chaos")
        recent = collections.defaultdict(list)
        while not self.stop.wait(rng.uniform(2, 6)):
            what = rng.choice(("mr-worker", "mr-worker", "mr-scheduler", "mr-objectstore", "mr-gateway", "redis-server"))
            now = time.monotonic()
            recent[what] = [t for t in recent[what] if now - t < 70]
            pids = self.c.pids(what)
            if not pids or (what != "mr-worker" and len(recent[what]) >= 4):
                continue
            recent[what].append(now)
            pid = rng.choice(pids)
            self.note("chaos", fault=what, pid=pid)
            self.killed[what] += 1
            try:
                if what != "redis-server":
                    os.kill(pid, signal.SIGKILL)
                    continue
                os.kill(pid, signal.SIGSTOP)
                time.sleep(3)
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass

    # ---- the end ----

    def finish(self, job):
        """Waits for the end of the job and checks its result."""
        try:
            ended = self.c.wait(job.id, END_S)
        except AssertionError as e:
            reasons = [f"{k}: {self.sentence(job, k)}" for k in job.graph["targets"][:3]]
            self.fault(f"{job.kind}: {e}; {'; '.join(reasons)}")
            return
        except HttpError as e:
            if not (e.status == 404 and job.is_forgotten):
                self.fault(f"{job.kind} {job.id}: {e}")
            return
        state, error = ended["state"], ended.get("error") or {}
        if state == "JOB_CANCELLED" and not job.may_cancel:
            self.fault(f"{job.kind} {job.id} was cancelled by nobody: {error}")
        if state == "JOB_DONE" and not job.may_succeed and not job.may_cancel:
            self.fault(f"{job.kind} {job.id} is done and should have failed")
        if state == "JOB_FAILED" and not re.search(job.may_fail or "$^", error.get("message", "")):
            convicted = self.killed["mr-worker"] + self.killed["mr-objectstore"] >= 3 and re.search("worker.*died|killed", error.get("message", ""))
            if not convicted:
                self.fault(f"{job.kind} {job.id} failed: {json.dumps(error)[:600]}")
            else:
                print(f"convicted by our kills: {job.kind} {job.id}: {json.dumps(error)[:600]}", flush=True)
        if not self.check_values("end", job) and state == "JOB_DONE":
            if not wait_for_true(lambda: self.check_values("end", job), 30):
                self.fault(f"{job.kind} {job.id} is done and lacks values")

    def sentence(self, job, key):
        try:
            return self.c.explain(job.id, key)["sentence"]
        except (*AWAY, HttpError, KeyError) as e:
            return repr(e)

    def all_of(self, path, field):
        token, found = "", []
        # a page may be empty without being the last: /v1/objects asks one store after another
        while True:
            page = self.c.get(f"{path}?page_size=1000&page_token={token}")
            found += page.get(field, [])
            token = page.get("next_page_token")
            if not token:
                return found

    def forget_all(self):
        left = self.all_of("/v1/jobs", "jobs")
        for job in left:
            if job["state"] not in ENDED and job["id"] not in self.jobs:
                self.c.wait(job["id"], END_S)  # accepted, although the answer was lost
        for _ in range(1000):  # jobs that use keys of other jobs are deleted first
            for job in left:
                self.c.request("DELETE", f"/v1/jobs/{job['id']}")
            before, left = len(left), self.all_of("/v1/jobs", "jobs")
            if not left or len(left) == before:
                break
        if left:
            self.fault(f"{len(left)} jobs cannot be forgotten: {json.dumps(left)[:600]}")
        self.drop("/v1/names", "names", "name", lambda n: True)
        self.drop("/v1/objects", "objects", "id", lambda o: not [h for h in o.get("holders", []) if "job" in h])

    def drop(self, path, field, of, wanted):
        for item in filter(wanted, self.all_of(path, field)):
            status, _, data = self.c.request("DELETE", f"{path}/{urllib.parse.quote(item[of], safe='')}")
            if status not in (200, 404):
                self.fault(f"DELETE {path}/{item[of]}: {status} {data[:300]!r}")

    def state(self):
        """The resources that must return to their first values."""
        found = {}
        for line in self.c.request("GET", "/metrics")[2].decode().splitlines():
            m = re.match(r"millrace_(store_objects|store_used_bytes|store_persisted_bytes|store_spilled_bytes|scheduler_jobs|scheduler_tasks|scheduler_jobs_running|scheduler_objects)\{.*?\} (\S+)$", line)
            if m:
                found[m[1]] = found.get(m[1], 0) + float(m[2])
        for program in (*PROGRAMS, "mr-worker"):
            for pid in self.c.pids(program):
                status = pathlib.Path(f"/proc/{pid}/status").read_text()
                found[f"{program} MiB"] = max(found.get(f"{program} MiB", 0), int(re.search(r"RssAnon:\s+(\d+)", status)[1]) // 1024)
                found[f"{program} fds"] = max(found.get(f"{program} fds", 0), len(os.listdir(f"/proc/{pid}/fd")))
        found["files"] = sum(1 for d in (self.c.dir / "c").glob("node-*") for p in d.rglob("*")
                             if p.is_file() and not p.name.endswith(".running") and p.name != "names")
        return found

    def leaks(self, before, now):
        # AddressSanitizer keeps freed memory for a while
        slack = {"MiB": 700 if SANITIZED else 64, "fds": 12}
        return {k: (before.get(k, 0), v) for k, v in now.items() if v > before.get(k, 0) + slack.get(k.split()[-1], 0)}

    def settle(self, before):
        end, left = time.monotonic() + QUIET_S * SLOW, {}
        while time.monotonic() < end:
            left = self.leaks(before, self.state())
            if not left:
                return
            time.sleep(1)
        objects = self.all_of("/v1/objects", "objects")
        self.fault(f"left behind: {left}; objects: {json.dumps(objects)[:1000]}")

    def processes(self):
        """Finds processes that died although this test did not kill them, and reports of
        sanitizers."""
        for line in self.c.output().splitlines():
            m = re.search(r"millrace up: (\S+) (was killed by signal|ended with code) (\d+)", line)
            if m and not (m[2] == "was killed by signal" and m[3] == "9") and not (m[2] == "ended with code" and m[3] in ("75", "76")):
                self.fault(line)
        for path in (self.c.dir / "c" / "log").glob("*.log"):
            text = path.read_text(errors="replace")
            for m in re.finditer(r"^.*(ERROR: \w+Sanitizer|runtime error:|Sanitizer: |assertion failed|panic).*$", text, re.M):
                self.fault(f"{path.name}: {text[m.start():m.start() + 1500]}")

    def run(self):
        before = self.state()
        print("at first:", before, flush=True)
        threads = [threading.Thread(target=self.guard, args=(self.client, i), daemon=True) for i in range(self.args.clients)]
        if not self.args.calm:
            threads.append(threading.Thread(target=self.guard, args=(self.chaos,), daemon=True))
        for t in threads:
            t.start()
        end = time.monotonic() + self.args.seconds
        while time.monotonic() < end and any(t.is_alive() for t in threads[:self.args.clients]) and self.c.up.poll() is None:
            time.sleep(0.2)
        self.stop.set()
        for t in threads:
            t.join(REQUEST_S * SLOW + 10)
            if t.is_alive():
                self.fault("a client hangs")
        print(f"{len(self.jobs)} jobs; killed: {dict(self.killed)}", flush=True)
        if self.c.up.poll() is not None:
            self.fault("millrace up ended: " + self.c.output()[-1000:])
            return
        wait_for("the cluster to be ready", self.is_ready, 60)
        for job in list(self.jobs.values()):
            self.finish(job)
        self.forget_all()
        print("then:", self.state(), flush=True)
        self.settle(before)
        print("at last:", self.state(), flush=True)

    def is_ready(self):
        try:
            return self.c.request("GET", "/healthz")[0] == 200
        except AWAY:
            return False

    def guard(self, what, *args):
        try:
            what(*args)
        except Exception as e:  # noqa: BLE001: a bug of the test, or an answer that it cannot read
            import traceback
            self.fault(f"{what.__name__}: {e!r}\n{traceback.format_exc()}")


def wait_for_true(ready, timeout):
    try:
        return wait_for("", ready, timeout, 0.5)
    except AssertionError:
        return False


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=60)
    p.add_argument("--jobs", type=int, default=10**9, help="at most so many jobs a client")
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--clients", type=int, default=6)
    p.add_argument("--nodes", type=int, default=1)
    p.add_argument("--workers", type=int, default=3)
    p.add_argument("--calm", action="store_true", help="no faults")
    p.add_argument("--only", type=lambda s: s.split(","), default=None, help="kinds of jobs: " + " ".join(stress_jobs.KINDS))
    p.add_argument("--out", type=pathlib.Path, default=None)
    args = p.parse_args()
    args.out = args.out or pathlib.Path(tempfile.mkdtemp(prefix="mr-stress-"))
    args.out.mkdir(parents=True, exist_ok=True)
    print(f"seed {args.seed}, operations in {args.out}", flush=True)
    cluster = Cluster("--nodes", str(args.nodes), "--workers", str(args.workers), "--threads", "1", "--lease", "3s",
                      "--resource", "gpu=1", "--plugin", os.environ["MILLRACE_TEST_PLUGIN"])
    s = Stress(args, cluster)
    try:
        s.run()
        s.processes()
        if cluster.stop(60):
            s.fault("millrace up did not end well: " + cluster.output()[-1000:])
    except BaseException as e:
        s.fault(repr(e))
        raise
    finally:
        cluster.kill()
        if s.wrong:
            shutil.copytree(cluster.dir / "c" / "log", args.out / "log", dirs_exist_ok=True)
            (args.out / "up.out").write_text(cluster.output())
        shutil.rmtree(cluster.dir, ignore_errors=True)
        print(dict(sorted(s.seen.items())))
        print(f"seed {args.seed}: {len(s.wrong)} wrong; see {args.out}" if s.wrong else f"seed {args.seed}: all is well")
        for text in s.wrong:
            print("-", text)
    sys.exit(1 if s.wrong else 0)


if __name__ == "__main__":
    main()
