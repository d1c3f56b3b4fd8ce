#!/usr/bin/env python3
"""Graphs whose values are larger than the object store's memory. If there is an order without
spilling, the scheduler uses it; otherwise the store spills and the job ends; a value that can
never fit fails with a sentence."""
import os
import pathlib
import sys
import tempfile
import shutil
import struct
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from harness import Cluster  # noqa: E402

MIB = 1 << 20
MEMORY = 256 * MIB
PART = 8 * MIB  # size of the value of one root task
FLOATS = PART // 8


def root(i, floats=FLOATS):
    return {"op": "array.full", "args": [[floats], float(i % 7)]}


def tree(tasks, names, op, width=2):
    """Merges `names` level by level; returns the name of the last task."""
    level = 0
    while len(names) > 1:
        merged = []
        for at in range(0, len(names), width):
            group = names[at:at + width]
            name = f"m/{level}/{at // width}"
            tasks[name] = {"op": op[0], "args": [*op[1:], [{"ref": n} for n in group]]}
            merged.append(name)
        names, level = merged, level + 1
    return names[0]


def tree_sum(parts):
    """Root values of several MiB, a small partial sum of each, and a tree of sums."""
    tasks = {}
    for i in range(parts):
        tasks[f"x/{i}"] = root(i)
        tasks[f"p/{i}"] = {"op": "array.reduce_partial", "args": [{"ref": f"x/{i}"}, "sum"]}
    last = tree(tasks, [f"p/{i}" for i in range(parts)], ("array.reduce_merge", "sum"))
    return {"tasks": tasks, "targets": [last]}, float(sum(i % 7 for i in range(parts)) * FLOATS)


def tree_of_arrays(parts):
    """The sums are as large as the root values: a depth-first order keeps one of each level."""
    tasks = {f"x/{i}": root(i) for i in range(parts)}
    names, level = [f"x/{i}" for i in range(parts)], 0
    while len(names) > 1:
        merged = []
        for at in range(0, len(names), 2):
            name = f"s/{level}/{at // 2}"
            if at + 1 < len(names):
                tasks[name] = {"op": "add", "args": [{"ref": n} for n in names[at:at + 2]]}
            merged.append(name if at + 1 < len(names) else names[at])
        names, level = merged, level + 1
    tasks["sum"] = {"op": "array.reduce_partial", "args": [{"ref": names[0]}, "sum"]}
    return {"tasks": tasks, "targets": ["sum"]}, float(sum(i % 7 for i in range(parts)) * FLOATS)


def map_reduce(parts, steps=3):
    """For each part a chain of arrays that ends in a small value; one task takes all small values."""
    tasks = {}
    for i in range(parts):
        tasks[f"x/{i}/0"] = root(i)
        for k in range(steps):
            tasks[f"x/{i}/{k + 1}"] = {"op": "add", "args": [{"ref": f"x/{i}/{k}"}, 1]}
        tasks[f"p/{i}"] = {"op": "array.reduce_partial", "args": [{"ref": f"x/{i}/{steps}"}, "sum"]}
    tasks["sum"] = {"op": "array.reduce_merge", "args": ["sum", [{"ref": f"p/{i}"} for i in range(parts)]]}
    return {"tasks": tasks, "targets": ["sum"]}, float(sum(i % 7 + steps for i in range(parts)) * FLOATS)


def stencil(parts):
    """Each result needs a part and its neighbours."""
    tasks = {f"x/{i}": root(i) for i in range(parts)}
    total = 0
    for i in range(parts):
        near = [k for k in (i - 1, i, i + 1) if 0 <= k < parts]
        name = f"x/{near[0]}"
        for k in near[1:]:
            tasks[f"n/{i}/{k}"] = {"op": "add", "args": [{"ref": name}, {"ref": f"x/{k}"}]}
            name = f"n/{i}/{k}"
        tasks[f"p/{i}"] = {"op": "array.reduce_partial", "args": [{"ref": name}, "sum"]}
        total += sum(k % 7 for k in near)
    last = tree(tasks, [f"p/{i}" for i in range(parts)], ("array.reduce_merge", "sum"))
    return {"tasks": tasks, "targets": [last]}, float(total * FLOATS)


def all_to_all(parts):
    """Each result needs a piece of every part and is as large as a part."""
    tasks = {f"x/{i}": root(i) for i in range(parts)}
    piece = FLOATS // parts
    for k in range(parts):
        for i in range(parts):
            tasks[f"c/{i}/{k}"] = {"op": "array.slice", "args": [{"ref": f"x/{i}"}, k * piece, (k + 1) * piece]}
        tasks[f"y/{k}"] = {"op": "array.concat", "args": [[{"ref": f"c/{i}/{k}"} for i in range(parts)]]}
        tasks[f"p/{k}"] = {"op": "array.reduce_partial", "args": [{"ref": f"y/{k}"}, "sum"]}
    last = tree(tasks, [f"p/{k}" for k in range(parts)], ("array.reduce_merge", "sum"))
    return {"tasks": tasks, "targets": [last]}, float(sum(i % 7 for i in range(parts)) * piece * parts)


class Memory(unittest.TestCase):
    memory = MEMORY

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="mr-"))
        self.cluster = Cluster("--workers", "4", "--threads", "1", "--memory", str(self.memory), directory=self.dir)

    def tearDown(self):
        if any(e for _, e in getattr(self._outcome, "errors", []) if e) or getattr(self._outcome.result, "errors", []):
            print(self.cluster.output(), self.cluster.logs(), file=sys.stderr)
        self.cluster.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def stats(self):
        s = self.cluster.get("/v1/store/stats")
        return {k: int(s.get(k, 0)) for k in ("used_bytes", "spilled_bytes", "spills", "restores", "memory_bytes")}

    def measured(self, what, graph, expected, timeout=120):
        """Runs the job, checks its only target, and returns what the store did meanwhile."""
        before, t = self.stats(), time.monotonic()
        done = self.cluster.run(graph, timeout)
        took = time.monotonic() - t
        self.assertEqual(done["state"], "JOB_DONE", done)
        self.assertEqual(done["counts"]["recomputed"], "0", done)
        value = self.cluster.value(done["id"], graph["targets"][0])
        if isinstance(value, bytes):  # an npy file of an array without axes
            value = struct.unpack("<d", value[-8:])[0]
        self.assertEqual(value, expected)
        after = self.stats()
        spills = after["spills"] - before["spills"]
        print(f"{what}: {len(graph['tasks'])} tasks in {took:.1f} s, {spills} objects spilled, "
              f"{after['restores'] - before['restores']} came back", file=sys.stderr)
        return spills


class WithoutSpilling(Memory):
    """The values are ten times the memory; a good order needs a small part of it at a time."""
    parts = 10 * MEMORY // PART

    def test_a_tree_of_sums(self):
        self.assertEqual(self.measured("tree of sums", *tree_sum(self.parts)), 0)

    def test_a_tree_of_arrays(self):
        self.assertEqual(self.measured("tree of arrays", *tree_of_arrays(self.parts // 2)), 0)

    def test_map_and_reduce(self):
        self.assertEqual(self.measured("map-reduce", *map_reduce(self.parts // 4)), 0)

    def test_a_stencil(self):
        self.assertEqual(self.measured("stencil", *stencil(self.parts // 3)), 0)


class WithSpilling(Memory):
    def test_all_to_all_spills_and_ends(self):
        parts = 64  # 512 MiB of root values in a store of 256 MiB; each result needs all of them
        self.assertGreater(self.measured("all to all", *all_to_all(parts)), 0)

    def test_a_collection_of_more_than_memory_holds(self):
        parts = 5  # no part is read for its header alone
        floats = 60 * MIB // 8
        tasks = {f"x/{i}": root(i, floats) for i in range(parts)}
        tasks["all"] = {"op": "collection", "args": [{"ref": f"x/{i}"} for i in range(parts)]}
        done = self.cluster.run({"tasks": tasks, "targets": ["all"]})
        self.assertEqual(done["state"], "JOB_DONE", done)
        self.assertEqual(done["counts"]["recomputed"], "0", done)
        self.assertEqual(self.stats()["restores"], 0)

    def joined(self, count, mib, groups):
        """`groups` tasks, each of which concatenates `count` arrays of `mib` MiB."""
        tasks = {}
        for g in range(groups):
            for i in range(count):
                tasks[f"x/{g}/{i}"] = root(i, mib * MIB // 8)
            tasks[f"y/{g}"] = {"op": "array.concat", "args": [[{"ref": f"x/{g}/{i}"} for i in range(count)]]}
            tasks[f"p/{g}"] = {"op": "array.reduce_partial", "args": [{"ref": f"y/{g}"}, "sum"]}
        # All root tasks run first, so that each later task finds its inputs on disk.
        last = tree(tasks, [f"p/{g}" for g in range(groups)], ("array.reduce_merge", "sum"), groups)
        return {"tasks": tasks, "targets": [last] + [k for k in tasks if k.startswith("x/")]}, \
            float(sum(range(count)) * mib * MIB // 8 * groups)

    def test_tasks_that_fit_one_at_a_time_all_end(self):
        # 200 inputs of 256 MiB for each task, with four workers
        self.measured("four that fit alone", *self.joined(2, 50, 4), timeout=150)

    def fails(self, graph, key, *words, timeout):
        job, said = self.cluster.submit(graph), set()
        end = time.monotonic() + timeout
        while (state := self.cluster.job(job, wait_s=1))["state"] in ("JOB_PENDING", "JOB_RUNNING"):
            self.assertLess(time.monotonic(), end, state)
            said.update(self.cluster.explain(job, key)["reasons"])
        self.assertEqual(state["state"], "JOB_FAILED", state)
        self.assertEqual(state["error"]["key"], key, state)
        for word in words:
            self.assertIn(word, state["error"]["message"])
        self.assertEqual(state["counts"]["recomputed"], "0", state)
        return said

    def test_inputs_that_never_fit_fail_with_a_sentence(self):
        graph, _ = self.joined(5, 60, 1)
        self.fails(graph, "y/0", "needs more memory at once than there is", "inputs are 300.0 MiB", "has 256.0 MiB",
                   "--memory", timeout=90)

    def test_a_result_that_never_fits_beside_its_inputs_fails_with_a_sentence(self):
        graph, _ = self.joined(3, 50, 1)
        said = self.fails(graph, "y/0", "inputs are 150.0 MiB", "result of 150.0 MiB", "has 256.0 MiB", timeout=120)
        self.assertIn("found no room in memory", "".join(said))


if __name__ == "__main__":
    unittest.main(verbosity=1)
