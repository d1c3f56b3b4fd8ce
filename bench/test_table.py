#!/usr/bin/env python3
"""The parts of bench/run.sh that need no cluster: the shapes are right, and each row of a report is shown, also a
failed one."""
import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
try:
    import numpy  # noqa: F401
except ImportError:
    sys.exit(77)  # skipped: bench/peers.sh installs NumPy
import measure  # noqa: E402
import shapes  # noqa: E402
import table  # noqa: E402


def report(**rows):
    return {"date": "2026-11-21", "quick": True, "commit": "0", "machine": "m", "load_before": 0.0, "load_after": 0.0, "seconds": 1.0,
            "systems": {s: s for s in table.SYSTEMS}, "rows": rows, "alone": {}}


def cell(value, unit="s", n=10):
    return {**measure.cell([value], n), "unit": unit}


class Shapes(unittest.TestCase):
    def test_inputs_come_before_their_users_and_targets_exist(self):
        for s in shapes.SHAPES:
            g = s.make(s.sizes["small"])
            for i, (op, args) in enumerate(g.nodes):
                self.assertIn(op, shapes.OPS)
                self.assertTrue(all(a < i for a in args if isinstance(a, shapes.Ref)), s.name)
            self.assertTrue(g.targets and all(t < len(g.nodes) for t in g.targets), s.name)

    def test_values_are_those_of_closed_forms(self):
        self.assertEqual(shapes.evaluate(shapes.merge(100)), [5050])
        self.assertEqual(shapes.evaluate(shapes.tree(64)), [64 * 65 // 2])
        self.assertEqual(shapes.evaluate(shapes.chain(50)), [50])
        self.assertEqual(shapes.evaluate(shapes.all_to_all(4)), [6, 10, 14, 18])
        self.assertEqual(shapes.evaluate(shapes.map_fold(3, 2)), [2 * (1 + 2 + 3 + 4 + 5 + 6)])

    def test_the_same_seed_gives_the_same_graph(self):
        self.assertEqual(shapes.random_graph(300).nodes, shapes.random_graph(300).nodes)

    def test_a_wrong_value_does_not_agree(self):
        self.assertTrue(shapes.agree([1, 2.0 + 1e-12], [1, 2.0]))
        self.assertFalse(shapes.agree([1, 2.1], [1, 2.0]))
        self.assertFalse(shapes.agree([1], [1, 2]))


class Table(unittest.TestCase):
    def test_a_failed_and_a_missing_peer_are_seen(self):
        r = report(merge={"millrace": cell(0.01), "dask-debian": {"error": "no such program"}, "dask-newest": cell(1.0)})
        line = next(line for line in table.lines_of(r) if line[0].startswith("merge:"))
        self.assertEqual(line[2:], ["failed: no such program", "-", "1.00 s", "100", "not measured", "-"])

    def test_a_promise_without_a_figure_does_not_hold(self):
        r = report(merge={"millrace": cell(0.01), "dask-debian": {"error": "no such program"}})
        self.assertEqual([good for _, good in table.verdicts(r)], [False, False])

    def test_a_promise_is_kept_at_its_bar(self):
        r = report(empty={"millrace": cell(200_000.0, "tasks/s"), "dask-debian": cell(1000.0, "tasks/s"), "ray": cell(4001.0, "tasks/s")})
        self.assertEqual([good for _, good in table.verdicts(r)], [True, True, False])

    def test_one_task_has_a_bound_of_its_own_beside_any_peer(self):
        for us, good in ((250.0, True), (250.1, False)):
            r = report(latency={"millrace": cell(us, "us"), "dask-debian": cell(1e6, "us"), "ray": cell(1e6, "us")})
            self.assertEqual([v for _, v in table.verdicts(r)], [good, True, True])
        self.assertIn("NOT MET: one task, client to client, p50 of 10: 250 µs, asked for at most 250 µs", table.text(r))
        r = report(latency={"millrace": {"error": "no such program"}})
        self.assertFalse(next(good for _, good in table.verdicts(r)))

    def test_bandwidth_is_of_the_bytes_that_must_move_with_the_spread_of_the_rounds(self):
        copies = 20
        moved = 2 * copies * 60_000 * 784 * 4
        rounds = {**measure.cell([0.2, 0.4, 1.0], copies), "unit": "s"}
        r = report(**{"mnist-rechunk": {"millrace": rounds, "dask-debian": {"error": "gone"}}})
        self.assertEqual(table.bandwidth(r), [])
        r["copy_bytes_per_s"] = moved / 0.2
        lines = table.bandwidth(r)
        self.assertEqual(len(lines), 2)
        self.assertEqual(lines[1], ["mnist-rechunk", "7.5 GB", "18.8 GB/s (7.5 to 37.6), 50% (20% to 100%)", "-", "-"])
        self.assertIn("| mnist-rechunk | 7.5 GB |", table.markdown(r))
        self.assertIn("37.6 GB/s read and written", table.text(r))

    def filled(self, d, r, old=""):
        """The page, and the page of the report, after `r` was written into a table with the row `old`."""
        page, results = pathlib.Path(d) / "page.md", pathlib.Path(d) / "results"
        results.mkdir(exist_ok=True)
        page.write_text(f"before\n{table.BEGIN}\n| what | millrace |\n|---|---|\n{old}\n{table.END}\nafter\n")
        r = json.loads(json.dumps(r))
        table.write_markdown(r, page, results)
        return page.read_text(), next(results.glob("*.md")).read_text()

    def test_markdown_replaces_only_what_stands_between_the_marks(self):
        with tempfile.TemporaryDirectory() as d:
            r = report(merge={"millrace": cell(0.01), "dask-debian": cell(1.0)})
            first, whole = self.filled(d, r)
            self.assertTrue(first.startswith("before\n") and first.endswith("\nafter\n"))
            self.assertIn("| what | millrace |\n|---|---|\n", first)
            self.assertIn("| 10.0 ms | 100 x dask-debian | `bench/run.sh --quick` | m | [2026-11-21](results/2026-11-21-beside-dask-and-ray.md) |", first)
            self.assertIn("2026-11-21, quick run, preliminary, commit 0", whole)
            again, same = self.filled(d, r, "")
            self.assertEqual((first, whole), (again, same))

    def test_a_row_is_replaced_by_its_own_name_only(self):
        title = table.ROWS["merge"][0].format(n=10)
        with tempfile.TemporaryDirectory() as d:
            page, _ = self.filled(d, report(merge={"millrace": cell(0.01), "ray": cell(1.0)}), f"| {title} | old |\n| another row | kept |")
            self.assertIn("| another row | kept |", page)
            self.assertNotIn("old", page)
            self.assertEqual(page.count(title), 1)

    def test_a_row_without_peers_stands_beside_the_one_with_them(self):
        title = table.ROWS["merge"][0].format(n=10)
        r = report(merge={"millrace": cell(0.01)}, idle={"millrace": cell(0.3, "% of a core")})
        r["systems"] = {"millrace": "this tree"}
        with tempfile.TemporaryDirectory() as d:
            page, _ = self.filled(d, r, f"| {title} | beside peers |\n| idle CPU of the whole cluster, 10 s | old |")
            self.assertIn(f"| {title} | beside peers |", page)
            self.assertIn(f"| {title}, millrace alone | 10.0 ms | - |", page)
            self.assertIn("| idle CPU of the whole cluster, 10 s | 0.30 % of a core | - |", page)


if __name__ == "__main__":
    unittest.main()
