import assert from "node:assert/strict";
import test from "node:test";
import "./client.mjs";

const { ApiError } = await import("../../../clients/js/millrace.js");
const { openSource, SpansSource } = await import("../../../dashboard/js/timeline_source.js");
const BEGIN = 1_700_000_000_000_000_000n;
const NOW = BEGIN + 5_000_000_000n;
const JOB = { id: "j1", created_ns: BEGIN, finished_ns: 0n };

function spanOf(worker, slot, key, from, until) {
    return { worker, slot, key, op: "add", attempt: 1, outcome: "SPAN_OUTCOME_OK", cpu_ns: 0n, times: { started_ns: BEGIN + BigInt(from), finished_ns: BEGIN + BigInt(until) } };
}

/** A client of a cluster with workers w0, w1, … of two slots. */
function clientOf(workers, all) {
    const slots = Array.from({ length: 2 * workers }, (_, i) => ({ worker: `w${i >> 1}`, slot: i & 1 }));
    const asked = { tiles: [], timeline: [] };
    const jobs = {
        async tiles(_, o) {
            asked.tiles.push(o);
            const rows = slots.slice(o.first_row ?? 0, (o.first_row ?? 0) + o.rows).map((s) => ({ ...s, lengths: [o.width], colors: [0], fill: [0] }));
            return { rows, names: [], rows_count: slots.length, from_ns: BEGIN, until_ns: o.until_ns ?? NOW, more_spans_ns: 1n };
        },
        async timeline(_, o) {
            asked.timeline.push(o);
            const found = all.filter((s) => (!o.worker?.length || o.worker.includes(s.worker)) && (!o.slot?.length || o.slot.includes(s.slot))
                && s.times.started_ns < o.until_ns && s.times.finished_ns > o.from_ns).sort((a, b) => Number(a.times.finished_ns - b.times.finished_ns));
            return { spans: found.slice(0, o.spans_max), more: found.length > o.spans_max, not_recorded: 0n };
        },
    };
    return { jobs, asked, slots };
}

const signal = new AbortController().signal;
const WINDOW = { fromNs: BEGIN, untilNs: BEGIN + 1000n };

test("spans of a row are found behind many of other rows", async () => {
    const others = Array.from({ length: 5000 }, (_, i) => spanOf(`w${1 + (i % 400)}`, i & 1, `other/${i}`, i % 500, (i % 500) + 1));
    const client = clientOf(500, [...others, spanOf("w499", 1, "wanted", 10, 900)]);
    const source = await openSource(client, JOB, signal);
    const { spans, more } = await source.spans({ ...WINDOW, firstRow: 999, rows: 1, limit: 500 });
    assert.deepEqual(spans.map((s) => [s.key, s.row]), [["wanted", 999]]);
    assert.equal(more, false);
    assert.deepEqual(client.asked.timeline[0].worker, ["w499"]);
    assert.deepEqual(client.asked.timeline[0].slot, [1]);
});

test("rows that no tile has named are asked for once, and slots that come too are left out", async () => {
    const client = clientOf(3, [spanOf("w0", 0, "too", 0, 9), spanOf("w0", 1, "a", 0, 9), spanOf("w1", 0, "b", 0, 9), spanOf("w1", 1, "too", 0, 9)]);
    const source = await openSource(client, JOB, signal);
    for (let i = 0; i < 2; i++) {
        const { spans } = await source.spans({ ...WINDOW, firstRow: 1, rows: 2, limit: 100 });
        assert.deepEqual(spans.map((s) => [s.key, s.row]), [["a", 1], ["b", 2]]);
    }
    assert.equal(client.asked.tiles.length, 2);
});

test("spans of all rows are asked for without naming the workers", async () => {
    const client = clientOf(300, [spanOf("w299", 0, "far", 0, 9)]);
    const source = await openSource(client, JOB, signal);
    const { spans } = await source.spans({ ...WINDOW, firstRow: 0, rows: source.rowsCount, limit: 100 });
    assert.deepEqual(spans.map((s) => [s.key, s.row]), [["far", 598]]);
    assert.deepEqual(client.asked.timeline[0].worker, []);
});

test("an answer that is cut says so", async () => {
    const client = clientOf(1, Array.from({ length: 20 }, (_, i) => spanOf("w0", 0, `k${i}`, i, i + 1)));
    const source = await openSource(client, JOB, signal);
    assert.equal((await source.spans({ ...WINDOW, firstRow: 0, rows: 2, limit: 19 })).more, true);
    assert.equal((await source.spans({ ...WINDOW, firstRow: 0, rows: 2, limit: 20 })).more, false);
});

test("while rows move, spans are unknown, not absent", async () => {
    const client = clientOf(1, []);
    const source = await openSource(client, JOB, signal);
    client.slots.unshift({ worker: "v", slot: 0 });
    assert.deepEqual(await source.spans({ ...WINDOW, firstRow: 0, rows: 2, limit: 20 }), { spans: [], more: true });
    await source.update(JOB, signal);
    assert.deepEqual(await source.spans({ ...WINDOW, firstRow: 0, rows: 3, limit: 20 }), { spans: [], more: false });
});

test("the end of a running job is the server's now, whatever the browser's clock says", async () => {
    const client = clientOf(1, []);
    const source = await openSource(client, JOB, signal);
    assert.equal(source.endNs, NOW);
    await source.update({ ...JOB, finished_ns: BEGIN + 7n }, signal);
    assert.equal(source.endNs, BEGIN + 7n);
});

test("without tiles, the page reads all spans, and now is the last end", async () => {
    const all = [spanOf("w10", 0, "b", 0, 20), spanOf("w9", 0, "a", 0, 30)];
    const jobs = {
        tiles: async () => Promise.reject(new ApiError(404, 5, "there is nothing here")),
        timeline: async (_, o) => ({ spans: all.filter((s) => s.times.finished_ns > (o.after_ns ?? 0n)), more: false, not_recorded: 0n }),
    };
    const source = await openSource({ jobs }, JOB, signal);
    assert.ok(source instanceof SpansSource);
    assert.equal(source.endNs, BEGIN + 30n);
    const { spans, more } = await source.spans({ ...WINDOW, firstRow: 0, rows: 2, limit: 2 });
    assert.deepEqual(spans.map((s) => [s.key, s.row]), [["b", 1], ["a", 0]]);
    assert.equal(more, false);
    assert.equal((await source.spans({ ...WINDOW, firstRow: 0, rows: 2, limit: 1 })).more, true);
});
