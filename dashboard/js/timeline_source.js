/* Where the timeline of a job gets its tiles and spans: from Jobs.Tiles, or, if the cluster is older
 * and has no tiles, from the spans of Jobs.Timeline, of which the page then makes the tiles. */
import { duration, plain } from "./format.js";
import { isMissing } from "./parts.js";

/** @typedef {import("../client/millrace.js").Client} Client */
/** @typedef {import("../client/api.d.ts").TimelineSpan} ApiSpan */
/** @typedef {import("../client/api.d.ts").Job} Job */
/** @typedef {import("./timeline/spans.js").Span} Span */
/** @typedef {import("./timeline/spans.js").SpansAnswer} SpansAnswer */
/** @typedef {{worker: string, slot: number}} Slot */
/** @typedef {{fromNs: bigint, untilNs: bigint, width: number, firstRow: number, rows: number, color: "op" | "class", signal?: AbortSignal}} TilesAsked */
/** @typedef {{fromNs: bigint, untilNs: bigint, firstRow: number, rows: number, limit: number, signal?: AbortSignal}} SpansAsked */

/** Without tiles, at most this many spans are read. */
export const SPANS_MAX = 50000;
const PAGE = 10000;
/** Rows of one answer with tiles, and spans of one answer with spans, as the cluster limits them. */
const ROWS_MAX = 256;
const ANSWER_SPANS_MAX = 100000;

/** @param {Slot} s */
const nameOf = (s) => `${s.worker}\n${s.slot}`;

/** Why the slot could not run the task earlier, in words. @param {ApiSpan} s */
function causeOf(s) {
    const t = s.times;
    if (!t?.ready_ns) return undefined;
    const parts = [];
    const held = s.held === "SPAN_HELD_MEMORY" ? "held back while memory was short" : s.held === "SPAN_HELD_RESTRICTED" ? "held back for a worker that may run it" : "with the scheduler";
    if (t.sent_ns > t.ready_ns) parts.push(`${duration(t.sent_ns - t.ready_ns)} ${held}`);
    if (t.received_ns > t.sent_ns) parts.push(`${duration(t.received_ns - t.sent_ns)} on its way to the worker`);
    const there = t.inputs_ns > t.received_ns ? t.inputs_ns : t.received_ns || t.sent_ns;
    if (t.inputs_ns > t.received_ns && t.received_ns) parts.push(`${duration(t.inputs_ns - t.received_ns)} for its last input`);
    if (t.started_ns > there) parts.push(`${duration(t.started_ns - there)} for a free slot`);
    return parts.length ? `After it was ready: ${parts.join(", ")}.` : undefined;
}

/** @param {ApiSpan} s @param {number} row @returns {Span} */
function spanOf(s, row) {
    const t = /** @type {NonNullable<ApiSpan["times"]>} */ (s.times);
    const isOk = s.outcome === "SPAN_OUTCOME_OK" || (s.outcome === "SPAN_OUTCOME_UNSPECIFIED" && !s.failed);
    return { row, startedNs: t.started_ns, finishedNs: t.finished_ns, op: s.op, key: s.key, attempt: s.attempt, outcome: isOk ? "ok" : plain(s.outcome), cause: causeOf(s), details: [["CPU", duration(s.cpu_ns)]] };
}

/** Tiles that the cluster makes. */
class TilesSource {
    /** @param {Client} client @param {Job} job */
    constructor(client, job) {
        this.client = client;
        this.id = job.id;
        this.rowsCount = 0;
        this.beginNs = job.created_ns;
        this.endNs = job.finished_ns || job.created_ns;
        this.hasTiles = true;
        this.isCut = false;
        /** The slots of the rows that are known. @type {Map<number, Slot>} */
        this.slots = new Map();
        /** Operators of the job that have run, and classes that tiles had. */
        this.names = { op: new Set(), class: new Set() };
        /** Called when there are new names. */
        this.onNames = () => {};
    }

    /** @param {Job} job @param {AbortSignal} signal */
    async update(job, signal) {
        const all = await this.client.jobs.tiles(this.id, { width: 1, rows: 1, signal });
        for (const name of all.names) this.names.op.add(name);
        // "Now" is the server's: the browser's clock may differ.
        this.endNs = job.finished_ns || all.until_ns;
        // Rows are sorted by worker, so a new worker may move all of them.
        if (all.rows_count !== this.rowsCount) this.slots.clear();
        this.rowsCount = all.rows_count;
        if (all.from_ns) this.beginNs = all.from_ns;
    }

    /** @param {TilesAsked} o */
    async tiles(o) {
        const answer = await this.client.jobs.tiles(this.id, { from_ns: o.fromNs, until_ns: o.untilNs, width: o.width, first_row: o.firstRow, rows: o.rows,
            color: o.color === "class" ? "TILE_COLOR_CLASS" : "TILE_COLOR_OP", signal: o.signal });
        this.#keep(o.firstRow, answer);
        const names = this.names[o.color], before = names.size;
        for (const row of answer.rows) for (const color of row.colors) if (color) names.add(answer.names[color - 1]);
        if (names.size > before) this.onNames();
        return answer;
    }

    /** @param {number} first row of the answer @param {import("../client/api.d.ts").TilesResponse} answer */
    #keep(first, answer) {
        if (answer.rows_count === this.rowsCount) answer.rows.forEach((r, i) => this.slots.set(first + i, { worker: r.worker, slot: r.slot }));
    }

    /** The slots of rows; asks for those that no tile has named yet.
     * @param {number} first @param {number} end @param {AbortSignal} [signal] @returns {Promise<Slot[]>} fewer, if the rows have just moved */
    async #slotsOf(first, end, signal) {
        const found = [];
        for (let row = first; row < end; row++) {
            if (!this.slots.has(row)) this.#keep(row, await this.client.jobs.tiles(this.id, { width: 1, first_row: row, rows: Math.min(ROWS_MAX, end - row), signal }));
            const slot = this.slots.get(row);
            if (!slot) break;
            found.push(slot);
        }
        return found;
    }

    /** @param {SpansAsked} o @returns {Promise<SpansAnswer>} */
    async spans(o) {
        const end = Math.min(this.rowsCount, o.firstRow + o.rows);
        const wanted = await this.#slotsOf(o.firstRow, end, o.signal);
        // The rows have just moved; after the next update they are known.
        if (!wanted.length || wanted.length < end - o.firstRow) return { spans: [], more: true };
        const rowOf = new Map(wanted.map((s, i) => [nameOf(s), o.firstRow + i]));
        const isAll = wanted.length === this.rowsCount;
        const answer = await this.client.jobs.timeline(this.id, { from_ns: o.fromNs, until_ns: o.untilNs, spans_max: Math.min(ANSWER_SPANS_MAX, Math.max(1, o.limit)),
            worker: isAll ? [] : [...new Set(wanted.map((s) => s.worker))], slot: isAll ? [] : [...new Set(wanted.map((s) => s.slot))], signal: o.signal });
        // The cluster chooses by worker and by slot, so spans of a few other rows may come too.
        const spans = answer.spans.flatMap((s) => {
            const row = rowOf.get(nameOf(s));
            return row !== undefined && s.times ? [spanOf(s, row)] : [];
        });
        return { spans, more: answer.more };
    }
}

/** Tiles that the page makes of all spans. */
export class SpansSource {
    /** @param {Client} client @param {Job} job */
    constructor(client, job) {
        this.client = client;
        this.id = job.id;
        this.beginNs = job.created_ns;
        this.endNs = job.finished_ns || job.created_ns;
        this.hasTiles = false;
        /** True: the job has more spans than are read. */
        this.isCut = false;
        /** @type {ApiSpan[]} in the order of their ends */
        this.all = [];
        /** @type {Slot[]} */
        this.slots = [];
        /** @type {Map<string, number>} */
        this.rowOf = new Map();
        this.names = { op: new Set(), class: new Set(["input", "compute", "blocked", "preempted", "output"]) };
        this.onNames = () => {};
    }

    get rowsCount() {
        return this.slots.length;
    }

    /** Reads the spans that have ended since the last call. @param {Job} job @param {AbortSignal} [signal] */
    async update(job, signal) {
        for (let more = true; more && this.all.length < SPANS_MAX; ) {
            const after_ns = this.all[this.all.length - 1]?.times?.finished_ns;
            const page = await this.client.jobs.timeline(this.id, { after_ns, spans_max: PAGE, signal });
            this.all.push(...page.spans.filter((s) => s.times));
            more = page.more && page.spans.length > 0;
            this.isCut = more;
        }
        this.#layRows();
        // The browser's clock may differ from the server's, which is known to be past the last end.
        this.endNs = job.finished_ns || this.all[this.all.length - 1]?.times?.finished_ns || job.created_ns;
    }

    #layRows() {
        for (const s of this.all) {
            this.names.op.add(s.op);
            this.rowOf.set(nameOf(s), 0);
        }
        this.slots = [...this.rowOf.keys()].map((name) => ({ worker: name.split("\n")[0], slot: Number(name.split("\n")[1]) }))
            .sort((a, b) => a.worker.localeCompare(b.worker, "en", { numeric: true }) || a.slot - b.slot);
        this.slots.forEach((s, row) => this.rowOf.set(nameOf(s), row));
    }

    /** @param {number} first @param {number} count */
    workersOfRows(first, count) {
        return this.slots.slice(first, first + count);
    }

    /** @param {TilesAsked} o */
    async tiles(o) {
        const names = [...this.names[o.color]];
        const numbers = new Map(names.map((n, i) => [n, i + 1]));
        const rows = this.slots.slice(o.firstRow, o.firstRow + o.rows).map((s) => ({ ...s, lengths: /** @type {number[]} */ ([]), colors: /** @type {number[]} */ ([]), fill: /** @type {number[]} */ ([]) }));
        const pixels = rows.map(() => new Map());
        const nsPerPx = Number(o.untilNs - o.fromNs) / o.width;
        for (const s of this.all) {
            const row = (this.rowOf.get(nameOf(s)) ?? 0) - o.firstRow;
            if (row < 0 || row >= rows.length) continue;
            for (const [name, from, until] of piecesOf(s, o.color)) {
                const a = Math.max(0, Number(from - o.fromNs) / nsPerPx), b = Math.min(o.width, Number(until - o.fromNs) / nsPerPx);
                for (let px = Math.floor(a); px < b; px++) {
                    const time = Math.min(b, px + 1) - Math.max(a, px);
                    const key = px * 1024 + (numbers.get(name) ?? 0);
                    pixels[row].set(key, (pixels[row].get(key) ?? 0) + time);
                }
            }
        }
        rows.forEach((row, i) => encode(row, pixels[i], o.width));
        return { rows, names, rows_count: this.slots.length, from_ns: o.fromNs, until_ns: o.untilNs, more_spans_ns: this.endNs - this.beginNs + 1n };
    }

    /** @param {SpansAsked} o @returns {Promise<SpansAnswer>} */
    async spans(o) {
        /** @type {Span[]} */
        const spans = [];
        for (const s of this.all) {
            const t = /** @type {NonNullable<ApiSpan["times"]>} */ (s.times);
            const row = this.rowOf.get(nameOf(s)) ?? 0;
            if (row < o.firstRow || row >= o.firstRow + o.rows || t.finished_ns < o.fromNs || t.started_ns > o.untilNs) continue;
            if (spans.length >= o.limit) return { spans, more: true };
            spans.push(spanOf(s, row));
        }
        return { spans, more: false };
    }
}

/** The pieces of a span: the whole of it, or its classes one after the other.
 * @param {ApiSpan} s @param {"op" | "class"} color @returns {Array<[string, bigint, bigint]>} */
function piecesOf(s, color) {
    const t = /** @type {NonNullable<ApiSpan["times"]>} */ (s.times);
    if (color === "op") return [[s.op, t.started_ns, t.finished_ns]];
    let at = t.started_ns;
    const rest = (/** @type {bigint} */ ns) => (ns < t.finished_ns - at ? ns : t.finished_ns - at);
    /** @type {Array<[string, bigint, bigint]>} */
    const pieces = [];
    const blocked = t.finished_ns - t.started_ns - s.input_ns - s.output_ns - s.cpu_ns - s.late_ns;
    for (const [name, ns] of /** @type {Array<[string, bigint]>} */ ([["restore", s.restore_ns], ["input", s.input_ns - s.restore_ns], ["compute", s.cpu_ns], ["blocked", blocked > 0n ? blocked : 0n], ["preempted", s.late_ns], ["output", s.output_ns]])) {
        const size = rest(ns);
        if (size > 0n) pieces.push([name, at, at + size]);
        at += size;
    }
    return pieces;
}

/** Writes run lengths. @param {{lengths: number[], colors: number[], fill: number[]}} row
 * @param {Map<number, number>} pixels time by pixel * 1024 + number of the name @param {number} width */
function encode(row, pixels, width) {
    const color = new Uint16Array(width), best = new Float32Array(width), sum = new Float32Array(width);
    for (const [key, time] of pixels) {
        const px = Math.floor(key / 1024);
        sum[px] += time;
        if (time > best[px]) {
            best[px] = time;
            color[px] = key % 1024;
        }
    }
    for (let px = 0; px < width; px++) {
        const fill = Math.min(255, Math.round(255 * sum[px]));
        const last = row.colors.length - 1;
        if (last >= 0 && row.colors[last] === color[px] && row.fill[last] === fill) row.lengths[last]++;
        else {
            row.lengths.push(1);
            row.colors.push(color[px]);
            row.fill.push(fill);
        }
    }
}

/**
 * @param {Client} client
 * @param {Job} job
 * @param {AbortSignal} signal
 * @returns {Promise<TilesSource | SpansSource>}
 */
export async function openSource(client, job, signal) {
    const tiles = new TilesSource(client, job);
    try {
        await tiles.update(job, signal);
        return tiles;
    } catch (e) {
        if (!isMissing(e)) throw e;
    }
    const spans = new SpansSource(client, job);
    await spans.update(job, signal);
    return spans;
}
