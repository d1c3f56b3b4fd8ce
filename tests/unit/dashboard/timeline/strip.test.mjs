import assert from "node:assert/strict";
import test from "node:test";
import { Shades, drawRow, pixel } from "../../../../dashboard/js/timeline/strip.js";
import { TILE_PX } from "../../../../dashboard/js/timeline/tiles.js";

const GROUND = [255, 255, 255];
const COLORS = [GROUND, [255, 0, 0], [0, 0, 255]];

/** A tile of level 0 with one row: `at(px)` gives [color, fill]. */
function tileOf(at, level = 0, index = 0) {
    const tile = { id: { by: "op", level, index, block: 0 }, rows: 1, colors: new Uint16Array(TILE_PX), fill: new Uint8Array(TILE_PX) };
    for (let px = 0; px < TILE_PX; px++) [tile.colors[px], tile.fill[px]] = at(px);
    return tile;
}

function drawn(tile, scale) {
    const shades = new Shades(GROUND);
    shades.add(COLORS);
    const out = new Uint32Array(scale.width).fill(7);
    drawRow(out, 0, tile, 0, scale, 0, scale.width, shades.table);
    return { out, shades };
}

test("a full pixel has its colour, and a share of it is nearer to the background", () => {
    const shades = new Shades(GROUND);
    shades.add(COLORS);
    assert.equal(shades.table[32 + 31], pixel(255, 0, 0));
    const faint = shades.table[32] >>> 0;
    assert.notEqual(faint, shades.empty);
    assert.notEqual(faint, pixel(255, 0, 0));
    assert.equal(shades.table[5], shades.empty);
});

test("names beyond the table make it larger", () => {
    const shades = new Shades(GROUND);
    shades.add([GROUND, ...Array.from({ length: 300 }, () => [1, 2, 3])]);
    assert.equal(shades.table[300 * 32 + 31], pixel(1, 2, 3));
    assert.equal(shades.table[7 * 32 + 31], pixel(1, 2, 3));
});

test("at the scale of the tile, each column is its pixel", () => {
    const { out } = drawn(tileOf((px) => (px % 2 ? [1, 255] : [2, 255])), { nsPerPx: 1, first: 100, width: 50 });
    for (let c = 0; c < 50; c++) assert.equal(out[c], (100 + c) % 2 ? pixel(255, 0, 0) : pixel(0, 0, 255));
});

test("columns outside of the tile are left alone", () => {
    const { out } = drawn(tileOf(() => [1, 255], 0, 1), { nsPerPx: 1, first: 500, width: 600 });
    assert.equal(out[11], 7);
    assert.equal(out[12], pixel(255, 0, 0));
    assert.equal(out[523], pixel(255, 0, 0));
    assert.equal(out[524], 7);
});

test("tiles side by side leave no column out and share none, at each scale", () => {
    for (const nsPerPx of [0.3, 0.77, 1, 1.31, 1.9, 7.7])
        for (const first of [0, 13, 100]) {
            const width = Math.floor((3 * TILE_PX) / nsPerPx) - first - 2;
            const count = new Uint8Array(Math.max(0, width));
            for (const index of [0, 1, 2]) {
                const { out } = drawn(tileOf(() => [1, 255], 0, index), { nsPerPx, first, width });
                out.forEach((v, c) => (count[c] += v === 7 ? 0 : 1));
            }
            assert.ok(count.every((n) => n === 1), `${nsPerPx} ${first}: ${count.findIndex((n) => n !== 1)}`);
        }
});

test("a column over several pixels has the colour with the most time, and the share of all", () => {
    const runs = [[1, 255], [2, 255], [2, 255], [0, 0]];
    const { out, shades } = drawn(tileOf((px) => runs[px % 4]), { nsPerPx: 4, first: 0, width: 128 });
    assert.equal(out[3], shades.table[2 * 32 + (191 >> 3)]);
});

test("a name with many short parts wins over one long part", () => {
    const runs = [[2, 90], [1, 200], [2, 90], [2, 90]];
    const { out, shades } = drawn(tileOf((px) => runs[px % 4]), { nsPerPx: 4, first: 0, width: 128 });
    assert.equal(out[3], shades.table[2 * 32 + (Math.floor(470 / 4) >> 3)]);
});

test("a short task in an idle column is still seen", () => {
    const { out, shades } = drawn(tileOf((px) => (px === 8 ? [1, 3] : [0, 0])), { nsPerPx: 4, first: 0, width: 128 });
    assert.notEqual(out[2], shades.empty);
    assert.equal(out[1], shades.empty);
});

test("a row that the tile lacks is left alone", () => {
    const out = new Uint32Array(8).fill(7);
    drawRow(out, 0, tileOf(() => [1, 255]), 1, { nsPerPx: 1, first: 0, width: 8 }, 0, 8, new Uint32Array(64));
    assert.ok(out.every((v) => v === 7));
});
