#!/usr/bin/env python3
"""Graphs that arrive as columns in pieces. They are parsed while they arrive, with the same result
as in one piece, and dropped if their call ends. The messages are made by hand, so no stubs are
needed."""
import os
import pathlib
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import SKIP, Cluster, wait_for  # noqa: E402

try:
    import grpc
except ImportError:
    print("skipped: python3-grpcio is missing")
    sys.exit(SKIP)

PIECE = 20_000  # nodes in a piece, about 400 KiB: more than the gateway passes on at once


def varint(n):
    out = bytearray()
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def packed(numbers):
    return b"".join(map(varint, numbers))


def slot(i):
    return b"\xd6\x01" + i.to_bytes(4, "big")


def columns(keys, ops, args, inputs, names=(), targets=(), request_id=""):
    return b"".join([field(1, request_id.encode()) if request_id else b"", *(field(5, n.encode()) for n in names),
                     field(6, b"".join(keys)), field(7, packed(map(len, keys))), field(8, packed(ops)),
                     field(9, b"".join(args)), field(10, packed(map(len, args))), field(11, packed(map(len, inputs))),
                     field(12, packed(i for many in inputs for i in many)), field(13, packed(targets))])


def key(i):
    return b"a rather long key %08d" % i


def chain_pieces(pieces, last=b"", **kw):
    """x0 = 0 and x[i] = add(x[i-1], 1) in chains of ten; the last task of each chain is a target."""
    for p in range(pieces):
        nodes = range(p * PIECE, (p + 1) * PIECE)
        heads = [i % 10 == 0 for i in nodes]
        yield columns([key(i) for i in nodes], [0 if h else 1 for h in heads],
                      [b"\x00" if h else b"\x92" + slot(0) + b"\x01" for h in heads],
                      [[] if h else [i - 1] for i, h in zip(nodes, heads)],
                      names=[] if p else ["add"], targets=[i for i in nodes if i % 10 == 9], **kw)
    if last:
        yield last


class SubmitStream(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster("--workers", "2", "--threads", "1", env={"MILLRACE_READING_MEMORY": "128MiB",
                                                                       "MILLRACE_READING_IDLE": "20s"})
        cls.channel = grpc.insecure_channel(cls.cluster.scheduler)
        cls.stub = cls.channel.stream_unary("/millrace.v1.Jobs/SubmitStream")

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.cluster.close()

    def submit(self, messages):
        reply = self.stub(iter(messages), timeout=120)
        assert reply[0] == 10, reply
        return reply[2:2 + reply[1]].decode()

    def refused(self, messages, code, *words):
        with self.assertRaises(grpc.RpcError) as e:
            self.submit(messages)
        self.assertEqual(e.exception.code(), code, e.exception)
        for word in words:
            self.assertIn(word, e.exception.details())

    def ended(self, job):
        return wait_for("the job", lambda: self.cluster.job(job)["state"] in ("JOB_DONE", "JOB_FAILED") and self.cluster.job(job), 60)

    def test_pieces_are_one_graph(self):
        job = self.submit(chain_pieces(3))
        self.assertEqual(self.ended(job)["state"], "JOB_DONE")
        for i in (9, PIECE + 9, 3 * PIECE - 1):
            self.assertEqual(self.cluster.value(job, key(i).decode()), 9)

    def test_a_piece_may_name_what_a_later_one_defines(self):
        first = columns([key(i) for i in range(PIECE)], [1] * PIECE, [b"\x91" + slot(0)] * PIECE, [[PIECE]] * PIECE,
                        names=["inc"], targets=[0, PIECE - 1])
        job = self.submit([first, columns([b"late"], [0], [b"\x29"], [[]])])
        self.assertEqual(self.ended(job)["state"], "JOB_DONE")
        self.assertEqual(self.cluster.value(job, key(0).decode()), 42)

    def test_what_is_wrong_in_any_piece_is_named(self):
        invalid, exists = grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.ALREADY_EXISTS
        self.refused(chain_pieces(2, columns([key(5)], [0], [b"\x00"], [[]])), exists, key(5).decode(), "defined twice")
        self.refused(chain_pieces(2, columns([b"bad"], [0], [b"\x92\x00"], [[]])), invalid, '"bad"', "args")
        self.refused(chain_pieces(2, columns([b"bad"], [1], [b"\x92" + slot(0) + b"\x01"], [[3 * PIECE]])), invalid,
                     '"bad"', "is no node")
        self.refused(chain_pieces(2, columns([b"bad"], [2], [b"\x91\x01"], [[]], names=["no.such.op"])), invalid,
                     '"bad"', "no.such.op")
        self.refused(chain_pieces(1, columns([b"bad"], [1], [b"\x91\x01"], [[]])), invalid, '"bad"', "takes 2 arguments")

    def test_messages_without_nodes_are_bounded(self):
        """Small messages that take much memory."""
        invalid, end = grpc.StatusCode.INVALID_ARGUMENT, columns([], [], [], [], targets=[9])
        self.assertEqual(self.ended(self.submit([*chain_pieces(1), *[b""] * 1000, end]))["state"], "JOB_DONE")
        self.refused([*chain_pieces(1), *[b""] * 1024, end], invalid, "1024 messages", "no node")
        self.refused([b""] * 1025, invalid, "1024 messages", "no node")

    def test_the_same_request_id_is_the_same_job_however_it_was_cut(self):
        first = self.submit(chain_pieces(2, request_id="cut"))
        self.assertEqual(self.submit(chain_pieces(2, request_id="cut")), first)
        self.refused(chain_pieces(3, request_id="cut"), grpc.StatusCode.ALREADY_EXISTS, "cut")

    def test_calls_that_end_early_leave_nothing_behind(self):
        """Twice, more streams than the scheduler parses ahead at a time."""
        go = threading.Event()

        def forever():
            yield from chain_pieces(2)
            go.wait(60)
        for _ in range(2):
            go.clear()
            calls = [self.stub.future(forever(), timeout=120) for _ in range(10)]
            time.sleep(1)
            for call in calls:
                call.cancel()
            go.set()
        job = self.submit(chain_pieces(2))
        self.assertEqual(self.ended(job)["state"], "JOB_DONE")

    def filler(self):
        """A piece of 1 MiB of a body that is never complete."""
        return field(100, b" " * (1 << 20))

    def test_bodies_that_do_not_end_are_bounded(self):
        """Several bodies of one caller may use half of the memory for reading. Small jobs pass;
        after the bodies are gone, all jobs pass."""
        go = threading.Event()

        def hold():
            for _ in range(20):
                yield self.filler()
            go.wait(60)
        calls = [self.stub.future(hold(), timeout=120) for _ in range(6)]
        wait_for("what is too much to be refused", lambda: sum(c.done() for c in calls) >= 3, 60)
        refused = [c.exception() for c in calls if c.done()]
        self.assertEqual({e.code() for e in refused}, {grpc.StatusCode.RESOURCE_EXHAUSTED}, refused)
        self.assertIn("try again later", refused[0].details())
        self.assertEqual(self.cluster.run({"tasks": {"x": {"op": "inc", "args": [1]}}})["state"], "JOB_DONE")
        for call in calls:
            call.cancel()
        go.set()
        self.test_many_streams_at_a_time()

    def test_many_streams_at_a_time(self):
        jobs, errors = [], []

        def one():
            try:
                jobs.append(self.submit(chain_pieces(2)))
            except Exception as e:  # noqa: BLE001: told below
                errors.append(e)
        threads = [threading.Thread(target=one) for _ in range(10)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(errors, [])
        self.assertEqual({self.ended(j)["state"] for j in jobs}, {"JOB_DONE"})


def json_entry(i):
    if i % 10 == 0:
        return '"%s": {"value": 0}' % key(i).decode()
    return '"%s": {"op": "add", "args": [{"ref": "%s"}, 1]}' % (key(i).decode(), key(i - 1).decode())


def json_text(n, entry=json_entry, tail=""):
    return ('{"name": "in pieces", "tasks": {' + ",\n".join(map(entry, range(n))) + "}" + tail + "}").encode()


def json_messages(text, size=300_001, request_id=""):
    first = field(1, request_id.encode()) if request_id else b""
    for at in range(0, len(text), size):
        yield first + field(3, field(2, text[at:at + size]))
        first = b""


class SubmitText(SubmitStream):
    """The same for a graph in JSON that is large enough to be parsed while it arrives."""
    N = 30_000

    def filler(self):
        return field(3, field(2, b" " * (1 << 20)))

    def test_a_body_of_which_nothing_more_comes_is_given_up(self):
        """A stream without data is ended after --reading-idle."""
        go = threading.Event()

        def hold():
            yield self.filler()
            go.wait(100)
        call = self.stub.future(hold(), timeout=120)
        e = call.exception(100)
        go.set()
        self.assertEqual(e.code(), grpc.StatusCode.DEADLINE_EXCEEDED, e)
        self.assertIn("no byte has come for 20 s", e.details())

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.stub = cls.channel.stream_unary("/millrace.v1.Jobs/Submit")

    def test_pieces_are_one_graph(self):
        for size in (300_001, 70_000, 1_000_000):
            job = self.submit(json_messages(json_text(self.N), size))
            info = self.ended(job)
            self.assertEqual((info["state"], info["name"]), ("JOB_DONE", "in pieces"))
            for i in (9, self.N // 2 + 9, self.N - 1):
                self.assertEqual(self.cluster.value(job, key(i).decode()), 9)

    def test_a_piece_may_name_what_a_later_one_defines(self):
        def backwards(i):
            return json_entry(self.N - 1 - i)
        job = self.submit(json_messages(json_text(self.N, backwards, ', "targets": ["%s"]' % key(19).decode())))
        self.assertEqual(self.ended(job)["state"], "JOB_DONE")
        self.assertEqual(self.cluster.value(job, key(19).decode()), 9)

    def test_what_is_wrong_in_any_piece_is_named(self):
        invalid, late = grpc.StatusCode.INVALID_ARGUMENT, self.N - 1

        def with_late(entry):
            return json_messages(json_text(self.N, lambda i: entry if i == late else json_entry(i)))
        self.refused(with_late(json_entry(5)), invalid, key(5).decode(), "defined twice")
        self.refused(with_late('"bad": {"op": "no.such.op", "args": []}'), invalid, '"bad"', "no.such.op")
        self.refused(with_late('"bad": {"op": "inc", "args": [{"ref": "nobody"}]}'), invalid, '"bad"', "nobody")
        self.refused(with_late('"bad": {"op": "inc" "args": [1]}'), invalid, "malformed", "line %d" % (late + 1))
        self.refused(json_messages(json_text(self.N)[:-2]), invalid, "malformed")
        self.refused(json_messages(json_text(self.N, tail=', "targts": []')), invalid, "targts")

    def test_messages_without_nodes_are_bounded(self):
        """For a text in pieces, each byte is kept, and no message."""
        text = [*json_messages(json_text(self.N))]
        self.assertEqual(self.ended(self.submit([*text[:1], *[b""] * 2000, *text[1:]]))["state"], "JOB_DONE")

    def test_parameters_may_come_last(self):
        def entry(i):
            return '"%s": {"op": "inc", "args": ["${n}"]}' % key(i).decode()
        job = self.submit(json_messages(json_text(self.N, entry, ', "params": {"n": 41}')))
        self.assertEqual(self.ended(job)["state"], "JOB_DONE")
        self.assertEqual(self.cluster.value(job, key(self.N - 1).decode()), 42)

    def test_the_same_request_id_is_the_same_job_however_it_was_cut(self):
        first = self.submit(json_messages(json_text(self.N), request_id="text"))
        self.assertEqual(self.submit(json_messages(json_text(self.N), 99_999, request_id="text")), first)
        self.refused(json_messages(json_text(self.N - 1), request_id="text"), grpc.StatusCode.ALREADY_EXISTS, "text")

    def test_calls_that_end_early_leave_nothing_behind(self):
        go = threading.Event()

        def forever():
            yield from json_messages(json_text(self.N)[:-1])
            go.wait(60)
        calls = [self.stub.future(forever(), timeout=120) for _ in range(10)]
        time.sleep(1)
        for call in calls:
            call.cancel()
        go.set()
        job = self.submit(json_messages(json_text(self.N)))
        self.assertEqual(self.ended(job)["state"], "JOB_DONE")

    def test_many_streams_at_a_time(self):
        jobs = []
        threads = [threading.Thread(target=lambda: jobs.append(self.submit(json_messages(json_text(self.N))))) for _ in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(jobs), 6)
        self.assertEqual({self.ended(j)["state"] for j in jobs}, {"JOB_DONE"})


def resident(pid):
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Freed(unittest.TestCase):
    def test_the_text_goes_back_to_the_kernel_when_it_has_been_read(self):
        """The memory of a large graph is returned at once, and not after jemalloc's ten seconds,
        because the graph's tasks need it."""
        with Cluster("--workers", "1", "--threads", "1") as c, grpc.insecure_channel(c.scheduler) as channel:
            pid = c.pids("mr-scheduler")[0]
            if "jemalloc" not in pathlib.Path(f"/proc/{pid}/maps").read_text():
                self.skipTest("not the allocator of a release")
            stub = channel.stream_unary("/millrace.v1.Jobs/Submit")
            text = json_text(20_000, lambda i: json_entry(i) + " " * 2000)
            for size in (65536, 300_001):
                before = resident(pid)
                stub(json_messages(text, size), timeout=120)
                self.assertLess(resident(pid) - before, len(text) / 2, f"{len(text)} bytes in messages of {size}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
