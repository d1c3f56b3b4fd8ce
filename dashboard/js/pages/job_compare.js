/* What changed from another job to this one: the wall time, the critical path, the slots' time by
 * class, the operators. The other job stands in the address; otherwise it is the last job like this. */
import { colorOf } from "../classes.js";
import { MEASURES, changeOf, compare, sumUp } from "../compare.js";
import { h, morph, onFrame } from "../dom.js";
import { ago, bytes, count, counted, cut, duration, share } from "../format.js";
import { badge, empty, figure, shown, stack, table } from "../parts.js";
import { matches } from "./jobs.js";

/** @typedef {import("../../client/api.d.ts").Job} Job */
/** @typedef {import("../../client/api.d.ts").ProfileResponse} Profile */
/** @typedef {import("../compare.js").Comparison} Comparison */
/** @typedef {import("../compare.js").Change} Change */
/** @typedef {import("../compare.js").Measure} Measure */
/** @typedef {{job: Job, before: Profile, after: Profile}} Pair */

const JOBS_MAX = 1000;
const FOUND_MAX = 10;
const OPS_SHOWN = 12;
const STEPS_MAX = 100000; // as `millrace compare`, so that both say the same
const FINAL = new Set(["JOB_DONE", "JOB_FAILED", "JOB_CANCELLED"]);

/** @type {{[name in Measure]: {title: string, text: (n: bigint) => string}}} */
const SHOWN = {
    tasks: { title: "attempts", text: count }, wall_ns: { title: "wall", text: duration }, cpu_ns: { title: "CPU", text: duration },
    queue_ns: { title: "queued", text: duration }, nbytes: { title: "values", text: bytes },
    median_ns: { title: "median", text: duration }, p99_ns: { title: "p99", text: duration },
};

/**
 * The newest of the older jobs that is like this one: it has the same name, or else a label, or else
 * the same number of tasks.
 * @param {Job} job @param {Job[]} jobs
 */
export function lastLike(job, jobs) {
    const older = jobs.filter((j) => j.id !== job.id && j.created_ns <= job.created_ns && FINAL.has(j.state));
    const labels = Object.entries(job.labels);
    return (job.name && older.find((j) => j.name === job.name)) || older.find((j) => labels.some(([k, v]) => j.labels[k] === v)) ||
        older.find((j) => j.counts?.submitted === job.counts?.submitted);
}

/** Share of the slots' time in which they ran tasks. @param {Profile} p */
function busy(p) {
    return share((1 - Number(p.white_space)) * 1000, 1000);
}

/** @param {bigint} ns */
function signed(ns) {
    return ns > 0n ? `+${duration(ns)}` : duration(ns);
}

/** @param {Change} c */
function relative(c) {
    if (!c.before) return "new";
    const percent = (100 * Number(changeOf(c))) / Number(c.before);
    return `${percent < 0 ? "−" : "+"}${Math.abs(percent).toFixed(1)} %`;
}

/** A bar to the left: less time; to the right: more. @param {bigint} change @param {bigint} largest */
function delta(change, largest) {
    const width = `${Math.min(100, (100 * Math.abs(Number(change))) / Math.max(1, Number(largest)))}%`;
    return h("div", { class: `delta ${change < 0n ? "less" : "more"}`, "aria-hidden": "true" }, h("span", { style: { width } }));
}

/** @param {bigint[]} changes */
function largestOf(changes) {
    return changes.reduce((most, n) => ((n < 0n ? -n : n) > most ? (n < 0n ? -n : n) : most), 0n);
}

/** @param {Comparison} c */
function causes(c) {
    const largest = largestOf(c.causes.map(changeOf));
    const name = (/** @type {string} */ one) => (c.hasPath && one === "dependency" ? "a task ran" : one);
    return [h("p", {}, c.hasPath ? "A critical path is as long as its job. So these changes add up to the change of the wall time."
        : "One of the jobs is not over, so it has no critical path yet. The table shows the time of each class, divided by the number of slots."),
    table({ label: "Parts of the wall times", rows: c.causes, key: (r) => `${r.class} ${r.op}`, columns: [
        { title: c.hasPath ? "On the critical path" : "Of a slot's time", cell: (r) => [h("i", { class: "swatch", style: { "background-color": colorOf(r.class) } }), name(r.class)] },
        { title: "Operator", cell: (r) => (r.op ? h("code", {}, r.op) : "") },
        { title: "First", isNumber: true, cell: (r) => duration(r.before) }, { title: "Second", isNumber: true, cell: (r) => duration(r.after) },
        { title: "Change", isNumber: true, cell: (r) => signed(changeOf(r)) }, { title: "", cell: (r) => delta(changeOf(r), largest) },
    ], foot: foot("All", c.causes.reduce((s, r) => ({ before: s.before + r.before, after: s.after + r.after }), { before: 0n, after: 0n }), 2) })];
}

/** @param {string} title @param {Change} sum @param {number} width columns of the title */
function foot(title, sum, width) {
    const cell = (/** @type {string} */ text) => h("td", { class: "number" }, text);
    return h("tfoot", {}, h("tr", {}, h("th", { scope: "row", colspan: width }, title), cell(duration(sum.before)), cell(duration(sum.after)), cell(signed(changeOf(sum))), h("td", {})));
}

/** @param {Comparison} c @param {string} first @param {string} second */
function classes(c, first, second) {
    const largest = largestOf(c.classes.map(changeOf));
    const bar = (/** @type {"before" | "after"} */ side, /** @type {string} */ label) =>
        stack(c.classes.map((r) => ({ name: r.class, value: Number(r[side]), color: colorOf(r.class) })), Number(c[side].slot_ns), label);
    return [h("p", { class: "quiet" }, "These times depend on the number of slots. Slots also wait for things that are not on the critical path."),
        h("h3", {}, `First: ${first}`), bar("before", `Time of all slots of ${first}`), h("h3", {}, `Second: ${second}`), bar("after", `Time of all slots of ${second}`),
        table({ label: "Time of all slots by class", rows: c.classes, key: (r) => r.class, columns: [
            { title: "Class", cell: (r) => [h("i", { class: "swatch", style: { "background-color": colorOf(r.class) } }), h("b", {}, r.class)] },
            { title: "First", isNumber: true, cell: (r) => duration(r.before) }, { title: "Second", isNumber: true, cell: (r) => duration(r.after) },
            { title: "Change", isNumber: true, cell: (r) => signed(changeOf(r)) }, { title: "", cell: (r) => delta(changeOf(r), largest) },
        ], foot: foot("All", { before: c.before.slot_ns, after: c.after.slot_ns }, 1) })];
}

/** @param {Comparison} c @param {boolean} isAll @param {() => void} showAll */
function operators(c, isAll, showAll) {
    const rows = (isAll ? c.ops : c.ops.slice(0, OPS_SHOWN)).flatMap((o) => {
        const isInBoth = o.measures.tasks.before && o.measures.tasks.after;
        return MEASURES.filter((m) => changeOf(o.measures[m]) && (isInBoth || m === "tasks" || m === "wall_ns"))
            .map((m, i) => ({ op: o.op, isFirst: i === 0, measure: SHOWN[m], change: o.measures[m], key: `${o.op} ${m}` }));
    });
    if (!rows.length) return empty("No operator has changed.", "Both jobs ran the same attempts, in the same time.");
    const more = isAll ? 0 : c.ops.length - OPS_SHOWN;
    return [h("p", { class: "quiet" }, "The operator first that explains the largest part of the change. Only what has changed is shown."),
        table({ label: "Changes by operator", rows, key: (r) => r.key, columns: [
            { title: "Operator", cell: (r) => (r.isFirst ? h("code", {}, r.op) : h("span", { class: "unseen" }, r.op)) }, { title: "Measure", cell: (r) => r.measure.title },
            { title: "First", isNumber: true, cell: (r) => r.measure.text(r.change.before) }, { title: "Second", isNumber: true, cell: (r) => r.measure.text(r.change.after) },
            { title: "Change", isNumber: true, cell: (r) => relative(r.change) },
        ] }), more > 0 ? h("button", { type: "button", onclick: showAll }, `Show ${counted(more, "more operator")}`) : null];
}

/**
 * @param {import("./job.js").JobContext} c
 * @returns {import("./job.js").View}
 */
export function openCompare(c) {
    const draw = onFrame(render);
    let words = "";
    let isAll = false;
    let other = c.route.query.get("with") ?? "";
    /** @type {import("../feed.js").Feed<Pair> | undefined} */
    let pair;
    const list = c.session.feed(async (api, signal) => (await api.jobs.list({ signal, page_size: JOBS_MAX })).jobs, onList);

    function onList() {
        const job = c.job();
        const like = !other && job && list.data ? lastLike(job, list.data) : undefined;
        if (like) choose(like.id, false);
        draw();
    }

    /** @param {string} id @param {boolean} isStep one can go back to the view before */
    function choose(id, isStep) {
        words = "";
        c.go(new URLSearchParams({ with: id }), isStep);
        read(id);
    }

    /** @param {string} id "": none is chosen */
    function read(id) {
        pair?.close();
        pair = undefined;
        other = id;
        isAll = false;
        if (id) pair = c.session.feed(async (api, signal) => {
            const [job, before, after] = await Promise.all([api.jobs.get(id, { signal }), api.jobs.profile(id, { signal, steps_max: STEPS_MAX }), api.jobs.profile(c.id, { signal, steps_max: STEPS_MAX })]);
            return { job, before, after };
        }, draw, () => (c.isOver() && (!pair?.data || FINAL.has(pair.data.job.state)) ? undefined : 5000));
        draw();
    }

    /** @param {Job[]} jobs */
    function found(jobs) {
        const text = words.toLowerCase().trim();
        const others = jobs.filter((j) => j.id !== c.id);
        const rows = (text ? others.filter((j) => matches(j, text)) : others).slice(0, FOUND_MAX);
        const typed = words.trim();
        if (!others.length && !text) return empty("There is no other job.", "Run the job again, for example with other slots, and compare then.");
        if (!rows.length) return empty("No job matches.", others.length >= JOBS_MAX - 1 ? `Only the ${count(JOBS_MAX)} newest jobs are searched. ` : "",
            h("button", { type: "button", onclick: () => choose(typed, true) }, `Compare with the job ${cut(typed, 40)}`));
        return table({ label: "Jobs to compare with, the newest first", rows, key: (j) => j.id, columns: [
            { title: "Job", cell: (j) => [h("a", { href: `#/jobs/${encodeURIComponent(j.id)}` }, j.id), j.name ? h("div", {}, cut(j.name, 60)) : null] },
            { title: "State", cell: (j) => badge(j.state) },
            { title: "Ended", cell: (j) => ago(j.finished_ns) },
            { title: "Took", isNumber: true, cell: (j) => (j.finished_ns ? duration(j.finished_ns - j.created_ns) : "–") },
            { title: "Labels", isWide: true, cell: (j) => Object.entries(j.labels).map(([k, v]) => h("span", { class: "label" }, `${k}=${cut(v, 30)}`)) },
            { title: "Choice", cell: (j) => h("button", { type: "button", disabled: j.id === other, "aria-label": `Compare with ${j.id}`, onclick: () => choose(j.id, true) }, j.id === other ? "Compared" : "Compare") },
        ] });
    }

    function chooser() {
        return h("section", { class: "card", key: "choose" }, h("h2", {}, "Compare with another job"),
            h("form", { class: "filters", role: "search", onsubmit: (/** @type {Event} */ e) => {
                e.preventDefault();
                if (words.trim()) choose(words.trim(), true);
            } }, h("label", {}, "Other job", h("input", { type: "search", name: "with", value: words, placeholder: "id, name, namespace or label", oninput: (/** @type {Event} */ e) => {
                words = /** @type {HTMLInputElement} */ (e.target).value;
                draw();
            } })), other ? h("p", {}, "Compared with ", h("a", { href: `#/jobs/${encodeURIComponent(other)}` }, other), ".") : null),
            !other || words ? shown(list, found) : null);
    }

    /** @param {Pair} p @returns {import("../dom.js").Child[]} */
    function result(p) {
        const changes = compare(p.before, p.after);
        const sentence = sumUp(changes, other, c.id);
        const change = changeOf({ before: p.before.wall_ns, after: p.after.wall_ns });
        const running = [FINAL.has(p.job.state) ? null : other, c.isOver() ? null : c.id].filter(Boolean);
        const lost = p.before.not_recorded + p.after.not_recorded;
        const side = (/** @type {Profile} */ one, /** @type {string} */ id) => [h("a", { href: `#/jobs/${encodeURIComponent(id)}/time` }, id), ` on ${counted(one.slots, "slot")}`];
        return [
            other === c.id ? h("p", { class: "quiet", key: "same" }, "This is the same job on both sides.") : null,
            running.length ? h("p", { class: "error", key: "running" }, `${running.join(" and ")} still ${running.length === 1 ? "runs" : "run"}: these are the numbers so far.`) : null,
            lost ? h("p", { class: "error", key: "lost" }, `${counted(lost, "attempt")} of the two jobs were not recorded, so the numbers lack them.`) : null,
            h("section", { class: "card", key: "sum" }, h("dl", { class: "figures flat" },
                figure(`First${p.job.name ? `: ${cut(p.job.name, 40)}` : ""}`, duration(p.before.wall_ns), side(p.before, other)),
                figure("Second: this job", duration(p.after.wall_ns), side(p.after, c.id)),
                figure("Change", signed(change), p.before.wall_ns ? relative({ before: p.before.wall_ns, after: p.after.wall_ns }) : null),
                figure("Slots ran tasks", `${busy(p.before)} → ${busy(p.after)}`, "of their time")),
            h("p", { class: "summary" }, `${sentence[0].toUpperCase()}${sentence.slice(1)}.`)),
            h("section", { class: "card", key: "causes" }, h("h2", {}, "What explains the change"), causes(changes)),
            h("section", { class: "card", key: "classes" }, h("h2", {}, "Time of all slots by class"), classes(changes, other, c.id)),
            h("section", { class: "card", key: "ops" }, h("h2", {}, "Operators"), operators(changes, isAll, () => {
                isAll = true;
                draw();
            })),
        ];
    }

    function render() {
        morph(c.root, chooser(), pair ? shown(pair, result) : null);
    }

    read(other);
    return {
        close() {
            list.close();
            pair?.close();
        },
        update: () => pair?.refresh(),
        change(route) {
            const next = route.query.get("with") ?? "";
            if (next !== other) read(next);
            onList();
        },
        retheme: draw,
    };
}
