"""Each service has a secret of its own that allows only what the service needs. Secrets and users'
tokens change without a restart. Two nodes on TCP ports, a trainer and a gateway, with the files
of `millrace secrets`."""
import contextlib
import pathlib
import re
import subprocess
import sys
import time
import unittest
import urllib.error

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "worker")]

import rig  # noqa: E402: skips where grpcio is missing
import training_cases  # noqa: E402
from harness import SLOW, bin_dir, main, wait_for  # noqa: E402
from rig import grpc  # noqa: E402
from test_tls import TOKEN, Gateway, Parts  # noqa: E402

V1 = "/millrace.v1."
SERVICES = ("scheduler", "objectstore", "worker", "trainer", "gateway")
PASSES = (("millrace-user", "ada"), ("millrace-role", "admin"))


def secrets(directory, *flags):
    subprocess.run([str(bin_dir().resolve() / "millrace"), "secrets", *flags, str(directory)], check=True, capture_output=True)


class Own(Parts):
    """A cluster in which each program has the secret of its kind."""

    def start(self, name, program, *flags, tls=None, access=None):
        if not (self.dir / "own").exists():
            secrets(self.dir / "own")
        kind = program.removeprefix("mr-")
        if kind in SERVICES:
            access = [f"--secret-file={self.dir}/own/{kind}/secret", f"--token-file={self.dir}/tokens"]
        super().start(name, program, *flags, tls=tls, access=access)

    def shown(self, kind, to):
        return re.search(rf"^show {to} (\S+)$", (self.dir / "own" / kind / "secret").read_text(), re.M).group(1)


class Secrets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.p = p = Own()
        cls.addClassCleanup(p.close)
        cls.relays = [p.node(0), p.node(1)]
        p.start("trainer", "mr-trainer", f"--listen=127.0.0.1:{p.trainer}", f"--scheduler=127.0.0.1:{p.to_scheduler.port}",
                f"--store=127.0.0.1:{cls.relays[0].port}", f"--redis={p.redis}")
        p.start("gateway", "mr-gateway", "--listen=127.0.0.1:0", f"--port-file={p.dir}/port",
                f"--scheduler=127.0.0.1:{p.to_scheduler.port}", f"--trainer=127.0.0.1:{p.trainer}")
        cls.port = wait_for("the gateway", lambda: (p.dir / "port").exists() and (p.dir / "port").read_text().strip(), 60)
        cls.g = Gateway(cls.port, None)
        cls.wait_ready()

    @classmethod
    def wait_ready(cls):
        def ready():
            with contextlib.suppress(OSError):
                return len(cls.g.get("/v1/workers").get("workers", [])) == 2 and \
                    cls.g.get("/v1/channels") is not None and cls.g.get("/v1/objects") is not None
        wait_for("two workers, the trainer and a store", ready, 60)

    def call(self, port, method, secret, request=b"", more=()):
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            return channel.unary_unary(V1 + method)(request, metadata=(("authorization", f"Bearer {secret}"), *more),
                                                    timeout=60 * SLOW, wait_for_ready=True)

    def refused(self, code, *args, **kw):
        with self.assertRaises(grpc.RpcError) as e:
            self.call(*args, **kw)
        self.assertEqual(e.exception.code().name, code, e.exception.details())
        return e.exception.details()

    def run_job(self):
        """A value of node 0 is pulled to node 1, and fetched through the gateway."""
        (self.p.dir / "text").write_text("one two three " * 10000)
        graph = {"tasks": {"a": {"op": "text.read", "args": ["text"], "workers": "worker-0"},
                           "b": {"op": "text.count_words", "args": [{"ref": "a"}], "workers": "worker-1"}}, "targets": ["a", "b"]}
        job = self.g.get(f"/v1/jobs/{self.g.call('POST', '/v1/jobs', graph)['id']}?wait_s=60")
        self.assertEqual(job["state"], "JOB_DONE", job)
        self.assertIn(b"one two three", self.g.request("GET", f"/v1/jobs/{job['id']}/results/a")[2])

    def test_all_of_a_cluster_works(self):
        self.run_job()
        up = self.g.call("POST", "/v1/objects?name=here", [1, 2, 3])
        self.assertEqual(self.g.get("/v1/objects/name:here"), [1, 2, 3], up)
        self.g.request("DELETE", "/v1/names/here")
        text = self.g.request("GET", "/metrics")[2].decode()
        self.assertNotIn(" 0\n", "".join(line + "\n" for line in text.splitlines() if line.startswith("millrace_up{")))
        self.assertIn('worker="worker-1"', text)
        training_cases.upload(self.g, train=600, validation=100)
        for rule, workers in (("allreduce", 3), ("async", 2)):
            with self.subTest(rule):
                doc = training_cases.document(rule, workers=workers, stop={"epochs": 2})
                t = training_cases.ended(self.g, training_cases.start(self.g, doc))
                self.assertEqual(t["state"], "TRAINING_DONE", t)
        for name in self.p.children:
            self.assertNotRegex(self.p.log(name), "may not call|is unknown", name)

    def test_a_workers_secret_opens_a_workers_methods(self):
        secret = self.p.shown("worker", "scheduler")
        for method in ("Jobs/Cancel", "Jobs/Submit", "Jobs/List", "Cluster/Retire", "Cluster/Info", "StoreSession/Connect"):
            words = self.refused("PERMISSION_DENIED", self.p.scheduler, method, secret)
            self.assertEqual(words, f"worker may not call millrace.v1.{method}")
        self.assertIn("worker may not name a user",
                      self.refused("PERMISSION_DENIED", self.p.scheduler, "Jobs/List", secret, more=PASSES))
        for method in ("Trainings/Start", "Queues/Delete"):
            self.assertIn("worker may not call",
                          self.refused("PERMISSION_DENIED", self.p.trainer, method, self.p.shown("worker", "trainer")))
        self.call(self.p.scheduler, "Jobs/List", self.p.shown("gateway", "scheduler"), more=PASSES)

    def test_what_one_service_is_shown_or_has_is_no_key_to_another(self):
        # The trainer receives this secret from others, and must not be able to pose as a worker
        # with it.
        self.refused("UNAUTHENTICATED", self.p.scheduler, "Jobs/List", self.p.shown("worker", "trainer"))
        self.refused("UNAUTHENTICATED", self.p.trainer, "Channels/List", self.p.shown("worker", "scheduler"))
        texts = {kind: (self.p.dir / "own" / kind / "secret").read_text() for kind in SERVICES}
        for kind in SERVICES:
            for secret in re.findall(r"^show \S+ (\S+)$", texts[kind], re.M):
                self.assertEqual([k for k in SERVICES if secret in texts[k]], [kind])
            self.assertEqual((self.p.dir / "own" / kind / "secret").stat().st_mode & 0o777, 0o600)

    def test_secrets_change_without_a_restart(self):
        first = self.p.shown("gateway", "scheduler")
        for before, after in ((first, first), (None, first)):
            old = before or self.p.shown("gateway", "scheduler")
            secrets(self.p.dir / "own", "--rotate")
            new = self.p.shown("gateway", "scheduler")
            self.assertNotEqual(old, new)
            for secret in (new, old):  # the new one at once, the previous one still
                self.call(self.p.scheduler, "Jobs/List", secret, more=PASSES)
            self.run_job()
        wait_for("the first one to be taken back", lambda: self.is_refused(first), 60)
        for name in ("scheduler", "store-0", "trainer", "worker-1", "gateway"):
            wait_for(f"{name} to say so", lambda: self.renewed(name), 60)
        child = self.p.children["worker-0"]
        child.kill()
        child.wait()
        self.p.start("worker-0", "mr-worker", *child.args[1:-2])
        self.wait_ready()
        self.run_job()

    def renewed(self, name):
        with contextlib.suppress(OSError):
            # this asks every service, and a service checks its files only when it is called
            self.g.request("GET", "/metrics")
        return "event=secrets.renewed" in self.p.log(name)

    def is_refused(self, secret):
        try:
            self.call(self.p.scheduler, "Jobs/List", secret, more=PASSES)
        except grpc.RpcError as e:
            return e.code() is grpc.StatusCode.UNAUTHENTICATED
        return False

    def status(self, token):
        g = Gateway(self.port, None)
        try:
            return g.request("GET", "/v1/jobs", headers={"Authorization": f"Bearer {token}"})[0]
        except urllib.error.HTTPError as e:
            return e.code

    def test_tokens_change_without_a_restart(self):
        path, line = self.p.dir / "tokens", f"{TOKEN} admin ada\n"

        def replace(text, mode=0o600):
            fresh = self.p.dir / "tokens.new"
            fresh.write_text(text)
            fresh.chmod(mode)
            fresh.rename(path)
        uwe = "uwes-token-0123456789"
        self.assertEqual(self.status(uwe), 401)
        replace(line + f"{uwe} user uwe\n")
        wait_for("the new user", lambda: self.status(uwe) == 200, 60)
        self.call(self.p.scheduler, "Jobs/List", uwe)
        for name in ("gateway", "scheduler"):
            self.assertIn("event=tokens.renewed", self.p.log(name))
        for text, mode, why in ((f"{uwe} boss uwe\n", 0o600, 'role "boss" is none of admin, user, reader'),
                                (line, 0o644, "has mode 0644")):
            replace(text, mode)
            wait_for("the broken file to be said", lambda: self.status(uwe) != 200 or why in self.p.log("gateway"), 60)
            self.assertIn("event=tokens.kept", self.p.log("gateway"))
            self.assertEqual((self.status(uwe), self.status(TOKEN)), (200, 200))
            time.sleep(0.1)
        replace(line)
        wait_for("the user to be gone", lambda: self.status(uwe) == 401, 60)
        self.assertEqual(self.status(TOKEN), 200)


if __name__ == "__main__":
    main()
