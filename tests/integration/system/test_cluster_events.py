"""Events of a cluster as Server-Sent Events: workers, stores and jobs come, change and go. A stream
continues after its last event, or says that it cannot."""
import contextlib
import http.client
import os
import pathlib
import queue
import signal
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import Cluster, HttpError, read_events, wait_for  # noqa: E402

KEPT = 64  # events that the scheduler keeps in this test


class Watch:
    """A stream of events on a thread of its own."""

    def __init__(self, cluster, last_id=None, query=""):
        self.seen, self.news = [], queue.Queue()
        self.connection = cluster.connect(200)
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last_id} if last_id else {})}
        self.connection.request("GET", "/v1/cluster/events" + query, headers=headers)
        self.response = self.connection.getresponse()
        if self.response.status != 200:
            raise HttpError(self.response.status, self.response.read().decode())
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        with contextlib.suppress(OSError, ValueError, AttributeError, http.client.HTTPException):
            for event in read_events(self.response):
                self.news.put(event)

    def drain(self):
        with contextlib.suppress(queue.Empty):
            while True:
                self.seen.append(self.news.get_nowait())

    def find(self, change, timeout=60, **fields):
        """Waits for the first event of this kind with these fields."""
        def there():
            self.drain()
            for event_id, e in self.seen:
                if e["change"] == "CLUSTER_CHANGE_" + change and all(e[k] == v for k, v in fields.items()):
                    return event_id, e
        return wait_for(f"{change} {fields}", there, timeout)

    def changes(self):
        self.drain()
        return [e["change"].removeprefix("CLUSTER_CHANGE_") for _, e in self.seen]

    def close(self):
        with contextlib.suppress(OSError):
            self.connection.sock and self.connection.sock.shutdown(2)
        self.connection.close()


class ClusterEvents(unittest.TestCase):
    def setUp(self):
        self.cluster = Cluster("--workers", "2", "--threads", "1", env={"MILLRACE_EVENTS_KEPT": str(KEPT)})
        self.addCleanup(self.cluster.close)
        self.cluster.wait_for_workers(2)

    def watch(self, *words, **kw):
        w = Watch(self.cluster, *words, **kw)
        self.addCleanup(w.close)
        return w

    def inc(self):
        job = self.cluster.run({"dsk": {"x": ["inc", 1]}, "targets": ["x"]})
        self.assertEqual(job["state"], "JOB_DONE")
        return job["id"]

    def test_jobs_are_told_in_order_and_streams_resume(self):
        w = self.watch()
        begin, first = w.find("SCHEDULER")
        info = self.cluster.get("/v1/cluster")
        self.assertEqual((first["scheduler"], first["epoch"]), (info["incarnation"], info["epoch"]))
        job = self.inc()
        end, _ = w.find("JOB_STATE", job=job, state="JOB_DONE")
        states = [e["state"] for _, e in w.seen if e["job"] == job]
        self.assertEqual(states, ["JOB_PENDING", "JOB_RUNNING", "JOB_DONE"])
        numbers = [int(i.partition("-")[2]) for i, e in w.seen[1:]]
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))
        again = self.watch(begin)
        again.find("JOB_STATE", job=job, state="JOB_DONE")
        self.assertEqual(again.seen[:len(w.seen) - 1], w.seen[1:])
        self.cluster.call("DELETE", f"/v1/jobs/{job}")
        after = self.watch(end)
        after.find("JOB_FORGOTTEN", job=job)
        self.assertEqual(after.changes(), ["JOB_FORGOTTEN"])
        with self.assertRaises(HttpError) as wrong:
            self.watch("17")
        self.assertEqual(wrong.exception.status, 400)

    def test_what_is_not_kept_any_more_is_a_gap(self):
        w = self.watch()
        begin, _ = w.find("SCHEDULER")
        last = [self.inc() for _ in range(KEPT // 2)][-1]  # each makes three events
        w.find("JOB_STATE", job=last, state="JOB_DONE")
        again = self.watch(begin)
        _, gap = again.find("GAP")
        again.find("JOB_STATE", job=last, state="JOB_DONE")
        self.assertEqual(again.changes()[0], "GAP")
        self.assertEqual(int(gap["missed"]) + len(again.seen) - 1, len(w.seen) - 1)
        self.assertLessEqual(len(again.seen) - 1, KEPT)
        quiet = self.watch(begin, "?without_jobs=true")
        quiet.find("GAP")
        self.assertNotIn("JOB_STATE", quiet.changes())

    def test_workers_and_stores_come_and_go(self):
        w = self.watch()
        w.find("SCHEDULER")
        names = sorted(x["name"] for x in self.cluster.workers())
        os.kill(self.cluster.pid_of(f"--name={names[0]}"), signal.SIGKILL)
        w.find("WORKER_LOST", worker=names[0])
        w.find("WORKER_JOINED", worker=names[0])
        self.cluster.call("POST", f"/v1/workers/{names[1]}:retire", {})
        w.find("WORKER_DRAINING", worker=names[1])
        w.find("WORKER_LEFT", worker=names[1])
        node = self.cluster.get("/v1/cluster")["store"][0]["node"]
        os.kill(self.cluster.pids("mr-objectstore")[0], signal.SIGKILL)
        w.find("STORE_LOST", node=node)
        w.find("STORE_JOINED", node=node)

    def test_another_scheduler_is_a_gap_and_says_who_it_is(self):
        w = self.watch()
        _, old = w.find("SCHEDULER")
        names = sorted(x["name"] for x in self.cluster.workers())
        os.kill(self.cluster.pids("mr-scheduler")[0], signal.SIGKILL)
        w.find("GAP")  # the gateway has continued by itself
        _, new = w.find("SCHEDULER", epoch=self.cluster.get("/v1/cluster")["epoch"])
        self.assertNotEqual(old["scheduler"], new["scheduler"])
        self.assertGreater(new["epoch"], old["epoch"])
        for name in names:
            wait_for(f"{name} to be back", lambda: any(
                e["worker"] == name and e["change"] in ("CLUSTER_CHANGE_WORKER_RETURNED", "CLUSTER_CHANGE_WORKER_JOINED")
                for e in (w.drain() or [e for _, e in w.seen])), 60)
        self.inc()


if __name__ == "__main__":
    unittest.main(verbosity=2)
