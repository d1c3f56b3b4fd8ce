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
            return { spans: [{ row: o.firstRow, op: "add", key: "k", startedNs: o.fromNs, finishedNs: o.fromNs + 10n }], more: false };
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
    r.draw({ from: 0, until: 1e9 });
    assert.equal(r.data.isNear, false);
    const w = { from: 5e8, until: 5.005e8 };
    r.draw(w);
    await settle();
    r.draw(w);
    assert.equal(r.data.isNear, true);
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

test("spans stay while the density grows a little, and give way to tiles when it grows much", async () => {
    let more = 1_000_000;
    const r = rig(1e9);
    const tiles = r.source.tiles.bind(r.source);
    r.source.tiles = async (o) => ({ ...(await tiles(o)), more_spans_ns: String(more) });
    const w = (from) => ({ from, until: from + 900_000 });
    const rest = async (from) => {
        for (let i = 0; i < 3; i++) {
            r.draw(w(from));
            await settle();
        }
        r.draw(w(from));
        return r.data.isNear;
    };
    assert.equal(await rest(1e8), true);
    const exponent = r.data.exponent;
    more = 700_000;
    assert.equal(await rest(3e8), true);
    assert.equal(r.data.exponent, exponent);
    more = 100_000;
    assert.equal(await rest(6e8), false);
});

test("a chunk with more spans than an answer holds is not drawn", async () => {
    const r = rig(1e9);
    r.source.spans = async (o) => ({ spans: [{ row: 0, op: "add", key: "k", startedNs: o.fromNs, finishedNs: o.fromNs }], more: true });
    const w = { from: 5e8, until: 5.005e8 };
    for (let i = 0; i < 3; i++) {
        r.draw(w);
        await settle();
    }
    assert.equal(r.data.isNear, true);
    assert.equal(r.data.chunksIn(w, r.rows).length, 0);
});

test("a new worker may move all rows, so every tile is loaded again", async () => {
    const r = rig(100e9);
    const w = { from: 0, until: 10e9 };
    for (let i = 0; i < 5; i++) {
        r.draw(w);
        await settle();
    }
    const before = r.source.asked.length;
    r.source.rowsCount = 5;
    r.data.refresh();
    r.draw(w);
    await settle();
    assert.ok(r.source.asked.length > before);
});

test("only operators take colours of operators", async () => {
    const r = rig(1e9);
    const w = { from: 0, until: 1e9 };
    r.draw(w);
    await settle();
    r.draw(w);
    assert.deepEqual([...r.data.ops.chosen.keys()], ["add"]);
});
