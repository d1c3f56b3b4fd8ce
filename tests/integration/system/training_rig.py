"""A small cluster whose only worker is this process. Redis, scheduler, object store, trainer and
gateway are real. The roles of a training session are threads here, which Join and Report as a
test tells them. MessagePack by hand, messages from the .proto files."""
import contextlib
import http.client
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "worker")]

import harness  # noqa: E402
from harness import HttpError, bin_dir, job_text, read_events, wait_for  # noqa: E402
import foreign_worker  # noqa: E402  (skips where grpcio is missing)
from rig import grpc, load_messages  # noqa: E402

PS, WORKER, SCORER = 1, 2, 3
RUN, HALT, KEEP, EXIT = 1, 2, 3, 4
ROLES = {"train.ps": PS, "train.worker": WORKER, "train.scorer": SCORER}
ENDED = ("TRAINING_DONE", "TRAINING_FAILED")


def unpack_all(b, at=0):
    """Decodes MessagePack: (value, end). Extensions become None."""
    t = b[at]
    if t < 0x80:
        return t, at + 1
    if t >= 0xe0:
        return t - 256, at + 1
    sizes = {0xcb: ">d", 0xcc: ">B", 0xcd: ">H", 0xce: ">I", 0xcf: ">Q", 0xd0: ">b", 0xd1: ">h", 0xd2: ">i", 0xd3: ">q"}
    if t in sizes:
        return struct.unpack_from(sizes[t], b, at + 1)[0], at + 1 + struct.calcsize(sizes[t])
    if t in (0xc0, 0xc2, 0xc3):
        return {0xc0: None, 0xc2: False, 0xc3: True}[t], at + 1
    if 0xd4 <= t <= 0xd8:
        return None, at + 2 + (1 << (t - 0xd4))

    def length(fix, low, *wide):
        if low <= t < low + fix:
            return t - low, at + 1
        for code, form in wide:
            if t == code:
                return struct.unpack_from(form, b, at + 1)[0], at + 1 + struct.calcsize(form)
        return None, at
    n, start = length(32, 0xa0, (0xd9, ">B"), (0xda, ">H"), (0xdb, ">I"))
    if n is not None:
        return b[start:start + n].decode(), start + n
    n, start = length(16, 0x90, (0xdc, ">H"), (0xdd, ">I"))
    if n is not None:
        out = []
        for _ in range(n):
            value, start = unpack_all(b, start)
            out.append(value)
        return out, start
    n, start = length(16, 0x80, (0xde, ">H"), (0xdf, ">I"))
    if n is not None:
        out = {}
        for _ in range(n):
            key, start = unpack_all(b, start)
            out[key], start = unpack_all(b, start)
        return out, start
    raise ValueError(f"byte {t:#x}")


class Role(threading.Thread):
    """One attempt of a role: joins, reports, and does what the phase asks."""

    def __init__(self, worker, key, attempt, op, args, data):
        super().__init__(daemon=True)
        self.worker, self.key, self.attempt, self.role = worker, key, attempt, ROLES[op]
        (self.session, self.index, self.trainer), self.data = args, data
        self.task = f"{job_text(key[0])}/{key[1]}/{attempt}"
        self.joined, self.phases, self.ended, self.cancelled, self.dead = [], [], None, False, False
        self.steps, self.version, self.fields, self.failed = 0, 0, {}, []
        self.start()

    def call(self, method, request, reply, **fields):
        call = self.worker.trainer().unary_unary(
            f"/millrace.v1.Trainings/{method}", request_serializer=self.worker.m(request).SerializeToString,
            response_deserializer=self.worker.m(reply).FromString)
        return call(self.worker.m(request)(session=self.session, role=self.role, index=self.index, **fields), timeout=30,
                    metadata=self.worker.metadata)

    def join_in(self):
        while not self.over():
            try:
                r = self.call("Join", "JoinRequest", "JoinResponse", task=self.task, wait_s=2,
                              address=f"127.0.0.1:{20000 + 100 * self.role + self.index}", node="here")
            except grpc.RpcError as e:
                self.failed.append((e.code().name, e.details()))
                if e.code() != grpc.StatusCode.UNAVAILABLE:
                    return None
                time.sleep(0.05)
                continue
            if r.incarnation:
                self.joined.append(r)
            if r.formed:
                return r
        return None

    def over(self):
        return self.cancelled or self.dead or self.worker.closing

    def done_what(self, phase):
        """The fields of a report that says that the phase's work is done."""
        saver = self.role == SCORER or (self.role == WORKER and self.index == 0 and not self.worker.has_scorer)
        if phase == HALT and self.role == WORKER:
            return {"finished": True}
        if phase == KEEP and saver:
            return {"finished": True, "model_object": self.worker.model, "score_json": '{"cross_entropy": 0.05}'}
        return {}

    def loop(self):
        r = self.join_in()
        extra, restore = {}, 0
        while r and not self.over():
            generation, phase, restore = r.generation, r.phase, r.restore_epoch
            if phase and (not self.phases or self.phases[-1] != phase):
                self.phases.append(phase)
            if phase == EXIT:
                return True
            incarnation = self.joined[-1].incarnation
            extra = self.done_what(phase)
            self.steps += 1
            if self.role == PS:
                self.version += 1
            counters = self.worker.m("TrainingCounters")(steps=self.steps, examples=64 * self.steps, loss=1.0)
            time.sleep(0.05)
            try:
                told = self.call("Report", "ReportRequest", "ReportResponse", incarnation=incarnation,
                                 generation=generation, counters=counters, version=self.version,
                                 restore_epoch=restore, **{**self.fields, **extra})
            except grpc.RpcError as e:
                self.failed.append((e.code().name, e.details()))
                if e.code() != grpc.StatusCode.UNAVAILABLE:
                    return False
                continue
            if told.generation != generation:
                again = self.join_in()
                if not again:
                    return False
                r = again
                continue
            r = told
        return False

    def run(self):
        good = self.loop()
        self.ended = True
        if self.worker.closing or self.dead == "silent":
            return
        outcome = 2 if self.cancelled else 0 if good else 1
        self.worker.complete(self.key, self.attempt, outcome, b"\xc0" if good else b"", time.monotonic_ns(),
                             "" if outcome != 1 else f"lost {self.failed[-1:]}")


class RoleWorker(foreign_worker.ForeignWorker):
    """A worker that runs roles as threads, and any operator in `ops` at once."""

    def __init__(self, rig, ops):
        self.rig, self.roles, self.attempts, self.closing, self.has_scorer = rig, {}, {}, False, True
        self.model, self.hold = uuid.uuid4().hex, set()
        self.lock = threading.Lock()
        super().__init__(rig.scheduler, rig.messages, {**{op: None for op in ROLES}, **ops}, rig.secret)

    def say(self, **fields):
        if "register" in fields:
            r = fields["register"]
            r.slots = 4
            for op in r.ops:
                op.args_min, op.args_max = 0, 16
        super().say(**fields)

    def trainer(self):
        return self.rig.channel()

    def role(self, session, role, index):
        """The latest attempt of a role."""
        return self.roles.get((session, role, index))

    def give_up(self, name, job, refs, i):
        key, attempt = (job, refs.index[i]), refs.attempt[i]
        role = self.attempts.get((*key, attempt))
        if role and name == "cancel" and not role.ended:
            role.cancelled = True
            return
        super().give_up(name, job, refs, i)

    def work(self):
        for key in [k for k, w in self.waiting.items() if w[1] in ROLES]:
            attempt, op, args, _ = self.waiting.pop(key)
            args = unpack_all(args)[0]
            names = args if isinstance(args, dict) else {"": args}
            args = names[""]
            if (op, args[1]) in self.hold:  # the task is never started
                continue
            role = Role(self, key, attempt, op, args, names.get("data"))
            self.roles[role.session, role.role, role.index] = role
            self.attempts[(*key, attempt)] = role
        super().work()

    def close(self):
        self.closing = True
        super().close()


class Rig:
    """The processes of the cluster. `url` is the gateway's."""

    def __init__(self, ops=None, trainer_flags=()):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="mr-t-"))
        self.messages = load_messages(self.dir)
        self.children, self.trainer_flags, self.grpc_channel = {}, list(trainer_flags), None
        self.secret = uuid.uuid4().hex
        (self.dir / "secret").write_text(self.secret + "\n")
        (self.dir / "secret").chmod(0o600)
        self.scheduler = f"unix:{self.dir}/scheduler.sock"
        self.trainer_address = f"unix:{self.dir}/trainer.sock"
        self.store = f"unix:{self.dir}/store.sock"
        self.redis = f"unix:{self.dir}/redis.sock"
        try:
            self.begin(ops or {})
        except BaseException:
            self.close()
            raise

    def begin(self, ops):
        (self.dir / "objects").mkdir()
        self.start_redis()
        common = ["--secret-file", str(self.dir / "secret")]
        wait_for("redis", (self.dir / "redis.sock").exists)
        self.start("scheduler", [bin_dir() / "mr-scheduler", "--listen", self.scheduler, "--redis", self.redis,
                                 "--lease", "3s", *common])
        self.start("store", [bin_dir() / "mr-objectstore", "--listen", self.store, "--socket", str(self.dir / "store.ctl"),
                             "--memory", "64MiB", "--dir", str(self.dir / "objects"), "--redis", self.redis,
                             "--scheduler", self.scheduler, *common])
        self.start_trainer()
        self.start("gateway", [bin_dir() / "mr-gateway", "--listen", "127.0.0.1:0", "--port-file", str(self.dir / "port"),
                               "--scheduler", self.scheduler, "--trainer", self.trainer_address, "--store", self.store,
                               *common])
        self.port = int(wait_for("the gateway", lambda: (self.dir / "port").exists() and (self.dir / "port").read_text()))
        wait_for("the scheduler", (self.dir / "scheduler.sock").exists)
        self.worker = RoleWorker(self, ops)
        wait_for("the worker", lambda: self.worker.incarnation)
        wait_for("the trainer", self.trainer_answers)

    def start(self, name, argv):
        log = open(self.dir / f"{name}.log", "a")
        self.children[name] = subprocess.Popen([str(a) for a in argv], stdout=log, stderr=subprocess.STDOUT,
                                               start_new_session=True)
        log.close()

    def start_redis(self):
        self.start("redis", [shutil.which("redis-server"), "--port", "0", "--unixsocket", f"{self.dir}/redis.sock",
                             "--dir", str(self.dir), "--appendonly", "yes", "--save", ""])

    def start_trainer(self):
        self.start("trainer", [bin_dir() / "mr-trainer", "--listen", self.trainer_address, "--redis", self.redis,
                               "--scheduler", self.scheduler, "--store", self.store, "--secret-file", self.dir / "secret",
                               *self.trainer_flags])

    def trainer_answers(self):
        with contextlib.suppress(HttpError, OSError):
            return self.get("/v1/trainings") is not None

    def kill(self, name):
        self.children[name].kill()
        self.children[name].wait()

    def stop_cont(self, name, seconds):
        self.children[name].send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self.children[name].send_signal(signal.SIGCONT)

    def channel(self):
        if not self.grpc_channel:
            self.grpc_channel = grpc.insecure_channel(self.trainer_address, options=[
                ("grpc.max_reconnect_backoff_ms", 200), ("grpc.initial_reconnect_backoff_ms", 50),
                ("grpc.min_reconnect_backoff_ms", 50)])
        return self.grpc_channel

    def close(self):
        if getattr(self, "worker", None):
            self.worker.close()
        for child in reversed(list(self.children.values())):
            if child.poll() is None:
                child.kill()
            child.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def logs(self):
        return "\n".join(f"--- {n}\n" + "\n".join((self.dir / f"{n}.log").read_text().splitlines()[-25:])
                         for n in self.children)

    # ---- HTTP ----

    def request(self, method, path, body=None, headers=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            h = dict(headers or {})
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            if body is not None:
                h.setdefault("Content-Type", "application/json")
            c.request(method, path, body, h)
            r = c.getresponse()
            return r.status, r.read()
        finally:
            c.close()

    def call(self, method, path, body=None, headers=None):
        status, data = self.request(method, path, body, headers)
        if not 200 <= status < 300:
            raise HttpError(status, data.decode(errors="replace"))
        return json.loads(data) if data else {}

    def get(self, path):
        return self.call("GET", path)

    def train(self, document, request_id=None):
        headers = {"Idempotency-Key": request_id} if request_id else None
        return self.call("POST", "/v1/trainings", document, headers)["id"]

    def session(self, session, wait_s=0):
        return self.get(f"/v1/trainings/{session}?wait_s={wait_s}")

    def wait_state(self, session, *states, timeout=30):
        seen = []

        def there():
            with contextlib.suppress(OSError, http.client.HTTPException, HttpError):
                seen[:] = [self.session(session)]
                return seen[0] if seen[0]["state"] in states else None
        try:
            return wait_for(f"session {session} to be {states}", there, timeout, 0.05)
        except AssertionError as e:
            raise AssertionError(f"{e}\n{seen}\n{self.logs()}") from None

    def score(self, channel, **score):
        return self.call("POST", f"/v1/channels/{channel}:append", {"value_json": [json.dumps(score)]})

    def events(self, session, last_id=None):
        """Yields (id, training) of the event stream until it ends."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last_id} if last_id else {})}
        try:
            c.request("GET", f"/v1/trainings/{session}/events", headers=headers)
            r = c.getresponse()
            # no more events will come, so an EventSource would not connect again
            if r.status == 204:
                return
            if r.status != 200:
                raise HttpError(r.status, r.read().decode(errors="replace"))
            for event_id, value in read_events(r):
                yield event_id, value["training"]
        finally:
            c.close()
