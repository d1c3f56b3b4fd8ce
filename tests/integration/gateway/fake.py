"""A scheduler, an object store and a trainer that exist only on the wire. Every method with a route
answers with what the test asked for, and remembers what came. Built on grpcio, from the descriptor
set of the build."""

import json
import threading
import time
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory


# The tag of the option google.api.http (field 72295728), as it stands in the bytes of a method's options.
ROUTE = b"\x82\xd3\xe4\x93\x02"


def number_of(text):
    """The number that an event id or a page token has; 0 for a text that is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0


class Types:
    def __init__(self, path):
        with open(path, "rb") as f:
            files = descriptor_pb2.FileDescriptorSet.FromString(f.read())
        self.pool = descriptor_pool.DescriptorPool()
        self.services = {}
        for proto in files.file:
            self.pool.AddSerializedFile(proto.SerializeToString())
            for service in proto.service:
                self.services[f"{proto.package}.{service.name}"] = service

    def get(self, name):
        kind = self.pool.FindMessageTypeByName(name)
        if hasattr(message_factory, "GetMessageClass"):
            return message_factory.GetMessageClass(kind)
        return message_factory.MessageFactory(self.pool).GetPrototype(kind)

    def __getattr__(self, name):
        return self.get("millrace.v1." + name)


class Fake:
    """Methods are looked up as attributes: `Jobs_Get(request, context)`; streams are generators."""

    def __init__(self, descriptors, address):
        self.types = Types(descriptors)
        self.body = self.types.get("google.api.HttpBody")
        self.calls = []
        self.lock = threading.Lock()
        self.ready = True
        self.objects = {}
        self.gate = threading.Event()
        self.returns = 0
        self.listed = ["1" * 32]
        self.more_workers = []
        self.cancelled = threading.Event()
        self.watchers = 0  # open streams of events
        self.server = grpc.server(
            futures.ThreadPoolExecutor(max_workers=256),
            options=[("grpc.max_receive_message_length", 64 << 20)],
        )
        self.server.add_generic_rpc_handlers(
            [self._handler(name) for name in self.types.services if name.startswith("millrace")]
        )
        self.server.add_insecure_port(address)
        self.server.start()

    def _handler(self, service):
        methods = {}
        for m in self.types.services[service].method:
            short = service.rsplit(".", 1)[1]
            function = getattr(self, f"{short}_{m.name}", None)
            if function is None and short in ("Channels", "Queues", "Trainings", "Templates"):
                function = self._empty(m)
            if function is None and ROUTE in m.options.SerializeToString():
                raise NotImplementedError(f"{service}.{m.name} has a route, so fake.py needs {short}_{m.name}(self, request, context)")
            if function is None:
                continue
            kind = ("stream" if m.client_streaming else "unary") + (
                "_stream" if m.server_streaming else "_unary"
            )
            make = getattr(grpc, f"{kind}_rpc_method_handler")
            methods[m.name] = make(
                self._remember(function, m.client_streaming),
                request_deserializer=self.types.get(m.input_type.lstrip(".")).FromString,
                response_serializer=lambda r: r.SerializeToString(),
            )
        return grpc.method_handlers_generic_handler(service, methods)

    def _empty(self, method):
        """For methods of the trainer and for templates: answers with one message of defaults."""
        answer = self.types.get(method.output_type.lstrip("."))

        def unary(request, context):
            if method.client_streaming:
                list(request)
            return answer()

        def stream(request, context):
            yield answer()

        return stream if method.server_streaming else unary

    def _remember(self, function, streams):
        def call(request, context):
            if not streams:
                with self.lock:
                    self.calls.append((function.__name__, request, dict(context.invocation_metadata())))
            return function(request, context)

        return call

    def last(self, service="Jobs"):
        """The last call of a service: its name, the request and the metadata. The gateway also calls the
        service Cluster by itself, to see whether the cluster is ready."""
        with self.lock:
            return next(c for c in reversed(self.calls) if c[0].startswith(service + "_"))

    def stop(self):
        self.gate.set()
        self.server.stop(0)

    # ---- Cluster -----------------------------------------------------------------------------

    def Cluster_Info(self, request, context):
        return self.types.InfoResponse(
            version="0.1.0", ready=self.ready, not_ready="" if self.ready else "no worker", epoch=3
        )

    def Cluster_Workers(self, request, context):
        w = self.types.WorkerInfo(name="w1", slots=4, memory_bytes=2**40, pid=7)
        w.resources["gpu"] = 1.5
        return self.types.WorkersResponse(workers=[w, *self.more_workers])

    def Cluster_Retire(self, request, context):
        return self.types.RetireResponse()

    def Cluster_Watch(self, request, context):
        """Sends three events of one scheduler, then a gap of another one."""
        who, _, number = request.last_event_id.partition("-")
        at = number_of(number)
        if who and who != "00000000000000aa":
            yield self.types.ClusterEvent(event_id="00000000000000aa-0", change=1, time_ns=1)
            at = 0
        if at == 0:
            yield self.types.ClusterEvent(event_id="00000000000000aa-0", change=2, time_ns=1,
                                          scheduler="00000000000000aa", epoch=3)
        for n in range(at + 1, 4):
            if n != 2 or not request.without_jobs:
                yield self.types.ClusterEvent(event_id=f"00000000000000aa-{n}", time_ns=n, worker="w1" if n != 2 else "",
                                              node="n" if n != 2 else "", change=12 if n == 2 else 3, state=3 if n == 2 else 0,
                                              job="j1-7" if n == 2 else "")

    def Cluster_Live(self, request, context):
        t = self.types
        yield t.LiveState(time_ns=1, slots=2, doing=[t.LiveSlots(**{"class": "no_work"}, slots=2)])

    def Cluster_ReportUsage(self, request, context):
        return self.types.ReportUsageResponse()

    def Cluster_Samples(self, request, context):
        if request.from_ns and request.until_ns and request.from_ns >= request.until_ns:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "from_ns: expected a time before until_ns")
        t = self.types
        memory = t.SampleSeries(name="memory_bytes", min=[1], mean=[2], max=[3])
        worker = t.ProcessSeries(process="w1", kind="worker", node="n", interval=[0], series=[memory])
        return t.SamplesResponse(from_ns=1, until_ns=11, step_ns=10, processes=[worker])

    def Cluster_Ops(self, request, context):
        return self.types.OpsResponse(ops=[self.types.OpInfo(name="inc", summary='says "hi"\n\x01')])

    def Cluster_Account(self, request, context):
        if request.from_ns and request.until_ns and request.from_ns >= request.until_ns:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "from_ns: expected a time before until_ns")
        if request.namespace not in ("", "ns"):
            context.abort(grpc.StatusCode.NOT_FOUND, "namespace: no job of this namespace was in the cluster in the window")
        other = 4 if request.namespace else 0
        answer = self.types.ProfileResponse(wall_ns=5, slots=2, slot_ns=10, other_ns=other, from_ns=1, until_ns=6)
        answer.classes["compute"] = 10
        return answer

    def Metrics_Read(self, request, context):
        return self.types.ReadMetricsResponse(
            text='# HELP a_total A.\n# TYPE a_total counter\na_total{x="1"} 2\na_total{x="2"} 3\n'
        )

    def Waits_End(self, request, context):
        self.gate.set()
        return self.types.EndWaitsResponse()

    # ---- Jobs ----------------------------------------------------------------------------------

    def job(self, job_id, state=3):
        j = self.types.Job(id=job_id, state=state, targets=["z"], created_ns=2**63)
        j.labels["team"] = "ä"
        return j

    def Jobs_Submit(self, requests, context):
        body, first, pieces = b"", None, 0
        for r in requests:
            first = first or r
            body += r.body.data
            pieces += 1
            if first.request_id == "refuse":
                context.abort(grpc.StatusCode.ALREADY_EXISTS, "request_id: another body came with it")
            if first.request_id == "early":
                return self.types.SubmitResponse(id="j1-1", existed=True)
        with self.lock:
            self.calls.append(("Jobs_Submit", first, dict(context.invocation_metadata())))
        self.submitted = body, pieces
        if first.wait_s:
            self.gate.wait(first.wait_s)
        out = self.types.SubmitResponse(id="j1-7", job=self.job("j1-7"))
        if first.want_values:
            out.values.add(key="z", pack=b"\x03")
            out.values.add(key="f", pack=b"\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00")
            out.values.add(key="big", pack=b"\xcf\xff\xff\xff\xff\xff\xff\xff\xff")
        return out

    def Jobs_SubmitGraph(self, request, context):
        return self.types.SubmitResponse(id="j1-8")

    def Jobs_Get(self, request, context):
        if request.id == "slow":
            done = threading.Event()
            context.add_callback(done.set)
            done.wait(30)
            self.cancelled.set()
        if request.id == "waits":
            self.gate.wait(request.wait_s)
            return self.job(request.id, 2)
        if request.id == "away" and self.returns:
            self.returns -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "the scheduler is stopping")
        if request.id == "missing":
            context.abort(grpc.StatusCode.NOT_FOUND, 'there is no job "missing"')
        code = getattr(grpc.StatusCode, request.id.upper(), None)
        if code:
            context.abort(code, "as asked")
        return self.job(request.id)

    def Jobs_List(self, request, context):
        return self.types.ListJobsResponse(jobs=[self.job("j1-2"), self.job("j1-1")])

    def Jobs_Cancel(self, request, context):
        return self.job(request.id, 5)

    def Jobs_Retry(self, request, context):
        return self.job(request.id, 1)

    def Jobs_Forget(self, request, context):
        return self.types.ForgetJobResponse()

    def Jobs_Watch(self, request, context):
        if request.id == "missing":
            context.abort(grpc.StatusCode.NOT_FOUND, 'there is no job "missing"')
        if request.id == "over":
            return
        first = number_of(request.last_event_id)
        for i in range(first, 1 + first if request.id == "returns" else 3):
            yield self.types.JobEvent(event_id=str(i + 1), job=self.job(request.id, i + 1))
            yield self.types.JobEvent(job=self.job(request.id, 2))
        if request.id == "flood":
            for i in range(5000):
                if not context.is_active():
                    break
                self.flooded = i
                yield self.types.JobEvent(job=self.job("x" * 40000, 2))
            yield self.types.JobEvent(event_id="last", job=self.job(request.id, 3))
        if request.id in ("endless", "silent"):
            done = threading.Event()
            context.add_callback(done.set)
            with self.lock:
                self.watchers += 1
            done.wait(120)
            with self.lock:
                self.watchers -= 1
            self.cancelled.set()
        if request.id == "breaks":
            context.abort(grpc.StatusCode.DATA_LOSS, "the journal is gone")
        if request.id == "returns" and self.returns:
            self.returns -= 1
            context.abort(grpc.StatusCode.UNAVAILABLE, "the scheduler is stopping")

    def Jobs_Result(self, request, context):
        if request.key == "big":
            for i in range(64):
                yield self.body(content_type="application/octet-stream", data=bytes([i]) * (1 << 20))
            return
        if request.key == "breaks":
            yield self.body(content_type="text/csv", data=b"a,b\n")
            context.abort(grpc.StatusCode.DATA_LOSS, "lost")
        if request.accept and "json" not in request.accept and "csv" not in request.accept:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "no such format")
        yield self.body(content_type="application/json", data=json.dumps(request.key).encode())

    def Jobs_Results(self, request, context):
        if request.id == "missing":
            context.abort(grpc.StatusCode.NOT_FOUND, 'there is no job "missing"')
        item = self.types.ResultItem(
            keys=["z", "a/b", "huge", "bad"],
            packs=b"\x03",
            pack_bytes=[1, 0, 0, 0],
            json=["", "18446744073709551615", "", ""],
        )
        item.places.add(row=2, object="0" * 32, nbytes=2**40, summary="f32[1]")
        item.errors.add(row=3, code=3, message="key bad: no")
        yield item
        yield self.types.ResultItem(keys=["one"], packs=b"\x01", pack_bytes=[1])
        if request.id == "breaks":
            context.abort(grpc.StatusCode.UNAVAILABLE, "gone")

    def Jobs_Logs(self, request, context):
        return self.types.LogsResponse(text=request.key)

    def Jobs_FollowLogs(self, request, context):
        if request.id == "missing":
            context.abort(grpc.StatusCode.NOT_FOUND, 'there is no job "missing"')
        first = number_of(request.last_event_id)
        for i in range(first, 3):
            yield self.types.LogEvent(event_id=str(i + 1), key=request.key, attempt=1, worker="w", text=f"line {i}\n")

    def Jobs_Explain(self, request, context):
        return self.types.Explanation(key=request.key, state=4)

    def Jobs_Graph(self, request, context):
        return self.types.GraphResponse(
            nodes=[self.types.GraphNode(key="z", op="inc", state=4, inputs=[0, 2**32 - 1])], nodes_count=2**64 - 1
        )

    def Jobs_Timeline(self, request, context):
        span = self.types.TimelineSpan(key="z", times=self.types.TaskTimes(started_ns=1))
        return self.types.TimelineResponse(spans=[span], more=True)

    def Jobs_Tiles(self, request, context):
        row = self.types.TileRow(worker="w", slot=1, lengths=[3, 1021], colors=[1, 0], fill=[255, 0])
        return self.types.TilesResponse(rows=[row], names=["inc"], rows_count=2, from_ns=1, until_ns=2**63)

    def Jobs_Profile(self, request, context):
        return self.types.ProfileResponse(ops=[self.types.ProfileRow(op="inc")], white_space=float("nan"))

    def Jobs_WhatIf(self, request, context):
        t = self.types
        if any(name not in ("scheduler", "transfer") for name in request.free):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "free: expected scheduler or transfer")
        if any("=" not in text for text in request.op_speed):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "op_speed: expected NAME=F")
        predicted = t.WhatIfOutcome(wall_ns=5, slots=request.slots or 2, chain_ns=3)
        predicted.classes["compute"] = 10
        return t.WhatIfResponse(recorded=t.WhatIfOutcome(wall_ns=9, slots=2), replayed=predicted, predicted=predicted)

    # ---- Objects -------------------------------------------------------------------------------

    def Objects_Put(self, requests, context):
        data, first = bytearray(), None
        for r in requests:
            first = first or r
            data += r.body.data
            if first.name == "slow":
                time.sleep(0.05)
            if first.name == "refuse":
                context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "the store is full")
        with self.lock:
            self.calls.append(("Objects_Put", first, dict(context.invocation_metadata())))
        self.objects["1" * 32] = bytes(data)
        return self.types.ObjectInfo(id="1" * 32, nbytes=len(data), shape=[2, 3])

    def Objects_Get(self, request, context):
        data = self.objects.get(request.id)
        if data is None:
            context.abort(grpc.StatusCode.NOT_FOUND, f"there is no object {request.id}")
        for i in range(0, len(data), 1 << 20):
            yield self.body(content_type="application/x-npy", data=data[i : i + (1 << 20)])

    def Objects_Name(self, request, context):
        return self.types.NameInfo(name=request.name, object=request.object, definition=b"\x00\xff\x10")

    def Objects_Resolve(self, request, context):
        return self.types.NameInfo(name=request.name)

    def Objects_Unname(self, request, context):
        return self.types.UnnameResponse()

    def Objects_Names(self, request, context):
        return self.types.NamesResponse()

    def Objects_Stat(self, request, context):
        return self.types.ObjectInfo(id=request.id, shape=[2**64 - 1])

    def Objects_Stats(self, request, context):
        return self.types.StatsResponse(node="n", id=2**64 - 1)

    Objects_Pin = Objects_Persist = Objects_Stat

    def Objects_List(self, request, context):
        start = number_of(request.page_token)
        ids = self.listed[start : start + (request.page_size or 100)]
        more = start + len(ids) < len(self.listed)
        return self.types.ListObjectsResponse(
            objects=[self.types.ObjectInfo(id=i) for i in ids], next_page_token=str(start + len(ids)) if more else ""
        )

    def Objects_Delete(self, request, context):
        return self.types.DeleteObjectResponse()
