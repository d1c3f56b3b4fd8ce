"""`up --grpc` serves gRPC over TCP: scheduler, object store and trainer at three ports, with tokens and TLS
as at the gateway. The client is Python's grpcio, with types made of the build's descriptors."""
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "gateway")]

from harness import SKIP, Cluster, bin_dir, wait_for  # noqa: E402

try:
    import grpc
    from fake import Types
except ImportError as missing:  # needs python3-grpcio and python3-protobuf
    print(f"SKIPPED: {missing}: gRPC over TCP was not tried", file=sys.stderr)
    sys.exit(SKIP)

TYPES = Types(pathlib.Path(os.environ["MILLRACE_BUILD"]) / "proto/gen/descriptors.binpb")
GRAPH = b'{"dsk": {"x": 1, "y": ["inc", "x"]}, "targets": ["y"]}'
ADMIN, READER = "0123456789abcdef", "fedcba9876543210"


def call(channel, method, request, token=None, streams=False, answers=False):
    """Calls a method such as "Jobs.Get": its reply, or the list of its replies. `request` is a
    message or a list of messages."""
    service, name = method.split(".")
    kind = next(m for m in TYPES.services[f"millrace.v1.{service}"].method if m.name == name)
    make = getattr(channel, ("stream" if streams else "unary") + ("_stream" if answers else "_unary"))
    stub = make(f"/millrace.v1.{service}/{name}", lambda m: m.SerializeToString(),
                TYPES.get(kind.output_type.lstrip(".")).FromString)
    out = stub(iter(request) if streams else request, timeout=60,
               metadata=[("authorization", f"Bearer {token}")] if token else None)
    return list(out) if answers else out


class Ports(unittest.TestCase):
    def start(self, *flags):
        cluster = Cluster("--workers", "1", "--threads", "1", *flags)
        self.addCleanup(cluster.close)
        said = wait_for("the ports to be named", lambda: re.search(
            r"gRPC( with TLS)?: scheduler (\S+), object store (\S+), trainer (\S+)\n", cluster.output()), 60)
        self.assertEqual(bool(said[1]), "--tls" in flags)
        ports = [int(a.rpartition(":")[2]) for a in said.groups()[1:]]
        self.assertEqual(ports, list(range(ports[0], ports[0] + 3)))
        return cluster, said.groups()[1:]

    def body(self, data):
        return TYPES.get("google.api.HttpBody")(content_type="application/json", data=data)

    def use(self, scheduler, store, trainer, token=None):
        """A job, a value and a channel, each at the port of its service."""
        answer = call(scheduler, "Jobs.Submit", [TYPES.SubmitRequest(wait_s=30, want_values=True, body=self.body(GRAPH))],
                      token, streams=True)
        self.assertEqual((answer.job.state, answer.values[0].pack), (3, b"\x02"))
        put = call(store, "Objects.Put", [TYPES.PutRequest(body=self.body(b"[1,2]"))], token, streams=True)
        got = call(store, "Objects.Get", TYPES.GetObjectRequest(id=put.id), token, answers=True)
        self.assertEqual(b"".join(b.data for b in got).strip(), b"[1,2]")
        put = call(trainer, "Channels.Append", TYPES.AppendRequest(channel="c", value_json=["1"]), token)
        self.assertTrue(put.last_id)

    def test_plain_on_loopback(self):
        cluster, addresses = self.start("--grpc", "127.0.0.1:0")
        self.use(*(grpc.insecure_channel(a) for a in addresses))
        for a in addresses:  # only these addresses listen
            with self.assertRaises(OSError):
                socket.create_connection(("127.0.0.2", int(a.rpartition(":")[2])), timeout=5)
        self.assertEqual(cluster.run({"dsk": {"x": ["inc", 1]}, "targets": ["x"]})["state"], "JOB_DONE")

    def test_tokens_and_tls_for_others(self):
        directory = tempfile.mkdtemp(prefix="mr-grpc-")
        tokens = os.path.join(directory, "tokens")
        with open(os.open(tokens, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(f"{ADMIN} admin ada\n{READER} reader rita\n")
        self.addCleanup(shutil.rmtree, directory)
        cluster, addresses = self.start("--grpc", "0.0.0.0:0", "--token-file", tokens, "--tls")
        ca = (cluster.dir / "c/tls/ca.pem").read_bytes()
        addresses = [a.replace("0.0.0.0", "127.0.0.1") for a in addresses]
        secure = [grpc.secure_channel(a, grpc.ssl_channel_credentials(ca)) for a in addresses]
        self.use(*secure, token=ADMIN)
        empty = {"Jobs.List": (secure[0], TYPES.ListJobsRequest()), "Objects.List": (secure[1], TYPES.ListObjectsRequest()),
                 "Channels.List": (secure[2], TYPES.ListChannelsRequest())}
        for method, (channel, request) in empty.items():
            call(channel, method, request, READER)
            for token in (None, "wrongwrongwrongwrong"):
                with self.assertRaises(grpc.RpcError) as refused:
                    call(channel, method, request, token)
                self.assertEqual(refused.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
        with self.assertRaises(grpc.RpcError) as refused:
            call(secure[0], "Cluster.Retire", TYPES.RetireRequest(worker="worker-0-0"), READER)
        self.assertEqual(refused.exception.code(), grpc.StatusCode.PERMISSION_DENIED)
        with self.assertRaises(grpc.RpcError):  # a connection without TLS to a port with TLS
            call(grpc.insecure_channel(addresses[0]), "Jobs.List", TYPES.ListJobsRequest(), ADMIN)

    def refused(self, *flags):
        with tempfile.TemporaryDirectory(prefix="mr-") as d:
            out = subprocess.run([str(bin_dir() / "millrace"), "up", "--dir", d, "--listen", "127.0.0.1:0", *flags],
                                 capture_output=True, text=True, timeout=60)
        self.assertNotEqual(out.returncode, 0)
        return out.stderr

    def test_what_cannot_be_is_refused_in_words(self):
        self.assertIn("--token-file is needed", self.refused("--grpc", "0.0.0.0:0"))
        for wrong in ("8480", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "::1:8480", ":8480"):
            self.assertIn("is not HOST:PORT", self.refused("--grpc", wrong))
        self.assertIn("three ports", self.refused("--grpc", "127.0.0.1:65534"))
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            first = port - 2 if port > 3 else port
            self.assertRegex(self.refused("--grpc", f"127.0.0.1:{first}"), r"--grpc: 127\.0\.0\.1:\d+: Address already in use")


if __name__ == "__main__":
    unittest.main(verbosity=2)
