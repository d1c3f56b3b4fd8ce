/* Spans: tasks of a small window, in chunks of time that are loaded whole. Pure. */
import { TILE_ROWS } from "./tiles.js";

/** @typedef {import("./view.js").Window} Window */
/** @typedef {number | bigint | string} Ns nanoseconds since 1970 */

/**
 * @typedef {object} Span an attempt, as the source gives it; further members are kept
 * @property {number} row
 * @property {Ns} startedNs
 * @property {Ns} finishedNs
 * @property {string} op
 * @property {string} key
 * @property {number} [attempt]
 * @property {string} [outcome] "ok", or why the attempt has no value
 * @property {string} [cause] why the slot was idle before, in words
 * @property {Array<[string, string]>} [details] further lines of the tooltip: name and text
 */

/**
 * @typedef {object} SpansAnswer
 * @property {ReadonlyArray<Span>} spans in any order
 * @property {boolean} more there are more spans than the answer holds
 */

/**
 * @typedef {object} SpanRow spans of a row by their begin
 * @property {Float64Array} starts
 * @property {Float64Array} ends
 * @property {Float64Array} reach the latest end of this span and all before it
 * @property {Span[]} spans
 */

/**
 * @typedef {object} Chunk
 * @property {number} exponent its width is 2^exponent ns
 * @property {number} index
 * @property {number} block of rows
 * @property {Map<number, SpanRow>} rows
 * @property {number} count
 * @property {boolean} isCut there are more spans than one request gives, so tiles are drawn instead
 * @property {number} end of what was known of the job
 */

/** Spans of one request. */
export const SPANS_MAX = 50000;

/** The exponent of chunks: at most four of them cover a window that shows spans.
 * @param {number} moreSpansNs widest window that begins to show spans @returns {number} */
export function chunkExponent(moreSpansNs) {
    return Math.max(8, Math.floor(Math.log2(moreSpansNs)));
}

/** @param {Window} w @param {number} exponent @param {number} extent @param {number} firstRow
 * @param {number} rows shown @returns {string[]} keys of the chunks, from the middle of the window */
export function chunksOf(w, exponent, extent, firstRow, rows) {
    const width = 2 ** exponent;
    const most = Math.max(0, Math.ceil(extent / width) - 1);
    const first = Math.min(most, Math.max(0, Math.floor(w.from / width)));
    const last = Math.min(most, Math.max(first, Math.ceil(w.until / width) - 1));
    const center = (w.from + w.until) / 2;
    /** @type {Array<{key: string, far: number}>} */
    const found = [];
    const lastBlock = Math.floor(Math.max(firstRow, firstRow + rows - 1) / TILE_ROWS);
    for (let block = Math.floor(firstRow / TILE_ROWS); block <= lastBlock; block++)
        for (let index = first; index <= last; index++)
            found.push({ key: `${exponent}/${index}/${block}`, far: Math.abs((index + 0.5) * width - center) });
    return found.sort((a, b) => a.far - b.far).map((f) => f.key);
}

/** @param {string} key @returns {{exponent: number, index: number, block: number}} */
export function chunkId(key) {
    const [exponent, index, block] = key.split("/").map(Number);
    return { exponent, index, block };
}

/** @param {string} key @param {SpansAnswer} answer @param {bigint} beginNs
 * @param {number} end @returns {Chunk} */
export function chunkFrom(key, { spans, more: isCut }, beginNs, end) {
    /** @type {Map<number, Array<{start: number, finish: number, span: Span}>>} */
    const byRow = new Map();
    for (const span of isCut ? [] : spans) {
        const start = Number(BigInt(span.startedNs) - beginNs);
        const finish = Math.max(start, Number(BigInt(span.finishedNs) - beginNs));
        const list = byRow.get(span.row);
        if (list) list.push({ start, finish, span });
        else byRow.set(span.row, [{ start, finish, span }]);
    }
    /** @type {Map<number, SpanRow>} */
    const rows = new Map();
    for (const [row, list] of byRow) {
        list.sort((a, b) => a.start - b.start || a.finish - b.finish);
        const reach = new Float64Array(list.length);
        list.forEach((s, i) => (reach[i] = Math.max(s.finish, i ? reach[i - 1] : -Infinity)));
        rows.set(row, {
            starts: Float64Array.from(list, (s) => s.start),
            ends: Float64Array.from(list, (s) => s.finish),
            reach,
            spans: list.map((s) => s.span),
        });
    }
    return { ...chunkId(key), rows, count: isCut ? 0 : spans.length, isCut, end };
}

/** @param {Chunk} chunk @returns {number} about the bytes that the chunk keeps */
export function chunkBytes(chunk) {
    return 400 + chunk.count * 500;
}

/** Index of the first element that is greater than `x`. @param {Float64Array} sorted @param {number} x */
export function above(sorted, x) {
    let [low, high] = [0, sorted.length];
    while (low < high) {
        const middle = (low + high) >> 1;
        if (sorted[middle] > x) high = middle;
        else low = middle + 1;
    }
    return low;
}

/** Spans [first, end) that may overlap the time between `from` and `until`.
 * @param {SpanRow} row @param {number} from @param {number} until @returns {[number, number]} */
export function overlapping(row, from, until) {
    return [above(row.reach, from), above(row.starts, until)];
}

/** The span at a time, or the nearest one that is at most `slack` away.
 * @param {SpanRow | undefined} row @param {number} time @param {number} slack @returns {Span | undefined} */
export function spanAt(row, time, slack) {
    if (!row) return undefined;
    const [first, end] = overlapping(row, time - slack, time + slack);
    /** @type {Span | undefined} */
    let best;
    let least = Infinity;
    for (let i = first; i < end; i++) {
        const far = time < row.starts[i] ? row.starts[i] - time : time > row.ends[i] ? time - row.ends[i] : 0;
        // Of two spans at one place, the shorter is harder to hit otherwise.
        const rank = far + (far === 0 ? 1e-9 * (row.ends[i] - row.starts[i]) : 1);
        if (far <= slack && rank < least) {
            least = rank;
            best = row.spans[i];
        }
    }
    return best;
}
