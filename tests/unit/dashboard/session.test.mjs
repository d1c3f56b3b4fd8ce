import assert from "node:assert/strict";
import test from "node:test";
import "./client.mjs";

/** The document of a page, whose tab may be hidden. */
const tab = Object.assign(new EventTarget(), { hidden: false });
globalThis.document = tab;
globalThis.location = { origin: "http://gateway" };
const { ConnectionError } = await import("../../../clients/js/millrace.js");
const { stream } = await import("../../../clients/js/events.js");
const { Http } = await import("../../../clients/js/http.js");
const { Feed } = await import("../../../dashboard/js/feed.js");
const { Session } = await import("../../../dashboard/js/session.js");

function setHidden(hidden) {
    tab.hidden = hidden;
    tab.dispatchEvent(new Event("visibilitychange"));
}

/** Lets everything go on that waits for nothing but promises. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** Streams that send one event and then wait for their signal. */
function streams() {
    const opened = [];
    async function* open(_, o) {
        if (o.signal.aborted) return;
        opened.push(o);
        yield { id: String(opened.length), data: {} };
        if (!o.signal.aborted) await new Promise((resolve) => o.signal.addEventListener("abort", resolve));
    }
    return { opened, open };
}

async function readAll(events) {
    const ids = [];
    for await (const e of events) ids.push(e.id);
    return ids;
}

test("a stream is closed while the tab is hidden, and then goes on after its last event", async () => {
    const { opened, open } = streams(), stop = new AbortController();
    const done = readAll(new Session().watch(open, stop.signal));
    await settle();
    setHidden(true);
    await settle();
    assert.equal(opened[0].signal.aborted, true);
    assert.equal(opened.length, 1);
    setHidden(false);
    await settle();
    stop.abort();
    assert.deepEqual(await done, ["1", "2"]);
    assert.deepEqual(opened.map((o) => o.lastEventId), ["", "1"]);
});

test("a stream of states begins with the present state after the tab was hidden", async () => {
    const { opened, open } = streams(), stop = new AbortController();
    const done = readAll(new Session().watch(open, stop.signal, { isState: true }));
    await settle();
    setHidden(true);
    await settle();
    setHidden(false);
    await settle();
    stop.abort();
    assert.deepEqual(await done, ["1", "2"]);
    assert.deepEqual(opened.map((o) => o.lastEventId), ["", ""]);
});

test("no stream stays open, whenever it is aborted", async () => {
    for (let turns = 0; turns < 12; turns++) {
        const { opened, open } = streams(), stop = new AbortController();
        const done = readAll(new Session().watch(open, stop.signal));
        for (let i = 0; i < turns; i++) await Promise.resolve();
        stop.abort();
        const ended = await Promise.race([done.then(() => true), settle().then(settle)]);
        assert.equal(ended, true, `aborted after ${turns} microtasks`);
        assert.ok(opened.every((o) => o.signal.aborted));
    }
});

test("no stream stays open, whenever the tab is hidden", async () => {
    for (let turns = 0; turns < 12; turns++) {
        const { opened, open } = streams(), stop = new AbortController();
        const done = readAll(new Session().watch(open, stop.signal));
        for (let i = 0; i < turns; i++) await Promise.resolve();
        setHidden(true);
        await settle();
        assert.ok(opened.every((o) => o.signal.aborted), `hidden after ${turns} microtasks`);
        setHidden(false);
        stop.abort();
        await done;
    }
});

test("what could not be read while the tab was hidden is read when somebody sees it", async () => {
    let reads = 0;
    setHidden(true);
    const feed = new Feed(async () => {
        if (++reads === 1) throw new ConnectionError("away", undefined);
        return "data";
    }, { onChange: () => {} });
    await settle();
    assert.equal(feed.data, undefined);
    setHidden(false);
    await settle();
    assert.equal(feed.data, "data");
    setHidden(true);
    setHidden(false); // what was read once stays
    await settle();
    assert.equal(reads, 2);
    feed.close();
});

/** A gateway whose streams send one event. The first `ending` of them then end. */
function gateway(ending) {
    const asked = [], cancelled = [];
    const fetch = async (_, init) => {
        asked.push(init.headers["Last-Event-ID"]);
        const body = new ReadableStream({
            start(c) {
                c.enqueue(new TextEncoder().encode(`id: ${asked.length}\nretry: 1\ndata: {}\n\n`));
                if (asked.length <= ending) c.close();
            },
            cancel: () => void cancelled.push(asked.length),
        });
        return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
    };
    return { asked, cancelled, http: new Http({ url: "http://gateway", fetch }) };
}

test("a stream that is opened again goes on after its last event, or with the present state", async () => {
    for (const isState of [false, true]) {
        const { asked, http } = gateway(2), stop = new AbortController();
        for await (const _ of stream(http, "/v1/x", "X", {}, { signal: stop.signal, lastEventId: "0", isState }))
            if (asked.length === 3) break;
        assert.deepEqual(asked, isState ? ["0", undefined, undefined] : ["0", "1", "2"]);
    }
});

test("a stream that is aborted while it opens is closed", async () => {
    const { cancelled, http } = gateway(0), stop = new AbortController();
    const fetch = http.doFetch;
    http.doFetch = async (...args) => {
        const answer = await fetch(...args);
        stop.abort();
        return answer;
    };
    const states = [];
    for await (const _ of stream(http, "/v1/x", "X", {}, { signal: stop.signal, onState: (s) => states.push(s) })) assert.fail("an event came");
    assert.deepEqual([states, cancelled], [[], [1]]);
});
