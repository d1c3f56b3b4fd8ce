#!/usr/bin/env python3
"""Graphs that come as columns in pieces: worked on while they come, the same as if they had come at
once, and gone when their call is. The messages are made here, so no stubs are needed."""
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

PIECE = 20_000  # nodes; a piece takes some 400 KiB, more than is handed over at once


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
    """x0 = 0, x[i] = add(x[i-1], 1) in chains of ten; the targets are the ends."""
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
        cls.cluster = Cluster("--workers", "2", "--threads", "1")
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

    def test_the_same_request_id_is_the_same_job_however_it_was_cut(self):
        first = self.submit(chain_pieces(2, request_id="cut"))
        self.assertEqual(self.submit(chain_pieces(2, request_id="cut")), first)
        self.refused(chain_pieces(3, request_id="cut"), grpc.StatusCode.ALREADY_EXISTS, "cut")

    def test_calls_that_end_early_leave_nothing_behind(self):
        """More of them than may be worked on ahead at a time, twice."""
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


if __name__ == "__main__":
    unittest.main(verbosity=2)
