import assert from "node:assert/strict";
import test from "node:test";
import * as tiles from "../../../../dashboard/js/timeline/tiles.js";

const BEGIN = 1_700_000_000_000_000_000n;
const { TILE_PX } = tiles;
const id = (level, index, block = 0) => ({ by: "op", level, index, block });

/** An answer with one row whose runs are [length, color, fill]. */
function answer(runs, more = {}) {
    return {
        rows: [{ worker: "w1", slot: 3, lengths: runs.map((r) => r[0]), colors: runs.map((r) => r[1]), fill: runs.map((r) => r[2]) }],
        names: ["add", "mul"], rows_count: 64, ...more,
    };
}

test("a tile has a key that tells which it is", () => {
    const one = { by: "class", level: 17, index: 123456, block: 3 };
    assert.deepEqual(tiles.idOf(tiles.keyOf(one)), one);
});

test("pixels of a level are at most half as large again or as small as those of the screen", () => {
    for (let ns = 1; ns < 1e13; ns *= 1.37) {
        const ratio = 2 ** tiles.levelFor(ns) / ns;
        assert.ok(ratio > 0.7 && ratio < 1.42, `${ns}`);
    }
    assert.equal(tiles.levelFor(0.01), 0);
});

test("the tiles of a window cover it and are not beyond the job", () => {
    const width = tiles.tileWidth(10);
    assert.deepEqual(tiles.indexesOf({ from: 2.5 * width, until: 4.5 * width }, 10, 100 * width), { first: 2, last: 4 });
    assert.deepEqual(tiles.indexesOf({ from: -width, until: 9 * width }, 10, 1.5 * width), { first: 0, last: 1 });
    assert.deepEqual(tiles.indexesOf({ from: 2 * width, until: 3 * width }, 10, 3 * width), { first: 2, last: 2 });
});

test("the middle is wanted first, then neighbours and the levels above and below", () => {
    const width = tiles.tileWidth(10);
    const w = { from: 20 * width, until: 25 * width };
    const { visible, near } = tiles.plan(w, 1024, 1000 * width, "op", 0, 64, 64);
    assert.deepEqual(visible.map((t) => t.index), [22, 21, 23, 20, 24]);
    assert.deepEqual(near.slice(0, 2).map((t) => [t.level, t.index]), [[10, 25], [10, 19]]);
    assert.deepEqual(new Set(near.map((t) => t.level)), new Set([9, 10, 11]));
    assert.ok(near.every((t) => t.block === 0));
});

test("rows of several blocks want the tiles of each, and blocks beside them later", () => {
    const width = tiles.tileWidth(10);
    const { visible, near } = tiles.plan({ from: 0, until: width }, 1024, width, "op", 60, 80, 1000);
    assert.deepEqual(visible.map((t) => t.block), [0, 1, 2]);
    assert.ok(near.some((t) => t.block === 3) && near.every((t) => t.block >= 0));
});

test("runs become pixels, with the numbers of the names", () => {
    const names = new tiles.Names();
    names.of("other");
    const tile = tiles.decode(id(4, 2), answer([[100, 2, 255], [12, 0, 0], [400, 1, 64]]), names, BEGIN, 1e9);
    assert.equal(names.list[tile.colors[0]], "mul");
    assert.equal(tile.colors[100], 0);
    assert.equal(names.list[tile.colors[112]], "add");
    assert.equal(tile.fill[511], 64);
    assert.deepEqual(tile.slots, [{ worker: "w1", slot: 3 }]);
    assert.equal(tile.rowsCount, 64);
});

test("an answer that was cut at the end of the job lies where its times say", () => {
    const level = 20;
    const width = tiles.tileWidth(level);
    // The job ends in the middle of the tile: all pixels of the answer lie in its first half.
    const cut = answer([[256, 1, 255], [256, 2, 255]], { from_ns: String(BEGIN), until_ns: String(BEGIN + BigInt(width / 2)) });
    const names = new tiles.Names();
    const tile = tiles.decode(id(level, 0), cut, names, BEGIN, width / 2);
    const at = (px) => names.list[tile.colors[px]];
    assert.deepEqual([at(0), at(127), at(128), at(255), at(256), at(511)], ["add", "add", "mul", "mul", "", ""]);
});

test("an answer without rows, or with fewer pixels, breaks nothing", () => {
    const names = new tiles.Names();
    assert.equal(tiles.decode(id(4, 0), {}, names, BEGIN, 0).rows, 0);
    const half = tiles.decode(id(4, 0), answer([[TILE_PX / 2, 1, 255]]), names, BEGIN, 0);
    assert.ok(half.colors.every((c) => c === 1));
    const odd = tiles.decode(id(4, 0), answer([[TILE_PX, 9, 255]]), names, BEGIN, 0);
    assert.ok(odd.colors.every((c) => c === 0));
});

test("a coarser tile stands in for a missing one, with finer ones over it", () => {
    const have = new Map([id(12, 5), id(9, 42), id(8, 87), id(12, 4)].map((t) => [tiles.keyOf(t), { id: t }]));
    const found = tiles.standIns(id(10, 21), (key) => have.get(key));
    assert.deepEqual(found.map((t) => [t.id.level, t.id.index]), [[12, 5], [8, 87], [9, 42]]);
});

test("a tile over the end of a running job is open, one before it is not", () => {
    const width = tiles.tileWidth(20);
    const early = { id: id(20, 0), rows: 64, end: 2 * width };
    assert.equal(tiles.isOpen(early, 64, width / 10), false);
    assert.equal(tiles.isOpen({ ...early, id: id(20, 1) }, 64, width / 10), true);
    assert.equal(tiles.isOpen({ ...early, rows: 10 }, 64, 0), true);
    assert.equal(tiles.isOpen({ ...early, rows: 10 }, 10, 0), false);
});

test("the number of spans in a window is the sum over its tiles", () => {
    const width = tiles.tileWidth(10);
    const w = { from: 0, until: 2 * width };
    const find = (index) => ({ moreSpansNs: index === 0 ? width : 4 * width });
    assert.equal(tiles.crowd(w, 10, 100 * width, find), 1.25);
    assert.equal(tiles.crowd(w, 10, 100 * width, (index) => (index === 0 ? find(0) : undefined)), 2);
    assert.equal(tiles.crowd(w, 10, 100 * width, () => undefined), undefined);
});
