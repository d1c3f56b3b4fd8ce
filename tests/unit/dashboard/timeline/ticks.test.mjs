import assert from "node:assert/strict";
import test from "node:test";
import { clockText, durationText, stepFor, ticksOf } from "../../../../dashboard/js/timeline/ticks.js";

test("steps are round in each unit", () => {
    assert.equal(stepFor(3), 5);
    assert.equal(stepFor(1.1e9), 2e9);
    assert.equal(stepFor(6e9), 10e9);
    assert.equal(stepFor(11e9), 15e9);
    assert.equal(stepFor(61e9), 120e9);
    assert.equal(stepFor(8000e9), 10800e9);
    assert.equal(stepFor(3 * 86400e9), 5 * 86400e9);
    assert.equal(stepFor(70 * 86400e9), 100 * 86400e9);
});

test("at each scale there are ticks, not too many, in order and with texts that differ", () => {
    for (const begin of [0, 1.5, 1234567.5, 5e9, 3599.9e9, 2e13])
        for (let width = 200; width < 1e15; width *= 3.7) {
            const { ticks, step } = ticksOf(begin, begin + width, 10);
            assert.ok(ticks.length >= 2 && ticks.length <= 11, `${begin} ${width}: ${ticks.length}`);
            for (let i = 1; i < ticks.length; i++) assert.equal(ticks[i].time - ticks[i - 1].time, step);
            assert.ok(ticks.every((t) => t.time >= begin && t.time <= begin + width));
            let major = "";
            const texts = ticks.map((t) => (t.isMajor ? (major = t.text) : major + t.text));
            assert.equal(new Set(texts).size, texts.length, `${begin} ${width}: ${texts}`);
        }
});

test("far from the begin, short steps count from a round time", () => {
    const { ticks, base } = ticksOf(12.3456781e9, 12.3456789e9, 4);
    assert.equal(base, "12.345678 s");
    assert.deepEqual(ticks.map((t) => t.text), ["+200 ns", "+400 ns", "+600 ns", "+800 ns"]);
    assert.ok(ticks.every((t) => !t.isMajor));
});

test("a whole time among the ticks has its own text", () => {
    const { ticks } = ticksOf(1.999999e9, 2.000001e9, 4);
    assert.ok(ticks.some((t) => t.isMajor && t.text === "2 s"));
    assert.ok(ticks.some((t) => t.text.startsWith("+")));
});

test("times have the digits that the step needs", () => {
    assert.equal(clockText(0, 1), "0");
    assert.equal(clockText(250, 1), "250 ns");
    assert.equal(clockText(1500, 100), "1.5 µs");
    assert.equal(clockText(12.5e6, 1e5), "12.5 ms");
    assert.equal(clockText(1.25e9, 1e7), "1.25 s");
    assert.equal(clockText(59.9999e9, 1e9), "60 s");
    assert.equal(clockText(65e9, 1e9), "1:05");
    assert.equal(clockText(65.25e9, 1e7), "1:05.25");
    assert.equal(clockText(119.9999e9, 1e8), "2:00");
    assert.equal(clockText(3725e9, 1e9), "1:02:05");
    assert.equal(clockText(90061e9, 1e9), "1 d 01:01:01");
});

test("durations have three digits", () => {
    assert.equal(durationText(0), "0 ns");
    assert.equal(durationText(1.234e6), "1.23 ms");
    assert.equal(durationText(999.9e3), "1 ms");
    assert.equal(durationText(59.99e9), "1 min 0 s");
    assert.equal(durationText(125e9), "2 min 5 s");
    assert.equal(durationText(3599.7e9), "1 h 0 min");
    assert.equal(durationText(90000e9), "1 d 1 h");
    assert.equal(durationText(-5e3), "−5 µs");
});
