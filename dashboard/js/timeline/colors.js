/* Colours of operators and of the classes of the account, for a light and a dark page.
 *
 * Each colour has a contrast of at least 3:1 against the backgrounds of its theme. Any two operator
 * colours differ by at least 0.09 in OKLab, and any two class colours by at least 0.038, for normal
 * vision and for simulated protanopia, deuteranopia and tritanopia (Machado et al., 2009).
 * tests/unit/dashboard/timeline/colors.test.mjs holds these bounds. A colour is never the only sign:
 * the name stands beside it, or in the tooltip. */

/** @typedef {"light" | "dark"} Theme */

/** @type {ReadonlyArray<Record<Theme, string>>} */
export const OP_COLORS = [
    { light: "#26449d", dark: "#5c7ed5" }, // blue
    { light: "#c37d08", dark: "#feba67" }, // orange
    { light: "#007d5f", dark: "#5fb698" }, // green
    { light: "#bf3a13", dark: "#fc7e5d" }, // vermilion
    { light: "#755bbf", dark: "#ad98f9" }, // violet
    { light: "#3098b4", dark: "#7cd4ee" }, // sky
    { light: "#821e5d", dark: "#bd5e94" }, // plum
    { light: "#383f00", dark: "#6c7441" }, // olive
];

/** Busy classes, then idle ones by what the slot waits for, then the phases of training roles.
 * @type {Readonly<Record<string, Record<Theme, string>>>} */
export const CLASS_COLORS = {
    compute: { light: "#2657bf", dark: "#6194f8" },
    preempted: { light: "#770000", dark: "#b65145" },
    blocked: { light: "#2c366a", dark: "#5f6ca0" },
    input: { light: "#3d94c2", dark: "#83d0fd" },
    output: { light: "#005461", dark: "#4e8b98" },
    no_work: { light: "#818da5", dark: "#bdc8e0" },
    client: { light: "#676285", dark: "#9f9bbd" },
    dependency: { light: "#a88a07", dark: "#e3c667" },
    imbalance: { light: "#a56300", dark: "#e09f5a" },
    report: { light: "#bd5f89", dark: "#fa9dc3" },
    decide: { light: "#6e0287", dark: "#a653bf" },
    send: { light: "#984ba3", dark: "#d289dc" },
    handoff: { light: "#63387e", dark: "#9a71b6" },
    transfer: { light: "#248b66", dark: "#70c6a0" },
    restore: { light: "#024e28", dark: "#4a845e" },
    memory: { light: "#625400", dark: "#998b4c" },
    journal: { light: "#a23c4a", dark: "#de7a83" },
    restricted: { light: "#8a673d", dark: "#c3a079" },
    start_up: { light: "#2e7c6f", dark: "#71b6a8" },
    stopped: { light: "#36384a", dark: "#696c7e" },
    unknown: { light: "#484747", dark: "#7d7c7d" },
    feed: { light: "#6c77b8", dark: "#a5b2f2" },
    pull: { light: "#5e9760", dark: "#9cd29d" },
    push: { light: "#036633", dark: "#559e6b" },
    wait: { light: "#8b7a44", dark: "#c4b482" },
};

/** FNV-1a over UTF-16 units. @param {string} text */
function hash(text) {
    let h = 0x811c9dc5;
    for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
    h ^= h >>> 15;
    return Math.imul(h, 0x2c1b3ca5) >>> 16;
}

/** The colour of an operator. It depends on the name only, so it is the same on every page.
 * @param {string} name @param {Theme} theme @returns {string} */
export function opColor(name, theme) {
    return OP_COLORS[hash(name) % OP_COLORS.length][theme];
}

/** @param {string} name as the API says it @param {Theme} theme @returns {string} */
export function classColor(name, theme) {
    const color = Object.hasOwn(CLASS_COLORS, name) ? CLASS_COLORS[name] : CLASS_COLORS.unknown;
    return color[theme];
}

/**
 * Colours of the operators of one job. A name keeps the colour of `opColor`, unless an earlier name
 * has this colour and another colour is free. The result depends on the set of names alone if all
 * are given at once.
 */
export class OpPalette {
    /** @param {Iterable<string>} [names] */
    constructor(names = []) {
        /** @type {Map<string, number>} */
        this.chosen = new Map();
        /** @type {number[]} */
        this.users = OP_COLORS.map(() => 0);
        this.add(names);
    }

    /** @param {Iterable<string>} names */
    add(names) {
        for (const name of [...new Set(names)].sort()) this.indexOf(name);
    }

    /** @param {string} name @returns {number} index of its colour in OP_COLORS */
    indexOf(name) {
        const known = this.chosen.get(name);
        if (known !== undefined) return known;
        const first = hash(name) % OP_COLORS.length;
        let best = first;
        for (let i = 1; i < OP_COLORS.length && this.users[best] > 0; i++) {
            const next = (first + i) % OP_COLORS.length;
            if (this.users[next] < this.users[best]) best = next;
        }
        this.users[best]++;
        this.chosen.set(name, best);
        return best;
    }

    /** @param {string} name @param {Theme} theme @returns {string} */
    color(name, theme) {
        return OP_COLORS[this.indexOf(name)][theme];
    }
}

/** @param {string} color "#rrggbb" @returns {[number, number, number]} 0-255 */
export function rgb(color) {
    const n = parseInt(color.slice(1), 16);
    return [n >> 16, (n >> 8) & 255, n & 255];
}

/** Relative luminance of WCAG 2. @param {readonly number[]} c 0-255 */
export function luminance(c) {
    const linear = c.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

/** Contrast of WCAG 2, 1-21. @param {readonly number[]} a @param {readonly number[]} b */
export function contrast(a, b) {
    const [x, y] = [luminance(a), luminance(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

/** Black or white, whichever is easier to read on `c`. @param {readonly number[]} c 0-255 */
export function inkOn(c) {
    return luminance(c) > 0.179 ? "#000000" : "#ffffff";
}
