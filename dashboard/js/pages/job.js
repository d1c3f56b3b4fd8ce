/* One job: its head with progress and actions, and one of its views: summary, time, timeline, graph,
 * failures, results, compare, what if. The address names the view. */
import { h, morph, onFrame } from "../dom.js";
import { ago, count, counted, duration, plain, share } from "../format.js";
import { action, badge, errorBox, figure, outcome, shown, stack, table, time } from "../parts.js";
import { openTime } from "./job_time.js";
import { openTimeline } from "./job_timeline.js";
import { openGraph } from "./job_graph.js";
import { openFailures } from "./job_failures.js";
import { openResults } from "./job_results.js";
import { openCompare } from "./job_compare.js";
import { openWhatIf } from "./job_whatif.js";

/** @typedef {import("../../client/api.d.ts").Job} Job */

/**
 * @typedef {object} JobContext what a view of a job gets
 * @property {import("../session.js").Session} session
 * @property {string} id
 * @property {HTMLElement} root
 * @property {() => Job | undefined} job
 * @property {() => boolean} isOver the job has ended
 * @property {import("../main.js").Route} route
 * @property {(query: URLSearchParams, isStep: boolean) => void} go writes what the view shows into the
 *   address. `isStep`: the browser's Back returns to what was shown before.
 */

/**
 * @typedef {object} View
 * @property {() => void} close
 * @property {(hasEnded: boolean) => void} [update] the job has changed
 * @property {(route: import("../main.js").Route) => void} [change] the query of the address has changed
 * @property {() => void} [retheme]
 */

/** @type {Array<{name: string, title: string, open: (c: JobContext) => View}>} */
const VIEWS = [
    { name: "summary", title: "Summary", open: openSummary },
    { name: "time", title: "Where the time went", open: openTime },
    { name: "timeline", title: "Timeline", open: openTimeline },
    { name: "graph", title: "Graph", open: openGraph },
    { name: "failures", title: "Failures", open: openFailures },
    { name: "results", title: "Results", open: openResults },
    { name: "compare", title: "Compare", open: openCompare },
    { name: "whatif", title: "What if", open: openWhatIf },
];

const NODES_MAX = 2000;
const FINAL = new Set(["JOB_DONE", "JOB_FAILED", "JOB_CANCELLED"]);

/**
 * Progress by operator.
 * @param {JobContext} c
 * @returns {View}
 */
function openSummary(c) {
    const draw = onFrame(render);
    const feed = c.session.feed(async (api, signal) => {
        const graph = await api.jobs.graph(c.id, { signal, nodes_max: NODES_MAX });
        if (graph.nodes_count <= BigInt(NODES_MAX)) return { rows: rowsOf(graph.nodes), isWhole: true };
        const { ops } = await api.jobs.profile(c.id, { signal, steps_max: 1 });
        return { rows: ops.map((o) => ({ op: o.op, all: Number(o.tasks), states: { done: Number(o.tasks) } })), isWhole: false };
    }, draw, () => (c.isOver() ? undefined : 3000));

    /** @param {import("../../client/api.d.ts").GraphNode[]} nodes */
    function rowsOf(nodes) {
        /** @type {Map<string, {op: string, all: number, states: {[state: string]: number}}>} */
        const rows = new Map();
        for (const n of nodes.filter((one) => one.op)) {
            const row = rows.get(n.op) ?? { op: n.op, all: 0, states: {} };
            const state = n.state === "TASK_RELEASED" ? "done" : plain(n.state);
            row.all++;
            row.states[state] = (row.states[state] ?? 0) + 1;
            rows.set(n.op, row);
        }
        return [...rows.values()].sort((a, b) => b.all - a.all);
    }

    const COLORS = { done: "var(--good)", running: "var(--busy)", sent: "var(--busy-weak)", ready: "var(--ready)", erred: "var(--bad)" };

    function render() {
        const job = c.job();
        morph(c.root, h("section", { class: "card", key: "ops" }, h("h2", {}, "Progress by operator"), shown(feed, ({ rows, isWhole }) => [
            isWhole ? null : h("p", { class: "quiet" }, `The job has more than ${count(NODES_MAX)} tasks. These are the attempts that have ended.`),
            table({ label: "Progress by operator", rows, key: (r) => r.op, columns: [
                { title: "Operator", cell: (r) => h("code", {}, r.op) },
                { title: "Progress", cell: (r) => (isWhole ? stack(Object.entries(COLORS).map(([name, color]) => ({ name, color, value: r.states[name] ?? 0 })), r.all, r.op) : "") },
                { title: "Done", isNumber: true, cell: (r) => count(r.states.done ?? 0) },
                { title: "Running", isNumber: true, cell: (r) => count(r.states.running ?? 0) },
                { title: "Failed", isNumber: true, cell: (r) => count(r.states.erred ?? 0) },
                { title: "All", isNumber: true, cell: (r) => (isWhole ? count(r.all) : "") },
            ] })])),
        job ? h("section", { class: "card", key: "facts" }, h("h2", {}, "The job"), h("dl", { class: "facts" },
            h("dt", {}, "Submitted"), h("dd", {}, time(job.created_ns)),
            h("dt", {}, "First task started"), h("dd", {}, time(job.started_ns)),
            h("dt", {}, "Ended"), h("dd", {}, time(job.finished_ns)),
            h("dt", {}, "Targets"), h("dd", {}, count(job.targets_count)),
            h("dt", {}, "Priority"), h("dd", {}, String(job.priority)),
            job.namespace ? [h("dt", {}, "Namespace"), h("dd", {}, job.namespace)] : null,
            Object.keys(job.labels).length ? [h("dt", {}, "Labels"), h("dd", {}, Object.entries(job.labels).map(([k, v]) => h("a", { class: "label", href: `#/jobs?label=${encodeURIComponent(`${k}=${v}`)}` }, `${k}=${v}`)))] : null,
            job.parent ? [h("dt", {}, "Submitted by a task of"), h("dd", {}, h("a", { href: `#/jobs/${job.parent}` }, job.parent))] : null,
            job.loops.map((l) => [h("dt", {}, `Loop ${l.name}`), h("dd", {}, `${counted(l.rounds, "round")}, ended ${l.end === "JOB_LOOP_END_UNTIL" ? "by its condition" : "at its largest number of rounds"}`)]).flat())) : null);
    }

    draw();
    return { close: () => feed.close(), update: () => feed.refresh() };
}

/**
 * @param {import("../main.js").Context} c
 * @returns {import("../main.js").Page}
 */
export function openJob(c) {
    const id = c.route.path[1];
    c.title(id);
    const draw = onFrame(render);
    /** @type {Job | undefined} */
    let job;
    /** @type {any} */
    let problem;
    let isLost = false;
    /** @type {import("../parts.js").Said} */
    let said;
    let { route } = c;
    /** @type {View | undefined} */
    let view;
    let viewName = "";
    let stop = new AbortController();

    const isOver = () => job !== undefined && FINAL.has(job.state);

    async function follow() {
        stop.abort();
        const { signal } = (stop = new AbortController());
        problem = undefined;
        try {
            for await (const event of c.session.watch((api, o) => api.jobs.watch(id, o), signal, { isState: true, onLink })) {
                if (!event.data?.job) continue;
                const before = job?.state;
                job = event.data.job;
                c.title(job.name || id);
                if (before && before !== job.state) view?.update?.(FINAL.has(job.state));
                draw();
            }
        } catch (e) {
            if (signal.aborted) return;
            problem = e;
            draw();
        }
    }

    /** @param {boolean} isOpen */
    function onLink(isOpen) {
        isLost = !isOpen;
        draw();
    }

    function actions() {
        const say = (/** @type {import("../parts.js").Said} */ s) => {
            said = s;
            draw();
        };
        const { session } = c;
        const of = id;
        return h("div", { class: "row actions" },
            !isOver() ? action({ session, of, role: "user", label: "Cancel", sure: `Cancel job ${id}? Its running tasks are stopped.`, isDanger: true, say, act: async () => {
                job = await session.client.jobs.cancel(id, "cancelled in the dashboard");
                return "The job is cancelled.";
            } }) : null,
            isOver() && job?.state !== "JOB_DONE" ? action({ session, of, role: "user", label: "Retry", say, act: async () => {
                job = await session.client.jobs.retry(id);
                follow();
                view?.update?.(false);
                return "The failed and cancelled tasks run again.";
            } }) : null,
            isOver() ? action({ session, of, role: "user", label: "Forget", sure: `Forget job ${id}? Its results and its trace are dropped; named results stay.`, isDanger: true, say, act: async () => {
                await session.client.jobs.forget(id);
                location.hash = "#/jobs";
                return `Job ${id} is forgotten.`;
            } }) : null);
    }

    function head() {
        if (!job) return problem ? errorBox(problem, follow) : h("p", { class: "quiet loading" }, isLost ? "The gateway does not answer. The page asks again by itself." : "Loading…");
        const n = job.counts;
        const whole = n ? Number(n.submitted - n.culled) : 0;
        const end = job.finished_ns || BigInt(Date.now()) * 1000000n;
        const parts = n ? [{ name: "done", value: Number(n.done), color: "var(--good)" }, { name: "running", value: Number(n.running), color: "var(--busy)" }, { name: "sent", value: Number(n.sent), color: "var(--busy-weak)" },
            { name: "ready", value: Number(n.ready), color: "var(--ready)" }, { name: "failed", value: Number(n.erred), color: "var(--bad)" }, { name: "cancelled", value: Number(n.cancelled), color: "var(--idle)" }] : [];
        return [
            job.error ? h("div", { class: "error", key: "error" }, h("p", {}, h("strong", {}, job.error.message)),
                job.error.key ? h("p", {}, "First failed task: ", h("a", { href: `#/jobs/${id}/failures?key=${encodeURIComponent(job.error.key)}` }, job.error.key), job.error.op ? ` (${job.error.op})` : "",
                    job.error.fallen ? `; ${counted(job.error.fallen, "task")} could not run because of it` : "", ".") : null) : null,
            h("section", { class: "card", key: "progress" }, stack(parts, whole, "Tasks of the job"),
                h("dl", { class: "figures flat" }, figure("Done", n ? share(n.done, whole) : "–", n && `${count(n.done)} of ${counted(whole, "task")}`),
                    figure(FINAL.has(job.state) ? "Took" : "Runs since", duration(end - job.created_ns), FINAL.has(job.state) ? `ended ${ago(job.finished_ns)}` : null),
                    figure("Running", n ? count(n.running) : "–", n && `${count(n.sent)} sent, ${count(n.ready)} ready, ${count(n.waiting)} wait`),
                    figure("Failed", n ? count(n.erred) : "–", n && n.retried ? `${counted(n.retried, "attempt")} repeated` : null),
                    n && n.skipped ? figure("Skipped", count(n.skipped)) : null,
                    job.longest_running ? figure("Longest running", duration(BigInt(Date.now()) * 1000000n - job.longest_running.since_ns), [job.longest_running.key, " on ", job.longest_running.worker]) : null)),
        ];
    }

    /** @param {URLSearchParams} query @param {boolean} isStep */
    function go(query, isStep) {
        const text = query.toString();
        const address = `#/${route.path.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
        route = { path: route.path, query };
        if (isStep) history.pushState(null, "", address);
        else history.replaceState(null, "", address);
    }

    function render() {
        const name = route.path[2] || "summary";
        const links = VIEWS.map((v) => h("a", { key: v.name, href: `#/jobs/${encodeURIComponent(id)}${v.name === "summary" ? "" : `/${v.name}`}`, "aria-current": v.name === name ? "page" : undefined }, v.title));
        morph(c.root, h("div", { class: "title", key: "title" }, h("h1", {}, job?.name || id, job?.name ? h("small", {}, id) : null), job ? badge(job.state) : null, job ? actions() : null),
            outcome(said), h("div", { key: "head" }, head()),
            job ? h("nav", { class: "tabs", key: "tabs", "aria-label": "Views of the job" }, links) : null, h("div", { key: "view", class: "view", keep: true }));
        if (job && name !== viewName) {
            // Each view has an element of its own: a late answer to the last view changes nothing here.
            const root = h("div", {});
            view?.close();
            view = undefined;
            c.root.querySelector(".view")?.replaceChildren(root);
            viewName = name;
            const found = VIEWS.find((v) => v.name === name);
            if (found) view = found.open({ session: c.session, id, root, job: () => job, isOver, route, go });
            else root.append(h("p", {}, "There is no such view."));
        }
    }

    const clock = setInterval(() => {
        if (job && !FINAL.has(job.state)) draw();
    }, 1000);
    follow();
    draw();
    return {
        close() {
            clearInterval(clock);
            stop.abort();
            view?.close();
        },
        change(next) {
            if (next.path[1] !== id) return false;
            const isSameView = next.path[2] === route.path[2];
            const isNewQuery = next.query.toString() !== route.query.toString();
            if (!isSameView || isNewQuery) said = undefined;
            if (next.path[2] === "failures" && isNewQuery) viewName = "";
            route = next;
            if (isSameView && isNewQuery) view?.change?.(next);
            draw();
            return true;
        },
        retheme: () => view?.retheme?.(),
    };
}
