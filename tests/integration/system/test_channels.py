"""Channels and queues of a real cluster over HTTP, as Server-Sent Events that continue after the
last id, and over gRPC, while the trainer is killed and Redis is stopped."""
import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import SLOW, Cluster, HttpError, bin_dir, main, wait_for  # noqa: E402


class Watch(threading.Thread):
    """Reads a channel's events into `entries` until it is stopped or the stream ends."""

    def __init__(self, cluster, channel, last_id=None):
        super().__init__(daemon=True)
        self.entries, self.error, self.ended = [], None, False
        self.http = http.client.HTTPConnection(cluster.host, cluster.port, timeout=120 * SLOW)
        headers = {"Accept": "text/event-stream"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        self.path, self.headers = f"/v1/channels/{channel}/events", headers
        self.start()

    def run(self):
        event, event_id, data = None, None, None
        self.http.request("GET", self.path, headers=self.headers)
        r = self.http.getresponse()
        if r.status != 200:
            self.error, self.ended = json.loads(r.read()), True
            return
        for raw in r:
            line = raw.decode().rstrip("\r\n")
            if line.startswith("id: "):
                event_id = line[4:]
            elif line.startswith("event: "):
                event = line[7:]
            elif line.startswith("data: "):
                data = json.loads(line[6:])
            elif not line and data is not None:
                if event == "error":
                    self.error = data
                else:
                    assert event_id == data["id"], (event_id, data)
                    self.entries.append(data)
                event, event_id, data = None, None, None
        self.ended = True

    def values(self):
        return [json.loads(e["value_json"]) for e in self.entries]


def redis_cli(cluster, *words):
    """Sends one command in Redis's protocol over a connection of its own."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(cluster.dir / "c" / "run" / "redis.sock"))
        s.sendall(f"*{len(words)}\r\n".encode() + b"".join(f"${len(w)}\r\n{w}\r\n".encode() for w in words))
        return s.recv(1 << 16).decode()


class OnCluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster("--workers", "1", "--threads", "1")

    @classmethod
    def tearDownClass(cls):
        cls.c.close()

    def refused(self, status, code, words, call):
        with self.assertRaises(HttpError) as e:
            call()
        body = json.loads(e.exception.body)
        self.assertEqual((e.exception.status, body["code"]), (status, code), body)
        self.assertIn(words, body["message"])

    def kill_trainer(self):
        old = self.c.pids("mr-trainer")[0]
        os.kill(old, signal.SIGKILL)
        wait_for("another trainer", lambda: [p for p in self.c.pids("mr-trainer") if p != old])

        def serves():
            try:
                return self.c.get("/v1/channels") is not None
            except HttpError:
                return None
        wait_for("the trainer to serve", serves)


class Channels(OnCluster):
    def append(self, channel, *values, **more):
        body = dict(more, value_json=[json.dumps(v) for v in values])
        return self.c.call("POST", f"/v1/channels/{channel}:append", body)["last_id"]

    def test_what_was_appended_is_read_in_order_and_from_an_offset(self):
        first = self.append("order", 1, {"x": 2.5})
        self.append("order", "three")
        page = self.c.get("/v1/channels/order/entries")
        self.assertEqual([json.loads(e["value_json"]) for e in page["entries"]], [1, {"x": 2.5}, "three"])
        self.assertEqual(page["first_id"], page["entries"][0]["id"])
        rest = self.c.get(f"/v1/channels/order/entries?after_id={first}")
        self.assertEqual([e["value_json"] for e in rest["entries"]], ['"three"'])
        one = self.c.get("/v1/channels/order/entries?entries_max=1")
        self.assertEqual(len(one["entries"]), 1)
        self.assertIn("order", self.c.get("/v1/channels")["channels"])

    def test_what_is_wrong_is_said(self):
        self.refused(400, 3, "value_json[1]", lambda: self.c.call(
            "POST", "/v1/channels/a:append", {"value_json": ["1", "{"]}))
        self.refused(400, 3, "channel", lambda: self.append("a%0Ab", 1))
        self.refused(400, 3, "value_json", lambda: self.append("a"))
        self.refused(413, 8, "65536", lambda: self.append("a", "x" * 70000))
        self.refused(400, 3, "after_id", lambda: self.c.get("/v1/channels/a/entries?after_id=x"))
        self.assertEqual(self.c.get("/v1/channels/nobody/entries"), {"entries": [], "first_id": ""})

    def test_a_part_that_is_gone_is_out_of_range_with_the_new_start(self):
        ids = [self.append("small", i, entries_max=10) for i in range(25)]
        start = self.c.get("/v1/channels/small/entries")["first_id"]
        self.assertEqual(start, ids[15])
        self.refused(400, 11, start, lambda: self.c.get(f"/v1/channels/small/entries?after_id={ids[3]}"))
        self.assertEqual(len(self.c.get(f"/v1/channels/small/entries?after_id={ids[14]}")["entries"]), 10)
        w = Watch(self.c, "small", ids[3])
        wait_for("the watcher to hear it", lambda: w.ended)
        self.assertEqual(w.error["code"], 11)
        self.refused(400, 11, "empty", lambda: self.c.get("/v1/channels/no/entries?after_id=1-1"))

    def test_an_event_source_hears_the_gap_and_goes_on(self):
        """After a gap the answer is a stream, not a 400, which an EventSource would hide from the
        page. Its event has the id after which to continue."""
        ids = [self.append("gap", i, entries_max=10) for i in range(25)]
        path, last = f"/v1/channels/gap/events?last_event_id={ids[3]}", None
        seen = []
        # requests the same URL again with the last id, as an EventSource does
        for attempt in range(2):
            c = self.c.connect(60)
            headers = {"Accept": "text/event-stream", **({"Last-Event-ID": last} if last else {})}
            c.request("GET", path, headers=headers)
            r = c.getresponse()
            self.assertEqual((r.status, r.headers["content-type"]), (200, "text/event-stream"))
            kind = None
            for raw in r:
                line = raw.decode().rstrip("\n")
                if line.startswith("id: "):
                    last = line[4:]
                elif line.startswith("event: "):
                    kind = line[7:]
                elif line.startswith("data: "):
                    seen.append((kind, json.loads(line[6:])))
                    kind = None
                    if attempt and len(seen) == 11:
                        break
            c.close()
        kind, error = seen[0]
        self.assertEqual((kind, error["code"]), ("error", 11))
        self.assertIn(ids[15], error["message"])
        self.assertEqual([(k, e["id"]) for k, e in seen[1:]], [(None, i) for i in ids[15:]])

    def test_watchers_go_on_over_a_killed_trainer_and_a_stopped_redis(self):
        watches = [Watch(self.c, "long") for _ in range(5)]
        self.append("long", *range(10))
        for w in watches:
            wait_for("ten entries", lambda w=w: len(w.entries) == 10)
        self.kill_trainer()
        self.append("long", *range(10, 20))
        for w in watches:
            wait_for("ten more", lambda w=w: len(w.entries) == 20)
        redis = self.c.pids("redis-server")[0]
        os.kill(redis, signal.SIGSTOP)
        late = []
        t = threading.Thread(target=lambda: late.append(self.append("long", 20)), daemon=True)
        t.start()
        time.sleep(10)
        self.assertEqual(late, [])
        os.kill(redis, signal.SIGCONT)
        t.join(60 * SLOW)
        self.assertEqual(len(late), 1)
        for w in watches:
            wait_for("the last one", lambda w=w: len(w.entries) >= 21)
            self.assertEqual(w.values(), list(range(21)))
            self.assertFalse(w.ended)
        resumed = Watch(self.c, "long", watches[0].entries[17]["id"])
        wait_for("what came after the 18th", lambda: len(resumed.entries) == 3)
        self.assertEqual(resumed.values(), [18, 19, 20])

    def test_a_watcher_hears_that_redis_lost_a_channel(self):
        w = Watch(self.c, "gone")
        last = self.append("gone", 1, 2)
        wait_for("both", lambda: len(w.entries) == 2)
        redis_cli(self.c, "DEL", "millrace:channel:gone")
        start = self.append("gone", 3)
        wait_for("the watcher to hear it", lambda: w.ended)
        self.assertEqual((w.values(), w.error["code"]), ([1, 2], 11))
        self.refused(400, 11, start, lambda: self.c.get(f"/v1/channels/gone/entries?after_id={last}"))
        anew = Watch(self.c, "gone")
        wait_for("what is there", lambda: len(anew.entries) == 1)
        self.assertEqual(anew.values(), [3])

    def test_many_appenders_lose_nothing(self):
        w = Watch(self.c, "many")
        threads = [threading.Thread(target=lambda n=n: [self.append("many", [n, i]) for i in range(50)]) for n in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        wait_for("200 entries", lambda: len(w.entries) == 200)
        for n in range(4):
            self.assertEqual([i for m, i in w.values() if m == n], list(range(50)))


class Commands(OnCluster):
    """`millrace channel` and `millrace queue`."""

    def words(self, *args):
        return self.c.cli(*args)[1].split()

    def test_a_channel_is_appended_to_read_and_followed(self):
        first = self.c.call("POST", "/v1/channels/cli:append", {"value_json": ["1"]})["last_id"]
        p = subprocess.Popen([str(bin_dir() / "millrace"), "channel", "watch", "cli", "--url", self.c.url], stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(p.stdout.readline().split(), [first, "1"])
            last = self.words("channel", "append", "cli", "2", '{"x":3}')[0]
            self.assertEqual(p.stdout.readline().split()[1], "2")
            self.kill_trainer()
            self.assertEqual(p.stdout.readline().split(), [last, '{"x":3}'])
        finally:
            p.kill()
            p.communicate()
        self.assertEqual(self.words("channel", "read", "cli")[1::2], ["1", "2", '{"x":3}'])
        self.assertEqual(self.words("channel", "read", "cli", "--after", first)[1::2], ["2", '{"x":3}'])
        self.assertIn("cli", self.words("channel", "list"))
        code, _, err = self.c.cli("channel", "append", "cli", "{", check=False)
        self.assertEqual((code, "value_json[0]" in err), (1, True), err)
        code, _, err = self.c.cli("channel", "cli", check=False)
        self.assertEqual((code, "append NAME VALUE" in err), (2, True), err)

    def test_a_queue_is_filled_emptied_and_closed(self):
        self.c.call("PUT", "/v1/queues/cli", {"items_max": 2})
        self.assertEqual(self.words("queue", "put", "cli", '"a"', "--id", "one"), ["one"])
        self.assertIn("was", self.words("queue", "put", "cli", '"a"', "--id", "one"))
        self.words("queue", "put", "cli", '"b"')
        code, _, err = self.c.cli("queue", "put", "cli", "3", "--wait", "200ms", check=False)
        self.assertEqual((code, "full" in err), (1, True), err)
        self.assertRegex(self.c.cli("queue", "list")[1], r"(?m)^cli +2 ")
        self.assertEqual(self.words("queue", "take", "cli", "--max", "2", "--ack")[1::2], ['"a"', '"b"'])
        self.words("queue", "close", "cli")
        self.assertIn("2 done, closed", self.c.cli("queue", "get", "cli")[1])
        self.assertIn("closed and empty", self.c.cli("queue", "take", "cli")[2])
        self.assertEqual(self.c.cli("queue", "get", "nobody", check=False)[0], 5)


class Queues(OnCluster):
    def op(self, queue, verb, **body):
        return self.c.call("POST", f"/v1/queues/{queue}:{verb}", body)

    def make(self, queue, **body):
        return self.c.call("PUT", f"/v1/queues/{queue}", body)

    def put(self, queue, value, **more):
        return self.op(queue, "put", value_json=json.dumps(value), **more)

    def take(self, queue, **more):
        return self.op(queue, "take", **more)

    def state(self, queue):
        return self.c.get(f"/v1/queues/{queue}")

    def test_a_receipt_of_a_deleted_queue_means_nothing_to_its_namesake(self):
        receipts = []
        for _ in range(2):
            self.make("again")
            self.put("again", 1, item_id="a")
            receipts.append(self.take("again")["items"][0]["receipt"])
            if len(receipts) == 1:
                self.c.call("DELETE", "/v1/queues/again")
        self.assertNotEqual(*receipts)
        self.assertEqual(self.op("again", "ack", receipts=receipts[:1])["known"], 0)
        self.assertEqual(self.op("again", "ack", receipts=receipts[1:])["known"], 1)

    def test_a_large_queue_is_deleted_at_once_and_taken_apart_in_pieces(self):
        self.make("large", items_max=2000)
        made = self.c.call("POST", "/v1/objects", json.dumps(1))["id"]
        self.op("large", "put", object=made, item_id="held")
        redis_cli(self.c, "EVAL", "for i = 1, 1500 do redis.call('HSET', KEYS[1], 'x' .. i, 'v9:1') end", "1",
                  "millrace:queue:large:i")
        self.c.call("DELETE", "/v1/queues/large")
        self.refused(404, 5, "large", lambda: self.state("large"))
        wait_for("the object to be free", lambda: not self.c.get(f"/v1/objects/{made}/stat").get("names"))
        wait_for("nothing to be left aside",
                 lambda: redis_cli(self.c, "EXISTS", "millrace:queues:released:aside").strip() == ":0")
        self.assertIn(redis_cli(self.c, "KEYS", "millrace:queues:released:*").strip(), ("*0",))

    def test_items_come_in_order_and_are_gone_when_acknowledged(self):
        q = self.make("fifo", items_max=5)
        self.assertEqual((q["items_max"], q["waiting"]), (5, 0))
        for i in range(3):
            self.put("fifo", i)
        got = self.take("fifo", items_max=2)["items"]
        self.assertEqual([i["value_json"] for i in got], ["0", "1"])
        self.assertEqual([i["deliveries"] for i in got], [1, 1])
        q = self.state("fifo")
        self.assertEqual((q["waiting"], q["leased"], q["put_count"]), (1, 2, "3"))
        self.assertEqual(self.op("fifo", "ack", receipts=[i["receipt"] for i in got])["known"], 2)
        self.assertEqual(self.op("fifo", "ack", receipts=[i["receipt"] for i in got])["known"], 0)
        q = self.state("fifo")
        self.assertEqual((q["waiting"], q["leased"], q["acked_count"]), (1, 0, "2"))
        self.assertIn("fifo", [x["queue"] for x in self.c.get("/v1/queues")["queues"]])
        self.assertEqual(self.take("fifo", items_max=9)["items"][0]["value_json"], "2")
        self.assertEqual(self.take("fifo")["items"], [])
        self.c.call("DELETE", "/v1/queues/fifo")
        self.refused(404, 5, "fifo", lambda: self.state("fifo"))
        self.refused(404, 5, "fifo", lambda: self.put("fifo", 1))

    def test_the_bound_holds_and_put_waits_for_room(self):
        self.make("bound", items_max=2)
        self.put("bound", 1)
        self.put("bound", 2)
        self.refused(429, 8, "full", lambda: self.put("bound", 3, wait_s=0.2))
        done = []
        t = threading.Thread(target=lambda: done.append(self.put("bound", 3, wait_s=60)))
        t.start()
        time.sleep(0.5)
        self.assertEqual(done, [])
        self.op("bound", "ack", receipts=[self.take("bound")["items"][0]["receipt"]])
        t.join(10 * SLOW)
        self.assertEqual(len(done), 1)
        self.assertEqual(self.state("bound")["waiting"], 2)

    def test_a_take_waits_for_an_item_and_those_who_wait_are_served_in_order(self):
        self.make("wait", items_max=8)
        got = []
        threads = []
        for n in range(3):
            t = threading.Thread(target=lambda n=n: got.append((n, self.take("wait", wait_s=60)["items"][0]["value_json"])))
            t.start()
            threads.append(t)
            time.sleep(0.5)  # the call waits and no change happens
        for i in range(3):
            self.put("wait", i)
            wait_for("a taker", lambda i=i: len(got) == i + 1)
        self.assertEqual(got, [(0, "0"), (1, "1"), (2, "2")])
        begun = time.monotonic()
        self.assertEqual(self.take("wait", wait_s=0.5)["items"], [])
        self.assertGreaterEqual(time.monotonic() - begun, 0.45)

    def test_the_same_id_is_one_item(self):
        self.make("once")
        self.assertEqual(self.put("once", 1, item_id="a"), {"item_id": "a", "was_there": False})
        self.assertTrue(self.put("once", 1, item_id="a")["was_there"])
        items = self.take("once", items_max=5)["items"]
        self.assertEqual(len(items), 1)
        self.op("once", "ack", receipts=[items[0]["receipt"]])
        self.assertTrue(self.put("once", 1, item_id="a")["was_there"])
        self.assertEqual(self.take("once")["items"], [])

    def test_what_is_not_acknowledged_comes_again_and_is_dead_in_the_end(self):
        self.make("again", deliveries_max=2)
        self.put("again", 1, item_id="x")
        first = self.take("again", lease_s=0.3)["items"][0]
        begun = time.monotonic()
        second = self.take("again", wait_s=30, lease_s=0.3)["items"][0]
        # less than its 30 s: the wait ends with the lease
        self.assertLess(time.monotonic() - begun, 20 * SLOW)
        self.assertEqual((second["item_id"], second["deliveries"]), ("x", 2))
        self.assertEqual(self.op("again", "ack", receipts=[first["receipt"]])["known"], 0)
        self.assertEqual(self.take("again", wait_s=1)["items"], [])
        q = self.state("again")
        self.assertEqual((q["dead"], q["waiting"], q["leased"]), (1, 0, 0))
        self.assertEqual(q["dead_items"][0]["item_id"], "x")
        self.assertIn("2 times", q["dead_items"][0]["reason"])
        self.put("again", 2, item_id="y")
        item = self.take("again")["items"][0]
        self.assertEqual(self.op("again", "nack", receipts=[item["receipt"]])["known"], 1)
        item = self.take("again")["items"][0]
        self.op("again", "nack", receipts=[item["receipt"]], dead=True, reason="no good")
        self.assertEqual(self.state("again")["dead_items"][0]["reason"], "no good")

    def test_closed_and_empty_is_told_to_who_waits(self):
        self.make("end")
        self.put("end", 1)
        item = self.take("end")["items"][0]
        answers = []
        t = threading.Thread(target=lambda: answers.append(self.take("end", wait_s=60)))
        t.start()
        self.c.call("POST", "/v1/queues/end:close", {})
        self.refused(400, 9, "closed", lambda: self.put("end", 2))
        time.sleep(0.3)
        self.assertEqual(answers, [])  # the leased item may come back
        self.op("end", "ack", receipts=[item["receipt"]])
        t.join(10 * SLOW)
        self.assertEqual(answers, [{"items": [], "closed": True}])

    def test_four_takers_lose_nothing_though_the_trainer_dies(self):
        self.make("four", items_max=50)
        seen, lock, total = {}, threading.Lock(), 400

        def until_it_works(call):
            while True:
                try:
                    return call()
                except (OSError, http.client.HTTPException):
                    time.sleep(0.05)
                except HttpError as e:
                    if e.status != 503:
                        raise
                    time.sleep(0.05)

        def feed():
            for i in range(total):
                until_it_works(lambda i=i: self.put("four", i, item_id=f"i{i}", wait_s=30))
            until_it_works(lambda: self.c.call("POST", "/v1/queues/four:close", {}))

        def take():
            while True:
                r = until_it_works(lambda: self.take("four", items_max=4, wait_s=5, lease_s=5))
                for i in r["items"]:
                    with lock:
                        seen[i["item_id"]] = seen.get(i["item_id"], 0) + 1
                if r["items"]:
                    until_it_works(lambda: self.op("four", "ack", receipts=[i["receipt"] for i in r["items"]]))
                if r["closed"]:
                    return
        threads = [threading.Thread(target=f) for f in (feed, take, take, take, take)]
        for t in threads:
            t.start()
        wait_for("some to be taken", lambda: len(seen) >= 20)
        self.kill_trainer()
        for t in threads:
            t.join(120 * SLOW)
            self.assertFalse(t.is_alive())
        self.assertEqual(len(seen), total)
        q = self.state("four")
        self.assertEqual((q["waiting"], q["leased"], q["dead"], q["put_count"]), (0, 0, 0, str(total)))

    def test_a_queue_holds_its_objects_and_a_lost_one_is_dead(self):
        c = self.c
        made = [c.call("POST", "/v1/objects", json.dumps([n, n])) for n in range(2)]
        ids = [m["id"] for m in made]
        self.make("things")
        for n, i in enumerate(ids):
            self.op("things", "put", object=i, item_id=f"t{n}")
        self.assertEqual(c.get(f"/v1/objects/{ids[0]}/stat")["names"], ["queue/things/t0"])
        self.refused(400, 9, "queue/things/t0", lambda: c.call("DELETE", f"/v1/objects/{ids[0]}"))
        self.refused(404, 5, "", lambda: self.op("things", "put", object="0" * 31 + "1"))
        c.call("DELETE", f"/v1/objects/{ids[0]}?force=true")
        # the lost item is neither delivered nor waited for
        item = self.take("things", wait_s=10)["items"][0]
        self.assertEqual((item["item_id"], item["object"]), ("t1", ids[1]))
        q = wait_for("the dead one", lambda: (lambda q: q if q["dead"] else None)(self.state("things")))
        self.assertEqual(q["dead_items"][0]["item_id"], "t0")
        self.assertIn(ids[0], q["dead_items"][0]["reason"])
        self.op("things", "ack", receipts=[item["receipt"]])

        def released():
            try:
                return not c.get(f"/v1/objects/{ids[1]}/stat").get("names")
            except HttpError as e:
                return e.status == 404
        wait_for("the object to be let go", released)

    def test_an_object_that_was_not_put_is_not_held(self):
        c = self.c
        made = c.call("POST", "/v1/objects", json.dumps([1, 2]))["id"]

        def names():
            return c.get(f"/v1/objects/{made}/stat").get("names")
        self.make("narrow", items_max=1)
        self.put("narrow", 0)
        self.refused(429, 8, "full", lambda: self.op("narrow", "put", object=made))
        self.refused(429, 8, "full", lambda: self.op("narrow", "put", object=made, wait_s=0.3))
        wait_for("the name to go", lambda: not names())
        waits = threading.Thread(target=lambda: self.op("narrow", "put", object=made, wait_s=60, item_id="late"))
        waits.start()
        wait_for("the object to be held again", names)
        self.op("narrow", "ack", receipts=[self.take("narrow")["items"][0]["receipt"]])
        waits.join(20 * SLOW)
        item = self.take("narrow")["items"][0]  # an object in a queue is held
        self.assertEqual((item["object"], names()), (made, ["queue/narrow/late"]))

    def test_what_is_wrong_with_a_queue_is_said(self):
        self.make("wrong")
        self.refused(400, 3, "value_json", lambda: self.op("wrong", "put", value_json="{"))
        self.refused(400, 3, "object", lambda: self.op("wrong", "put", object="xyz"))
        self.refused(400, 3, "either", lambda: self.op("wrong", "put"))
        self.refused(400, 3, "lease_s", lambda: self.take("wrong", lease_s=0.01))
        self.refused(400, 3, "items_max", lambda: self.make("wrong", items_max=2000000))


class Plain(unittest.TestCase):
    def test_jobs_need_no_trainer(self):
        with Cluster("--workers", "1", "--threads", "1") as c:
            metrics = c.request("GET", "/metrics")[2].decode()
            self.assertIn("millrace_channel_entries_appended_total", metrics)
            pid = c.pids("mr-trainer")[0]
            os.kill(pid, signal.SIGSTOP)
            try:
                self.assertEqual(c.request("GET", "/healthz")[0], 200)
                job = c.run({"tasks": {"y": {"op": "inc", "args": [1]}}, "targets": ["y"]})
                self.assertEqual(job["state"], "JOB_DONE")
            finally:
                os.kill(pid, signal.SIGCONT)


if __name__ == "__main__":
    main()
