/* The timeline of a job: rows are slots, colours are operators or classes of the account.
 *
 *     const t = new Timeline(container, { source, theme: "light", onSelect, onWindow });
 *     t.setColor("class"); t.setPath(steps); t.refresh(); t.destroy();
 *
 * The container needs a height, and the page the style sheet timeline.css. `source` is described in
 * data.js. From far, rows are drawn from tiles (pixels that the service computed); in a window
 * narrower than `more_spans_ns` each task is drawn with its name. Nothing runs while nothing changes.
 *
 * Wheel: ctrl zooms, shift pans, alt changes the height of rows; a plain wheel scrolls the rows, or
 * the page if no row is left. The other gestures and the keys are listed in text.js. */
import { rgb } from "./colors.js";
import { Control } from "./control.js";
import { Data } from "./data.js";
import { listen } from "./input.js";
import { Texts, paint } from "./paint.js";
import { Parts } from "./parts.js";
import { pathFrom } from "./path.js";
import { nextSpan, spanNear } from "./select.js";
import { spanAt } from "./spans.js";
import { pixelWords, spanSentence, spanWords, timesOf } from "./text.js";
import { lookOf } from "./theme.js";
import * as view from "./view.js";

/** @typedef {import("./colors.js").Theme} Theme */
/** @typedef {import("./data.js").Source} Source */
/** @typedef {import("./tiles.js").ColorBy} ColorBy */
/** @typedef {import("./spans.js").Span} Span */
/** @typedef {import("./view.js").Window} Window */

/**
 * @typedef {object} TimelineOptions
 * @property {Source} source
 * @property {Theme} [theme] without it, the browser's preference
 * @property {ColorBy} [color] default "op"
 * @property {string} [label] accessible name
 * @property {(span: Span | null) => void} [onSelect] a task was chosen, or none is any more
 * @property {(fromNs: bigint, untilNs: bigint) => void} [onWindow] the window has come to rest
 * @property {(name: string, by: ColorBy) => string | undefined} [describe] a sentence on an operator
 *   or a class, for the tooltip
 */

const AXIS = 28;
const OVERVIEW = 16;
const MOVE_MS = 140;
const REST_MS = 160;
/** Loading that takes longer is noted. */
const SLOW_MS = 400;

export class Timeline {
    /** @param {HTMLElement} container @param {TimelineOptions} options */
    constructor(container, options) {
        this.o = options;
        this.by = options.color ?? "op";
        this.theme = options.theme;
        this.data = new Data(options.source, () => this.draw());
        this.parts = new Parts(container, options.label ?? "Timeline of the job", {
            zoom: (factor) => this.moveTo(view.zoom(this.target(), factor, this.middle(), this.data.extent)),
            whole: () => this.moveTo(view.whole(this.data.extent)),
        });
        const ctx = this.parts.canvas.getContext("2d", { alpha: false });
        const stripCtx = document.createElement("canvas").getContext("2d", { alpha: false, willReadFrequently: true });
        if (!ctx || !stripCtx) throw new Error("this browser has no 2D canvas");
        this.ctx = ctx;
        this.stripCtx = stripCtx;
        /** @type {ImageData | null} */
        this.strip = null;
        this.texts = new Texts(20000);
        /** @type {Map<string, readonly number[]>} */
        this.rgbs = new Map();

        this.size = { width: 0, height: 0, ratio: 1, left: 0 };
        this.window = view.whole(this.data.extent);
        /** True: the window is the whole job, and grows with it. */
        this.followsEnd = true;
        this.pitch = 0;
        this.scroll = 0;
        this.rows = view.rowsOf(10, 1, 0, 0, 0);
        /** @type {import("./path.js").Path | null} */
        this.path = null;
        /** @type {{span: Span, row: number, start: number, end: number} | null} */
        this.selected = null;
        /** @type {{x: number, y: number} | null} */
        this.pointer = null;
        /** @type {import("./paint.js").Mark | null} */
        this.hover = null;
        this.cursorRow = -1;
        /** @type {{from: number, until: number} | null} */
        this.brush = null;
        /** @type {{from: Window, to: Window, begin: number} | null} */
        this.move = null;
        this.frame = 0;
        this.rest = 0;
        this.slow = 0;
        this.hint = 0;
        /** @type {AbortController | null} */
        this.seeking = null;
        this.isDestroyed = false;

        this.still = matchMedia("(prefers-reduced-motion: reduce)");
        this.observers = this.observe();
        this.unlisten = listen(this.parts.root, this.parts.canvas, new Control(this).actions());
        this.readLook();
        this.resize();
    }

    /* ---- for the page ---- */

    /** @param {ColorBy} by */
    setColor(by) {
        this.by = by;
        this.draw();
    }

    /** @param {Theme | undefined} theme */
    setTheme(theme) {
        this.theme = theme;
        this.readLook();
    }

    /** @param {import("./data.js").Ns} fromNs @param {import("./data.js").Ns} untilNs since 1970 */
    setWindow(fromNs, untilNs) {
        const from = Number(BigInt(fromNs) - this.data.beginNs);
        this.moveTo(view.clamp({ from, until: Number(BigInt(untilNs) - this.data.beginNs) }, this.data.extent));
    }

    /** @returns {{fromNs: bigint, untilNs: bigint}} */
    getWindow() {
        const w = this.target();
        return { fromNs: this.data.beginNs + BigInt(Math.round(w.from)), untilNs: this.data.beginNs + BigInt(Math.round(w.until)) };
    }

    /** Draws the critical path over the rows; [] removes it.
     * @param {ReadonlyArray<import("./path.js").PathStep>} steps */
    setPath(steps) {
        this.path = steps.length ? pathFrom(steps, this.data.beginNs) : null;
        this.draw();
    }

    /** Marks a task, as if it had been clicked; null marks none. `onSelect` is not called.
     * @param {Span | null} span */
    setSelected(span) {
        this.selected = span && { span, row: span.row, ...timesOf(span, this.data.beginNs) };
        this.draw();
    }

    /** The source has changed: more rows, a later end, or the last part is complete now. */
    refresh() {
        this.data.refresh();
        this.window = this.followsEnd && !this.move ? view.whole(this.data.extent) : view.clamp(this.window, this.data.extent);
        this.layRows();
        this.draw();
    }

    destroy() {
        this.isDestroyed = true;
        this.unlisten();
        this.seeking?.abort();
        this.data.close();
        for (const stop of this.observers) stop();
        for (const timer of [this.rest, this.slow, this.hint]) clearTimeout(timer);
        cancelAnimationFrame(this.frame);
        this.parts.remove();
    }

    /* ---- size and look ---- */

    /** @returns {Array<() => void>} what ends the observation */
    observe() {
        const size = new ResizeObserver(() => this.resize());
        size.observe(this.parts.root);
        // Pages switch their theme by an attribute of the root.
        const marks = new MutationObserver(() => this.readLook());
        marks.observe(document.documentElement, { attributes: true, attributeFilter: ["class", "style", "data-theme"] });
        const dark = matchMedia("(prefers-color-scheme: dark)");
        const look = () => this.readLook();
        dark.addEventListener("change", look);
        return [() => size.disconnect(), () => marks.disconnect(), () => dark.removeEventListener("change", look)];
    }

    readLook() {
        this.look = lookOf(this.parts.root, this.theme);
        this.data.setLook(this.look);
        this.draw();
    }

    resize() {
        const { clientWidth, clientHeight } = this.parts.root;
        const ratio = window.devicePixelRatio || 1;
        const width = Math.round(clientWidth * ratio);
        const height = Math.round(clientHeight * ratio);
        if (width === this.size.width && height === this.size.height && ratio === this.size.ratio) return;
        const left = Math.round((clientWidth < 560 ? 76 : 124) * ratio);
        this.size = { width, height, ratio, left };
        this.parts.canvas.width = width;
        this.parts.canvas.height = height;
        this.layRows();
        // Setting the size clears the canvas, so it is drawn before the page is shown again.
        this.drawNow();
    }

    /** Computes the rows from the size, the pitch and the scroll position. */
    layRows() {
        const { ratio, height } = this.size;
        const space = Math.max(0, height - Math.round((AXIS + OVERVIEW) * ratio));
        const count = this.data.rowsCount;
        const pitch = this.pitch || view.pitchFor(space / ratio, count);
        this.rows = view.rowsOf(pitch, ratio, count, space, this.scroll);
        this.scroll = this.rows.scroll;
        this.parts.root.toggleAttribute("data-scrolls", this.rows.pitch * count > space);
    }

    get plotWidth() {
        return Math.max(1, this.size.width - this.size.left);
    }

    scale() {
        return view.scaleOf(this.window, this.plotWidth);
    }

    /** @param {number} x CSS pixels @returns {number} */
    timeAt(x) {
        return view.timeAt(this.scale(), x * this.size.ratio - this.size.left);
    }

    /** @param {number} y CSS pixels @returns {number} row or -1 */
    rowAt(y) {
        return view.rowAt(this.rows, y * this.size.ratio - AXIS * this.size.ratio);
    }

    /** Nanoseconds of a CSS pixel. */
    get nsPerCss() {
        return ((this.window.until - this.window.from) / this.plotWidth) * this.size.ratio;
    }

    /** The time that keys zoom at. */
    middle() {
        const w = this.target();
        return this.pointer && this.pointer.x * this.size.ratio > this.size.left ? this.timeAt(this.pointer.x) : (w.from + w.until) / 2;
    }

    /** The window, or the one that a movement goes to. */
    target() {
        return this.move?.to ?? this.window;
    }

    /* ---- drawing ---- */

    /** Draws before the next frame. */
    draw() {
        if (!this.frame && !this.isDestroyed) this.frame = requestAnimationFrame((now) => this.drawNow(now));
    }

    /** @param {number} [now] */
    drawNow(now = performance.now()) {
        cancelAnimationFrame(this.frame);
        this.frame = 0;
        if (this.isDestroyed || this.size.width === 0 || !this.look) return;
        if (this.move) this.step(now);
        const scale = this.scale();
        this.data.want(this.window, scale.nsPerPx, this.by, this.rows);
        const chunks = this.data.chunksIn(this.window, this.rows);
        const isOutlined = this.by === "class";
        const shown = view.rowsShown(this.rows);
        const isWhole = this.makeStrip(scale, shown.count, isOutlined ? [] : chunks);
        if (this.pointer) this.point();
        paint(this.ctx, {
            ...this.size, top: Math.round(AXIS * this.size.ratio), bottom: Math.round(OVERVIEW * this.size.ratio),
            scale, rows: this.rows, look: this.look, extent: this.data.extent,
            strip: shown.count ? this.stripCtx.canvas : null, chunks, isOutlined,
            colorOf: (op) => this.data.colorOf(op, "op"), rgbOf: (color) => this.rgbOf(color),
            slotOf: (row) => this.data.slots.get(row), path: this.path,
            hover: this.hover, selected: this.selected, cursorRow: this.cursorRow, brush: this.brush, texts: this.texts,
        });
        this.noteState(isWhole);
        if (this.move) this.draw();
    }

    /** @param {import("./view.js").Scale} scale @param {number} lines @param {import("./spans.js").Chunk[]} covered
     * @returns {boolean} nothing is missing */
    makeStrip(scale, lines, covered) {
        if (lines === 0) return true;
        const canvas = this.stripCtx.canvas;
        if (!this.strip || this.strip.width !== scale.width || this.strip.height !== lines) {
            canvas.width = scale.width;
            canvas.height = lines;
            this.strip = this.stripCtx.createImageData(scale.width, lines);
        }
        const isWhole = this.data.drawStrip(new Uint32Array(this.strip.data.buffer), this.window, scale, this.rows, this.by, covered);
        this.stripCtx.putImageData(this.strip, 0, 0);
        return isWhole;
    }

    /** @param {string} color */
    rgbOf(color) {
        let c = this.rgbs.get(color);
        if (!c) this.rgbs.set(color, (c = rgb(color)));
        return c;
    }

    /** Says below the rows that something is missing. @param {boolean} isWhole */
    noteState(isWhole) {
        const { tiles, chunks } = this.data;
        const error = tiles.error ?? chunks.error;
        if (error) {
            const why = error instanceof Error ? error.message : String(error);
            this.parts.setNote(`A part cannot be loaded: ${why}`, () => {
                tiles.retry();
                chunks.retry();
            });
            return;
        }
        if (isWhole || this.data.extent === 0) {
            clearTimeout(this.slow);
            this.slow = 0;
            if (!this.hint) this.parts.setNote(this.data.rowsCount === 0 ? "No slot has run a task of this job yet" : "");
        } else if (!this.slow) this.slow = window.setTimeout(() => this.parts.setNote("Loading…"), SLOW_MS);
    }

    /* ---- moving ---- */

    /** Shows another window at once. @param {Window} w */
    show(w) {
        this.move = null;
        this.window = w;
        this.moved();
    }

    /** Goes to another window, in a short movement. @param {Window} w */
    moveTo(w) {
        if (this.still.matches) return this.show(w);
        this.move = { from: this.window, to: w, begin: performance.now() };
        this.moved();
    }

    /** @param {number} now */
    step(now) {
        if (!this.move) return;
        const t = Math.min(1, Math.max(0, (now - this.move.begin) / MOVE_MS));
        this.window = view.between(this.move.from, this.move.to, 1 - (1 - t) ** 3);
        if (t >= 1) this.move = null;
    }

    moved() {
        const all = view.whole(this.data.extent);
        const w = this.target();
        this.followsEnd = w.from <= all.from && w.until >= all.until;
        clearTimeout(this.rest);
        this.rest = window.setTimeout(() => {
            this.rest = 0;
            const { fromNs, untilNs } = this.getWindow();
            this.o.onWindow?.(fromNs, untilNs);
            this.draw();
        }, REST_MS);
        this.draw();
    }

    /** @param {number} scroll device pixels @returns {boolean} the rows have moved */
    scrollRows(scroll) {
        const before = this.rows.scroll;
        this.scroll = scroll;
        this.layRows();
        if (this.rows.scroll === before) return false;
        this.draw();
        return true;
    }

    /** @param {number} pitch CSS pixels */
    setPitch(pitch) {
        // The chosen row keeps its place, or else the row in the middle.
        const before = this.rows;
        const top = view.rowTop(before, this.cursorRow);
        const isSeen = this.cursorRow >= 0 && top >= 0 && top < before.height;
        const place = isSeen ? top : before.height / 2;
        const row = (before.scroll + place) / before.pitch;
        this.pitch = Math.min(view.PITCH_MAX, Math.max(view.PITCH_MIN, pitch));
        this.scroll = row * Math.round(this.pitch * this.size.ratio) - place;
        this.layRows();
        this.draw();
    }

    /* ---- pointing and choosing ---- */

    /** @param {number} x @param {number} y CSS pixels @returns {"plot" | "labels" | "overview" | "none"} */
    partAt(x, y) {
        const { ratio, left, height } = this.size;
        if (y * ratio >= height - OVERVIEW * ratio) return x * ratio >= left ? "overview" : "none";
        return x * ratio < left ? "labels" : "plot";
    }

    /** The span under a place, if spans are drawn. @param {number} x @param {number} y @returns {Span | undefined} */
    spanAtPlace(x, y) {
        const row = this.rowAt(y);
        if (row < 0 || !this.data.isNear) return undefined;
        for (const spans of this.data.rowSpans(this.window, row)) {
            const span = spanAt(spans, this.timeAt(x), this.nsPerCss * 2);
            if (span) return span;
        }
        return undefined;
    }

    /** Shows what lies under the pointer. */
    point() {
        const p = this.pointer;
        this.hover = null;
        if (!p) return;
        const part = this.partAt(p.x, p.y);
        const row = part === "plot" ? this.rowAt(p.y) : -1;
        this.parts.canvas.dataset.over = part;
        if (row < 0) return this.parts.hideTip();
        const slot = this.data.slots.get(row);
        const span = this.spanAtPlace(p.x, p.y);
        if (span) {
            this.hover = { row: span.row, ...timesOf(span, this.data.beginNs) };
            this.parts.canvas.dataset.over = "task";
            const words = spanWords(span, this.data.beginNs, slot);
            this.parts.showTip({ ...words, color: this.data.colorOf(span.op, "op") }, p.x, p.y);
            return;
        }
        const time = this.timeAt(p.x);
        const pixel = this.data.pixelAt(time, row, this.nsPerCss / this.size.ratio, this.by);
        if (!pixel) return this.parts.hideTip();
        const isIdle = this.by === "op" && this.data.isNear;
        const part_ = isIdle ? { name: "", share: 0, from: time, until: time + this.nsPerCss } : pixel;
        const means = part_.name ? this.o.describe?.(part_.name, this.by) : undefined;
        const words = pixelWords(part_, this.by, slot, means, !this.data.isNear);
        this.parts.showTip({ ...words, color: part_.name ? this.data.colorOf(part_.name, this.by) : undefined }, p.x, p.y);
    }

    /** @param {Span | null} span */
    select(span) {
        this.setSelected(span);
        if (span) {
            this.cursorRow = span.row;
            this.parts.say(spanSentence(span, this.data.beginNs, this.data.slots.get(span.row)));
        }
        this.o.onSelect?.(span);
    }

    /** Chooses the span near a time, also where only tiles are drawn. @param {number} row @param {number} time */
    async choose(row, time) {
        await this.seek((signal) => spanNear(this.data, row, time, this.nsPerCss * 2, signal), "No task is there.");
    }

    /** Chooses the next span of the row. @param {1 | -1} direction */
    async chooseNext(direction) {
        const row = this.selected ? this.selected.row : Math.max(0, this.cursorRow);
        const from = this.selected ?? { start: this.middle(), end: this.middle() };
        const width = this.nsPerCss * 8;
        await this.seek((signal) => nextSpan(this.data, row, from.start, direction, width, signal),
            direction > 0 ? "No later task in this row." : "No earlier task in this row.");
        if (this.selected) this.reveal(this.selected);
    }

    /** @param {(signal: AbortSignal) => Promise<Span | undefined>} find @param {string} otherwise */
    async seek(find, otherwise) {
        this.seeking?.abort();
        const seeking = (this.seeking = new AbortController());
        try {
            const span = await find(seeking.signal);
            if (seeking.signal.aborted) return;
            if (span) this.select(span);
            else this.parts.say(otherwise);
        } catch (error) {
            if (!seeking.signal.aborted) this.parts.say(`The tasks cannot be loaded: ${error instanceof Error ? error.message : error}`);
        }
    }

    /** Moves the window and the rows so that a span is seen. @param {{row: number, start: number, end: number}} mark */
    reveal(mark) {
        const w = this.target();
        const width = w.until - w.from;
        if (mark.start < w.from || mark.start > w.until - width * 0.02)
            this.moveTo(view.clamp({ from: mark.start - width / 4, until: mark.start + (width * 3) / 4 }, this.data.extent));
        this.scrollRows(view.scrollTo(this.rows, mark.row));
    }

    /** Zooms so that a span fills a third of the window. @param {{row: number, start: number, end: number}} mark */
    zoomTo(mark) {
        const length = Math.max(mark.end - mark.start, view.WINDOW_MIN / 3);
        const middle = (mark.start + mark.end) / 2;
        this.moveTo(view.clamp({ from: middle - length * 1.5, until: middle + length * 1.5 }, this.data.extent));
    }
}
