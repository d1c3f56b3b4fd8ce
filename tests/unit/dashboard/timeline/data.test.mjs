import assert from "node:assert/strict";
import test from "node:test";
import { Data } from "../../../../dashboard/js/timeline/data.js";
import { pixel } from "../../../../dashboard/js/timeline/strip.js";
import { rowsOf, scaleOf } from "../../../../dashboard/js/timeline/view.js";

const BEGIN = 1_700_000_000_000_000_000n;
const LOOK = { theme: "light", track: [250, 250, 250] };
const EMPTY = pixel(250, 250, 250);
const settle = () => new Promise((r) => setTimeout(r, 1));

/** A source whose slots are always busy with "add" until `end`. */
function sourceOf(end, more = {}) {
    const asked = [];
    return {
        asked, rowsCount: 4, beginNs: BEGIN, endNs: String(BEGIN + BigInt(end)),
        async tiles(o) {
            asked.push(o);
            const px = Math.min(o.width, Math.max(0, Math.round((Number(BigInt(this.endNs) - o.fromNs) / Number(o.untilNs - o.fromNs)) * o.width)));
            const runs = px ? { lengths: [px, o.width - px], colors: [1, 0], fill: [255, 0] } : { lengths: [o.width], colors: [0], fill: [0] };
            const rows = Array.from({ length: Math.min(o.rows, this.rowsCount - o.firstRow) }, (_, i) => ({ worker: "w", slot: i, ...runs }));
            return { rows, names: ["add"], rows_count: this.rowsCount, from_ns: String(o.fromNs), until_ns: String(o.untilNs), more_spans_ns: "1000000" };
        },
        async spans(o) {
            asked.push(o);
            return [{ row: o.firstRow, op: "add", key: "k", startedNs: o.fromNs, finishedNs: o.fromNs + 10n }];
        },
        ...more,
    };
}

function rig(end, more) {
    const source = sourceOf(end, more);
    let changes = 0;
    const data = new Data(source, () => changes++);
    data.setLook(LOOK);
    const rows = rowsOf(10, 1, data.rowsCount, 100, 0);
    const draw = (w) => {
        const scale = scaleOf(w, 100);
        data.want(w, scale.nsPerPx, "op", rows);
        const out = new Uint32Array(100 * 4);
        const isWhole = data.drawStrip(out, w, scale, rows, "op", []);
        return { out, isWhole };
    };
    return { source, data, rows, draw, changes: () => changes };
}

test("a window is empty until its tiles are here, and then drawn in the colour of the operator", async () => {
    const r = rig(1e9);
    const w = { from: 0, until: 1e9 };
    const before = r.draw(w);
    assert.equal(before.isWhole, false);
    assert.ok(before.out.every((p) => p === EMPTY));
    await settle();
    assert.ok(r.changes() > 0);
    const after = r.draw(w);
    assert.equal(after.isWhole, true);
    assert.ok(after.out.every((p) => p !== EMPTY));
    assert.deepEqual(r.data.slots.get(3), { worker: "w", slot: 3 });
});

test("a zoom shows the coarse tiles at once", async () => {
    const r = rig(1e9);
    r.draw({ from: 0, until: 1e9 });
    await settle();
    const near = r.draw({ from: 4e8, until: 4.1e8 });
    assert.equal(near.isWhole, false);
    assert.ok(near.out.every((p) => p !== EMPTY));
});

test("after a refresh only the tiles over the end are loaded again", async () => {
    const r = rig(100e9);
    const w = { from: 0, until: 100e9 };
    for (let i = 0; i < 5; i++) {
        r.draw(w);
        await settle();
    }
    r.source.endNs = String(BEGIN + 101n * 10n ** 9n);
    const before = r.source.asked.length;
    r.data.refresh();
    for (let i = 0; i < 5; i++) {
        r.draw(w);
        await settle();
    }
    const again = r.source.asked.slice(before);
    assert.ok(again.length > 0);
    assert.ok(again.every((o) => o.untilNs > BEGIN + 97n * 10n ** 9n), again.map((o) => String(o.untilNs - BEGIN)).join());
});

test("spans are asked for in a narrow window only, and found again", async () => {
    const r = rig(1e9);
    r.draw({ from: 0, until: 1e9 });
    await settle();
    assert.equal(r.data.showsSpans({ from: 0, until: 1e9 }), false);
    const w = { from: 5e8, until: 5.005e8 };
    assert.equal(r.data.showsSpans(w), true);
    r.draw(w);
    await settle();
    const chunks = r.data.chunksIn(w, r.rows);
    assert.ok(chunks.length >= 1);
    assert.equal(r.data.rowSpans(w, 0)[0].spans[0].key, "k");
});

test("the slots of rows come from the source if it says them", async () => {
    const r = rig(1e9, { workersOfRows: async (first, count) => Array.from({ length: count }, (_, i) => ({ worker: "said", slot: first + i })) });
    r.data.askSlots(0, 4);
    r.data.askSlots(0, 4);
    await settle();
    assert.deepEqual(r.data.slots.get(2), { worker: "said", slot: 2 });
});

test("a pixel tells its operator and share", async () => {
    const r = rig(1e9);
    const w = { from: 0, until: 1e9 };
    r.draw(w);
    await settle();
    const pixel_ = r.data.pixelAt(3e8, 1, 1e7, "op");
    assert.equal(pixel_.name, "add");
    assert.equal(pixel_.share, 1);
    assert.ok(pixel_.from <= 3e8 && pixel_.until > 3e8);
    assert.equal(r.data.pixelAt(2e9, 1, 1e7, "op"), null);
});
