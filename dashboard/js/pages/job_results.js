/* Values of the targets of a job: small ones at once, larger ones on demand. */
import { h, morph, onFrame } from "../dom.js";
import { bytes, count } from "../format.js";
import { empty, errorBox, pager, shown } from "../parts.js";
import { json, load } from "../preview.js";

const KEYS_A_PAGE = 25;

/**
 * @param {import("./job.js").JobContext} c
 * @returns {import("./job.js").View}
 */
export function openResults(c) {
    const draw = onFrame(render);
    let first = 0;
    /** @type {Map<string, {element?: HTMLElement, error?: any}>} */
    const previews = new Map();
    const stop = new AbortController();
    const keys = () => (c.job()?.targets ?? []).slice(first, first + KEYS_A_PAGE);
    const feed = c.session.feed(async (api, signal) => (keys().length ? api.jobs.results(c.id, { signal, key: keys() }) : undefined), draw);

    /** @param {string} key */
    async function open(key) {
        previews.set(key, {});
        draw();
        try {
            previews.set(key, { element: await load(c.session.client, `/v1/jobs/${encodeURIComponent(c.id)}/results/`, { key }, stop.signal) });
        } catch (e) {
            if (!stop.signal.aborted) previews.set(key, { error: e });
        }
        draw();
    }

    /** @param {string} key @param {any} data */
    function one(key, data) {
        const place = data.places[key], error = data.errors[key], seen = previews.get(key);
        const address = c.session.client.jobs.resultUrl(c.id, key);
        /** @type {import("../dom.js").Child[]} */
        let body = [h("p", { class: "quiet" }, "The value is not known yet.")];
        if (error) body = [h("p", { class: "quiet" }, error.message)];
        else if (key in data.results) body = [json(data.results[key])];
        else if (place) body = [h("p", {}, `${place.summary ? `${place.summary}, ` : ""}${bytes(place.nbytes)} in the object store`),
            seen?.element ? h("div", { key: "preview", keep: true, class: "preview" }) : seen?.error ? errorBox(seen.error, () => open(key)) : seen ? h("p", { class: "quiet loading" }, "Loading…")
                : h("button", { type: "button", onclick: () => open(key) }, "Show")];
        return h("section", { class: "card result", key, "data-key": key }, h("h3", {}, h("code", {}, key)), body, error ? null : h("p", {}, h("a", { href: address, download: key.replaceAll("/", "_") }, "Download")));
    }

    function render() {
        const job = c.job();
        morph(c.root, h("h2", {}, "Results"), job && !job.targets.length ? empty("The job has no targets.", "A job without targets has no results.") : shown(feed, (data) => data === undefined ? empty("There is no target here.", "Go to the first page.") : keys().map((k) => one(k, data))),
            job && job.targets_count > BigInt(job.targets.length) ? h("p", { class: "quiet" }, `The page knows the first ${count(job.targets.length)} of ${count(job.targets_count)} targets. The command `, h("code", {}, `millrace get ${c.id}`), " reads any.") : null,
            pager({ token: "", isFirst: first === 0, next: job && first + KEYS_A_PAGE < job.targets.length ? "next" : "", go: () => move(KEYS_A_PAGE), back: () => move(-KEYS_A_PAGE) }));
        for (const [key, { element }] of previews) {
            const box = element && c.root.querySelector(`[data-key="${CSS.escape(key)}"] .preview`);
            if (box && element && box.firstChild !== element) box.replaceChildren(element);
        }
    }

    /** @param {number} by */
    function move(by) {
        first = Math.max(0, first + by);
        feed.data = undefined;
        feed.refresh();
        draw();
    }

    draw();
    return {
        close() {
            stop.abort();
            feed.close();
        },
        update: () => feed.refresh(),
    };
}
