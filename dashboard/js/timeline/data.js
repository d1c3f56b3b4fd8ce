/* What the timeline knows of the job: tiles and spans from the source, slots of the rows, colours of
 * names. No DOM. */
import { Loader } from "./cache.js";
import { OpPalette, classColor, rgb } from "./colors.js";
import { SPANS_MAX, chunkBytes, chunkExponent, chunkFrom, chunkId, chunksOf } from "./spans.js";
import { Shades, drawRow } from "./strip.js";
import { Names, TILE_PX, TILE_ROWS, bytesOf, decode, idOf, isOpen, keyOf, levelFor, crowd, plan, standIns, tileWidth, indexesOf } from "./tiles.js";
import { rowsShown } from "./view.js";

/** @typedef {import("./tiles.js").Tile} Tile */
/** @typedef {import("./tiles.js").ColorBy} ColorBy */
/** @typedef {import("./view.js").Window} Window */
/** @typedef {import("./view.js").Scale} Scale */
/** @typedef {import("./view.js").Rows} Rows */
/** @typedef {import("./spans.js").Span} Span */
/** @typedef {import("./spans.js").Chunk} Chunk */
/** @typedef {import("./theme.js").Look} Look */
/** @typedef {number | bigint | string} Ns */

/**
 * @typedef {object} Source where tiles and spans come from. The numbers may change while the job
 *   runs; the page then calls `refresh()`.
 * @property {number} rowsCount slots in all
 * @property {Ns} beginNs begin of the job, in nanoseconds since 1970
 * @property {Ns} endNs its end, or now
 * @property {(first: number, count: number) => Slots | Promise<Slots>} [workersOfRows] without it,
 *   the slots of rows are known as soon as a tile of these rows is here
 * @property {(o: {fromNs: bigint, untilNs: bigint, width: number, firstRow: number, rows: number,
 *   color: ColorBy, signal: AbortSignal}) => Promise<import("./tiles.js").TileAnswer>} tiles
 * @property {(o: {fromNs: bigint, untilNs: bigint, firstRow: number, rows: number, limit: number,
 *   signal?: AbortSignal}) => Promise<import("./spans.js").SpansAnswer>} spans
 */
/** @typedef {Array<{worker: string, slot: number}>} Slots */

const TILE_BYTES_MAX = 48 << 20;
const CHUNK_BYTES_MAX = 32 << 20;
/** The last part of a running job that an answer may lack. */
const LAG_NS = 3e9;

export class Data {
    /** @param {Source} source @param {() => void} onChange */
    constructor(source, onChange) {
        this.source = source;
        this.onChange = onChange;
        this.beginNs = BigInt(source.beginNs);
        this.extent = 0;
        this.rowsCount = 0;
        /** Spans are drawn, not tiles. */
        this.isNear = false;
        /** Width of the chunks of spans, as an exponent of 2. */
        this.exponent = 8;
        this.ops = new OpPalette();
        /** @type {Record<ColorBy, Names>} */
        this.names = { op: new Names(), class: new Names() };
        /** @type {Record<ColorBy, Shades> | null} */
        this.shades = null;
        /** @type {Look | null} */
        this.look = null;
        /** @type {Map<number, {worker: string, slot: number}>} */
        this.slots = new Map();
        /** @type {Loader<Tile>} */
        this.tiles = new Loader({ load: (key, signal) => this.loadTile(key, signal), bytesOf, bytesMax: TILE_BYTES_MAX, onChange });
        /** @type {Loader<Chunk>} */
        this.chunks = new Loader({
            load: (key, signal) => this.loadChunk(key, signal), bytesOf: chunkBytes, bytesMax: CHUNK_BYTES_MAX, active: 2, onChange,
        });
        /** Blocks of rows whose slots were asked for. @type {Set<number>} */
        this.asked = new Set();
        this.end = 0;
        this.readSource();
    }

    /** @returns {boolean} something has changed */
    readSource() {
        const extent = Math.max(0, Number(BigInt(this.source.endNs) - this.beginNs));
        const rowsCount = Number(this.source.rowsCount);
        const changed = extent !== this.extent || rowsCount !== this.rowsCount;
        this.extent = this.end = extent;
        this.rowsCount = rowsCount;
        return changed;
    }

    /** The source may say more now. What is shown is loaded again if it was not complete. */
    refresh() {
        const before = this.rowsCount;
        this.readSource();
        // Rows are sorted by worker, so a new worker may move all of them.
        const isMoved = before !== this.rowsCount;
        this.tiles.expire((tile) => isMoved || isOpen(tile, this.rowsCount, LAG_NS));
        this.chunks.expire((c) => isMoved || (c.index + 1) * 2 ** c.exponent > c.end - LAG_NS);
        this.asked.clear();
    }

    /** @param {Look} look */
    setLook(look) {
        this.look = look;
        this.shades = { op: new Shades(look.track), class: new Shades(look.track) };
    }

    /** @param {string} name @param {ColorBy} by @returns {string} */
    colorOf(name, by) {
        const theme = this.look?.theme ?? "light";
        return by === "op" ? this.ops.color(name, theme) : classColor(name, theme);
    }

    /** @param {string} key @param {AbortSignal} signal */
    async loadTile(key, signal) {
        const id = idOf(key);
        const width = tileWidth(id.level);
        const firstRow = id.block * TILE_ROWS;
        const fromNs = this.beginNs + BigInt(id.index * width);
        const end = this.end;
        const answer = await this.source.tiles({
            fromNs, untilNs: fromNs + BigInt(width), width: TILE_PX, firstRow, rows: TILE_ROWS, color: id.by, signal,
        });
        const tile = decode(id, answer, this.names[id.by], this.beginNs, end);
        tile.slots.forEach((slot, i) => this.slots.set(firstRow + i, slot));
        return tile;
    }

    /** @param {string} key @param {AbortSignal} signal */
    async loadChunk(key, signal) {
        const { exponent, index, block } = chunkId(key);
        const fromNs = this.beginNs + BigInt(index * 2 ** exponent);
        const end = this.end;
        const answer = await this.source.spans({
            fromNs, untilNs: fromNs + BigInt(2 ** exponent), firstRow: block * TILE_ROWS, rows: TILE_ROWS, limit: SPANS_MAX, signal,
        });
        return chunkFrom(key, answer, this.beginNs, end);
    }

    /** Chooses between tiles and spans. Both choices are kept for a while when the density changes,
     * so that panning does not switch to and fro.
     * @param {Window} w @param {number} nsPerPx @param {ColorBy} by @param {{first: number, count: number}} shown */
    choose(w, nsPerPx, by, shown) {
        const level = levelFor(nsPerPx);
        const block = Math.floor(shown.first / TILE_ROWS);
        const get = (/** @type {string} */ key) => this.tiles.get(key);
        const density = crowd(w, level, this.extent, (index) => {
            const id = { by, level, index, block };
            return get(keyOf(id)) ?? standIns(id, get)[0];
        });
        const width = w.until - w.from;
        if (density === undefined) {
            // A jump to a place of which nothing is known: a window of the same width stays as it is.
            this.isNear = this.isNear && width <= 6 * 2 ** this.exponent;
            return;
        }
        this.isNear = density <= (this.isNear ? 1.5 : 1);
        if (!this.isNear) return;
        const more = width / Math.max(density, 1e-9);
        const isHere = chunksOf(w, this.exponent, this.extent, shown.first, shown.count).every((key) => this.chunks.get(key));
        const chunk = 2 ** this.exponent;
        if (width > 6 * chunk || (!isHere && chunk > 4 * more)) this.exponent = chunkExponent(more);
    }

    /** Loads what a window needs, then what is near. @param {Window} w @param {number} nsPerPx
     * @param {ColorBy} by @param {Rows} rows */
    want(w, nsPerPx, by, rows) {
        const shown = rowsShown(rows);
        if (shown.count === 0 || this.extent === 0) return;
        this.askSlots(shown.first, shown.count);
        const { visible, near } = plan(w, nsPerPx, this.extent, by, shown.first, shown.count, this.rowsCount);
        this.tiles.want(visible.concat(near).map(keyOf));
        this.choose(w, nsPerPx, by, shown);
        this.chunks.want(this.isNear ? chunksOf(w, this.exponent, this.extent, shown.first, shown.count) : []);
    }

    /** @param {number} first @param {number} count */
    askSlots(first, count) {
        const ask = this.source.workersOfRows;
        if (!ask) return;
        for (let block = Math.floor(first / TILE_ROWS); block * TILE_ROWS < first + count; block++) {
            if (this.asked.has(block)) continue;
            this.asked.add(block);
            const from = block * TILE_ROWS;
            const n = Math.min(TILE_ROWS, this.rowsCount - from);
            Promise.resolve(ask.call(this.source, from, n)).then(
                (slots) => {
                    slots.forEach((slot, i) => this.slots.set(from + i, slot));
                    this.onChange();
                },
                () => this.asked.delete(block), // the tiles say it too
            );
        }
    }

    /** The chunks of a window that are here, in the order of time. @param {Window} w @param {Rows} rows
     * @returns {Chunk[]} */
    chunksIn(w, rows) {
        if (!this.isNear) return [];
        const shown = rowsShown(rows);
        const keys = chunksOf(w, this.exponent, this.extent, shown.first, shown.count);
        /** @type {Chunk[]} */
        const found = [];
        for (const key of keys) {
            const chunk = this.chunks.get(key);
            if (chunk && !chunk.isCut) found.push(chunk);
        }
        return found.sort((a, b) => a.index - b.index || a.block - b.block);
    }

    /** Draws the strip of the rows that are shown. @param {Uint32Array} out `scale.width` pixels a row
     * @param {Window} w @param {Scale} scale @param {Rows} rows @param {ColorBy} by
     * @param {ReadonlyArray<Chunk>} covered spans are drawn later over these chunks
     * @returns {boolean} nothing is missing */
    drawStrip(out, w, scale, rows, by, covered) {
        const shades = this.shades?.[by];
        if (!shades) return false;
        // The name of idle pixels, "", takes no colour from the operators.
        shades.add(this.names[by].list.map((name) => (name ? rgb(this.colorOf(name, by)) : [0, 0, 0])));
        out.fill(shades.empty);
        const shown = rowsShown(rows);
        const level = levelFor(scale.nsPerPx);
        const range = indexesOf(w, level, this.extent);
        const get = (/** @type {string} */ key) => this.tiles.get(key);
        let isWhole = true;
        for (let block = Math.floor(shown.first / TILE_ROWS); block * TILE_ROWS < shown.first + shown.count; block++)
            for (let index = range.first; index <= range.last; index++) {
                const id = { by, level, index, block };
                const exact = get(keyOf(id));
                if (!exact) isWhole = false;
                const list = exact ? [exact] : standIns(id, get);
                const begin = Math.max(0, Math.round((index * tileWidth(level)) / scale.nsPerPx - scale.first));
                const end = Math.min(scale.width, Math.round(((index + 1) * tileWidth(level)) / scale.nsPerPx - scale.first));
                const first = Math.max(shown.first, block * TILE_ROWS);
                const last = Math.min(shown.first + shown.count, (block + 1) * TILE_ROWS);
                for (const tile of list)
                    for (let row = first; row < last; row++)
                        drawRow(out, (row - shown.first) * scale.width, tile, row - block * TILE_ROWS, scale, begin, end, shades.table);
            }
        for (const chunk of covered) this.clearUnder(out, chunk, scale, rows, shades.empty);
        return isWhole;
    }

    /** @param {Uint32Array} out @param {Chunk} chunk @param {Scale} scale @param {Rows} rows @param {number} empty */
    clearUnder(out, chunk, scale, rows, empty) {
        const shown = rowsShown(rows);
        const width = 2 ** chunk.exponent;
        const a = Math.max(0, Math.round((chunk.index * width) / scale.nsPerPx - scale.first));
        const b = Math.min(scale.width, Math.round(((chunk.index + 1) * width) / scale.nsPerPx - scale.first));
        const first = Math.max(shown.first, chunk.block * TILE_ROWS);
        const last = Math.min(shown.first + shown.count, (chunk.block + 1) * TILE_ROWS);
        if (a < b) for (let row = first; row < last; row++) out.fill(empty, (row - shown.first) * scale.width + a, (row - shown.first) * scale.width + b);
    }

    /** What the tiles say of a pixel. @param {number} time @param {number} row @param {number} nsPerPx
     * @param {ColorBy} by @returns {{name: string, share: number, from: number, until: number} | null} */
    pixelAt(time, row, nsPerPx, by) {
        if (time < 0 || time >= this.extent) return null;
        const level = levelFor(nsPerPx);
        const id = { by, level, index: Math.floor(time / tileWidth(level)), block: Math.floor(row / TILE_ROWS) };
        const exact = this.tiles.get(keyOf(id));
        const list = exact ? [exact] : standIns(id, (key) => this.tiles.get(key)).reverse();
        for (const tile of list) {
            const px = Math.floor((time - tile.id.index * tileWidth(tile.id.level)) / 2 ** tile.id.level);
            const r = row - tile.id.block * TILE_ROWS;
            if (px < 0 || px >= TILE_PX || r >= tile.rows) continue;
            const at = r * TILE_PX + px;
            const from = tile.id.index * tileWidth(tile.id.level) + px * 2 ** tile.id.level;
            const name = this.names[by].list[tile.colors[at]] ?? "";
            return { name, share: tile.fill[at] / 255, from, until: from + 2 ** tile.id.level };
        }
        return null;
    }

    /** @param {Window} w @param {number} row @returns {import("./spans.js").SpanRow[]} spans of a row that are here */
    rowSpans(w, row) {
        const keys = chunksOf(w, this.exponent, this.extent, row, 1);
        return keys.map((key) => this.chunks.get(key)?.rows.get(row)).filter((r) => r !== undefined);
    }

    close() {
        this.tiles.close();
        this.chunks.close();
    }
}
