/* The timeline of a job: rows are slots; a click on a task explains it. */
import { classOf } from "../classes.js";
import { h, morph, onFrame } from "../dom.js";
import { count, cut } from "../format.js";
import { empty, errorBox } from "../parts.js";
import { Task } from "../task.js";
import { theme } from "../theme.js";
import { openSource, SPANS_MAX } from "../timeline_source.js";
import { Timeline } from "../timeline/timeline.js";

const STEPS_MAX = 1000;
/** Of a job with more attempts only the longest steps of its critical path are drawn. */
const ATTEMPTS_MAX = 20000;
const LONGEST = 40;
const REFRESH_MS = 2000;

/** @typedef {import("../../client/api.d.ts").CriticalPathStep} Step */

/**
 * @param {import("./job.js").JobContext} c
 * @returns {import("./job.js").View}
 */
export function openTimeline(c) {
    const draw = onFrame(render);
    const stop = new AbortController();
    const { signal } = stop;
    /** @type {Awaited<ReturnType<typeof openSource>> | undefined} */
    let source;
    /** @type {Timeline | undefined} */
    let timeline;
    /** @type {any} */
    let problem;
    /** @type {Task | undefined} */
    let task;
    /** @type {"op" | "class"} */
    let color = c.route.query.get("color") === "class" ? "class" : "op";
    /** @type {"off" | "loading" | "on" | "none"} */
    let path = "off";
    let isPart = false;
    let hasEnded = !!c.job()?.finished_ns;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;

    async function load() {
        problem = undefined;
        const job = c.job();
        if (!job) return;
        try {
            if (source) await source.update(job, signal);
            else source = await openSource(c.session.client, job, signal);
            if (signal.aborted) return;
            source.onNames = draw;
            timeline?.data.ops.add(source.names.op);
            timeline?.refresh();
        } catch (e) {
            if (signal.aborted) return;
            if (!source || !(/** @type {any} */ (e).isTransient)) problem = e;
            c.session.note(e);
        }
        draw();
        if (!hasEnded || problem?.isTransient) timer = setTimeout(load, REFRESH_MS);
        hasEnded = !!c.job()?.finished_ns;
    }

    /** @param {import("../timeline/spans.js").Span | null} span */
    function select(span) {
        task?.close();
        task = span ? new Task(c.session, c.id, span.key, draw) : undefined;
        draw();
    }

    /** @param {Step[]} steps of tasks that ran @returns {Promise<Array<{row: number, startedNs: bigint, finishedNs: bigint}>>} */
    async function rowsOf(steps) {
        if (!source) return [];
        const all = { firstRow: 0, rows: source.rowsCount };
        const found = [];
        for (const s of steps) {
            // In the middle of the step each slot runs at most one task, so the answer is whole on large clusters too.
            const middle = (s.from_ns + s.to_ns) / 2n;
            const { spans } = await source.spans({ ...all, fromNs: middle, untilNs: middle + 1n, limit: 100000, signal });
            const span = spans.find((one) => one.key === s.key);
            if (span) found.push({ row: span.row, startedNs: s.from_ns, finishedNs: s.to_ns });
        }
        return found;
    }

    async function togglePath() {
        if (path === "on") {
            path = "off";
            timeline?.setPath([]);
            return draw();
        }
        path = "loading";
        draw();
        try {
            const profile = await c.session.client.jobs.profile(c.id, { steps_max: STEPS_MAX, signal });
            const ran = (profile.critical_path?.steps ?? []).filter((s) => s.key && s.class === "dependency");
            const attempts = profile.ops.reduce((n, o) => n + o.tasks, 0n);
            const few = [...ran].sort((a, b) => Number(b.to_ns - b.from_ns - (a.to_ns - a.from_ns))).slice(0, LONGEST);
            isPart = source?.hasTiles === true && few.length < ran.length && (attempts > BigInt(ATTEMPTS_MAX) || ran.length > LONGEST);
            const steps = await rowsOf(isPart ? few : ran);
            path = steps.length ? "on" : "none";
            timeline?.setPath(steps);
        } catch (e) {
            if (signal.aborted) return;
            path = "off";
            problem = e;
        }
        draw();
    }

    /** @param {"op" | "class"} by */
    function legend(by) {
        const names = [...(source?.names[by] ?? [])].sort();
        return h("ul", { class: "legend" }, names.slice(0, 24).map((name) => h("li", { key: name, title: by === "class" ? `The slot ${classOf(name).means}.` : undefined },
            h("i", { style: { "background-color": timeline?.data.colorOf(name, by) ?? "transparent" } }), cut(name.replaceAll("_", " "), 40))), names.length > 24 ? h("li", {}, `and ${count(names.length - 24)} more`) : null);
    }

    function render() {
        const isEmpty = source && !source.rowsCount;
        morph(c.root, problem ? errorBox(problem, load) : null,
            !source && !problem ? h("p", { class: "quiet loading" }, "Loading…") : null,
            isEmpty ? empty("No task has ended yet.", "The timeline shows a task when it has ended.") : null,
            source && !isEmpty ? [h("div", { class: "row filters", key: "tools" },
                h("label", {}, "Color by", h("select", { value: color, onchange: (/** @type {Event} */ e) => {
                    color = /** @type {any} */ (e.target).value;
                    timeline?.setColor(color);
                    setTimeout(draw, 500);
                } }, h("option", { value: "op", selected: color === "op" }, "operator"), h("option", { value: "class", selected: color === "class" }, "class of the account"))),
                h("button", { type: "button", "aria-pressed": path === "on" ? "true" : "false", disabled: path === "loading" || !hasEnded, onclick: togglePath, title: hasEnded ? undefined : "The critical path is known at the end of the job." },
                    path === "loading" ? "Loading…" : path === "on" ? "Hide the critical path" : "Show the critical path"),
                h("p", { class: "quiet" }, path === "none" ? "No task of the critical path is on the timeline. " : path === "on" && isPart ? `The ${LONGEST} longest tasks of the critical path are drawn. ` : "",
                    source.isCut ? `The first ${count(SPANS_MAX)} attempts are shown. ` : "", !source.hasTiles && color === "class" ? "This cluster has no tiles: idle time is white, without its cause. " : "")),
            h("div", { key: "canvas", class: "timeline-box", keep: true }), legend(color),
            task ? h("section", { class: "card", key: "task" }, h("div", { class: "title" }, h("h2", {}, h("code", {}, task.key)), h("button", { type: "button", onclick: () => {
                timeline?.setSelected(null);
                select(null);
            } }, "Close")), task.show()) : h("p", { class: "quiet", key: "hint" }, "Click a task to see why it ran where it did, its times and its log. The key ? lists the keys.")] : null);
        const box = c.root.querySelector(".timeline-box");
        const rows = source?.rowsCount ?? 0;
        if (box) /** @type {HTMLElement} */ (box).style.height = `clamp(200px, ${26 * rows + 76}px, 56vh)`;
        if (box && source && !timeline) {
            timeline = new Timeline(/** @type {HTMLElement} */ (box), { source, theme: theme(), color, label: `Timeline of job ${c.id}`, onSelect: select, onWindow: draw,
                describe: (name, by) => (by === "class" ? `The slot ${classOf(name).means}.` : undefined) });
            // All names at once: the colours are then those of the graph.
            timeline.data.ops.add(source.names.op);
            draw(); // the legend, in the colours that are known now
        }
    }

    load();
    draw();
    return {
        close() {
            stop.abort();
            clearTimeout(timer);
            timeline?.destroy();
            task?.close();
        },
        update() {
            hasEnded = false;
            clearTimeout(timer);
            load();
        },
        retheme() {
            timeline?.setTheme(theme());
            draw();
        },
    };
}
