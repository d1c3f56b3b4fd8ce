"""HTTP in front of a real cluster: lists that page, names with slashes, conditional and partial
requests, compression, images."""
import gzip
import json
import pathlib
import sys
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Cluster, main  # noqa: E402

RAW = {"Content-Type": "application/octet-stream"}


class Http(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster("--workers", "2", "--threads", "1")

    @classmethod
    def tearDownClass(cls):
        cls.c.close()

    def put(self, data, kind="application/octet-stream", **query):
        """Uploads bytes and returns the description of the object."""
        status, _, body = self.c.request("POST", f"/v1/objects?{urllib.parse.urlencode(query)}", data, {"Content-Type": kind})
        self.assertEqual(status, 200, body)
        return json.loads(body)

    def ask(self, method, path, **headers):
        return self.c.request(method, path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    def refused(self, status, path, text, method="GET"):
        got, _, body = self.ask(method, path)
        self.assertEqual(got, status, (path, body))
        self.assertIn(text, json.loads(body)["message"], path)


class Lists(Http):
    """Lists in pages."""

    def setUp(self):
        c = self.c
        for i in range(5):
            c.call("POST", f"/v1/templates?name=t{i}&replace=true", {"dsk": {"x": i}})
            c.call("POST", f"/v1/channels/c{i}:append", {"value_json": ["1"]})
            c.call("PUT", f"/v1/queues/q{i}", {"items_max": 3})
            self.put(b"x%d" % i, name=f"list/n{i}", replace="true")
            c.wait(c.submit({"dsk": {"x": i}, "targets": ["x"], "labels": {"list": "1"}}, request_id=f"list-{i}"))

    def pages(self, path, member, name, size):
        rows, token, count = [], "", 0
        mark = "&" if "?" in path else "?"
        while True:
            page = self.c.get(f"{path}{mark}page_size={size}&page_token={urllib.parse.quote(token)}")
            self.assertLessEqual(len(page[member]), size, path)
            self.assertIn("next_page_token", page, path)
            rows += [row[name] if name else row for row in page[member]]
            token, count = page["next_page_token"], count + 1
            if not token:
                return rows, count

    def test_every_list_pages(self):
        for path, member, name, least in [
            ("/v1/templates", "templates", "name", 5), ("/v1/channels", "channels", None, 5),
            ("/v1/queues", "queues", "queue", 5), ("/v1/names?prefix=list/", "names", "name", 5),
            ("/v1/objects", "objects", "id", 5), ("/v1/jobs?label=list", "jobs", "id", 5), ("/v1/ops", "ops", "name", 100),
            ("/v1/workers", "workers", "name", 2), ("/v1/trainings", "trainings", "id", 0),
        ]:
            size = 30 if path == "/v1/ops" else 2 if least == 5 else 1
            rows, count = self.pages(path, member, name, size)
            self.assertGreaterEqual(len(rows), least, path)
            self.assertEqual(len(rows), len(set(rows)), path)
            self.assertGreaterEqual(count, least // size if least else 1, path)
            if member in ("templates", "channels", "queues", "names", "ops"):
                self.assertEqual(rows, sorted(rows), path)
            all_rows, _ = self.pages(path, member, name, 1000)
            self.assertEqual(rows, all_rows, path)

    def test_what_is_no_page_is_refused_by_name(self):
        for path in ("templates", "channels", "queues", "names", "objects", "jobs", "ops", "workers", "trainings"):
            for token in ("garbage", "%7E", "1.2.3"):
                self.refused(400, f"/v1/{path}?page_token={token}", "page_token")
            self.refused(400, f"/v1/{path}?page_size=1001", "page_size")
            self.refused(400, f"/v1/{path}?page_size=-1", "page_size")
        self.refused(404, "/v1/ops?name=no.such", "no.such")

    def test_a_page_begins_where_the_last_one_ended_though_rows_have_gone(self):
        page = self.c.get("/v1/templates?page_size=2")
        self.c.call("DELETE", "/v1/templates/t1")
        rest = self.c.get(f"/v1/templates?page_token={page['next_page_token']}")
        self.assertEqual([t["name"] for t in rest["templates"]], ["t2", "t3", "t4"])

    def test_the_command_line_shows_all_pages(self):
        ops = self.c.get("/v1/ops")["ops"]
        self.assertEqual(len(json.loads(self.c.cli("ops", "--json")[1])["ops"]), len(ops))
        self.assertEqual(len(json.loads(self.c.cli("workers", "--json")[1])["workers"]), 2)


class Names(Http):
    """Names with slashes: `name:a/b` in both directions."""

    def test_names_with_slashes(self):
        name = "models/2026 ä/best+1"
        info = self.put(b"weights", name=name)
        escaped, half = urllib.parse.quote(name, safe=""), urllib.parse.quote(name)
        for path in (escaped, half):
            self.assertEqual(self.c.get(f"/v1/names/{path}")["object"], info["id"])
            self.assertEqual(self.c.get(f"/v1/objects/name:{path}/stat")["id"], info["id"])
            self.assertEqual(self.c.call("POST", f"/v1/objects/name:{path}:pin", {"seconds": 0.1})["id"], info["id"])
            self.assertEqual(self.ask("GET", f"/v1/objects/name:{path}")[2], b"weights")
        query = urllib.parse.urlencode({"id": f"name:{name}"})
        self.assertEqual(self.ask("GET", f"/v1/objects/?{query}")[2], b"weights")
        self.assertEqual(self.c.get(f"/v1/objects/stat?{query}")["id"], info["id"])
        self.assertEqual(self.c.get(f"/v1/names/?{urllib.parse.urlencode({'name': name})}")["object"], info["id"])
        self.c.call("PUT", f"/v1/names/{half}/2", {"object": info["id"]})
        self.assertEqual(self.c.get(f"/v1/names/{escaped}%2F2")["object"], info["id"])
        self.c.call("DELETE", f"/v1/names/{half}/2")
        self.refused(404, f"/v1/objects/name:{half}/2/stat", f"{name}/2")
        self.refused(400, f"/v1/objects/name:{half}", "is held by name", method="DELETE")
        self.c.call("DELETE", f"/v1/objects/name:{half}?force=true")
        self.refused(404, f"/v1/objects/name:{escaped}", name)

    def test_results_with_slashes(self):
        job = self.c.submit({"dsk": {"a/b c": 7}, "targets": ["a/b c"]})
        self.c.wait(job)
        for path in ("a/b%20c", "a%2Fb%20c", "?key=a%2Fb+c"):
            self.assertEqual(self.ask("GET", f"/v1/jobs/{job}/results/{path}")[2], b"7")

    def test_the_command_line_takes_them(self):
        file = self.c.dir / "slash.bin"
        file.write_bytes(b"by hand")
        self.c.cli("put", str(file), "--name", "cli/a b/c")
        for what in ("cli/a b/c", "name:cli/a b/c"):
            self.assertEqual(self.c.cli("get", what)[1], "by hand")
        self.assertIn("cli/a b/c", self.c.cli("ls", "cli/")[1])
        self.c.cli("rm", "name:cli/a b/c")
        self.assertNotEqual(self.c.cli("get", "cli/a b/c", check=False)[0], 0)
        job = self.c.submit({"dsk": {"x/y": 5}, "targets": ["x/y"]})
        self.c.wait(job)
        self.assertEqual(self.c.cli("get", job, "x/y")[1].strip(), "5")


class Conditions(Http):
    """HEAD, ETag, gzip, Range."""

    def test_head_is_get_without_its_body(self):
        info = self.put(b"h" * 3000, name="head/x")
        job = self.c.submit({"dsk": {"z": 1}, "targets": ["z"]})
        self.c.wait(job)
        for path in (f"/v1/objects/{info['id']}", "/v1/objects/name:head/x/stat", "/v1/jobs", f"/v1/jobs/{job}", "/v1/names/head/x",
                     f"/v1/jobs/{job}/results/z", f"/v1/jobs/{job}/results", f"/v1/jobs/{job}/events", "/v1/cluster", "/v1/workers",
                     "/v1/ops", "/v1/store/stats", "/healthz", "/metrics", "/openapi.json", "/", "/v1/jobs/none", "/v1/nothing"):
            status, headers, body = self.ask("HEAD", path)
            wanted, found, whole = self.ask("GET", path)
            self.assertEqual((status, body), (wanted, b""), path)
            self.assertEqual(headers["content-type"], found["content-type"], path)
            self.assertEqual(headers["etag"], found["etag"], path)
            if path.startswith("/v1/objects/") or path == "/openapi.json":
                self.assertEqual(int(headers["content-length"]), len(whole), path)
        status, headers, _ = self.ask("HEAD", "/v1/jobs:graph")
        self.assertEqual((status, headers["allow"]), (405, "POST"))
        self.assertEqual(self.ask("PUT", "/v1/jobs")[1]["allow"], "GET, HEAD, POST")

    def test_who_has_it_already_gets_304(self):
        info = self.put(b"e" * 2000000, name="etag/x")
        small = self.c.submit({"dsk": {"z": [1, 2]}, "targets": ["z"]})
        large = self.c.submit({"tasks": {"z": {"op": "array.full", "args": [[100000], 7]}}, "targets": ["z"]})
        self.c.wait(small), self.c.wait(large)
        for path in (f"/v1/objects/{info['id']}", "/v1/objects/name:etag/x", f"/v1/jobs/{small}/results/z",
                     f"/v1/jobs/{large}/results/z", "/openapi.json"):
            _, headers, body = self.ask("GET", path)
            tag = headers["etag"]
            self.assertRegex(tag, r'^"[!#-~]+"$', path)
            self.assertIn("no-cache", headers["cache-control"])
            self.assertEqual(headers["x-content-type-options"], "nosniff")
            for known in (tag, f"W/{tag}", f'"other", {tag}', "*"):
                status, found, nothing = self.ask("GET", path, If_None_Match=known)
                self.assertEqual((status, found["etag"], nothing), (304, tag, b""), (path, known))
            self.assertEqual(self.ask("GET", path, If_None_Match='"other"')[2], body)
        # Another format and another object under the name have another ETag.
        path = f"/v1/jobs/{large}/results/z"
        tag = self.ask("GET", path, Accept="application/x-npy")[1]["etag"]
        self.assertEqual(self.ask("GET", path, Accept="application/json", If_None_Match=tag)[0], 200)
        tag = self.ask("GET", "/v1/objects/name:etag/x")[1]["etag"]
        self.put(b"f" * 2000000, name="etag/x", replace="true")
        self.assertEqual(self.ask("GET", "/v1/objects/name:etag/x", If_None_Match=tag)[0], 200)

    def test_large_json_is_small_for_who_takes_gzip(self):
        job = self.c.submit({"dsk": {"z": list(range(2000))}, "targets": ["z"]})
        self.c.wait(job)
        for path in ("/v1/ops", "/openapi.json", f"/v1/jobs/{job}/results/z", "/metrics"):
            _, plain, body = self.ask("GET", path)
            _, headers, packed = self.ask("GET", path, Accept_Encoding="br, gzip;q=0.8")
            self.assertEqual(headers["content-encoding"], "gzip", path)
            self.assertIsNone(plain["content-encoding"], path)
            self.assertIn("Accept-Encoding", headers["vary"])
            self.assertIn("Accept-Encoding", plain["vary"])
            self.assertLess(len(packed), len(body) / 2, path)
            if path != "/metrics":
                self.assertEqual(json.loads(gzip.decompress(packed)), json.loads(body), path)
            self.assertIsNone(self.ask("GET", path, Accept_Encoding="gzip;q=0")[1]["content-encoding"], path)
            if plain["etag"]:
                self.assertNotEqual(plain["etag"], headers["etag"])
                self.assertEqual(self.ask("GET", path, Accept_Encoding="gzip", If_None_Match=headers["etag"])[0], 304, path)
        info = self.put(bytes(5000))
        for path in (f"/v1/jobs/{job}/events", "/healthz", "/v1/jobs/none", f"/v1/objects/{info['id']}"):
            self.assertIsNone(self.ask("GET", path, Accept_Encoding="gzip")[1]["content-encoding"], path)

    def test_a_part_of_an_object(self):
        data = bytes(range(256)) * 16384 + b"end"  # a little more than 4 MiB
        n = len(data)
        path = f"/v1/objects/{self.put(data)['id']}"
        tag = self.ask("GET", path)[1]["etag"]
        for text, first, last in [
            ("bytes=0-0", 0, 0), ("bytes=1048570-1048580", 1048570, 1048580), (f"bytes={n - 3}-", n - 3, n - 1), ("bytes=-3", n - 3, n - 1),
            (f"bytes=5-{n + 9}", 5, n - 1), (f"bytes=-{n + 9}", 0, n - 1), ("bytes=3000000-3999999", 3000000, 3999999),
        ]:
            for more in ({}, {"If_Range": tag}):
                status, headers, body = self.ask("GET", path, Range=text, **more)
                self.assertEqual((status, headers["content-range"]), (206, f"bytes {first}-{last}/{n}"), text)
                self.assertEqual(int(headers["content-length"]), last - first + 1, text)
                self.assertTrue(body == data[first : last + 1], text)
                self.assertEqual((headers["etag"], headers["accept-ranges"]), (tag, "bytes"))
        for text in (f"bytes={n}-", "bytes=99999999999999999999-", "bytes=-0"):
            status, headers, body = self.ask("GET", path, Range=text)
            self.assertEqual((status, headers["content-range"]), (416, f"bytes */{n}"), text)
            self.assertIn("Range", json.loads(body)["message"])
        for more in ({"Range": "bytes=0-1,4-5"}, {"Range": "lines=0-1"}, {"Range": "bytes=2-1"}, {"Range": "bytes=0-1", "If_Range": '"other"'}):
            status, headers, body = self.ask("GET", path, **more)
            self.assertEqual((status, headers["content-range"], len(body)), (200, None, n), more)
        self.assertEqual(self.ask("HEAD", path, Range="bytes=0-1")[0], 200)
        for query, part in [("offset=100", data[100:]), ("bytes_max=10", data[:10]), ("offset=-3", data[-3:]), (f"offset={n}", b""),
                            ("offset=7&bytes_max=2000000", data[7:2000007]), ("offset=0&bytes_max=0", data)]:
            status, _, body = self.ask("GET", f"{path}?{query}")
            self.assertEqual((status, len(body)), (200, len(part)), query)
            self.assertTrue(body == part, query)
        status, headers, body = self.ask("GET", f"{path}?offset=4&bytes_max=6", Range="bytes=1-2")
        # a part of the bytes that the query selects, or all of them if they came at once
        self.assertIn((status, body), [(206, data[5:7]), (200, data[4:10])])
        empty = f"/v1/objects/{self.put(b'')['id']}"
        self.assertEqual(self.ask("GET", empty)[2], b"")
        self.assertEqual(self.ask("GET", empty, Range="bytes=0-")[0], 416)

    def test_a_part_of_a_result(self):
        job = self.c.submit({"tasks": {"z": {"op": "array.full", "args": [[500000], 7]}, "s": {"value": "0123456789"}}, "targets": ["z", "s"]})
        self.c.wait(job)
        for key in ("z", "s"):
            path = f"/v1/jobs/{job}/results/{key}"
            _, _, whole = self.ask("GET", path)
            for text, part in (("bytes=2-5", whole[2:6]), ("bytes=-4", whole[-4:])):
                status, headers, body = self.ask("GET", path, Range=text)
                self.assertEqual((status, body), (206, part), (key, text))
                self.assertTrue(headers["content-range"].endswith(f"/{len(whole)}"))


class Pictures(Http):
    """`image/png` for PNG results."""

    PNG = bytes.fromhex("89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8ffff3f0005fe02fe0dccdd48"
                        "0000000049454e44ae426082")

    def test_bytes_of_a_png_are_a_picture(self):
        object_id = self.put(self.PNG)["id"]
        job = self.c.submit({"tasks": {"p": {"op": "identity", "args": [{"object": object_id}]}}, "targets": ["p"]})
        self.assertEqual(self.c.wait(job)["state"], "JOB_DONE")
        for path in (f"/v1/objects/{object_id}", f"/v1/jobs/{job}/results/p"):
            for accept, kind in [("*/*", "image/png"), ("image/avif,image/webp,image/*,*/*;q=0.8", "image/png"), ("image/png", "image/png"),
                                 ("application/octet-stream", "application/octet-stream")]:
                status, headers, body = self.ask("GET", path, Accept=accept)
                self.assertEqual((status, headers["content-type"], body), (200, kind, self.PNG), (path, accept))
                self.assertEqual(headers["x-content-type-options"], "nosniff")
        other = self.put(self.PNG[:4])["id"]
        self.assertEqual(self.ask("GET", f"/v1/objects/{other}")[1]["content-type"], "application/octet-stream")


if __name__ == "__main__":
    main()
