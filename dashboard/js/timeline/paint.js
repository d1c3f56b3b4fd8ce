/* Draws a scene on a canvas. Everything is in device pixels; the scene says what is where. */
import { inkOn } from "./colors.js";
import { strokes } from "./path.js";
import { overlapping } from "./spans.js";
import { ticksOf } from "./ticks.js";
import { placeOf, rowsShown, rowTop, timeAt } from "./view.js";

/** @typedef {import("./theme.js").Look} Look */
/** @typedef {import("./view.js").Scale} Scale */
/** @typedef {import("./view.js").Rows} Rows */
/** @typedef {import("./spans.js").Chunk} Chunk */
/** @typedef {CanvasRenderingContext2D} Ctx */

/** @typedef {{row: number, start: number, end: number}} Mark a part of a row */

/**
 * @typedef {object} Scene
 * @property {number} ratio device pixels per CSS pixel
 * @property {number} width @property {number} height of the canvas
 * @property {number} left of the plot @property {number} top of the plot
 * @property {number} bottom height of the overview below the plot
 * @property {Scale} scale of the plot
 * @property {Rows} rows
 * @property {Look} look
 * @property {number} extent length of the job
 * @property {CanvasImageSource | null} strip one line for each row that is shown
 * @property {Chunk[]} chunks in the order of time
 * @property {boolean} isOutlined spans have outlines only, since the tiles below them have colours
 * @property {(op: string) => string} colorOf an operator
 * @property {(color: string) => readonly number[]} rgbOf
 * @property {(row: number) => {worker: string, slot: number} | undefined} slotOf
 * @property {import("./path.js").Path | null} path
 * @property {Mark | null} hover @property {Mark | null} selected
 * @property {number} cursorRow row of the keyboard, or -1
 * @property {{from: number, until: number} | null} brush columns
 * @property {Texts} texts
 */

/** Least distance of ticks, in CSS pixels. */
const TICK_PX = 96;

/** Widths of texts, measured once. */
export class Texts {
    /** @param {number} max texts that are kept */
    constructor(max) {
        this.max = max;
        /** @type {Map<string, number>} */
        this.widths = new Map();
        this.font = "";
    }

    /** @param {Ctx} ctx @param {string} font */
    use(ctx, font) {
        ctx.font = font;
        if (font !== this.font) this.widths.clear();
        this.font = font;
    }

    /** @param {Ctx} ctx @param {string} text @returns {number} */
    width(ctx, text) {
        let w = this.widths.get(text);
        if (w === undefined) {
            if (this.widths.size >= this.max) this.widths.clear();
            w = ctx.measureText(text).width;
            this.widths.set(text, w);
        }
        return w;
    }

    /** The text, or its begin with an ellipsis, or "" if less than two letters fit.
     * @param {Ctx} ctx @param {string} text @param {number} room @returns {string} */
    cut(ctx, text, room) {
        const whole = this.width(ctx, text);
        if (whole <= room) return text;
        const fits = Math.floor((text.length * (room - this.width(ctx, "…"))) / whole);
        return fits >= 2 ? `${text.slice(0, fits)}…` : "";
    }
}

/** @param {Ctx} ctx @param {Scene} s */
export function paint(ctx, s) {
    ctx.fillStyle = s.look.ground;
    ctx.fillRect(0, 0, s.width, s.height);
    ctx.save();
    ctx.beginPath();
    ctx.rect(s.left, s.top, s.scale.width, s.rows.height);
    ctx.clip();
    paintRows(ctx, s);
    paintOutside(ctx, s);
    const ticks = ticksOf(timeAt(s.scale, 0), timeAt(s.scale, s.scale.width), Math.max(2, s.scale.width / (TICK_PX * s.ratio)));
    paintGrid(ctx, s, ticks);
    if (s.chunks.length) paintSpans(ctx, s);
    if (s.path) paintPath(ctx, s);
    if (s.hover) paintMark(ctx, s, s.hover, s.look.text, 1);
    if (s.selected) paintMark(ctx, s, s.selected, s.look.accent, 2);
    if (s.brush) paintBrush(ctx, s, s.brush);
    ctx.restore();
    paintLabels(ctx, s);
    paintAxis(ctx, s, ticks);
    paintOverview(ctx, s);
}

/** @param {Ctx} ctx @param {Scene} s */
function paintRows(ctx, s) {
    const shown = rowsShown(s.rows);
    if (shown.count === 0) return;
    const y = s.top + rowTop(s.rows, shown.first);
    const { pitch, gap } = s.rows;
    if (s.strip) {
        ctx.imageSmoothingEnabled = false;
        ctx.drawImage(s.strip, 0, 0, s.scale.width, shown.count, s.left, y, s.scale.width, shown.count * pitch);
    }
    if (gap === 0) return;
    ctx.fillStyle = s.look.ground;
    for (let i = 0; i < shown.count; i++) ctx.fillRect(s.left, y + (i + 1) * pitch - gap, s.scale.width, gap);
}

/** What lies before the begin or after the end of the job. @param {Ctx} ctx @param {Scene} s */
function paintOutside(ctx, s) {
    const begin = Math.round(placeOf(s.scale, 0));
    const end = Math.round(placeOf(s.scale, s.extent));
    ctx.fillStyle = s.look.ground;
    if (begin > 0) ctx.fillRect(s.left, s.top, begin, s.rows.height);
    if (end < s.scale.width) ctx.fillRect(s.left + end, s.top, s.scale.width - end, s.rows.height);
}

/** @param {Ctx} ctx @param {Scene} s */
function paintSpans(ctx, s) {
    const shown = rowsShown(s.rows);
    const from = timeAt(s.scale, 0);
    const until = timeAt(s.scale, s.scale.width);
    const height = s.rows.pitch - s.rows.gap;
    const size = Math.min(12 * s.ratio, Math.floor(height * 0.72));
    const isNamed = size >= 7 * s.ratio;
    if (isNamed) s.texts.use(ctx, `${size}px ${s.look.font}`);
    ctx.textBaseline = "middle";
    /** @type {Map<string, {color: string, ink: string}>} */
    const paints = new Map();
    for (const chunk of s.chunks) {
        const begin = chunk.index * 2 ** chunk.exponent;
        const isFirst = !s.chunks.some((c) => c.block === chunk.block && c.index === chunk.index - 1);
        for (let i = 0; i < shown.count; i++) {
            const row = chunk.rows.get(shown.first + i);
            if (!row) continue;
            const y = s.top + rowTop(s.rows, shown.first + i);
            const [a, b] = overlapping(row, from, until);
            let covered = -Infinity;
            for (let k = a; k < b; k++) {
                // A span that began in the chunk before is drawn there.
                if (row.starts[k] < begin && !isFirst) continue;
                const x = Math.max(-4, Math.round(placeOf(s.scale, row.starts[k])));
                const end = Math.min(s.scale.width + 4, Math.max(x + 1, Math.round(placeOf(s.scale, row.ends[k]))));
                if (end <= covered) continue;
                covered = end;
                const op = row.spans[k].op;
                let p = paints.get(op);
                if (!p) {
                    const color = s.colorOf(op);
                    p = { color, ink: inkOn(s.rgbOf(color)) };
                    paints.set(op, p);
                }
                // Neighbours of one colour are kept apart by a pixel where there is room.
                const width = end - x > 3 * s.ratio ? end - x - Math.round(s.ratio / 2) : end - x;
                if (s.isOutlined) outline(ctx, s, x, y, width, height);
                else {
                    ctx.fillStyle = p.color;
                    ctx.fillRect(s.left + x, y, width, height);
                }
                if (isNamed && width > 22 * s.ratio) name(ctx, s, row.spans[k], Math.max(0, x), y, end, height, p.ink);
            }
        }
    }
}

/** The edges of a span, over tiles that have the colours.
 * @param {Ctx} ctx @param {Scene} s @param {number} x @param {number} y @param {number} width @param {number} height */
function outline(ctx, s, x, y, width, height) {
    if (width < 4 * s.ratio) return;
    ctx.fillStyle = s.look.ground;
    ctx.fillRect(s.left + x, y, Math.round(s.ratio), height);
    ctx.fillRect(s.left + x + width, y, Math.round(s.ratio), height);
}

/** @param {Ctx} ctx @param {Scene} s @param {import("./spans.js").Span} span @param {number} x
 * @param {number} y @param {number} end @param {number} height @param {string} ink */
function name(ctx, s, span, x, y, end, height, ink) {
    const pad = 4 * s.ratio;
    const room = Math.min(end, s.scale.width) - x - 2 * pad;
    let text = s.texts.cut(ctx, span.op, room);
    if (!text) return;
    if (text === span.op && span.key) {
        const key = s.texts.cut(ctx, `${span.op} · ${span.key}`, room);
        if (key.length > span.op.length + 6) text = key;
    }
    const middle = y + height / 2 + s.ratio * 0.5;
    if (s.isOutlined) {
        ctx.fillStyle = s.look.ground;
        const w = Math.min(room, s.texts.width(ctx, text)) + pad;
        ctx.fillRect(s.left + x + pad / 2, y + Math.round(height * 0.12), w, Math.round(height * 0.76));
        ink = s.look.text;
    }
    ctx.fillStyle = ink;
    ctx.fillText(text, s.left + x + pad, middle);
}

/** From so many pixels on, a piece from row to row is drawn as strongly as the others. Where the path
 * changes rows more often, such pieces would cover everything. */
const SPARSE_PX = 14;

/** @param {Ctx} ctx @param {Scene} s */
function paintPath(ctx, s) {
    if (!s.path) return;
    const thick = Math.max(2, Math.round(2 * s.ratio));
    const { pitch, gap } = s.rows;
    const middle = (/** @type {number} */ row) => s.top + rowTop(s.rows, row) + Math.round((pitch - gap - thick) / 2);
    const list = strokes(s.path, s.scale);
    const halo = Math.max(1, Math.round(s.ratio));
    const crossings = list.filter((p) => p.width === 0).length;
    const strength = s.scale.width / Math.max(1, crossings * SPARSE_PX * s.ratio);
    for (const pass of [0, 1]) {
        ctx.fillStyle = pass ? s.look.text : s.look.ground;
        const grow = pass ? 0 : halo;
        for (const p of list) {
            const y = middle(p.top);
            const bottom = middle(p.bottom) + thick;
            if (bottom < s.top || y > s.top + s.rows.height) continue;
            if (strength < 1 && p.width === 0) {
                ctx.globalAlpha = Math.max(0.25, 0.8 * strength);
                if (pass) ctx.fillRect(s.left + p.x, y, halo, bottom - y);
                ctx.globalAlpha = 1;
                continue;
            }
            const w = p.width || thick;
            const shift = p.width ? 0 : Math.floor(thick / 2);
            if (p.isWait && p.width > 6 * s.ratio) {
                if (pass) dashes(ctx, s.left + p.x, y, p.width, thick, Math.round(3 * s.ratio));
                else ctx.fillRect(s.left + p.x, y - grow, w, thick + 2 * grow);
            } else ctx.fillRect(s.left + p.x - shift - grow, y - grow, w + 2 * grow, bottom - y + 2 * grow);
        }
    }
}

/** @param {Ctx} ctx @param {number} x @param {number} y @param {number} width @param {number} thick @param {number} dash */
function dashes(ctx, x, y, width, thick, dash) {
    for (let at = 0; at < width; at += 2 * dash) ctx.fillRect(x + at, y, Math.min(dash, width - at), thick);
}

/** @param {Ctx} ctx @param {Scene} s @param {Mark} mark @param {string} color @param {number} thick */
function paintMark(ctx, s, mark, color, thick) {
    const a = Math.max(-8, Math.round(placeOf(s.scale, mark.start)));
    const b = Math.min(s.scale.width + 8, Math.max(a + 3 * s.ratio, Math.round(placeOf(s.scale, mark.end))));
    if (b < 0 || a > s.scale.width) return;
    const w = Math.max(1, Math.round(thick * s.ratio));
    const y = s.top + rowTop(s.rows, mark.row);
    const box = (/** @type {number} */ grow, /** @type {number} */ line, /** @type {string} */ style) => {
        ctx.strokeStyle = style;
        ctx.lineWidth = line;
        ctx.strokeRect(s.left + a - grow, y - grow, b - a + 2 * grow, s.rows.pitch - s.rows.gap + 2 * grow);
    };
    box(w / 2 + w, w, s.look.ground);
    box(w / 2, w, color);
}

/** @param {Ctx} ctx @param {Scene} s @param {{from: number, until: number}} brush */
function paintBrush(ctx, s, brush) {
    const [a, b] = [Math.min(brush.from, brush.until), Math.max(brush.from, brush.until)];
    ctx.globalAlpha = 0.16;
    ctx.fillStyle = s.look.accent;
    ctx.fillRect(s.left + a, s.top, b - a, s.rows.height);
    ctx.globalAlpha = 1;
    const w = Math.max(1, Math.round(s.ratio));
    ctx.fillRect(s.left + a, s.top, w, s.rows.height);
    ctx.fillRect(s.left + b - w, s.top, w, s.rows.height);
}

/** Workers and slots, left of the rows. @param {Ctx} ctx @param {Scene} s */
function paintLabels(ctx, s) {
    const shown = rowsShown(s.rows);
    const { pitch, gap } = s.rows;
    ctx.save();
    ctx.beginPath();
    ctx.rect(0, s.top, s.width, s.rows.height);
    ctx.clip();
    ctx.textBaseline = "middle";
    const small = Math.round(Math.min(11 * s.ratio, Math.max(9 * s.ratio, pitch * 0.8)));
    const pad = Math.round(8 * s.ratio);
    const slotWidth = Math.round(22 * s.ratio);
    // Numbers of slots stand where they do not touch each other.
    const every = Math.max(1, Math.ceil((small * 1.15) / pitch));
    for (let row = shown.first; row < shown.first + shown.count; row++) {
        const slot = s.slotOf(row);
        if (!slot) continue;
        const y = s.top + rowTop(s.rows, row);
        const before = row > 0 ? s.slotOf(row - 1) : undefined;
        const isHead = !before || before.worker !== slot.worker;
        if (isHead && row > 0) {
            ctx.fillStyle = s.look.line;
            ctx.fillRect(0, y - Math.max(1, gap), s.left + s.scale.width, Math.max(1, Math.round(s.ratio)));
        }
        if (row === s.cursorRow) {
            ctx.fillStyle = s.look.accent;
            ctx.fillRect(s.left - Math.round(4 * s.ratio), y, Math.round(3 * s.ratio), pitch - gap);
        }
        ctx.textAlign = "right";
        if ((slot.slot % every === 0 && (every === 1 || !isHead)) || row === s.cursorRow) {
            s.texts.use(ctx, `${small}px ${s.look.font}`);
            ctx.fillStyle = row === s.cursorRow ? s.look.text : s.look.quiet;
            ctx.fillText(String(slot.slot), s.left - pad, y + (pitch - gap) / 2 + s.ratio * 0.5);
        }
    }
    ctx.textAlign = "left";
    s.texts.use(ctx, `600 ${Math.round(11.5 * s.ratio)}px ${s.look.font}`);
    ctx.fillStyle = s.look.text;
    for (let row = shown.first; row < shown.first + shown.count; ) row = paintWorker(ctx, s, row, pad, s.left - pad - slotWidth);
    ctx.restore();
}

/** The name of a worker at the first of its rows that is shown. @param {Ctx} ctx @param {Scene} s
 * @param {number} row @param {number} pad @param {number} room @returns {number} row of the next worker */
function paintWorker(ctx, s, row, pad, room) {
    const worker = s.slotOf(row)?.worker;
    const shown = rowsShown(s.rows);
    let end = row + 1;
    while (end < shown.first + shown.count && s.slotOf(end)?.worker === worker) end++;
    if (!worker) return end;
    const top = Math.max(s.top, s.top + rowTop(s.rows, row));
    const height = s.top + rowTop(s.rows, end) - top;
    const line = Math.round(13 * s.ratio);
    // A worker with few low rows gives its name only if the name has room.
    if (height < line * 0.8) return end;
    const y = Math.min(top + Math.max(line, s.rows.pitch - s.rows.gap) / 2, top + height / 2) + s.ratio * 0.5;
    ctx.fillText(s.texts.cut(ctx, worker, room - pad), pad, y);
    return end;
}

/** Lines of the ticks, below tasks and over tiles. @param {Ctx} ctx @param {Scene} s
 * @param {import("./ticks.js").Ticks} t */
function paintGrid(ctx, s, t) {
    ctx.fillStyle = s.look.quiet;
    ctx.globalAlpha = 0.22;
    const height = Math.min(s.rows.height, s.rows.count * s.rows.pitch - s.rows.scroll);
    for (const tick of t.ticks)
        ctx.fillRect(s.left + Math.round(placeOf(s.scale, tick.time)), s.top, Math.max(1, Math.round(s.ratio)), height);
    ctx.globalAlpha = 1;
}

/** @param {Ctx} ctx @param {Scene} s @param {import("./ticks.js").Ticks} t */
function paintAxis(ctx, s, { ticks, base }) {
    const least = TICK_PX * s.ratio;
    const one = Math.max(1, Math.round(s.ratio));
    s.texts.use(ctx, `${Math.round(11 * s.ratio)}px ${s.look.font}`);
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    const middle = Math.round(s.top * 0.5);
    let free = s.left;
    if (base && !ticks.some((t) => t.isMajor && placeOf(s.scale, t.time) < least)) {
        ctx.fillStyle = s.look.text;
        ctx.fillText(base, s.left + 4 * s.ratio, middle);
        free = s.left + s.texts.width(ctx, base) + 14 * s.ratio;
    }
    for (const tick of ticks) {
        const x = s.left + Math.round(placeOf(s.scale, tick.time));
        if (x < s.left || x >= s.width) continue;
        ctx.fillStyle = s.look.line;
        ctx.fillRect(x, s.top - Math.round(7 * s.ratio), one, Math.round(7 * s.ratio));
        const width = s.texts.width(ctx, tick.text);
        const at = x + 4 * s.ratio;
        if (at < free || at + width > s.width) continue;
        ctx.fillStyle = tick.isMajor ? s.look.text : s.look.quiet;
        ctx.fillText(tick.text, at, middle);
        free = at + width + 8 * s.ratio;
    }
    ctx.fillStyle = s.look.line;
    ctx.fillRect(0, s.top - one, s.width, one);
}

/** Where the window lies in the job, and where the rows shown lie among all.
 * @param {Ctx} ctx @param {Scene} s */
function paintOverview(ctx, s) {
    const y = s.height - s.bottom;
    ctx.fillStyle = s.look.ground;
    ctx.fillRect(0, y, s.width, s.bottom);
    const bar = Math.round(6 * s.ratio);
    const top = y + Math.round((s.bottom - bar) / 2);
    rounded(ctx, s.left, top, s.scale.width, bar, s.look.trackText);
    const per = s.scale.width / Math.max(1, s.extent);
    const a = Math.min(Math.max(0, timeAt(s.scale, 0) * per), s.scale.width);
    const b = Math.min(Math.max(0, timeAt(s.scale, s.scale.width) * per), s.scale.width);
    const width = Math.max(14 * s.ratio, b - a);
    rounded(ctx, s.left + Math.min(a, s.scale.width - width), top, width, bar, s.look.quiet);
    const all = s.rows.pitch * s.rows.count;
    if (all <= s.rows.height) return;
    const thumb = Math.max(24 * s.ratio, (s.rows.height * s.rows.height) / all);
    const at = (s.rows.scroll / (all - s.rows.height)) * (s.rows.height - thumb);
    rounded(ctx, s.width - Math.round(7 * s.ratio), s.top + at, Math.round(5 * s.ratio), thumb, s.look.quiet);
}

/** @param {Ctx} ctx @param {number} x @param {number} y @param {number} w @param {number} h @param {string} color */
function rounded(ctx, x, y, w, h, color) {
    ctx.fillStyle = color;
    ctx.beginPath();
    ctx.roundRect(x, y, w, h, Math.min(w, h) / 2);
    ctx.fill();
}
