import assert from "node:assert/strict";
import test from "node:test";
import "./client.mjs";

const { element } = await import("../../../dashboard/js/format.js");
const { parseNpy, textOf } = await import("../../../dashboard/js/preview.js");

/** A .npy file. */
function npy(descr, values) {
    const head = `{'descr': '<${descr}', 'fortran_order': False, 'shape': (${values.length},), }\n`;
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    const out = new Uint8Array(10 + head.length + bytes.length);
    out.set([0x93, ...Buffer.from("NUMPY"), 1, 0, head.length & 255, head.length >> 8]);
    out.set(Buffer.from(head), 10);
    out.set(bytes, 10 + head.length);
    return out;
}

test("integers of arrays keep all digits", () => {
    assert.equal(element("i8", 9223372036854775807n), "9223372036854775807");
    assert.equal(element("u4", 123456), "123456");
    assert.equal(element("f8", 123456), "1.23e+5");
    assert.equal(element("b1", 1), "1");
});

test("the smallest and the largest integer keep all digits", () => {
    const wide = parseNpy(npy("i8", BigInt64Array.of(9223372036854775806n, -9007199254740993n, 9223372036854775807n)));
    assert.match(textOf(wide), /^i64\[3\], 3 elements: minimum -9007199254740993, .* maximum 9223372036854775807$/);
    assert.match(textOf(parseNpy(npy("i4", Int32Array.of(1234567, 7)))), /minimum 7, mean 6.17e\+5, maximum 1234567$/);
});

test("floats are rounded, and an empty array has no minimum", () => {
    assert.match(textOf(parseNpy(npy("f8", Float64Array.of(NaN, 1 / 3, 2)))), /minimum 0.3333, mean 1.167, maximum 2$/);
    assert.match(textOf(parseNpy(npy("i8", new BigInt64Array(0)))), /minimum –, mean –, maximum –$/);
});
