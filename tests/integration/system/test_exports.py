#!/usr/bin/env python3
"""Tests what the command line makes from the times of a job: files for trace viewers, the comparison
of two jobs, and the report. The files are checked against the rules of their formats."""
import base64
import collections
import fcntl
import hashlib
import html.parser
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest
import venv

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import SKIP, SLOW, Cluster, bin_dir, wait_for  # noqa: E402
from perfetto_read import PACKAGES  # noqa: E402

READ = pathlib.Path(__file__).resolve().parents[1] / "perfetto_read.py"
missing = []


def ref(key):
    return {"ref": key}


def graph(n=5, floats=100000, nap=0.05):
    """A graph of n arrays, the sums of all pairs of arrays, a sleep, and a task that fails."""
    tasks = {f"m{i}": {"op": "array.full", "args": [[floats], float(i)]} for i in range(n)}
    for i in range(n):
        for k in range(n):
            tasks[f"s{i}-{k}"] = {"op": "array.add", "args": [ref(f"m{i}"), ref(f"m{k}")]}
    tasks["nap"] = {"op": "sleep", "args": [nap, 1]}
    tasks["bad"] = {"op": "fail", "args": ['on "purpose"']}
    return {"tasks": tasks, "targets": [k for k in tasks if k[0] != "m"], "fuse": False, "on_error": "continue"}


def edges(n=5):
    """The edges of `graph`, as pairs of keys: input, task."""
    return collections.Counter({(f"m{j}", f"s{i}-{k}") for i in range(n) for k in range(n) for j in (i, k)})


# ---- the rules of the Trace Event Format. FIELDS: by phase, the required and optional fields ----

FIELDS = {"X": ({"name", "cat", "ph", "ts", "dur", "pid", "tid", "args"}, {"cname"}),
          "M": ({"name", "ph", "pid", "tid", "args"}, set()),
          "C": ({"name", "ph", "ts", "pid", "args"}, set()),
          "s": ({"name", "cat", "ph", "id", "ts", "pid", "tid"}, set()),
          "f": ({"name", "cat", "ph", "id", "ts", "pid", "tid", "bp"}, set())}
METADATA = {"process_name": ("name", str), "thread_name": ("name", str),
            "process_sort_index": ("sort_index", int), "thread_sort_index": ("sort_index", int)}
COLORS = {"terrible", "bad", "good"}  # some of the format's reserved color names


def check_event(e):
    must, may = FIELDS[e["ph"]]
    assert must <= set(e) <= must | may, e
    assert isinstance(e["name"], str) and isinstance(e["pid"], int) and isinstance(e.get("tid", 0), int), e
    for field in ("ts", "dur"):
        assert isinstance(e.get(field, 0), (int, float)) and e.get(field, 0) >= 0, e
    assert e.get("cname", "bad") in COLORS and e.get("bp", "e") == "e", e
    if e["ph"] == "M":
        name, kind = METADATA[e["name"]]
        assert isinstance(e["args"][name], kind), e
    if e["ph"] == "C":
        assert e["args"] and all(isinstance(v, (int, float)) and v >= 0 for v in e["args"].values()), e


def check_chrome(trace):
    """Checks all events, and returns the slices, the flows as pairs of keys, and the curves."""
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"} and trace["displayTimeUnit"] in ("ms", "ns")
    by_phase, named = collections.defaultdict(list), {}
    for e in trace["traceEvents"]:
        check_event(e)
        by_phase[e["ph"]].append(e)
        if e["ph"] == "M" and e["name"].endswith("_name"):
            assert (e["name"], e["pid"], e["tid"]) not in named, e
            named[e["name"], e["pid"], e["tid"]] = e["args"]["name"]
    rows = collections.defaultdict(list)
    for e in by_phase["X"]:
        e["worker"], e["slot"] = named["process_name", e["pid"], 0], named["thread_name", e["pid"], e["tid"]]
        rows[e["pid"], e["tid"]].append(e)
    for row in rows.values():  # slices of a row do not overlap; times have 3 decimals
        assert all(a["ts"] + a["dur"] <= b["ts"] + 0.0005 for a, b in zip(row, row[1:])), row

    def around(e):
        """Returns the slice to which a viewer binds a flow event: the last one around its time."""
        found = [s for s in rows[e["pid"], e["tid"]] if s["ts"] <= e["ts"] < max(s["ts"] + s["dur"], s["ts"] + 0.0005)]
        assert found, e
        return found[-1]
    starts, ends = ({e["id"]: e for e in by_phase[ph]} for ph in "sf")
    assert set(starts) == set(ends) and len(starts) == len(by_phase["s"]) == len(by_phase["f"])
    assert all(starts[i]["ts"] <= ends[i]["ts"] for i in starts)
    flows = [(around(starts[i])["args"]["key"], around(ends[i])["args"]["key"]) for i in starts]
    curves = collections.defaultdict(list)
    for e in by_phase["C"]:
        curves[e["name"]].append((e["ts"], e["args"]["value"]))
    return by_phase["X"], flows, curves


class Tags(html.parser.HTMLParser):
    """Reads a page. Keeps the tags that are open, and the cells of all rows of tables."""
    EMPTY = {"meta", "rect", "path"}  # tags without an end tag, or that may be self-closing

    def __init__(self):
        super().__init__()
        self.open, self.rows = [], []

    def handle_starttag(self, tag, attrs):
        if tag not in self.EMPTY:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (self.open, tag)
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


class Exports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster("--workers", "2", "--nodes", "2")
        cls.addClassCleanup(cls.c.close)
        cls.c.wait_for_workers(4)
        cls.job = cls.c.run(graph())["id"]
        cls.spans = {s["key"]: s for s in cls.c.get(f"/v1/jobs/{cls.job}/timeline")["spans"]}

    def export(self, *flags, job=None, check=True):
        """Writes both files. Returns the content of Chrome's file, and the path of Perfetto's."""
        chrome, perfetto = self.c.dir / "t.json", self.c.dir / "t.pftrace"
        self.c.cli("timeline", job or self.job, "--chrome", str(chrome), "--perfetto", str(perfetto), *flags, check=check)
        return json.loads(chrome.read_text()), perfetto

    def check_curves(self, curves, window):
        self.assertEqual(set(curves), {"tasks running", "tasks ready", "bytes of needed values"})
        for name, points in curves.items():
            times = [t for t, _ in points]
            self.assertEqual(times, sorted(set(times)), name)
            self.assertEqual(points[-1][1], 0, name)
            self.assertTrue(window[0] <= times[0] and times[-1] <= window[1], name)
        self.assertLessEqual(max(v for _, v in curves["tasks running"]), 4)
        self.assertGreaterEqual(max(v for _, v in curves["bytes of needed values"]), 5 * 800000)

    def busy_area(self, points):
        """Returns the area below the curve of running tasks, which is the run time of all tasks."""
        return sum(v * (b - a) for (a, v), (b, _) in zip(points, points[1:]))

    def check_slices(self, slices, begin, end):
        """Checks that each attempt has one slice, with its times and its worker."""
        by_key = {s["key"]: s for s in slices}
        self.assertEqual((len(slices), set(by_key)), (len(self.spans), set(self.spans)))
        for key, span in self.spans.items():
            s, t = by_key[key], span["times"]
            self.assertEqual((begin(s), end(s)), (int(t["started_ns"]), int(t["finished_ns"])), key)
            self.assertEqual((s["name"], s["worker"]), (span["op"], span["worker"]))
            self.assertEqual(s["slot"], f"slot {span['slot']}")
            self.assertEqual(s.get("cpu_ns", 0), int(span["cpu_ns"]))
            self.assertEqual(s.get("nbytes", 0), int(span["nbytes"]))
        self.assertEqual(by_key["bad"]["outcome"], "FAILED")
        self.assertNotIn("outcome", by_key["nap"])

    def wall(self):
        return sum(int(s["times"]["finished_ns"]) - int(s["times"]["started_ns"]) for s in self.spans.values())

    def test_a_chrome_file_obeys_the_trace_event_format(self):
        trace, _ = self.export()
        base = int(trace["otherData"]["begin_ns"])
        slices, flows, curves = check_chrome(trace)
        self.assertEqual(trace["otherData"]["job"], self.job)
        self.check_slices([{**s, **s["args"]} for s in slices], lambda s: base + round(s["ts"] * 1000),
                          lambda s: base + round((s["ts"] + s["dur"]) * 1000))
        self.assertEqual(collections.Counter(flows), edges())
        self.check_curves(curves, (0, float("inf")))
        self.assertAlmostEqual(self.busy_area(curves["tasks running"]) * 1000, self.wall(), delta=0.02 * self.wall())
        failed = [s for s in slices if s.get("cname") == "terrible"]
        self.assertEqual([s["args"]["key"] for s in failed], ["bad"])

    def test_a_perfetto_file_is_read_with_perfettos_own_messages(self):
        python = self.perfetto()
        _, path = self.export()
        done = subprocess.run([python, READ, path], capture_output=True, text=True, timeout=120 * SLOW)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.check_slices(found["slices"], lambda s: s["begin"], lambda s: s["end"])
        self.assertEqual(collections.Counter(map(tuple, found["flows"])), edges())
        self.assertEqual(found["open_flows"], 0)
        times = [int(t) for s in self.spans.values() for k, t in s["times"].items() if k in ("ready_ns", "finished_ns")]
        self.check_curves(found["curves"], (min(times), max(times)))

    def test_a_dead_clusters_files_have_the_same_events(self):
        trace, path = self.export()
        live, perfetto = check_chrome(trace), path.read_bytes()
        directory, job = str(self.c.dir / "c"), self.job

        def written():
            r = self.c.cli("timeline", job, "--offline", "--dir", directory, "--json", check=False)
            return not r[0] and len(json.loads(r[1])["spans"]) == len(self.spans)
        wait_for("the trace to be written", written, 30, every=0.5)
        scheduler = self.c.pids("mr-scheduler")[0]
        os.kill(scheduler, signal.SIGSTOP)
        try:
            offline, path = self.export("--offline", "--dir", directory)
        finally:
            os.kill(scheduler, signal.SIGCONT)
        dead = check_chrome(offline)
        self.assertEqual(sorted(s["args"]["key"] for s in dead[0]), sorted(s["args"]["key"] for s in live[0]))
        self.assertEqual(collections.Counter(dead[1]), collections.Counter(live[1]))
        self.assertAlmostEqual(len(path.read_bytes()), len(perfetto), delta=len(perfetto) // 4)

    def test_a_file_can_be_limited_and_go_to_stdout(self):
        out = self.c.cli("timeline", self.job, "--chrome", "-", "--spans", "7")[1]
        self.assertEqual(len(check_chrome(json.loads(out))[0]), 7)

    def test_a_file_that_cannot_be_written_is_named(self):
        for path in ("/nowhere/t.json", "/dev/full"):
            code, _, said = self.c.cli("timeline", self.job, "--chrome", path, check=False)
            self.assertEqual(code, 1, said)
            self.assertIn(path, said)
        directory = self.c.dir / "empty"
        directory.mkdir()
        code, _, _ = self.c.cli("timeline", "j1-99", "--perfetto", str(directory / "t"), check=False)
        self.assertEqual((code, list(directory.iterdir())), (5, []))

    def test_a_comparison_names_what_made_a_job_slower(self):
        slow = self.c.run(graph(nap=2.0))["id"]
        text = self.c.cli("compare", self.job, slow)[1].splitlines()
        self.assertRegex(text[-1], rf"^job {slow} took [0-9.]+ s \([0-9.]+ %\) more than job {self.job}: dependency \(sleep\) \+")
        self.assertRegex("\n".join(text), r"(?m)^sleep +wall +0\.\d+ s +2\.\d+ s +\+[0-9.]+ %$")
        told = json.loads(self.c.cli("compare", self.job, slow, "--json")[1])
        for side, job in (("before", self.job), ("after", slow)):
            p = self.c.get(f"/v1/jobs/{job}/profile")
            self.assertEqual((told[side]["job"], told[side]["wall_ns"]), (job, p["wall_ns"]))
            self.assertEqual(sum(int(r[f"{side}_ns"]) for r in told["classes"]), int(p["slot_ns"]))
            path = sum(int(r[f"{side}_ns"]) for r in told["causes"])
            self.assertAlmostEqual(path, int(p["wall_ns"]), delta=0.01 * int(p["wall_ns"]))
            ops = {r["op"]: {k: r[k][side] for k in r if k != "op"} for r in told["ops"]}
            for row in p["ops"]:
                self.assertEqual(ops[row["op"]], {k: row[k] for k in ops[row["op"]]})
        self.assertEqual((told["causes"][0]["class"], told["causes"][0]["op"]), ("dependency", "sleep"))
        self.assertGreater(int(told["causes"][0]["change_ns"]), 1e9)
        self.assertEqual(told["summary"], text[-1])
        self.assertEqual(self.c.cli("compare", self.job, "j1-99", check=False)[0], 5)

    def check_page(self, page):
        """Checks that the page needs no other file, that its policy allows nothing but its own
        style, and that it is well-formed."""
        policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page).group(1)
        style = re.search(r"<style>(.*?)</style>", page, re.S).group(1)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        self.assertIn("default-src 'none'", policy)
        self.assertIn(f"style-src 'sha256-{digest}'", policy)
        self.assertNotRegex(page, r"<script|<link|<img|src=|href=|style=|url\(|@import")
        tags = Tags()
        tags.feed(page)
        tags.close()
        self.assertEqual(tags.open, [])
        return tags.rows

    def test_a_report_is_one_page_that_needs_nothing_else(self):
        path, job = self.c.dir / "report.html", self.c.run(graph(n=3) | {"on_error": "continue"})["id"]
        tasks = {"<b>&": {"op": "sleep", "args": [0.02, 1]}}
        odd = self.c.run({"tasks": tasks, "targets": list(tasks)})["id"]
        for of, flags in ((job, ()), (job, ("--offline", "--dir", str(self.c.dir / "c"))), (odd, ())):
            if flags:
                wait_for("the trace", lambda: not self.c.cli("profile", of, *flags, check=False)[0], 30, every=0.5)
            self.c.cli("report", of, "--html", str(path), *flags)
            page = path.read_text()
            rows = self.check_page(page)
            self.assertIn(f"<h1>Job {of}</h1>", page)
            if flags:
                continue
            p = self.c.get(f"/v1/jobs/{of}/profile")
            for name, ns in p["classes"].items():
                if int(ns) >= 1e6:
                    self.assertIn([name, f"{int(ns) / 1e9:.3f}"], [r[:2] for r in rows])
            self.assertIn(["all", f"{int(p['slot_ns']) / 1e9:.3f}"], [r[:2] for r in rows])
            self.assertEqual({r["op"] for r in p["ops"]}, {r[0] for r in rows} & {r["op"] for r in p["ops"]})
            self.assertRegex(page, r'<path class="c0" d="M\d+ \d+h\d+v\d+h-\d+z')
        self.assertIn("&lt;b&gt;&amp;", page)
        self.assertNotIn("<b>", page)
        self.assertEqual(self.c.cli("report", job, "--html", "/dev/null", check=False)[0], 1)
        self.assertEqual(self.c.cli("report", job, check=False)[0], 2)

    def perfetto(self):
        """Returns the interpreter of a virtual environment with Perfetto's messages, from PyPI."""
        folder = pathlib.Path(os.environ.get("MILLRACE_BUILD", bin_dir().parent)) / "perfetto"
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            mark = folder / "installed"
            if not mark.exists() or mark.read_text() != "\n".join(PACKAGES):
                try:
                    venv.create(folder / "venv", with_pip=True, clear=True)
                except Exception as e:  # for example if python3-venv is missing
                    self.skip(f"no virtual environment: {e}")
                done = subprocess.run([folder / "venv/bin/pip", "install", "-q", "--disable-pip-version-check", *PACKAGES],
                                      capture_output=True, text=True)
                if done.returncode:
                    self.skip(f"pip cannot install {', '.join(PACKAGES)}: {done.stderr[-500:]}")
                mark.write_text("\n".join(PACKAGES))
        return folder / "venv/bin/python"

    def skip(self, why):
        missing.append(why)
        self.skipTest(why)


if __name__ == "__main__":
    done = unittest.main(verbosity=2, exit=False)
    if missing:
        print("SKIPPED: Perfetto's messages: " + "; ".join(missing), file=sys.stderr)
    sys.exit(1 if not done.result.wasSuccessful() else SKIP if missing else 0)
