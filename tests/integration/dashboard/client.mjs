/* The JavaScript client in Node against a real cluster: node client.mjs CLIENT URL. */
import assert from "node:assert/strict";

const [client_js, url] = process.argv.slice(2);
const { ApiError, Client, ConnectionError, parseExact, writeExact } = await import(client_js);
const { EventReader } = await import(new URL("events.js", `file://${client_js}`));
const client = new Client({ url });

const steps = {
    async "JSON keeps integers of any size"() {
        const text = '{"a":9007199254740993,"b":[-9223372036854775808,1.5,"12345678901234567890"],"c":{"__proto__":1}}';
        const value = parseExact(text);
        assert.equal(value.a, 9007199254740993n);
        assert.deepEqual(value.b, [-9223372036854775808n, 1.5, "12345678901234567890"]);
        assert.equal(writeExact(value), text);
        assert.throws(() => parseExact('{"a": 12345678901234567890, }'), SyntaxError);
    },
    async "events are read from pieces of a stream"() {
        const reader = new EventReader();
        const found = [];
        for (const c of "id: 1\nevent: error\ndata: a\ndata: b\n\n: ping\n\nretry: 5\ndata:c\n\n") found.push(...reader.push(c));
        assert.deepEqual(found, [{ id: "1", type: "error", data: "a\nb" }, { id: "", type: "", data: "c" }]);
        assert.deepEqual([reader.id, reader.retryMs], ["1", 5]);
    },
    async "a job runs, and its result has all digits"() {
        const { id } = await client.jobs.submit({ tasks: { x: { op: "identity", args: [2n ** 63n - 1n] }, "a/b": { op: "inc", args: [1] } } });
        const job = await client.jobs.get(id, { wait_s: 30 });
        assert.equal(job.state, "JOB_DONE");
        assert.equal(typeof job.created_ns, "bigint");
        assert.ok(job.created_ns > 1700000000000000000n);
        assert.equal(job.counts.done, 2n);
        assert.equal(await client.jobs.result(id, "x"), 9223372036854775807n);
        assert.equal(await client.jobs.result(id, "a/b"), 2);
        const all = await client.jobs.results(id, { key: ["x", "a/b"] });
        assert.deepEqual(all.results, { x: 9223372036854775807n, "a/b": 2 });
        const profile = await client.jobs.profile(id);
        assert.equal(Object.values(profile.classes).reduce((a, b) => a + b, 0n), profile.slot_ns);
        const { spans } = await client.jobs.timeline(id);
        assert.deepEqual(spans.map((s) => s.key).sort(), ["a/b", "x"]);
        const states = [];
        for await (const { data } of client.jobs.watch(id)) states.push(data.job.state);
        assert.equal(states.at(-1), "JOB_DONE");
    },
    async "errors have the sentence of the server"() {
        const e = await client.jobs.get("j1-999").catch((x) => x);
        assert.ok(e instanceof ApiError);
        assert.deepEqual([e.status, e.code, e.isTransient], [404, 5, false]);
        assert.match(e.message, /no job j1-999/);
        await assert.rejects(client.jobs.submit({ tasks: { x: { op: "no.such.op" } } }), /no.such.op/);
        await assert.rejects(new Client({ url: "http://127.0.0.1:9" }).cluster.info(), ConnectionError);
        assert.throws(() => new Client(), /needs the address/);
    },
    async "lists go on page by page"() {
        for (let i = 0; i < 3; i++) await client.jobs.submit({ name: `page ${i}`, labels: { test: "pages" }, tasks: { x: { op: "inc", args: [i] } } }, { wait_s: 30 });
        const names = [];
        for await (const job of client.jobs.all({ page_size: 1, label: "test=pages" })) names.push(job.name);
        assert.deepEqual(names, ["page 2", "page 1", "page 0"]);
    },
    async "channels are followed from where a reader was"() {
        await client.channels.append("notes", [1, { wide: 2n ** 60n }]);
        const first = [];
        for await (const event of client.channels.watch("notes")) {
            first.push(event);
            if (first.length === 2) break;
        }
        assert.deepEqual(first.map((e) => parseExact(e.data.value_json)), [1, { wide: 2n ** 60n }]);
        await client.channels.append("notes", ["new"]);
        for await (const event of client.channels.watch("notes", { lastEventId: first[1].id })) {
            assert.equal(event.data.value_json, '"new"');
            break;
        }
    },
    async "queues, objects and templates work"() {
        await client.queues.create("work", { items_max: 5 });
        await client.queues.put("work", { value: { n: 1 } });
        const { items } = await client.queues.take("work", { lease_s: 30 });
        assert.equal(items[0].value_json, '{"n":1}');
        assert.equal((await client.queues.ack("work", [items[0].receipt])).known, 1);
        const object = await client.objects.put({ body: "a text", type: "application/vnd.millrace.text" }, { name: "folder/a" });
        assert.equal(typeof object.nbytes, "bigint");
        assert.equal(await client.objects.get("name:folder/a"), "a text");
        await client.templates.install({ params: { n: 1 }, tasks: { y: { op: "inc", args: ["${n}"] } } }, { name: "next" });
        const { id } = await client.templates.instantiate("next", { n: 41 }, { wait_s: 30 });
        assert.equal(await client.jobs.result(id, "y"), 42);
    },
    async "the cluster describes itself"() {
        assert.deepEqual(await client.cluster.health(), { ready: true });
        const { workers } = await client.cluster.workers();
        assert.equal(workers.length, 1);
        assert.equal((await client.whoami()).role, "admin");
        const stop = new AbortController();
        for await (const event of client.cluster.watch({ signal: stop.signal })) {
            assert.equal(event.data.change, "CLUSTER_CHANGE_SCHEDULER");
            stop.abort();
        }
    },
};

for (const [name, step] of Object.entries(steps)) {
    await step().catch((e) => {
        throw new Error(`${name}: ${e.stack}`);
    });
    console.log(`ok: ${name}`);
}
process.exit(0);
