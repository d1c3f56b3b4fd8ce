/* Live curves of all scores of one or several trainings, one chart for each score. The scores are the
 * entries of the trainings' channels: JSON objects with numbers. */
import { Chart } from "./chart.js";
import { h, onFrame } from "./dom.js";
import { errorBox } from "./parts.js";
import { OP_COLORS } from "./timeline/colors.js";

const POINTS_MAX = 5000;
/** The last scores of a training have come if none came for this time. */
const QUIET_MS = 5000;
const DASHES = [undefined, [6, 3], [2, 2], [8, 3, 2, 3], [4, 4], [10, 4]];
/** Numbers of an entry that place the point, or describe the evaluation. */
const NOT_SCORES = new Set(["step", "steps", "version", "epoch", "examples", "time_s", "time_ns", "seconds", "generation", "seed", "restores", "wall_s", "elapsed_s"]);
/** Names of the horizontal axis, the best first. */
const AXES = ["step", "steps", "version"];

/**
 * @typedef {object} Run
 * @property {string} name
 * @property {string} channel
 * @property {() => boolean} isOver the training has ended
 */
/** @typedef {{x: number, fields: {[name: string]: number}}} Point */

/**
 * Joins the points of several runs: one list of x for all, and null where a run has no point. No DOM.
 * @param {Point[][]} runs @param {string} field
 * @returns {import("./chart.js").Points}
 */
export function join(runs, field) {
    const x = [...new Set(runs.flatMap((points) => points.filter((p) => field in p.fields).map((p) => p.x)))].sort((a, b) => a - b);
    const at = new Map(x.map((v, i) => [v, i]));
    const ys = runs.map((points) => {
        /** @type {Array<number | null>} */
        const y = new Array(x.length).fill(null);
        for (const p of points) if (field in p.fields) y[/** @type {number} */ (at.get(p.x))] = p.fields[field];
        return y;
    });
    return { x, ys };
}

export class Curves {
    /**
     * @param {import("./session.js").Session} session
     * @param {Run[]} runs
     * @param {() => void} draw called when there is a new chart
     */
    constructor(session, runs, draw) {
        this.session = session;
        this.runs = runs;
        this.draw = draw;
        /** @type {Point[][]} */
        this.points = runs.map(() => []);
        /** @type {string[]} */
        this.fields = [];
        /** @type {Map<string, Chart>} */
        this.charts = new Map();
        /** @type {any[]} of each run */
        this.errors = runs.map(() => undefined);
        this.stops = runs.map(() => new AbortController());
        this.refresh = onFrame(() => this.#set());
        runs.forEach((_, i) => this.#follow(i));
    }

    /** Reads the scores of run `i`, from the first to the last one. @param {number} i */
    async #follow(i) {
        const run = this.runs[i], stop = this.stops[i];
        this.errors[i] = undefined;
        this.points[i] = [];
        let isOpen = false, heard = 0;
        const onLink = (/** @type {boolean} */ now) => {
            isOpen = now;
            heard = Date.now();
        };
        // The stream of a channel has no end of its own.
        const timer = setInterval(() => {
            if (isOpen && run.isOver() && Date.now() - heard > QUIET_MS) stop.abort();
        }, 1000);
        try {
            for await (const { data, gap } of this.session.watch((api, o) => api.channels.watch(run.channel, o), stop.signal, { onLink })) {
                heard = Date.now();
                if (gap) continue;
                this.#add(i, JSON.parse(data.value_json), Number(data.time_ns) / 1e9);
            }
        } catch (e) {
            if (stop.signal.aborted) return;
            this.errors[i] = e;
            this.draw();
        } finally {
            clearInterval(timer);
        }
    }

    /** @param {number} i @param {any} value @param {number} at seconds since 1970 */
    #add(i, value, at) {
        if (value === null || typeof value !== "object") return;
        const fields = Object.fromEntries(Object.entries(value).filter(([name, v]) => typeof v === "number" && !NOT_SCORES.has(name)));
        const axis = AXES.find((name) => typeof value[name] === "number");
        const points = this.points[i];
        points.push({ x: axis ? value[axis] : at, fields });
        if (points.length > POINTS_MAX) points.splice(0, points.length - POINTS_MAX);
        for (const name of Object.keys(fields)) {
            if (this.fields.includes(name)) continue;
            this.fields.push(name);
            this.draw();
        }
        this.refresh();
    }

    #set() {
        for (const [field, chart] of this.charts) chart.set(join(this.points, field));
    }

    show() {
        const again = (/** @type {number} */ i) => {
            this.#follow(i);
            this.draw();
        };
        const errors = this.errors.map((e, i) => e && h("div", { key: `error ${i}` }, h("p", {}, `The scores of ${this.runs[i].name} cannot be read.`), errorBox(e, () => again(i))));
        if (!this.fields.length) return [errors, errors.every(Boolean) ? null : h("p", { class: "quiet loading" }, "The first score has not come yet.")];
        return [errors, h("div", { class: "columns curves", key: "charts" }, this.fields.map((f) => h("div", { key: f }, h("h3", {}, f.replaceAll("_", " ")), h("div", { key: "box", keep: true, "data-curve": f }))))];
    }

    /** Makes the charts of new boxes. @param {Element} root in which show() stands */
    attach(root) {
        for (const box of root.querySelectorAll("[data-curve]")) {
            const field = /** @type {HTMLElement} */ (box).dataset.curve ?? "";
            const old = this.charts.get(field);
            if (old?.box === box) continue;
            old?.close();
            this.charts.set(field, new Chart(/** @type {HTMLElement} */ (box), { label: `Curve of ${field}`, isClock: false, xLabel: "step",
                lines: this.runs.map((r, i) => ({ name: r.name, color: OP_COLORS[i % OP_COLORS.length], dash: DASHES[i % DASHES.length] })) }));
            this.refresh();
        }
    }

    retheme() {
        for (const chart of this.charts.values()) chart.retheme();
    }

    close() {
        for (const stop of this.stops) stop.abort();
        for (const chart of this.charts.values()) chart.close();
    }
}
