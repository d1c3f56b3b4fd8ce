/* The window of time and the rows that the timeline shows. Pure: no DOM, no clocks.
 *
 * Times are numbers of nanoseconds since the beginning of the job. A double holds them exactly for
 * 104 days. `extent` is the length of the job. */

/** @typedef {{from: number, until: number}} Window a part of the time */

/** Narrowest window, in nanoseconds. */
export const WINDOW_MIN = 200;
/** Part of the window that may lie before the begin, or after the end, of the job. */
const MARGIN = 0.02;

/** The window with the whole job. @param {number} extent @returns {Window} */
export function whole(extent) {
    const width = Math.max(extent, WINDOW_MIN) / (1 - 2 * MARGIN);
    return { from: -MARGIN * width, until: (1 - MARGIN) * width };
}

/** The nearest window that is allowed: not too narrow, not wider than the job, and over the job.
 * @param {Window} w @param {number} extent @returns {Window} */
export function clamp(w, extent) {
    const all = whole(extent);
    const width = Math.min(Math.max(w.until - w.from, WINDOW_MIN), all.until - all.from);
    if (!(width < all.until - all.from)) return all;
    const center = (w.from + w.until) / 2;
    const least = -MARGIN * width;
    const most = Math.max(extent, WINDOW_MIN) + MARGIN * width - width;
    const from = Math.min(Math.max(center - width / 2, least), most);
    return { from, until: from + width };
}

/** Zooms so that `at` keeps its place. @param {Window} w @param {number} factor of the width, < 1: closer
 * @param {number} at @param {number} extent @returns {Window} */
export function zoom(w, factor, at, extent) {
    const width = w.until - w.from;
    const wanted = Math.max(width * factor, WINDOW_MIN);
    const part = (at - w.from) / width;
    const from = at - part * wanted;
    return clamp({ from, until: from + wanted }, extent);
}

/** @param {Window} w @param {number} by nanoseconds @param {number} extent @returns {Window} */
export function pan(w, by, extent) {
    return clamp({ from: w.from + by, until: w.until + by }, extent);
}

/** The window of a drag with two fingers: the times `a` and `b` lie under the places `x` and `y`.
 * @param {number} a @param {number} b @param {number} x place of a, 0-1 of the width
 * @param {number} y place of b @param {number} extent @returns {Window} */
export function pinch(a, b, x, y, extent) {
    const apart = Math.abs(y - x) < 0.01 ? (y < x ? -0.01 : 0.01) : y - x;
    const width = Math.abs((b - a) / apart);
    const center = (a + b) / 2 - ((x + y) / 2 - 0.5) * width;
    return clamp({ from: center - width / 2, until: center + width / 2 }, extent);
}

/** A window between `a` and `b`. The width changes by a constant factor a step, so the movement
 * looks even at each scale. @param {Window} a @param {Window} b @param {number} t 0-1 @returns {Window} */
export function between(a, b, t) {
    if (t >= 1) return b;
    const [v, w] = [a.until - a.from, b.until - b.from];
    const width = v * (w / v) ** t;
    // The share of the way that the edges have gone, so that both edges move steadily.
    const part = Math.abs(w - v) < 1e-9 * v ? t : (width - v) / (w - v);
    const from = a.from + (b.from - a.from) * part;
    return { from, until: from + width };
}

/**
 * Pixels of a window. Columns lie on a grid that begins at time 0, so a column covers the same time
 * whenever the window moves, and panning does not shimmer.
 * @typedef {object} Scale
 * @property {number} nsPerPx
 * @property {number} first number of the leftmost column on the grid
 * @property {number} width columns
 */

/** @param {Window} w @param {number} width pixels @returns {Scale} */
export function scaleOf(w, width) {
    const nsPerPx = (w.until - w.from) / width;
    return { nsPerPx, first: Math.round(w.from / nsPerPx), width };
}

/** @param {Scale} s @param {number} time @returns {number} place in pixels, with fraction */
export function placeOf(s, time) {
    return time / s.nsPerPx - s.first;
}

/** @param {Scale} s @param {number} x pixels @returns {number} time */
export function timeAt(s, x) {
    return (s.first + x) * s.nsPerPx;
}

/**
 * Rows on the screen, in device pixels.
 * @typedef {object} Rows
 * @property {number} pitch height of a row with its gap
 * @property {number} gap
 * @property {number} count of all rows
 * @property {number} height of the space for rows
 * @property {number} scroll pixels above the space
 */

const PITCH_DEFAULT_MIN = 8;
const PITCH_DEFAULT_MAX = 26;
export const PITCH_MIN = 4;
export const PITCH_MAX = 48;

/** Height of a row that fills `height`, within what looks well. @param {number} height CSS pixels
 * @param {number} count @returns {number} CSS pixels */
export function pitchFor(height, count) {
    return Math.min(PITCH_DEFAULT_MAX, Math.max(PITCH_DEFAULT_MIN, Math.floor(height / Math.max(count, 1))));
}

/** @param {number} pitch CSS pixels @param {number} ratio device pixels per CSS pixel
 * @param {number} count @param {number} height device pixels @param {number} scroll device pixels
 * @returns {Rows} */
export function rowsOf(pitch, ratio, count, height, scroll) {
    const p = Math.max(1, Math.round(pitch * ratio));
    const gap = p < 6 * ratio ? (p > 3 ? 1 : 0) : Math.max(1, Math.round((pitch >= 16 ? 2 : 1) * ratio));
    const most = Math.max(0, p * count - height);
    return { pitch: p, gap, count, height, scroll: Math.round(Math.min(Math.max(scroll, 0), most)) };
}

/** @param {Rows} r @returns {{first: number, count: number}} rows of which a part is on the screen */
export function rowsShown(r) {
    const first = Math.min(Math.floor(r.scroll / r.pitch), Math.max(0, r.count - 1));
    const end = Math.min(r.count, Math.ceil((r.scroll + r.height) / r.pitch));
    return { first, count: Math.max(0, end - first) };
}

/** @param {Rows} r @param {number} row @returns {number} its upper edge, in pixels of the space */
export function rowTop(r, row) {
    return row * r.pitch - r.scroll;
}

/** @param {Rows} r @param {number} y @returns {number} the row there, or -1 */
export function rowAt(r, y) {
    const row = Math.floor((y + r.scroll) / r.pitch);
    return y >= 0 && y < r.height && row >= 0 && row < r.count ? row : -1;
}

/** The scroll position that shows the whole row. @param {Rows} r @param {number} row */
export function scrollTo(r, row) {
    const top = row * r.pitch;
    if (top < r.scroll) return top;
    return Math.max(r.scroll, top + r.pitch - r.height);
}
