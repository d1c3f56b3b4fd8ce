/* Finds a task by time where no spans are loaded, with small requests to the source. No DOM. */
import { timesOf } from "./text.js";

/** @typedef {import("./spans.js").Span} Span */
/** @typedef {{beginNs: bigint, extent: number, source: Pick<import("./data.js").Source, "spans">}} Job */

const LIMIT = 500;
/** Requests of a search for the next task: each window is eight times as wide as the one before. */
const STEPS = 7;

/** @param {Job} job @param {number} row @param {number} from @param {number} until @param {AbortSignal} signal */
async function spansOf(job, row, from, until, signal) {
    const a = Math.max(0, Math.floor(from));
    const b = Math.max(a + 1, Math.ceil(until));
    const { spans, more } = await job.source.spans({
        fromNs: job.beginNs + BigInt(a), untilNs: job.beginNs + BigInt(b), firstRow: row, rows: 1, limit: LIMIT, signal,
    });
    return { found: spans.map((span) => ({ span, ...timesOf(span, job.beginNs) })).sort((x, y) => x.start - y.start), more };
}

/** The task at a time; of many within `slack`, the longest.
 * @param {Job} job @param {number} row @param {number} time @param {number} slack nanoseconds
 * @param {AbortSignal} signal @returns {Promise<Span | undefined>} */
export async function spanNear(job, row, time, slack, signal) {
    const { found } = await spansOf(job, row, time - slack, time + slack, signal);
    let best;
    for (const s of found) if (!best || s.end - s.start > best.end - best.start) best = s;
    return best?.span;
}

/** The task that began next after, or last before, a time.
 * @param {Job} job @param {number} row @param {number} time @param {1 | -1} direction
 * @param {number} width of the first search, in nanoseconds @param {AbortSignal} signal
 * @returns {Promise<Span | undefined>} */
export async function nextSpan(job, row, time, direction, width, signal) {
    let near = time;
    for (let i = 0, w = width; i < STEPS; i++, w *= 8) {
        const far = direction > 0 ? Math.min(job.extent, near + w) : Math.max(0, near - w);
        const { found, more } = await spansOf(job, row, Math.min(near, far), Math.max(near, far), signal);
        if (direction > 0) {
            const next = found.find((s) => s.start > time);
            if (next) return next.span;
        } else {
            const before = found.filter((s) => s.start < time).pop();
            // The answer has the earliest spans of the window. If it is cut, later ones are missing.
            if (before && (!more || w < 2)) return before.span;
            if (before) return nextSpan(job, row, time, direction, w / 8, signal);
        }
        if (far === (direction > 0 ? job.extent : 0)) return undefined;
        near = far;
    }
    return undefined;
}
