/* Workers and nodes: what each does, its queue and memory; drain. */
import { h, morph, onFrame } from "../dom.js";
import { bytes, count, counted, duration } from "../format.js";
import { Samples } from "../samples.js";
import { action, badge, bar, empty, outcome, shown, table } from "../parts.js";

/** @typedef {import("../../client/api.d.ts").WorkerInfo} Worker */

/**
 * @param {import("../main.js").Context} c
 * @returns {import("../main.js").Page}
 */
export function openWorkers(c) {
    c.title("Workers");
    const draw = onFrame(render);
    const order = { column: "Worker", down: false };
    /** @type {import("../parts.js").Said} */
    let said;
    const feed = c.session.feed((api, signal) => api.cluster.workers({ signal, page_size: 1000 }), draw, 2000);
    const info = c.session.feed((api, signal) => api.cluster.info({ signal }), draw, 2000);
    const samples = new Samples(c.session, draw);
    const say = (/** @type {import("../parts.js").Said} */ s) => {
        said = s;
        draw();
        feed.refresh();
    };

    /** @param {Worker} w */
    const drain = (w) => action({ session: c.session, of: w.name, role: "admin", label: "Drain", sure: `Drain worker ${w.name}? It ends its running tasks, then leaves the cluster.`, isDanger: true, say, act: async () => {
        await c.session.client.cluster.retire(w.name);
        return `Worker ${w.name} leaves when its running tasks have ended.`;
    } });

    function render() {
        const nodes = info.data?.store ?? [];
        morph(c.root, h("h1", {}, "Workers"), outcome(said), shown(feed, ({ workers }) => workers.length ? table({ label: "Workers", rows: workers, key: (w) => w.name, order, redraw: draw, columns: [
            { title: "Worker", sort: (w) => w.name, cell: (w) => [h("b", {}, w.name), h("div", { class: "quiet" }, `${w.node}, pid ${w.pid}`)] },
            { title: "State", sort: (w) => w.state, cell: (w) => [badge(w.state), w.state === "silent" ? h("div", { class: "quiet" }, `for ${duration(w.last_heard_ns)}`) : null] },
            { title: "Slots in use", isNumber: true, sort: (w) => w.running, cell: (w) => [`${Math.min(w.running, w.slots)} of ${w.slots}`, bar(w.running, w.slots)] },
            { title: "Queued", isNumber: true, sort: (w) => w.queued, cell: (w) => count(w.queued) },
            { title: "Memory", isNumber: true, sort: (w) => w.memory_used_bytes, cell: (w) => [`${bytes(w.memory_used_bytes)}${w.memory_bytes ? ` of ${bytes(w.memory_bytes)}` : ""}`, w.memory_bytes ? bar(Number(w.memory_used_bytes), Number(w.memory_bytes)) : null] },
            { title: "Holds", isNumber: true, sort: (w) => w.held_bytes, cell: (w) => bytes(w.held_bytes) },
            { title: "Tasks ended", isNumber: true, sort: (w) => w.tasks_done, cell: (w) => count(w.tasks_done) },
            { title: "Runs", isWide: true, cell: (w) => [w.runtimes.join(", "), Object.keys(w.resources).length ? h("div", { class: "quiet" }, Object.entries(w.resources).map(([k, v]) => `${k}=${v}`).join(", ")) : null] },
            { title: "Drain", cell: drain },
        ] }) : empty("There is no worker.", "Start one: ", h("code", {}, "mr-worker"), ", or start the cluster with ", h("code", {}, "millrace up --workers 4"), ".")),
        h("h2", {}, "Nodes"), shown(info, () => nodes.length ? table({ label: "Object stores of the nodes", rows: nodes, key: (s) => s.address, columns: [
            { title: "Node", cell: (s) => [h("b", {}, s.node), h("div", { class: "quiet" }, s.address)] },
            { title: "Workers", isNumber: true, cell: (s) => count((feed.data?.workers ?? []).filter((w) => w.node === s.node).length) },
            { title: "Memory of the store", isNumber: true, cell: (s) => [`${bytes(s.used_bytes)} of ${bytes(s.memory_bytes)}`, bar(Number(s.used_bytes), Number(s.memory_bytes))] },
            { title: "Spilled to disk", isNumber: true, cell: (s) => bytes(s.spilled_bytes) },
            { title: "Objects", isNumber: true, cell: (s) => count(s.objects) },
            { title: "Disk", cell: (s) => (s.disk_full ? [badge("lost"), ` full: ${s.disk_full}`] : "has space") },
        ] }) : empty("There is no object store.", "Start one on each node: ", h("code", {}, "mr-objectstore"), ".")),
        feed.data ? h("p", { class: "quiet" }, `${counted(feed.data.workers.length, "worker")}, ${counted(feed.data.workers.reduce((n, w) => n + w.slots, 0), "slot")}. A click on a title sorts.`) : null,
        samples.show());
        samples.attach(c.root);
    }

    draw();
    return {
        close() {
            feed.close();
            info.close();
            samples.close();
        },
        retheme: () => samples.retheme(),
    };
}
