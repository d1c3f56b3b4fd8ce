"""The live state of a cluster and the samples of its processes, as a reader sees them."""
import contextlib
import http.client
import os
import pathlib
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import Cluster, HttpError, read_events, wait_for  # noqa: E402

ADMIN, READER = "adminadminadminadmin", "readerreaderreader00"
STATE_BYTES_MAX = 64 << 10
EVERY_NS = 250_000_000


class AdminCluster(Cluster):
    """A cluster whose requests have the token of an admin, unless they have another one."""

    def request(self, method, path, body=None, headers=None, timeout=120):
        return super().request(method, path, body, {"Authorization": f"Bearer {ADMIN}", **(headers or {})}, timeout)


class Stream:
    """The states that the gateway streams, read on a thread of its own."""

    def __init__(self, cluster, token=READER):
        self.states, self.sizes, self.is_over = [], [], False
        self.connection = cluster.connect(200)
        headers = {"Accept": "text/event-stream", "Authorization": f"Bearer {token}"}
        self.connection.request("GET", "/v1/cluster/live", headers=headers)
        self.response = self.connection.getresponse()
        if self.response.status != 200:
            body = self.response.read().decode()
            self.connection.close()
            raise HttpError(self.response.status, body)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def lines(self):
        for line in self.response:
            self.sizes.append(len(line))
            yield line

    def read(self):
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            for _, state in read_events(self.lines()):
                self.states.append(state)
        self.is_over = True

    def find(self, what, wanted, timeout=60):
        """Waits for a state, from now on, for which `wanted` is true."""
        begin = len(self.states)

        def there():
            return next((s for s in self.states[begin:] if wanted(s)), None)
        try:
            return wait_for(what, there, timeout)
        except AssertionError as e:
            raise AssertionError(f"{e}; the last state: {self.states[-1:]}") from None

    def close(self):
        with contextlib.suppress(OSError):
            self.connection.sock and self.connection.sock.shutdown(2)
        self.connection.close()
        self.thread.join(10)


def alarms(state):
    return {(a["kind"], a["subject"]) for a in state["alarms"]}


class Live(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        path = pathlib.Path(os.environ.get("TMPDIR", "/tmp")) / f"mr-live-{os.getpid()}.tokens"
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as f:
            f.write(f"{ADMIN} admin ada\n{READER} reader rob\n")
        cls.addClassCleanup(path.unlink)
        cls.c = AdminCluster("--workers", "2", "--threads", "1", "--lease", "6s", "--token-file", str(path))
        cls.addClassCleanup(cls.c.close)
        cls.c.wait_for_workers(2)

    def stream(self, **kw):
        s = Stream(self.c, **kw)
        self.addCleanup(s.close)
        return s

    def test_1_a_reader_sees_jobs_slots_and_services(self):
        with self.assertRaises(HttpError) as refused:
            self.stream(token="nobodynobodynobody00")
        self.assertEqual(refused.exception.status, 401)
        s = self.stream()
        first = s.find("the first state", lambda _: True)
        self.assertEqual(first["slots"], 2)
        graph = {"dsk": {**{f"s{i}": ["sleep", 0.4, i] for i in range(12)}, "t": ["sum", [f"s{i}" for i in range(12)]]},
                 "targets": ["t"]}
        job = self.c.submit(graph)
        seen = s.find("the job at work", lambda x: any(d["class"] == "compute" and d["op"] == "sleep" for d in x["doing"])
                      and any(j["id"] == job and j["ended"] for j in x["jobs"]))
        row = next(j for j in seen["jobs"] if j["id"] == job)
        self.assertEqual(row["tasks"], 13)
        self.assertEqual({o["op"]: o["tasks"] for o in row["ops"]}, {"sleep": 12, "sum": 1})
        self.assertEqual(sum(o["ended"] for o in row["ops"]), row["ended"])
        self.c.wait(job)
        idle = s.find("the idle cluster", lambda x: not x["jobs"] and {d["class"] for d in x["doing"]} == {"no_work"})
        self.assertGreaterEqual(int(idle["tasks_done"]), 13)
        kinds = s.find("all services", lambda x: len(x["services"]) >= 5)["services"]
        self.assertEqual({k["kind"] for k in kinds}, {"redis", "scheduler", "gateway", "trainer", "objectstore"})
        for state in s.states:
            self.assertEqual(sum(d["slots"] for d in state["doing"]), state["slots"], state["doing"])
        # The states of one stream are at least 250 ms apart, whatever happens in the cluster. The
        # wall clock may be corrected by a little.
        times = [int(x["time_ns"]) for x in s.states]
        self.assertTrue(all(b - a >= EVERY_NS * 0.9 for a, b in zip(times, times[1:])), times)
        self.assertLessEqual(max(s.sizes), STATE_BYTES_MAX)

    def test_2_a_stopped_worker_is_an_alarm_until_it_is_back(self):
        s = self.stream()
        name = sorted(w["name"] for w in self.c.workers())[0]
        pid = self.c.pid_of(f"--name={name}")
        os.kill(pid, signal.SIGSTOP)
        try:
            seen = s.find("the alarm", lambda x: ("worker_silent", name) in alarms(x) or ("worker_lost", name) in alarms(x))
            lost = s.find("the loss", lambda x: ("worker_lost", name) in alarms(x))
        finally:
            os.kill(pid, signal.SIGCONT)
        self.assertIn(name, seen["alarms"][0]["text"])
        self.assertEqual(lost["slots"], 1)
        s.find("the end of the alarm", lambda x: x["slots"] == 2 and not any(a["subject"] == name for a in x["alarms"]))

    def test_3_the_stream_goes_on_with_the_next_scheduler(self):
        s = self.stream()
        before = s.find("a state", lambda _: True)
        os.kill(self.c.pids("mr-scheduler")[0], signal.SIGKILL)
        after = s.find("a state of the next scheduler", lambda x: x["scheduler"] != before["scheduler"], 120)
        self.assertGreater(after["epoch"], before["epoch"])
        self.assertFalse(s.is_over)
        s.find("both workers", lambda x: x["workers_connected"] == 2 and not x["alarms"], 120)

    def samples(self, **query):
        query = "&".join(f"{k}={v}" for k, v in query.items())
        r = self.c.get(f"/v1/samples?{query}", headers={"Authorization": f"Bearer {READER}"})
        return {p["process"]: p for p in r["processes"]}, r

    def test_4_samples_grow_and_outlive_every_process(self):
        worker = sorted(w["name"] for w in self.c.workers())[0]

        def points(name):
            found = self.samples()[0].get(name)
            return len(found["interval"]) if found else 0
        tasks = {f"s{i}": ["sleep", 0.5, i] for i in range(16)}
        begin = points(worker)
        self.c.submit({"dsk": tasks, "targets": list(tasks)})
        wait_for("two more samples", lambda: points(worker) >= begin + 2 and points("scheduler") >= 2)
        found, r = self.samples()
        self.assertEqual({p["kind"] for p in found.values()}, {"worker", "objectstore", "scheduler", "gateway", "trainer"})
        for p in found.values():
            memory = next(s for s in p["series"] if s["name"] == "memory_bytes")
            self.assertEqual(len(memory["max"]), len(p["interval"]))
            for low, mean, high in zip(*([int(v) for v in memory[k]] for k in ("min", "mean", "max"))):
                self.assertTrue(1 << 20 < low <= mean <= high)
        until = time.time_ns() - 3_000_000_000  # the kill below may lose the last samples
        before = self.samples(from_ns=int(r["from_ns"]), until_ns=until)[0]
        self.c.kill()
        self.c.start()
        self.assertEqual(self.samples(from_ns=int(r["from_ns"]), until_ns=until)[0], before)
        self.assertTrue(before[worker]["interval"])
        one, r = self.samples(process=worker, points_max=2, from_ns=int(r["from_ns"]), until_ns=until)
        self.assertEqual(list(one), [worker])
        self.assertLessEqual(len(one[worker]["interval"]), 2)
        names, token = [], ""
        while True:
            page, r = self.samples(page_size=2, page_token=token.replace("@", "%40"), from_ns=1, until_ns=until)
            names += page
            token = r["next_page_token"]
            if not token:
                break
        self.assertEqual(names, sorted(before.keys() | set(names)))
        for wrong in ({"points_max": 10001}, {"from_ns": 5, "until_ns": 5}):
            with self.assertRaises(HttpError) as refused:
                self.samples(**wrong)
            self.assertEqual(refused.exception.status, 400)


if __name__ == "__main__":
    unittest.main()
