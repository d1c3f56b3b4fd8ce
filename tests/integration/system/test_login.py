"""Logging in with a token in a browser. Pages of the gateway send the cookie; scripts cannot read
it; a page of another server cannot use it, even on the same machine. With a real Chromium."""
import http.server
import json
import os
import pathlib
import shutil
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import chromium  # noqa: E402
from harness import SKIP, Cluster, wait_for  # noqa: E402

if not chromium.find():
    print("SKIPPED: Chromium is missing (Debian: chromium): no browser logged in", file=sys.stderr)
    sys.exit(SKIP)

TOKEN = 'admin-0123456789;"a,b\\c'
GRAPH = json.dumps({"dsk": {"x": ["inc", 1]}, "targets": ["x"]})


class Other(http.server.BaseHTTPRequestHandler):
    """A page of another server on another port of this host: the same site, but another origin."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>other</title>")

    def log_message(self, *words):
        pass


class Login(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="mr-login-")
        self.addCleanup(shutil.rmtree, self.dir)
        tokens = os.path.join(self.dir, "tokens")
        with open(os.open(tokens, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(f"{TOKEN} admin ada\n")
        self.cluster = Cluster("--workers", "1", "--threads", "1", "--token-file", tokens)
        self.addCleanup(self.cluster.close)
        self.page = chromium.Page(self.cluster.url)
        self.addCleanup(self.page.close)

    def fetch(self, path, **options):
        """The status of a request as the page sees it, or the error."""
        return self.page.run(f"fetch({json.dumps(path)}, {json.dumps(options)}).then(r => r.status || r.type, e => String(e))")

    def log_in(self, token):
        return self.fetch("/v1/login", method="POST", headers={"Content-Type": "application/json"}, body=json.dumps({"token": token}))

    def submit(self, base="", **options):
        return self.fetch(base + "/v1/jobs", method="POST", headers={"Content-Type": "application/json"}, body=GRAPH, **options)

    def jobs(self):
        return len(self.cluster.get("/v1/jobs", headers={"Authorization": f"Bearer {TOKEN}"})["jobs"])

    def test_own_pages_are_let_in_and_others_are_not(self):
        self.assertEqual(self.fetch("/v1/jobs"), 401)
        self.assertEqual(self.log_in("wrongwrongwrongwrong"), 401)
        self.assertEqual(self.fetch("/v1/jobs"), 401)
        self.assertEqual(self.log_in(TOKEN), 200)
        self.assertEqual(self.fetch("/v1/jobs"), 200)
        self.assertEqual(self.fetch("/v1/login"), 200)
        self.assertEqual(self.submit(), 200)
        self.assertEqual(self.page.run("document.cookie"), "")
        self.page.run("window.seen = []; window.source = new EventSource('/v1/cluster/events');"
                      "source.onmessage = e => seen.push(JSON.parse(e.data).change); 1")
        wait_for("an event in the browser", lambda: self.page.run("seen.length") > 0, 60, every=0.1)

        # The server of another origin on the same host, to which the browser would send this host's
        # cookies.
        other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
        threading.Thread(target=other.serve_forever, daemon=True).start()
        self.addCleanup(other.server_close)
        self.addCleanup(other.shutdown)
        before = self.jobs()
        self.page.call("Page.navigate", url=f"http://127.0.0.1:{other.server_address[1]}/")
        wait_for("the other page", lambda: self.page.run("document.title") == "other", 60, every=0.1)
        url = self.cluster.url
        self.assertIn("TypeError", self.fetch(f"{url}/v1/jobs", credentials="include"))
        self.assertIn("TypeError", self.submit(url, credentials="include"))
        self.fetch(f"{url}/v1/jobs", method="POST", mode="no-cors", credentials="include", body=GRAPH)
        self.assertEqual(self.page.run(f"new Promise(r => {{ const s = new EventSource('{url}/v1/cluster/events', {{withCredentials: true}});"
                                       "s.onopen = () => r('open'); s.onerror = () => r('refused'); })"), "refused")
        self.assertEqual(self.jobs(), before)

        self.page.call("Page.navigate", url=url)
        wait_for("our page", lambda: "millrace" in self.page.run("document.title"), 60, every=0.1)
        self.assertEqual(self.fetch("/v1/jobs"), 200)
        self.assertEqual(self.fetch("/v1/logout", method="POST"), 200)
        self.assertEqual(self.fetch("/v1/jobs"), 401)


if __name__ == "__main__":
    unittest.main(verbosity=2)
