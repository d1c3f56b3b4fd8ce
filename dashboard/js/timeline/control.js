/* What gestures and keys do to a timeline. input.js tells gestures apart; text.js lists them. */
import { timesOf, windowSentence } from "./text.js";
import * as view from "./view.js";

/** @typedef {import("./view.js").Window} Window */

export class Control {
    /** @param {import("./timeline.js").Timeline} timeline */
    constructor(timeline) {
        this.t = timeline;
    }

    /** @returns {import("./input.js").Actions} */
    actions() {
        let began = { window: this.t.window, scroll: 0 };
        let fingers = { a: 0, b: 0 };
        const place = (/** @type {number} */ x) => (x * this.t.size.ratio - this.t.size.left) / this.t.plotWidth;
        return {
            partAt: (x, y) => this.t.partAt(x, y),
            beginDrag: () => {
                this.t.move = null;
                began = { window: this.t.window, scroll: this.t.rows.scroll };
            },
            drag: (dx, dy) => {
                this.t.scrollRows(began.scroll - dy * this.t.size.ratio);
                this.t.show(view.pan(began.window, -dx * this.t.nsPerCss, this.t.data.extent));
            },
            beginPinch: (a, b) => (fingers = { a: this.t.timeAt(a), b: this.t.timeAt(b) }),
            pinch: (a, b) => this.t.show(view.pinch(fingers.a, fingers.b, place(a), place(b), this.t.data.extent)),
            jump: (x) => {
                const width = this.t.window.until - this.t.window.from;
                const center = place(x) * this.t.data.extent;
                this.t.show(view.clamp({ from: center - width / 2, until: center + width / 2 }, this.t.data.extent));
            },
            brush: (from, until, isDone) => this.brushTo(from, until, isDone),
            zoomAt: (x, factor) => this.t.show(view.zoom(this.t.window, factor, this.t.timeAt(x), this.t.data.extent)),
            panBy: (dx) => this.t.show(view.pan(this.t.window, dx * this.t.nsPerCss, this.t.data.extent)),
            scrollBy: (dy) => this.t.scrollRows(this.t.rows.scroll + dy * this.t.size.ratio),
            growRows: (factor) => this.t.setPitch((this.t.pitch || this.t.rows.pitch / this.t.size.ratio) * factor),
            hover: (x, y) => {
                this.t.pointer = { x, y };
                this.t.draw();
            },
            leave: () => {
                this.t.pointer = this.t.hover = null;
                this.t.parts.hideTip();
                this.t.draw();
            },
            click: (x, y) => this.clickAt(x, y),
            doubleClick: (x, y) => this.doubleClickAt(x, y),
            hintWheel: () => this.hintWheel(),
            key: (key, isLarge) => this.key(key, isLarge),
        };
    }

    /** @param {number | null} from CSS pixels @param {number} until @param {boolean} isDone */
    brushTo(from, until, isDone) {
        const px = (/** @type {number} */ x) => Math.min(this.t.plotWidth, Math.max(0, Math.round(x * this.t.size.ratio - this.t.size.left)));
        this.t.brush = from === null || isDone ? null : { from: px(from), until: px(until) };
        if (from !== null && isDone) {
            const [a, b] = [this.t.timeAt(Math.min(from, until)), this.t.timeAt(Math.max(from, until))];
            this.t.moveTo(view.clamp({ from: a, until: b }, this.t.data.extent));
        }
        this.t.draw();
    }

    /** @param {number} x @param {number} y */
    clickAt(x, y) {
        const row = this.t.rowAt(y);
        if (row < 0) return;
        this.t.cursorRow = row;
        this.t.draw();
        if (this.t.partAt(x, y) !== "plot") return;
        const span = this.t.spanAtPlace(x, y);
        if (span) this.t.select(span);
        else if (this.t.data.isNear) this.t.select(null);
        else void this.t.choose(row, this.t.timeAt(x));
    }

    /** @param {number} x @param {number} y */
    doubleClickAt(x, y) {
        if (this.t.partAt(x, y) !== "plot") return;
        const span = this.t.spanAtPlace(x, y);
        if (span) this.t.zoomTo({ row: span.row, ...timesOf(span, this.t.data.beginNs) });
        else this.t.moveTo(view.zoom(this.t.target(), 0.25, this.t.timeAt(x), this.t.data.extent));
    }

    /** A plain wheel did nothing here: says which one zooms. */
    hintWheel() {
        clearTimeout(this.t.hint);
        this.t.parts.setNote("Hold Ctrl and turn the wheel to zoom");
        this.t.hint = window.setTimeout(() => {
            this.t.hint = 0;
            this.t.draw();
            this.t.parts.setNote("");
        }, 1500);
    }

    /** @param {string} key @param {boolean} isLarge with shift @returns {boolean} */
    key(key, isLarge) {
        const extent = this.t.data.extent;
        const w = this.t.target();
        const width = w.until - w.from;
        const by = (/** @type {number} */ part) => this.windowKey(view.pan(w, part * width * (isLarge ? 5 : 1), extent));
        switch (key.length === 1 ? key.toLowerCase() : key) {
            case "ArrowLeft": case "a": by(-0.1); return true;
            case "ArrowRight": case "d": by(0.1); return true;
            case "+": case "=": case "w": this.windowKey(view.zoom(w, isLarge ? 0.25 : 0.7, this.t.middle(), extent)); return true;
            case "-": case "_": case "s": this.windowKey(view.zoom(w, isLarge ? 4 : 1 / 0.7, this.t.middle(), extent)); return true;
            case "0": this.windowKey(view.whole(extent)); return true;
            case "Home": this.windowKey(view.pan(w, -w.from - extent, extent)); return true;
            case "End": this.windowKey(view.pan(w, extent * 2, extent)); return true;
            case "ArrowUp": this.rowKey(-1); return true;
            case "ArrowDown": this.rowKey(1); return true;
            case "PageUp": return this.t.scrollRows(this.t.rows.scroll - this.t.rows.height * 0.9);
            case "PageDown": return this.t.scrollRows(this.t.rows.scroll + this.t.rows.height * 0.9);
            case ",": void this.t.chooseNext(-1); return true;
            case ".": void this.t.chooseNext(1); return true;
            case "Enter": void this.t.choose(Math.max(0, this.t.cursorRow), (w.from + w.until) / 2); return true;
            case "f": if (this.t.selected) this.t.zoomTo(this.t.selected); return true;
            case "[": this.t.setPitch(this.t.rows.pitch / this.t.size.ratio - 2); return true;
            case "]": this.t.setPitch(this.t.rows.pitch / this.t.size.ratio + 2); return true;
            case "?": this.t.parts.toggleHelp(); return true;
            case "Escape":
                this.t.parts.toggleHelp(false);
                this.t.parts.hideTip();
                this.t.cursorRow = -1;
                if (this.t.selected) this.t.select(null);
                this.t.draw();
                return true;
            default: return false;
        }
    }

    /** @param {Window} w */
    windowKey(w) {
        this.t.moveTo(w);
        this.t.parts.say(windowSentence(w.from, w.until));
    }

    /** @param {number} by */
    rowKey(by) {
        const count = this.t.data.rowsCount;
        if (count === 0) return;
        this.t.cursorRow = Math.min(count - 1, Math.max(0, this.t.cursorRow < 0 ? view.rowsShown(this.t.rows).first : this.t.cursorRow + by));
        this.t.scrollRows(view.scrollTo(this.t.rows, this.t.cursorRow));
        const slot = this.t.data.slots.get(this.t.cursorRow);
        this.t.parts.say(slot ? `${slot.worker}, slot ${slot.slot}.` : `Row ${this.t.cursorRow + 1}.`);
        this.t.draw();
    }
}
