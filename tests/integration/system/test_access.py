"""Which callers may do what in a whole cluster: tokens, secrets, sockets. And how its ports treat
faulty callers: connections that stop halfway, messages that are too large, readers that do not
read."""
import json
import os
import pathlib
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "worker")]

import rig  # noqa: E402: skips where grpcio is missing
from harness import SLOW, Cluster, HttpError, bin_dir, main, wait_for  # noqa: E402
from rig import grpc  # noqa: E402

V1 = "/millrace.v1."
TOKENS = {"reader": "reader-0123456789", "user": "user-0123456789ab", "admin": "admin-0123456789a"}
GRAPH = {"dsk": {"x": 1, "y": ["inc", "x"]}, "targets": ["y"]}


def bearer(token):
    return [("authorization", f"Bearer {token}")]


def passes(role):
    return [("millrace-user", "somebody"), ("millrace-role", role)]


class Case(unittest.TestCase):
    flags = ["--workers", "2", "--threads", "1"]

    @classmethod
    def setUpClass(cls):
        cls.work = pathlib.Path(tempfile.mkdtemp(prefix="mr-access-"))
        cls.m = staticmethod(rig.load_messages(cls.work))
        tokens = cls.work / "tokens"
        tokens.write_text("# token role name\n" + "".join(f"{t} {role} {role}-1\n" for role, t in TOKENS.items()))
        tokens.chmod(0o600)
        cls.c = Cluster(*[f.replace("TOKENS", str(tokens)) for f in cls.flags],
                        # without it, AddressSanitizer counts freed memory as used
                        env={"ASAN_OPTIONS": "quarantine_size_mb=1",
                             "MILLRACE_TRAINER": "unix:/nowhere/trainer.sock"})
        cls.run_dir = cls.c.dir / "c" / "run"
        cls.channels = {n: grpc.insecure_channel(f"unix:{cls.run_dir}/{n}.sock", options=[("grpc.max_send_message_length", -1)])
                        for n in ("scheduler", "store-0", "worker-0-0")}

    @classmethod
    def tearDownClass(cls):
        for channel in cls.channels.values():
            channel.close()
        cls.c.close()
        shutil.rmtree(cls.work)

    def call(self, place, method, request=b"", metadata=None):
        return self.channels[place].unary_unary(method)(request, metadata=metadata, timeout=20 * SLOW,
                                                        # a worker may not listen yet
                                                        wait_for_ready=True)

    def session(self, method, metadata=None):
        """The answer of a session to an empty first message."""
        stream = self.channels["scheduler"].stream_stream(method)
        return next(iter(stream(iter([b""]), metadata=metadata, timeout=20 * SLOW)))

    def refused(self, code, act, *args, **kw):
        with self.assertRaises(grpc.RpcError) as e:
            act(*args, **kw)
        self.assertEqual(e.exception.code().name, code, e.exception.details())
        return e.exception.details()


class Local(Case):
    """`up` without tokens: a caller on a UNIX socket is an admin, but not a service."""

    def test_the_state_is_its_owners(self):
        secret = self.c.dir / "c" / "secret"
        self.assertEqual(stat.S_IMODE(secret.stat().st_mode), 0o600)
        self.assertRegex(secret.read_text(), r"^[0-9a-f]{64}\n$")
        self.assertEqual(stat.S_IMODE(self.run_dir.stat().st_mode), 0o700)
        names = {p.name for p in self.run_dir.iterdir()}
        self.assertEqual(names, {"redis.sock", "scheduler.sock", "store-0.sock", "arena-0.sock", "worker-0-0.sock",
                                 "worker-0-1.sock", "trainer.sock"})
        for path in self.run_dir.iterdir():
            self.assertEqual(stat.S_IMODE(path.stat().st_mode) & 0o077, 0, path)

    def test_sessions_are_for_services(self):
        for method in (V1 + "WorkerSession/Connect", V1 + "StoreSession/Connect"):
            self.assertIn("--secret-file", self.refused("PERMISSION_DENIED", self.session, method))
            self.refused("UNAUTHENTICATED", self.session, method, bearer("0123456789abcdef-wrong"))
            service = bearer(self.c.secret())
            self.assertIn("--secret-file", self.refused("PERMISSION_DENIED", self.session, method, service + passes("admin")))
            try:  # the connection is accepted; the session refuses its first message
                self.session(method, service)
            except (StopIteration, grpc.RpcError) as e:
                self.assertNotIn(getattr(e, "code", lambda: None)(), (grpc.StatusCode.PERMISSION_DENIED,
                                                                      grpc.StatusCode.UNAUTHENTICATED))

    def test_a_user_is_who_the_cluster_says(self):
        cancel = V1 + "Jobs/Cancel", self.m("CancelJobRequest")(id="j1-99").SerializeToString()
        self.refused("NOT_FOUND", self.call, "scheduler", *cancel)
        self.assertIn("millrace-role", self.refused("PERMISSION_DENIED", self.call, "scheduler", *cancel, passes("admin")))
        service = bearer(self.c.secret())
        words = self.refused("PERMISSION_DENIED", self.call, "scheduler", *cancel, service + passes("reader"))
        self.assertIn('Jobs/Cancel needs the role user; "somebody" is reader', words)
        self.refused("NOT_FOUND", self.call, "scheduler", *cancel, service + passes("user"))
        self.call("scheduler", V1 + "Cluster/Info", b"", service + passes("reader"))

    def test_a_trainer_that_a_job_names_is_not_called(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen(16)
            s.settimeout(0.5)
            where = f"127.0.0.1:{s.getsockname()[1]}"
            digits = {"op": "digits.draw", "args": [2, 1]}
            for task in ({"op": "queue.put", "args": ["q", digits, digits], "kwargs": {"trainer": where}},
                         {"op": "queue.close", "args": ["q"], "kwargs": {"trainer": where}},
                         {"op": "train.worker", "args": ["t1-1", 0, where], "long_running": True}):
                over = self.c.wait(self.c.submit({"tasks": {"t": task}}), 20)
                self.assertEqual(over["state"], "JOB_FAILED", over)
                self.assertIn(f'"{where}" is not the trainer of this worker', json.dumps(over, ensure_ascii=False).replace('\\"', '"'))
            self.assertRaises(TimeoutError, s.accept)

    def test_workers_have_a_port(self):
        self.assertEqual(self.call("worker-0-0", "/grpc.health.v1.Health/Check"), b"\x08\x01")
        self.assertIn(b"millrace_worker_tasks_total", self.call("worker-0-0", V1 + "Metrics/Read"))
        stub = self.channels["worker-0-0"].stream_stream("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
        self.assertIn(b"millrace.v1.Metrics", next(iter(stub(iter([b"\x3a\x00"]), timeout=20 * SLOW))))

    def test_metrics_have_the_workers_counters(self):
        self.c.run(GRAPH)
        text = self.c.request("GET", "/metrics")[2].decode()
        for i in range(2):
            labels = f'instance="unix:{self.run_dir}/worker-0-{i}.sock",worker="worker-0-{i}",node="node-0"'
            self.assertIn(f'millrace_worker_connects_total{{{labels}}} ', text)
            self.assertRegex(text, rf'millrace_worker_tasks_total{{{labels},state="done"}} \d')
            self.assertIn(f"millrace_up{{{labels}}} 1", text)
        addresses = {w["name"]: w["address"] for w in self.c.workers()}
        self.assertEqual(addresses["worker-0-1"], f"unix:{self.run_dir}/worker-0-1.sock")

    def test_messages_that_are_too_large_are_refused_and_the_port_lives(self):
        large = b"\x0a" + b"\xff\xff\xff\x0b" + b"x" * (0xb << 21 | 0x1fffff)
        for place, method in (("scheduler", V1 + "Jobs/Get"), ("store-0", V1 + "Objects/Stat"), ("worker-0-0", V1 + "Metrics/Read")):
            self.refused("RESOURCE_EXHAUSTED", self.call, place, method, large)
            self.assertEqual(self.call(place, "/grpc.health.v1.Health/Check"), b"\x08\x01")

    def test_connections_that_begin_and_go_no_further_hurt_nobody(self):
        begun = []
        for name in ("scheduler", "store-0", "worker-0-0"):
            for i in range(60):
                s = socket.socket(socket.AF_UNIX)
                s.settimeout(10 * SLOW)
                s.connect(f"{self.run_dir}/{name}.sock")
                s.sendall([b"", b"PRI * HTT", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 99][i % 5])
                begun.append(s)
        arena = []
        for i in range(20):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            s.connect(f"{self.run_dir}/arena-0.sock")
            if i % 2:
                s.send(b"\xff" * 40)
            arena.append(s)
        for place in self.channels:
            self.assertEqual(self.call(place, "/grpc.health.v1.Health/Check"), b"\x08\x01")
        self.assertEqual(self.c.run(GRAPH)["state"], "JOB_DONE")
        for s in [*begun, *arena]:
            s.close()
        self.assertEqual(self.c.run(GRAPH)["state"], "JOB_DONE")

    def test_a_reader_that_does_not_read_holds_back_only_itself(self):
        size = 64 << 20
        job = self.c.run({"tasks": {"big": {"op": "array.full", "args": [{"literal": [size // 8]}, 1.5]}}, "targets": ["big"]})
        self.assertEqual(job["state"], "JOB_DONE", job)
        request = self.m("ResultRequest")(id=job["id"], key="big").SerializeToString()
        pids = self.c.pids("mr-scheduler") + self.c.pids("mr-objectstore")

        def resident():
            return sum(int(pathlib.Path(f"/proc/{p}/statm").read_text().split()[1]) -
                       int(pathlib.Path(f"/proc/{p}/statm").read_text().split()[2]) for p in pids) * 4096
        before = resident()
        stub = self.channels["scheduler"].unary_stream(V1 + "Jobs/Result")
        streams = [stub(request, timeout=120 * SLOW) for _ in range(8)]
        for s in streams:
            next(s)
        time.sleep(1)
        self.assertLess(resident() - before, 4 * size)  # a few MiB each, not 8 whole messages
        self.assertEqual(self.c.run(GRAPH)["state"], "JOB_DONE")
        for s in streams[1:]:
            s.cancel()
        self.assertGreater(sum(len(part) for part in streams[0]), size - (3 << 20))


class Tokens(Case):
    """`up --token-file`: every caller on every port needs credentials."""
    flags = [*Case.flags, "--token-file", "TOKENS"]

    def test_the_gateway_takes_tokens_and_the_scheduler_knows_the_user(self):
        def ask(method, path, body=None, role=None):
            headers = {"Authorization": f"Bearer {TOKENS[role]}"} if role else {}
            return self.c.call(method, path, body, headers)

        with self.assertRaises(HttpError) as e:
            ask("GET", "/v1/jobs")
        self.assertEqual(e.exception.status, 401)
        with self.assertRaises(HttpError) as e:
            ask("POST", "/v1/jobs", GRAPH, "reader")
        self.assertEqual(e.exception.status, 403)
        job = ask("POST", "/v1/jobs?wait_s=30", GRAPH, "user")["id"]
        self.assertEqual(ask("GET", f"/v1/jobs/{job}?wait_s=30", None, "reader")["state"], "JOB_DONE")
        self.assertEqual(ask("GET", f"/v1/jobs/{job}/results/y", None, "reader"), 2)
        with self.assertRaises(HttpError) as e:
            ask("POST", "/v1/workers/nobody:retire", {}, "user")
        self.assertEqual(e.exception.status, 403)
        with self.assertRaises(HttpError) as e:
            ask("POST", "/v1/workers/nobody:retire", {}, "admin")
        self.assertEqual(e.exception.status, 404)

    def test_a_command_shows_the_token_that_stands_beside_the_url(self):
        def top(**last):
            (self.work / "last.json").write_text(json.dumps({"url": self.c.url, **last}))
            env = {k: v for k, v in os.environ.items() if not k.startswith("MILLRACE_")}
            return subprocess.run([str(bin_dir() / "millrace"), "top", "-n", "1"], capture_output=True, text=True,
                                  timeout=30 * SLOW, env=dict(env, MILLRACE_HOME=str(self.work)))

        self.assertEqual(top(token=TOKENS["reader"]).returncode, 0)
        refused = top()
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("a token is required", refused.stderr)

    def test_every_port_wants_a_token_and_looks_at_its_role(self):
        for place in self.channels:
            self.assertEqual(self.call(place, "/grpc.health.v1.Health/Check"), b"\x08\x01")
            self.refused("UNAUTHENTICATED", self.call, place, V1 + "Metrics/Read")
            self.refused("UNAUTHENTICATED", self.call, place, V1 + "Metrics/Read", b"", bearer(TOKENS["admin"] + "x"))
            self.call(place, V1 + "Metrics/Read", b"", bearer(TOKENS["reader"]))
        retire = V1 + "Cluster/Retire", self.m("RetireRequest")(worker="nobody").SerializeToString()
        for role in ("reader", "user"):
            self.refused("PERMISSION_DENIED", self.call, "scheduler", *retire, bearer(TOKENS[role]))
        self.refused("NOT_FOUND", self.call, "scheduler", *retire, bearer(TOKENS["admin"]))
        unname = V1 + "Objects/Unname", self.m("UnnameRequest")(name="nothing").SerializeToString()
        self.refused("PERMISSION_DENIED", self.call, "store-0", *unname, bearer(TOKENS["reader"]))
        self.refused("NOT_FOUND", self.call, "store-0", *unname, bearer(TOKENS["user"]))
        for role in TOKENS:
            self.refused("PERMISSION_DENIED", self.session, V1 + "WorkerSession/Connect", bearer(TOKENS[role]))
            self.refused("PERMISSION_DENIED", self.call, "scheduler", *retire, bearer(TOKENS[role]) + passes("admin"))


class Files(unittest.TestCase):
    """Which files a user can read through a job, and which programs a user can run."""

    def up(self, *flags, env=None):
        c = Cluster("--workers", "1", *flags, directory=self.dir, env=env)
        self.addCleanup(c.close)
        return c

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="mr-files-"))
        self.addCleanup(shutil.rmtree, self.dir, True)
        self.tokens = self.dir / "tokens"
        self.tokens.write_text("".join(f"{t} {role} {role}-1\n" for role, t in TOKENS.items()))
        self.tokens.chmod(0o600)

    def read(self, c, path, role=None):
        headers = {"Authorization": f"Bearer {TOKENS[role]}"} if role else {}
        graph = {"tasks": {"t": {"op": "text.read", "args": [str(path)]}}, "targets": ["t"]}
        id = c.call("POST", "/v1/jobs", graph, headers)["id"]
        job = c.call("GET", f"/v1/jobs/{id}?wait_s=30", headers=headers)
        if job["state"] == "JOB_DONE":
            return c.call("GET", f"/v1/jobs/{job['id']}/results/t?wait_s=30", headers=headers)
        return job["error"]["message"]

    def test_a_user_reads_no_token_and_no_state_though_they_lie_in_the_data_root(self):
        (self.dir / "plain.txt").write_text("plain")
        c = self.up("--data-root", str(self.dir), "--token-file", str(self.tokens))
        os.link(self.tokens, self.dir / "again")
        os.link(self.dir / "c" / "secret", self.dir / "secret2")
        self.assertEqual(self.read(c, "plain.txt", "user"), "plain")
        for path in ("tokens", self.tokens, "again", "c/secret", "secret2", "c/log/up.log", "c/log/worker-0-0.log",
                     "c/redis", "home/last.json", "/proc/self/environ"):
            words = self.read(c, path, "user")
            self.assertRegex(words, "is refused|outside|no file", path)
            self.assertNotIn(TOKENS["admin"], words)
        self.assertIn("token file", self.read(c, "tokens", "user"))
        self.assertIn("secret", self.read(c, "c/secret", "user"))
        self.assertIn("is refused", self.read(c, "home/last.json", "user"))

    def test_with_a_token_file_there_is_no_data_root_but_one_that_is_given(self):
        out = subprocess.Popen([str(bin_dir() / "millrace"), "up", "--dir", str(self.dir / "c"), "--listen", "127.0.0.1:0",
                                "--memory", "64MiB", "--workers", "1", "--token-file", "tokens"], cwd=self.dir, text=True,
                               stdout=subprocess.PIPE, env=dict(os.environ, MILLRACE_HOME=str(self.dir / "home")))
        self.addCleanup(out.wait)
        self.addCleanup(out.stdout.close)
        self.addCleanup(out.send_signal, signal.SIGINT)
        said = ""
        for line in out.stdout:
            said += line
            if "state and logs" in line:
                break
        self.assertIn("operators read no files", said)
        url = json.loads((self.dir / "home" / "last.json").read_text())["url"]
        for path in ("tokens", self.tokens):
            graph = self.dir / "graph.json"
            graph.write_text(json.dumps({"tasks": {"t": {"op": "text.read", "args": [str(path)]}}}))
            ran = subprocess.run([str(bin_dir() / "millrace"), "run", str(graph), "--url", url, "--token", TOKENS["user"]],
                                 capture_output=True, text=True, timeout=60 * SLOW)
            self.assertNotEqual(ran.returncode, 0)
            self.assertIn("--data-root", ran.stdout + ran.stderr)
            self.assertNotIn(TOKENS["admin"], ran.stdout + ran.stderr)

    def test_a_data_root_in_the_state_directory_is_refused(self):
        (self.dir / "c" / "log").mkdir(parents=True)
        done = subprocess.run([str(bin_dir() / "millrace"), "up", "--dir", str(self.dir / "c"), "--listen", "127.0.0.1:0",
                               "--data-root", str(self.dir / "c" / "log")], capture_output=True, text=True, timeout=30 * SLOW)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("operators may read nothing there", done.stderr)

    def test_allow_exec_says_what_it_means(self):
        c = self.up("--allow-exec")  # the worker publishes its address before its other properties
        wait_for("the sentence", lambda: "everyone who may submit a job" in c.output())
        help_text = subprocess.run([str(bin_dir() / "millrace"), "up", "--help"], capture_output=True, text=True).stdout
        self.assertIn("read the cluster's secret and tokens", help_text)

    @unittest.skipUnless(os.geteuid() == 0, "SKIPPED: --exec-user wants root")
    def test_programs_run_as_another_user(self):
        c = self.up("--allow-exec", "--exec-user", "nobody")
        wait_for("the sentence", lambda: "as the user nobody" in c.output())
        secret = self.dir / "c" / "secret"
        graph = {"tasks": {"who": {"op": "exec", "args": [["id", "-un"]]}, "steal": {"op": "exec", "args": [["cat", str(secret)]]}},
                 "on_error": "continue"}
        job = c.run(graph)
        self.assertEqual(c.value(job["id"], "who"), "nobody\n")
        self.assertEqual(job["state"], "JOB_FAILED")


class Start(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="mr-start-"))
        self.addCleanup(shutil.rmtree, self.dir)

    def refused(self, program, *flags):
        done = subprocess.run([str(bin_dir() / program), *flags], capture_output=True, text=True, timeout=30 * SLOW,
                              env={k: v for k, v in os.environ.items() if not k.startswith("MILLRACE_")})
        self.assertNotEqual(done.returncode, 0)
        return done.stdout + done.stderr

    def test_no_program_listens_to_the_world_without_tokens(self):
        redis = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", f"{self.dir}/r", "--save", ""],
                                 stdout=subprocess.DEVNULL, cwd=self.dir)
        self.addCleanup(redis.wait)
        self.addCleanup(redis.send_signal, signal.SIGTERM)
        wait_for("redis", lambda: (self.dir / "r").exists())
        programs = [("mr-scheduler", f"--redis=unix:{self.dir}/r"), ("mr-objectstore", f"--socket={self.dir}/a"),
                    ("mr-worker", f"--scheduler=unix:{self.dir}/s"), ("mr-gateway", f"--scheduler=unix:{self.dir}/s"),
                    ("millrace", "up", f"--dir={self.dir}/up", "--workers=1")]
        for program, *flags in programs:
            with self.subTest(program):
                words = self.refused(program, *flags, "--listen=0.0.0.0:0")
                self.assertIn("--listen", words)
                self.assertIn("--token-file", words)
        for program, *flags in programs[:3]:
            with self.subTest(program):
                self.assertIn("--token-file", self.refused(program, *flags, "--listen=127.evil.test:0"))

    def test_a_directory_may_have_any_name_but_one_with_a_comma(self):
        self.assertIn("a,b has a comma", self.refused("millrace", "up", f"--dir={self.dir}/a,b", "--listen=127.0.0.1:0"))
        odd = self.dir / "a b#%41?ü"
        odd.mkdir()
        with Cluster("--workers", "1", directory=odd) as c:
            id = c.call("POST", "/v1/jobs", {"dsk": {"x": ["inc", 1]}, "targets": ["x"]})["id"]
            self.assertEqual(c.get(f"/v1/jobs/{id}?wait_s=30")["state"], "JOB_DONE")

    def test_a_bad_line_of_a_token_file_is_named_by_every_program(self):
        for name, text in (("tokens", "0123456789abcdef admin ada\n\n0123456789abcdeX admin\n"), ("secret", "0123456789abcdef\n")):
            (self.dir / name).write_text(text)
            (self.dir / name).chmod(0o600)
        files = [f"--token-file={self.dir}/tokens", f"--secret-file={self.dir}/secret"]
        for program, *flags in [("mr-scheduler", f"--listen=unix:{self.dir}/s"),
                                ("mr-objectstore", f"--listen=unix:{self.dir}/o", f"--socket={self.dir}/a"),
                                ("mr-worker", f"--listen=unix:{self.dir}/w"),
                                ("mr-gateway", "--listen=127.0.0.1:0", f"--scheduler=unix:{self.dir}/s")]:
            with self.subTest(program):
                words = self.refused(program, *flags, *files)
                self.assertIn("line 3: it is not TOKEN ROLE NAME", words)
                self.assertNotIn("0123456789abcde", words)

    def test_a_second_start_keeps_the_secret(self):
        c = Cluster("--workers", "1", directory=self.dir)
        secret = c.secret()
        c.stop()
        (self.dir / "c" / "run").chmod(0o755)
        c.start()
        self.assertEqual(c.secret(), secret)
        self.assertEqual(stat.S_IMODE((self.dir / "c" / "run").stat().st_mode), 0o700)
        self.assertEqual(c.run(GRAPH)["state"], "JOB_DONE")
        c.close()


if __name__ == "__main__":
    main()
