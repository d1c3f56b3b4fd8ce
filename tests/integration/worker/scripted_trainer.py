"""A simulated trainer for real roles: Trainings, Channels and Queues through grpcio, as far as a
session needs to be formed, watched and moved from phase to phase."""
import concurrent.futures
import json
import sys
import threading
import time

from rig import grpc, load_messages

ROLES = {"ps": 1, "worker": 2, "scorer": 3}
RUN, HALT, KEEP, EXIT = 1, 2, 3, 4


class Trainer:
    def __init__(self, path, work, document):
        self.message = load_messages(work)
        self.document = document
        self.wanted = [(role, i) for role in ROLES for i in range(document["roles"].get(role, 0))]
        self.members, self.reports, self.scores, self.checkpoints = {}, {}, [], {}
        self.phase, self.generation, self.epoch, self.restore = RUN, 1, 0, None
        self.incarnations = 0
        self.queue, self.leased, self.acked, self.closed, self.bound, self.receipts = [], {}, [], False, 8, 0
        self.dead, self.hold = [], lambda object_id: None
        self.changed = threading.Condition()
        self.address = f"unix:{path}"
        self.server = grpc.server(concurrent.futures.ThreadPoolExecutor(64))
        self.server.add_generic_rpc_handlers((self._handlers(),))
        self.server.add_insecure_port(self.address)
        self.server.start()

    def _handlers(self):
        methods = {}
        for service, name, request, reply in (
                ("Trainings", "Join", "JoinRequest", "JoinResponse"), ("Trainings", "Report", "ReportRequest", "ReportResponse"),
                ("Trainings", "Get", "GetTrainingRequest", "Training"), ("Channels", "Append", "AppendRequest", "AppendResponse"),
                ("Queues", "Put", "PutItemRequest", "PutItemResponse"), ("Queues", "Take", "TakeItemsRequest", "TakeItemsResponse"),
                ("Queues", "Ack", "AckItemsRequest", "AckItemsResponse"), ("Queues", "Nack", "NackItemsRequest", "AckItemsResponse"),
                ("Queues", "Create", "CreateQueueRequest", "Queue"), ("Queues", "Get", "GetQueueRequest", "Queue")):
            method = getattr(self, "on_get_queue" if request == "GetQueueRequest" else f"on_{name.lower()}")
            methods[f"/millrace.v1.{service}/{name}"] = grpc.unary_unary_rpc_method_handler(
                self._guarded(method), request_deserializer=self.message(request).FromString,
                response_serializer=self.message(reply).SerializeToString)

        class Handler(grpc.GenericRpcHandler):
            def service(self, details):
                return methods.get(details.method)
        return Handler()

    @staticmethod
    def _guarded(method):
        def run(request, context):
            try:
                return method(request, context)
            except Exception as e:  # noqa: BLE001 - shown, or a test would wait for nothing
                if not context.code():
                    print("scripted trainer:", type(e).__name__, e, file=sys.stderr)
                raise
        return run

    def stop(self):
        self.server.stop(None)

    # ---- Trainings ----

    def key(self, r):
        return {v: k for k, v in ROLES.items()}[r.role], r.index

    def here(self):
        return all(k in self.members for k in self.wanted)

    def on_join(self, r, context):
        with self.changed:
            key = self.key(r)
            known = self.members.get(key)
            if not known or known["task"] != r.task:
                self.incarnations += 1
                self.generation += known is not None
                self.members[key] = {"task": r.task, "incarnation": self.incarnations, "address": r.address, "node": r.node,
                                     "socket": r.socket, "steps": 0}
                self.changed.notify_all()
            self.changed.wait_for(self.here, r.wait_s)
            me = self.members[key]
            out = self.message("JoinResponse")(
                formed=self.here(), incarnation=me["incarnation"], generation=self.generation, document_json=json.dumps(self.document),
                restore_epoch=self.epoch, phase=self.phase, channel="scores")
            out.rows.decided = True  # the even split
            if self.restore:
                out.checkpoint.version = self.restore[0]
                out.checkpoint.objects.extend(self.restore[1])
            for (role, index), m in self.members.items():
                out.members.add(role=ROLES[role], index=index, address=m["address"], node=m["node"], socket=m["socket"],
                                incarnation=m["incarnation"], state="here")
            return out

    def on_report(self, r, context):
        with self.changed:
            key = self.key(r)
            if key not in self.members or self.members[key]["incarnation"] != r.incarnation:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"{key[0]} {key[1]} was replaced")
            self.reports[key] = r
            if r.HasField("checkpoint"):
                self.checkpoints.setdefault(r.checkpoint.version, {})[key] = r.checkpoint.objects[0]
            self.changed.notify_all()
            return self.message("ReportResponse")(generation=self.generation, phase=self.phase, restore_epoch=self.epoch)

    def on_get(self, r, context):
        with self.changed:
            return self.message("Training")(id=r.id, examples_per_s=1234.0, started_ns=1)

    def on_append(self, r, context):
        with self.changed:
            self.scores += [json.loads(v) for v in r.value_json]
            self.changed.notify_all()
            return self.message("AppendResponse")(last_id="1-0")

    # ---- Queues ----

    def on_create(self, r, context):
        return self.message("Queue")(queue=r.queue)

    def on_get_queue(self, r, context):
        with self.changed:
            return self.message("Queue")(queue=r.queue, items_max=self.bound, waiting=len(self.queue), leased=len(self.leased),
                                         closed=self.closed)

    def on_put(self, r, context):
        with self.changed:
            if r.object:
                self.hold(r.object)
            there = any(i[0] == r.item_id for i in self.queue)
            if not there and not self.changed.wait_for(lambda: len(self.queue) + len(self.leased) < self.bound, r.wait_s):
                context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "the queue is full")
            if not there:
                self.queue.append((r.item_id, r.object))
            self.changed.notify_all()
            return self.message("PutItemResponse")(item_id=r.item_id, was_there=there)

    def on_take(self, r, context):
        with self.changed:
            self.changed.wait_for(lambda: self.queue or self.closed, r.wait_s)
            out = self.message("TakeItemsResponse")()
            while self.queue and len(out.items) < max(r.items_max, 1):
                item = self.queue.pop(0)
                self.receipts += 1
                self.leased[str(self.receipts)] = item
                out.items.add(item_id=item[0], object=item[1], receipt=str(self.receipts), deliveries=1)
            out.closed = self.closed and not self.queue and not self.leased
            return out

    def on_ack(self, r, context):
        return self.give(r.receipts, self.acked)

    def on_nack(self, r, context):
        self.dead += [r.reason] if r.dead else []
        return self.give(r.receipts, [] if r.dead else self.queue)

    def give(self, receipts, where):
        with self.changed:
            for receipt in receipts:
                where.append(self.leased.pop(receipt))
            self.changed.notify_all()
            return self.message("AckItemsResponse")(known=len(receipts))

    # ---- functions for tests ----

    def wait(self, what, ready, timeout=30.0):
        with self.changed:
            end = time.monotonic() + timeout
            while not self.changed.wait_for(ready, 0.2):
                failures = [r.failure for r in self.reports.values() if r.failure]
                if failures:
                    raise AssertionError(f"a role failed: {failures[0]}")
                if time.monotonic() > end:
                    raise AssertionError(f"waited {timeout:.0f} s for {what}: members {sorted(self.members)}, reports {self.reports}")

    def set_phase(self, phase):
        with self.changed:
            self.phase = phase

    def go_back(self, version):
        """Sets all roles back to a checkpoint (None: to the start)."""
        with self.changed:
            if version is not None:
                objects = self.checkpoints[version]
                self.restore = (version, [objects[k] for k in sorted(objects)])
            self.epoch += 1
            self.generation += 1
