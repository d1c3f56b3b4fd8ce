/* Where the time of a job went: the account with its sum, operators, the critical path. */
import { CLASSES, classOf, colorOf } from "../classes.js";
import { h, morph, onFrame } from "../dom.js";
import { bytes, count, counted, cut, duration, share } from "../format.js";
import { bar, empty, shown, stack, table } from "../parts.js";

const STEPS_MAX = 200;
const STEPS_SHOWN = 40;

/** @typedef {import("../../client/api.d.ts").ProfileResponse} Profile */

/** @param {Profile} p @param {"slot" | "role"} [of] whose time it is */
export function account(p, of = "slot") {
    const rows = CLASSES.filter((c) => p.classes[c.name]).map((c) => ({ ...c, ns: p.classes[c.name] }));
    for (const name of Object.keys(p.classes)) if (p.classes[name] && classOf(name).group === "unknown" && name !== "unknown") rows.push({ ...classOf(name), ns: p.classes[name] });
    const sum = rows.reduce((n, r) => n + r.ns, 0n);
    const off = sum > p.slot_ns ? sum - p.slot_ns : p.slot_ns - sum;
    const says = off === 0n ? `The classes add up to the time of all ${of}s${of === "slot" ? `: ${duration(p.wall_ns)} × ${counted(p.slots, "slot")}` : ""}.` : `The classes add up to ${share(sum, p.slot_ns)} of the time of all ${of}s.`;
    const busy = rows.filter((r) => r.group === "busy").reduce((n, r) => n + r.ns, 0n);
    return [h("p", {}, `${of === "slot" ? "Slots ran tasks" : "Roles worked or waited for each other"} in ${share(busy, p.slot_ns)} of their time${p.other_ns ? `; ${duration(p.other_ns)} of it went to tasks of other jobs` : ""}. `, says),
        stack(rows.map((r) => ({ name: r.name, value: Number(r.ns), color: colorOf(r.name) })), Number(p.slot_ns), `Time of all ${of}s by class`),
        table({ label: `The account: time of all ${of}s by class`, rows, key: (r) => r.name, columns: [
            { title: "Class", cell: (r) => [h("i", { class: "swatch", style: { "background-color": colorOf(r.name) } }), h("b", {}, r.name)] },
            { title: "Time", isNumber: true, cell: (r) => duration(r.ns) },
            { title: "Share", isNumber: true, cell: (r) => share(r.ns, p.slot_ns) },
            { title: "", cell: (r) => bar(Number(r.ns), Number(p.slot_ns), colorOf(r.name)) },
            { title: `The ${of} …`, isWide: true, cell: (r) => [`${r.means}. `, h("span", { class: "quiet" }, r.advice)] },
        ], foot: h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "Sum"), h("td", { class: "number" }, duration(sum)), h("td", { class: "number" }, share(sum, p.slot_ns)), h("td", {}),
            h("td", { class: "wide" }, off === 0n ? (of === "slot" ? `= wall × slots, ${duration(p.wall_ns)} × ${count(p.slots)}` : "= the time in which the roles existed") : `${duration(off)} away from the time of all ${of}s`))) })];
}

/** @param {NonNullable<Profile["critical_path"]>} path @param {bigint} from @param {string} id */
function critical(path, from, id) {
    const whole = Object.values(path.classes).reduce((n, ns) => n + ns, 0n);
    const parts = CLASSES.filter((c) => path.classes[c.name]).map((c) => ({ name: c.name === "dependency" ? "a task ran" : c.name, value: Number(path.classes[c.name]), color: colorOf(c.name) }));
    const longest = [...path.steps].sort((a, b) => (b.to_ns - b.from_ns > a.to_ns - a.from_ns ? 1 : -1)).slice(0, STEPS_SHOWN).sort((a, b) => (a.from_ns < b.from_ns ? -1 : 1));
    const cutText = path.is_cut || longest.length < path.steps.length ? `The ${count(longest.length)} longest of the last ${counted(path.steps.length, "step")}, in the order of time.` : "All steps, in the order of time.";
    return [h("p", {}, "The job was as slow as the longest chain of tasks and waits, from its submission to its end. Only what is on this chain, if it is made shorter, makes the job shorter."),
        stack(parts, Number(whole), "The critical path by class"),
        h("ul", { class: "legend" }, parts.map((p) => h("li", { key: p.name }, h("i", { style: { "background-color": p.color } }), p.name, h("b", {}, duration(p.value))))),
        h("p", { class: "quiet" }, cutText),
        table({ label: "Steps of the critical path", rows: longest, key: (s) => String(s.from_ns), columns: [
            { title: "At", isNumber: true, cell: (s) => duration(s.from_ns - from) },
            { title: "For", isNumber: true, cell: (s) => duration(s.to_ns - s.from_ns) },
            { title: "Class", cell: (s) => [h("i", { class: "swatch", style: { "background-color": colorOf(s.class) } }), s.class === "dependency" ? "a task ran" : s.class] },
            { title: "Task", isWide: true, cell: (s) => (s.key ? h("a", { href: `#/jobs/${id}/failures?key=${encodeURIComponent(s.key)}` }, cut(s.key, 80)) : "–") },
            { title: "Operator", cell: (s) => h("code", {}, s.op) },
        ] })];
}

/**
 * @param {import("./job.js").JobContext} c
 * @returns {import("./job.js").View}
 */
export function openTime(c) {
    const draw = onFrame(render);
    const order = { column: "Wall", down: true };
    const feed = c.session.feed((api, signal) => api.jobs.profile(c.id, { signal, steps_max: STEPS_MAX }), draw, () => (c.isOver() ? undefined : 3000));

    function render() {
        morph(c.root, shown(feed, (p) => [
            p.not_recorded ? h("p", { class: "error" }, `${counted(p.not_recorded, "attempt")} were not recorded, so the account lacks them.`) : null,
            h("section", { class: "card", key: "account" }, h("h2", {}, "The account"), Number(p.slot_ns) ? account(p) : empty("There was no slot.", "Start a worker.")),
            h("section", { class: "card", key: "ops" }, h("h2", {}, "Operators"), p.ops.length ? table({ label: "Time by operator", rows: p.ops, key: (o) => o.op, order, redraw: draw, columns: [
                { title: "Operator", cell: (o) => h("code", {}, o.op), sort: (o) => o.op },
                { title: "Attempts", isNumber: true, cell: (o) => count(o.tasks), sort: (o) => o.tasks },
                { title: "Wall", isNumber: true, cell: (o) => duration(o.wall_ns), sort: (o) => o.wall_ns },
                { title: "CPU", isNumber: true, cell: (o) => duration(o.cpu_ns), sort: (o) => o.cpu_ns },
                { title: "Median", isNumber: true, cell: (o) => duration(o.median_ns), sort: (o) => o.median_ns },
                { title: "p99", isNumber: true, cell: (o) => duration(o.p99_ns), sort: (o) => o.p99_ns },
                { title: "Queued", isNumber: true, cell: (o) => duration(o.queue_ns), sort: (o) => o.queue_ns },
                { title: "Values", isNumber: true, cell: (o) => bytes(o.nbytes), sort: (o) => o.nbytes },
                { title: "Slots waited for it", isNumber: true, cell: (o) => duration(o.white_ns), sort: (o) => o.white_ns },
            ] }) : empty("No task has ended yet.", "The table fills while the job runs.")),
            h("section", { class: "card", key: "path" }, h("h2", {}, "Critical path"), p.critical_path ? critical(p.critical_path, p.from_ns, c.id) : empty("The job is not over.", "The critical path is known at its end.")),
        ]));
    }

    draw();
    return { close: () => feed.close(), update: () => feed.refresh(), retheme: draw };
}
