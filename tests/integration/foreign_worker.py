"""A worker in Python: WorkerSession through grpcio, MessagePack by hand. It runs `py:demo.double`
beside the native workers of a real cluster, which shows that the protocol is enough to write a
worker. The class ForeignWorker is the part to copy, 100 lines."""
import os
import pathlib
import queue
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "worker"))
import harness  # noqa: E402
import rig  # noqa: E402  (skips where grpcio is missing)
from rig import grpc, pack, unpack  # noqa: E402


class ForeignWorker:
    """A worker with one slot. Its values are inline; an input that is an object is reported as
    missing."""

    def __init__(self, address, messages, ops, secret):
        self.m, self.ops = messages, ops
        # the secret of the cluster: only services may open sessions
        self.metadata = [("authorization", f"Bearer {secret}")]
        self.out, self.names, self.values, self.waiting, self.made = queue.Queue(), [], {}, {}, {}
        self.ran, self.incarnation, self.beat = [], 0, 0
        self.channel = grpc.insecure_channel(address)
        self.stream = self.channel.stream_stream(
            "/millrace.v1.WorkerSession/Connect",
            request_serializer=messages("WorkerMessage").SerializeToString,
            response_deserializer=messages("SchedulerMessage").FromString)
        describe = messages("OpDescriptor")
        self.say(register=messages("Register")(
            protocol_version=2, layout_version=1, name="foreign", node="elsewhere", slots=1, memory_bytes=1 << 28,
            runtimes=["python"], pid=os.getpid(), time_ns=time.monotonic_ns(), version="test",
            ops=[describe(name=n, args_min=1, args_max=1, info_json='{"name":"%s","summary":"Twice."}' % n)
                 for n in ops]))
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def say(self, **fields):
        self.out.put(self.m("WorkerMessage")(**fields))

    def run(self):
        try:
            for message in self.stream(iter(self.out.get, None), metadata=self.metadata):
                self.take(message)
        except grpc.RpcError:
            pass

    def beats(self, every):
        while self.incarnation:
            self.beat += 1
            self.say(heartbeat=self.m("Heartbeat")(sequence=self.beat, time_ns=time.monotonic_ns(),
                                                   tasks_started=len(self.ran), tasks_done=len(self.ran)))
            time.sleep(every)

    @staticmethod
    def rows(section):
        """(job, row) of a section that is grouped by job."""
        row = 0
        for run in section.runs:
            for _ in range(run.count):
                yield run.job, row
                row += 1

    def take(self, message):
        if message.HasField("registered"):
            self.incarnation = message.registered.incarnation
            every = message.registered.heartbeat_ns / 1e9
            threading.Thread(target=self.beats, args=(every,), daemon=True).start()
        self.names += message.ops
        for job, i in self.rows(message.release):
            self.made.pop((job, message.release.index[i]), None)
        at = 0
        for job, i in self.rows(message.values):
            n = message.values.inline_bytes[i]
            self.values[job, message.values.index[i]] = message.values.inline[at:at + n] if n else None
            at += n
        t, at, first = message.tasks, 0, 0
        for job, i in self.rows(t):
            count = t.inputs_count[i] if t.inputs_count else 0
            inputs = [(job, x) for x in t.inputs[first:first + count]]
            args = t.args[at:at + t.args_bytes[i]]
            op = t.op[i] if len(t.op) > 1 else t.op[0]
            attempt = t.attempt[i] if t.attempt else 1
            self.waiting[job, t.index[i]] = (attempt, self.names[op - 1], args, inputs)
            at += t.args_bytes[i]
            first += count
        for name in ("cancel", "steal"):
            for job, i in self.rows(getattr(message, name)):
                self.give_up(name, job, getattr(message, name), i)
        self.work()

    def give_up(self, name, job, refs, i):
        key, attempt = (job, refs.index[i]), refs.attempt[i]
        row = self.m("TaskRefs")(runs=[self.m("Run")(job=job, count=1)], index=[refs.index[i]], attempt=[attempt])
        if self.waiting.get(key, (0,))[0] != attempt:
            self.say(unknown=row)
            return
        del self.waiting[key]
        if name == "steal":
            self.say(given=row)
        else:
            self.complete(key, attempt, 2)

    def work(self):
        """Starts tasks that have all their inputs, until no such task is left."""
        while True:
            ready = [k for k, (_, _, _, inputs) in self.waiting.items()
                     if all(x in self.values or x in self.made for x in inputs)]
            if not ready:
                return
            attempt, op, args, inputs = self.waiting.pop(ready[0])
            packs = [self.made.get(x, self.values.get(x)) for x in inputs]
            self.ran.append(ready[0])
            started = time.monotonic_ns()
            try:
                # One argument: the head of the list is one byte, and an input slot is extension 1.
                value = unpack(packs[0]) if packs else unpack(args[1:])
                job, index = ready[0]
                self.say(logs=[self.m("TaskLog")(job=job, index=index, attempt=attempt, text=f"doubling {value}\n")])
                self.made[ready[0]] = pack(self.ops[op](value))
                self.complete(ready[0], attempt, 0, self.made[ready[0]], started)
            except Exception as e:
                self.complete(ready[0], attempt, 1, b"", started, repr(e))

    def complete(self, key, attempt, outcome, value=b"", started=0, why=""):
        c = self.m("Completed")(runs=[self.m("Run")(job=key[0], count=1)], index=[key[1]], attempt=[attempt],
                                outcome=[outcome], inline_bytes=[len(value)], inline=value, base_ns=started,
                                started_ns=[0], duration_ns=[time.monotonic_ns() - started if started else 0],
                                cpu_ns=[0], slot=[0])
        if why:
            c.failures.add(row=0, code=2, message=why, arguments="", log="Traceback: " + why)
        self.say(completed=c)

    def close(self):
        self.incarnation = 0
        self.out.put(None)
        self.channel.close()


class Foreign(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        cls.messages = staticmethod(rig.load_messages(cls.work.name))
        cls.cluster = harness.Cluster("--workers", "2", "--threads", "1")

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()
        cls.work.cleanup()

    def setUp(self):
        self.worker = ForeignWorker(self.cluster.scheduler, self.messages, {"py:demo.double": lambda x: 2 * x},
                                    self.cluster.secret())
        self.addCleanup(self.worker.close)
        harness.wait_for("the foreign worker", lambda: self.worker.incarnation)

    def test_its_operator_is_known_to_the_cluster(self):
        ops = self.cluster.get("/v1/ops?name=py:demo.double")["ops"]
        self.assertEqual(ops[0]["summary"], "Twice.")

    def test_tasks_go_back_and_forth_between_languages(self):
        tasks = {"a": {"op": "inc", "args": [20]}, "b": {"op": "py:demo.double", "args": [{"ref": "a"}]},
                 "c": {"op": "inc", "args": [{"ref": "b"}]}, "d": {"op": "py:demo.double", "args": [{"ref": "c"}]}}
        job = self.cluster.run({"tasks": tasks, "targets": ["d"]})
        self.assertEqual(job["state"], "JOB_DONE", job)
        self.assertEqual(self.cluster.value(job["id"], "d"), 86)
        self.assertEqual(len(self.worker.ran), 2)

    def test_a_chain_that_stays_there_is_counted_down_there(self):
        tasks = {"t0": {"op": "py:demo.double", "args": [1]}}
        tasks.update({f"t{i}": {"op": "py:demo.double", "args": [{"ref": f"t{i - 1}"}]} for i in range(1, 30)})
        job = self.cluster.run({"tasks": tasks, "targets": ["t29"]})
        self.assertEqual(job["state"], "JOB_DONE", job)
        self.assertEqual(self.cluster.value(job["id"], "t29"), 2 ** 30)

    def test_issue_11_5_what_its_tasks_write_can_be_read(self):
        """The logs that a worker in another language sends in WorkerMessage.logs are kept."""
        job = self.cluster.run({"tasks": {"x": {"op": "py:demo.double", "args": [21]}}, "targets": ["x"]})
        self.assertEqual(job["state"], "JOB_DONE", job)
        logs = self.cluster.get(f"/v1/jobs/{job['id']}/logs?key=x")
        self.assertEqual((logs["text"], logs["worker"]), ("doubling 21\n", "foreign"))

    def test_its_failures_are_told(self):
        job = self.cluster.run({"tasks": {"x": {"op": "py:demo.double", "args": [None]}}, "targets": ["x"]})
        self.assertEqual(job["state"], "JOB_FAILED")
        self.assertIn("unsupported operand", str(job["error"]))


if __name__ == "__main__":
    unittest.main(verbosity=2)
