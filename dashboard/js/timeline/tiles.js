/* Tiles: which ones a window needs, and what an answer of Jobs.Tiles says about their pixels. Pure.
 *
 * A tile of level L is TILE_PX pixels of 2^L ns, for TILE_ROWS rows. Tiles of a level lie side by
 * side from the beginning of the job. */

/** @typedef {import("./view.js").Window} Window */
/** @typedef {"op" | "class"} ColorBy */

export const TILE_PX = 512;
export const TILE_ROWS = 64;
/** Levels that are searched for a tile that stands in for one that is missing. */
const COARSER_MAX = 8;
const FINER_MAX = 2;

/**
 * @typedef {object} TileId
 * @property {ColorBy} by
 * @property {number} level
 * @property {number} index from the beginning of the job
 * @property {number} block of rows
 */

/**
 * @typedef {object} Tile
 * @property {TileId} id
 * @property {number} rows number of rows that the answer had
 * @property {Uint16Array} colors for each row TILE_PX numbers of names (Names); 0: nothing
 * @property {Uint8Array} fill 0-255: share of the time
 * @property {Array<{worker: string, slot: number}>} slots of the rows
 * @property {number} rowsCount all rows of the job, when the answer was made
 * @property {number} moreSpansNs a window of this width has few enough spans to draw each; 0: not known
 * @property {number} end of what was known of the job when the answer was made, in nanoseconds
 */

/** Numbers of the names that tiles use, from 1. */
export class Names {
    constructor() {
        /** @type {string[]} */
        this.list = [""];
        /** @type {Map<string, number>} */
        this.numbers = new Map();
    }

    /** @param {string} name @returns {number} */
    of(name) {
        let n = this.numbers.get(name);
        if (n === undefined) {
            // Beyond 65,535 names, all further ones share the last number.
            n = Math.min(this.list.length, 65535);
            if (n === this.list.length) this.list.push(name);
            this.numbers.set(name, n);
        }
        return n;
    }
}

/** The level whose pixels are the most like pixels of `nsPerPx`. @param {number} nsPerPx @returns {number} */
export function levelFor(nsPerPx) {
    return Math.min(52, Math.max(0, Math.round(Math.log2(nsPerPx))));
}

/** @param {number} level @returns {number} nanoseconds of a tile */
export function tileWidth(level) {
    return TILE_PX * 2 ** level;
}

/** @param {TileId} id @returns {string} */
export function keyOf(id) {
    return `${id.by}/${id.level}/${id.index}/${id.block}`;
}

/** @param {string} key @returns {TileId} */
export function idOf(key) {
    const [by, level, index, block] = key.split("/");
    return { by: /** @type {ColorBy} */ (by), level: Number(level), index: Number(index), block: Number(block) };
}

/** Tiles of a level that cover a window. @param {Window} w @param {number} level @param {number} extent
 * @returns {{first: number, last: number}} */
export function indexesOf(w, level, extent) {
    const width = tileWidth(level);
    const most = Math.max(0, Math.ceil(extent / width) - 1);
    const first = Math.min(most, Math.max(0, Math.floor(w.from / width)));
    return { first, last: Math.min(most, Math.max(first, Math.ceil(w.until / width) - 1)) };
}

/**
 * The tiles that a window needs, and those that it is likely to need next.
 * @param {Window} w @param {number} nsPerPx @param {number} extent @param {ColorBy} by
 * @param {number} firstRow @param {number} rows shown @param {number} rowsCount of all
 * @returns {{visible: TileId[], near: TileId[]}} each the most urgent first
 */
export function plan(w, nsPerPx, extent, by, firstRow, rows, rowsCount) {
    const level = levelFor(nsPerPx);
    const blocks = { first: Math.floor(firstRow / TILE_ROWS), last: Math.floor(Math.max(firstRow, firstRow + rows - 1) / TILE_ROWS) };
    const center = (w.from + w.until) / 2;
    /** @type {TileId[]} */
    const visible = [];
    /** @type {TileId[]} */
    const near = [];
    const range = indexesOf(w, level, extent);
    for (let block = blocks.first; block <= blocks.last; block++)
        for (let index = range.first; index <= range.last; index++) visible.push({ by, level, index, block });
    const width = tileWidth(level);
    visible.sort((a, b) => Math.abs((a.index + 0.5) * width - center) - Math.abs((b.index + 0.5) * width - center));

    const all = indexesOf({ from: 0, until: extent }, level, extent);
    for (let block = blocks.first; block <= blocks.last; block++) {
        if (range.last < all.last) near.push({ by, level, index: range.last + 1, block });
        if (range.first > all.first) near.push({ by, level, index: range.first - 1, block });
        // The level above serves a zoom out, and stands in for this level after a jump.
        const above = indexesOf(w, level + 1, extent);
        for (let index = above.first; index <= above.last; index++) near.push({ by, level: level + 1, index, block });
        if (level > 0) {
            const half = (w.until - w.from) / 4;
            const below = indexesOf({ from: center - half, until: center + half }, level - 1, extent);
            for (let index = below.first; index <= below.last; index++) near.push({ by, level: level - 1, index, block });
        }
    }
    for (const block of [blocks.first - 1, blocks.last + 1])
        if (block >= 0 && block * TILE_ROWS < rowsCount)
            for (let index = range.first; index <= range.last; index++) near.push({ by, level, index, block });
    return { visible, near };
}

/**
 * What stands in for a tile that is not here: the nearest coarser tile over the whole of it, then
 * finer tiles over parts of it. They are drawn in this order.
 * @param {TileId} id @param {(key: string) => Tile | undefined} get @returns {Tile[]}
 */
export function standIns(id, get) {
    /** @type {Tile[]} */
    const found = [];
    for (let up = 1; up <= COARSER_MAX; up++) {
        const tile = get(keyOf({ ...id, level: id.level + up, index: Math.floor(id.index / 2 ** up) }));
        if (!tile) continue;
        found.push(tile);
        break;
    }
    for (let down = Math.min(FINER_MAX, id.level); down >= 1; down--)
        for (let i = 0; i < 2 ** down; i++) {
            const tile = get(keyOf({ ...id, level: id.level - down, index: id.index * 2 ** down + i }));
            if (tile) found.push(tile);
        }
    return found;
}

/**
 * @typedef {object} TileAnswer TilesResponse; times and rows_count may also be decimal strings
 * @property {Array<{worker?: string, slot?: number, lengths?: number[], colors?: number[], fill?: number[]}>} [rows]
 * @property {string[]} [names]
 * @property {number | bigint | string} [rows_count]
 * @property {number | bigint | string} [from_ns]
 * @property {number | bigint | string} [until_ns]
 * @property {number | bigint | string} [more_spans_ns]
 */

/**
 * The pixels of a tile. The answer may cover another part of the time than the tile, if the service
 * cut the request at the end of the job: each pixel of the tile then takes the pixel of the answer at
 * its middle.
 * @param {TileId} id @param {TileAnswer} answer @param {Names} names
 * @param {bigint} beginNs of the job @param {number} end of the job as far as known
 * @returns {Tile}
 */
export function decode(id, answer, names, beginNs, end) {
    const numbers = [0, ...(answer.names ?? []).map((n) => names.of(n))];
    const rows = (answer.rows ?? []).slice(0, TILE_ROWS);
    const colors = new Uint16Array(rows.length * TILE_PX);
    const fill = new Uint8Array(rows.length * TILE_PX);
    const width = tileWidth(id.level);
    const wantedFrom = id.index * width;
    const from = answer.from_ns ? Number(BigInt(answer.from_ns) - beginNs) : wantedFrom;
    const until = answer.until_ns ? Number(BigInt(answer.until_ns) - beginNs) : wantedFrom + width;
    const isWhole = Math.abs(from - wantedFrom) < 1 && Math.abs(until - wantedFrom - width) < 1;
    rows.forEach((row, r) => {
        const lengths = row.lengths ?? [];
        let px = 0;
        for (const n of lengths) px += n;
        const toPx = isWhole && px === TILE_PX ? 1 : (width / TILE_PX) * (px / (until - from));
        const shift = isWhole && px === TILE_PX ? 0 : (wantedFrom - from) * (px / (until - from));
        let begin = 0;
        for (let i = 0; i < lengths.length; i++) {
            const end_ = begin + lengths[i];
            // Pixel p of the tile has its middle at shift + (p + 1/2) * toPx pixels of the answer.
            const a = toPx === 1 && shift === 0 ? begin : Math.max(0, Math.ceil((begin - shift) / toPx - 0.5));
            const b = toPx === 1 && shift === 0 ? end_ : Math.min(TILE_PX, Math.ceil((end_ - shift) / toPx - 0.5));
            const color = numbers[row.colors?.[i] ?? 0] ?? 0;
            if (color && a < b) {
                colors.fill(color, r * TILE_PX + a, r * TILE_PX + b);
                fill.fill(row.fill?.[i] ?? 255, r * TILE_PX + a, r * TILE_PX + b);
            }
            begin = end_;
        }
    });
    return {
        id, rows: rows.length, colors, fill, end,
        slots: rows.map((row) => ({ worker: row.worker ?? "", slot: row.slot ?? 0 })),
        rowsCount: Number(answer.rows_count ?? 0),
        moreSpansNs: Number(answer.more_spans_ns ?? 0),
    };
}

/**
 * How many spans a window has, in units of what can be drawn: at most 1 means that each span is drawn.
 * The service says the density for each tile.
 * @param {Window} w @param {number} level @param {number} extent
 * @param {(index: number) => Tile | undefined} find the tile, or one that stands in for it
 * @returns {number | undefined} undefined: no tile is here
 */
export function crowd(w, level, extent, find) {
    const width = tileWidth(level);
    const range = indexesOf(w, level, extent);
    let sum = 0;
    let known = 0;
    for (let index = range.first; index <= range.last; index++) {
        const more = find(index)?.moreSpansNs ?? 0;
        if (more <= 0) continue;
        const overlap = Math.min(w.until, (index + 1) * width) - Math.max(w.from, index * width);
        sum += overlap / more;
        known += overlap;
    }
    // What is not known is taken to be like the rest.
    return known > 0 ? (sum * (w.until - w.from)) / known : undefined;
}

/** @param {Tile} tile @returns {number} bytes that the tile keeps */
export function bytesOf(tile) {
    return tile.colors.byteLength + tile.fill.byteLength + 64 * tile.rows + 200;
}

/** May a newer answer say more? @param {Tile} tile @param {number} rowsCount now @param {number} lag
 * nanoseconds before the end that were perhaps not complete @returns {boolean} */
export function isOpen(tile, rowsCount, lag) {
    const until = (tile.id.index + 1) * tileWidth(tile.id.level);
    return until > tile.end - lag || tile.rows < Math.min(TILE_ROWS, rowsCount - tile.id.block * TILE_ROWS);
}
