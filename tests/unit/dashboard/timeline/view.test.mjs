import assert from "node:assert/strict";
import test from "node:test";
import * as view from "../../../../dashboard/js/timeline/view.js";

const HOUR = 3600e9;
const near = (a, b, slack = 1e-6) => assert.ok(Math.abs(a - b) <= slack * Math.max(1, Math.abs(b)), `${a} is not ${b}`);

test("the whole job has a margin on both sides", () => {
    const w = view.whole(HOUR);
    assert.ok(w.from < 0 && w.until > HOUR);
    near(-w.from, w.until - HOUR);
});

test("a job without duration has a window", () => {
    const w = view.whole(0);
    assert.ok(w.from < 0 && w.until > 0);
    const c = view.clamp({ from: 5, until: 5 }, 0);
    assert.ok(c.from < 0 && c.until > 0);
});

test("a zoom keeps the time under the pointer", () => {
    let w = { from: 1e9, until: 3e9 };
    const at = 1.4e9;
    for (const factor of [0.5, 0.3, 1.7, 0.01]) {
        const part = (at - w.from) / (w.until - w.from);
        w = view.zoom(w, factor, at, HOUR);
        near((at - w.from) / (w.until - w.from), part);
    }
});

test("a zoom ends at the narrowest window and at the whole job", () => {
    const w = view.zoom({ from: 0, until: 1000 }, 1e-9, 500, HOUR);
    near(w.until - w.from, view.WINDOW_MIN);
    assert.deepEqual(view.zoom({ from: 0, until: 1e9 }, 1e12, 5e8, HOUR), view.whole(HOUR));
});

test("a pan stops at the begin and at the end, and keeps the width", () => {
    const w = { from: 10e9, until: 20e9 };
    for (const by of [-1e15, 1e15]) {
        const moved = view.pan(w, by, HOUR);
        near(moved.until - moved.from, 10e9);
        assert.ok(moved.from >= -1e9 && moved.until <= HOUR + 1e9);
    }
    near(view.pan(w, 3e9, HOUR).from, 13e9);
});

test("a window is never outside of the job, whatever is asked for", () => {
    let seed = 7;
    const random = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    for (let i = 0; i < 2000; i++) {
        const extent = 10 ** (random() * 14);
        const from = (random() - 0.5) * 3 * extent;
        const w = view.clamp({ from, until: from + 10 ** (random() * 15) }, extent);
        const width = w.until - w.from;
        assert.ok(width >= view.WINDOW_MIN * 0.999);
        assert.ok(w.from >= -0.03 * width && w.until <= Math.max(extent, view.WINDOW_MIN) + 0.03 * width, JSON.stringify({ w, extent }));
    }
});

test("two fingers hold the times under them", () => {
    const w = view.pinch(20e9, 30e9, 0.25, 0.75, HOUR);
    near(w.from, 15e9);
    near(w.until, 35e9);
    const met = view.pinch(20e9, 30e9, 0.5, 0.5, HOUR);
    assert.ok(Number.isFinite(met.from) && met.until > met.from);
});

test("a movement begins and ends at its windows and changes the width evenly", () => {
    const [a, b] = [{ from: 0, until: 1000e9 }, { from: 100e9, until: 110e9 }];
    const start = view.between(a, b, 0);
    near(start.from, a.from);
    near(start.until, a.until);
    assert.deepEqual(view.between(a, b, 1), b);
    const middle = view.between(a, b, 0.5);
    near(middle.until - middle.from, Math.sqrt(1000e9 * 10e9));
    near(view.between({ from: 0, until: 10 }, { from: 10, until: 20 }, 0.5).from, 5);
});

test("columns keep their times when the window moves", () => {
    const w = { from: 123456789, until: 223456789 };
    const a = view.scaleOf(w, 1000);
    const b = view.scaleOf({ from: w.from + 3.4 * a.nsPerPx, until: w.until + 3.4 * a.nsPerPx }, 1000);
    near(view.timeAt(a, 10), view.timeAt(b, 10 - (b.first - a.first)));
    assert.ok(Math.abs(view.timeAt(a, 0) - w.from) <= a.nsPerPx / 2 + 1e-6);
    near(view.placeOf(a, view.timeAt(a, 77)), 77);
});

test("few rows are high, many are low, and what does not fit scrolls", () => {
    assert.equal(view.pitchFor(600, 4), 26);
    assert.equal(view.pitchFor(640, 64), 10);
    assert.equal(view.pitchFor(600, 10000), 8);
    const r = view.rowsOf(10, 2, 1000, 600, 1e9);
    assert.equal(r.pitch, 20);
    assert.equal(r.scroll, 20 * 1000 - 600);
    assert.equal(view.rowsOf(10, 2, 10, 600, 50).scroll, 0);
});

test("only the rows on the screen are shown, also those in part", () => {
    const r = view.rowsOf(10, 1, 1000, 105, 995);
    assert.deepEqual(view.rowsShown(r), { first: 99, count: 11 });
    assert.equal(view.rowAt(r, 0), 99);
    assert.equal(view.rowAt(r, 6), 100);
    assert.equal(view.rowAt(r, 105), -1);
    assert.deepEqual(view.rowsShown(view.rowsOf(10, 1, 0, 100, 0)).count, 0);
    assert.equal(view.rowAt(view.rowsOf(10, 1, 3, 100, 0), 35), -1);
});

test("scrolling to a row shows the whole of it and else moves nothing", () => {
    const r = view.rowsOf(10, 1, 1000, 100, 500);
    assert.equal(view.scrollTo(r, 55), 500);
    assert.equal(view.scrollTo(r, 10), 100);
    assert.equal(view.scrollTo(r, 60), 510);
});
