"""The gateway as a real process, with raw HTTP from clients and a fake cluster behind it. Run by ctest with MR_BIN
(folder of programs) and MR_DESCRIPTORS in the environment."""

import http.client
import json
import os
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import fake
except ImportError as missing:  # python3-grpcio, python3-protobuf
    print(f"SKIPPED: {missing}", file=sys.stderr)
    sys.exit(77)

BIN = os.environ["MR_BIN"]
DESCRIPTORS = os.environ["MR_DESCRIPTORS"]
JSON = {"Content-Type": "application/json"}


class Gateway:
    def __init__(self, directory, scheduler, *flags, listen="127.0.0.1:0"):
        self.port_file = os.path.join(directory, f"port{time.monotonic_ns()}")
        self.log = open(os.path.join(directory, "gateway.log"), "ab")
        self.process = subprocess.Popen(
            [f"{BIN}/mr-gateway", "--listen", listen, "--port-file", self.port_file]
            + ["--scheduler", scheduler, *flags],
            stderr=self.log,
            # makes AddressSanitizer return freed memory, because tests look at the memory that is used
            env={**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=1"},
        )
        deadline = time.monotonic() + 60
        while not os.path.exists(self.port_file):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the gateway did not start")
            time.sleep(0.02)
        with open(self.port_file) as f:
            self.port = int(f.read())

    def request(self, method, target, body=None, headers=None, timeout=60):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            c.request(method, target, body=body, headers=headers or {})
            r = c.getresponse()
            r.body = r.read()
            return r
        finally:
            c.close()

    def json(self, method, target, body=None, headers=None, status=200):
        r = self.request(method, target, body, headers)
        assert r.status == status, (r.status, r.body)
        assert r.headers["content-type"] == "application/json", r.headers
        return json.loads(r.body)

    def raw(self, data, timeout=60, read=True):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=timeout)
        try:
            s.sendall(data)
        except OSError:
            pass  # the gateway has answered and closed already; its answer can still be read
        return s if not read else self.drain(s)

    @staticmethod
    def drain(s):
        out = b""
        try:
            while piece := s.recv(65536):
                out += piece
        except (ConnectionResetError, socket.timeout):
            pass
        s.close()
        return out

    def rss(self):
        with open(f"/proc/{self.process.pid}/statm") as f:
            return int(f.read().split()[1]) * 4096

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(120)
        self.log.close()
        return code


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp()
        cls.address = f"unix:{cls.directory}/s.sock"
        cls.fake = fake.Fake(DESCRIPTORS, cls.address)
        cls.g = Gateway(cls.directory, cls.address, "--store", cls.address)

    @classmethod
    def tearDownClass(cls):
        code = cls.g.stop()
        cls.fake.stop()
        with open(os.path.join(cls.directory, "gateway.log")) as f:
            log = f.read()
        shutil.rmtree(cls.directory)
        assert code == 0, (code, log[-4000:])

    def status(self, want, method, target, body=None, headers=None, grpc=None, text=None):
        r = self.g.request(method, target, body, headers)
        self.assertEqual(r.status, want, (method, target, r.body))
        self.assertEqual(r.headers["content-type"], "application/json")
        error = json.loads(r.body)
        self.assertEqual(set(error), {"code", "message", "details"})
        if grpc is not None:
            self.assertEqual(error["code"], grpc)
        if text is not None:
            self.assertIn(text, error["message"])
        return r


class Calls(Case):
    def test_a_unary_method_answers_its_message_as_json(self):
        job = self.g.json("GET", "/v1/jobs/j1-7?wait_s=2.5")
        self.assertEqual((job["id"], job["state"], job["created_ns"]), ("j1-7", "JOB_DONE", str(2**63)))
        self.assertEqual(job["labels"], {"team": "ä"})
        self.assertNotIn("error", job)
        name, request, metadata = self.fake.last()
        self.assertEqual((name, request.wait_s), ("Jobs_Get", 2.5))
        self.assertEqual((metadata["millrace-user"], metadata["millrace-role"]), ("local", "admin"))

    def test_errors_of_services_keep_code_and_sentence(self):
        self.status(404, "GET", "/v1/jobs/missing", grpc=5, text='there is no job "missing"')
        for code, status in [
            ("cancelled", 499), ("unknown", 500), ("invalid_argument", 400), ("deadline_exceeded", 504),
            ("already_exists", 409), ("permission_denied", 403), ("resource_exhausted", 429),
            ("failed_precondition", 400), ("aborted", 409), ("out_of_range", 400),
            ("unimplemented", 501), ("internal", 500), ("unavailable", 503), ("data_loss", 500),
            ("unauthenticated", 401),
        ]:
            self.status(status, "GET", f"/v1/jobs/{code}", text="as asked")

    def test_keys_travel_in_paths_and_queries(self):
        for target, key in [
            ("/v1/jobs/x/results/svm/cv/fit-00", "svm/cv/fit-00"),
            ("/v1/jobs/x/results/a%2Fb%2525", "a/b%25"),
            ("/v1/jobs/x/results/%C3%A4+b", "ä+b"),
            ("/v1/jobs/x/results/?key=a%2Fb+c", "a/b c"),
            ("/v1/jobs/x/results//a", "/a"),
        ]:
            r = self.g.request("GET", target)
            self.assertEqual((r.status, json.loads(r.body)), (200, key))
        self.assertEqual(self.g.json("GET", "/v1/jobs/x/explain?key=a%2Fb")["key"], "a/b")
        self.assertEqual(self.g.json("PUT", "/v1/names/m/n", b'{"object":"1"}', JSON)["name"], "m/n")
        self.assertEqual(self.g.json("DELETE", "/v1/names?name=m%2Fn"), {})

    def test_bad_paths_are_refused_in_words(self):
        for target, text in [
            ("/v1/jobs/x/results/a%00b", "%00"),
            ("/v1/jobs/x/results/%ff", "UTF-8"),
            ("/v1/jobs/x/results/%C0%AF", "UTF-8"),
            ("/v1/jobs/x/results/%zz", "hexadecimal"),
            ("/v1/jobs/x%00", "%00"),
            ("/v1/jobs?label=%ff", "UTF-8"),
            ("/v1/jobs?nonsense=1", "nonsense"),
            ("/v1/jobs?page_size=-1", "page_size"),
            ("/v1/jobs?page_size=1&page_size=2", "twice"),
        ]:
            self.status(400, "GET", target, grpc=3, text=text)

    def test_unknown_addresses_and_verbs(self):
        self.status(404, "GET", "/v1/nothing", grpc=5)
        self.status(404, "GET", "/nothing")
        self.status(404, "GET", "/v1/jobs/")
        r = self.status(405, "DELETE", "/v1/jobs", grpc=12)
        self.assertEqual(r.headers["allow"], "GET, HEAD, POST")
        self.assertEqual(self.status(405, "POST", "/healthz", b"").headers["allow"], "GET, HEAD")
        for verb in ("OPTIONS", "PROPFIND"):
            r = self.g.request(verb, "/v1/jobs")
            self.assertEqual((r.status, r.headers["allow"]), (405, "GET, HEAD, POST"))
            self.assertNotIn("access-control-allow-origin", r.headers)

    def test_json_bodies_become_messages(self):
        graph = {
            "requestId": "r", "targets": ["z"],
            "tasks": [{"key": "z", "op": "add", "args": [{"integer": "9007199254740993"}, {"pack": "kAE="}],
                       "kwargs": {"k": {"list": {"items": [{"ref": "x"}]}}}}],
        }
        self.assertEqual(self.g.json("POST", "/v1/jobs:graph", json.dumps(graph), JSON)["id"], "j1-8")
        _, request, _ = self.fake.last()
        self.assertEqual(request.request_id, "r")
        self.assertEqual(request.tasks[0].args[0].integer, 9007199254740993)
        self.assertEqual(request.tasks[0].args[1].pack, b"\x90\x01")
        self.assertEqual(request.tasks[0].kwargs["k"].list.items[0].ref, "x")
        self.assertEqual(self.g.json("POST", "/v1/jobs/j1-9:cancel")["id"], "j1-9")

    def test_bad_bodies_are_refused_in_words(self):
        for body, text in [
            (b"{", "not JSON"), (b"[]", "object is wanted"), (b'{"a":1}', '"a" is not a field'),
            (b'{"targets":[1]}', "targets[0]"), (b'{"wait_s":1,"wait_s":1}', "twice"),
            (b'{"wait_s":1e999}', "not JSON"), (b'{"wait_s":NaN}', "not JSON"), (b"\xff", "not JSON"),
            (b'{"tasks":[{"key":"a\\u0000"}]}', "U+0000"), (b'{"targets":null}', "targets"),
            (b'{"tasks":' + b"[" * 100000, "not JSON"),
            (b'{"tasks":[{"args":[' + b'{"list":{"items":[' * 99 + b"]}}" * 99 + b"]}]}", "deeper"),
        ]:
            self.status(400, "POST", "/v1/jobs:graph", body, JSON, grpc=3, text=text)
        self.status(400, "GET", "/v1/jobs", b"{}", JSON, text="no body")
        self.status(400, "POST", "/v1/jobs", b"", JSON, text="empty")

    def test_content_types_and_accept(self):
        # the error text of a refused type names an accepted type
        self.status(415, "POST", "/v1/objects", b"x", {"Content-Type": "text/plain"}, text="application/vnd.millrace.text")
        for kind in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""):
            for target in ("/v1/jobs", "/v1/jobs:graph", "/v1/objects"):
                self.status(415, "POST", target, b"x", {"Content-Type": kind})
        self.g.json("POST", "/v1/jobs", b"{}", {"Content-Type": "Application/JSON; charset=utf-8"})
        self.status(406, "GET", "/v1/jobs", headers={"Accept": "text/html"})
        self.status(406, "GET", "/v1/jobs/x/events", headers={"Accept": "text/html"})
        self.g.json("GET", "/v1/jobs", headers={"Accept": "text/html, */*;q=0.1"})

    def test_hosts_and_origins_of_others_are_refused(self):
        self.status(403, "GET", "/v1/jobs", headers={"Host": "evil.example"})
        self.status(403, "GET", "/v1/jobs", headers={"Host": "127.0.0.1.evil.example"})
        self.status(403, "POST", "/v1/jobs", b"{}", {**JSON, "Origin": "http://evil.example"})
        self.status(403, "POST", "/v1/jobs", b"{}", {**JSON, "Origin": "null"})
        host = f"localhost:{self.g.port}"
        self.g.json("GET", "/v1/jobs", headers={"Host": host, "Origin": f"http://{host}"})
        self.status(403, "GET", "/v1/jobs", headers={"Host": host, "Origin": "http://localhost:1"})

    def test_a_probe_needs_no_listed_host(self):
        """Kubernetes asks a pod by its address, which --allow-host cannot know."""
        for host in ("10.244.1.7:8470", "[fd00::7]:8470", "gateway.millrace.svc"):
            self.assertEqual(self.g.json("GET", "/healthz", headers={"Host": host}), {"ready": True})
            for target in ("/metrics", "/openapi.json", "/", "/healthz/", "/v1/jobs"):
                self.status(403, "GET", target, headers={"Host": host})
        self.status(403, "POST", "/healthz", b"", headers={"Host": "10.244.1.7:8470"})
        self.status(403, "GET", "/healthz", headers={"Host": "10.244.1.7:8470", "Origin": "http://evil.example"})

    def test_own_pages(self):
        self.assertEqual(self.g.json("GET", "/healthz"), {"ready": True})
        self.fake.ready = False
        try:
            health = self.g.json("GET", "/healthz", status=503)
            self.assertEqual(health, {"ready": False, "reason": "no worker"})
        finally:
            self.fake.ready = True
        document = self.g.json("GET", "/openapi.json")
        self.assertIn("/v1/jobs/{id}:cancel", document["paths"])
        r = self.g.request("GET", "/")
        self.assertIn(b"/openapi.json", r.body)
        self.assertIn("default-src", r.headers["content-security-policy"])
        text = self.g.request("GET", "/metrics").body.decode()
        self.assertEqual(text.count("# TYPE a_total counter"), 1)
        self.assertIn('x="1"} 2', text)
        self.assertRegex(text, r'millrace_http_requests_total{instance="gateway",status="2xx"} [1-9]')
        self.assertRegex(text, r'millrace_ready{instance="unix:[^"]*"} 1')
        self.assertRegex(text, r'millrace_worker_slots{instance="unix:[^"]*",worker="w1",node=""} 4')
        self.assertRegex(text, r"millrace_up{instance=\"unix:[^\"]*\"} 1")

    def test_workers_that_have_a_port_are_asked_for_their_counters(self):
        info = self.fake.types.WorkerInfo
        self.fake.more_workers = [info(name='w"2', node="n2", address=self.address),
                                  info(name="w3", node="n3", address=f"unix:{self.directory}/nobody.sock")]
        try:
            for _ in range(2):
                text = self.g.request("GET", "/metrics").body.decode()
                of_worker = f'instance="{self.address}",worker="w\\"2",node="n2"'
                self.assertIn(f'a_total{{{of_worker},x="1"}} 2', text)
                self.assertIn(f"millrace_up{{{of_worker}}} 1", text)
                self.assertIn(f'millrace_up{{instance="unix:{self.directory}/nobody.sock",worker="w3",node="n3"}} 0', text)
                self.assertEqual(text.count("# TYPE a_total counter"), 1)
        finally:
            self.fake.more_workers = []
        self.assertNotIn("nobody.sock", self.g.request("GET", "/metrics").body.decode())

    def test_many_requests_share_a_connection(self):
        c = http.client.HTTPConnection("127.0.0.1", self.g.port, timeout=60)
        for i in range(50):
            c.request("GET", f"/v1/jobs/j{i}" if i % 5 else "/v1/jobs/missing")
            r = c.getresponse()
            self.assertEqual(r.status, 200 if i % 5 else 404)
            r.read()
        c.request("POST", "/v1/jobs", b"x", {"Content-Type": "text/plain"})  # the request is refused, and its body is read
        self.assertEqual(c.getresponse().read()[:9], b'{"code":3')
        c.request("GET", "/healthz")
        self.assertEqual(c.getresponse().status, 200)
        c.close()

    def test_many_clients_at_once(self):
        failures = []

        def work(n):
            for i in range(40):
                if self.g.json("GET", f"/v1/jobs/j{n}-{i}")["id"] != f"j{n}-{i}":
                    failures.append((n, i))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(failures, [])


class Bodies(Case):
    def test_submit_passes_the_body_on_verbatim(self):
        body = b'{ "dsk" : {"x": 1.0} }\n'
        out = self.g.json("POST", "/v1/jobs?wait_s=0.01", body, {**JSON, "Idempotency-Key": "k-1"})
        self.assertEqual(out["id"], "j1-7")
        _, first, _ = self.fake.last()
        self.assertEqual((first.request_id, first.body.content_type), ("k-1", "application/json"))
        self.assertEqual(self.fake.submitted, (body, 1))

    def test_values_keep_their_types(self):
        r = self.g.request("POST", "/v1/jobs?want_values=true", b"{}", JSON)
        self.assertIn(b'{"key":"f","value":1.0}', r.body)
        self.assertIn(b'{"key":"big","value":18446744073709551615}', r.body)

    def test_a_large_body_is_streamed_in_pieces(self):
        body = b'{"dsk":"' + b"x" * (9 << 20) + b'"}'
        self.g.json("POST", "/v1/jobs", body, JSON)
        self.assertEqual(self.fake.submitted[0], body)
        self.assertGreater(self.fake.submitted[1], 8)
        self.g.json("POST", "/v1/jobs", iter([body[i : i + 70000] for i in range(0, len(body), 70000)]),
                    JSON)
        self.assertEqual(self.fake.submitted[0], body)

    def test_an_early_answer_ends_the_upload(self):
        body = b"x" * (16 << 20)
        for _ in range(3):
            out = self.g.json("POST", "/v1/jobs", body, {**JSON, "Idempotency-Key": "early"})
            self.assertTrue(out["existed"])
            self.status(409, "POST", "/v1/jobs", body, {**JSON, "Idempotency-Key": "refuse"}, grpc=6)
        self.status(429, "POST", "/v1/objects?name=refuse", body, {"Content-Type": "application/x-npy"})

    def test_objects_go_up_and_come_down(self):
        data = os.urandom(5 << 20) + b"tail"
        out = self.g.json("POST", "/v1/objects?name=n&persist=true", data,
                          {"Content-Type": "application/octet-stream"})
        self.assertEqual((out["nbytes"], out["shape"]), (str(len(data)), ["2", "3"]))
        _, first, _ = self.fake.last("Objects")
        self.assertEqual((first.name, first.persist), ("n", True))
        r = self.g.request("GET", "/v1/objects/" + out["id"])
        self.assertEqual(r.headers["content-type"], "application/x-npy")
        self.assertEqual(r.body, data)
        self.status(404, "GET", "/v1/objects/" + "0" * 32)
        self.g.json("POST", "/v1/objects", b"", {"Content-Type": "application/octet-stream"})

    def test_a_slow_store_holds_the_upload_back(self):
        before = self.g.rss()
        peak = [0]
        done = threading.Event()

        def watch():
            while not done.wait(0.02):
                peak[0] = max(peak[0], self.g.rss())

        watcher = threading.Thread(target=watch)
        watcher.start()
        data = bytes(48 << 20)
        self.g.json("POST", "/v1/objects?name=slow", data, {"Content-Type": "application/x-npy"})
        done.set()
        watcher.join()
        self.assertEqual(len(self.fake.objects["1" * 32]), len(data))
        self.assertLess(peak[0] - before, 40 << 20)

    def test_a_slow_reader_holds_the_download_back(self):
        before = self.g.rss()
        s = self.g.raw(b"GET /v1/jobs/x/results/big HTTP/1.1\r\nHost: localhost\r\n\r\n", read=False)
        time.sleep(1)
        self.assertLess(self.g.rss() - before, 40 << 20)
        s.close()
        r = self.g.request("GET", "/v1/jobs/x/results/big")
        self.assertEqual(len(r.body), 64 << 20)
        self.assertEqual(r.body[(3 << 20) + 5], 3)

    def test_a_broken_download_does_not_look_whole(self):
        with self.assertRaises(http.client.IncompleteRead):
            self.g.request("GET", "/v1/jobs/x/results/breaks")

    # The length is known even if the end of the gRPC call comes late.
    def test_a_short_download_carries_its_length(self):
        answers = [self.g.request("GET", "/v1/jobs/x/results/z") for _ in range(50)]
        self.assertEqual(len({r.body for r in answers}), 1)
        self.assertEqual({r.headers["content-length"] for r in answers}, {str(len(answers[0].body))})

    def test_accept_reaches_the_service(self):
        self.assertEqual(self.g.request("GET", "/v1/jobs/x/results/z", headers={"Accept": "text/csv"}).status, 200)
        self.status(400, "GET", "/v1/jobs/x/results/z", headers={"Accept": "image/png"}, text="no such format")
        self.assertEqual(self.g.request("GET", "/v1/jobs/x/results/z", headers={"Accept": "*/*"}).status, 200)

    def test_oversize_bodies_are_413(self):
        for target, n in [("/v1/jobs:graph", 5 << 20), ("/v1/jobs", (1 << 30) + 1), ("/v1/jobs:graph", 10**18)]:
            out = self.g.raw(
                f"POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Content-Length: {n}\r\n\r\n".encode())
            self.assertIn(b" 413 ", out.split(b"\r\n")[0])
            self.assertIn(b'"code":8', out)
        big = b'{"targets":["' + b"x" * (5 << 20) + b'"]}'
        pieces = iter([big[i : i + 60000] for i in range(0, len(big), 60000)])
        self.status(413, "POST", "/v1/jobs:graph", pieces, JSON)

    def test_an_expected_refusal_comes_before_the_body(self):
        out = self.g.raw(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
                         b"Expect: 100-continue\r\nContent-Length: 1000\r\n\r\n")
        self.assertTrue(out.startswith(b"HTTP/1.1 415 "), out)
        self.assertNotIn(b"100 Continue", out)


class Streams(Case):
    def events(self, target, headers=None):
        r = self.g.request("GET", target, headers={"Accept": "text/event-stream", **(headers or {})})
        self.assertEqual((r.status, r.headers["content-type"]), (200, "text/event-stream"))
        out = []
        for block in r.body.decode().split("\n\n"):
            fields = [line.split(": ", 1) for line in block.split("\n") if ": " in line]
            event = dict(fields)
            if "data" in event:
                out.append((event.get("id"), event.get("event"), json.loads(event["data"])))
        return out

    def test_events_have_ids_and_resume_after_the_last(self):
        ids = [i for i, _, _ in self.events("/v1/jobs/x/events") if i]
        self.assertEqual(ids, ["1", "2", "3"])
        ids = [i for i, _, _ in self.events("/v1/jobs/x/events", {"Last-Event-ID": "2"}) if i]
        self.assertEqual(ids, ["3"])
        ids = [i for i, _, _ in self.events("/v1/jobs/x/events?last_event_id=1") if i]
        self.assertEqual(ids, ["2", "3"])

    def test_events_are_the_default_and_lines_can_be_had(self):
        r = self.g.request("GET", "/v1/jobs/x/events")
        self.assertEqual(r.headers["content-type"], "text/event-stream")
        r = self.g.request("GET", "/v1/jobs/x/events", headers={"Accept": "application/x-ndjson"})
        lines = [json.loads(line) for line in r.body.splitlines()]
        self.assertEqual(len(lines), 6)

    def test_events_of_the_cluster_resume_and_say_where_they_cannot(self):
        """Events of the cluster as SSE: a stream resumes after an id, or says that it cannot."""
        def changes(*words, **kw):
            return [(e["change"].removeprefix("CLUSTER_CHANGE_"), e["job"], i.partition("-")[2])
                    for i, _, e in self.events(*words, **kw)]
        scheduler, one, job, three = (("SCHEDULER", "", "0"), ("WORKER_JOINED", "", "1"), ("JOB_STATE", "j1-7", "2"),
                                      ("WORKER_JOINED", "", "3"))
        self.assertEqual(changes("/v1/cluster/events"), [scheduler, one, job, three])
        self.assertEqual(changes("/v1/cluster/events?without_jobs=true"), [scheduler, one, three])
        self.assertEqual(changes("/v1/cluster/events", {"Last-Event-ID": "00000000000000aa-1"}), [job, three])
        self.assertEqual(changes("/v1/cluster/events", {"Last-Event-ID": "00000000000000bb-1"}),
                         [("GAP", "", "0"), scheduler, one, job, three])

    def test_a_stream_that_cannot_begin_has_a_status(self):
        self.status(404, "GET", "/v1/jobs/missing/events", text="missing")
        self.status(404, "GET", "/v1/jobs/missing/results")
        self.assertEqual(self.g.request("GET", "/v1/jobs/over/events").status, 204)

    def test_a_stream_that_breaks_says_so(self):
        events = self.events("/v1/jobs/breaks/events")
        self.assertEqual((events[-1][1], events[-1][2]["code"]), ("error", 15))
        out = self.g.json("GET", "/v1/jobs/breaks/results")
        self.assertEqual(out["error"]["code"], 14)
        with self.assertRaises(http.client.IncompleteRead):
            self.g.request("GET", "/v1/jobs/breaks/events", headers={"Accept": "application/x-ndjson"})

    def test_a_stream_goes_on_when_its_service_comes_back(self):
        self.fake.returns = 2
        ids = [i for i, _, _ in self.events("/v1/jobs/returns/events") if i]
        self.assertEqual(ids, ["1", "2", "3"])

    def test_events_arrive_while_the_stream_is_open(self):
        s = self.g.raw(b"GET /v1/jobs/endless/events HTTP/1.1\r\nHost: localhost\r\n\r\n", read=False)
        out = b""
        while b"id: 3" not in out:
            out += s.recv(65536)
        self.fake.cancelled.clear()
        s.close()  # the client leaves, so the call must be cancelled
        self.assertTrue(self.fake.cancelled.wait(60))

    def test_a_silent_stream_is_answered_soon(self):
        s = self.g.raw(b"GET /v1/jobs/silent/events?last_event_id=3 HTTP/1.1\r\nHost: localhost\r\n\r\n", read=False)
        s.settimeout(60)
        answer = s.recv(65536)
        self.assertTrue(answer.startswith(b"HTTP/1.1 200"))
        self.assertNotIn(b"\n:", answer)  # heartbeats begin after 15 s, so the answer came before
        s.close()

    def test_a_slow_reader_costs_bounded_memory_and_misses_only_progress(self):
        before = self.g.rss()
        s = self.g.raw(b"GET /v1/jobs/flood/events HTTP/1.1\r\nHost: localhost\r\n\r\n", read=False)
        time.sleep(2)
        self.assertLess(self.g.rss() - before, 100 << 20)  # the stream has 200 MB
        out = b""
        s.settimeout(20)
        while b"id: last" not in out[-70000:]:
            piece = s.recv(1 << 20)
            if not piece:
                break
            out = out[-70000:] + piece
        self.assertIn(b"id: last", out[-140000:])
        s.close()

    def test_results_are_one_object_with_exact_values(self):
        r = self.g.request("GET", "/v1/jobs/x/results?key=z&key=a%2Fb")
        self.assertIn(b'"z":3,"a/b":18446744073709551615', r.body)
        out = json.loads(r.body)
        self.assertEqual(out["results"], {"z": 3, "a/b": 2**64 - 1, "one": 1})
        self.assertEqual(out["places"]["huge"]["nbytes"], str(2**40))
        self.assertEqual(out["errors"]["bad"]["message"], "key bad: no")
        _, request, _ = self.fake.last()
        self.assertEqual((list(request.key), request.json), (["z", "a/b"], True))
        r = self.g.request("GET", "/v1/jobs/x/results", headers={"Accept": "application/x-ndjson"})
        self.assertEqual([list(json.loads(l)["results"]) for l in r.body.splitlines()], [["z", "a/b"], ["one"]])

    def test_a_client_that_leaves_cancels_its_call(self):
        self.fake.cancelled.clear()
        s = self.g.raw(b"GET /v1/jobs/slow HTTP/1.1\r\nHost: localhost\r\n\r\n", read=False)
        time.sleep(0.3)
        s.close()
        self.assertTrue(self.fake.cancelled.wait(60))


GET = b"GET /v1/jobs/x HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
REFUSED = [  # name, request, status
    ("the same length twice", POST + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400),
    ("two lengths", POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", 400),
    ("a list of lengths", POST + b"Content-Length: 2, 2\r\n\r\n{}", 400),
    ("a length with a sign", POST + b"Content-Length: +2\r\n\r\n{}", 400),
    ("a negative length", POST + b"Content-Length: -1\r\n\r\n", 400),
    ("no length", POST + b"Content-Length:\r\n\r\n{}", 400),
    ("a length beyond numbers", POST + b"Content-Length: 99999999999999999999\r\n\r\n", 400),
    ("length and chunks", POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("chunks and length", POST + b"transfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n0\r\n\r\n", 400),
    ("two codings", POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    ("an unknown coding", POST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    ("a list of codings", POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    ("a coding that looks like one", POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    ("chunks in HTTP/1.0", CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + b"0\r\n\r\n", 400),
    ("two hosts", GET + b"Host: localhost\r\n\r\n", 400),
    ("no host", b"GET /v1/jobs/x HTTP/1.1\r\n\r\n", 400),
    ("NUL in the path", b"GET /v1/jobs/x\0y HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ("a control character in the path", b"GET /v1/jobs/x\x01 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ("a space in the path", b"GET /v1/jobs/x y HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ("NUL in a header", GET + b"X-A: a\0b\r\n\r\n", 400),
    ("NUL in a name", GET + b"X\0A: a\r\n\r\n", 400),
    ("a control character in a header", GET + b"X-A: a\x08b\r\n\r\n", 400),
    ("a bare CR in a header", GET + b"X-A: a\rContent-Length: 2\r\n\r\n", 400),
    ("a bare LF", GET + b"X-A: a\nX-B: b\r\n\r\n", 400),
    ("only bare LFs", b"GET /v1/jobs/x HTTP/1.1\nHost: localhost\n\n", 400),
    ("a folded header", GET + b"X-A: a\r\n b\r\n\r\n", 400),
    ("a space before the colon", POST + b"Content-Length : 2\r\n\r\n{}", 400),
    ("a header without a colon", GET + b"nonsense\r\n\r\n", 400),
    ("a header without a name", GET + b": a\r\n\r\n", 400),
    ("no version", b"GET /v1/jobs/x\r\n\r\n", 400),
    ("no target", b"GET\r\n\r\n", 400),
    ("another version", b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505),
    ("HTTP/2 without asking", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ("no HTTP", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03", 400),
    ("NULs", b"\0" * 100, 400),
    ("a long target", b"GET /" + b"a" * 40000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
    ("a long header", GET + b"X-A: " + b"a" * 70000 + b"\r\n\r\n", 431),
    ("many headers", GET + b"X: y\r\n" * 300 + b"\r\n", 431),
    ("many long headers", GET + b"X-A: y\r\n" * 50000 + b"\r\n", 431),
    ("a chunk without a size", CHUNKED + b"zz\r\n", 400),
    ("a chunk with a large size", CHUNKED + b"1" * 17 + b"\r\n", 400),
    ("a chunk with a signed size", CHUNKED + b"-2\r\n{}\r\n0\r\n\r\n", 400),
    ("a chunk with a size like C's", CHUNKED + b"0x2\r\n{}\r\n0\r\n\r\n", 400),
    ("a long chunk extension", CHUNKED + b"2;" + b"a" * 300 + b"\r\n{}\r\n0\r\n\r\n", 400),
    ("an endless chunk extension", CHUNKED + b"2;" + b"a" * 300000, 400),
    ("NUL in a chunk extension", CHUNKED + b"2;a=\0\r\n{}\r\n0\r\n\r\n", 400),
    ("a chunk line that ends in LF", CHUNKED + b"2\n{}\r\n0\r\n\r\n", 400),
    ("a chunk that is longer than it says", CHUNKED + b"2\r\n{}}\r\n0\r\n\r\n", 400),
    ("a bad trailer", CHUNKED + b"2\r\n{}\r\n0\r\nnonsense\r\n\r\n", 400),
    ("many trailers", CHUNKED + b"2\r\n{}\r\n0\r\n" + b"A: b\r\n" * 3000 + b"\r\n", 400),
]


class Framing(Case):
    # Requests that two readers could understand in two ways are refused in JSON, and the connection is closed.
    def check(self, name, out, status):
        head, _, body = out.partition(b"\r\n\r\n")
        with self.subTest(name):
            self.assertTrue(head.startswith(b"HTTP/1.1 %d " % status), out[:200])
            self.assertIn(b"Connection: close", head)
            self.assertIn(b"Content-Type: application/json", head)
            error = json.loads(body)  # fails if bytes follow the JSON
            self.assertEqual(set(error), {"code", "message", "details"})
            self.assertTrue(error["message"])

    def test_bad_requests_are_refused_in_words(self):
        for name, data, status in REFUSED:
            self.check(name, self.g.raw(data), status)
        self.assertEqual(self.g.json("GET", "/healthz"), {"ready": True})

    def test_it_does_not_matter_how_they_come(self):
        for name, data, status in REFUSED:
            if len(data) > 1000:
                continue
            s = self.g.raw(data[:1], read=False)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                for i in range(1, len(data)):
                    s.sendall(data[i : i + 1])
            except OSError:
                pass  # the gateway has answered and closed already
            self.check(name, self.g.drain(s), status)

    def test_the_request_before_a_bad_one_is_answered(self):
        good = b"GET /v1/jobs/before HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for name, data, status in REFUSED:
            if len(data) > 1000:
                continue
            first, _, second = self.g.raw(good + data).partition(b"}\nHTTP/1.1 ")
            with self.subTest(name):
                self.assertTrue(first.startswith(b"HTTP/1.1 200 "), first)
                self.assertIn(b'"id":"before"', first)
            self.check(name, b"HTTP/1.1 " + second, status)

    def test_no_call_is_made_for_a_bad_request(self):
        self.fake.calls.clear()
        for name, data, status in REFUSED:
            self.g.raw(data)
        self.assertEqual([c[0] for c in self.fake.calls if c[0] != "Cluster_Info"], [])

    def test_what_is_unusual_and_right_is_understood(self):
        end = b"Connection: close\r\n"
        for name, data in [
            ("lines before it", b"\r\n\r\n" + GET + end + b"\r\n"),
            ("space around a value", GET.replace(b"Host: localhost", b"Host: \t localhost \t") + end + b"\r\n"),
            ("an empty value", GET + b"X-A:\r\n" + end + b"\r\n"),
            ("bytes beyond ASCII", GET + b"X-A: \xe4\xff\r\n" + end + b"\r\n"),
            ("HTTP/1.0", GET.replace(b"1.1", b"1.0") + b"\r\n"),
            ("chunk extensions", CHUNKED.replace(b"\r\n\r\n", b"\r\n" + end + b"\r\n")
             + b'1;a\r\n{\r\n01 ; b="c"\r\n}\r\n000\r\n\r\n'),
            ("trailers", CHUNKED.replace(b"\r\n\r\n", b"\r\n" + end + b"\r\n") + b"2\r\n{}\r\n0\r\nA: b\r\nC: d\r\n\r\n"),
            ("250 headers", GET + b"X-A: y\r\n" * 250 + end + b"\r\n"),
            ("60 kB of headers", GET + b"X-A: " + b"y" * 60000 + b"\r\n" + end + b"\r\n"),
            ("a target of 30 kB", GET.replace(b"/v1/jobs/x", b"/v1/jobs?label=" + b"a" * 30000) + end + b"\r\n"),
        ]:
            with self.subTest(name):
                out = self.g.raw(data)
                self.assertTrue(out.startswith(b"HTTP/1.1 200 "), out[:300])
        self.assertEqual(self.fake.submitted[0], b"{}")


class Rough(Case):
    def test_malformed_http_does_not_hurt(self):
        for data in (
            b"\0" * 100 + b"\r\n\r\n", b"GET\r\n\r\n", b"GET /v1/jobs\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
            b"GET /v1/jobs HTTP/1.1\r\n\r\n", b"GET /" + b"a" * 300000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 50000 + b"\r\n",
            b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: -1\r\n\r\n",
            b"GET http://evil.example/v1/jobs HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET /v1/jobs/\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n",
        ):
            s = socket.create_connection(("127.0.0.1", self.g.port), timeout=60)
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            first = Gateway.drain(s).split(b"\r\n")[0]
            status = first[9:12]
            self.assertIn(status, (b"400", b"414", b"431", b"505", b"403", b"200"), (data[:60], first))
        self.assertEqual(self.g.json("GET", "/healthz"), {"ready": True})

    # Abandoned calls end soon, and then /healthz reports a healthy gateway. On a busy machine the service may take
    # longer than the two seconds for which /healthz waits, so the test asks until the gateway is healthy.
    def test_clients_that_vanish_mid_way_leave_nothing_behind(self):
        for _ in range(60):
            s = self.g.raw(b"POST /v1/objects HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-npy\r\n"
                           b"Content-Length: 10000000\r\n\r\n" + b"x" * 300000, read=False)
            s.close()
            self.g.raw(b"GET /v1/jobs/x/results/big HTTP/1.1\r\nHost: localhost\r\n\r\n", read=False).close()
            self.g.raw(b"GET /v1/jobs/endless/events HTTP/1.1\r\nHost: localhost\r\n\r\n", read=False).close()
        deadline = time.monotonic() + 60
        while self.g.request("GET", "/healthz").status != 200 or self.fake.watchers:
            self.assertLess(time.monotonic(), deadline, self.fake.watchers)
            time.sleep(0.1)

    def test_pipelined_requests_are_answered_in_order(self):
        one = b"GET /v1/jobs/a%d HTTP/1.1\r\nHost: localhost\r\n%s\r\n"
        data = b"".join(one % (i, b"Connection: close\r\n" if i == 4 else b"") for i in range(5))
        out = self.g.raw(data)
        positions = [out.index(b'"id":"a%d"' % i) for i in range(5)]
        self.assertEqual(positions, sorted(positions))


class Guarded(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.address = f"unix:{self.directory}/s.sock"
        self.fake = fake.Fake(DESCRIPTORS, self.address)
        self.tokens = os.path.join(self.directory, "tokens")
        with open(self.tokens, "w") as f:
            f.write("0123456789abcdef admin ada\nfedcba9876543210 reader rita\naaaabbbbccccdddd user uwe\n")
        os.chmod(self.tokens, 0o600)

    def tearDown(self):
        self.fake.stop()
        shutil.rmtree(self.directory)

    def test_tokens_and_roles(self):
        g = Gateway(self.directory, self.address, "--store", self.address, "--token-file", self.tokens)
        self.addCleanup(g.stop)

        def ask(method, target, token):
            headers = {**JSON, **({"Authorization": f"Bearer {token}"} if token else {})}
            return g.request(method, target, b"{}" if method == "POST" else None, headers)

        r = ask("GET", "/v1/jobs", None)
        self.assertEqual((r.status, r.headers["www-authenticate"]), (401, "Bearer"))
        self.assertEqual(ask("GET", "/v1/jobs", "wrongwrongwrongwrong").status, 401)
        self.assertEqual(ask("GET", "/metrics", None).status, 401)
        self.assertEqual(ask("GET", "/healthz", None).status, 200)
        self.assertEqual(ask("GET", "/openapi.json", None).status, 200)
        self.assertEqual(ask("GET", "/v1/jobs", "fedcba9876543210").status, 200)
        self.assertEqual(ask("POST", "/v1/jobs", "fedcba9876543210").status, 403)
        self.assertEqual(ask("POST", "/v1/jobs", "aaaabbbbccccdddd").status, 200)
        metadata = self.fake.last()[2]
        self.assertEqual((metadata["millrace-user"], metadata["millrace-role"]), ("uwe", "user"))
        self.assertNotIn("authorization", metadata)
        self.assertEqual(ask("POST", "/v1/workers/w1:retire", "aaaabbbbccccdddd").status, 403)
        self.assertEqual(ask("POST", "/v1/workers/w1:retire", "0123456789abcdef").status, 200)

    def login(self, g, body=None, **headers):
        """(status, JSON of the answer, the cookie's name=value, the cookie's attributes)"""
        r = g.request("POST", "/v1/login", json.dumps(body) if body is not None else None, {**(JSON if body is not None else {}), **headers})
        pair, *attributes = (r.headers["set-cookie"] or "").split("; ")
        return r.status, json.loads(r.body), pair, attributes

    def test_a_browser_logs_in(self):
        """The browser sends a token once, and then the cookie that it got for the token."""
        g = Gateway(self.directory, self.address, "--store", self.address, "--token-file", self.tokens)
        self.addCleanup(g.stop)
        user, rita = "aaaabbbbccccdddd", {"name": "rita", "role": "reader"}
        status, said, cookie, attributes = self.login(g, {"token": user})
        self.assertEqual((status, said, attributes), (200, {"name": "uwe", "role": "user"}, ["Path=/", "HttpOnly", "SameSite=Strict"]))
        self.assertEqual(cookie, f"millrace_{g.port}={user.encode().hex()}")
        status, said, reader, attributes = self.login(g, {"max_age_s": 60}, Authorization="Bearer fedcba9876543210")
        self.assertEqual((status, said, attributes[-1]), (200, rita, "Max-Age=60"))
        self.assertEqual(self.login(g, None, Authorization="Bearer fedcba9876543210")[:2], (200, rita))

        own = f"http://127.0.0.1:{g.port}"

        def ask(method, target, cookie, **headers):
            return g.request(method, target, b"{}" if method == "POST" else None, {**JSON, "Cookie": cookie, **headers})

        self.assertEqual(ask("GET", "/v1/jobs", cookie).status, 200)
        self.assertEqual(self.fake.last()[2]["millrace-user"], "uwe")
        self.assertNotIn("cookie", self.fake.last()[2])
        self.assertEqual(ask("GET", "/metrics", "x=y; " + cookie).status, 200)
        self.assertEqual(ask("POST", "/v1/jobs", cookie, Origin=own).status, 200)
        self.assertEqual(ask("POST", "/v1/jobs", reader, Origin=own).status, 403)  # refused because of the role
        self.assertEqual(json.loads(ask("GET", "/v1/login", reader).body), rita)
        # requests from pages of other origins, and requests that do not name the origin of their page
        for headers in ({}, {"Origin": "http://127.0.0.1:1"}, {"Origin": "null"},
                        {"Origin": own, "Sec-Fetch-Site": "same-site"}, {"Origin": own, "Sec-Fetch-Site": "cross-site"}):
            self.assertEqual(ask("POST", "/v1/jobs", cookie, **headers).status, 403, headers)
        self.assertEqual(ask("GET", "/v1/jobs", cookie, **{"Sec-Fetch-Site": "cross-site"}).status, 403)
        self.assertEqual(ask("GET", "/v1/jobs", cookie, **{"Sec-Fetch-Site": "same-origin"}).status, 200)
        # The Authorization header counts, not the cookie.
        self.assertEqual(ask("GET", "/v1/jobs", cookie, Authorization="Bearer wrongwrongwrongwrong").status, 401)
        # wrong cookies
        for wrong in ("", "millrace=1", cookie[:-1], cookie + "00", f"millrace_{g.port}=" + "00" * 16):
            self.assertEqual(ask("GET", "/v1/jobs", wrong).status, 401, wrong)
        for body in ({"token": "wrongwrongwrongwrong"}, {"token": ""}, {}, None):
            status, said, cookie, _ = self.login(g, body)
            self.assertEqual((status, said["code"], cookie), (401, 16, ""))
        for body in ({"token": 1}, {"max_age_s": 10**9, "token": user}, [], {"name": "x"}):
            self.assertEqual(self.login(g, body)[0], 400, body)
        self.assertEqual(g.request("POST", "/v1/login", "token=" + user, {"Content-Type": "text/plain"}).status, 415)
        self.assertEqual(g.request("POST", "/v1/login", "x" * 5000, JSON).status, 413)
        self.assertEqual(self.login(g, {"token": user}, Origin="http://evil.example")[0], 403)
        r = g.request("PUT", "/v1/login", b"{}", JSON)
        self.assertEqual((r.status, r.headers["allow"]), (405, "GET, HEAD, POST"))
        self.assertEqual(g.request("GET", "/v1/login").status, 401)
        r = g.request("POST", "/v1/logout")
        self.assertEqual((r.status, r.headers["set-cookie"]),
                         (200, f"millrace_{g.port}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"))

    def test_without_tokens_there_is_nothing_to_log_in_to(self):
        g = Gateway(self.directory, self.address)
        self.addCleanup(g.stop)
        self.assertEqual(self.login(g, {"token": "whatever"}), (200, {"name": "local", "role": "admin"}, "", []))

    def test_wrong_tokens_of_an_address_are_bounded(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            try:
                s.connect(("192.0.2.1", 9))  # sends nothing; tells which address of this machine would be the sender's
                own = s.getsockname()[0]
            except OSError:
                own = "127.0.0.1"
        if own.startswith("127."):
            self.skipTest("this machine has no address but loopback, which is not counted")
        g = Gateway(self.directory, self.address, "--token-file", self.tokens, "--allow-host", own, listen="0.0.0.0:0")
        self.addCleanup(g.stop)

        def ask(token):
            c = http.client.HTTPConnection(own, g.port, timeout=60)
            try:
                c.request("POST", "/v1/login", json.dumps({"token": token}), JSON)
                r = c.getresponse()
                return r.status, r.headers["retry-after"]
            finally:
                c.close()
        self.assertEqual([ask("wrongwrongwrongwrong")[0] for _ in range(10)], [401] * 10)
        self.assertEqual(ask("wrongwrongwrongwrong"), (429, "1"))
        self.assertEqual(ask("aaaabbbbccccdddd")[0], 429)
        self.assertEqual(self.login(g, {"token": "aaaabbbbccccdddd"})[0], 200)  # from another address

    def test_the_cluster_secret_goes_to_services(self):
        secret = os.path.join(self.directory, "secret")
        with open(secret, "w") as f:
            f.write("s3cret-of-the-cluster\n")
        os.chmod(secret, 0o600)
        g = Gateway(self.directory, self.address, "--secret-file", secret)
        self.addCleanup(g.stop)
        g.json("GET", "/v1/jobs/x")
        self.assertEqual(self.fake.last()[2]["authorization"], "Bearer s3cret-of-the-cluster")

    def refused(self, *flags):
        p = subprocess.run([f"{BIN}/mr-gateway", "--scheduler", self.address, *flags],
                           capture_output=True, timeout=60)
        self.assertNotEqual(p.returncode, 0)
        return p.stderr.decode()

    def test_what_would_be_unsafe_does_not_start(self):
        self.assertIn("--token-file", self.refused("--listen", "0.0.0.0:0"))
        self.assertIn("--token-file", self.refused("--listen", "[::]:0"))
        self.assertIn("neither HOST:PORT", self.refused("--listen", "nonsense"))
        os.chmod(self.tokens, 0o644)
        self.assertIn("chmod 600", self.refused("--token-file", self.tokens))
        with open(self.tokens, "a") as f:
            f.write("\n0123456789abcdeF bos bob\n")
        os.chmod(self.tokens, 0o600)
        self.assertIn('line 5: role "bos" is none of', self.refused("--token-file", self.tokens))
        self.assertIn("--allow-uid", self.refused("--allow-uid", "nobody"))
        self.assertIn("--nonsense", self.refused("--nonsense"))
        self.assertIn("another server", self.refused("--listen", self.address))

    def test_a_public_address_with_tokens_starts(self):
        g = Gateway(self.directory, self.address, "--token-file", self.tokens, "--allow-host", "mill.example",
                    listen="0.0.0.0:0")
        self.addCleanup(g.stop)
        headers = {"Authorization": "Bearer 0123456789abcdef", "Host": "mill.example"}
        g.json("GET", "/v1/jobs", headers=headers)

    def test_a_unix_socket_serves_its_owner(self):
        path = os.path.join(self.directory, "http.sock")
        g = Gateway(self.directory, self.address, listen=f"unix:{path}")
        self.assertEqual(os.stat(path).st_mode & 0o777, 0o600)
        s = socket.socket(socket.AF_UNIX)
        s.connect(path)
        s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        self.assertIn(b'{"ready":true}', Gateway.drain(s))
        self.assertEqual(g.stop(), 0)
        self.assertFalse(os.path.exists(path))

    @unittest.skipUnless(os.geteuid() == 0, "another user is needed")
    def test_what_a_stranger_wrote_before_it_was_seen_is_not_done(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        os.chmod(folder, 0o711)
        path = os.path.join(folder, "http.sock")
        g = Gateway(self.directory, self.address, "--allow-uid", "12345", listen=f"unix:{path}")
        self.addCleanup(g.stop)
        request = b"GET /v1/jobs/stranger HTTP/1.1\r\nHost: localhost\r\n\r\n"
        stranger = (f"import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect({path!r});"
                    f"s.sendall({request!r}); print(flush=True); print(len(s.recv(9)))")
        for uid, calls in ((54321, 0), (12345, 1)):
            g.process.send_signal(signal.SIGSTOP)
            p = subprocess.Popen([sys.executable, "-c", stranger], stdout=subprocess.PIPE, user=uid,
                                 group=uid, extra_groups=[], cwd="/")
            p.stdout.readline()
            g.process.send_signal(signal.SIGCONT)
            self.assertEqual(int(p.communicate(timeout=60)[0]), 9 * calls)
            time.sleep(0.2)
            seen = [c for c in self.fake.calls if c[0] == "Jobs_Get" and c[1].id == "stranger"]
            self.assertEqual(len(seen), calls)

    @unittest.skipUnless(shutil.which("openssl"), "openssl makes the certificate")
    def test_a_list_of_objects_goes_through_all_stores(self):
        others = [f"unix:{self.directory}/store{i}.sock" for i in range(2)]
        stores = [fake.Fake(DESCRIPTORS, address) for address in others]
        for i, store in enumerate(stores):
            store.listed = [f"{i}{n}" * 16 for n in range(3)]
            self.addCleanup(store.stop)
        g = Gateway(self.directory, self.address, *(f"--store={a}" for a in others))
        self.addCleanup(g.stop)
        seen, token = [], ""
        for _ in range(10):
            page = g.json("GET", f"/v1/objects?page_size=2&page_token={token}")
            seen += [o["id"][:2] for o in page["objects"]]
            token = page["next_page_token"]
            if not token:
                break
        self.assertEqual(seen, ["00", "01", "02", "10", "11", "12"])
        self.assertEqual(g.request("GET", "/v1/objects?page_token=7~").status, 400)

    def test_https_serves_the_same(self):
        cert, key = (os.path.join(self.directory, n) for n in ("cert.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        os.chmod(key, 0o600)
        g = Gateway(self.directory, self.address, "--tls-cert", cert, "--tls-key", key)
        self.addCleanup(g.stop)
        c = http.client.HTTPSConnection("localhost", g.port, timeout=60, context=ssl.create_default_context(cafile=cert))
        c.request("GET", "/v1/jobs/x/results/big")
        self.assertEqual(len(c.getresponse().read()), 64 << 20)
        c.close()
        self.assertIn("--tls-key", self.refused("--tls-cert", cert))

    def test_idle_and_half_open_connections_are_closed(self):
        g = Gateway(self.directory, self.address, "--idle", "2s", "--connections", "40")
        self.addCleanup(g.stop)
        idle = [g.raw(b"GET / HTT" if i % 2 else b"", read=False) for i in range(20)]
        upload = g.raw(b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                       b"Content-Length: 100\r\n\r\n{", read=False)
        g.json("GET", "/healthz")
        start = time.monotonic()
        for s in [*idle, upload]:
            s.settimeout(60)
            Gateway.drain(s)  # if the gateway does not close the connection, this returns after a minute
        self.assertLess(time.monotonic() - start, 55)
        g.json("GET", "/healthz")

    def test_bodies_that_are_being_read_are_bounded(self):
        """Bodies of one user that are read at the same time may use half of --reading-memory together. Small bodies
        pass."""
        g = Gateway(self.directory, self.address, "--reading-memory", "4MiB")
        self.addCleanup(g.stop)
        body = b'{"targets":["' + b"x" * 2_500_000 + b'"]}'
        head = f"POST /v1/jobs:graph HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        held = g.raw(head.encode() + body[:-10], read=False)
        deadline, r = time.monotonic() + 60, None
        while not r or r.status != 429:  # until the gateway has read the held body
            self.assertLess(time.monotonic(), deadline)
            r = g.request("POST", "/v1/jobs:graph", body, JSON)
        self.assertTrue(r.headers["Retry-After"])
        self.assertIn("try again later", json.loads(r.body)["message"])
        self.assertNotEqual(g.request("POST", "/v1/jobs:graph", b'{"targets":["x"]}', JSON).status, 429)
        held.close()
        while g.request("POST", "/v1/jobs:graph", body, JSON).status == 429:
            self.assertLess(time.monotonic(), deadline)

    def test_a_drip_of_header_bytes_is_cut_off(self):
        g = Gateway(self.directory, self.address, "--idle", "10s")
        self.addCleanup(g.stop)
        s = g.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", read=False)
        start = time.monotonic()
        try:
            while time.monotonic() - start < 80:
                s.sendall(b"y")
                time.sleep(0.5)
        except OSError:
            pass
        self.assertLess(time.monotonic() - start, 70)

    def test_the_dashboard_stays_beneath_its_directory(self):
        pages = os.path.join(self.directory, "pages")
        os.makedirs(os.path.join(pages, "js"))
        for name, text in (("index.html", "<p>hello"), ("js/a b.js", "1")):
            with open(os.path.join(pages, name), "w") as f:
                f.write(text)
        os.symlink("/etc/passwd", os.path.join(pages, "out"))
        g = Gateway(self.directory, self.address, "--dashboard", pages)
        self.addCleanup(g.stop)
        r = g.request("GET", "/")
        self.assertEqual((r.body, r.headers["content-type"]), (b"<p>hello", "text/html; charset=utf-8"))
        policy = r.headers["content-security-policy"]
        self.assertIn("default-src 'none'; script-src 'self'; style-src 'self';", policy)
        self.assertNotIn("unsafe", policy)
        self.assertEqual(g.request("GET", "/", headers={"If-None-Match": r.headers["etag"]}).status, 304)
        self.assertEqual(g.request("GET", "/js/a%20b.js").body, b"1")
        for target in ("/../tokens", "/..%2ftokens", "/js/../../tokens", "/out", "/js", "/%2e%2e/tokens", "//etc/passwd"):
            self.assertEqual(g.request("GET", target).status, 404, target)

    def test_a_cluster_that_is_away_is_503(self):
        g = Gateway(self.directory, f"unix:{self.directory}/nobody.sock")
        self.addCleanup(g.stop)
        r = g.request("GET", "/v1/jobs")
        self.assertEqual((r.status, json.loads(r.body)["code"], r.headers["retry-after"]), (503, 14, "1"))
        self.assertEqual(g.json("GET", "/healthz", status=503)["ready"], False)
        self.assertEqual(g.request("GET", "/v1/objects").status, 503)
        self.assertEqual(g.request("GET", "/metrics").status, 200)

    def wait_for_call(self, name, job):
        deadline = time.monotonic() + 60
        while not any(c[0] == name and getattr(c[1], "id", job) == job for c in self.fake.calls):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    # SIGTERM ends a stream so that its client connects again; no client gets the status CANCELLED.
    def test_sigterm_ends_streams_and_leaves_in_time(self):
        g = Gateway(self.directory, self.address, "--grace", "2s")
        s = g.raw(b"GET /v1/jobs/endless/events HTTP/1.1\r\nHost: localhost\r\n\r\n", read=False)
        out = b""
        while b"id: 3" not in out:
            out += s.recv(1000)
        slow = g.raw(b"GET /v1/jobs/slow HTTP/1.1\r\nHost: localhost\r\n\r\n", read=False)
        self.wait_for_call("Jobs_Get", "slow")
        start = time.monotonic()
        self.assertEqual(g.stop(), 0)
        self.assertLess(time.monotonic() - start, 25)  # the call `slow` would take 30 s
        out += Gateway.drain(s)
        self.assertIn(b"retry: 1000", out)
        self.assertNotIn(b"event: error", out)
        self.assertTrue(out.endswith(b"0\r\n\r\n"), out[-100:])  # the body ends with its last chunk
        answer = Gateway.drain(slow)
        self.assertTrue(answer.startswith(b"HTTP/1.1 503 "), answer)
        self.assertIn(b'"code":14,', answer)
        self.assertIn(b"Retry-After: 1", answer)

    # A client that waits for a job when the gateway stops gets the job's id and state.
    def test_sigterm_answers_waiters_with_what_is_known(self):
        g = Gateway(self.directory, self.address, "--grace", "60s")
        head = b" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
        submit = g.raw(b"POST /v1/jobs?wait_s=60" + head, read=False)
        get = g.raw(b"GET /v1/jobs/waits?wait_s=60 HTTP/1.1\r\nHost: localhost\r\n\r\n", read=False)
        self.wait_for_call("Jobs_Get", "waits")
        self.wait_for_call("Jobs_Submit", None)
        start = time.monotonic()
        self.assertEqual(g.stop(), 0)
        self.assertLess(time.monotonic() - start, 50)  # less than the grace of 60 s
        for s, job in ((submit, b'"id":"j1-7"'), (get, b'"id":"waits","name":"","state":"JOB_RUNNING"')):
            answer = Gateway.drain(s)
            self.assertTrue(answer.startswith(b"HTTP/1.1 200 "), answer)
            self.assertIn(job, answer)
            self.assertIn(b"Retry-After: 1", answer)
            self.assertIn(b"Connection: close", answer)

    # The address is free at once, while the old gateway still answers.
    def test_the_next_gateway_can_listen_while_the_last_one_drains(self):
        path = os.path.join(self.directory, "http.sock")
        for listen in ("127.0.0.1:0", f"unix:{path}"):
            old = Gateway(self.directory, self.address, "--grace", "60s", listen=listen)
            s = socket.socket(socket.AF_UNIX if old.port == 0 else socket.AF_INET)
            s.connect(path if old.port == 0 else ("127.0.0.1", old.port))
            self.fake.calls.clear()
            s.sendall(b"GET /v1/jobs/slow HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.wait_for_call("Jobs_Get", "slow")
            old.process.send_signal(signal.SIGTERM)
            for _ in range(400):  # until the old gateway has released the address
                try:
                    new = Gateway(self.directory, self.address,
                                  listen=listen if old.port == 0 else f"127.0.0.1:{old.port}")
                    break
                except RuntimeError:
                    time.sleep(0.05)
            self.assertIsNone(old.process.poll())
            self.assertEqual(new.port, old.port)
            s.close()  # now the old gateway has no request left
            self.assertEqual(old.process.wait(30), 0)
            if old.port == 0:
                self.assertTrue(os.path.exists(path))  # the socket file of the new gateway
            else:
                self.assertEqual(new.json("GET", "/v1/jobs/x")["id"], "x")
            self.assertEqual(new.stop(), 0)

    # With a socket that is handed from gateway to gateway, no connection is refused.
    def test_a_handed_socket_loses_no_connection(self):
        listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        port = listener.getsockname()[1]
        code = ("import os, sys; os.dup2(int(sys.argv[1]), 3); os.set_inheritable(3, True);"
                "os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()));"
                "os.execv(sys.argv[2], sys.argv[2:])")

        def start():
            return subprocess.Popen(
                [sys.executable, "-c", code, str(listener.fileno()), f"{BIN}/mr-gateway", "--listen",
                 "127.0.0.1:1", "--scheduler", self.address], pass_fds=[listener.fileno()],
                stderr=subprocess.DEVNULL)

        failures, answers, done = [], [0], threading.Event()

        def ask():
            while not done.is_set():
                c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                try:
                    c.request("GET", "/v1/jobs/x")
                    r = c.getresponse()
                    r.read()
                    answers[0] += r.status == 200
                    if r.status != 200:
                        failures.append(r.status)
                except OSError as e:
                    failures.append(repr(e))
                c.close()

        p = start()
        client = threading.Thread(target=ask)
        client.start()
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            before = answers[0]
            deadline = time.monotonic() + 60
            while answers[0] < before + 3 and time.monotonic() < deadline:
                time.sleep(0.02)
            if number == signal.SIGKILL:  # only a request that the killed gateway was answering may be lost
                failures, mid = [], failures
                self.assertEqual(mid, [])
            p.send_signal(number)
            p.wait(30)
            p = start()
        before = answers[0]
        deadline = time.monotonic() + 60
        while answers[0] < before + 3 and time.monotonic() < deadline:
            time.sleep(0.02)
        done.set()
        client.join()
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(30), 0)
        listener.close()
        self.assertGreaterEqual(answers[0], before + 3)
        self.assertLessEqual(len(failures), 1, failures)

    # A waiting call for a job is sent again while the scheduler is away.
    def test_a_waiting_get_outlives_its_scheduler(self):
        g = Gateway(self.directory, self.address)
        self.addCleanup(g.stop)
        self.fake.returns = 3
        self.assertEqual(g.json("GET", "/v1/jobs/away?wait_s=60")["id"], "away")
        waits = [c[1].wait_s for c in self.fake.calls if c[0] == "Jobs_Get"]
        self.assertEqual(len(waits), 4)
        self.assertEqual(waits, sorted(waits, reverse=True))
        self.fake.returns = 1
        self.assertEqual(g.request("GET", "/v1/jobs/away").status, 503)  # a call that does not wait fails at once

    # Without free descriptors the gateway stops accepting, reports it, and goes on when descriptors are free again.
    def test_without_descriptors_it_waits(self):
        log = os.path.join(self.directory, "gateway.log")
        g = Gateway(self.directory, self.address)
        self.addCleanup(g.stop)
        c = http.client.HTTPConnection("127.0.0.1", g.port, timeout=60)

        def ask(target):
            c.request("GET", target)
            r = c.getresponse()
            return r.status, r.read().decode()

        self.assertEqual(ask("/healthz")[0], 200)
        pid = g.process.pid
        used = max(int(n) for n in os.listdir(f"/proc/{pid}/fd")) + 1
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used, before[1]))
        waiting = [socket.create_connection(("127.0.0.1", g.port), timeout=60) for _ in range(used)]
        deadline = time.monotonic() + 30
        while ask("/healthz")[0] == 200 and time.monotonic() < deadline:
            time.sleep(0.05)
        status, text = ask("/healthz")
        self.assertEqual(status, 503)
        self.assertIn("descriptor", json.loads(text)["reason"])
        self.assertIn('millrace_http_accept_paused{instance="gateway"} 1', ask("/metrics")[1])

        def cpu():
            with open(f"/proc/{pid}/stat") as f:
                fields = f.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        start = cpu()
        time.sleep(2)
        self.assertLess(cpu() - start, 0.5)  # four spinning threads would use two seconds and more
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        for s in waiting:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        for s in waiting:  # every waiting client is answered, maybe before /healthz is healthy
            self.assertIn(b'{"ready":', Gateway.drain(s))
        deadline = time.monotonic() + 30
        while ask("/healthz")[0] != 200:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        with open(log) as f:
            lines = f.read()
        self.assertEqual((lines.count("accept.paused"), lines.count("accept.resumed")), (1, 1), lines)

    # SIGTERM ends a program that is starting and waits for the answer of another one.
    def test_sigterm_is_heard_while_starting(self):
        silent = os.path.join(self.directory, "silent.sock")
        hole = socket.socket(socket.AF_UNIX)
        hole.bind(silent)
        hole.listen(64)
        self.addCleanup(hole.close)
        d = self.directory
        for where in (silent, os.path.join(d, "nobody.sock")):
            programs = [
                ["mr-scheduler", "--listen", f"unix:{d}/sched.sock", "--redis", f"unix:{where}", "--dir", d],
                ["mr-trainer", "--listen", f"unix:{d}/trainer.sock", "--redis", f"unix:{where}"],
                ["mr-objectstore", "--listen", f"unix:{d}/o.sock", "--socket", f"{d}/arena.sock", "--node=n",
                 "--redis", f"unix:{where}", "--scheduler", f"unix:{where}", "--memory=64MiB", "--dir", d],
                ["mr-worker", "--scheduler", f"unix:{where}", "--store", where, "--node=n"],
                ["mr-gateway", "--listen", "127.0.0.1:0", "--scheduler", f"unix:{where}"],
            ]
            running = [subprocess.Popen([f"{BIN}/{p[0]}", *p[1:]], stderr=subprocess.DEVNULL) for p in programs]
            time.sleep(2)
            for p in running:
                p.send_signal(signal.SIGTERM)
            start = time.monotonic()
            codes = [p.wait(60) for p in running]
            self.assertLess(time.monotonic() - start, 30)  # far less than the programs' own timeouts, up to 58 s
            self.assertLessEqual(set(codes), {0, -signal.SIGTERM}, codes)


if __name__ == "__main__":
    unittest.main(verbosity=2)
