#!/usr/bin/env python3
"""The account of the slots' time on real clusters. The classes of the account add up to the time of
all slots. The tests also make slots idle for a known time and cause, and find this time in the
cause's class."""
import contextlib
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
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import ROOT, Cluster, bin_dir, wait_for  # noqa: E402
from training_cases import document, ended, start, upload  # noqa: E402


def ref(key):
    return {"ref": key}


def empty(n):
    tasks = {f"n{i}": {"op": "inc", "args": [i]} for i in range(n)}
    return {"tasks": tasks, "targets": list(tasks)}


def chain(n):
    tasks = {"n0": {"op": "inc", "args": [0]}}
    for i in range(1, n):
        tasks[f"n{i}"] = {"op": "inc", "args": [ref(f"n{i - 1}")]}
    return {"tasks": tasks, "targets": [f"n{n - 1}"], "fuse": False}


def tree(n):
    tasks, level, count = {f"n{i}": {"op": "inc", "args": [i]} for i in range(n)}, [f"n{i}" for i in range(n)], 0
    while len(level) > 1:
        above = []
        for i in range(0, len(level) - 1, 2):
            tasks[f"a{count}"] = {"op": "add", "args": [ref(level[i]), ref(level[i + 1])]}
            above.append(f"a{count}")
            count += 1
        level = above + level[len(level) // 2 * 2:]
    return {"tasks": tasks, "targets": level}


def all_to_all(n, floats):
    tasks = {f"m{i}": {"op": "array.full", "args": [[floats], float(i)]} for i in range(n)}
    for i in range(n):
        tasks[f"r{i}"] = {"op": "array.reduce_partial", "args": [ref(f"m{i}"), "sum"]}
        for k in range(n):
            tasks[f"s{i}-{k}"] = {"op": "array.add", "args": [ref(f"m{i}"), ref(f"m{k}")]}
    return {"tasks": tasks, "targets": [k for k in tasks if k[0] != "m"]}


def naps(count, seconds, **options):
    tasks = {f"n{i}": {"op": "sleep", "args": [seconds, i], **options} for i in range(count)}
    return {"tasks": tasks, "targets": list(tasks)}


class Case(unittest.TestCase):
    slots = 2

    def account(self, p):
        """Returns the seconds of each class. Checks that they add up to the time of all slots, and
        that at most 1 % is unknown."""
        classes = {name: int(ns) / 1e9 for name, ns in p["classes"].items()}
        wall, total = int(p["wall_ns"]) / 1e9, sum(classes.values())
        self.assertEqual(sum(int(ns) for ns in p["classes"].values()), int(p["slot_ns"]))
        self.assertAlmostEqual(total, wall * self.slots, delta=0.01 * wall * self.slots, msg=p)
        self.assertLessEqual(classes["unknown"], 0.01 * total, p)
        return classes

    def profile(self, c, job):
        p = c.get(f"/v1/jobs/{job}/profile")
        self.assertEqual(int(p.get("not_recorded", 0)), 0)
        path = sum(int(ns) for ns in p["critical_path"]["classes"].values())
        if not p["critical_path"].get("is_cut"):
            self.assertAlmostEqual(path, int(p["wall_ns"]), delta=0.01 * int(p["wall_ns"]))
        return p

    def done(self, c, graph):
        job = c.run(graph)
        self.assertEqual(job["state"], "JOB_DONE", job)
        return self.profile(c, job["id"])

    def planted(self, classes, name, seconds):
        """Checks that the class of a planted cause has 90 % of `seconds`, the cause's slot time."""
        self.assertGreaterEqual(classes[name], 0.9 * seconds, (name, classes))

    def cluster(self, workers, *flags, nodes=1, **options):
        """Returns a cluster whose workers have all joined."""
        c = Cluster("--workers", str(workers), "--nodes", str(nodes), *flags, **options)
        self.addCleanup(c.close)
        c.wait_for_workers(workers * nodes)
        return c


class Shapes(Case):
    def test_the_classes_of_every_shape_add_up(self):
        c = self.cluster(2)
        for name, graph in (("empty", empty(100000)), ("chain", chain(10000)), ("tree", tree(5000)), ("naps", naps(40, 0.01))):
            with self.subTest(name):
                p = self.done(c, graph)
                self.account(p)
                self.assertEqual(sum(int(r["tasks"]) for r in p["ops"]), len(graph["tasks"]))
        glm = json.loads((ROOT / "examples" / "glm.json").read_text()) if (ROOT / "examples" / "glm.json").exists() else None
        if glm:
            with self.subTest("glm"):
                self.account(self.done(c, glm))

    def test_transfers_between_two_nodes(self):
        c = self.cluster(1, nodes=2)
        classes = self.account(self.done(c, all_to_all(6, 200000)))
        self.assertGreater(classes["transfer"] + classes["input"] + classes["blocked"], 0)

    def test_a_graph_that_spills(self):
        """The first job makes values of 160 MiB, of which 64 MiB fit in memory. The tasks of the second
        job read each value once, so they wait until the store has read most of them back from disk."""
        c = self.cluster(2, "--memory", "64MiB")
        n = 20
        tasks = {f"x{i}": {"op": "array.full", "args": [[1 << 20], float(i)]} for i in range(n)}
        tasks["all"] = {"op": "array.concat", "args": [[ref(f"x{i}") for i in range(3)]]}
        self.account(self.done(c, {"tasks": tasks, "targets": list(tasks), "namespace": "large"}))
        tasks = {f"s{i}": {"op": "array.reduce_partial", "args": [ref(f"x{i}"), "sum"]} for i in range(n)}
        job = c.run({"tasks": tasks, "targets": list(tasks), "namespace": "large"})["id"]
        restore = self.account(self.profile(c, job))["restore"]
        spans = c.get(f"/v1/jobs/{job}/timeline")["spans"]
        self.assertLessEqual(set(tasks), {s["key"] for s in spans})
        for s in spans:
            self.assertLessEqual(int(s.get("restore_ns", 0)), int(s.get("input_ns", 0)), s)
        self.assertGreater(restore, 0)
        self.assertLessEqual(restore, sum(int(s.get("restore_ns", 0)) for s in spans) / 1e9 + 1e-3)

    @staticmethod
    def executors_cpu(c):
        """Returns the processor time of all executor threads in seconds, from the kernel."""
        ns = 0
        for pid in c.pids("mr-worker"):
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                if (task / "comm").read_text().startswith("exec"):
                    ns += int((task / "schedstat").read_text().split()[0])
        return ns / 1e9

    def test_short_tasks_are_busy_for_as_long_as_their_executors_use_the_processor(self):
        """A task takes less than 1 us, so workers measure the processor time of many tasks at once."""
        c = self.cluster(2)
        before = self.executors_cpu(c)
        classes = self.account(self.done(c, empty(100000)))
        used = self.executors_cpu(c) - before
        computed = sum(classes[k] for k in ("compute", "input", "output"))
        self.assertLessEqual(computed, used * 1.1)
        self.assertGreaterEqual(computed + classes["blocked"], used * 0.9)

    def test_computing_agrees_with_the_processor_time_of_the_executors(self):
        """The processor time is that of the threads in /proc. Each task takes more than 100 us."""
        c = self.cluster(2)
        tasks = {f"x{i}": {"op": "array.random", "args": [[400, 400], i]} for i in range(4)}
        for i in range(200):
            tasks[f"m{i}"] = {"op": "array.matmul", "args": [ref(f"x{i % 4}"), ref(f"x{(i + 1) % 4}")]}
            tasks[f"s{i}"] = {"op": "array.reduce_partial", "args": [ref(f"m{i}"), "sum"]}
        before = self.executors_cpu(c)
        classes = self.account(self.done(c, {"tasks": tasks, "targets": [f"s{i}" for i in range(200)]}))
        used = self.executors_cpu(c) - before
        busy = sum(classes[k] for k in ("compute", "input", "output"))
        self.assertLessEqual(classes["compute"], used * 1.03)
        self.assertGreaterEqual(busy, used * 0.9)


class Training(Case):
    def test_a_training_with_four_roles(self):
        """Each role runs on a thread of its own, beside the two slots. The worker roles compute,
        fetch and send; the parameter server and the scorer wait for them."""
        c = self.cluster(2)
        upload(c, train=20000, validation=1000)
        # a batch that is large enough makes the time of computing visible
        t = ended(c, start(c, document("sync", data={"batch": 512}, stop={"steps": 400})))
        self.assertEqual(t["state"], "TRAINING_DONE", t)
        p = c.get(f"/v1/trainings/{t['id']}/profile")
        self.assertEqual({r["op"]: int(r["tasks"]) for r in p["ops"]},
                         {"train.ps": 1, "train.worker": 2, "train.scorer": 1})
        classes = {name: int(ns) / 1e9 for name, ns in p["classes"].items()}
        roles = sum(int(r["wall_ns"]) + int(r["queue_ns"]) for r in p["ops"]) / 1e9
        wall, total = int(p["wall_ns"]) / 1e9, sum(classes.values())
        self.assertEqual(sum(int(ns) for ns in p["classes"].values()), int(p["slot_ns"]))
        self.assertAlmostEqual(total, wall * self.slots + roles, delta=0.01 * total, msg=p)
        self.assertLessEqual(classes["unknown"], 0.01 * total, p)
        for name in ("compute", "feed", "pull", "push", "wait"):
            self.assertGreater(classes[name], 0, (name, classes))
        spans = [s for s in c.get(f"/v1/jobs/{t['role_job']}/timeline")["spans"] if s["op"] != "train.scorer"]
        self.assertEqual(len(spans), 3)
        for s in spans:
            parts = sum(int(s.get(name, 0)) for name in ("feed_ns", "pull_ns", "push_ns", "wait_ns", "cpu_ns", "late_ns"))
            ran = int(s["times"]["finished_ns"]) - int(s["times"]["started_ns"])
            self.assertGreater(parts, 0.5 * ran, s)
        self.assertEqual(json.loads(c.cli("profile", t["id"], "--json")[1])["classes"], p["classes"])


class Outliving(Case):
    def offline(self, c, job):
        return json.loads(c.cli("profile", job, "--offline", "--dir", str(c.dir / "c"), "--json", "--steps", "1000")[1])

    def written(self, c, job):
        """The profile of a job that has ended. Its trace and the record of its end are in Redis, so that both
        ways to read it agree."""
        def agreed():
            live, there = self.profile(c, job), self.offline(c, job)
            return self.account(live) == self.account(there) and live
        return wait_for("the trace to be in Redis", agreed)

    def test_a_profile_is_read_without_the_cluster(self):
        c = self.cluster(2)
        job = c.run(naps(20, 0.01))["id"]
        live = self.written(c, job)
        os.kill(c.pids("mr-scheduler")[0], signal.SIGSTOP)
        try:
            there = self.offline(c, job)
        finally:
            os.kill(c.pids("mr-scheduler")[0], signal.SIGCONT)
        self.assertEqual(self.account(there), self.account(live))
        self.assertEqual(there["critical_path"]["steps"], live["critical_path"]["steps"])

    def test_a_job_that_the_scheduler_died_in(self):
        """The account has all that ran until a second before the scheduler was killed."""
        c = self.cluster(2)
        job = c.submit(naps(400, 0.02))
        wait_for("half of the tasks", lambda: int(c.job(job)["counts"]["done"]) >= 200)
        directory = str(c.dir / "c")
        os.kill(c.pids("mr-scheduler")[0], signal.SIGKILL)
        there = json.loads(c.cli("profile", job, "--offline", "--dir", directory, "--json")[1])
        self.assertGreater(int(there["wall_ns"]) / 1e9, 1.0)
        self.assertGreater(self.account(there)["blocked"], 1.0)


    def test_the_page_of_a_cluster_that_was_killed_with_its_redis(self):
        """The page shows the last job with its account. The cluster's directory is not changed."""
        c = self.cluster(2)
        job = c.run(naps(40, 0.01))["id"]
        live = self.account(self.written(c, job))
        directory = c.dir / "c"
        redis = c.pids("redis-server")[0]
        os.kill(c.up.pid, signal.SIGKILL)  # then the kernel kills the cluster's processes
        c.up.wait()
        wait_for("Redis to be dead", lambda: not pathlib.Path(f"/proc/{redis}").exists())

        def content():
            return {str(f): f.stat().st_mtime_ns for part in ("redis", "trace") for f in (directory / part).rglob("*")}
        before = content()
        self.assertEqual(self.account(self.offline(c, job)), live)
        page = subprocess.Popen([bin_dir() / "millrace", "dashboard", "--offline", str(directory)], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)
        try:
            url = page.stdout.readline().strip().rstrip("/")
            with urllib.request.urlopen(f"{url}/v1/jobs", timeout=30) as r:
                self.assertEqual([j["state"] for j in json.load(r)["jobs"] if j["id"] == job], ["JOB_DONE"])
            with urllib.request.urlopen(f"{url}/v1/jobs/{job}/profile", timeout=30) as r:
                self.assertEqual(self.account(json.load(r)), live)
            with urllib.request.urlopen(f"{url}/v1/jobs/{job}/whatif?slots=1", timeout=60) as r:
                p = json.load(r)
                self.assertGreater(int(p["predicted"]["wall_ns"]), int(p["recorded"]["wall_ns"]))
        finally:
            page.send_signal(signal.SIGINT)
            self.assertEqual(page.wait(60), 0)
            page.stdout.close()
        self.assertEqual(content(), before)


class WhatIf(Case):
    def whatif(self, c, job, *flags):
        p = json.loads(c.cli("whatif", job, "--json", *flags)[1])
        for part in (p["replayed"], p["predicted"]):
            self.assertEqual(sum(int(ns) for ns in part["classes"].values()), int(part["wall_ns"]) * part["slots"])
            self.assertGreaterEqual(int(part["wall_ns"]), int(part["chain_ns"]))
        return p

    def wall(self, c, job, *flags):
        return int(self.whatif(c, job, *flags)["predicted"]["wall_ns"]) / 1e9

    def test_a_job_on_other_slots(self):
        """Predictions are compared with the measured run times of the sleeping tasks, because a
        busy machine makes these times longer than planned."""
        c = self.cluster(1, "--threads", "2")
        job = c.run(naps(64, 0.02))["id"]
        busy = sum(int(s["times"]["finished_ns"]) - int(s["times"]["started_ns"]) for s in c.get(f"/v1/jobs/{job}/timeline")["spans"]) / 1e9
        p = self.whatif(c, job)
        self.assertEqual((p["recorded"]["slots"], p["replayed"]["slots"]), (2, 2))
        # The replay shares the processors anew, so the times in which the kernel ran other threads may
        # become shorter.
        self.assertGreaterEqual(self.wall(c, job, "--slots", "1"), busy * 0.9)
        for slots in (4, 16):
            wall = self.wall(c, job, "--slots", str(slots))
            self.assertGreaterEqual(wall, busy * 0.9 / slots)
            self.assertLess(wall, int(p["recorded"]["wall_ns"]) / 1e9 * 4 / slots)
        self.assertLess(self.wall(c, job, "--op-speed", "sleep=2"), 0.75 * int(p["recorded"]["wall_ns"]) / 1e9)
        self.assertIn("predicted:", c.cli("whatif", job, "--slots", "4")[1])

        there = self.whatif(c, job, "--slots", "4", "--offline", "--dir", str(c.dir / "c"))
        self.assertEqual(there, self.whatif(c, job, "--slots", "4"))

        self.assertGreater(int(c.get(f"/v1/jobs/{job}/profile")["processors"]), 0)

        graph = naps(4, 0.01)
        for t in graph["tasks"].values():
            t["workers"] = "worker-0-0"
        job = c.run(graph)["id"]
        self.assertIn("warning: 4 tasks name workers", c.cli("whatif", job)[1])
        self.assertEqual(self.whatif(c, job), self.whatif(c, job, "--offline", "--dir", str(c.dir / "c")))

        job = c.run(chain(500))["id"]
        free = self.whatif(c, job, "--free", "scheduler,handoff")
        self.assertGreater(int(free["predicted"]["chain_ns"]), 0)
        for flags, why in ((("--slots", "0"), "--slots"), (("--processors", "0"), "--processors"), (("--free", "lunch"), "--free: expected"), (("--bandwidth", "2"), "--bandwidth: expected x"),
                           (("--op-speed", "inc=0"), "--op-speed: expected"), (("--op-speed", "dec=2"), "no task of the job")):
            code, _, err = c.cli("whatif", job, *flags, check=False)
            self.assertNotEqual(code, 0)
            self.assertIn(why, err)
        self.over_http(c, job)
        self.one_at_a_time(c)

    def over_http(self, c, job):
        """Jobs.WhatIf predicts what the command line predicts, and refuses wrong requests."""
        for flags, query in ((("--slots", "4"), "slots=4"), (("--bandwidth", "x2", "--processors", "1"), "bandwidth=2&processors=1"),
                             (("--free", "scheduler,handoff", "--op-speed", "inc=2"), "free=scheduler&free=handoff&op_speed=inc%3D2")):
            there, here = self.whatif(c, job, *flags), c.get(f"/v1/jobs/{job}/whatif?{query}")
            for part in ("recorded", "replayed", "predicted"):
                for name in ("wall_ns", "slots", "classes"):
                    self.assertEqual(here[part][name], there[part][name] if name != "slots" else str(there[part][name]), (query, part))
            for part in ("replayed", "predicted"):
                self.assertEqual(here[part]["chain_ns"], there[part]["chain_ns"])
                self.assertEqual(here[part]["critical_path"], there[part]["critical_path"]["classes"])
            self.assertEqual(here["restricted"], there["restricted"])
        running = c.submit(naps(1, 600))
        for path, status, why in ((f"{job}/whatif?slots=0", 400, "slots"), (f"{job}/whatif?bandwidth=0", 400, "bandwidth"), (f"{job}/whatif?processors=0", 400, "processors"), (f"{job}/whatif?free=lunch", 400, "free: expected"),
                                  (f"{job}/whatif?op_speed=inc", 400, "op_speed: expected NAME=F"), (f"{job}/whatif?op_speed=dec%3D2", 400, "no task of the job has the operator"),
                                  (f"{job}/whatif?slots=1048576", 400, "slots: at most 1024"), (f"{running}/whatif", 400, "is not over"), ("j1-999/whatif", 404, "no job j1-999")):
            got, _, body = c.request("GET", f"/v1/jobs/{path}")
            self.assertEqual(got, status, body)
            self.assertIn(why, json.loads(body)["message"])
        c.call("POST", f"/v1/jobs/{running}:cancel", {})

    def one_at_a_time(self, c):
        """The cluster works while a prediction is being made, refuses a second one, and ends one
        whose caller is gone."""
        job, scheduler = c.run(empty(20000))["id"], c.pids("mr-scheduler")[0]

        def predictor():
            """The program that makes the prediction, once it has lowered its priority."""
            for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
                with contextlib.suppress(OSError):
                    name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
                    pid = int(stat.parent.name)
                    if name == "mr-predictor" and int(rest.split()[1]) == scheduler and os.getpriority(os.PRIO_PROCESS, pid) == 19:
                        return pid

        def caught():
            pid = wait_for("mr-predictor", predictor, every=0.001)
            os.kill(pid, signal.SIGSTOP)
            return pid

        answers = []
        asking = threading.Thread(target=lambda: answers.append(c.request("GET", f"/v1/jobs/{job}/whatif")))
        asking.start()
        pid = caught()
        status, headers, body = c.request("GET", f"/v1/jobs/{job}/whatif")
        self.assertEqual((status, json.loads(body)["code"]), (429, 8))
        self.assertIn("Retry-After", headers)
        self.assertEqual(c.run(naps(2, 0.01))["state"], "JOB_DONE")
        self.assertEqual(pathlib.Path(f"/proc/{pid}/oom_score_adj").read_text().strip(), "1000")
        self.assertNotIn(c.secret(), pathlib.Path(f"/proc/{pid}/cmdline").read_text())
        os.kill(pid, signal.SIGCONT)
        asking.join()
        self.assertEqual(answers[0][0], 200, answers)

        gone = c.connect(60)
        gone.request("GET", f"/v1/jobs/{job}/whatif")
        pid = caught()
        gone.close()
        wait_for("mr-predictor to be killed", lambda: not pathlib.Path(f"/proc/{pid}").exists())
        wait_for("the next prediction", lambda: c.request("GET", f"/v1/jobs/{job}/whatif?slots=1")[0] == 200, every=0.2)

    def test_a_job_with_transfers_between_two_nodes(self):
        c = self.cluster(1, nodes=2)
        job = c.run(all_to_all(6, 200000))["id"]
        p = self.whatif(c, job, "--free", "transfer")
        self.assertEqual(int(p["predicted"]["classes"]["transfer"]), 0)
        self.assertGreaterEqual(int(p["replayed"]["wall_ns"]), int(p["predicted"]["chain_ns"]))


class Causes(Case):
    @classmethod
    def setUpClass(cls):
        cls.c = Cluster("--workers", "2", "--resource", "lamp=1", "--lease", "20s")
        cls.c.wait_for_workers(2)

    @classmethod
    def tearDownClass(cls):
        cls.c.close()

    def window(self, body):
        """Returns the account of the time that `body` takes."""
        begun = time.time_ns()
        body()
        return self.account(self.c.get(f"/v1/account?from_ns={begun}&until_ns={time.time_ns()}"))

    def test_a_straggler_among_equals(self):
        graph = naps(40, 0.02)
        graph["tasks"]["n39"]["args"][0] = 1.0
        # one slot runs the straggler for a second, and the other slot has nothing else to run
        self.planted(self.account(self.done(self.c, graph)), "imbalance", 0.95)

    def test_a_client_that_sleeps_between_iterations(self):
        def run():
            for i in range(10):
                time.sleep(0.2 if i else 0)
                self.assertEqual(self.c.run(naps(10, 0.01))["state"], "JOB_DONE")
        run()
        self.planted(self.window(run), "client", 9 * 0.2 * 2)

    def test_namespaces_share_the_time_of_the_slots(self):
        """Jobs of two namespaces and a job without a namespace run in a window. Each account has the
        time of all slots. The time in which slots ran tasks of the account's own jobs adds up."""
        begun = time.time_ns()
        more = {f"m{i}": {"op": "inc", "args": [i]} for i in range(50)}
        for graph in ({**naps(20, 0.01), "namespace": "left"}, {"tasks": more, "targets": list(more), "namespace": "left"},
                      {**naps(10, 0.01), "namespace": "right & far"}):
            self.done(self.c, graph)
        alone = self.done(self.c, naps(5, 0.01))
        window = {"from_ns": begun, "until_ns": time.time_ns()}

        def path(**ask):
            return f"/v1/account?{urllib.parse.urlencode({**window, **ask})}"

        def own(p):
            return (int(p["slot_ns"]) * (1 - p["white_space"]) - int(p.get("other_ns", 0))) / 1e9
        every, left, right = (self.c.get(path(**ask)) for ask in ({}, {"namespace": "left"}, {"namespace": "right & far"}))
        for p in (left, right):
            self.assertEqual(self.account(p), self.account(every))
            self.assertNotIn("critical_path", p)
        self.assertEqual(int(every.get("other_ns", 0)), 0)
        self.assertEqual({r["op"]: int(r["tasks"]) for r in left["ops"]}, {"sleep": 20, "inc": 50})
        self.assertEqual({r["op"]: int(r["tasks"]) for r in right["ops"]}, {"sleep": 10})
        self.assertGreaterEqual(own(left), 20 * 0.01)
        self.assertGreaterEqual(own(right), 10 * 0.01)
        self.assertAlmostEqual(own(every), own(left) + own(right) + own(alone), delta=0.001)
        status, _, answer = self.c.request("GET", path(namespace="nowhere"))
        self.assertEqual(status, 404)
        self.assertIn("namespace: no job", answer.decode())

        told = self.c.cli("profile", "--namespace", "right & far", "--from", str(begun), "--to", str(window["until_ns"]), "--json")
        self.assertEqual(json.loads(told[1]), right)
        text = self.c.cli("profile", "--namespace", "left", "--last", "10m")[1]
        self.assertRegex(text, r"^namespace left: .* slot time.*\n.* s of it went into tasks of other jobs\n")
        for flags, why in ((("j1-1", "--namespace", "left"), "--namespace cannot be used with the argument"),
                           (("j1-1", "--to", "7"), "--to cannot be used with the argument"), (("--from", "7", "--to", "7"), "from_ns: expected")):
            code, _, err = self.c.cli("profile", *flags, check=False)
            self.assertNotEqual(code, 0)
            self.assertIn(why, err)

    def test_a_resource_that_only_one_worker_has(self):
        """Only one of the two slots may run the tasks. Each task sleeps for 20 ms."""
        graph = naps(60, 0.02, resources={"lamp": 1}, workers=[self.c.workers()[0]["name"]])
        self.planted(self.account(self.done(self.c, graph)), "restricted", 59 * 0.02)

    def paused(self, pid, seconds):
        """Stops a process, and returns a timer that lets it go on."""
        os.kill(pid, signal.SIGSTOP)
        timer = threading.Timer(seconds, lambda: os.kill(pid, signal.SIGCONT))
        timer.start()
        return timer

    def pausing(self, pid, graph, seconds):
        """Returns the account of a job. When half of its tasks are done, a process is stopped."""
        job = self.c.submit(graph)
        wait_for("half of the tasks", lambda: int(self.c.job(job)["counts"]["done"]) >= len(graph["tasks"]) // 2)
        self.paused(pid, seconds).join()
        self.assertEqual(self.c.wait(job)["state"], "JOB_DONE")
        return self.account(self.profile(self.c, job))

    def test_a_worker_that_is_stopped(self):
        graph = naps(400, 0.01)  # the other worker has tasks until the pause is over
        self.planted(self.pausing(self.c.pids("mr-worker")[0], graph, 1.5), "stopped", 1.5)

    def test_a_scheduler_that_is_stopped(self):
        """Two chains of tasks, which are not fused. No slot can go on without the scheduler."""
        tasks = {f"n0-{k}": {"op": "sleep", "args": [0.01, k]} for k in range(2)}
        for i in range(1, 60):
            for k in range(2):
                tasks[f"n{i}-{k}"] = {"op": "sleep", "args": [0.01, ref(f"n{i - 1}-{1 - k}")]}
        graph = {"tasks": tasks, "targets": list(tasks), "fuse": False}
        self.planted(self.pausing(self.c.pids("mr-scheduler")[0], graph, 1.5), "decide", 2 * 1.5)

    def test_redis_that_stops_while_a_job_is_submitted(self):
        """The tasks run at once. The client learns of the job and its end when Redis goes on."""
        timer = self.paused(self.c.pids("redis-server")[0], 3)
        try:
            job = self.done(self.c, naps(10, 0.01))
        finally:
            timer.join()
        self.planted(self.account(job), "journal", 2 * 2.8)


class SlowSocket(threading.Thread):
    """A proxy in the place of a UNIX socket. It passes on the server's bytes at `rate` bytes a
    second, and the clients' bytes at once."""

    def __init__(self, path, rate):
        super().__init__(daemon=True)
        self.server, self.rate = f"{path}.slow", rate
        os.rename(path, self.server)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.start()

    def run(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.server)
            for source, target, rate in ((client, server, None), (server, client, self.rate)):
                threading.Thread(target=self.pass_on, args=(source, target, rate), daemon=True).start()

    def pass_on(self, source, target, rate):
        due = time.monotonic()
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
                if rate:
                    due = max(due, time.monotonic() - 0.01) + len(data) / rate
                    time.sleep(max(0, due - time.monotonic()))
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class SlowLink(Case):
    def test_a_slow_link_between_two_nodes(self):
        """One node makes 8 values of 2 MiB, which a task on the other node needs. The proxy passes on
        10 MB a second, so all values take 1.7 s. Without the proxy, they take a few milliseconds."""
        c = self.cluster(1, nodes=2)
        at = {w["node"]: w["name"] for w in c.workers()}
        tasks = {}
        for i in range(8):
            tasks[f"x{i}"] = {"op": "array.full", "args": [[1 << 18], float(i)], "workers": [at["node-0"]]}
        tasks["all"] = {"op": "array.concat", "args": [[ref(f"x{i}") for i in range(8)]], "workers": [at["node-1"]]}
        graph = {"tasks": tasks, "targets": ["all"]}
        run, = pathlib.Path(c.dir).rglob("store-0.sock")
        slow = SlowSocket(str(run), 10e6)
        self.addCleanup(slow.listener.close)
        classes = self.account(self.done(c, graph))
        self.planted(classes, "transfer", 2 * 8 * (1 << 21) / 10e6)


class ShortMemory(Case):
    slots = 4

    def test_memory_in_which_only_half_of_the_tasks_have_room(self):
        """The first task of each of 48 chains makes a value of 7 MiB. The second task uses the value for
        0.2 s. A store of 16 MiB has room for two such values, so two of the four slots stay idle."""
        graph = {"tasks": {}, "targets": []}
        for i in range(48):
            graph["tasks"][f"x{i}"] = {"op": "array.full", "args": [[7 << 17], float(i)]}
            graph["tasks"][f"r{i}"] = {"op": "test.record", "args": [ref(f"x{i}"), 0.2, 1]}
            graph["targets"].append(f"r{i}")

        def run(memory):
            with Cluster("--workers", "4", "--memory", memory, "--plugin", os.environ["MILLRACE_TEST_PLUGIN"]) as c:
                c.wait_for_workers(4)
                # from this job, the scheduler learns the size of the results
                self.assertEqual(c.run({"tasks": {k: graph["tasks"][k] for k in ("x0", "x1")}, "targets": ["x0", "x1"]})["state"],
                                 "JOB_DONE")
                return self.account(self.done(c, graph))
        self.assertLess(run("512MiB")["memory"], 0.5)
        # half of the slots have nothing to do while the other half naps for 48 * 0.2 s
        self.planted(run("16MiB"), "memory", 48 * 0.2)


class Processes(Case):
    def test_a_plugin_that_takes_a_second_to_load(self):
        begun = time.time_ns()
        c = self.cluster(2, "--plugin", os.environ["MILLRACE_TEST_PLUGIN"], env={"MILLRACE_TEST_LOAD_MS": "1000"})
        p = c.get(f"/v1/account?from_ns={begun}&until_ns={time.time_ns()}")
        self.planted({name: int(ns) / 1e9 for name, ns in p["classes"].items()}, "start_up", 2 * 1.0)

    def test_a_hog_of_the_processor_at_real_time_priority(self):
        """The worker may use one processor. Another process (the hog) takes a second of this
        processor's time. The kernel counts how long the executor's thread was ready to run and did not run."""
        try:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        except PermissionError:
            self.skipTest("real-time priority needs root")
        cpu = max(os.sched_getaffinity(0))
        program = f"""import os, sys, time
os.sched_setaffinity(0, [{cpu}])
print("ready", flush=True)
sys.stdin.readline()
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
end = time.process_time() + 1.0
while time.process_time() < end: pass"""
        tasks = {f"x{i}": {"op": "array.random", "args": [[500, 500], i]} for i in range(2)}
        for i in range(600):
            tasks[f"m{i}"] = {"op": "array.matmul", "args": [ref("x0"), ref("x1")]}
            tasks[f"s{i}"] = {"op": "array.reduce_partial", "args": [ref(f"m{i}"), "sum"]}
        graph = {"tasks": tasks, "targets": [k for k in tasks if k[0] == "s"]}
        self.slots = 1
        c = self.cluster(1)
        threads = list(pathlib.Path(f"/proc/{c.pids('mr-worker')[0]}/task").iterdir())
        for thread in threads:
            os.sched_setaffinity(int(thread.name), [cpu])
        executor = next(t for t in threads if (t / "comm").read_text().startswith("exec"))

        def delayed():
            return int((executor / "schedstat").read_text().split()[1]) / 1e9
        before = delayed()
        with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as hog:
            self.assertEqual(hog.stdout.readline(), b"ready\n")  # so the hog begins at once, while tasks are left
            job = c.submit(graph)
            wait_for("tasks", lambda: int(c.job(job)["counts"]["done"]) >= 100)
            hog.communicate(b"\n")
        self.assertEqual(hog.returncode, 0)
        self.assertEqual(c.wait(job)["state"], "JOB_DONE")
        lost = delayed() - before
        self.assertGreater(lost, 0.4)
        self.planted(self.account(self.profile(c, job)), "preempted", lost)


if __name__ == "__main__":
    unittest.main(verbosity=2)
