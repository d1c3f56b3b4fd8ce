/* The list of jobs: search, filter by state and label, pages. The filter stands in the address. */
import { h, morph, onFrame } from "../dom.js";
import { count, counted, cut, duration } from "../format.js";
import { badge, empty, pager, progress, shown, table, time } from "../parts.js";

const PAGE_SIZE = 50;
const SEARCHED_MAX = 1000;
const STATES = ["JOB_PENDING", "JOB_RUNNING", "JOB_DONE", "JOB_FAILED", "JOB_CANCELLED"];

/** @param {import("../../client/api.d.ts").Job} job */
function wall(job) {
    const end = job.finished_ns || BigInt(Date.now()) * 1000000n;
    return duration(end - job.created_ns);
}

/** @param {import("../../client/api.d.ts").Job} job @param {string} words in small letters */
export function matches(job, words) {
    const text = `${job.id} ${job.name} ${job.namespace} ${Object.entries(job.labels).map(([k, v]) => `${k}=${v}`).join(" ")}`.toLowerCase();
    return words.split(/\s+/).every((w) => text.includes(w));
}

/**
 * @param {import("../main.js").Context} c
 * @returns {import("../main.js").Page}
 */
export function openJobs(c) {
    c.title("Jobs");
    const draw = onFrame(render);
    let { query } = c.route;
    const get = (/** @type {string} */ name) => query.get(name) ?? "";
    const feed = c.session.feed((api, signal) => api.jobs.list({
        signal, state: /** @type {any} */ (get("state") || undefined), label: get("label") || undefined, page_token: get("page") || undefined,
        page_size: get("q") ? SEARCHED_MAX : PAGE_SIZE,
    }), draw, 2000);

    /** @param {{[name: string]: string}} changes */
    function go(changes) {
        const next = new URLSearchParams(query);
        for (const [name, value] of Object.entries({ page: "", ...changes })) value ? next.set(name, value) : next.delete(name);
        const text = next.toString();
        const address = `#/jobs${text ? `?${text}` : ""}`;
        if ("page" in changes) location.hash = address;
        else history.replaceState(null, "", address);
        query = next;
        feed.data = "q" in changes && feed.data && get("q").length > 1 ? feed.data : undefined;
        feed.refresh();
        draw();
    }

    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let typing;
    const later = (/** @type {string} */ name) => (/** @type {Event} */ e) => {
        const { value } = /** @type {HTMLInputElement} */ (e.target);
        clearTimeout(typing);
        typing = setTimeout(() => go({ [name]: value.trim() }), 250);
    };

    function render() {
        const isFiltered = get("q") || get("state") || get("label");
        morph(c.root, h("h1", {}, "Jobs"),
            h("form", { class: "filters", role: "search", onsubmit: (/** @type {Event} */ e) => e.preventDefault() },
                h("label", {}, "Search", h("input", { type: "search", name: "q", value: get("q"), placeholder: "id, name, namespace or label", oninput: later("q") })),
                h("label", {}, "State", h("select", { name: "state", value: get("state"), onchange: (/** @type {Event} */ e) => go({ state: /** @type {HTMLSelectElement} */ (e.target).value }) },
                    h("option", { value: "", selected: !get("state") }, "any"), STATES.map((s) => h("option", { value: s, selected: get("state") === s }, s.slice(4).toLowerCase())))),
                h("label", {}, "Label", h("input", { name: "label", value: get("label"), placeholder: "name or name=value", oninput: later("label") }))),
            shown(feed, (data) => {
                const words = get("q").toLowerCase();
                const jobs = words ? data.jobs.filter((j) => matches(j, words)) : data.jobs;
                if (!jobs.length) return isFiltered ? empty("No job matches.", words && data.next_page_token ? `Only the ${count(SEARCHED_MAX)} newest jobs are searched. ` : "", h("button", { type: "button", onclick: () => go({ q: "", state: "", label: "" }) }, "Show all jobs"))
                    : empty("There is no job yet.", "Start one: ", h("code", {}, "millrace run examples/hello.json"));
                return [words ? h("p", { class: "quiet" }, `${counted(jobs.length, "job")} of the ${count(data.jobs.length)} newest.`) : null,
                    table({ label: "Jobs, the newest first", rows: jobs, key: (j) => j.id, columns: [
                        { title: "Job", cell: (j) => [h("a", { href: `#/jobs/${encodeURIComponent(j.id)}` }, j.id), j.name ? h("div", {}, cut(j.name, 60)) : null] },
                        { title: "State", cell: (j) => badge(j.state) },
                        { title: "Progress", cell: (j) => progress(j.counts) },
                        { title: "Submitted", cell: (j) => time(j.created_ns) },
                        { title: "Took", isNumber: true, cell: wall },
                        { title: "Labels", isWide: true, cell: (j) => Object.entries(j.labels).map(([k, v]) => h("a", { class: "label", href: `#/jobs?label=${encodeURIComponent(`${k}=${v}`)}` }, `${k}=${cut(v, 30)}`)) },
                        { title: "Error", isWide: true, cell: (j) => (j.error ? cut(j.error.message, 120) : "") },
                    ] }),
                    words ? null : pager({ token: get("page"), next: data.next_page_token, isFirst: !get("page"), go: (page) => go({ page }), back: () => history.back() })];
            }));
    }

    draw();
    return {
        close: () => feed.close(),
        change(route) {
            if (route.path[1]) return false;
            if (route.query.toString() !== query.toString()) {
                query = route.query;
                feed.data = undefined;
                feed.refresh();
                draw();
            }
            return true;
        },
    };
}
