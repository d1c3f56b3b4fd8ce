/* What changed from one job to another, computed from two profiles. The numbers, their order and the
 * sentence are those of `millrace compare --json` (cli/trace/compare.c). No DOM. */

/** @typedef {import("../client/api.d.ts").ProfileResponse} Profile */

/**
 * @typedef {object} Change
 * @property {bigint} before
 * @property {bigint} after
 */

/** @typedef {Change & {class: string, op: string}} TimeChange nanoseconds; op "": of the class alone */

/** @typedef {"tasks" | "wall_ns" | "cpu_ns" | "queue_ns" | "nbytes" | "median_ns" | "p99_ns"} Measure */

/**
 * @typedef {object} OpChange
 * @property {string} op
 * @property {bigint} pathChange change of the operator's run time on the critical path, ns
 * @property {{[name in Measure]: Change}} measures
 */

/**
 * @typedef {object} Comparison
 * @property {Profile} before
 * @property {Profile} after
 * @property {boolean} hasPath both jobs are over: `causes` are the parts of their critical paths.
 *   Otherwise `causes` are the slot times of the classes, divided by the number of slots.
 * @property {TimeChange[]} causes parts of the wall times, the largest change first
 * @property {TimeChange[]} classes slot time by class, the largest change first
 * @property {OpChange[]} ops the operator first that explains the largest change
 */

/** @type {ReadonlyArray<Measure>} */
export const MEASURES = ["tasks", "wall_ns", "cpu_ns", "queue_ns", "nbytes", "median_ns", "p99_ns"];

const RAN = "dependency"; // the class of the time in which a task on the critical path ran
const CAUSES_NAMED = 3;

/** @param {bigint} n */
const size = (n) => (n < 0n ? -n : n);
/** @param {Change} c */
export const changeOf = (c) => c.after - c.before;
/** @template T @param {T} a @param {T} b */
const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** Sums of times by class and operator, for both jobs. */
class Times {
    constructor() {
        /** @type {Map<string, TimeChange>} */
        this.rows = new Map();
    }

    /** @param {boolean} isAfter @param {string} name of the class @param {string} op @param {bigint} ns */
    add(isAfter, name, op, ns) {
        const key = `${name}\n${op}`;
        const row = this.rows.get(key) ?? { class: name, op, before: 0n, after: 0n };
        row[isAfter ? "after" : "before"] += ns;
        this.rows.set(key, row);
    }

    /** @param {boolean} isAfter @param {{[name: string]: bigint}} classes @param {bigint} divisor */
    addClasses(isAfter, classes, divisor) {
        for (const [name, ns] of Object.entries(classes)) this.add(isAfter, name, "", ns / divisor);
    }

    /** The rows that are not 0 in both jobs. */
    sorted() {
        return [...this.rows.values()].filter((r) => r.before || r.after)
            .sort((a, b) => order(size(changeOf(b)), size(changeOf(a))) || order(a.class, b.class) || order(a.op, b.op));
    }
}

/** If a task ran in a step, the time of the step goes to the row of the operator, not to that of the
 * class alone. @param {Times} causes @param {boolean} isAfter @param {NonNullable<Profile["critical_path"]>} path */
function addPath(causes, isAfter, path) {
    causes.addClasses(isAfter, path.classes, 1n);
    for (const step of path.steps) {
        if (step.class !== RAN || !step.op) continue;
        const ns = step.to_ns - step.from_ns;
        causes.add(isAfter, RAN, step.op, ns);
        causes.add(isAfter, RAN, "", -ns);
    }
}

/** @param {string} op @returns {OpChange} */
function emptyOp(op) {
    const zero = () => ({ before: 0n, after: 0n });
    return { op, pathChange: 0n, measures: { tasks: zero(), wall_ns: zero(), cpu_ns: zero(), queue_ns: zero(), nbytes: zero(), median_ns: zero(), p99_ns: zero() } };
}

/** @param {Profile} before @param {Profile} after @returns {Comparison} */
export function compare(before, after) {
    const causes = new Times(), classes = new Times();
    /** @type {Map<string, OpChange>} */
    const ops = new Map();
    const opOf = (/** @type {string} */ name) => {
        const op = ops.get(name) ?? emptyOp(name);
        ops.set(name, op);
        return op;
    };
    const hasPath = !!before.critical_path && !!after.critical_path;
    for (const [i, p] of [before, after].entries()) {
        const isAfter = i === 1;
        classes.addClasses(isAfter, p.classes, 1n);
        for (const row of p.ops)
            for (const name of MEASURES) opOf(row.op).measures[name][isAfter ? "after" : "before"] = row[name];
        if (hasPath && p.critical_path) addPath(causes, isAfter, p.critical_path);
        else causes.addClasses(isAfter, p.classes, p.slots > 1n ? p.slots : 1n);
    }
    const parts = causes.sorted();
    for (const row of parts) if (row.op) opOf(row.op).pathChange = changeOf(row);
    const wall = (/** @type {OpChange} */ o) => size(changeOf(o.measures.wall_ns));
    return {
        before, after, hasPath, causes: parts, classes: classes.sorted(),
        ops: [...ops.values()].sort((a, b) => order(size(b.pathChange), size(a.pathChange)) || order(wall(b), wall(a)) || order(a.op, b.op)),
    };
}

/** @param {bigint} ns @returns {string} e.g. "+1.250 s" */
function signed(ns) {
    return `${ns < 0n ? "" : "+"}${(Number(ns) / 1e9).toFixed(3)} s`;
}

/**
 * A sentence: how the wall time changed, and what explains most of the change.
 * @param {Comparison} c @param {string} before id of the first job @param {string} after
 */
export function sumUp(c, before, after) {
    const first = c.before.wall_ns, change = c.after.wall_ns - first;
    if (!first || size(change) * 100n < first) return `job ${after} took as long as job ${before}, within 1 %`;
    const named = c.causes.filter((t) => changeOf(t) < 0n === change < 0n && size(changeOf(t)) * 10n >= size(change)).slice(0, CAUSES_NAMED);
    const much = `${(Number(size(change)) / 1e9).toFixed(3)} s (${((Number(size(change)) * 100) / Number(first)).toFixed(1)} %)`;
    const why = named.map((t) => `${t.class}${t.op ? ` (${t.op})` : ""} ${signed(changeOf(t))}`).join(", ");
    return `job ${after} took ${much} ${change < 0n ? "less" : "more"} than job ${before}${why ? `: ${why}` : ""}`;
}
