/* What processes used in the last ten minutes: processors, memory, network, waiting tasks. */
import { Chart } from "./chart.js";
import { h } from "./dom.js";
import { bytes, count } from "./format.js";
import { empty, isMissing, shown } from "./parts.js";
import { OP_COLORS } from "./timeline/colors.js";

/** @typedef {import("../client/api.d.ts").ProcessSeries} Process */
/** @typedef {{name: string, title: string, format: (v: number) => string, scale: number, least: number, isBytes?: boolean}} Kind `least`: the axis ends there or higher */

/** @type {Kind[]} */
const KINDS = [
    { name: "cpu_milli", title: "Processors in use", format: (v) => v.toFixed(2), scale: 0.001, least: 0.1 },
    { name: "memory_bytes", title: "Memory", format: bytes, scale: 1, least: 1024, isBytes: true },
    { name: "received_bytes", title: "Received a second", format: bytes, scale: 1, least: 1024, isBytes: true },
    { name: "sent_bytes", title: "Sent a second", format: bytes, scale: 1, least: 1024, isBytes: true },
    { name: "spilled_bytes", title: "Objects on disk and not in memory", format: bytes, scale: 1, least: 1024, isBytes: true },
    { name: "written_bytes", title: "Written to disk a second", format: bytes, scale: 1, least: 1024, isBytes: true },
    { name: "queued", title: "Tasks that wait", format: count, scale: 1, least: 4 },
];

export class Samples {
    /** @param {import("./session.js").Session} session @param {() => void} draw */
    constructor(session, draw) {
        this.draw = draw;
        this.chosen = "scheduler";
        /** @type {Map<string, Chart>} */
        this.charts = new Map();
        this.feed = session.feed((api, signal) => api.cluster.samples({ signal, page_size: 1000, points_max: 100 }), draw, 5000);
    }

    get process() {
        const all = this.feed.data?.processes ?? [];
        return all.find((p) => p.process === this.chosen) ?? all[0];
    }

    show() {
        if (isMissing(this.feed.error) || (!this.feed.data && !this.feed.error)) return null;
        const all = this.feed.data?.processes ?? [];
        const choose = (/** @type {Event} */ e) => {
            this.chosen = /** @type {HTMLSelectElement} */ (e.target).value;
            this.draw();
        };
        return h("section", { class: "card", key: "samples" }, h("h2", {}, "Use over the last ten minutes"), shown(this.feed, () => all.length ? [
            h("div", { class: "filters" }, h("label", {}, "Process", h("select", { onchange: choose }, all.map((p) => h("option", { value: p.process, selected: p.process === this.process?.process }, p.process))))),
            h("div", { class: "columns" }, KINDS.filter((k) => this.process?.series.some((s) => s.name === k.name)).map((k) => h("div", { key: k.name }, h("h3", {}, k.title), h("div", { key: "box", keep: true, "data-samples": k.name }))))]
            : empty("No process has reported yet.", "Processes report every few seconds.")));
    }

    /** Fills the charts that show() made. @param {Element} root */
    attach(root) {
        const data = this.feed.data, process = this.process;
        const boxes = new Set(root.querySelectorAll("[data-samples]"));
        for (const [name, chart] of this.charts)
            if (!boxes.has(chart.box)) {
                chart.close();
                this.charts.delete(name);
            }
        if (!data || !process) return;
        for (const box of boxes) {
            const kind = KINDS.find((k) => k.name === /** @type {HTMLElement} */ (box).dataset.samples);
            const series = process.series.find((s) => s.name === kind?.name);
            if (!kind || !series) continue;
            const lines = [{ name: "mean", color: OP_COLORS[0] }, { name: "largest", color: OP_COLORS[1], dash: [4, 3] }];
            const label = `${kind.title}, ${process.process}`;
            const chart = this.charts.get(kind.name) ?? new Chart(/** @type {HTMLElement} */ (box), { label, format: kind.format, lines, least: kind.least, isBytes: kind.isBytes });
            this.charts.set(kind.name, chart);
            chart.set({ x: process.interval.map((i) => (Number(data.from_ns) + i * Number(data.step_ns)) / 1e9), ys: [series.mean, series.max].map((v) => v.map((n) => Number(n) * kind.scale)) }, label);
        }
    }

    retheme() {
        for (const chart of this.charts.values()) chart.retheme();
    }

    close() {
        this.feed.close();
        for (const chart of this.charts.values()) chart.close();
    }
}
