/* Channels and queues: the lists, and the latest entries of one channel or the state of one queue. */
import { h, morph, onFrame } from "../dom.js";
import { count, cut } from "../format.js";
import { empty, errorBox, figure, shown, table, time } from "../parts.js";

const ENTRIES_MAX = 200;

/**
 * Entries of one channel, the newest first, as they come.
 * @param {import("../main.js").Context} c
 * @param {string} name
 * @param {() => void} draw
 */
function channel(c, name, draw) {
    /** @type {Array<import("../../client/api.d.ts").ChannelEntry>} */
    let entries = [];
    let lost = "";
    /** @type {any} */
    let problem;
    const stop = new AbortController();

    async function follow() {
        problem = undefined;
        entries = [];
        draw();
        try {
            for await (const { data, gap } of c.session.watch((api, o) => api.channels.watch(name, o), stop.signal)) {
                if (gap) lost = gap;
                else entries = [data, ...entries].slice(0, ENTRIES_MAX);
                draw();
            }
        } catch (e) {
            if (stop.signal.aborted) return;
            problem = e;
            draw();
        }
    }

    follow();
    const show = () => [h("h1", {}, "Channel ", h("code", {}, name)), problem ? errorBox(problem, follow) : null, lost ? h("p", { class: "error" }, `Older entries are gone: ${lost}`) : null,
        entries.length ? table({ label: "Entries of the channel, the newest first", rows: entries, key: (e) => e.id, columns: [
            { title: "Time", cell: (e) => time(e.time_ns) },
            { title: "Id", cell: (e) => h("code", {}, e.id) },
            { title: "Value", isWide: true, cell: (e) => h("code", {}, cut(e.value_json, 500)) },
        ] }) : problem ? null : empty("No entry has come yet.", "Append one: ", h("code", {}, `millrace channel append ${name} '{"x": 1}'`)),
        entries.length === ENTRIES_MAX ? h("p", { class: "quiet" }, `The newest ${count(ENTRIES_MAX)} entries.`) : null];
    return { show, close: () => stop.abort() };
}

/** @param {import("../main.js").Context} c @param {string} name @param {() => void} draw */
function queue(c, name, draw) {
    const feed = c.session.feed((api, signal) => api.queues.get(name, { signal }), draw, 2000);
    const show = () => [h("h1", {}, "Queue ", h("code", {}, name)), shown(feed, (q) => [
        h("dl", { class: "figures" }, figure("Waiting", count(q.waiting), `of at most ${count(q.items_max)}, with leased ones`), figure("Leased", count(q.leased)), figure("Dead", count(q.dead)),
            figure("Put in all", count(q.put_count)), figure("Acknowledged", count(q.acked_count)), figure("State", q.closed ? "closed" : "open")),
        h("h2", {}, "Dead letters"), q.dead_items.length ? table({ label: "Dead letters", rows: q.dead_items, key: (d) => d.item_id, columns: [
            { title: "Item", cell: (d) => h("code", {}, d.item_id) }, { title: "Reason", isWide: true, cell: (d) => d.reason }, { title: "Since", cell: (d) => time(d.time_ns) },
        ] }) : empty("No item is dead.", "Items that were delivered too often, or were refused, would be here with the reason.")])];
    return { show, close: () => feed.close() };
}

/** @param {import("../main.js").Context} c @param {() => void} draw */
function lists(c, draw) {
    const { query } = c.route;
    const channels = c.session.feed((api, signal) => api.channels.list({ signal, page_size: 500, page_token: query.get("channels") || undefined }), draw, 5000);
    const queues = c.session.feed((api, signal) => api.queues.list({ signal, page_size: 500, page_token: query.get("queues") || undefined }), draw, 2000);
    const show = () => [h("h1", {}, "Channels and queues"),
        h("section", { class: "card", key: "queues" }, h("h2", {}, "Queues"), shown(queues, (q) => q.queues.length ? [table({ label: "Queues", rows: q.queues, key: (r) => r.queue, columns: [
            { title: "Queue", isWide: true, cell: (r) => h("a", { href: `#/channels/queue/${encodeURIComponent(r.queue)}` }, r.queue) },
            { title: "Waiting", isNumber: true, cell: (r) => count(r.waiting) }, { title: "Leased", isNumber: true, cell: (r) => count(r.leased) }, { title: "Dead", isNumber: true, cell: (r) => count(r.dead) },
            { title: "Put in all", isNumber: true, cell: (r) => count(r.put_count) }, { title: "State", cell: (r) => (r.closed ? "closed" : "open") },
        ] }), q.next_page_token ? h("a", { href: `#/channels?queues=${encodeURIComponent(q.next_page_token)}` }, "Next page") : null] : empty("There is no queue.", "A queue is made by ", h("code", {}, "millrace queue create NAME"), " or by a training that reads from one."))),
        h("section", { class: "card", key: "channels" }, h("h2", {}, "Channels"), shown(channels, (l) => l.channels.length ? [h("ul", { class: "keys" }, l.channels.map((name) => h("li", { key: name }, h("a", { href: `#/channels/${encodeURIComponent(name)}` }, name)))),
            l.next_page_token ? h("a", { href: `#/channels?channels=${encodeURIComponent(l.next_page_token)}` }, "Next page") : null] : empty("There is no channel.", "A training makes one for its scores; ", h("code", {}, "millrace channel append NAME VALUE"), " makes one, too.")))];
    return { show, close() {
        channels.close();
        queues.close();
    } };
}

/**
 * @param {import("../main.js").Context} c
 * @returns {import("../main.js").Page}
 */
export function openChannels(c) {
    const [, first, second] = c.route.path;
    const draw = onFrame(() => morph(c.root, first ? h("p", { key: "back" }, h("a", { href: "#/channels" }, "‹ All channels and queues")) : null, part.show().flat()));
    const part = second !== undefined && first === "queue" ? queue(c, second, draw) : first ? channel(c, first, draw) : lists(c, draw);
    c.title(second ?? first ?? "Channels and queues");
    draw();
    return { close: () => part.close() };
}
