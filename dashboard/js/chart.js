/* Curves over time. uPlot draws them if this installation has it (vendor/uplot/); otherwise they are
 * plain lines of SVG. Both have the same data below as a list for screen readers. */
import { h, svg } from "./dom.js";
import { decimal, rate } from "./format.js";
import { theme } from "./theme.js";

/** @typedef {{name: string, color: {light: string, dark: string}, dash?: number[]}} Line */
/** @typedef {{x: number[], ys: Array<Array<number | null>>}} Points `x` in seconds */

/** How uPlot writes times: 24 hours, without dates. */
const CLOCK = [[3600, "{HH}:{mm}", null, null, null, null, null, null, 1], [60, "{HH}:{mm}", null, null, null, null, null, null, 1], [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1]];

/** Distances of ticks on an axis of bytes: ticks are whole numbers of KiB, MiB and so on. */
const POWERS_OF_TWO = Array.from({ length: 50 }, (_, i) => 2 ** i);

/** @type {Promise<any> | undefined} */
let loading;

/** uPlot, or undefined. Asks for it once. */
function uPlot() {
    loading ??= (async () => {
        try {
            const module = await import("../vendor/uplot/uPlot.esm.js");
            document.head.append(h("link", { rel: "stylesheet", href: "vendor/uplot/uPlot.min.css" }));
            return module.default;
        } catch {
            return undefined;
        }
    })();
    return loading;
}

/** @param {string} name of a CSS variable */
function css(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export class Chart {
    /**
     * @param {HTMLElement} box an element that the page keeps (`keep`)
     * @param {{lines: Line[], label: string, height?: number, format?: (v: number) => string, isClock?: boolean, xLabel?: string, least?: number, isBytes?: boolean}} o
     *   `isClock`: x is seconds since 1970, else any number; `least`: the vertical axis begins at 0 and
     *   ends there or higher
     */
    constructor(box, o) {
        this.box = box;
        this.o = o;
        /** @type {any} */
        this.plot = undefined;
        /** @type {Points} */
        this.points = { x: [], ys: [] };
        this.isClosed = false;
        this.box.classList.add("chart");
        this.box.setAttribute("role", "img");
        this.resize = new ResizeObserver(() => this.#fit());
        this.resize.observe(box);
        uPlot().then((Plot) => {
            if (this.isClosed || !Plot) return;
            this.Plot = Plot;
            this.#make();
        });
    }

    #width() {
        return Math.max(200, this.box.clientWidth);
    }

    #make() {
        const { o } = this;
        const axis = { stroke: css("--quiet"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line") } };
        const isClock = o.isClock ?? true;
        const format = o.format ?? decimal;
        const values = (/** @type {any} */ _, /** @type {number[]} */ v) => v.map((one) => (!o.format && Math.abs(one) >= 1e4 ? rate(one) : format(one)));
        // As wide as its longest number, which has about 7 pixels a character.
        const size = (/** @type {any} */ _, /** @type {string[] | null} */ v) => 20 + 7 * Math.max(3, ...(v ?? []).map((text) => text.length));
        const range = (/** @type {any} */ _, /** @type {number | null} */ min, /** @type {number | null} */ max) => [Math.min(0, min ?? 0), Math.max(o.least ?? 0, 1.1 * (max ?? 0))];
        const named = o.xLabel ? { label: o.xLabel, labelSize: 18, labelGap: 0, labelFont: "12px system-ui, sans-serif" } : {};
        this.box.replaceChildren();
        this.plot = new this.Plot({
            width: this.#width(), height: o.height ?? 160, legend: { show: o.lines.length > 1 }, cursor: { drag: { x: false, y: false } },
            scales: { x: { time: isClock }, y: o.least === undefined ? {} : { range } },
            axes: [isClock ? { ...axis, size: 30, space: 90, values: CLOCK } : { ...axis, ...named, size: 30, space: 70, values: (/** @type {any} */ _, /** @type {number[]} */ v) => v.map(rate) },
                { ...axis, size, values, ...(o.isBytes ? { incrs: POWERS_OF_TWO } : {}) }],
            series: [{ label: o.xLabel ?? "time" }, ...o.lines.map((l) => ({ label: l.name, stroke: l.color[theme()], width: 2, dash: l.dash, spanGaps: true,
                points: { show: false }, value: (/** @type {any} */ _, /** @type {any} */ v) => (v === null || v === undefined ? "–" : format(v)) }))],
        }, [this.points.x, ...this.points.ys], this.box);
    }

    #fit() {
        if (this.plot) this.plot.setSize({ width: this.#width(), height: this.o.height ?? 160 });
        else this.#lines();
    }

    /** @param {Points} points @param {string} [label] a new name of the chart */
    set(points, label = this.o.label) {
        this.points = points;
        this.o.label = label;
        const format = this.o.format ?? decimal;
        const last = this.o.lines.map((l, i) => {
            const value = (points.ys[i] ?? []).findLast((v) => v !== null);
            return `${l.name} ${value === undefined || value === null ? "has no value yet" : `is ${format(value)}`}`;
        });
        this.box.setAttribute("aria-label", `${this.o.label}. ${last.join(", ")}.`);
        if (this.plot) this.plot.setData([points.x, ...points.ys]);
        else this.#lines();
    }

    /** Other colours: light or dark. */
    retheme() {
        if (!this.plot) return this.#lines();
        this.plot.destroy();
        this.#make();
    }

    #lines() {
        const { x, ys } = this.points;
        const width = this.#width(), height = this.o.height ?? 160, format = this.o.format ?? decimal;
        const values = ys.flat().filter((v) => v !== null);
        const max = Math.max(...values, this.o.least ?? 0) || 1, min = Math.min(...values, 0);
        const from = x[0] ?? 0, until = x[x.length - 1] ?? 1;
        const paths = this.o.lines.map((l, i) => {
            const at = (ys[i] ?? []).flatMap((v, k) => v === null ? [] : [`${(((x[k] - from) / (until - from || 1)) * (width - 2) + 1).toFixed(1)},${(height - 2 - ((v - min) / (max - min)) * (height - 20)).toFixed(1)}`]);
            return svg("polyline", { points: at.join(" "), fill: "none", stroke: l.color[theme()], "stroke-width": 2 });
        });
        this.box.replaceChildren(svg("svg", { width, height, "aria-hidden": "true" }, paths),
            h("p", { class: "legend" }, this.o.lines.map((l) => h("span", {}, h("i", { style: { "background-color": l.color[theme()] } }), l.name)),
                h("span", { class: "quiet" }, `from ${format(min)} to ${format(max)}`)));
    }

    close() {
        this.isClosed = true;
        this.resize.disconnect();
        this.plot?.destroy();
    }
}
