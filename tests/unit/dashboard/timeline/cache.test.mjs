import assert from "node:assert/strict";
import test from "node:test";
import { Loader } from "../../../../dashboard/js/timeline/cache.js";

/** A loader whose requests end when the test says so. */
function rig(options = {}) {
    const open = new Map();
    const began = [];
    const timers = [];
    let changes = 0;
    const loader = new Loader({
        load: (key, signal) => new Promise((resolve, reject) => {
            began.push(key);
            open.set(key, { resolve, reject, signal });
        }),
        bytesOf: (value) => value.length,
        bytesMax: 100,
        active: 2,
        onChange: () => changes++,
        later: (run, ms) => timers.push({ run, ms }),
        ...options,
    });
    const settle = () => new Promise((r) => setImmediate(r));
    return {
        loader, open, began, timers, settle,
        changes: () => changes,
        async answer(key, value = key) {
            open.get(key).resolve(value);
            await settle();
        },
        async fail(key) {
            open.get(key).reject(new Error("no answer"));
            await settle();
        },
    };
}

test("the most urgent is loaded first, and only so many at a time", async () => {
    const r = rig();
    r.loader.want(["a", "b", "c", "d"]);
    assert.deepEqual(r.began, ["a", "b"]);
    await r.answer("b");
    assert.deepEqual(r.began, ["a", "b", "c"]);
    assert.equal(r.loader.get("b"), "b");
    assert.equal(r.changes(), 1);
});

test("what is not wanted any more is aborted, and its late answer is not kept", async () => {
    const r = rig();
    r.loader.want(["a", "b"]);
    r.loader.want(["b", "c"]);
    assert.equal(r.open.get("a").signal.aborted, true);
    assert.equal(r.open.get("b").signal.aborted, false);
    assert.deepEqual(r.began, ["a", "b", "c"]);
    await r.answer("a");
    assert.equal(r.loader.get("a"), undefined);
});

test("what is here is not loaded again", async () => {
    const r = rig();
    r.loader.want(["a"]);
    await r.answer("a");
    r.loader.want([]);
    r.loader.want(["a"]);
    assert.deepEqual(r.began, ["a"]);
});

test("a wanted key that was aborted is loaded anew, and only the new answer counts", async () => {
    const r = rig();
    r.loader.want(["a"]);
    const old = r.open.get("a");
    r.loader.want([]);
    r.loader.want(["a"]);
    old.resolve("old");
    await r.settle();
    assert.equal(r.loader.get("a"), undefined);
    await r.answer("a", "new");
    assert.equal(r.loader.get("a"), "new");
});

test("the least recently used is given up at the bound of bytes", async () => {
    const r = rig();
    for (const key of ["a", "b", "c"]) {
        r.loader.want([key]);
        await r.answer(key, key.repeat(40));
        r.loader.get("a");
    }
    assert.equal(r.loader.get("b"), undefined);
    assert.ok(r.loader.get("a"));
    assert.ok(r.loader.bytes <= 100);
});

test("a value larger than the bound is kept while it is the newest", async () => {
    const r = rig();
    r.loader.want(["a"]);
    await r.answer("a", "x".repeat(500));
    assert.ok(r.loader.get("a"));
    r.loader.want(["b"]);
    await r.answer("b", "y");
    r.loader.want([]);
    assert.equal(r.loader.get("a"), undefined);
    assert.equal(r.loader.bytes, 1);
});

test("what is wanted is not given up for what is less urgent, and loading ends", async () => {
    const r = rig();
    r.loader.want(["a", "b", "c", "d"]);
    for (const key of ["a", "b", "c"]) if (r.open.has(key)) await r.answer(key, key.repeat(60));
    assert.ok(r.loader.get("a"));
    assert.ok(!r.began.includes("d"));
    assert.equal(new Set(r.began).size, r.began.length);
    r.loader.want(["d"]);
    await r.answer("d");
    assert.ok(r.loader.bytes <= 100);
});

test("a failed request waits longer each time, and others go on", async () => {
    const r = rig();
    r.loader.want(["a", "b", "c"]);
    await r.fail("a");
    assert.deepEqual(r.began, ["a", "b", "c"]);
    assert.match(String(r.loader.error), /no answer/);
    assert.equal(r.timers[0].ms, 1000);
    r.timers[0].run();
    await r.answer("b");
    assert.deepEqual(r.began, ["a", "b", "c", "a"]);
    await r.fail("a");
    assert.equal(r.timers[1].ms, 2000);
    r.loader.retry();
    await r.answer("a");
    assert.equal(r.loader.error, null);
});

test("a failure of what is not wanted any more is forgotten", async () => {
    const r = rig();
    r.loader.want(["a"]);
    await r.fail("a");
    r.loader.want(["b"]);
    assert.equal(r.loader.error, null);
    r.timers[0].run();
    assert.deepEqual(r.began, ["a", "b"]);
});

test("an expired value is given out until the new one is here", async () => {
    const r = rig();
    r.loader.want(["a", "b"]);
    await r.answer("a", "a1");
    await r.answer("b", "b1");
    r.loader.expire((v) => v === "a1");
    r.loader.want(["a", "b"]);
    assert.equal(r.loader.get("a"), "a1");
    assert.deepEqual(r.began, ["a", "b", "a"]);
    await r.answer("a", "a2");
    assert.equal(r.loader.get("a"), "a2");
    assert.equal(r.loader.bytes, 4);
});

test("a closed loader aborts and begins nothing", () => {
    const r = rig();
    r.loader.want(["a"]);
    r.loader.close();
    assert.equal(r.open.get("a").signal.aborted, true);
    r.loader.want(["b"]);
    assert.deepEqual(r.began, ["a"]);
});
