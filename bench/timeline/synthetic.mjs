/* A synthetic job for the timeline: tiles and spans are computed from their place, so a job of 100
 * million spans needs no memory. The numbers are the same in each run. */

const OPS = ["array.matmul", "array.add", "array.sum", "load_csv", "map_partition", "tokenize", "join", "glm.gradient",
    "glm.step", "write_parquet", "shuffle.split", "shuffle.merge"];
const CLASSES = ["compute", "input", "output", "blocked", "preempted", "dependency", "imbalance", "transfer", "decide", "send",
    "handoff", "report", "memory"];
/** Cells that are looked at for a pixel that has many. */
const SAMPLES = 12;
export const BEGIN_NS = 1_700_000_000_000_000_000n;

/** @param {number} a @param {number} b @returns {number} 0-1 */
function noise(a, b) {
    let h = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(b + 0x7f4a7c15, 0xc2b2ae35);
    h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
    h = Math.imul(h ^ (h >>> 12), 0x297a2d39);
    return ((h ^ (h >>> 15)) >>> 0) / 4294967296;
}

export class Synthetic {
    /** @param {{slots: number, spans: number, cellNs: number, slotsPerWorker?: number}} o each slot runs a
     * task in most cells of `cellNs` */
    constructor(o) {
        this.slots = o.slots;
        this.cellNs = o.cellNs;
        this.perWorker = o.slotsPerWorker ?? 8;
        // About 10 % of the cells have no task.
        this.cells = Math.ceil(o.spans / o.slots / 0.9);
        this.extent = this.cells * o.cellNs;
        this.phases = 24;
        /** Windows with at most about 4,000 spans. */
        this.moreSpansNs = Math.floor((4000 / o.slots) * o.cellNs);
    }

    /** The phase of a cell, and how far it has gone, 0-1. @param {number} slot @param {number} cell */
    phase(slot, cell) {
        const at = (cell / this.cells) * this.phases;
        const phase = Math.min(this.phases - 1, Math.floor(at));
        return { phase, part: at - phase };
    }

    /** The task of a cell, or null: {op, start, length} in nanoseconds from the begin of the cell.
     * @param {number} slot @param {number} cell */
    task(slot, cell) {
        const { phase, part } = this.phase(slot, cell);
        // A phase ends at a barrier, which each slot reaches at another time.
        if (part > 0.86 + 0.14 * noise(slot, phase)) return null;
        const r = noise(slot * 131 + 7, cell);
        const share = phase % 3 === 1 ? 0.3 : 0.05;
        if (r < share * 0.4) return null;
        const op = (phase * 5 + (r > 0.8 ? 1 : 0) + (r > 0.95 ? 3 : 0)) % OPS.length;
        const length = this.cellNs * (0.35 + 0.6 * noise(slot, cell ^ 0x5bd1));
        const start = (this.cellNs - length) * noise(slot + 17, cell);
        return { op, start: Math.floor(start), length: Math.floor(length) };
    }

    /** What a slot waits for where it runs nothing. @param {number} slot @param {number} cell */
    wait(slot, cell) {
        const { phase, part } = this.phase(slot, cell);
        if (part > 0.86) return noise(slot, phase) > 0.5 ? 6 : 5;
        return [8, 9, 10, 7, 12, 11][(phase + (noise(cell, slot) > 0.7 ? 1 : 0)) % 6];
    }

    /** Adds the times of one cell between two places to `sums`, by number of the name.
     * @param {Float64Array} sums @param {number} slot @param {number} cell @param {number} a @param {number} b
     * @param {boolean} byClass */
    addCell(sums, slot, cell, a, b, byClass) {
        const task = this.task(slot, cell);
        const over = (/** @type {number} */ x, /** @type {number} */ y) => Math.max(0, Math.min(b, y) - Math.max(a, x));
        if (!byClass) {
            if (task) sums[task.op + 1] += over(task.start, task.start + task.length);
            return;
        }
        const [start, end] = task ? [task.start, task.start + task.length] : [0, 0];
        if (task) {
            const input = start + task.length * 0.12;
            const output = end - task.length * 0.06;
            sums[2] += over(start, input);
            sums[1] += over(input, output);
            sums[3] += over(output, end);
        }
        sums[this.wait(slot, cell) + 1] += over(0, start) + over(end, this.cellNs) * (task ? 1 : 1);
    }

    /** TilesResponse. @param {{fromNs: bigint, untilNs: bigint, width: number, firstRow: number, rows: number, color: string}} o */
    tiles(o) {
        const byClass = o.color === "class";
        const names = byClass ? CLASSES : OPS;
        const from = Number(o.fromNs - BEGIN_NS);
        const per = Number(o.untilNs - o.fromNs) / o.width;
        const rows = [];
        const sums = new Float64Array(names.length + 1);
        for (let row = o.firstRow; row < Math.min(this.slots, o.firstRow + o.rows); row++) {
            const line = { worker: `w${Math.floor(row / this.perWorker)}`, slot: row % this.perWorker, lengths: [], colors: [], fill: [] };
            let last = -1;
            for (let px = 0; px < o.width; px++) {
                this.sum(sums, row, from + px * per, from + (px + 1) * per, byClass);
                let best = 0;
                let all = 0;
                for (let i = 1; i < sums.length; i++) {
                    all += sums[i];
                    if (sums[i] > sums[best]) best = i;
                }
                const share = byClass ? sums[best] / Math.max(all, 1) : all / this.looked;
                const fill = best === 0 ? 0 : Math.max(1, Math.min(255, Math.round(share * 255)));
                const code = best * 256 + fill;
                if (code === last) line.lengths[line.lengths.length - 1]++;
                else {
                    line.lengths.push(1);
                    line.colors.push(best);
                    line.fill.push(fill);
                }
                last = code;
            }
            rows.push(line);
        }
        return { rows, names, rows_count: this.slots, from_ns: String(o.fromNs), until_ns: String(o.untilNs), more_spans_ns: String(this.moreSpansNs) };
    }

    /** Sums of a pixel. @param {Float64Array} sums @param {number} slot @param {number} a @param {number} b @param {boolean} byClass */
    sum(sums, slot, a, b, byClass) {
        sums.fill(0);
        this.looked = b - a;
        const end = Math.min(b, this.extent);
        if (a >= end) return;
        const first = Math.floor(a / this.cellNs);
        const last = Math.min(this.cells - 1, Math.ceil(end / this.cellNs) - 1);
        if (last - first < SAMPLES) {
            for (let c = first; c <= last; c++) this.addCell(sums, slot, c, a - c * this.cellNs, end - c * this.cellNs, byClass);
            return;
        }
        for (let i = 0; i < SAMPLES; i++) this.addCell(sums, slot, first + Math.floor(((i + 0.5) * (last - first)) / SAMPLES), 0, this.cellNs, byClass);
        this.looked = SAMPLES * this.cellNs * ((b - a) / (end - a));
    }

    /** @param {{fromNs: bigint, untilNs: bigint, firstRow: number, rows: number, limit: number}} o */
    spans(o) {
        const from = Number(o.fromNs - BEGIN_NS);
        const until = Number(o.untilNs - BEGIN_NS);
        const list = [];
        const first = Math.max(0, Math.floor(from / this.cellNs));
        const last = Math.min(this.cells - 1, Math.floor(until / this.cellNs));
        for (let c = first; c <= last && list.length <= o.limit; c++)
            for (let row = o.firstRow; row < Math.min(this.slots, o.firstRow + o.rows) && list.length <= o.limit; row++) {
                const span = this.span(row, c);
                if (span && span.until > from && span.from < until) list.push(span.json);
            }
        return { spans: list.slice(0, o.limit), more: list.length > o.limit };
    }

    /** @param {number} row @param {number} cell */
    span(row, cell) {
        const task = this.task(row, cell);
        if (!task) return null;
        const from = cell * this.cellNs + task.start;
        const key = `${OPS[task.op].split(".").pop()}-${cell}-${row}`;
        return {
            from, until: from + task.length,
            json: {
                row, op: OPS[task.op], key, attempt: noise(row, cell + 1) > 0.995 ? 2 : 1, outcome: "ok",
                startedNs: String(BEGIN_NS + BigInt(from)), finishedNs: String(BEGIN_NS + BigInt(from + task.length)),
                cause: `${CLASSES[this.wait(row, cell)].replace("_", " ")} for ${Math.round(task.start / 1e3)} µs`,
            },
        };
    }

    /** Steps that could be a critical path: tasks of changing slots. @param {number} count */
    path(count) {
        const steps = [];
        let row = 3;
        for (let i = 0; i < count; i++) {
            const cell = Math.floor((i / count) * this.cells);
            if (noise(i, 5) > 0.6) row = Math.floor(noise(i, 9) * this.slots);
            const span = this.span(row, cell);
            if (span) steps.push({ row, startedNs: span.json.startedNs, finishedNs: String(BigInt(span.json.startedNs) + BigInt(Math.floor(this.extent / count * 0.8))) });
        }
        return steps;
    }
}
