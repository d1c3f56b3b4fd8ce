"""TLS in whole clusters: on TCP ports through relays that record the bytes, and with `up --tls`."""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import training_cases  # noqa: E402
from harness import ROOT, SLOW, Cluster, bin_dir, main, wait_for  # noqa: E402

try:
    import grpc
except ImportError:
    grpc = None

SECRET = "secret-0123456789abcdef"
TOKEN = "token-0123456789abcdef"
MARK = "the quick brown fox and what it costs "


class Relay:
    """A relay before a TCP port that keeps the bytes of both directions."""

    def __init__(self, port):
        self.to, self.seen = port, bytearray()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self.to))
                except OSError:
                    near.close()
                    continue
                for a, b in ((near, far), (far, near)):
                    threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    def pump(self, a, b):
        with contextlib.suppress(OSError):
            while data := a.recv(1 << 16):
                self.seen += data
                b.sendall(data)
        for s in (a, b):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Parts:
    """The programs of a cluster on TCP ports of 127.0.0.1, with each other's addresses."""

    def __init__(self, tls=()):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="mr-tls-"))
        self.tls, self.children = list(tls), {}
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("MILLRACE_")} | {"MILLRACE_HOME": str(self.dir)}
        for name, text in (("secret", SECRET), ("tokens", f"{TOKEN} admin ada")):
            (self.dir / name).write_text(text + "\n")
            (self.dir / name).chmod(0o600)
        self.access = [f"--secret-file={self.dir}/secret", f"--token-file={self.dir}/tokens"]
        self.redis = f"unix:{self.dir}/redis.sock"
        self.start("redis", "/usr/bin/redis-server", "--port", "0", "--unixsocket", f"{self.dir}/redis.sock", "--dir", str(self.dir),
                   "--save", "", tls=[], access=[])
        self.scheduler = free_port()
        self.to_scheduler = Relay(self.scheduler)
        wait_for("Redis", lambda: (self.dir / "redis.sock").exists())
        self.start("scheduler", "mr-scheduler", f"--listen=127.0.0.1:{self.scheduler}", f"--redis={self.redis}")
        self.trainer = free_port()

    def start(self, name, program, *flags, tls=None, access=None):
        path = program if program.startswith("/") else bin_dir().resolve() / program
        args = [str(path), *flags, *(self.tls if tls is None else tls), *(self.access if access is None else access)]
        with open(self.dir / f"{name}.log", "ab") as log:
            self.children[name] = subprocess.Popen(args, env=self.env, cwd=self.dir, stderr=subprocess.STDOUT, stdout=log)

    def node(self, n):
        """Starts an object store behind a relay, and a worker."""
        port = free_port()
        relay = Relay(port)
        at = f"127.0.0.1:{self.to_scheduler.port}"
        self.start(f"store-{n}", "mr-objectstore", f"--node=node-{n}", f"--listen=127.0.0.1:{port}",
                   f"--advertise=127.0.0.1:{relay.port}", f"--socket={self.dir}/arena-{n}.sock", "--memory=64MiB",
                   f"--scheduler={at}", f"--redis={self.redis}", f"--dir={self.dir}/node-{n}")
        wait_for("the store's socket", lambda: (self.dir / f"arena-{n}.sock").exists())
        self.start(f"worker-{n}", "mr-worker", f"--name=worker-{n}", f"--node=node-{n}", f"--scheduler={at}", "--threads=2",
                   f"--listen=127.0.0.1:{free_port()}", f"--trainer=127.0.0.1:{self.trainer}", f"--store={self.dir}/arena-{n}.sock", f"--store-address=127.0.0.1:{relay.port}", f"--data-root={self.dir}")
        return relay

    def log(self, name):
        return (self.dir / f"{name}.log").read_text(errors="replace")

    def close(self):
        for child in reversed(self.children.values()):
            child.kill()
            child.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            for name in self.children:
                print(f"--- {name}\n{self.log(name)[-3000:]}", file=sys.stderr)
        self.close()


class Gateway:
    """An HTTP client with a token, for training_cases."""

    def __init__(self, port, context):
        self.url, self.context = f"{'https' if context else 'http'}://127.0.0.1:{port}", context

    def request(self, method, path, body=None, headers=None):
        request = urllib.request.Request(self.url + path, method=method, data=body,
                                         headers={"Authorization": f"Bearer {TOKEN}", **(headers or {})})
        with urllib.request.urlopen(request, context=self.context, timeout=60 * SLOW) as r:
            return r.status, r.headers, r.read()

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        return json.loads(self.request(method, path, data, {"Content-Type": "application/json"})[2])

    def get(self, path):
        return self.call("GET", path)


class Made(unittest.TestCase):
    """A cluster of `up --tls`; other tests use its certificates too."""

    @classmethod
    def setUpClass(cls):
        # No process has the file names that --tls makes in its environment.
        cls.c = Cluster("--tls", "--workers", "2")
        cls.ca = cls.c.dir / "c" / "tls" / "ca.pem"
        cls.flags = [f"--tls-cert={cls.ca.parent}/cert.pem", f"--tls-key={cls.ca.parent}/key.pem", f"--tls-ca={cls.ca}"]

    @classmethod
    def tearDownClass(cls):
        cls.c.close()

    def test_up_makes_https_that_the_commands_trust(self):
        self.assertTrue(self.c.url.startswith("https://127.0.0.1:"), self.c.url)
        for name, mode in (("ca-key.pem", 0o600), ("key.pem", 0o600)):
            self.assertEqual((self.ca.parent / name).stat().st_mode & 0o777, mode)
        self.assertEqual(self.ca.parent.stat().st_mode & 0o777, 0o700)
        for host in ("127.0.0.1", "localhost"):
            url = f"https://{host}:{self.c.port}/healthz"
            out = subprocess.run(["curl", "-sS", "--cacert", str(self.ca), url], capture_output=True, text=True, check=True)
            self.assertTrue(json.loads(out.stdout)["ready"])
        self.assertIn("worker-0-1", self.c.cli("workers")[1])
        code, out, _ = self.c.cli("run", "examples/hello.json")
        self.assertEqual(code, 0)

    def test_commands_say_which_flag_is_missing(self):
        code, _, err = self.c.cli("workers", "--tls-ca", "/etc/ssl/certs/ca-certificates.crt", check=False)
        self.assertNotEqual(code, 0)
        self.assertIn("--tls-ca", err)
        code, _, err = self.c.cli("workers", "--url", self.c.url.replace("https", "http"), check=False)
        self.assertNotEqual(code, 0)
        self.assertIn("https://", err)

    def test_nothing_of_a_cluster_on_tcp_travels_in_the_clear(self):
        with Parts(self.flags) as p:
            relays = [p.to_scheduler, p.node(0), p.node(1)]
            self.train(p, relays[1:], self.look(p, relays))
            for relay in relays[:2]:  # no client asks node 1 for a value
                self.assertGreater(len(relay.seen), 1000)
            for relay in relays:
                for text in (SECRET, TOKEN, MARK):
                    self.assertNotIn(text.encode(), relay.seen)

    def test_what_the_relays_would_see_without_tls(self):
        with Parts() as p:
            relays = [p.to_scheduler, p.node(0), p.node(1)]
            self.look(p, relays)
            seen = b"".join(r.seen for r in relays)
            self.assertIn(SECRET.encode(), seen)
            self.assertIn(MARK.encode(), seen)

    def look(self, p, relays):
        """A value of node 0 is used on node 1, by a job that was submitted with a token over HTTPS."""
        (p.dir / "text").write_text(MARK * 1000)
        p.start("gateway", "mr-gateway", "--listen=127.0.0.1:0", f"--port-file={p.dir}/port",
                f"--scheduler=127.0.0.1:{p.to_scheduler.port}", f"--store=127.0.0.1:{relays[1].port}",
                f"--trainer=127.0.0.1:{p.trainer}")
        port = wait_for("the gateway", lambda: (p.dir / "port").exists() and (p.dir / "port").read_text().strip())
        g = Gateway(port, ssl.create_default_context(cafile=str(self.ca)) if p.tls else None)

        def ready():
            with contextlib.suppress(OSError):
                return len(g.get("/v1/workers").get("workers", [])) == 2
        wait_for("two workers", ready, 40)
        graph = {"tasks": {"a": {"op": "text.read", "args": ["text"], "workers": "worker-0"},
                           "b": {"op": "text.count_words", "args": [{"ref": "a"}], "workers": "worker-1"}}, "targets": ["b"]}
        job = g.get(f"/v1/jobs/{g.call('POST', '/v1/jobs', graph)['id']}?wait_s=40")
        self.assertEqual(job["state"], "JOB_DONE", job)
        return g

    def train(self, p, relays, g):
        """Three ranks and a scorer with two slots a node, so gradients pass between nodes, on the
        workers' own ports."""
        p.start("trainer", "mr-trainer", f"--listen=127.0.0.1:{p.trainer}", f"--scheduler=127.0.0.1:{p.to_scheduler.port}",
                f"--store=127.0.0.1:{relays[0].port}", f"--redis={p.redis}")
        wait_for("the trainer", lambda: self.answers(p.trainer))
        training_cases.upload(g, train=600, validation=100)
        doc = training_cases.document("allreduce", workers=3, stop={"epochs": 2})
        t = training_cases.ended(g, training_cases.start(g, doc))
        self.assertEqual(t["state"], "TRAINING_DONE", t)
        self.assertEqual({m["node"] for m in t["members"]}, {"node-0", "node-1"}, t["members"])

    def answers(self, port):
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return True

    def test_a_side_that_is_plain_is_told_so(self):
        with Parts(self.flags) as p:
            at = f"127.0.0.1:{p.scheduler}"
            p.start("plain", "mr-worker", "--name=plain", f"--scheduler={at}", "--threads=1", tls=[])
            wait_for("its words", lambda: at in p.log("plain") and "--tls-cert" in p.log("plain"))
            wait_for("the scheduler's", lambda: "tls.refused" in p.log("scheduler"))
            p.start("gateway", "mr-gateway", "--listen=127.0.0.1:0", f"--port-file={p.dir}/port", f"--scheduler={at}", tls=[])
            port = wait_for("the gateway", lambda: (p.dir / "port").exists() and (p.dir / "port").read_text().strip())
            for path in ("/healthz", "/v1/workers"):
                with self.assertRaises(urllib.error.HTTPError) as e:
                    Gateway(port, None).get(path)
                self.assertEqual(e.exception.code, 503)
                words = e.exception.read().decode()
                self.assertIn(at, words)
                self.assertIn("--tls-ca", words)
        with Parts() as p:
            at = f"127.0.0.1:{p.scheduler}"
            p.start("ours", "mr-worker", "--name=ours", f"--scheduler={at}", "--threads=1", tls=self.flags)
            wait_for("its words", lambda: at in p.log("ours") and "does not use TLS" in p.log("ours"))

    def test_a_service_without_all_three_does_not_start(self):
        with Parts(self.flags) as p:
            for flags, words in ((self.flags[:2], "--tls-ca"), (self.flags[2:], "--tls-cert"), (self.flags[1:], "--tls-cert")):
                for program in (["mr-scheduler"], ["mr-worker"], ["mr-trainer"],
                                ["mr-objectstore", "--listen=127.0.0.1:0", f"--socket={p.dir}/x"]):
                    r = subprocess.run([str(bin_dir().resolve() / program[0]), *program[1:], *flags], env=p.env, capture_output=True,
                                       text=True, timeout=60, cwd=p.dir)
                    self.assertNotEqual(r.returncode, 0)
                    self.assertIn(words, r.stderr)

    def test_the_documents_certificates_work(self):
        """Runs the openssl commands of docs/operations/tls.md, and checks what a client without a
        certificate may do."""
        text = (ROOT / "docs" / "operations" / "tls.md").read_text()
        block = text[text.index("openssl req -x509"):]
        commands = block[:block.index("```")].replace("10.0.0.5", "127.0.0.1")
        with tempfile.TemporaryDirectory(prefix="mr-") as d:
            made = subprocess.run(["bash", "-ec", commands], cwd=d, capture_output=True, text=True)
            self.assertEqual(made.returncode, 0, made.stderr)
            with Parts([f"--tls-cert={d}/cert.pem", f"--tls-key={d}/key.pem", f"--tls-ca={d}/ca.pem"]) as p:
                at = f"127.0.0.1:{p.scheduler}"
                p.start("worker", "mr-worker", "--name=worker", f"--scheduler={at}", "--threads=1")
                wait_for("the worker", lambda: "session.registered" in p.log("worker"))
                if grpc:
                    self.look_with_grpc(at, pathlib.Path(d))

    def look_with_grpc(self, at, d):
        ca, key, cert = ((d / f"{n}.pem").read_bytes() for n in ("ca", "key", "cert"))

        def ask(method, token, *pair):
            with grpc.secure_channel(at, grpc.ssl_channel_credentials(ca, *pair)) as c:
                stream = c.stream_stream("/millrace.v1." + method)(iter([b""]), timeout=60,
                                                                   metadata=[("authorization", f"Bearer {token}")])
                with contextlib.suppress(StopIteration, grpc.RpcError):
                    next(iter(stream))
                return stream.code().name, stream.details()
        self.assertEqual(ask("Cluster/Info", TOKEN)[0], "OK")
        for method in ("WorkerSession/Connect", "Cluster/Info"):
            code, words = ask(method, SECRET)
            self.assertEqual(code, "UNAUTHENTICATED")
            self.assertIn("--tls-cert", words)
        self.assertEqual(ask("Cluster/Info", SECRET, key, cert)[0], "OK")
        self.assertEqual(ask("WorkerSession/Connect", TOKEN)[0], "UNAUTHENTICATED")
        self.assertNotIn(ask("WorkerSession/Connect", SECRET, key, cert)[0], ("UNAUTHENTICATED", "PERMISSION_DENIED"))

    def test_https_takes_new_certificates_without_a_restart(self):
        with Parts() as p:
            at = {n: p.dir / f"{n}.pem" for n in ("cert", "key")}
            for name, path in at.items():
                shutil.copy(self.ca.parent / f"{name}.pem", path)
            p.start("gateway", "mr-gateway", "--listen=127.0.0.1:0", f"--port-file={p.dir}/port", f"--scheduler=127.0.0.1:{p.scheduler}",
                    tls=[f"--tls-cert={at['cert']}", f"--tls-key={at['key']}"], access=[])
            port = int(wait_for("the gateway", lambda: (p.dir / "port").exists() and (p.dir / "port").read_text().strip()))

            def shown():
                return ssl.get_server_certificate(("127.0.0.1", port), timeout=20)
            first = at["cert"].read_text()
            self.assertEqual(shown(), first)
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                            "-subj", "/CN=new", "-keyout", f"{p.dir}/new-key", "-out", f"{p.dir}/new"], check=True, capture_output=True)
            # a certificate and a key that do not belong together
            os.replace(p.dir / "new", at["cert"])
            wait_for("the gateway to look", lambda: shown() == first and "tls.kept" in p.log("gateway"))
            (p.dir / "new-key").chmod(0o600)
            os.replace(p.dir / "new-key", at["key"])
            wait_for("the new certificate", lambda: shown() == at["cert"].read_text() != first)

    def test_up_takes_what_the_environment_has(self):
        """With MILLRACE_TLS_* set, the gateway uses HTTPS, so `up` must ask it with HTTPS too."""
        tls = self.ca.parent
        env = {"MILLRACE_TLS_CERT": str(tls / "cert.pem"), "MILLRACE_TLS_KEY": str(tls / "key.pem")}
        with Cluster("--workers", "1", env=env) as c:
            self.assertTrue(c.url.startswith("https://"), c.url)
            code, _, err = c.cli("workers", check=False)
            self.assertIn("MILLRACE_TLS_CA", err)  # the CA of the given certificate is not known
            self.assertIn("worker-0-0", c.cli("workers", "--tls-ca", str(self.ca))[1])
        for more, words in (({"MILLRACE_TLS_CA": str(self.ca)}, "--tls-cert"), ({"MILLRACE_TLS_CERT": str(tls / "cert.pem")}, "--tls-key")):
            self.assertIn(words, self.refused(more))
        self.assertIn("--tls makes its own", self.refused(env, "--tls"))
        self.assertIn("is not the key of", self.refused(dict(env, MILLRACE_TLS_KEY=str(tls / "ca-key.pem"))))

    def refused(self, env, *flags):
        with tempfile.TemporaryDirectory(prefix="mr-") as d:
            r = subprocess.run([str(bin_dir() / "millrace"), "up", "--dir", d, "--listen", "127.0.0.1:0", *flags],
                               env=dict(os.environ, MILLRACE_HOME=d, **env), capture_output=True, text=True, timeout=60)
        self.assertNotEqual(r.returncode, 0)
        return r.stderr


if __name__ == "__main__":
    main()
