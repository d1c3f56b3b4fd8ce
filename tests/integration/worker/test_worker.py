"""A real mr-worker with a simulated scheduler and, for some tests, a real mr-objectstore."""
import contextlib
import os
import pathlib
import signal
import sys
import time
import unittest

import rig
from rig import pack

OK, ERROR, CANCELLED, TIMEOUT, BAD_ARGUMENT, LOST_INPUT, RETURNED = range(7)


class Case(unittest.TestCase):
    flags = ("--threads=2",)

    def setUp(self):
        self.r = rig.Rig()
        self.addCleanup(self.r.close)

    def run(self, result=None):
        before = len(result.failures) + len(result.errors) if result else 0
        self.log = ""
        super().run(result)
        if result and len(result.failures) + len(result.errors) > before:
            print(self.id(), self.log, file=sys.stderr)

    def tearDown(self):
        self.log = self.r.log()

    def begin(self, *flags, store=False, **more):
        extra = self.r.store() if store else []
        self.w = self.r.worker(*self.flags, *flags, *extra, **more)
        s = self.r.session()
        nodes = [(s.register.store_address, s.register.store)] if store else []
        s.registered(nodes=nodes)
        return s


class Session(Case):
    def test_register_describes_the_worker(self):
        s = self.begin("--resource=gpu=1.5", "--node=here")
        g = s.register
        self.assertEqual((g.name, g.node, g.slots, g.pid), ("w", "here", 2, self.w.pid))
        self.assertEqual(dict(g.resources), {"gpu": 1.5})
        self.assertEqual(list(g.runtimes), ["native"])
        self.assertEqual(g.protocol_version, 2)
        inc = [o for o in g.ops if o.name == "inc"][0]
        self.assertEqual((inc.args_min, inc.deterministic), (1, True))
        s.wait("two heartbeats", lambda: len(s.beats) >= 2)
        self.assertGreater(s.beats[-1].memory_used_bytes, 0)

    def test_columns_of_what_is_usual_may_be_absent(self):
        s = self.begin()
        s.plain((0, [1]), (1, [2]), (2, [3]))
        self.assertEqual([s.value(i) for i in range(3)], [2, 3, 4])

    def test_a_graph_of_tiny_tasks_is_counted_down_here(self):
        s = self.begin()
        s.tasks((0, "inc", [1], []), (1, "inc", [("in", 0)], [0]), (2, "inc", [("in", 0)], [0]),
                (3, "add", [("in", 0), ("in", 1)], [1, 2]))
        self.assertEqual(s.value(3), 6)
        row = s.result(0)
        self.assertGreater(row["started"], 0)
        self.assertGreater(row["duration"], 0)

    def test_a_chain_of_a_thousand(self):
        s = self.begin()
        s.tasks((0, "inc", [0], []), *[(i, "inc", [("in", 0)], [i - 1]) for i in range(1, 1000)])
        self.assertEqual(s.value(999), 1000)
        self.assertEqual(len(s.done), 1000)

    def test_inline_inputs_come_by_message(self):
        s = self.begin()
        s.tasks((5, "add", [("in", 0), ("in", 1)], [3, 4]))
        time.sleep(0.1)
        s.run()
        self.assertNotIn(5, s.done)
        blob = pack(40) + pack(2)
        s.send(values=self.r.Values(runs=[self.r.Run(job=rig.JOB, count=2)], index=[3, 4], inline_bytes=[1, 1],
                                    inline=blob))
        self.assertEqual(s.value(5), 42)

    def test_failures_say_what_and_with_what(self):
        s = self.begin()
        s.tasks((0, "div", [1, 0], []), (1, "inc", ["x"], []), (2, "inc", [1, 2, 3], []), (3, "nosuch", [], []),
                (4, "inc", b"\xc1", []))
        row = s.result(0)
        self.assertIn(row["outcome"], (ERROR, BAD_ARGUMENT))
        self.assertIn("div", row["failure"].message)
        self.assertEqual(row["failure"].arguments, "1, 0")
        self.assertEqual(s.result(1)["outcome"], BAD_ARGUMENT)
        self.assertEqual(s.result(2)["outcome"], BAD_ARGUMENT)
        self.assertEqual(s.result(3)["outcome"], BAD_ARGUMENT)
        self.assertEqual(s.result(4)["outcome"], BAD_ARGUMENT)

    def test_cancel_stops_a_running_task(self):
        s = self.begin()
        s.tasks((0, "sleep", [60, 1], []), (1, "sleep", [60, 1], []), (2, "sleep", [60, 1], []))
        s.wait("it runs", lambda: s.beats and s.beats[-1].running == 2)
        s.send(cancel=s.refs([(0, 1), (2, 1), (9, 1)]))
        self.assertEqual(s.result(0)["outcome"], CANCELLED)
        self.assertEqual(s.result(2)["outcome"], CANCELLED)
        s.wait("unknown", lambda: s.unknown == [(9, 1)])
        self.assertNotIn(1, s.done)

    def test_timeout(self):
        s = self.begin()
        s.tasks((0, "sleep", [60, 1], [], {"timeout_ns": 2 * 10**8}))
        row = s.result(0)
        self.assertEqual(row["outcome"], TIMEOUT)
        self.assertEqual(row["failure"].code, 4)

    def test_steal(self):
        s = self.begin()
        s.tasks(*[(i, "sleep", [1, i], []) for i in range(3)], (7, "inc", [("in", 0)], [6]))
        s.wait("it runs", lambda: s.beats and s.beats[-1].running == 2)
        s.send(steal=s.refs([(0, 1), (2, 1), (7, 1), (8, 1)]))
        s.wait("answers", lambda: len(s.given) + len(s.started) + len(s.unknown) == 4)
        self.assertEqual(sorted(s.given), [(2, 1), (7, 1)])
        self.assertEqual(s.started, [(0, 1)])
        self.assertEqual(s.unknown, [(8, 1)])

    def test_a_malformed_message_ends_the_session_and_the_worker_returns(self):
        s = self.begin()
        s.send(tasks=self.r.Tasks(runs=[self.r.Run(job=1, count=3)], index=[1]))
        self.assertEqual(self.r.session().register.incarnation, 41)
        self.assertIsNone(self.w.poll())


class Link(Case):
    def test_work_goes_on_while_the_scheduler_is_away(self):
        s = self.begin()
        s.tasks((0, "sleep", [0.5, 5], []), (1, "inc", [("in", 0)], [0]), (2, "inc", [("in", 0)], [77]))
        s.wait("it runs", lambda: s.beats and s.beats[-1].running == 1)
        self.r.server.stop(0).wait()
        time.sleep(0.8)
        self.r.listen()
        s = self.r.session()
        self.assertEqual(s.register.incarnation, 41)
        self.assertEqual(sorted(s.register.holding.index), [0, 1])
        self.assertEqual(list(s.register.queued.index), [2])
        s.registered(adopt=[(1, 1)], keep=[(2, 1)])
        s.send(values=self.r.Values(runs=[self.r.Run(job=rig.JOB, count=1)], index=[77], inline_bytes=[1],
                                    inline=pack(1)))
        self.assertEqual(s.value(2), 2)
        s.send(fetch=s.refs([(1, 1), (0, 1)]))
        self.assertEqual(s.value(1), 6)
        s.wait("0 was not adopted", lambda: s.unknown == [(0, 1)])

    def test_a_revoked_incarnation_registers_anew(self):
        s = self.begin()
        s.tasks((0, "inc", [1], []), (1, "sleep", [60, 1], []))
        s.result(0)
        s.end(rig.grpc.StatusCode.FAILED_PRECONDITION, "revoked")
        s = self.r.session()
        self.assertEqual(s.register.incarnation, 0)
        self.assertEqual(list(s.register.holding.index), [0])
        self.assertEqual(list(s.register.queued.index), [])
        s.registered(incarnation=42, adopt=[(0, 1)])
        s.wait("the slot is free", lambda: s.beats and s.beats[-1].running == 0)
        s.tasks((2, "inc", [2], []))
        self.assertEqual(s.value(2), 3)

    def test_another_version_ends_the_process_in_words(self):
        w = self.r.worker()
        s = self.r.session()
        s.end(rig.grpc.StatusCode.FAILED_PRECONDITION, "protocol version 1 is not 2")
        self.assertEqual(w.wait(20), 1)
        self.assertIn("protocol version 1 is not 2", self.r.log())

    def test_a_worker_may_come_before_its_scheduler(self):
        self.r.server.stop(0).wait()
        self.r.worker()
        time.sleep(0.3)
        self.r.listen()
        self.assertEqual(self.r.session().register.name, "w")

    def test_a_drain_hands_back_what_waits_and_ends(self):
        s = self.begin()
        s.tasks(*[(i, "sleep", [0.4, i], []) for i in range(4)])
        s.wait("it runs", lambda: s.beats and s.beats[-1].running == 2)
        self.w.send_signal(signal.SIGTERM)
        self.assertEqual(s.result(3)["outcome"], RETURNED)
        self.assertEqual(s.result(2)["outcome"], RETURNED)
        self.assertEqual(s.result(0)["outcome"], OK)
        self.assertTrue(s.leaving)
        self.assertEqual(self.w.wait(10), 0)

    def test_a_task_that_ignores_cancel_costs_the_process(self):
        plugin = os.environ.get("MILLRACE_STUBBORN_PLUGIN")
        if not plugin:
            self.skipTest("no plug-in was built")
        s = self.begin(f"--plugin={plugin}")
        s.tasks((0, "test.stubborn", [], []), (1, "sleep", [60, 1], []), (2, "inc", [1], []), (3, "inc", [("in", 0)], [50]))
        s.wait("it runs", lambda: s.beats and s.beats[-1].running == 2)
        s.send(cancel=s.refs([(0, 1)]))
        self.assertEqual(s.result(0)["outcome"], CANCELLED)
        self.assertEqual(s.result(1)["outcome"], RETURNED)
        self.assertEqual(s.result(3)["outcome"], RETURNED)
        self.assertEqual(self.w.wait(10), 75)

    def test_who_ran_when_the_process_died_is_suspected_by_the_next(self):
        s = self.begin(f"--dir={self.r.dir}/d")
        s.tasks((3, "sleep", [60, 1], []), (4, "inc", [1], []))
        s.result(4)
        s.wait("it runs", lambda: s.beats and s.beats[-1].running == 1)
        self.w.kill()
        self.w.wait()
        self.begin(f"--dir={self.r.dir}/d")
        w = self.w
        # begin() has opened the session
        w.send_signal(signal.SIGTERM)
        w.wait(10)
        self.assertIn("event=worker.suspect", self.r.log())
        self.begin(f"--dir={self.r.dir}/d")
        self.assertEqual(self.r.log().count("event=worker.suspect"), 1)


class Objects(Case):
    def test_large_results_stay_in_shared_memory(self):
        s = self.begin(store=True)
        s.tasks((0, "array.full", [[1000], 2.0], []), (1, "array.sum", [("in", 0)], [0]))
        self.assertIsNotNone(s.result(0)["object"])
        self.assertGreater(s.result(0)["object"][2], 8000)
        self.assertEqual(s.result(1)["outcome"], OK)

    def test_small_ones_travel_inline_unless_an_object_is_wanted(self):
        s = self.begin(store=True)
        s.tasks((0, "array.full", [[10], 2.0], []), (1, "array.full", [[10], 2.0], [], {"want_object": True}),
                (2, "inc", [1], [], {"want_object": True}), (3, "inc", [("in", 0)], [2]))
        self.assertIsNone(s.result(0)["object"])
        self.assertIsNotNone(s.result(1)["object"])
        self.assertIsNotNone(s.result(2)["object"])
        self.assertEqual(s.value(3), 3)

    def test_a_lost_object_is_reported_by_name(self):
        s = self.begin(store=True)
        s.tasks((0, "array.full", [[1000], 2.0], []))
        maker, number, size = s.result(0)["object"]
        s.send(values=self.r.Values(runs=[self.r.Run(job=rig.JOB, count=1)], index=[9], inline_bytes=[0],
                                    object_maker=[maker], object_number=[number + 1000], object_bytes=[size],
                                    object_node=[1]),
               tasks=self.r.Tasks(runs=[self.r.Run(job=rig.JOB, count=1)], index=[10], attempt=[1],
                                  op=[s.ops.index("array.sum") + 1], args=pack([("in", 0)]),
                                  args_bytes=[len(pack([("in", 0)]))], inputs_count=[1], inputs=[9], order=[10]))
        self.assertEqual(s.result(10, 60)["outcome"], LOST_INPUT)
        s.wait("missing", lambda: s.missing)
        self.assertEqual((s.missing[0].index, s.missing[0].input), (10, 9))

    def test_objects_of_another_node_are_fetched(self):
        first = self.begin(store=True)
        first.tasks((0, "array.full", [[100000], 1.0], []))
        maker, number, size = first.result(0)["object"]
        there = (first.register.store_address, first.register.store)
        extra = self.r.store("n1")
        self.r.start("mr-worker", f"--scheduler={self.r.address}", "--name=v", "--threads=1", *extra)
        s = self.r.session()
        s.registered(nodes=[there])
        place = self.r.Values(runs=[self.r.Run(job=rig.JOB, count=1)], index=[0], inline_bytes=[0],
                              object_maker=[maker], object_number=[number], object_bytes=[size], object_node=[1])
        s.tasks((1, "array.sum", [("in", 0)], [0]), values=place)
        self.assertEqual(s.result(1, 60)["outcome"], OK)

    def test_a_collection_of_parts_of_another_node_is_made_by_their_headers(self):
        first = self.begin(store=True)
        first.tasks((0, "array.full", [[50000, 2], 1.0], []))
        maker, number, size = first.result(0)["object"]
        extra = self.r.store("n1")
        self.r.start("mr-worker", f"--scheduler={self.r.address}", "--name=v", "--threads=1", *extra)
        s = self.r.session()
        s.registered(nodes=[(first.register.store_address, first.register.store),
                            (s.register.store_address, s.register.store)])
        place = self.r.Values(runs=[self.r.Run(job=rig.JOB, count=1)], index=[0], inline_bytes=[0],
                              object_maker=[maker], object_number=[number], object_bytes=[size], object_node=[1])
        s.tasks((1, "array.full", [[30000, 2], 3.0], []),
                (2, "array.collection", [[("in", 0), ("in", 1)]], [0, 1]),
                (3, "array.partition", [("in", 0), 0], [2]), (4, "array.sum", [("in", 0)], [3]), values=place)
        self.assertEqual(s.result(2)["outcome"], OK, s.result(2))
        self.assertLessEqual(len(s.result(2)["pack"]), 4096)
        self.assertEqual(s.result(3)["outcome"], OK, s.result(3))
        self.assertEqual(s.result(4)["outcome"], OK, s.result(4))
        self.assertEqual(s.result(3)["object"][2], size)

    def test_a_released_value_leaves_the_store(self):
        s = self.begin(store=True)
        s.tasks((0, "array.full", [[1000], 2.0], []))
        maker, number, _ = s.result(0)["object"]
        channel = rig.grpc.insecure_channel(s.register.store_address)
        stat = channel.unary_unary("/millrace.v1.Objects/Stat",
                                   request_serializer=self.r.message("StatRequest").SerializeToString,
                                   response_deserializer=self.r.message("ObjectInfo").FromString)
        ask = self.r.message("StatRequest")(id=f"{maker:016x}{number:016x}")
        self.assertTrue(any("job" in h for h in stat(ask).holders))
        s.send(release=s.refs([(0, 1)]))

        def gone():
            try:
                stat(ask)
                return False
            except rig.grpc.RpcError as e:
                return e.code() == rig.grpc.StatusCode.NOT_FOUND
        rig.harness.wait_for("the object to go", gone)
        channel.close()

    def test_persisted_results_have_their_name(self):
        s = self.begin(store=True)
        s.tasks((0, "array.full", [[1000], 2.0], [],
                 {"persist": True, "persist_name": "kept/it", "definition": b"0123456789abcdef"}))
        row = s.result(0)
        self.assertEqual(row["outcome"], OK, row)
        channel = rig.grpc.insecure_channel(s.register.store_address)
        resolve = channel.unary_unary("/millrace.v1.Objects/Resolve",
                                      request_serializer=self.r.message("ResolveRequest").SerializeToString,
                                      response_deserializer=self.r.message("NameInfo").FromString)
        info = resolve(self.r.message("ResolveRequest")(name="kept/it"))
        self.assertEqual(info.object, "%016x%016x" % row["object"][:2])
        self.assertEqual(info.definition, b"0123456789abcdef")
        self.assertTrue(info.durable)
        channel.close()

    def test_a_worker_whose_store_died_ends_to_be_started_again(self):
        self.begin(store=True)
        [p for p in self.r.children if "objectstore" in p.args[0]][0].kill()
        self.assertEqual(self.w.wait(20), 76)


class Exec(Case):
    def begin(self, *flags, **more):
        return super().begin("--allow-exec", *flags, env={"SECRET": "no"}, **more)

    def test_is_off_unless_allowed(self):
        s = Case.begin(self)
        self.assertNotIn("exec", [o.name for o in s.register.ops])

    def test_runs_a_program_on_stdin_and_files(self):
        s = self.begin()
        s.tasks((0, "exec", [["tr", "a-z", "A-Z"], "hello"], []),
                (1, "exec", {"": [["cat", "a.txt", "b.json"]], "files": {"a.txt": "x", "b.json": [1, 2]}}, []),
                (2, "exec", {"": [["cat"], {"k": 1}], "output": "json"}, []))
        self.assertEqual(s.value(0), "HELLO")
        self.assertEqual(s.value(1), "x[1,2]")
        self.assertEqual(s.result(2)["pack"], b"\x81\xa1k\x01")

    def test_has_a_clean_environment_and_no_descriptors(self):
        s = self.begin()
        s.tasks((0, "exec", {"": [["env"]], "env": {"MINE": "1"}}, []),
                (1, "exec", {"": [["ls", "/proc/self/fd"]]}, []))
        text = s.value(0)
        self.assertIn("MINE=1", text)
        self.assertIn("MILLRACE_TASK=", text)
        self.assertNotIn("SECRET", text)
        # descriptor 3 is the directory that ls opens
        self.assertEqual(s.value(1).split(), ["0", "1", "2", "3"])

    def test_a_failure_has_status_and_output(self):
        s = self.begin()
        s.tasks((0, "exec", [["sh", "-c", "echo out; echo because >&2; exit 3"]], []),
                (1, "exec", [["/no/such/program"]], []))
        row = s.result(0)
        self.assertEqual(row["outcome"], ERROR)
        self.assertIn("status 3", row["failure"].message)
        self.assertIn("because", row["failure"].log)
        self.assertIn("127", s.result(1)["failure"].message)

    def test_output_of_a_task_that_ends_well_is_its_log(self):
        s = self.begin()
        s.tasks((0, "exec", [["sh", "-c", "echo one >&2; echo two >&2; echo out"]], []))
        self.assertEqual(s.value(0), "out\n")
        s.wait("the log", lambda: s.logs)
        # the log may come in one piece or in several
        self.assertEqual(({x.index for x in s.logs}, "".join(x.text for x in s.logs)), ({0}, "one\ntwo\n"))

    def test_cancel_kills_the_whole_group(self):
        s = self.begin()
        mark = pathlib.Path(self.r.dir) / "mark"
        s.tasks((0, "exec", [["sh", "-c", f"(sleep 2; touch {mark}) & sleep 60"]], []))
        s.wait("it runs", lambda: s.beats and s.beats[-1].running == 1)
        s.send(cancel=s.refs([(0, 1)]))
        self.assertEqual(s.result(0)["outcome"], CANCELLED)
        time.sleep(2.5)
        self.assertFalse(mark.exists())

    def test_limits_are_kept(self):
        s = self.begin()
        s.tasks((0, "exec", {"": [["sh", "-c", "ulimit -v; ulimit -t; ulimit -c"]], "memory": 1 << 30, "cpu_s": 5}, []))
        self.assertEqual(s.value(0).split(), ["1048576", "5", "0"])


@unittest.skipUnless(os.geteuid() == 0, "SKIPPED: --exec-user wants root")
class ExecUser(Case):
    """Programs run as another user."""

    def begin(self, *flags, **more):
        self.secret = pathlib.Path(self.r.dir) / "secret"
        self.secret.write_text("0123456789abcdef0123456789abcdef\n")
        self.secret.chmod(0o600)
        os.chmod(self.r.dir, 0o755)  # then only the file's own mode protects the file
        return super().begin("--allow-exec", "--exec-user=nobody", *flags, **more)

    def test_a_program_is_that_user_and_has_its_directory(self):
        s = self.begin()
        script = "id -un; id -G | wc -w; cat a.txt; echo; touch b && stat -c %U . a.txt b; grep -E 'CapEff|NoNew' /proc/self/status"
        s.tasks((0, "exec", {"": [["sh", "-c", script]], "files": {"a.txt": "x"}}, []))
        lines = s.value(0).split("\n")
        self.assertEqual(lines[:6], ["nobody", "1", "x", "nobody", "nobody", "nobody"])
        self.assertIn("CapEff:\t0000000000000000", lines)
        self.assertIn("NoNewPrivs:\t1", lines)

    def test_a_program_cannot_read_what_is_the_clusters(self):
        s = self.begin()
        s.tasks((0, "exec", [["cat", str(self.secret)]], []),
                (1, "exec", [["sh", "-c", f"cat /proc/{self.w.pid}/environ"]], []),
                (2, "exec", [["sh", "-c", f"kill -9 {self.w.pid}"]], []))
        for i in range(3):
            row = s.result(i)
            self.assertEqual(row["outcome"], ERROR, i)
            # matches "Permission denied" and "Operation not permitted"
            self.assertIn("ermi", row["failure"].log)
        self.assertIsNone(self.w.poll())

    def test_cancel_kills_the_whole_group_and_its_directory_goes(self):
        s = self.begin()
        time = f"61.{os.getpid()}"  # a number that only this test uses
        s.tasks((0, "exec", [["sh", "-c", f"mkdir d; touch d/x; sleep {time} & sleep {time}"]], []))
        s.wait("it runs", lambda: len(self.sleepers(time)) == 2)
        directory = self.sleepers(time)[0].parent.joinpath("cwd").readlink()
        self.assertIn("millrace-exec-", str(directory))
        s.send(cancel=s.refs([(0, 1)]))
        self.assertEqual(s.result(0)["outcome"], CANCELLED)
        s.wait("all are gone", lambda: not self.sleepers(time))
        self.assertFalse(directory.exists())

    def sleepers(self, time):
        found = []
        for p in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # the process has ended already
                found += [p] if p.read_bytes() == f"sleep\0{time}\0".encode() else []
        return found

    def test_is_refused_at_the_start_where_it_cannot_be(self):
        def refuse(*flags, **how):
            w = self.r.worker(*flags, **how)
            self.assertNotEqual(w.wait(20), 0)
            return self.r.log()
        self.assertIn("--exec-user: \"root\" is root", refuse("--allow-exec", "--exec-user=root"))
        self.assertIn('no user "nobody-at-all"', refuse("--allow-exec", "--exec-user=nobody-at-all"))
        self.assertIn("only with --allow-exec", refuse("--exec-user=nobody"))


class Flags(Case):
    def refuse(self, *flags):
        w = self.r.worker(*flags)
        code = w.wait(20)
        self.assertNotEqual(code, 0)
        return self.r.log()

    def test_bad_flags_are_named(self):
        self.assertIn("--resource", self.refuse("--resource=gpu"))
        self.assertIn("--nosuch", self.refuse("--nosuch"))
        self.assertIn("/no/such.so", self.refuse("--plugin=/no/such.so"))
        self.assertIn("/no/such", self.refuse("--data-root=/no/such"))

    def test_health_and_metrics_are_served(self):
        s = self.begin(f"--listen=unix:{self.r.dir}/h.sock")
        channel = rig.grpc.insecure_channel(f"unix:{self.r.dir}/h.sock")
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        self.assertEqual(check(b""), b"\x08\x01")
        metrics = channel.unary_unary("/millrace.v1.Metrics/Read")
        self.assertIn(b"millrace_worker_connects_total", metrics(b""))
        channel.close()
        self.assertEqual(s.register.address, f"unix:{self.r.dir}/h.sock")
        self.assertEqual(os.stat(f"{self.r.dir}/h.sock").st_mode & 0o777, 0o600)

    def secrets(self):
        for name, text in (("tokens", "0123456789abcdef-reader reader rita\n"), ("secret", "0123456789abcdef-secret\n")):
            path = pathlib.Path(self.r.dir) / name
            path.write_text(text)
            path.chmod(0o600)
        return f"--token-file={self.r.dir}/tokens", f"--secret-file={self.r.dir}/secret"

    def test_its_own_port_wants_what_every_port_wants(self):
        for address in ("0.0.0.0:0", "127.evil.test:0", "[::]:0"):
            self.assertIn("--token-file", self.refuse(f"--listen={address}"))
        tokens, secret = self.secrets()
        self.assertIn("--secret-file", self.refuse("--listen=0.0.0.0:0", tokens))
        s = self.begin("--listen=0.0.0.0:0", tokens, secret)
        port = s.register.address.rpartition(":")[2]
        with rig.grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            self.assertEqual(channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=20), b"\x08\x01")
            read = channel.unary_unary("/millrace.v1.Metrics/Read")
            for metadata in (None, [("authorization", "Bearer 0123456789abcdef-nobody")]):
                with self.assertRaises(rig.grpc.RpcError) as e:
                    read(b"", metadata=metadata, timeout=20)
                self.assertEqual(e.exception.code(), rig.grpc.StatusCode.UNAUTHENTICATED)
            for who in ("reader", "secret"):
                metadata = [("authorization", f"Bearer 0123456789abcdef-{who}")]
                self.assertIn(b"millrace_worker", read(b"", metadata=metadata, timeout=20))
        self.assertEqual(dict(s.context.invocation_metadata())["authorization"], "Bearer 0123456789abcdef-secret")


if __name__ == "__main__":
    unittest.main(verbosity=2)
