"""Runs the first job of README.md: bash runs the lines of the page, with a free port in place of
the page's address."""
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, SLOW, bin_dir  # noqa: E402


def first_job():
    """The lines of the shell block that sets U=http…."""
    blocks = re.findall(r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    found = [b for b in blocks if re.search(r"^U=http", b, re.M)]
    assert len(found) == 1, found
    return found[0]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Readme(unittest.TestCase):
    def test_the_five_lines_print_3(self):
        lines = first_job()
        self.assertEqual(len(lines.splitlines()), 5)
        url = f"http://127.0.0.1:{free_port()}"
        lines, replaced = re.subn(r"^U=http\S+$", f"U={url}", lines, flags=re.M)
        self.assertEqual(replaced, 1)
        script = 'trap \'kill "$(jobs -p)"; wait\' EXIT\n' + lines
        with tempfile.TemporaryDirectory(prefix="mr-") as d, open(f"{d}/out", "w+") as out:
            env = dict(os.environ, PATH=f"{bin_dir()}:{os.environ['PATH']}", HOME=d, MILLRACE_HOME=f"{d}/home",
                       MILLRACE_DIR=f"{d}/c", MILLRACE_LISTEN=url.removeprefix("http://"))
            code = subprocess.run(["bash", "-c", script], env=env, cwd=ROOT, stdout=out, stderr=sys.stderr,
                                  timeout=120 * SLOW).returncode
            out.seek(0)
            text = out.read()
        self.assertEqual(code, 0, text)
        self.assertIn("JOB_DONE", text)
        # `up` may print its line after the first result
        self.assertRegex(text, r"(?m)^3($|millrace is up)")


if __name__ == "__main__":
    unittest.main(verbosity=2)
