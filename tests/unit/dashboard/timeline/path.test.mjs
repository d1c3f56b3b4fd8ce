import assert from "node:assert/strict";
import test from "node:test";
import { pathFrom, strokes } from "../../../../dashboard/js/timeline/path.js";

const BEGIN = 1_700_000_000_000_000_000n;
const step = (row, start, end) => ({ row, startedNs: BEGIN + BigInt(start), finishedNs: BEGIN + BigInt(end) });
const scale = { nsPerPx: 10, first: 0, width: 100 };

test("a path goes along rows and from row to row", () => {
    const path = pathFrom([step(5, 400, 600), step(2, 100, 300)], BEGIN);
    assert.deepEqual(strokes(path, scale), [
        { x: 10, width: 20, top: 2, bottom: 2, isWait: false },
        { x: 30, width: 10, top: 2, bottom: 2, isWait: true },
        { x: 40, width: 0, top: 2, bottom: 5 },
        { x: 40, width: 20, top: 5, bottom: 5, isWait: false },
    ]);
});

test("a step without a row is left out", () => {
    assert.equal(pathFrom([step(-1, 0, 10)], BEGIN).starts.length, 0);
    assert.deepEqual(strokes(pathFrom([], BEGIN), scale), []);
});

test("steps that share a column become one piece, so a long path stays cheap", () => {
    const steps = Array.from({ length: 100000 }, (_, i) => step((i * 7) % 64, i, i + 1));
    const list = strokes(pathFrom(steps, BEGIN), { nsPerPx: 1000, first: 0, width: 100 });
    assert.ok(list.length <= 3 * scale.width + 10, `${list.length}`);
    assert.ok(list.some((s) => s.top === 0 && s.bottom === 63));
});

test("the line that leaves the window is drawn to its edge", () => {
    const path = pathFrom([step(1, 0, 100), step(1, 200, 100000), step(9, 100000, 110000)], BEGIN);
    const list = strokes(path, { nsPerPx: 10, first: 50, width: 100 });
    assert.equal(list.length > 0, true);
    assert.ok(list.some((s) => s.top === 1 && s.bottom === 1 && s.x <= 0 && s.x + s.width >= 100));
});
