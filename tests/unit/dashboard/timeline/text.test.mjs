import assert from "node:assert/strict";
import test from "node:test";
import * as text from "../../../../dashboard/js/timeline/text.js";

const BEGIN = 1_700_000_000_000_000_000n;
const SPAN = { row: 4, startedNs: String(BEGIN + 1_250_000_000n), finishedNs: BEGIN + 1_262_500_000n, op: "array.matmul", key: "mm-3", attempt: 1, outcome: "SPAN_OUTCOME_OK" };
const SLOT = { worker: "w0", slot: 2 };

test("a task is told in words", () => {
    assert.equal(text.spanSentence(SPAN, BEGIN, SLOT), "array.matmul, task mm-3, on w0, slot 2, started at 1.25 s, took 12.5 ms.");
});

test("what is unusual about a task is told too", () => {
    const span = { ...SPAN, attempt: 2, outcome: "SPAN_OUTCOME_LOST", cause: "transfer for 3 ms", details: [["bytes", "5 MiB"]] };
    const words = text.spanWords(span, BEGIN, SLOT);
    assert.deepEqual(words.lines.slice(3), [["attempt", "2"], ["outcome", "lost"], ["before", "transfer for 3 ms"], ["bytes", "5 MiB"]]);
    assert.match(text.spanSentence(span, BEGIN, undefined), /attempt: 2, outcome: lost, before: transfer for 3 ms, bytes: 5 MiB\.$/);
});

test("a pixel says its share, and an idle one that it is idle", () => {
    const part = { name: "no_work", share: 0.5, from: 1e9, until: 2e9 };
    assert.deepEqual(text.pixelWords(part, "class", SLOT, "Nothing was submitted.", true).lines[1], ["share", "50 % of 1 s"]);
    assert.equal(text.pixelWords(part, "class", SLOT, undefined, true).title, "no work");
    const idle = text.pixelWords({ ...part, name: "", share: 0 }, "op", undefined, undefined, true);
    assert.equal(idle.title, "idle");
    assert.equal(idle.subtitle, "");
});

test("a window is told in words", () => {
    assert.equal(text.windowSentence(-5, 90e9), "Shows 0 to 1:30, 1 min 30 s.");
});
