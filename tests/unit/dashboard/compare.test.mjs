import assert from "node:assert/strict";
import test from "node:test";
import "./client.mjs";

const { changeOf, compare, sumUp } = await import("../../../dashboard/js/compare.js");

const op = (name, tasks, wall_ns) => ({ op: name, tasks, wall_ns, cpu_ns: wall_ns, queue_ns: 0n, nbytes: 8n, median_ns: wall_ns / tasks, p99_ns: wall_ns / tasks, white_ns: 0n });

/** A profile of a job on 2 slots whose critical path consists of tasks of `f`, tasks of `g` and waits. */
function profile(f, g, wait) {
    const wall = f + g + wait;
    return { wall_ns: wall, slots: 2n, slot_ns: 2n * wall, classes: { compute: f + g, dependency: 0n, decide: 2n * wall - f - g },
        ops: [op("f", 2n, f), op("g", 1n, g)],
        critical_path: { classes: { dependency: f + g, decide: wait }, is_cut: false, steps: [
            { from_ns: 0n, to_ns: f, class: "dependency", key: "x", op: "f" }, { from_ns: f, to_ns: f + wait, class: "decide", key: "", op: "" },
            { from_ns: f + wait, to_ns: wall, class: "dependency", key: "y", op: "g" }] } };
}

test("the changes of the critical path add up to the change of the wall time", () => {
    const c = compare(profile(600n, 300n, 100n), profile(900n, 310n, 50n));
    assert.equal(c.hasPath, true);
    assert.equal(c.causes.reduce((sum, r) => sum + changeOf(r), 0n), 260n);
    assert.deepEqual(c.causes.map((r) => [r.class, r.op, changeOf(r)]), [["dependency", "f", 300n], ["decide", "", -50n], ["dependency", "g", 10n]]);
    assert.deepEqual(c.ops.map((o) => [o.op, o.pathChange]), [["f", 300n], ["g", 10n]]);
});

test("classes that are 0 in both jobs are left out", () => {
    const c = compare(profile(600n, 300n, 100n), profile(600n, 300n, 200n));
    assert.deepEqual(c.classes.map((r) => [r.class, changeOf(r)]), [["decide", 200n], ["compute", 0n]]);
});

test("without a critical path, the causes are the times of one slot", () => {
    const running = { ...profile(600n, 300n, 100n), critical_path: undefined };
    const c = compare(profile(500n, 300n, 100n), running);
    assert.equal(c.hasPath, false);
    assert.deepEqual(c.causes.map((r) => [r.class, r.before, r.after]), [["compute", 400n, 450n], ["decide", 500n, 550n]]);
});

test("an operator of one job only is in the comparison", () => {
    const after = profile(600n, 300n, 100n);
    after.ops.push(op("new", 1n, 7n));
    const found = compare(profile(600n, 300n, 100n), after).ops.find((o) => o.op === "new");
    assert.deepEqual(found?.measures.tasks, { before: 0n, after: 1n });
});

test("the sentence names what explains at least a tenth of the change", () => {
    const s = 1000000000n;
    const c = compare(profile(6n * s, 3n * s, 1n * s), profile(9n * s, 3n * s + s / 10n, s / 2n));
    assert.equal(sumUp(c, "j1-1", "j1-2"), "job j1-2 took 2.600 s (26.0 %) more than job j1-1: dependency (f) +3.000 s");
    assert.equal(sumUp(compare(c.before, c.before), "j1-1", "j1-1"), "job j1-1 took as long as job j1-1, within 1 %");
});
