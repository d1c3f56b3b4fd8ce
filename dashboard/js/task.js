/* What is known about one task: why it is where it is, its times, its arguments, its log. */
import { h } from "./dom.js";
import { bytes, duration } from "./format.js";
import { badge, errorBox, isMissing, time } from "./parts.js";

/** @typedef {import("../client/api.d.ts").Explanation} Explanation */
/** @typedef {import("../client/api.d.ts").LogsResponse} Log */

/** @param {import("../client/api.d.ts").TaskTimes | undefined} t */
function timesOf(t) {
    if (!t || !t.ready_ns) return null;
    /** @type {Array<[string, bigint, bigint]>} name, time, time before */
    const rows = [["ready", t.ready_ns, 0n], ["sent", t.sent_ns, t.ready_ns], ["received by the worker", t.received_ns, t.sent_ns], ["last input there", t.inputs_ns, t.received_ns],
        ["started", t.started_ns, t.inputs_ns || t.received_ns || t.sent_ns], ["ended", t.finished_ns, t.started_ns], ["end known to the scheduler", t.accounted_ns, t.finished_ns]];
    return h("table", { class: "small" }, h("caption", {}, "Times of the last attempt"), h("tbody", {}, rows.filter((r) => r[1]).map(([name, at, before]) =>
        h("tr", {}, h("th", { scope: "row" }, name), h("td", {}, time(at)), h("td", { class: "number" }, before ? `after ${duration(at - before)}` : "")))));
}

/** One task of a job. `draw` is called when something more is known. */
export class Task {
    /**
     * @param {import("./session.js").Session} session
     * @param {string} job
     * @param {string} key
     * @param {() => void} draw
     */
    constructor(session, job, key, draw) {
        this.job = job;
        this.key = key;
        /** @type {Explanation | undefined} */
        this.explanation = undefined;
        /** @type {Log | undefined} */
        this.log = undefined;
        /** @type {any} */
        this.error = undefined;
        this.stop = new AbortController();
        const { signal } = this.stop;
        (async () => {
            try {
                this.explanation = await session.client.jobs.explain(job, key, { signal });
                draw();
                this.log = await session.client.jobs.logs(job, key, { signal });
            } catch (e) {
                if (signal.aborted) return;
                if (!this.explanation || !isMissing(e)) this.error = e;
            }
            draw();
        })();
    }

    show() {
        const e = this.explanation;
        if (!e) return this.error ? errorBox(this.error) : h("p", { class: "quiet loading" }, "Asking about the task…");
        return h("div", { class: "task" }, h("p", {}, badge(e.state), " ", h("strong", {}, e.sentence)),
            e.reasons.length ? h("ul", {}, e.reasons.map((r) => h("li", {}, r))) : null,
            h("dl", { class: "facts" }, e.error && !e.sentence.includes(e.error.message) ? [h("dt", {}, "Error"), h("dd", {}, e.error.message)] : null,
                e.error ? [h("dt", {}, "Arguments"), h("dd", {}, h("code", {}, e.error.arguments || "none")), h("dt", {}, "Attempts"), h("dd", {}, String(e.error.attempts))] : null,
                h("dt", {}, "Operator"), h("dd", {}, e.op || "none: a literal or a stored object"), e.worker ? [h("dt", {}, "Worker"), h("dd", {}, e.worker)] : null,
                e.nbytes ? [h("dt", {}, "Value"), h("dd", {}, `${bytes(e.nbytes)}${e.place ? `, ${e.place}` : ""}`)] : null,
                e.waits_for.length ? [h("dt", {}, "Waits for"), h("dd", {}, e.waits_for.slice(0, 20).join(", "))] : null,
                e.needed_by.length ? [h("dt", {}, "Needed by"), h("dd", {}, e.needed_by.slice(0, 20).join(", "))] : null),
            timesOf(e.times),
            this.log?.text ? [h("h4", {}, `What attempt ${this.log.attempt} wrote on ${this.log.worker}${this.log.cut ? " (the end of it)" : ""}`), h("pre", { class: "log", tabindex: "0" }, this.log.text)] : null,
            this.log && !this.log.text ? h("p", { class: "quiet" }, "The task wrote nothing.") : null,
            this.error ? errorBox(this.error) : null);
    }

    close() {
        this.stop.abort();
    }
}
