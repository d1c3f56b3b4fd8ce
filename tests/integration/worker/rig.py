"""A simulated scheduler for one real worker: WorkerSession through grpcio, with messages that
protoc makes from the .proto files at the start. Packs are written by hand, as in any language."""
import concurrent.futures
import os
import pathlib
import queue
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import harness  # noqa: E402

try:
    import grpc
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError as e:
    print(f"skipped: {e}")
    raise SystemExit(harness.SKIP)

PROTO = harness.ROOT / "proto"
JOB = (1 << 32) | 7


def load_messages(work):
    out = pathlib.Path(work) / "all.binpb"
    names = [str(p.relative_to(PROTO)) for p in sorted((PROTO / "millrace" / "v1").glob("*.proto"))]
    subprocess.run(["protoc", f"-I{PROTO}", "--include_imports", f"--descriptor_set_out={out}", *names],
                   check=True, cwd=PROTO)
    files = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for f in files.file:
        pool.Add(f)
    factory = message_factory.MessageFactory(pool)
    return lambda name: factory.GetPrototype(pool.FindMessageTypeByName("millrace.v1." + name))


def pack(v):
    """MessagePack of a value; ("in", n) is the n-th input of the task, ("ext", kind, bytes) any extension."""
    if v is None:
        return b"\xc0"
    if isinstance(v, bool):
        return b"\xc3" if v else b"\xc2"
    if isinstance(v, tuple) and v[0] == "in":
        return b"\xd6\x01" + struct.pack(">I", v[1])
    if isinstance(v, tuple):
        return b"\xc9" + struct.pack(">Ib", len(v[2]), v[1]) + v[2]
    if isinstance(v, int):
        if 0 <= v < 128:
            return bytes([v])
        return b"\xd3" + struct.pack(">q", v)
    if isinstance(v, float):
        return b"\xcb" + struct.pack(">d", v)
    if isinstance(v, str):
        raw = v.encode()
        return b"\xdb" + struct.pack(">I", len(raw)) + raw
    if isinstance(v, bytes):
        return b"\xc6" + struct.pack(">I", len(v)) + v
    if isinstance(v, dict):
        return b"\xdf" + struct.pack(">I", len(v)) + b"".join(pack(k) + pack(x) for k, x in v.items())
    return b"\xdd" + struct.pack(">I", len(v)) + b"".join(pack(x) for x in v)


def unpack(b):
    """Decodes the scalars that the tests look at; other values are returned as bytes."""
    t = b[0]
    if t < 0x80:
        return t
    if t >= 0xe0:
        return t - 256
    if 0xa0 <= t < 0xc0:
        return b[1:1 + (t & 31)].decode()
    simple = {0xc0: None, 0xc2: False, 0xc3: True}
    if t in simple:
        return simple[t]
    numbers = {0xcb: ">d", 0xcc: ">B", 0xcd: ">H", 0xce: ">I", 0xcf: ">Q",
               0xd0: ">b", 0xd1: ">h", 0xd2: ">i", 0xd3: ">q"}
    if t in numbers:
        return struct.unpack_from(numbers[t], b, 1)[0]
    if t == 0xd9:
        return b[2:].decode()
    return b


class Session:
    """One session: the worker's messages, and functions that answer."""

    def __init__(self, rig, context):
        self.rig, self.context = rig, context
        self.said, self.answers = queue.Queue(), queue.Queue()
        self.done, self.beats, self.missing, self.logs = {}, [], [], []
        self.given, self.started, self.unknown = [], [], []
        self.leaving, self.register, self.over = False, None, False

    def send(self, **fields):
        self.answers.put(self.rig.SchedulerMessage(**fields))

    def end(self, code=None, words=""):
        self.answers.put((code, words))

    def refs(self, rows, job=JOB):
        return self.rig.TaskRefs(runs=[self.rig.Run(job=job, count=len(rows))],
                                 index=[r[0] for r in rows], attempt=[r[1] for r in rows])

    def registered(self, adopt=(), keep=(), ops=None, nodes=(), incarnation=41):
        self.ops = ops or [o.name for o in self.register.ops]
        self.send(registered=self.rig.Registered(incarnation=incarnation, epoch=1, heartbeat_ns=10**8, lease_ns=10**10,
                                                 adopt=self.refs(adopt), keep=self.refs(keep)),
                  ops=self.ops, nodes=[self.rig.Node(address=a, id=i) for a, i in nodes])

    def tasks(self, *rows, job=JOB, **more):
        """Sends tasks. A row is (index, op, args, inputs), or the same with a dict of further
        fields; the attempt is 1."""
        t = self.rig.Tasks(runs=[self.rig.Run(job=job, count=len(rows))])
        for i, row in enumerate(rows):
            index, op, args, inputs = row[:4]
            extra = dict(row[4]) if len(row) > 4 else {}
            t.index.append(index)
            t.attempt.append(extra.pop("attempt", 1))
            t.op.append(self.ops.index(op) + 1 if op in self.ops else 9999)
            packed = args if isinstance(args, bytes) else pack(args)
            t.args += packed
            t.args_bytes.append(len(packed))
            t.inputs_count.append(len(inputs))
            t.inputs.extend(inputs)
            t.order.append(index)
            if extra:
                t.extra.append(self.rig.TaskExtra(row=i, **extra))
        self.send(tasks=t, **more)

    def plain(self, *rows):
        """Sends tasks of one operator without inputs, as rows (index, args); columns with default
        values are left out."""
        t = self.rig.Tasks(runs=[self.rig.Run(job=JOB, count=len(rows))], op=[self.ops.index("inc") + 1])
        for index, args in rows:
            t.index.append(index)
            t.args += pack(args)
            t.args_bytes.append(len(pack(args)))
        self.send(tasks=t)

    def take(self, m):
        """Records one message of the worker."""
        if m.HasField("heartbeat"):
            self.beats.append(m.heartbeat)
        self.leaving |= m.leaving
        self.missing += m.missing
        self.logs += m.logs
        for name in ("given", "started", "unknown"):
            r = getattr(m, name)
            getattr(self, name).extend(zip(r.index, r.attempt))
        self.take_completed(m.completed)

    def take_completed(self, c):
        at = objects = 0
        failures = {f.row: f for f in c.failures}
        for i, index in enumerate(c.index):
            n = c.inline_bytes[i]
            outcome = c.outcome[i] if c.outcome else 0
            row = {"attempt": c.attempt[i], "outcome": outcome, "pack": c.inline[at:at + n], "object": None,
                   "failure": failures.get(i), "slot": c.slot[i], "duration": c.duration_ns[i], "cpu": c.cpu_ns[i],
                   "started": c.base_ns + c.started_ns[i]}
            at += n
            if not n and outcome == 0:
                row["object"] = (c.object_maker[objects], c.object_number[objects], c.object_bytes[objects])
                objects += 1
            self.done.setdefault(index, []).append(row)

    def run(self):
        """Takes the messages that have arrived, without waiting."""
        while not self.said.empty():
            m = self.said.get()
            if m is None:
                self.over = True
            else:
                self.take(m)

    def wait(self, what, ready, timeout=20):
        def look():
            self.run()
            return ready()
        return harness.wait_for(what, look, timeout, 0.005)

    def result(self, index, timeout=20):
        """The last completion of a task."""
        self.wait(f"task {index}", lambda: index in self.done, timeout)
        return self.done[index][-1]

    def value(self, index):
        row = self.result(index)
        if row["outcome"]:
            raise AssertionError(f"task {index}: {row}")
        return unpack(row["pack"])


class Rig:
    """The scheduler's side; a test starts workers and stores itself."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="mr-worker-")
        message = load_messages(self.dir)
        for name in ("SchedulerMessage", "WorkerMessage", "Registered", "Node", "Values", "Tasks", "TaskExtra",
                     "TaskRefs", "Run"):
            setattr(self, name, message(name))
        self.message = message
        self.sessions, self.children = queue.Queue(), []
        self.address = f"unix:{self.dir}/s.sock"
        self.listen()

    def listen(self):
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(16))
        handler = grpc.stream_stream_rpc_method_handler(
            self.connect, request_deserializer=self.WorkerMessage.FromString,
            response_serializer=self.SchedulerMessage.SerializeToString)
        self.server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("millrace.v1.WorkerSession", {"Connect": handler}),))
        self.server.add_insecure_port(self.address)
        self.server.start()

    def connect(self, requests, context):
        s = Session(self, context)

        def listen():
            try:
                for m in requests:
                    if m.HasField("register"):
                        s.register = m.register
                        self.sessions.put(s)
                    else:
                        s.said.put(m)
            except Exception:
                pass
            s.said.put(None)
            s.answers.put((None, ""))
        pool = concurrent.futures.ThreadPoolExecutor(1)
        pool.submit(listen)
        while True:
            m = s.answers.get()
            if isinstance(m, tuple):
                if m[0]:
                    context.abort(*m)
                return
            yield m

    def session(self, timeout=20):
        return self.sessions.get(timeout=timeout * harness.SLOW)

    def start(self, program, *flags, env=None):
        log = open(os.path.join(self.dir, f"{program}-{len(self.children)}.log"), "w+")
        p = subprocess.Popen([str(harness.bin_dir() / program), *flags], stderr=log, stdout=log, cwd=self.dir,
                             env=dict(os.environ, **(env or {})))
        p.log = log
        self.children.append(p)
        return p

    def worker(self, *flags, env=None):
        return self.start("mr-worker", f"--scheduler={self.address}", "--name=w", *flags, env=env)

    def store(self, name="n0", memory="128MiB"):
        self.start("mr-objectstore", f"--listen=unix:{self.dir}/{name}.sock", f"--socket={self.dir}/{name}.ctl",
                   f"--memory={memory}", f"--dir={self.dir}/{name}", f"--node={name}")
        return [f"--store={self.dir}/{name}.ctl", f"--store-address=unix:{self.dir}/{name}.sock"]

    def log(self):
        text = ""
        for p in self.children:
            p.log.seek(0)
            text += f"--- {p.args[0]} ({p.poll()})\n" + p.log.read()[-6000:]
        return text

    def close(self):
        for p in self.children:
            if p.poll() is None:
                p.kill()
            p.wait()
            p.log.close()
        self.server.stop(0)
        import shutil
        shutil.rmtree(self.dir, ignore_errors=True)
