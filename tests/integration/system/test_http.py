"""HTTP in front of a real cluster: lists that page, names with slashes, conditional and partial
requests, compression, images. Issue 11, 15."""
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
        """Uploads bytes; the object's description."""
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
    """Issue 11, 15: lists that page."""

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
    """Issue 11, 15: `name:a/b` both ways."""

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


if __name__ == "__main__":
    main()
