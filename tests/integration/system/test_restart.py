"""Clients of a cluster whose parts are stopped or killed. No connection is refused while one
gateway replaces another. A client that waits at a scheduler or a trainer that stops gets the
state so far."""
import http.client
import os
import pathlib
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "worker")]

import rig  # noqa: E402: skips where grpcio is missing
import training_cases  # noqa: E402
from harness import SLOW, Cluster, main, wait_for  # noqa: E402
from rig import grpc  # noqa: E402

V1 = "/millrace.v1."


def is_here(host):
    """Can a socket listen there? Not without IPv6, or if no file names localhost."""
    try:
        address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(address[0]) as s:
            s.bind(address[4])
    except OSError as e:
        print(f"SKIPPED: no gateway was replaced at {host}: {e}")
        return False
    return True


class Gateways(unittest.TestCase):
    def ask(self, c, answers, failures, done):
        while not done.is_set():
            h = http.client.HTTPConnection(c.host, c.port, timeout=60 * SLOW)
            try:
                h.request("GET", "/v1/jobs")
                h.getresponse().read()
                answers[0] += 1
            except OSError as e:
                failures.append(repr(e))
            except http.client.HTTPException as e:
                failures.append(repr(e))
            h.close()

    def test_no_connection_is_refused_while_a_gateway_is_replaced(self):
        for host, listen in (("127.0.0.1", "127.0.0.1:0"), ("::1", "[::1]:0"), ("localhost", "localhost:0")):
            if not is_here(host):
                continue
            with self.subTest(listen), Cluster("--workers", "1", "--listen", listen) as c:
                answers, failures, done = [0], [], threading.Event()
                client = threading.Thread(target=self.ask, args=(c, answers, failures, done))
                client.start()
                try:
                    for number in (signal.SIGTERM, signal.SIGKILL):
                        pid = c.pids("mr-gateway")[0]
                        before = answers[0]
                        wait_for("answers", lambda: answers[0] >= before + 3, 60)
                        if number == signal.SIGTERM:
                            self.assertEqual(failures, [])
                        os.kill(pid, number)
                        wait_for("the next gateway", lambda: [p for p in c.pids("mr-gateway") if p != pid], 60)
                        before = answers[0]
                        wait_for("its answers", lambda: answers[0] >= before + 3, 60)
                        # A killed gateway loses only the requests that it was answering.
                        self.assertLessEqual(len(failures), 0 if number == signal.SIGTERM else 1, failures)
                        self.assertNotIn("Refused", "".join(failures))
                finally:
                    done.set()
                    client.join()


class Waiters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="mr-restart-"))
        cls.addClassCleanup(shutil.rmtree, cls.work)
        cls.m = staticmethod(rig.load_messages(cls.work))
        cls.c = Cluster("--workers", "2", "--threads", "2")
        cls.addClassCleanup(cls.c.close)

    def wait_in(self, place, calls):
        """Begins the calls, stops the program while they wait, and returns how each ended: code, sentence, replies."""
        channel = grpc.insecure_channel(f"unix:{self.c.dir}/c/run/{place}.sock")
        self.addCleanup(channel.close)
        ends, threads = {}, []

        def run(method, request):
            replies, code, words = [], "OK", ""
            try:
                for r in channel.unary_stream(V1 + method)(request.SerializeToString(), timeout=300):
                    replies.append(r)
            except grpc.RpcError as e:
                code, words = e.code().name, e.details()
            ends[method] = (code, words, replies)
        for method, request in calls.items():
            threads.append(threading.Thread(target=run, args=(method, request)))
            threads[-1].start()
        time.sleep(1)  # time for the calls to arrive; a call that arrives later is answered too
        self.assertEqual(ends, {})
        pid = self.c.pids("mr-" + place)[0]
        os.kill(pid, signal.SIGTERM)
        for t in threads:
            t.join(60 * SLOW)
        self.assertEqual(set(ends), set(calls))
        wait_for("the next one", lambda: [p for p in self.c.pids("mr-" + place) if p != pid], 60)
        return ends

    def test_a_scheduler_that_stops_says_what_it_knows(self):
        job = self.c.submit({"tasks": {"s": {"op": "sleep", "args": [20, 1]}}, "targets": ["s"]})
        wait_for("it to run", lambda: self.c.explain(job, "s")["state"] == "TASK_RUNNING", 60)
        ends = self.wait_in("scheduler", {
            "Jobs/Get": self.m("GetJobRequest")(id=job, wait_s=120),
            "Jobs/Result": self.m("ResultRequest")(id=job, key="s", wait_s=120),
            "Jobs/Watch": self.m("WatchJobRequest")(id=job)})
        code, words, replies = ends["Jobs/Get"]
        self.assertEqual(code, "OK", words)
        known = self.m("Job").FromString(replies[0])
        self.assertEqual(known.id, job)
        # these calls have to be repeated by the client
        for method in ("Jobs/Result", "Jobs/Watch"):
            self.assertEqual(ends[method][:2], ("UNAVAILABLE", "the scheduler is stopping: ask again"))
        self.assertEqual(self.c.wait(job, 120)["state"], "JOB_DONE")

    def test_a_trainer_that_stops_says_what_it_knows(self):
        training_cases.upload(self.c, train=320, validation=32)
        session = training_cases.start(self.c, training_cases.document("async", stop={"epochs": 1000000}))
        training_cases.at_version(self.c, session, 1)
        ends = self.wait_in("trainer", {"Trainings/Get": self.m("GetTrainingRequest")(id=session, wait_s=120),
                                        "Trainings/Watch": self.m("WatchTrainingRequest")(id=session)})
        code, words, replies = ends["Trainings/Get"]
        self.assertEqual(code, "OK", words)
        self.assertEqual(self.m("Training").FromString(replies[0]).id, session)
        self.assertEqual(ends["Trainings/Watch"][:2], ("UNAVAILABLE", "the trainer is stopping: try again"))
        wait_for("the trainer", lambda: self.c.request("GET", f"/v1/trainings/{session}")[0] == 200, 60)
        self.c.call("POST", f"/v1/trainings/{session}:stop", {"reason": "enough"})
        self.assertEqual(training_cases.ended(self.c, session, 120)["state"], "TRAINING_DONE")


if __name__ == "__main__":
    main()
