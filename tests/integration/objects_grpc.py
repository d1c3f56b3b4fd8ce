#!/usr/bin/env python3
"""The Objects service of real object stores, called by Python's gRPC: objects_grpc.py STORE DESCRIPTORS.
Uploads and downloads in formats, names, persistence over a kill, pulls between two stores, errors."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

STORE, DESCRIPTORS = sys.argv[1], sys.argv[2]
MIB = 1 << 20
TIMEOUT_S = float(os.environ.get("MILLRACE_TEST_TIMEOUT", "60"))


def load():
    files = descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(DESCRIPTORS).read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for f in files.file:
        pool.Add(f)
    return pool


POOL = load()
FACTORY = message_factory.MessageFactory(POOL)


def M(name):
    return FACTORY.GetPrototype(POOL.FindMessageTypeByName(name))


V = "millrace.v1."
SERVICE = POOL.FindServiceByName(V + "Objects")


class Store:
    def __init__(self, node="n1", memory="128MiB", disk=True, flags=(), directory=None):
        self.dir = pathlib.Path(directory or tempfile.mkdtemp(prefix="mr-store-"))
        self.address = f"unix:{self.dir}/grpc-{node}"
        self.args = [STORE, "--listen", self.address, "--socket", f"{self.dir}/control-{node}", "--memory", memory,
                     "--node", node, *flags]
        if disk:
            self.args += ["--dir", f"{self.dir}/data-{node}"]
        self.start()

    def start(self):
        self.log = open(self.dir / "log", "a")
        self.process = subprocess.Popen(self.args, stderr=self.log)
        self.channel = grpc.insecure_channel(self.address, options=[("grpc.max_receive_message_length", 16 * MIB),
                                                                    ("grpc.use_local_subchannel_pool", 1)])
        grpc.channel_ready_future(self.channel).result(TIMEOUT_S)

    def stop(self, how=signal.SIGTERM):
        self.channel.close()
        self.process.send_signal(how)
        code = self.process.wait(TIMEOUT_S)
        self.log.close()
        if how == signal.SIGTERM and code != 0:
            raise AssertionError(f"the store ended with {code}:\n" + (self.dir / "log").read_text()[-3000:])

    def close(self):
        self.stop()
        shutil.rmtree(self.dir)

    def call(self, method, metadata=None, **fields):
        m = SERVICE.FindMethodByName(method)
        request = M(m.input_type.full_name)(**fields)
        kind = self.channel.unary_stream if m.server_streaming else self.channel.unary_unary
        stub = kind(f"/{V}Objects/{method}", request_serializer=type(request).SerializeToString,
                    response_deserializer=M(m.output_type.full_name).FromString)
        return stub(request, timeout=TIMEOUT_S, metadata=metadata)

    def put(self, data, mime, chunk=MIB, metadata=None, **options):
        P, B = M(V + "PutRequest"), M("google.api.HttpBody")

        def requests():
            pieces = [data[i:i + chunk] for i in range(0, len(data), chunk)] or [b""]
            for i, piece in enumerate(pieces):
                first = dict(options) if i == 0 else {}
                yield P(body=B(content_type=mime if i == 0 else "", data=piece), **first)
        stub = self.channel.stream_unary(f"/{V}Objects/Put", request_serializer=P.SerializeToString,
                                         response_deserializer=M(V + "ObjectInfo").FromString)
        return stub(requests(), timeout=TIMEOUT_S, metadata=metadata)

    def get(self, id, accept="", wait_s=0):
        mime, out = None, []
        for piece in self.call("Get", id=id, accept=accept, wait_s=wait_s):
            mime = mime or piece.content_type
            out.append(piece.data)
        return mime, b"".join(out)


def npy(count):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % count
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    body = struct.pack("<%df" % count, *[i % 1000 for i in range(count)])
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + body


class Objects(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.s = Store()

    @classmethod
    def tearDownClass(cls):
        cls.s.close()

    def refused(self, code, text, act):
        with self.assertRaises(grpc.RpcError) as e:
            act()
        self.assertEqual(e.exception.code(), code, e.exception.details())
        self.assertIn(text, e.exception.details())

    def test_a_value_comes_back_in_the_format_asked_for(self):
        info = self.s.put(b'{"a": [1, 2.5, "x"]}', "application/json")
        self.assertEqual((info.kind, info.state, info.durable, info.node), ("json", "memory", False, "n1"))
        mime, body = self.s.get(info.id)
        self.assertEqual((mime, json.loads(body)), ("application/json", {"a": [1, 2.5, "x"]}))

    def test_a_tensor_of_many_chunks_is_the_same_bytes_again(self):
        data = npy(3000000)
        info = self.s.put(data, "application/x-npy")
        self.assertEqual((info.kind, info.dtype, list(info.shape)), ("tensor", "f32", [3000000]))
        mime, body = self.s.get(info.id, "application/x-npy")
        self.assertEqual(mime, "application/x-npy")
        self.assertEqual(body[-12000000:], data[-12000000:])
        self.assertEqual(self.s.call("Stat", id=info.id).nbytes, info.nbytes)

    def test_raw_bytes_of_any_length(self):
        for n in (0, 1, MIB, MIB + 1):
            data = os.urandom(n)
            info = self.s.put(data, "application/octet-stream")
            self.assertEqual(self.s.get(info.id, "application/octet-stream")[1], data)

    def test_names_hold_and_are_found(self):
        info = self.s.put(b"[1]", "application/json", name="a/b c")
        self.assertEqual(list(info.names), ["a/b c"])
        self.assertEqual(self.s.call("Resolve", name="a/b c").object, info.id)
        self.assertEqual(self.s.get("name:a/b c")[1].strip(), b"[1]")
        self.refused(grpc.StatusCode.FAILED_PRECONDITION, "a/b c", lambda: self.s.call("Delete", id=info.id))
        other = self.s.put(b"[2]", "application/json")
        self.refused(grpc.StatusCode.ALREADY_EXISTS, info.id, lambda: self.s.call("Name", name="a/b c", object=other.id))
        self.s.call("Name", name="a/b c", object=other.id, replace=True)
        self.refused(grpc.StatusCode.NOT_FOUND, info.id, lambda: self.s.call("Stat", id=info.id))
        names = self.s.call("Names", prefix="a/")
        self.assertEqual([n.name for n in names.names], ["a/b c"])
        self.s.call("Unname", name="a/b c")
        self.refused(grpc.StatusCode.NOT_FOUND, "a/b c", lambda: self.s.call("Resolve", name="a/b c"))

    def test_an_upload_stays_until_it_is_deleted(self):
        info = self.s.put(b"[1]", "application/json")
        self.s.call("Delete", id=info.id)
        self.refused(grpc.StatusCode.NOT_FOUND, info.id, lambda: self.s.call("Stat", id=info.id))
        self.refused(grpc.StatusCode.NOT_FOUND, info.id, lambda: self.s.get(info.id))

    def test_errors_name_the_field(self):
        bad = grpc.StatusCode.INVALID_ARGUMENT
        self.refused(bad, "id", lambda: self.s.call("Stat", id="zz"))
        self.refused(bad, "name", lambda: self.s.call("Resolve", name=""))
        self.refused(bad, "wait_s", lambda: self.s.get("0" * 31 + "1", wait_s=-1))
        self.refused(bad, "seconds", lambda: self.s.call("Pin", id="0" * 31 + "1", seconds=1e9))
        self.refused(bad, "page_token", lambda: self.s.call("List", page_token="x"))
        self.refused(bad, "", lambda: self.s.put(b"{", "application/json"))
        self.refused(bad, "application/x-nonsense", lambda: self.s.put(b"{}", "application/x-nonsense"))
        self.refused(bad, "options_json", lambda: self.s.put(b"[]", "application/json", options_json="{"))
        self.refused(bad, "", lambda: self.s.get(self.s.put(b"[]", "application/json").id, "image/png"))
        self.refused(grpc.StatusCode.DEADLINE_EXCEEDED, "time", lambda: self.s.get("0" * 31 + "1", wait_s=0.1))

    def test_a_body_larger_than_the_memory_is_refused(self):
        self.refused(grpc.StatusCode.RESOURCE_EXHAUSTED, "memory",
                     lambda: self.s.put(bytes(129 * MIB), "application/octet-stream"))
        self.assertEqual(self.s.get(self.s.put(b"[1]", "application/json").id)[1].strip(), b"[1]")

    def test_where_says_which_objects_are_here(self):
        here = self.s.put(b"[1]", "application/json").id
        ids = [bytes.fromhex(i) for i in (here, "0" * 31 + "7", here)]
        place = self.s.call("Where", ids=b"".join(ids), here=True).places
        self.assertEqual([(p.node, p.address, p.has) for p in place], [("n1", self.s.address, bytes([1, 0, 1]))])
        self.assertEqual(len(self.s.call("Where", ids=ids[1]).places), 0)
        self.assertEqual(len(self.s.call("Where").places), 0)
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "ids", lambda: self.s.call("Where", ids=b"short"))
        self.refused(grpc.StatusCode.INVALID_ARGUMENT, "16384", lambda: self.s.call("Where", ids=bytes(16 * 16385)))

    def test_a_list_goes_through_all_pages(self):
        made = {self.s.put(b"[%d]" % i, "application/json").id for i in range(7)}
        seen, token = [], ""
        while True:
            page = self.s.call("List", page_size=3, page_token=token)
            seen += [o.id for o in page.objects]
            token = page.next_page_token
            if not token:
                break
        self.assertEqual(len(seen), len(set(seen)))
        self.assertTrue(made <= set(seen))

    def test_a_pin_and_the_counters(self):
        info = self.s.put(b"[1]", "application/json")
        self.assertGreaterEqual(self.s.call("Pin", id=info.id, seconds=1).pins, 0)
        stats = self.s.call("Stats")
        self.assertGreater(stats.puts, 0)
        self.assertEqual(stats.memory_bytes, 128 * MIB)
        read = self.s.channel.unary_unary(f"/{V}Metrics/Read", request_serializer=lambda m: b"",
                                          response_deserializer=M(V + "ReadMetricsResponse").FromString)
        text = read(None, timeout=TIMEOUT_S).text
        self.assertIn("millrace_store_objects ", text)
        self.assertIn("process_", text)

    def test_an_upload_that_breaks_off_leaves_nothing(self):
        before = self.s.call("Stats").objects
        P, B = M(V + "PutRequest"), M("google.api.HttpBody")

        def broken():
            yield P(body=B(content_type="application/octet-stream", data=b"x" * MIB))
            time.sleep(30)
        stub = self.s.channel.stream_unary(f"/{V}Objects/Put", request_serializer=P.SerializeToString,
                                           response_deserializer=M(V + "ObjectInfo").FromString)
        call = stub.future(broken())
        time.sleep(0.2)
        call.cancel()
        time.sleep(0.2)
        self.assertEqual(self.s.call("Stats").objects, before)

    def test_more_than_the_memory_spills_and_is_all_there(self):
        data = [bytes([i]) * (8 * MIB) for i in range(24)]
        ids = [self.s.put(d, "application/octet-stream").id for d in data]
        for id, d in zip(ids, data):
            self.assertEqual(self.s.get(id, "application/octet-stream")[1], d)
        stats = self.s.call("Stats")
        self.assertGreater(stats.spills, 0)
        self.assertLessEqual(stats.committed_bytes, stats.memory_bytes)
        for id in ids:
            self.s.call("Delete", id=id)


class Life(unittest.TestCase):
    def test_what_is_persisted_and_named_survives_a_kill(self):
        s = Store()
        data = npy(100000)
        kept = s.put(data, "application/x-npy", name="kept", persist=True)
        later = s.put(b"[7]", "application/json", name="later")
        gone = s.put(b"[1]", "application/json", name="gone")
        self.assertTrue(kept.durable)
        self.assertFalse(gone.durable)
        self.assertTrue(s.call("Persist", id=later.id).durable)
        s.stop(signal.SIGKILL)
        s.start()
        self.assertEqual(s.call("Resolve", name="kept").object, kept.id)
        self.assertEqual(s.call("Stat", id=kept.id).state, "disk")
        self.assertEqual(s.get("name:kept", "application/x-npy")[1][-400000:], data[-400000:])
        self.assertEqual(s.call("Stat", id=kept.id).state, "persisted")
        self.assertEqual(s.get("name:later")[1].strip(), b"[7]")
        for act in (lambda: s.call("Stat", id=gone.id), lambda: s.call("Resolve", name="gone")):
            with self.assertRaises(grpc.RpcError) as e:
                act()
            self.assertEqual(e.exception.code(), grpc.StatusCode.NOT_FOUND)
        with self.assertRaises(grpc.RpcError) as e:
            s.call("Delete", id=kept.id)
        self.assertIn("name kept", e.exception.details())
        s.call("Delete", id=kept.id, force=True)
        end = time.monotonic() + TIMEOUT_S
        while (s.dir / "data-n1" / "objects" / kept.id).exists():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)
        s.close()

    def test_a_damaged_file_is_an_error_not_a_value(self):
        s = Store()
        info = s.put(b"x" * 3 * MIB, "application/octet-stream", persist=True)
        s.stop()
        path = s.dir / "data-n1" / "objects" / info.id
        with open(path, "r+b") as f:
            f.seek(2 * MIB)
            f.write(b"y")
        s.start()
        with self.assertRaises(grpc.RpcError) as e:
            s.get(info.id)
        self.assertEqual(e.exception.code(), grpc.StatusCode.DATA_LOSS)
        s.close()

    def test_a_pull_gives_the_extent_with_checksums(self):
        s = Store()
        info = s.put(b"x" * (2 * MIB + 5), "application/octet-stream")
        chunks = list(s.call("Pull", id=bytes.fromhex(info.id)))
        self.assertEqual(chunks[0].nbytes, info.nbytes)
        self.assertEqual([c.offset for c in chunks], [0, MIB, 2 * MIB])
        rest = list(s.call("Pull", id=bytes.fromhex(info.id), offset=2 * MIB))
        self.assertEqual((rest[0].data, rest[0].checksum), (chunks[2].data, chunks[2].checksum))
        s.close()

    @staticmethod
    def guarded(*flags):
        """A store with tokens of a reader and a user, and with a secret."""
        directory = pathlib.Path(tempfile.mkdtemp(prefix="mr-store-"))
        for name, text in (("tokens", "# who\nreader-0123456789 reader rita\nuser-0123456789ab user uwe\n"),
                           ("secret", "s3cret-of-the-cluster\n")):
            (directory / name).write_text(text)
            (directory / name).chmod(0o600)
        return Store(flags=["--token-file", f"{directory}/tokens", "--secret-file", f"{directory}/secret", *flags],
                     directory=directory)

    def refused(self, code, call):
        with self.assertRaises(grpc.RpcError) as e:
            call()
        self.assertEqual(e.exception.code(), code, e.exception.details())
        return e.exception.details()

    def test_a_token_is_wanted_and_its_role_decides(self):
        s = self.guarded()
        bearer = {t: [("authorization", f"Bearer {t}")]
                  for t in ("reader-0123456789", "user-0123456789ab", "s3cret-of-the-cluster", "wrong0123456789ab")}
        reader, user, secret, wrong = bearer.values()
        for metadata in (None, wrong):
            self.refused(grpc.StatusCode.UNAUTHENTICATED, lambda m=metadata: s.call("Stats", metadata=m))
        for metadata in (reader, user, secret, secret + [("millrace-user", "x"), ("millrace-role", "reader")]):
            self.assertEqual(s.call("Stats", metadata=metadata).node, "n1")
        denied = grpc.StatusCode.PERMISSION_DENIED
        for metadata in (reader, secret + [("millrace-user", "x"), ("millrace-role", "reader")]):
            words = self.refused(denied, lambda m=metadata: s.call("Unname", metadata=m, name="x"))
            self.assertIn("needs the role user", words)
        self.refused(grpc.StatusCode.NOT_FOUND, lambda: s.call("Unname", metadata=user, name="x"))
        pull = lambda m: s.call("Pull", metadata=m, id=bytes.fromhex(info.id))  # noqa: E731
        info = s.put(b"x", "application/octet-stream", metadata=user)
        self.assertIn("cluster's secret", self.refused(denied, lambda: list(pull(user))))
        self.assertEqual(next(iter(pull(secret))).nbytes, info.nbytes)
        pretends = user + [("millrace-user", "ada"), ("millrace-role", "admin")]
        self.assertIn("millrace-user", self.refused(denied, lambda: s.call("Stats", metadata=pretends)))
        s.close()

    def test_a_port_that_the_system_chose_is_what_others_are_told(self):
        s = Store(flags=["--listen", "127.0.0.1:0"])
        s.put(b"[1]", "application/json", name="x")
        address = s.call("Resolve", name="x").address
        self.assertRegex(address, r"^127\.0\.0\.1:[1-9][0-9]*$")
        with grpc.insecure_channel(address) as channel:
            grpc.channel_ready_future(channel).result(TIMEOUT_S)
        s.close()

    def test_a_public_address_without_a_token_is_refused(self):
        for address in ("0.0.0.0:0", "127.evil.test:0", "127.0.0.1.evil.test:0"):
            done = subprocess.run([STORE, "--listen", address, "--socket", f"{tempfile.mkdtemp()}/c"],
                                  capture_output=True, timeout=TIMEOUT_S)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(b"--token-file", done.stderr)

    def test_a_public_address_with_tokens_is_served_to_who_has_one(self):
        s = self.guarded("--listen", "0.0.0.0:0")
        port = re.search(r"event=objectstore.listening address=0\.0\.0\.0:(\d+)", (s.dir / "log").read_text()).group(1)
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary("/millrace.v1.Objects/Stats")
            self.refused(grpc.StatusCode.UNAUTHENTICATED, lambda: call(b"", timeout=TIMEOUT_S))
            call(b"", timeout=TIMEOUT_S, metadata=[("authorization", "Bearer reader-0123456789")])
        s.close()

    def test_bad_token_files_are_refused_by_line(self):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="mr-store-"))
        tokens = directory / "tokens"
        tokens.write_text("reader-0123456789 reader rita\nuser-0123456789ab boss bob\n")
        tokens.chmod(0o600)
        (directory / "secret").write_text("s3cret-of-the-cluster\n")
        (directory / "secret").chmod(0o600)
        run = lambda *flags: subprocess.run(  # noqa: E731
            [STORE, "--listen", f"unix:{directory}/s", "--socket", f"{directory}/c", "--token-file", str(tokens), *flags],
            capture_output=True, timeout=TIMEOUT_S, text=True)
        done = run("--secret-file", f"{directory}/secret")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn('line 2: role "boss" is none of admin, user, reader', done.stderr)
        self.assertNotIn("user-0123456789ab", done.stderr)
        self.assertIn("--secret-file", run().stderr)
        shutil.rmtree(directory)

    def test_sockets_are_their_owners(self):
        s = Store()
        for name in ("grpc-n1", "control-n1"):
            self.assertEqual((s.dir / name).stat().st_mode & 0o777, 0o600)
        s.close()
        s = Store(flags=["--allow-uid", "12345"])
        for name in ("grpc-n1", "control-n1"):
            self.assertEqual((s.dir / name).stat().st_mode & 0o777, 0o666)
        s.close()
        done = subprocess.run([STORE, "--listen", "127.0.0.1:0", "--socket", f"{s.dir}x", "--allow-uid", "root"],
                              capture_output=True, timeout=TIMEOUT_S)
        self.assertIn(b"--allow-uid", done.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be somebody else")
    def test_strangers_are_shown_out(self):
        s = Store(flags=["--allow-uid", "12345"])
        s.dir.chmod(0o755)
        for uid, welcome in ((12345, True), (54321, False)):
            for name, kind in (("grpc-n1", socket.SOCK_STREAM), ("control-n1", socket.SOCK_SEQPACKET)):
                code = (f"import os, socket; os.setuid({uid}); s = socket.socket(socket.AF_UNIX, {int(kind)}); "
                        f"s.connect('{s.dir}/{name}'); s.settimeout(0.5)\n"
                        "try: n = len(s.recv(9)); print('open' if n else 'closed')\n"
                        "except socket.timeout: print('open')\nexcept ConnectionResetError: print('closed')")
                done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=TIMEOUT_S)
                self.assertEqual(done.stdout.strip(), "open" if welcome else "closed", (uid, name, done.stderr))
        s.close()

    def test_a_second_store_on_the_same_socket_is_refused(self):
        s = Store()
        for args, words in ((s.args[:-2], "another object store"), (s.args, f"(pid {s.process.pid}) has {s.dir}/data-n1")):
            # of the socket, and of the directory's lock
            done = subprocess.run(args, capture_output=True, timeout=TIMEOUT_S)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr.decode())
        s.close()


@unittest.skipUnless(shutil.which("redis-server"), "redis-server is not installed")
class Cluster(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="mr-redis-"))
        self.start_redis()
        redis = ["--redis", f"unix:{self.dir}/redis"]
        self.a = Store("a", directory=self.dir, flags=redis)
        self.b = Store("b", directory=self.dir, flags=redis)

    def start_redis(self):
        self.redis = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", f"{self.dir}/redis", "--save", "",
                                       "--dir", str(self.dir)], stdout=subprocess.DEVNULL)

    def tearDown(self):
        self.a.stop()
        self.b.stop()
        self.redis.kill()
        self.redis.wait()
        shutil.rmtree(self.dir)

    def retry(self, act):
        """While Redis is starting, calls for names fail with UNAVAILABLE."""
        end = time.monotonic() + TIMEOUT_S
        while True:
            try:
                return act()
            except grpc.RpcError as e:
                if e.code() != grpc.StatusCode.UNAVAILABLE or time.monotonic() > end:
                    raise
                time.sleep(0.1)

    def test_a_redis_that_wants_a_password_hears_it(self):
        redis = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", f"{self.dir}/guarded", "--save", "",
                                  "--dir", str(self.dir), "--requirepass", "open-sesame"], stdout=subprocess.DEVNULL)
        (self.dir / "password").write_text("open-sesame\n")
        (self.dir / "password").chmod(0o600)
        s = Store("p", directory=self.dir,
                  flags=["--redis", f"unix:{self.dir}/guarded", "--redis-password-file", f"{self.dir}/password"])
        try:
            info = self.retry(lambda: s.put(b"[1]", "application/json", name="guarded"))
            self.assertEqual(s.call("Resolve", name="guarded").object, info.id)
        finally:
            s.stop()
            redis.kill()
            redis.wait()

    def test_an_object_of_one_node_is_found_from_another(self):
        data = os.urandom(3 * MIB)
        first = self.a.put(data, "application/octet-stream")
        self.retry(lambda: self.a.call("Name", name="x/y", object=first.id))
        info = self.b.call("Resolve", name="x/y")
        self.assertEqual((info.object, info.node, info.address), (first.id, "a", self.a.address))
        self.assertEqual(self.b.get("name:x/y", "application/octet-stream")[1], data)
        self.assertEqual(self.b.call("Stats").pulls, 1)
        other = self.a.put(b"[5]", "application/json")
        self.assertEqual(self.b.get(other.id)[1].strip(), b"[5]")
        self.assertEqual([n.name for n in self.b.call("Names").names], ["x/y"])

    def wait_until(self, what, ready):
        end = time.monotonic() + TIMEOUT_S
        while not ready():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.05)

    def files(self, node):
        return sorted(p.name for folder in ("objects", "held") for p in (self.dir / f"data-{node}" / folder).glob("*"))

    def test_a_name_that_another_node_takes_lets_the_old_object_go_with_its_file(self):
        old = self.retry(lambda: self.a.put(b"[5]", "application/json", name="x", persist=True))
        self.assertEqual(self.files("a"), [old.id])
        new = self.b.put(b"[6]", "application/json", name="x", persist=True, replace=True)
        self.wait_until("the file of the old object is gone", lambda: self.files("a") == [])
        with self.assertRaises(grpc.RpcError) as e:
            self.a.call("Stat", id=old.id)
        self.assertEqual(e.exception.code(), grpc.StatusCode.NOT_FOUND)
        self.assertEqual(self.files("b"), [new.id])
        self.a.call("Unname", name="x")
        self.wait_until("the file of the new object is gone", lambda: self.files("b") == [])

    def test_a_store_that_was_away_when_its_name_was_taken_finds_out(self):
        self.a.args += ["--claim-time", "1s"]
        self.retry(lambda: self.a.put(b"[5]", "application/json", name="x", persist=True))
        kept = self.a.put(b"[7]", "application/json", name="y", persist=True)
        nameless = self.a.put(b"[8]", "application/json", persist=True)
        self.a.stop(signal.SIGKILL)
        self.b.put(b"[6]", "application/json", name="x", replace=True)
        self.a.start()
        self.wait_until("the orphan's file is gone", lambda: self.files("a") == sorted([kept.id, nameless.id]))
        self.assertEqual(self.retry(lambda: self.a.call("Stats")).freed_unclaimed, 1)
        time.sleep(2.5)
        self.assertEqual(self.files("a"), sorted([kept.id, nameless.id]))
        self.assertEqual(self.a.get("name:y")[1].strip(), b"[7]")
        self.assertEqual(self.a.get(nameless.id)[1].strip(), b"[8]")

    def test_without_redis_nothing_is_taken_for_an_orphan(self):
        self.a.args += ["--claim-time", "1s"]
        kept = self.retry(lambda: self.a.put(b"[7]", "application/json", name="y", persist=True))
        self.a.stop(signal.SIGKILL)
        self.redis.send_signal(signal.SIGSTOP)
        self.a.start()
        time.sleep(3.5)
        self.assertEqual(self.files("a"), [kept.id])
        self.redis.send_signal(signal.SIGCONT)
        self.assertEqual(self.retry(lambda: self.a.get("name:y"))[1].strip(), b"[7]")
        time.sleep(2.5)
        self.assertEqual(self.files("a"), [kept.id])

    def test_a_name_of_what_died_with_its_store_is_taken_away(self):
        self.retry(lambda: self.a.put(b"[5]", "application/json", name="gone"))
        self.retry(lambda: self.a.put(b"[6]", "application/json", name="kept", persist=True))
        self.a.stop(signal.SIGKILL)
        self.a.start()
        end = time.monotonic() + TIMEOUT_S
        while [n.name for n in self.retry(lambda: self.b.call("Names")).names] != ["kept"]:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.assertEqual(self.b.get("name:kept")[1].strip(), b"[6]")

    def test_without_redis_names_are_unavailable_and_objects_are_not(self):
        first = self.a.put(b"[5]", "application/json")
        self.redis.kill()
        self.redis.wait()
        with self.assertRaises(grpc.RpcError) as e:
            self.a.call("Resolve", name="x")
        self.assertEqual(e.exception.code(), grpc.StatusCode.UNAVAILABLE)
        self.assertIn("Redis", e.exception.details())
        self.assertEqual(self.a.get(first.id)[1].strip(), b"[5]")
        self.start_redis()
        self.retry(lambda: self.a.call("Name", name="x", object=first.id))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=1)
