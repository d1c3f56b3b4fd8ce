#!/usr/bin/env python3
"""What the object store keeps and frees, and what it reports about that, with real processes."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import shutil
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Cluster, HttpError, bin_dir, wait_for  # noqa: E402
from training_cases import document, ended, start, upload  # noqa: E402

PLUGIN = os.environ.get("MILLRACE_TEST_PLUGIN", "")
MIB = 1 << 20


def blobs(count, nbytes):
    """A graph with `count` targets of `nbytes` each."""
    tasks = {f"b/{i}": {"op": "test.record", "args": [i, 0, nbytes]} for i in range(count)}
    return {"tasks": tasks, "targets": sorted(tasks)}


class Rig(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="mr-"))
        self.cluster = self.start()

    def tearDown(self):
        failed = any(e for _, e in getattr(self._outcome, "errors", []) if e) or getattr(self._outcome.result, "errors", [])
        if failed:
            print(self.cluster.output(), self.cluster.logs(), file=sys.stderr)
        self.cluster.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def start(self):
        return Cluster("--workers", "2", "--threads", "1", "--lease", "3s", "--plugin", PLUGIN, directory=self.dir,
                       env={"MILLRACE_STORE_CLAIM_TIME": "2s"})

    def stats(self):
        """The statistics of the node's store, converted to numbers."""
        s = self.cluster.get("/v1/store/stats")
        return {k: int(s.get(k, 0)) for k in ("memory_bytes", "committed_bytes", "used_bytes", "spilled_bytes", "persisted_bytes",
                                              "pinned_bytes", "objects", "freed_unclaimed", "seals_refused", "spills", "restores")}

    def metric(self, name):
        text = self.cluster.request("GET", "/metrics")[2].decode()
        values = [float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"millrace_store_{name}")]
        self.assertEqual(len(values), 1, name)
        return values[0]

    def files(self, folder):
        return sorted(p.name for p in self.cluster.dir.rglob(f"{folder}/*") if len(p.name) == 32)

    def disk_bytes(self, folder):
        return sum(p.stat().st_blocks * 512 for p in self.cluster.dir.rglob(f"{folder}/*"))

    def settled(self, what, ready, timeout=30):
        """Waits until `ready(stats)` is true; on failure the message has the last numbers."""
        last = {}

        def look():
            last.update(self.stats())
            return ready(last)
        try:
            wait_for(what, look, timeout, every=0.1)
        except AssertionError as e:
            raise AssertionError(f"{e}: {last}") from None
        return last


class Store(Rig):
    def test_numbers_are_what_is_there(self):
        c, count, size = self.cluster, 20, 2 * MIB
        before = self.stats()
        done = c.run(blobs(count, size))
        self.assertEqual(done["state"], "JOB_DONE", done)
        s = self.settled("the targets to be counted", lambda s: s["used_bytes"] - before["used_bytes"] >= count * size)
        self.assertLess(s["used_bytes"] - before["used_bytes"], count * (size + 4096))
        self.assertGreaterEqual(s["committed_bytes"], s["used_bytes"])
        self.assertLessEqual(s["committed_bytes"], s["memory_bytes"])
        self.assertEqual(s["persisted_bytes"], before["persisted_bytes"])
        listed = c.get("/v1/objects?page_size=1000")["objects"]
        self.assertEqual(sum(int(o["nbytes"]) for o in listed), s["used_bytes"])
        self.assertEqual(len(listed), s["objects"])
        one = next(o for o in listed if int(o["nbytes"]) > MIB)
        c.call("POST", f"/v1/objects/{one['id']}:persist", {})
        c.call("POST", f"/v1/objects/{one['id']}:pin", {"seconds": 3})
        s = self.settled("the pin", lambda s: s["pinned_bytes"] >= int(one["nbytes"]))
        self.assertEqual(s["pinned_bytes"], int(one["nbytes"]))
        self.assertEqual(s["persisted_bytes"] - before["persisted_bytes"], int(one["nbytes"]))
        self.assertEqual(self.metric("pinned_bytes"), int(one["nbytes"]))
        self.assertEqual(c.get(f"/v1/objects/{one['id']}/stat")["state"], "persisted")
        self.settled("the end of the pin", lambda s: s["pinned_bytes"] == 0)
        self.assertEqual(self.metric("used_bytes"), self.stats()["used_bytes"])

    def test_more_than_the_memory_is_spilled_and_the_sum_is_right(self):
        c, count, size = self.cluster, 80, 4 * MIB  # 320 MiB in a store of 256 MiB
        done = c.run(blobs(count, size), timeout=180)
        self.assertEqual(done["state"], "JOB_DONE", done)
        s = self.settled("the targets to be counted", lambda s: s["used_bytes"] + s["spilled_bytes"] >= count * size)
        self.assertLess(s["used_bytes"] + s["spilled_bytes"], count * (size + 4096))
        self.assertGreater(s["spilled_bytes"], 0)
        self.assertLessEqual(s["committed_bytes"], s["memory_bytes"])
        states = {"memory": 0, "spilled": 0}

        def agree(s):  # spilling may take a moment longer
            listed = c.get("/v1/objects?page_size=1000")["objects"]
            for state in states:
                states[state] = sum(int(o["nbytes"]) for o in listed if o["state"] == state)
            return (states["memory"], states["spilled"]) == (s["used_bytes"], s["spilled_bytes"])
        s = self.settled("list and numbers to agree", agree)
        # An object that is being read or pinned keeps its file and its bytes.
        self.assertGreaterEqual(self.disk_bytes("spill"), s["spilled_bytes"])
        c.call("DELETE", f"/v1/jobs/{done['id']}")
        self.settled("everything to go", lambda s: s["used_bytes"] == s["spilled_bytes"] == s["objects"] == 0)
        wait_for("the bytes to go", lambda: not self.disk_bytes("spill"))

    def test_what_a_drain_wrote_goes_when_its_job_is_forgotten(self):
        c = self.cluster
        done = c.run(blobs(5, MIB))
        self.assertEqual(c.stop(), 0)
        self.assertEqual(len(self.files("held")), 5)
        self.cluster = c = self.start()
        time.sleep(6)  # three times the time after which an unheld object is freed
        self.assertEqual(len(self.files("held")), 5)
        self.assertEqual(len(c.value(done["id"], "b/3", accept="application/octet-stream")) >= MIB, True)
        c.call("DELETE", f"/v1/jobs/{done['id']}")
        wait_for("the files to go", lambda: not self.files("held"))
        self.assertEqual(self.stats()["objects"], 0)

    def redis(self, *words):
        r = subprocess.run(["redis-cli", "-s", str(self.cluster.dir / "c" / "run" / "redis.sock"), *words], capture_output=True,
                           text=True, check=True)
        return r.stdout.split()

    def redis_counts(self):
        """Each key in Redis -> its number of fields, entries or members."""
        count = {"hash": "HLEN", "zset": "ZCARD", "set": "SCARD", "list": "LLEN", "stream": "XLEN"}
        counts = {}
        for key in self.redis("KEYS", "*"):
            kind = self.redis("TYPE", key)[0]
            n = int(self.redis(count[kind], key)[0]) if kind in count else 1
            # bounded and trimmed; traces whose id begins with j0- have the cluster's events and samples
            if key == "millrace:traces":
                members = self.redis({"hash": "HKEYS", "set": "SMEMBERS"}[kind], key)
                n = sum(not m.startswith("j0-") for m in members)
            if n and not key.startswith(("millrace:journal", "millrace:tail", "millrace:cluster", "millrace:trace:j0-")):
                counts[key] = n
        return counts

    def test_issue_11_h_nothing_is_left_in_redis_when_everything_was_taken_away(self):
        """No entries are left in Redis after names are removed and replaced, objects persisted and
        deleted, jobs forgotten, and templates and queues deleted."""
        c = self.cluster
        before = self.redis_counts()

        def put(name, replace=False):
            status, _, data = c.request("POST", f"/v1/objects?name={name}{'&replace=true' if replace else ''}", b"x" * 100,
                                        {"Content-Type": "application/octet-stream"})
            self.assertEqual(status, 200, data)
            return json.loads(data)["id"]
        for i in range(60):
            put(f"h/{i}")
        for i in range(60):  # replaces the names, so the first objects are freed
            put(f"h/{i}", replace=True)
        self.settled("the replaced objects to go", lambda s: s["objects"] == 60)
        wait_for("their entries to go", lambda: self.redis_counts().get("millrace:objects") == 60)
        kept = put("h/kept")
        c.call("POST", f"/v1/objects/{kept}:persist", {})
        forced = put("h/forced")
        c.call("DELETE", f"/v1/objects/{forced}?force=true")
        done = c.run({"tasks": {"a": {"op": "test.record", "args": [1, 0, MIB], "persist": "h/task"}}, "targets": ["a"]})
        self.assertEqual(done["state"], "JOB_DONE", done)
        c.call("POST", "/v1/templates?name=h-template", {"tasks": {"a": {"op": "test.record", "args": [1, 0, 10]}}, "targets": ["a"]})
        c.call("PUT", "/v1/queues/h-queue", {"items_max": 10})
        c.call("POST", "/v1/queues/h-queue:put", {"value_json": "1"})
        self.assertGreater(self.redis_counts()["millrace:objects"], 60)

        for name in c.get("/v1/names?page_size=1000").get("names", []):
            c.call("DELETE", f"/v1/names/{name['name']}")
        c.call("DELETE", f"/v1/jobs/{done['id']}")
        c.call("DELETE", "/v1/templates/h-template")
        c.call("DELETE", "/v1/queues/h-queue")
        self.settled("the objects to go", lambda s: s["objects"] == 0)
        last = {}

        def clean():
            last.clear()
            last.update(self.redis_counts())
            return all(n <= before.get(key, 0) for key, n in last.items())
        try:
            wait_for("Redis to be as before", clean, 30, every=0.2)
        except AssertionError:
            raise AssertionError(f"left in Redis: {last}, before: {before}") from None

    def test_issue_11_h_what_a_dead_store_left_in_redis_goes_at_its_start(self):
        """Objects that died with a store leave entries; the node's next store removes them."""
        c = self.cluster
        for i in range(5):
            status, _, data = c.request("POST", f"/v1/objects?name=h/{i}", b"x" * 100, {"Content-Type": "application/octet-stream"})
            self.assertEqual(status, 200, data)
        self.assertEqual(self.redis_counts().get("millrace:objects"), 5)
        os.kill(c.pids("mr-objectstore")[0], signal.SIGKILL)
        wait_for("the entries to go", lambda: not self.redis_counts().get("millrace:objects"), 60, every=0.2)
        wait_for("the names to go", lambda: not self.redis_counts().get("millrace:names"), 60, every=0.2)

    def test_what_nobody_claims_is_freed_and_counted_and_the_rest_is_not(self):
        c = self.cluster
        lost = c.run(blobs(10, MIB))
        self.assertEqual(lost["state"], "JOB_DONE", lost)
        before = self.settled("the targets", lambda s: s["used_bytes"] >= 10 * MIB)
        self.assertEqual(before["freed_unclaimed"], 0)
        # Redis loses everything and the scheduler dies at the same time, and so do the workers that
        # made the objects.
        redis = c.pids("redis-server")[0]
        scheduler = c.pids("mr-scheduler")[0]
        os.kill(scheduler, signal.SIGSTOP)
        os.kill(redis, signal.SIGKILL)
        for path in (c.dir / "c" / "redis").rglob("appendonly*"):
            if path.is_file():
                path.unlink()
        os.kill(scheduler, signal.SIGKILL)
        for pid in c.pids("mr-worker"):
            os.kill(pid, signal.SIGKILL)

        def again():
            try:
                return c.run(blobs(3, MIB))
            except (HttpError, OSError, AssertionError):
                time.sleep(0.2)
                return None
        kept = wait_for("a new scheduler", again, 60)
        self.assertEqual(kept["state"], "JOB_DONE", kept)
        s = self.settled("what nobody claims to go", lambda s: s["freed_unclaimed"] >= 10, 40)
        self.assertEqual(s["freed_unclaimed"], 10)
        time.sleep(5)
        s = self.stats()
        self.assertEqual(s["freed_unclaimed"], 10)
        self.assertGreaterEqual(s["used_bytes"], 3 * MIB)
        self.assertLess(s["used_bytes"], 4 * MIB)
        self.assertGreaterEqual(len(c.value(kept["id"], "b/2", accept="application/octet-stream")), MIB)

    def test_a_scheduler_that_comes_back_claims_what_a_dead_worker_made(self):
        c = self.cluster
        done = c.run(blobs(6, MIB))
        os.kill(c.pids("mr-scheduler")[0], signal.SIGKILL)
        for pid in c.pids("mr-worker"):
            os.kill(pid, signal.SIGKILL)
        wait_for("the scheduler", lambda: c.wait(done["id"])["state"] == "JOB_DONE", 60)
        time.sleep(7)
        self.assertEqual(self.stats()["freed_unclaimed"], 0)
        self.assertGreaterEqual(len(c.value(done["id"], "b/5", accept="application/octet-stream")), MIB)

    def store_process(self, *args):
        """Starts another object store beside the cluster's: (process, its output)."""
        c = self.cluster
        at = ["--listen", f"unix:{self.dir}/other.sock", "--socket", f"{self.dir}/other.ctl", "--memory", "64MiB", "--secret-file",
              str(c.dir / "c" / "secret"), *args]
        out = open(self.dir / "other.out", "w+")
        self.addCleanup(out.close)
        p = subprocess.Popen([str(bin_dir() / "mr-objectstore"), *at], stdout=out, stderr=subprocess.STDOUT)
        self.addCleanup(lambda: (p.kill(), p.wait()))
        return p, lambda: (self.dir / "other.out").read_text()

    def test_issue_11_j_a_second_store_is_refused_in_words(self):
        """A second store with the same directory is refused at its start; one for the same node is
        refused by the scheduler while the first is alive."""
        c = self.cluster
        pid = c.pids("mr-objectstore")[0]
        args = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        flag = {name: next(a.decode().split("=", 1)[1] for a in args if a.startswith(f"--{name}=".encode()))
                for name in ("dir", "node", "scheduler")}
        done = c.run(blobs(3, MIB))
        second, said = self.store_process("--dir", flag["dir"], "--node", flag["node"])
        self.assertEqual(second.wait(30), 1)
        self.assertIn(f'the object store of node "{flag["node"]}" (pid {pid}) has {flag["dir"]}', said())
        # The files of the first store and its registration are unchanged.
        self.assertGreaterEqual(len(c.value(done["id"], "b/1", accept="application/octet-stream")), MIB)
        before = c.get("/v1/cluster")["store"]
        other, said = self.store_process("--dir", str(self.dir / "elsewhere"), "--node", flag["node"], "--scheduler", flag["scheduler"])
        wait_for("the scheduler to refuse it", lambda: "has an object store already" in said(), 30)
        self.assertIn(f"pid {pid}", said())
        self.assertEqual([s["address"] for s in c.get("/v1/cluster")["store"]], [s["address"] for s in before])
        self.assertEqual(c.run(blobs(3, MIB))["state"], "JOB_DONE")
        # The first store dies: the next store with its directory starts at once, although another
        # one waits for the node.
        os.kill(pid, signal.SIGKILL)
        other.kill()
        wait_for("a store", lambda: c.get("/v1/cluster").get("store") and c.pids("mr-objectstore") not in ([], [pid]), 30)
        self.assertEqual(c.run(blobs(3, MIB))["state"], "JOB_DONE")


class Limits(unittest.TestCase):
    """Worker processes in a control group with a memory limit, v1 or v2."""

    def make_group(self, limit):
        root = pathlib.Path("/sys/fs/cgroup")
        v1 = (root / "memory").is_dir()
        group = root / ("memory" if v1 else "") / f"mr-test-{os.getpid()}"
        try:
            group.mkdir()
            self.addCleanup(lambda: wait_for("the group to be empty", lambda: self.remove(group)))
            (group / ("memory.limit_in_bytes" if v1 else "memory.max")).write_text(str(limit))
            if (group / "memory.swap.max").exists():
                (group / "memory.swap.max").write_text("0")
        except OSError as e:
            print(f"SKIPPED: a real limit of memory was not tried: no control group can be made here ({e})", file=sys.stderr)
            self.skipTest("no control group can be made here")
        return group

    @staticmethod
    def remove(group):
        try:
            group.rmdir()
        except OSError:
            return False
        return True

    @staticmethod
    def start_in(group, args, **more):
        return subprocess.Popen(["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$0" "$@"', *args], **more)

    @staticmethod
    def kills(group):
        """How often the kernel has killed a process of the group."""
        for name in ("memory.events", "memory.oom_control"):
            if (group / name).exists():
                return int(dict(line.split() for line in (group / name).read_text().splitlines()).get("oom_kill", 0))
        return 0

    def test_issue_11_10_a_store_takes_no_more_than_its_group_allows(self):
        limit = 512 * MIB
        group = self.make_group(limit)
        with tempfile.TemporaryDirectory(prefix="mr-") as where, open(f"{where}/log", "w+") as log:
            p = self.start_in(group, [str(bin_dir() / "mr-objectstore"), "--listen", f"unix:{where}/s", "--socket", f"{where}/c",
                                      "--memory", "1TiB"], stdout=log, stderr=log)
            try:
                said = wait_for("the store to start", lambda: re.search(r"event=objectstore.started .*memory=(\d+)", pathlib.Path(f"{where}/log").read_text()), 30)
            finally:
                p.kill()
                p.wait()
        self.assertEqual(int(said[1]), limit // 10 * 8)

    def limited_worker(self, c, group):
        """Starts a worker in the group, beside that of `up`; tasks with the resource "limited" run
        only there."""
        args = [a.decode() for a in pathlib.Path(f"/proc/{c.pids('mr-worker')[0]}/cmdline").read_bytes().split(b"\0")[:-1]]
        drop = ("--name=", "--listen=", "--memory=", "--dir=")
        args = [a for a in args if not a.startswith(drop)] + ["--name=limited", "--memory=96MiB", "--resource=limited=1"]
        log = open(c.dir / "limited.log", "w")
        self.addCleanup(log.close)
        env = dict(c.env, ASAN_OPTIONS="quarantine_size_mb=4:detect_leaks=0")
        p = self.start_in(group, [str(bin_dir() / "mr-worker"), *args[1:]], stdout=log, stderr=log, env=env)

        def end():
            p.kill()
            p.wait()
        self.addCleanup(end)
        wait_for("the worker", lambda: any(w.get("name") == "limited" for w in c.workers()))
        return p

    def run_limited(self, c, p, tasks, targets):
        for task in tasks.values():
            task["resources"] = {"limited": 1}
        job = c.submit({"tasks": tasks, "targets": targets})

        def over():
            self.assertIsNone(p.poll(), "the worker died")
            found = c.job(job, wait_s=1)
            return found if found["state"] in ("JOB_DONE", "JOB_FAILED") else None
        return wait_for("the job", over, 240)

    def test_issue_11_10_a_worker_makes_more_than_its_group_allows_and_lives(self):
        """A worker with a limit of 256 MiB makes 1 GiB of objects. They leave its memory; the
        worker waits and is not killed."""
        group = self.make_group(256 * MIB)
        with Cluster("--workers", "1", "--threads", "1", "--memory", "2GiB", "--plugin", PLUGIN) as c:
            p = self.limited_worker(c, group)
            count, size = 64, 16 * MIB
            tasks = {f"b/{i}": {"op": "test.record", "args": [i, 0, size]} for i in range(count)}
            sums = {f"s/{i}": {"op": "test.size", "args": [{"ref": f"b/{k}"} for k in range(i, i + 8)]} for i in range(0, count, 8)}
            done = self.run_limited(c, p, {**tasks, **sums}, sorted([*tasks, *sums]))
            self.assertEqual(done["state"], "JOB_DONE", done)
            self.assertEqual([c.value(done["id"], key) for key in sums], [8 * size] * len(sums))
            self.assertRegex(c.log("objectstore-0"), "event=client.limited .*limit=268435456 own=100663296")
            spills = int(c.get("/v1/store/stats").get("spills", 0))
            # although the store itself has room for all objects
            self.assertGreaterEqual(spills * size, count * size - 256 * MIB)
            # An object that can never fit is refused with a reason.
            large = self.run_limited(c, p, {"l": {"op": "test.record", "args": [1, 0, 150 * MIB]}}, ["l"])
            self.assertEqual(large["state"], "JOB_FAILED", large)
            self.assertRegex(large["error"]["message"], "more than the 1[01][0-9]{7} bytes that this process may write into shared memory")
            self.assertIsNone(p.poll())
            self.assertEqual(self.kills(group), 0)


class FullDisk(Rig):
    """The store's directory is a file system of 64 MiB."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="mr-"))
        self.disk = self.dir / "c" / "node-0"
        self.disk.mkdir(parents=True)
        self.cluster = None
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(self.disk)], stderr=subprocess.DEVNULL).returncode:
            print("SKIPPED: a full disk was not tried: mounting a tmpfs needs root", file=sys.stderr)
            shutil.rmtree(self.dir, ignore_errors=True)
            self.skipTest("mounting a tmpfs needs root")
        self.addCleanup(subprocess.run, ["umount", "-l", str(self.disk)])
        self.cluster = self.start()

    def tearDown(self):
        if self.cluster:
            super().tearDown()

    def test_issue_11_j_a_full_disk_is_called_by_its_name_and_tried_again(self):
        # 400 MiB for 256 MiB of memory and 64 MiB of disk
        c, much = self.cluster, blobs(100, 4 * MIB)
        done = c.run(much, timeout=120)
        self.assertEqual(done["state"], "JOB_FAILED", done)
        self.assertRegex(done["error"]["message"], f"no space left on {self.disk}")
        self.assertNotIn("needs more memory", done["error"]["message"])
        self.assertEqual(self.metric("disk_full"), 1)
        self.assertGreater(self.metric("write_failures_total"), 0)
        wait_for("the cluster to say so", lambda: c.get("/v1/cluster")["store"][0].get("disk_full") == str(self.disk))
        self.assertIn("event=disk.full", c.log("objectstore-0"))
        # The store still serves existing objects, and new ones that need no disk.
        c.call("DELETE", f"/v1/jobs/{done['id']}")
        self.settled("the objects to go", lambda s: s["used_bytes"] + s["spilled_bytes"] < 16 * MIB)
        self.assertEqual(c.run(blobs(10, MIB))["state"], "JOB_DONE")
        status, _, data = c.request("POST", "/v1/objects?persist=true", b"x" * (70 * MIB), {"Content-Type": "application/octet-stream"})
        self.assertEqual((status, f"no space left on {self.disk}" in data.decode()), (507, True), data)
        subprocess.run(["mount", "-o", "remount,size=1g", str(self.disk)], check=True)
        again = c.run(much, timeout=120)
        self.assertEqual(again["state"], "JOB_DONE", again)
        self.assertEqual(self.metric("disk_full"), 0)
        self.assertIn("event=disk.has_space", c.log("objectstore-0"))


    def fill(self):
        """Fills the disk."""
        with open(self.disk / "filler", "wb", buffering=0) as f:
            try:
                while f.write(b"x" * 4096) == 4096:
                    pass
            except OSError:
                pass

    def test_issue_11_j_a_task_that_persists_on_a_full_disk_fails_in_words(self):
        """A task that persists, and a worker that starts, while the disk is full."""
        c = self.cluster
        large = {"tasks": {"a": {"op": "test.record", "args": [1, 0, 80 * MIB], "persist": "j/large"}}, "targets": ["a"]}
        done = c.run(large)
        self.assertEqual(done["state"], "JOB_FAILED", done)
        self.assertRegex(done["error"]["message"], f"no space left on {self.disk}")
        self.assertNotIn("needs more memory", done["error"]["message"])
        self.assertEqual(c.get("/v1/names?prefix=j/").get("names", []), [])
        self.assertEqual([p.name for p in self.disk.rglob("*.tmp")], [])  # no partial file is left
        # A worker that cannot write its page of running tasks must not crash.
        pages = list(self.disk.glob("worker-*.running"))
        self.assertEqual(len(pages), 2)
        for page in pages:
            held = open(page, "rb")  # the open file keeps its space after its worker has died
            self.addCleanup(held.close)
            page.unlink()
        self.fill()
        before = c.pids("mr-worker")
        for pid in before:
            os.kill(pid, signal.SIGKILL)

        def others():
            now = c.pids("mr-worker")
            return len(now) == 2 and not set(now) & set(before) and now
        after = wait_for("other workers", others, 60)
        self.assertEqual(c.run(blobs(4, MIB))["state"], "JOB_DONE")
        self.assertEqual(c.pids("mr-worker"), after)
        # The job may have run on the other worker while this one was still starting.
        off = re.compile(f"event=crash_record.off .*no space left on {self.disk}")
        wait_for("the worker's log to say so", lambda: off.search(c.log("worker-0-0")), 60)
        (self.disk / "filler").unlink()
        subprocess.run(["mount", "-o", "remount,size=1g", str(self.disk)], check=True)
        self.assertEqual(c.run(large)["state"], "JOB_DONE")
        self.assertEqual([n["name"] for n in c.get("/v1/names?prefix=j/")["names"]], ["j/large"])

    def test_issue_11_j_a_training_goes_on_without_checkpoints_and_says_so(self):
        """Checkpoints of a training on a full disk. At the end the model cannot be saved, which
        fails the session with a reason."""
        c = self.cluster
        upload(c, train=500, validation=100)
        self.fill()
        doc = document("async", workers=1, scorer=0, save="j/model", stop={"steps": 200, "epochs": 1000},
                       checkpoint={"every_steps": 50, "keep": 2})
        t = ended(c, start(c, doc), 120)
        logs = "".join(c.log(f"worker-0-{i}") for i in range(2))
        self.assertRegex(logs, f"event=checkpoint.failed .*no space left on {self.disk}")
        self.assertEqual(t["state"], "TRAINING_FAILED", t)
        self.assertIn(f"no space left on {self.disk}", json.dumps(t))
        self.assertGreaterEqual(int(t["version"]), 200)  # the training went on
        (self.disk / "filler").unlink()
        self.assertEqual(ended(c, start(c, doc), 120)["state"], "TRAINING_DONE")


class FullTraceDisk(Rig):
    """The directory of traces is a full file system."""

    def test_issue_11_j_traces_that_find_no_space_are_counted_and_nothing_else_fails(self):
        at = self.cluster.dir / "c" / "trace"
        self.assertEqual(self.cluster.stop(), 0)
        shutil.rmtree(at, ignore_errors=True)
        at.mkdir(mode=0o700)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(at)], stderr=subprocess.DEVNULL).returncode:
            print("SKIPPED: a full disk of traces was not tried: mounting a tmpfs needs root", file=sys.stderr)
            self.cluster = self.start()
            self.skipTest("mounting a tmpfs needs root")
        self.addCleanup(subprocess.run, ["umount", "-l", str(at)])
        (at / "filler").write_bytes(b"x" * 65536)
        self.cluster = c = Cluster("--workers", "2", "--threads", "1", directory=self.dir,
                                   env={"MILLRACE_TRACE_JOB_BYTES": "4KiB", "MILLRACE_TRACE_BYTES": "64KiB"})
        wide = {"tasks": {f"n/{i}": {"op": "sleep", "args": [0, i]} for i in range(5000)}, "targets": [f"n/{i}" for i in range(5000)]}
        done = c.run(wide)
        self.assertEqual(done["state"], "JOB_DONE", done)
        wait_for("the log to say so", lambda: re.search(f"event=trace.disk_full .*no space left on {at}", c.log("scheduler")))
        found = wait_for("what was not recorded", lambda: (t := c.get(f"/v1/jobs/{done['id']}/timeline")) and
                         int(t.get("not_recorded", 0)) > 0 and t)
        self.assertGreater(int(found["not_recorded"]), 0)
        # no partial block is left
        self.assertEqual([p.name for p in at.iterdir() if p.name != "filler" and p.stat().st_size], [])


if __name__ == "__main__":
    unittest.main(verbosity=1)
