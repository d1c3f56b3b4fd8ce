/* Templates and operators, with the operators' documentation. */
import { h, morph, onFrame } from "../dom.js";
import { bytes, counted, duration } from "../format.js";
import { empty, shown, table, time } from "../parts.js";

/** @typedef {import("../../client/api.d.ts").OpInfo} Op */

/** @param {Op} op */
function signature(op) {
    return `${op.name}(${op.parameters.map((p, i) => `${op.variadic && i === op.parameters.length - 1 ? "*" : ""}${p.name}${p.required ? "" : `=${p.default_json}`}`).join(", ")})`;
}

/**
 * @param {import("../main.js").Context} c
 * @returns {import("../main.js").Page}
 */
export function openLibrary(c) {
    c.title("Templates and operators");
    const draw = onFrame(render);
    let words = c.route.query.get("q") ?? "";
    const ops = c.session.feed(async (api, signal) => {
        /** @type {Op[]} */
        const all = [];
        let page_token = "";
        do {
            const page = await api.cluster.ops({ signal, page_size: 1000, page_token: page_token || undefined });
            all.push(...page.ops);
            page_token = page.next_page_token;
        } while (page_token);
        return all;
    }, draw);
    const templates = c.session.feed((api, signal) => api.templates.list({ signal, page_size: 1000 }), draw);
    /** @type {Map<string, import("../../client/api.d.ts").Template | Error>} */
    const opened = new Map();

    /** @param {string} name */
    async function open(name) {
        try {
            opened.set(name, await c.session.client.templates.get(name));
        } catch (e) {
            opened.set(name, /** @type {Error} */ (e));
        }
        draw();
    }

    /** @param {Op} op */
    function one(op) {
        return h("details", { class: "card op", key: op.name }, h("summary", {}, h("code", {}, signature(op)), h("div", {}, op.summary)),
            op.parameters.length ? h("dl", { class: "facts" }, op.parameters.map((p) => [h("dt", {}, h("code", {}, p.name), " ", h("span", { class: "quiet" }, p.type)), h("dd", {}, `${p.doc}${p.required ? "" : ` Default: ${p.default_json}.`}`)]).flat()) : h("p", { class: "quiet" }, "It has no parameters."),
            h("p", {}, op.returns ? `Returns ${op.returns}` : ""),
            h("p", { class: "quiet" }, [op.runtime, op.deterministic ? "equal arguments give equal results" : "equal arguments may give other results", op.by_reference ? "receives ids of objects" : "", op.cost_ns ? `takes about ${duration(op.cost_ns)}` : ""].filter(Boolean).join("; "), "."));
    }

    function render() {
        const wanted = words.toLowerCase().split(/\s+/);
        morph(c.root, h("h1", {}, "Templates and operators"),
            h("section", { class: "card", key: "templates" }, h("h2", {}, "Templates"), shown(templates, (t) => t.templates.length ? table({ label: "Templates", rows: t.templates, key: (r) => r.name, columns: [
                { title: "Template", isWide: true, cell: (r) => {
                    const seen = opened.get(r.name);
                    return h("details", { ontoggle: () => void (opened.has(r.name) || open(r.name)) }, h("summary", {}, h("b", {}, r.name)), seen === undefined ? h("p", { class: "quiet" }, "Loading…") : seen instanceof Error ? h("p", {}, seen.message)
                        : [h("p", { class: "quiet" }, `${counted(seen.tasks, "node")}${seen.params.length ? `; parameters: ${seen.params.join(", ")}` : ""}`), h("pre", { class: "value", tabindex: "0" }, seen.json)]);
                } },
                { title: "Installed", cell: (r) => time(r.installed_ns) }, { title: "Size", isNumber: true, cell: (r) => bytes(r.nbytes) },
            ] }) : empty("There is no template.", "Install one: ", h("code", {}, "millrace template install FILE.json"), "."))),
            h("section", { key: "ops" }, h("h2", {}, "Operators"), h("form", { class: "filters", role: "search", onsubmit: (/** @type {Event} */ e) => e.preventDefault() }, h("label", {}, "Search", h("input", { type: "search", value: words, placeholder: "name or what it does",
                oninput: (/** @type {Event} */ e) => {
                    words = /** @type {HTMLInputElement} */ (e.target).value;
                    draw();
                } }))), shown(ops, (all) => {
                const rows = all.filter((op) => wanted.every((w) => `${op.name} ${op.summary}`.toLowerCase().includes(w)));
                return rows.length ? [h("p", { class: "quiet" }, `${counted(rows.length, "operator")}. A click shows the parameters.`), h("div", { class: "ops" }, rows.map(one))] : all.length ? empty("No operator matches.", "Search with fewer words.") : empty("No worker has told its operators yet.", "They come with the first worker.");
            })));
    }

    draw();
    return {
        close() {
            ops.close();
            templates.close();
        },
        change: (route) => !route.path[1],
    };
}
