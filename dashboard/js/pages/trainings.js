/* The list of training sessions; chosen ones are compared by their scores. */
import { h, morph, onFrame } from "../dom.js";
import { ago, count, decimal, rate } from "../format.js";
import { badge, empty, pager, shown, table, time } from "../parts.js";
import { Curves } from "../curves.js";

/** Each has a stream, and browsers open six connections to one server over HTTP/1.1. */
const COMPARED_MAX = 3;

/**
 * @param {import("../main.js").Context} c
 * @returns {import("../main.js").Page}
 */
export function openTrainings(c) {
    c.title("Trainings");
    const draw = onFrame(render);
    let { query } = c.route;
    /** @type {Set<string>} */
    const compared = new Set();
    /** @type {Curves | undefined} */
    let curves;
    const feed = c.session.feed((api, signal) => api.trainings.list({ signal, page_size: 50, page_token: query.get("page") || undefined }), draw, 2000);

    /** @param {string} id */
    const isOver = (id) => !!feed.data?.trainings.find((t) => t.id === id)?.ended_ns;

    /** @param {import("../../client/api.d.ts").Training} t */
    function choose(t) {
        return h("input", { type: "checkbox", "aria-label": `Compare ${t.name || t.id}`, checked: compared.has(t.id), disabled: !t.channel || (!compared.has(t.id) && compared.size >= COMPARED_MAX), onchange: () => {
            if (!compared.delete(t.id)) compared.add(t.id);
            curves?.close();
            const chosen = (feed.data?.trainings ?? []).filter((one) => compared.has(one.id));
            curves = chosen.length ? new Curves(c.session, chosen.map((one) => ({ name: one.name ? `${one.name} ${one.id}` : one.id, channel: one.channel, isOver: () => isOver(one.id) })), draw) : undefined;
            draw();
        } });
    }

    function render() {
        morph(c.root, h("h1", {}, "Trainings"), curves ? h("section", { class: "card", key: "curves" }, h("h2", {}, "Scores"), curves.show()) : null,
            shown(feed, (data) => data.trainings.length ? [table({ label: "Trainings, the newest first", rows: data.trainings, key: (t) => t.id, columns: [
                { title: "Compare", cell: choose },
                { title: "Training", cell: (t) => [h("a", { href: `#/trainings/${encodeURIComponent(t.id)}` }, t.name || t.id), t.name ? h("div", { class: "quiet" }, t.id) : null] },
                { title: "State", cell: (t) => badge(t.state) },
                { title: "Steps", isNumber: true, cell: (t) => count(t.counters?.steps ?? 0n) },
                { title: "Loss", isNumber: true, cell: (t) => decimal(t.counters?.loss) },
                { title: "Accuracy", isNumber: true, cell: (t) => decimal(t.counters?.accuracy) },
                { title: "Examples a second", isNumber: true, cell: (t) => (t.ended_ns ? "–" : rate(Number(t.examples_per_s))) },
                { title: "Started", cell: (t) => time(t.created_ns) },
                { title: "Ended", cell: (t) => (t.ended_ns ? ago(t.ended_ns) : "runs") },
            ] }), pager({ token: "", isFirst: !query.get("page"), next: data.next_page_token, go: (page) => {
                location.hash = `#/trainings?page=${encodeURIComponent(page)}`;
            }, back: () => history.back() })] : empty("There is no training yet.", "Start one: ", h("code", {}, "millrace train examples/mnist.json"), ". It needs no data set: without one, digits are drawn.")));
        curves?.attach(c.root);
    }

    draw();
    return {
        close() {
            feed.close();
            curves?.close();
        },
        change(route) {
            if (route.path[1]) return false;
            query = route.query;
            feed.data = undefined;
            feed.refresh();
            return true;
        },
        retheme: () => curves?.retheme(),
    };
}
