import assert from "node:assert/strict";
import fs from "node:fs";
import test from "node:test";
import * as colors from "../../../../dashboard/js/timeline/colors.js";

const GROUNDS = { light: ["#ffffff", "#f5f6f7"], dark: ["#0f1318", "#14181c", "#1c2227"] };
// Matrices of Machado, Oliveira and Fernandes (2009) for dichromats, on linear RGB.
const SIGHTS = {
    normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
const OP_DISTANCE = { normal: 0.115, protanopia: 0.09, deuteranopia: 0.09, tritanopia: 0.08 };
const CLASS_DISTANCE = { normal: 0.045, protanopia: 0.038, deuteranopia: 0.038, tritanopia: 0.033 };

function oklab(hex, sight) {
    const linear = colors.rgb(hex).map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    const [r, g, b] = SIGHTS[sight].map((m) => Math.min(1, Math.max(0, m[0] * linear[0] + m[1] * linear[1] + m[2] * linear[2])));
    const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
    const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
    const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
    return [0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s, 1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
        0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s];
}

/** The least distance of two of the colours: [distance, name, name]. */
function nearest(list, theme, sight) {
    let least = [Infinity, "", ""];
    list.forEach(([a, x], i) => list.slice(0, i).forEach(([b, y]) => {
        const [p, q] = [oklab(x[theme], sight), oklab(y[theme], sight)];
        const d = Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
        if (d < least[0]) least = [d, a, b];
    }));
    return least;
}

const OPS = colors.OP_COLORS.map((c, i) => [String(i), c]);
const CLASSES = Object.entries(colors.CLASS_COLORS);

for (const theme of ["light", "dark"]) {
    test(`each colour has a contrast of 3:1 in the ${theme} theme`, () => {
        for (const [name, c] of [...OPS, ...CLASSES])
            for (const ground of GROUNDS[theme]) {
                const contrast = colors.contrast(colors.rgb(c[theme]), colors.rgb(ground));
                assert.ok(contrast >= 3, `${name} ${c[theme]} on ${ground}: ${contrast.toFixed(2)}`);
            }
    });
    for (const sight of Object.keys(SIGHTS))
        test(`colours of the ${theme} theme differ for ${sight} vision`, () => {
            for (const [list, bound] of [[OPS, OP_DISTANCE], [CLASSES, CLASS_DISTANCE]]) {
                const [d, a, b] = nearest(list, theme, sight);
                assert.ok(d >= bound[sight], `${a} and ${b}: ${d.toFixed(3)} < ${bound[sight]}`);
            }
        });
}

test("every class of the account has a colour", () => {
    const source = fs.readFileSync(new URL("../../../../lib/account/class.c", import.meta.url), "utf8");
    const names = [...source.matchAll(/\[MR_ACCOUNT_\w+\] = "(\w+)"/g)].map((m) => m[1]);
    assert.ok(names.length > 15);
    for (const name of [...names, "feed", "pull", "push", "wait"]) assert.ok(Object.hasOwn(colors.CLASS_COLORS, name), name);
    assert.equal(colors.classColor("constructor", "light"), colors.CLASS_COLORS.unknown.light);
});

test("the colour of an operator depends on its name only", () => {
    assert.equal(colors.opColor("array.matmul", "light"), colors.opColor("array.matmul", "light"));
    const used = new Set(Array.from({ length: 400 }, (_, i) => colors.opColor(`family.op${i}`, "dark")));
    assert.equal(used.size, colors.OP_COLORS.length);
});

test("operators of a job share a colour only if there are more of them than colours", () => {
    const names = Array.from({ length: colors.OP_COLORS.length }, (_, i) => `op${i}`);
    const palette = new colors.OpPalette(names);
    assert.equal(new Set(names.map((n) => palette.color(n, "light"))).size, names.length);
    const other = new colors.OpPalette([...names].reverse());
    for (const n of names) assert.equal(other.color(n, "light"), palette.color(n, "light"));
    palette.add(["one more"]);
    assert.ok(palette.color("one more", "light"));
});

test("text on a colour can be read", () => {
    for (const [, c] of [...OPS, ...CLASSES])
        for (const theme of ["light", "dark"]) {
            const fill = colors.rgb(c[theme]);
            assert.ok(colors.contrast(fill, colors.rgb(colors.inkOn(fill))) >= 4.5);
        }
});
