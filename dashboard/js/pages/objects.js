/* Stored objects: names, sizes, places, holders, preview, download, delete. */
import { h, morph, onFrame } from "../dom.js";
import { bytes, cut } from "../format.js";
import { action, breakable, empty, errorBox, isMissing, outcome, pager, shown, table, time } from "../parts.js";
import { load } from "../preview.js";

const PAGE_SIZE = 50;

/** @typedef {import("../../client/api.d.ts").ObjectInfo} Info */

/** Type and shape. The size and synthetic data are shown apart. @param {Info} o */
function valueOf(o) {
    return o.dtype ? `${o.dtype}[${o.shape.join(",")}]` : o.summary.replace(/, of drawn data$/, "") || o.kind;
}

/** What holds the object: each job by its id, and all names as one. @param {Info} o */
function holdersOf(o) {
    const isName = (/** @type {string} */ x) => x === "a name" || x.startsWith("name ");
    const isKnown = o.holders.some((x) => x.startsWith("job "));
    return [...new Set(o.holders.filter((x) => x !== "a job" || !isKnown).map((x) => (isName(x) ? "its name" : x)))];
}

/**
 * @param {import("../main.js").Context} c
 * @returns {import("../main.js").Page}
 */
export function openObjects(c) {
    c.title("Objects");
    const draw = onFrame(render);
    const stop = new AbortController();
    let { query } = c.route;
    let words = "";
    /** @type {{id: string, element?: HTMLElement, error?: any} | undefined} */
    let seen;
    /** @type {import("../parts.js").Said} */
    let said;
    const feed = c.session.feed(async (api, signal) => {
        const [list, known] = await Promise.all([api.objects.list({ signal, page_size: PAGE_SIZE, page_token: query.get("page") || undefined }), api.objects.names({ signal, page_size: 1000 })]);
        for (const o of list.objects) o.names = [...new Set([...o.names, ...known.names.filter((n) => n.object === o.id).map((n) => n.name)])];
        return list;
    }, draw, 5000);
    const say = (/** @type {import("../parts.js").Said} */ s) => {
        said = s;
        feed.refresh();
        draw();
    };

    /** @param {Info} o */
    async function show(o) {
        const now = (seen = /** @type {NonNullable<typeof seen>} */ ({ id: o.id }));
        draw();
        try {
            now.element = await load(c.session.client, "/v1/objects/", { id: o.id }, stop.signal);
        } catch (e) {
            now.error = e;
        }
        if (seen === now) draw();
    }

    /** @param {Info} o */
    async function remove(o) {
        const api = c.session.client.objects;
        // If anything but names holds the object, the store refuses, and the names stay.
        if (o.holders.every((x) => x === "a name" || x.startsWith("name "))) for (const name of o.names) await api.unname(name);
        try {
            await api.delete(o.id);
        } catch (e) {
            // The store frees an object whose only holder was its name.
            if (!o.names.length || !isMissing(e)) throw e;
        }
        return "The object is deleted.";
    }

    /** @param {Info} o */
    const actions = (o) => h("div", { class: "row" },
        h("button", { type: "button", onclick: () => show(o), "aria-label": `Show object ${o.names[0] ?? o.id}` }, "Show"),
        h("a", { class: "button", href: c.session.client.objects.url(o.id), download: (o.names[0] ?? o.id).replaceAll("/", "_") }, "Download"),
        action({ session: c.session, of: o.id, role: "user", label: "Delete", isDanger: true, say, act: () => remove(o),
            sure: `Delete object ${o.id}? ${o.names.length ? `Its names are removed, too: ${o.names.join(", ")}. ` : ""}This cannot be undone.` }));

    function render() {
        morph(c.root, h("h1", {}, "Objects"),
            h("form", { class: "filters", role: "search", onsubmit: (/** @type {Event} */ e) => e.preventDefault() }, h("label", {}, "Search on this page", h("input", { type: "search", value: words, placeholder: "name, id, kind or holder",
                oninput: (/** @type {Event} */ e) => {
                    words = /** @type {HTMLInputElement} */ (e.target).value.toLowerCase();
                    draw();
                } }))),
            outcome(said),
            seen ? h("section", { class: "card", key: `seen ${seen.id}` }, h("div", { class: "title" }, h("h2", {}, "Object ", h("code", {}, seen.id)), h("button", { type: "button", onclick: () => {
                seen = undefined;
                draw();
            } }, "Close")), seen.error ? errorBox(seen.error) : seen.element ? h("div", { class: "preview", key: "preview", keep: true }) : h("p", { class: "quiet loading" }, "Loading…")) : null,
            shown(feed, (data) => {
                const rows = data.objects.filter((o) => `${o.id} ${o.names.join(" ")} ${o.kind} ${o.holders.join(" ")}`.toLowerCase().includes(words));
                if (!rows.length) return words ? empty("No object of this page matches.", "Search with fewer letters.") : empty("There is no object.", "Results of jobs of more than 4 KiB are objects, and so is what you upload: ", h("code", {}, "millrace put FILE"), ".");
                return [table({ label: "Objects", rows, key: (o) => `${o.node} ${o.id}`, columns: [
                    { title: "Object", isWide: true, cell: (o) => [o.names.length ? h("b", {}, breakable(o.names.join(", "))) : null, h("div", {}, h("code", { title: o.id }, `${o.id.slice(0, 6)}…${o.id.slice(-6)}`))] },
                    { title: "Value", isWide: true, cell: (o) => [valueOf(o), o.drawn ? h("div", { class: "quiet" }, "synthetic data") : null] },
                    { title: "Size", isNumber: true, cell: (o) => bytes(o.nbytes) },
                    { title: "Place", cell: (o) => [o.node, h("div", { class: "quiet" }, o.state)] },
                    { title: "Survives a restart", cell: (o) => (o.durable ? "yes" : "no") },
                    { title: "Held by", isWide: true, cell: (o) => holdersOf(o).map((x) => h("div", {}, /^job \S+$/.test(x) ? h("a", { class: "whole", href: `#/jobs/${x.slice(4)}` }, x) : cut(x, 60))) },
                    { title: "Made", cell: (o) => time(o.created_ns) },
                    { title: "Actions", cell: actions },
                ] }), pager({ token: "", isFirst: !query.get("page"), next: data.next_page_token, go: (page) => {
                    location.hash = `#/objects?page=${encodeURIComponent(page)}`;
                }, back: () => history.back() })];
            }));
        const box = c.root.querySelector(".preview");
        if (box && seen?.element && box.firstChild !== seen.element) box.replaceChildren(seen.element);
    }

    draw();
    return {
        close() {
            stop.abort();
            feed.close();
        },
        change(route) {
            query = route.query;
            feed.data = undefined;
            feed.refresh();
            draw();
            return true;
        },
    };
}
