/* The critical path as a line over the rows. Pure: tells which pixels the line covers. */
import { placeOf, timeAt } from "./view.js";
import { above } from "./spans.js";

/** @typedef {import("./view.js").Scale} Scale */
/** @typedef {{row: number, startedNs: number | bigint | string, finishedNs: number | bigint | string}} PathStep */

/**
 * @typedef {object} Path steps by their begin
 * @property {Float64Array} starts
 * @property {Float64Array} ends
 * @property {Float64Array} reach
 * @property {Int32Array} rows
 */

/** @param {ReadonlyArray<PathStep>} steps in any order @param {bigint} beginNs @returns {Path} */
export function pathFrom(steps, beginNs) {
    const list = steps
        .filter((s) => s.row >= 0)
        .map((s) => ({ row: s.row, start: Number(BigInt(s.startedNs) - beginNs), end: Number(BigInt(s.finishedNs) - beginNs) }))
        .sort((a, b) => a.start - b.start);
    const reach = new Float64Array(list.length);
    list.forEach((s, i) => (reach[i] = Math.max(s.end, i ? reach[i - 1] : -Infinity)));
    return {
        starts: Float64Array.from(list, (s) => s.start),
        ends: Float64Array.from(list, (s) => s.end),
        reach,
        rows: Int32Array.from(list, (s) => s.row),
    };
}

/** @typedef {{x: number, width: number, top: number, bottom: number, isWait?: boolean}} Stroke pixels; top and bottom
 * are rows, and equal in a piece along a row; isWait: nothing of the path runs there */

/**
 * The line in a window: pieces along rows, and pieces from row to row where one step hands over to
 * the next. Steps that share a column become one piece, so there are at most three strokes a column.
 * @param {Path} path @param {Scale} scale @returns {Stroke[]}
 */
export function strokes(path, scale) {
    const n = path.starts.length;
    // One step before and after the window, for the line that leaves it.
    const first = Math.max(0, above(path.reach, timeAt(scale, 0)) - 1);
    const end = Math.min(n, above(path.starts, timeAt(scale, scale.width)) + 1);
    /** @type {Stroke[]} */
    const out = [];
    const place = (/** @type {number} */ t) => Math.min(scale.width + 8, Math.max(-8, Math.round(placeOf(scale, t))));
    const along = (/** @type {number} */ a, /** @type {number} */ b, /** @type {number} */ row, isWait = false) => {
        const last = out[out.length - 1];
        if (b > a) out.push({ x: a, width: b - a, top: row, bottom: row, isWait });
        else if (!last || last.x + last.width < a || last.top > row || last.bottom < row) across(a, row, row);
    };
    const across = (/** @type {number} */ x, /** @type {number} */ a, /** @type {number} */ b) => {
        const last = out[out.length - 1];
        if (last && last.width === 0 && last.x === x) {
            last.top = Math.min(last.top, a, b);
            last.bottom = Math.max(last.bottom, a, b);
        } else out.push({ x, width: 0, top: Math.min(a, b), bottom: Math.max(a, b) });
    };
    for (let i = first; i < end; i++) {
        const a = place(path.starts[i]);
        const b = place(path.ends[i]);
        along(a, b, path.rows[i]);
        if (i + 1 < n) {
            const next = place(path.starts[i + 1]);
            // The wait before the next step is drawn on the row of this step.
            if (next > b) along(b, next, path.rows[i], true);
            if (path.rows[i + 1] !== path.rows[i]) across(Math.max(next, b), path.rows[i], path.rows[i + 1]);
        }
    }
    return out;
}
