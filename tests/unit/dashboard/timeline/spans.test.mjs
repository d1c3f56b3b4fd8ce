import assert from "node:assert/strict";
import test from "node:test";
import * as spans from "../../../../dashboard/js/timeline/spans.js";

const BEGIN = 1_700_000_000_000_000_000n;
const span = (row, start, end, op = "add") => ({ row, startedNs: String(BEGIN + BigInt(start)), finishedNs: BEGIN + BigInt(end), op, key: `${op}-${start}` });

test("few chunks cover a window that shows spans", () => {
    for (const more of [300, 1e6, 3.3e9, 7e10]) {
        const exponent = spans.chunkExponent(more);
        for (const from of [0, more * 0.3, more * 7.7])
            assert.ok(spans.chunksOf({ from, until: from + more }, exponent, 1e12, 0, 64).length <= 3, `${more} ${from}`);
    }
});

test("the chunk in the middle comes first, and each block of rows has its own", () => {
    const keys = spans.chunksOf({ from: 1000, until: 1500 }, 8, 1e9, 60, 10);
    assert.deepEqual(keys.slice(0, 2), ["8/4/0", "8/4/1"]);
    assert.deepEqual(spans.chunkId("8/4/1"), { exponent: 8, index: 4, block: 1 });
});

test("spans are sorted by row and begin, whatever their order", () => {
    const chunk = spans.chunkFrom("20/0/0", { spans: [span(1, 50, 60), span(0, 5, 9), span(1, 10, 20)], more: false }, BEGIN, 100);
    assert.deepEqual([...chunk.rows.get(1).starts], [10, 50]);
    assert.equal(chunk.rows.get(1).spans[0].key, "add-10");
    assert.equal(chunk.count, 3);
});

test("a long span before the window is found behind short ones", () => {
    const row = spans.chunkFrom("20/0/0", { spans: [span(0, 0, 1000), span(0, 10, 20), span(0, 30, 40)], more: false }, BEGIN, 0).rows.get(0);
    const [first, end] = spans.overlapping(row, 500, 600);
    assert.equal(first, 0);
    assert.equal(end, 3);
    assert.deepEqual(spans.overlapping(row, 2000, 3000), [3, 3]);
});

test("the search finds the first element above, for each list", () => {
    for (let n = 0; n < 9; n++) {
        const list = Float64Array.from({ length: n }, (_, i) => Math.floor(i / 2));
        for (let x = -1; x < 6; x++) {
            const wanted = list.findIndex((v) => v > x);
            assert.equal(spans.above(list, x), wanted < 0 ? n : wanted);
        }
    }
});

test("the span at a time is found, or the nearest in reach", () => {
    const row = spans.chunkFrom("20/0/0", { spans: [span(0, 100, 200), span(0, 300, 400)], more: false }, BEGIN, 0).rows.get(0);
    assert.equal(spans.spanAt(row, 150, 0).key, "add-100");
    assert.equal(spans.spanAt(row, 215, 20).key, "add-100");
    assert.equal(spans.spanAt(row, 290, 20).key, "add-300");
    assert.equal(spans.spanAt(row, 250, 20), undefined);
    assert.equal(spans.spanAt(undefined, 250, 20), undefined);
});

test("of two spans at one place, the shorter is chosen", () => {
    const row = spans.chunkFrom("20/0/0", { spans: [span(0, 0, 1000, "long"), span(0, 100, 110, "short")], more: false }, BEGIN, 0).rows.get(0);
    assert.equal(spans.spanAt(row, 105, 5).op, "short");
    assert.equal(spans.spanAt(row, 500, 5).op, "long");
});
