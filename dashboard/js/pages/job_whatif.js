/* How long this job would have taken with other slots, a faster network, faster operators, or without
 * some cost. The change stands in the address, so a link to a prediction makes it again. */
import { ApiError } from "../../client/millrace.js";
import { CLASSES, classOf, colorOf } from "../classes.js";
import { announce, h, morph, onFrame } from "../dom.js";
import { count, counted, duration, share } from "../format.js";
import { bar, empty, errorBox, figure, shown, stack, table } from "../parts.js";

/** @typedef {import("../../client/api.d.ts").WhatIfResponse} Prediction */
/** @typedef {import("../../client/api.d.ts").WhatIfOutcome} Outcome */

/** @typedef {{slots?: number, processors?: number, bandwidth?: number, free: string[], op_speed: string[]}} WhatIf */

const FREE = ["scheduler", "decide", "report", "send", "handoff", "transfer", "journal", "input", "output", "preempted"];
const OF_SCHEDULER = new Set(["decide", "report", "send"]);
const BUSY_TRIES = 20;
const BUSY_WAIT_MS = 1500;
const FAR_OFF = 0.05; // from then on, the page warns that the prediction is not exact

/** @param {URLSearchParams} query @returns {WhatIf} */
export function changeOf(query) {
    const number = (/** @type {string} */ name) => (query.get(name) ? Number(query.get(name)) : undefined);
    return { slots: number("slots"), processors: number("processors"), bandwidth: number("bandwidth"), free: query.getAll("free"), op_speed: query.getAll("op_speed") };
}

/** @param {WhatIf} change */
function queryOf(change) {
    const query = new URLSearchParams();
    if (change.slots !== undefined) query.set("slots", String(change.slots));
    if (change.processors !== undefined) query.set("processors", String(change.processors));
    if (change.bandwidth !== undefined) query.set("bandwidth", String(change.bandwidth));
    for (const name of change.free) query.append("free", name);
    for (const text of change.op_speed) query.append("op_speed", text);
    return query;
}

/** @param {WhatIf} change e.g. "8 slots, network × 2, without transfer" */
export function inWords(change) {
    const parts = [change.slots !== undefined ? counted(change.slots, "slot") : "", change.processors !== undefined ? `${counted(change.processors, "processor")} a node` : "", change.bandwidth !== undefined ? `network × ${change.bandwidth}` : "",
        change.free.length ? `without ${change.free.join(", ")}` : "", ...change.op_speed.map((text) => text.replace(/=([^=]*)$/, " × $1"))];
    return parts.filter(Boolean).join(", ") || "no change";
}

/** @param {bigint} now @param {bigint} before */
function difference(now, before) {
    if (!before) return "";
    const percent = (100 * (Number(now) - Number(before))) / Number(before);
    return `${percent < 0 ? "−" : "+"}${Math.abs(percent).toFixed(1)} %`;
}

/** @param {Outcome} o @param {bigint} longest @param {string} label */
function bars(o, longest, label) {
    const parts = CLASSES.filter((c) => o.classes[c.name]).map((c) => ({ name: c.name, value: Number(o.classes[c.name]), color: colorOf(c.name) }));
    const width = `${Math.max(1, (100 * Number(o.wall_ns)) / Math.max(1, Number(longest)))}%`;
    return [h("h3", {}, label, ` ${duration(o.wall_ns)} on ${counted(o.slots, "slot")}`),
        h("div", { style: { width } }, stack(parts, Number(o.wall_ns) * Number(o.slots), label))];
}

/** The page does not ask again by itself, because a prediction is work for the cluster.
 * @param {any} error @param {() => void} again */
function failure(error, again) {
    if (!(error instanceof ApiError) || !error.isTransient) return errorBox(error, again);
    return h("div", { class: "error", role: "alert", key: "problem" }, h("p", {}, h("strong", {}, error.message)),
        h("button", { type: "button", onclick: again }, "Try again"));
}

/** @param {Prediction} p @param {string} words */
function result(p, words) {
    const { recorded, replayed, predicted } = p;
    if (!recorded || !replayed || !predicted) return [empty("The answer is not complete.", "The cluster is of another version than this page.")];
    const names = [...CLASSES.map((c) => c.name), ...Object.keys(predicted.classes).filter((name) => !CLASSES.some((c) => c.name === name))];
    const rows = names.map((name) => ({ name, was: recorded.classes[name] ?? 0n, is: predicted.classes[name] ?? 0n, path: predicted.critical_path[name] ?? 0n })).filter((r) => r.was || r.is);
    const largest = rows.reduce((n, r) => [n, r.was, r.is].reduce((a, b) => (a > b ? a : b)), 1n);
    const sum = (/** @type {"was" | "is" | "path"} */ name) => rows.reduce((n, r) => n + r[name], 0n);
    const longest = recorded.wall_ns > predicted.wall_ns ? recorded.wall_ns : predicted.wall_ns;
    const off = Math.abs(Number(replayed.wall_ns - recorded.wall_ns)) / Math.max(1, Number(recorded.wall_ns));
    return [
        h("section", { class: "card", key: "sum" }, h("h2", {}, `Predicted: ${words}`), h("dl", { class: "figures flat" },
            figure("Recorded", duration(recorded.wall_ns), `on ${counted(recorded.slots, "slot")}`),
            figure("Predicted", duration(predicted.wall_ns), `on ${counted(predicted.slots, "slot")}`),
            figure("Difference", difference(predicted.wall_ns, recorded.wall_ns) || "–", `${duration(predicted.wall_ns - recorded.wall_ns)}`),
            figure("Longest chain of tasks", duration(predicted.chain_ns), "no prediction is shorter"),
            figure("Replay without a change", duration(replayed.wall_ns), `${difference(replayed.wall_ns, recorded.wall_ns)} from what was recorded`)),
        off > FAR_OFF ? h("p", { class: "error" }, `A replay without a change differs from the recorded time by ${share(off * 1000, 1000)}. Do not expect the prediction to be more exact.`) : null,
        p.other_ns ? h("p", { class: "error" }, `Slots ran tasks of other jobs for ${duration(p.other_ns)}; the prediction leaves them out.`) : null,
        p.restricted ? h("p", { class: "error" }, `${counted(p.restricted, "task")} of the job name workers or ask for resources; the prediction ignores this and runs them on any worker.`) : null,
        p.not_recorded ? h("p", { class: "error" }, `${counted(p.not_recorded, "attempt")} were not recorded; the prediction leaves them out.`) : null),
        h("section", { class: "card", key: "account" }, h("h2", {}, "The account"), bars(recorded, longest, "Recorded"), bars(predicted, longest, "Predicted"),
            h("p", { class: "quiet" }, "On the critical path, the class dependency is the time in which a task ran."),
            table({ label: "Recorded and predicted time of all slots by class", rows, key: (r) => r.name, columns: [
                { title: "Class", cell: (r) => [h("i", { class: "swatch", style: { "background-color": colorOf(r.name) } }), h("b", { title: `The slot ${classOf(r.name).means}.` }, r.name)] },
                { title: "Recorded", isNumber: true, cell: (r) => duration(r.was) }, { title: "Predicted", isNumber: true, cell: (r) => duration(r.is) },
                { title: "", cell: (r) => [bar(Number(r.was), Number(largest), "var(--idle)"), bar(Number(r.is), Number(largest), colorOf(r.name))] },
                { title: "On the predicted critical path", isNumber: true, cell: (r) => duration(r.path) },
            ], foot: h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, "Sum"), h("td", { class: "number" }, duration(sum("was"))), h("td", { class: "number" }, duration(sum("is"))), h("td", {}), h("td", { class: "number" }, duration(sum("path"))))) })),
    ];
}

/**
 * @param {import("./job.js").JobContext} c
 * @returns {import("./job.js").View}
 */
export function openWhatIf(c) {
    const draw = onFrame(render);
    let form = changeOf(c.route.query);
    /** @type {{state: "asking", words: string} | {state: "busy", words: string} | {state: "done", words: string, answer: Prediction} | {state: "failed", error: any} | undefined} */
    let outcome;
    let stop = new AbortController();
    const profile = c.session.feed((api, signal) => api.jobs.profile(c.id, { signal, steps_max: 1 }), draw, () => (c.isOver() ? undefined : 5000));

    async function predict() {
        stop.abort();
        const { signal } = (stop = new AbortController());
        const words = inWords(form);
        outcome = { state: "asking", words };
        announce("A prediction is being made.");
        draw();
        try {
            const answer = await ask(signal, words);
            outcome = { state: "done", words, answer };
            announce(`Predicted: ${answer.predicted ? duration(answer.predicted.wall_ns) : "nothing"}.`);
        } catch (error) {
            if (signal.aborted) return;
            if (!(error instanceof ApiError) || error.status === 401) c.session.note(error);
            outcome = { state: "failed", error };
        }
        draw();
    }

    /** Asks again while other predictions are being made. @param {AbortSignal} signal @param {string} words @returns {Promise<Prediction>} */
    async function ask(signal, words) {
        for (let tries = 1; ; tries++) {
            try {
                const answer = await c.session.client.jobs.whatIf(c.id, { ...form, signal });
                c.session.note(undefined);
                return answer;
            } catch (error) {
                if (signal.aborted || !(error instanceof ApiError) || error.status !== 429 || tries === BUSY_TRIES) throw error;
                outcome = { state: "busy", words };
                draw();
            }
            await new Promise((wake) => setTimeout(wake, BUSY_WAIT_MS));
            if (signal.aborted) throw signal.reason;
        }
    }

    function cancel() {
        stop.abort();
        outcome = undefined;
        draw();
    }

    /** @param {HTMLFormElement} element @returns {WhatIf} */
    function read(element) {
        const data = new FormData(element);
        const number = (/** @type {string} */ name) => (data.get(name) ? Number(data.get(name)) : undefined);
        /** @type {string[]} */
        const op_speed = [];
        for (const input of element.querySelectorAll("input[data-op]")) {
            const { dataset, value } = /** @type {HTMLInputElement} */ (input);
            if (value && Number(value) !== 1) op_speed.push(`${dataset.op}=${Number(value)}`);
        }
        return { slots: number("slots"), processors: number("processors"), bandwidth: number("bandwidth"), free: data.getAll("free").map(String), op_speed };
    }

    /** What is typed stays when the page is drawn again. @param {Event} event */
    function input(event) {
        form = read(/** @type {HTMLFormElement} */ (event.currentTarget));
    }

    /** @param {SubmitEvent} event */
    function submit(event) {
        event.preventDefault();
        form = read(/** @type {HTMLFormElement} */ (event.currentTarget));
        c.go(queryOf(form), true);
        predict();
    }

    function reset() {
        form = { free: [], op_speed: [] };
        for (const input of c.root.querySelectorAll("input")) {
            input.value = input.type === "checkbox" ? input.value : "";
            input.checked = false;
        }
        c.go(new URLSearchParams(), true);
        cancel();
    }

    /** @param {import("../../client/api.d.ts").ProfileResponse} p */
    function questions(p) {
        const speeds = new Map(form.op_speed.map((text) => [text.slice(0, text.lastIndexOf("=")), text.slice(text.lastIndexOf("=") + 1)]));
        const isAsking = outcome?.state === "asking" || outcome?.state === "busy";
        return h("form", { class: "whatif", onsubmit: submit, oninput: input },
            h("div", { class: "filters" },
                h("label", {}, `Slots (recorded: ${count(p.slots)})`, h("input", { type: "number", name: "slots", min: 1, max: 1048576, step: 1, value: form.slots ?? "", placeholder: String(p.slots) })),
                h("label", {}, `Processors of each node (recorded: ${p.processors ? count(p.processors) : "not known"})`, h("input", { type: "number", name: "processors", min: 1, max: 1048576, step: 1, value: form.processors ?? "", placeholder: p.processors ? String(p.processors) : "one a thread" })),
                h("label", {}, "The network is … times as fast", h("input", { type: "number", name: "bandwidth", min: 0.000001, max: 1000000, step: "any", value: form.bandwidth ?? "", placeholder: "1" }))),
            h("fieldset", {}, h("legend", {}, "Without the time of"), h("div", { class: "row" }, FREE.map((name) => h("label", { class: "check" },
                h("input", { type: "checkbox", name: "free", value: name, checked: form.free.includes(name) }), name === "scheduler" ? "scheduler (decide, report, send)" : name,
                name !== "scheduler" && !OF_SCHEDULER.has(name) ? h("span", { class: "quiet" }, ` ${share(p.classes[name] ?? 0n, p.slot_ns)}`) : null)))),
            p.ops.length ? h("details", { open: form.op_speed.length > 0 }, h("summary", {}, "Operators that are faster or slower"),
                table({ label: "Speed of operators", rows: p.ops, key: (o) => o.op, columns: [
                    { title: "Operator", cell: (o) => h("code", {}, o.op) }, { title: "Wall", isNumber: true, cell: (o) => duration(o.wall_ns) },
                    { title: "… times as fast", cell: (o) => h("input", { type: "number", "data-op": o.op, "aria-label": `${o.op} is so many times as fast`, min: 0.000001, max: 1000000, step: "any", value: speeds.get(o.op) ?? "", placeholder: "1" }) },
                ] })) : null,
            h("div", { class: "row" }, h("button", { type: "submit", class: "main", disabled: isAsking }, "Predict"),
                isAsking ? h("button", { type: "button", onclick: cancel }, "Stop") : h("button", { type: "button", onclick: reset }, "Reset")));
    }

    function answer() {
        if (!outcome) return null;
        if (outcome.state === "asking") return h("p", { class: "quiet loading", role: "status", key: "asking" }, `Predicting: ${outcome.words}. The job runs again in virtual time, which may take some seconds.`);
        if (outcome.state === "busy") return h("p", { class: "quiet loading", role: "status", key: "busy" }, "Another prediction is being made. The page asks again by itself.");
        if (outcome.state === "failed") return failure(outcome.error, predict);
        return result(outcome.answer, outcome.words);
    }

    function render() {
        if (!c.isOver()) {
            morph(c.root, h("section", { class: "card" }, empty("The job is not over.", "A prediction replays a job that has ended. The form appears when the job has ended.")));
            return;
        }
        morph(c.root, h("section", { class: "card", key: "form" }, h("h2", {}, "What if …"),
            h("p", {}, "How long would the job have taken on another cluster? The recorded tasks run again in virtual time, on the scheduler's and the workers' own code."),
            shown(profile, questions)), answer(),
        h("p", { class: "quiet", key: "caveats" }, "A prediction ignores other jobs and programs that ran at the same time, lack of memory, spilling, resources, named workers, and attempts that failed. Each task keeps its recorded CPU time, so a real cluster is slower if more tasks than before compete for memory and caches."));
    }

    if (c.isOver() && c.route.query.toString()) predict();
    draw();
    return {
        close() {
            stop.abort();
            profile.close();
        },
        update() {
            profile.refresh();
            draw();
        },
        change(route) {
            form = changeOf(route.query);
            if (route.query.toString()) predict();
            else cancel();
        },
        retheme: draw,
    };
}
