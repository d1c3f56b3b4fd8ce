import assert from "node:assert/strict";
import test from "node:test";
import { nextSpan, spanNear } from "../../../../dashboard/js/timeline/select.js";

const BEGIN = 1_700_000_000_000_000_000n;
const never = new AbortController().signal;

/** A job whose row 0 has the spans [start, end]. */
function jobOf(list, extent = 1e12) {
    const asked = [];
    const all = list.map(([start, end]) => ({
        row: 0, op: "add", key: `k${start}`, startedNs: BEGIN + BigInt(start), finishedNs: BEGIN + BigInt(end), start, end,
    }));
    const spans = async (o) => {
        asked.push(o);
        const [from, until] = [Number(o.fromNs - BEGIN), Number(o.untilNs - BEGIN)];
        const found = all.filter((s) => s.end > from && s.start < until);
        return { spans: found.slice(0, o.limit), more: found.length > o.limit };
    };
    return { asked, beginNs: BEGIN, extent, source: { spans } };
}

test("of the tasks in a pixel, the longest is chosen", async () => {
    const job = jobOf([[100, 110], [120, 190], [192, 195]]);
    assert.equal((await spanNear(job, 0, 150, 60, never)).key, "k120");
    assert.equal(await spanNear(job, 0, 5000, 60, never), undefined);
    assert.equal(job.asked[0].rows, 1);
});

test("the next task is found, near and far", async () => {
    const job = jobOf([[100, 110], [200, 210], [900_000_000, 900_000_010]]);
    assert.equal((await nextSpan(job, 0, 100, 1, 50, never)).key, "k200");
    assert.equal((await nextSpan(job, 0, 200, 1, 100_000, never)).key, "k900000000");
    assert.ok(job.asked.length < 12);
    assert.equal(await nextSpan(job, 0, 900_000_000, 1, 1e9, never), undefined);
});

test("the task before is the last one before, also where one answer does not hold all", async () => {
    const job = jobOf(Array.from({ length: 5000 }, (_, i) => [i * 100, i * 100 + 90]));
    assert.equal((await nextSpan(job, 0, 300_000, -1, 50, never)).key, "k299900");
    assert.equal((await nextSpan(job, 0, 300_000, -1, 1e6, never)).key, "k299900");
    assert.equal(await nextSpan(job, 0, 0, -1, 1e6, never), undefined);
});
