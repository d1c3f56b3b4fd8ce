/* The test page. `#dark`, `#class` and `#path` in the address choose what is shown. */
import { Timeline } from "/timeline/timeline.js";

const get = async (/** @type {string} */ path, /** @type {Record<string, any>} */ query, /** @type {AbortSignal=} */ signal) =>
    (await fetch(`${path}?${new URLSearchParams(query)}`, { signal })).json();

const words = new Set(location.hash.slice(1).split(","));
if (words.has("dark")) document.documentElement.dataset.theme = "dark";
const job = await get("/job", { path: 3000 });
const source = {
    ...job,
    tiles: (/** @type {any} */ o) => get("/tiles", { from_ns: o.fromNs, until_ns: o.untilNs, width: o.width, first_row: o.firstRow, rows: o.rows, color: o.color }, o.signal),
    spans: (/** @type {any} */ o) => get("/spans", { from_ns: o.fromNs, until_ns: o.untilNs, first_row: o.firstRow, rows: o.rows, limit: o.limit }, o.signal),
};
const timeline = new Timeline(/** @type {HTMLElement} */ (document.getElementById("box")), {
    source,
    color: words.has("class") ? "class" : "op",
    onSelect: (span) => {
        document.body.dataset.selected = span ? span.key : "";
    },
});
if (words.has("path")) timeline.setPath(job.path);
Object.assign(window, { timeline, source });
