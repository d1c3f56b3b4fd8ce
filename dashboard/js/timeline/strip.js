/* The strip: one line of pixels for each row on the screen, made of tiles. Pure: it writes into an
 * array of 32-bit pixels. The page then stretches each line to the height of its row. */
import { TILE_PX, tileWidth } from "./tiles.js";

/** @typedef {import("./tiles.js").Tile} Tile */
/** @typedef {import("./view.js").Scale} Scale */

/** Steps of `fill` that have a colour of their own. */
const SHADES = 32;
/** Opacity of the smallest share, so that a single short task can still be seen. */
const FAINTEST = 0.22;

const isLittleEndian = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

/** @param {number} r @param {number} g @param {number} b @returns {number} opaque pixel of ImageData */
export function pixel(r, g, b) {
    return isLittleEndian ? ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0 : ((r << 24) | (g << 16) | (b << 8) | 255) >>> 0;
}

/** Pixels for each name and share: color * 32 + (fill >> 3). */
export class Shades {
    /** @param {readonly number[]} ground 0-255, where a slot does nothing */
    constructor(ground) {
        this.ground = ground;
        this.empty = pixel(ground[0], ground[1], ground[2]);
        this.table = new Uint32Array(16 * SHADES).fill(this.empty);
        this.count = 1;
    }

    /** Adds the names from `count` on. @param {ReadonlyArray<readonly number[]>} colors by number of
     * the name; the first is not used */
    add(colors) {
        if (colors.length * SHADES > this.table.length) {
            const more = new Uint32Array(colors.length * 2 * SHADES).fill(this.empty);
            more.set(this.table);
            this.table = more;
        }
        for (; this.count < colors.length; this.count++)
            for (let s = 0; s < SHADES; s++) {
                const a = FAINTEST + (1 - FAINTEST) * (s / (SHADES - 1));
                const [r, g, b] = colors[this.count].map((c, i) => Math.round(this.ground[i] + (c - this.ground[i]) * a));
                this.table[this.count * SHADES + s] = pixel(r, g, b);
            }
    }
}

/**
 * Draws a row of a tile into the columns that it covers.
 * @param {Uint32Array} out @param {number} line index in `out` of the first column of the row
 * @param {Tile} tile @param {number} row of the tile @param {Scale} scale
 * @param {number} from first column that may be written @param {number} until @param {Uint32Array} table of Shades
 */
export function drawRow(out, line, tile, row, scale, from, until, table) {
    if (row >= tile.rows) return;
    const begin = tile.id.index * tileWidth(tile.id.level);
    const perColumn = scale.nsPerPx / 2 ** tile.id.level;
    const offset = scale.first * perColumn - begin / 2 ** tile.id.level;
    // Column c covers the pixels from offset + c * perColumn on; it belongs to the tile with its middle.
    const first = Math.max(from, Math.ceil(-offset / perColumn - 0.5));
    const end = Math.min(until, Math.ceil((TILE_PX - offset) / perColumn - 0.5));
    const { colors, fill } = tile;
    const base = row * TILE_PX;
    if (perColumn <= 1) {
        for (let c = first; c < end; c++) {
            const p = base + Math.min(TILE_PX - 1, Math.floor(offset + (c + 0.5) * perColumn));
            out[line + c] = table[colors[p] * SHADES + (fill[p] >> 3)];
        }
        return;
    }
    for (let c = first; c < end; c++) {
        const a = Math.max(0, offset + c * perColumn);
        const b = Math.min(TILE_PX, offset + (c + 1) * perColumn);
        out[line + c] = table[mixed(colors, fill, base, a, b)];
    }
}

/** Several pixels as one: the name with the most time among them, and the share of all names.
 * @param {Uint16Array} colors @param {Uint8Array} fill @param {number} base of the row
 * @param {number} a @param {number} b place and end, in pixels of the tile @returns {number} index in a table of Shades */
function mixed(colors, fill, base, a, b) {
    let color = 0;
    let most = 0;
    let all = 0;
    for (let p = Math.floor(a); p < b; p++) {
        const name = colors[base + p];
        if (name === 0) continue;
        all += part(p, a, b) * fill[base + p];
        if (name === color) continue;
        // There are few pixels, so the time of each name is simply added up.
        let time = 0;
        for (let q = p; q < b; q++) if (colors[base + q] === name) time += part(q, a, b) * fill[base + q];
        if (time > most) {
            most = time;
            color = name;
        }
    }
    return color * SHADES + (Math.min(255, all / (b - a)) >> 3);
}

/** Which part of a pixel lies between two places. @param {number} p @param {number} a @param {number} b */
function part(p, a, b) {
    return (p + 1 < b ? p + 1 : b) - (p > a ? p : a);
}
