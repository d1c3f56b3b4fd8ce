"""Runs every line of the shell blocks of docs/training.md against a cluster, in order. Every REST
route of trainings, channels and queues must be in one of them."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, SLOW, Cluster, bin_dir  # noqa: E402

PAGE = ROOT / "docs" / "training.md"
# Any status but 2xx and any failure but the end of --max-time stops the script.
PREAMBLE = """set -euo pipefail
curl() { local c=0; command curl --fail-with-body "$@" || c=$?; [ $c = 28 ] || return $c; }
"""


def blocks():
    return re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(), re.M | re.S)


def routes():
    """(method, path with {} for its fields) of the three protos."""
    for name in ("trainings", "channels", "queues"):
        text = (ROOT / "proto" / "millrace" / "v1" / f"{name}.proto").read_text()
        for method, path in re.findall(r'\{ (get|put|post|delete): "([^"]+)"', text):
            yield method.upper(), path


class TrainingDocs(unittest.TestCase):
    def test_every_route_is_shown(self):
        shown = set()
        for line in "\n".join(blocks()).splitlines():
            for curl in re.findall(r"curl [^|]*", line):
                path = re.search(r"\$U(/[^\s\"?']*)", curl)
                method = re.search(r"-X (\w+)", curl)
                if path:
                    shown.add((method.group(1) if method else "POST" if "--json" in curl else "GET", path.group(1)))
        for method, path in routes():
            pattern = re.sub(r"\\\{[^}]*\\\}", "[^/:]+", re.escape(path))
            self.assertTrue(any(m == method and re.fullmatch(pattern, p) for m, p in shown), f"{method} {path} is not in {PAGE.name}")

    def test_every_line_runs(self):
        with tempfile.TemporaryDirectory(prefix="mr-") as d, Cluster("--workers", "2", "--threads", "1") as c:
            os.symlink(ROOT / "examples", f"{d}/examples")
            script = PREAMBLE + "".join(f"\necho; echo '@@ {i}'\n{b}" for i, b in enumerate(blocks()))
            env = dict(c.env, U=c.url, PATH=f"{bin_dir()}:{os.environ['PATH']}")
            p = subprocess.run(["bash", "-c", script], env=env, cwd=d, capture_output=True, text=True, timeout=200 * SLOW)
            self.assertEqual(p.returncode, 0, f"{p.stdout[-3000:]}\n{p.stderr[-3000:]}")
            parts = re.split(r"^@@ \d+$", p.stdout, flags=re.M)[1:]
            first, sessions, channels, queues, model = parts
            self.assertIn('"TRAINING_DONE"', first)
            self.assertIn("cross_entropy", first)
            self.assertRegex(sessions, r'"reason": *"[^"]*(enough|cross_entropy)')
            self.assertEqual(channels.count('"value_json"'), 3, channels)
            self.assertRegex(queues, r'"dead": *1\b')
            self.assertRegex(queues, r"no picture")
            self.assertIn('"JOB_DONE"', model)
            self.assertEqual(pathlib.Path(d, "model.npz").read_bytes()[:2], b"PK")


if __name__ == "__main__":
    unittest.main(verbosity=2)
