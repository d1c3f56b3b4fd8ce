/* What the cluster does now: slots by class, tasks a second, jobs, services, alarms, events. */
import { Chart } from "../chart.js";
import { classOf } from "../classes.js";
import { follow } from "../cluster_state.js";
import { h, morph, onFrame, svg } from "../dom.js";
import { ago, bytes, clock, count, counted, plain, rate, share } from "../format.js";
import { badge, empty, errorBox, figure, stack, table, time } from "../parts.js";
import { OP_COLORS } from "../timeline/colors.js";

const COLUMNS = 150;
/** The history begins with room for a minute. */
const COLUMNS_MIN = 30;
const COLUMN_MS = 1900;
const EVENTS_MAX = 12;
/** The cluster sends its state at least every 2 s. */
const OLD_MS = 6000;

/** @typedef {import("../cluster_state.js").Moment} Moment */
/** @typedef {import("../cluster_state.js").State} State */

/** One column for each moment, the newest on the right. @param {Moment[]} moments */
function history(moments) {
    const height = 110, width = 4 * Math.max(COLUMNS_MIN, moments.length);
    const bars = moments.map((m, i) => {
        let y = height;
        return m.parts.map((part) => {
            const size = (height * part.value) / Math.max(1, m.whole);
            y -= size;
            return svg("rect", { x: width - 4 * (moments.length - i), y: y.toFixed(1), width: 4.2, height: Math.max(0, size).toFixed(1), style: { fill: part.color } },
                svg("title", {}, `${part.name}: ${part.value} of ${m.whole}, ${clock(BigInt(m.at) * 1000000n)}`));
        });
    });
    return svg("svg", { class: "history", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": "Slots by what they do, since this page was opened" }, bars);
}

/** @param {Moment} m */
function legend(m) {
    return h("ul", { class: "legend" }, m.parts.map((p) => h("li", { key: p.name, title: classOf(p.name).group === "unknown" ? undefined : `A slot in this class ${classOf(p.name).means}.` },
        h("i", { style: { "background-color": p.color } }), p.name.replaceAll("_", " "), h("b", {}, `${count(p.value)} of ${count(m.whole)}`))));
}

/** @param {import("../../client/api.d.ts").ClusterEvent} e */
function eventText(e) {
    const subject = e.worker || (e.node && `node ${e.node}`) || (e.job && `job ${e.job}`) || (e.scheduler && `started, epoch ${e.epoch}`) || "";
    return `${plain(e.change)} ${subject}`.trim();
}

/** @param {State} s */
function figures(s) {
    return h("dl", { class: "figures", key: "figures" },
        figure("Slots", count(s.moment.whole), `of ${counted(s.workers, "worker")}`),
        figure("Slots that run tasks", count(s.busy), `${counted(s.ready, "task")} wait for a slot`),
        figure("Tasks done", count(s.tasksDone)),
        figure("Jobs in progress", count(s.jobsRunning)),
        figure("Object stores", s.budget ? share(s.stored, s.budget) : "–", `${bytes(s.stored)} of ${bytes(s.budget)}${s.spilled ? `, ${bytes(s.spilled)} on disk` : ""}`),
        figure("Memory of workers", bytes(s.memory)));
}

/** @param {State} s @param {import("../../client/api.d.ts").Job[]} latest that have ended */
function jobs(s, latest) {
    return [h("h2", {}, "Jobs in progress"), s.jobs.length ? table({ label: "Jobs in progress", rows: s.jobs, key: (r) => r.id, columns: [
        { title: "Job", isWide: true, cell: (r) => h("a", { href: `#/jobs/${encodeURIComponent(r.id)}` }, r.name || r.id) },
        { title: "Progress", cell: (r) => h("div", { class: "progress" }, stack([{ name: "done", value: r.done, color: "var(--good)" }, { name: "failed", value: r.failed, color: "var(--bad)" }], r.all, "Tasks"), h("small", {}, `${count(r.done + r.failed)} of ${count(r.all)}`)) },
        { title: "Submitted", cell: (r) => ago(r.created_ns) },
    ] }) : empty("No job is in progress.", "Start one: ", h("code", {}, "millrace run examples/hello.json"), ". ", h("a", { href: "#/jobs" }, "All jobs")),
    latest.length ? h("p", { class: "quiet" }, "Ended last: ", latest.map((j) => [h("a", { key: j.id, href: `#/jobs/${encodeURIComponent(j.id)}` }, j.name || j.id), " ", badge(j.state), " "])) : null];
}

/**
 * @param {import("../main.js").Context} c
 * @returns {import("../main.js").Page}
 */
export function openOverview(c) {
    c.title("Overview");
    const draw = onFrame(render);
    const { session } = c;
    const stop = new AbortController();
    /** @type {State | undefined} */
    let state;
    /** When the last state came. */
    let heard = 0;
    let wasOld = false;
    /** @type {any} */
    let problem;
    /** @type {Moment[]} */
    let moments = [];
    /** @type {{x: number[], ys: number[][]}} */
    const speed = { x: [], ys: [[]] };
    /** @type {Chart | undefined} */
    let chart;
    const ended = session.feed(async (api, signal) => (await api.jobs.list({ signal, page_size: 12 })).jobs.filter((j) => j.finished_ns).slice(0, 5), draw, 5000);

    /** @param {State} now */
    function onState(now) {
        const last = moments[moments.length - 1];
        if (!last || now.moment.at - last.at >= COLUMN_MS) {
            const gone = last && state ? (now.moment.at - last.at) / 1000 : 0;
            const perS = now.tasksPerS ?? (gone && state && now.tasksDone >= state.tasksDone ? Number(now.tasksDone - state.tasksDone) / gone : undefined);
            if (perS !== undefined) {
                speed.x.push(now.moment.at / 1000);
                speed.ys[0].push(perS);
                if (speed.x.length > 2 * COLUMNS) speed.x.shift(), speed.ys[0].shift();
                chart?.set(speed);
            }
            moments = [...moments, now.moment].slice(-COLUMNS);
        }
        state = now;
        heard = Date.now();
        draw();
    }

    async function start() {
        problem = undefined;
        try {
            await follow(session, stop.signal, onState);
        } catch (e) {
            if (stop.signal.aborted) return;
            problem = e;
            session.note(e);
            draw();
        }
    }

    /** @type {import("../../client/api.d.ts").ClusterEvent[]} */
    let events = [];
    async function listen() {
        try {
            for await (const event of session.watch((api, o) => api.cluster.watch({ ...o, without_jobs: true }), stop.signal)) {
                if (event.data.change === "CLUSTER_CHANGE_GAP") continue;
                events = [event.data, ...events].slice(0, EVENTS_MAX);
                draw();
            }
        } catch {
            // The list of events stays as it is; the session has noted the error.
        }
    }

    /** True: the last state may say nothing about the cluster as it is now. */
    const isOld = () => !!session.trouble || Date.now() - heard > OLD_MS;

    /** @param {State} s */
    function body(s) {
        const { moment: m } = s;
        const old = (wasOld = isOld());
        return [h("section", { class: `card alarms ${old || s.alarms.length ? "loud" : ""}`, "aria-label": "Alarms", key: "alarms" },
            old ? h("p", {}, h("strong", {}, `Not known: the last state is of ${clock(BigInt(heard) * 1000000n)}.`)) : s.alarms.length ? h("ul", {}, s.alarms.map((a) => h("li", { key: a.text }, h("strong", {}, `⚠ ${a.text} `), a.more))) : h("p", {}, "✓ Nothing is wrong: the cluster is ready, and every worker answers.")),
        figures(s),
        h("div", { class: "columns", key: "time" },
            h("section", { class: "card", key: "now" }, h("h2", {}, "What the slots do now"), m.whole ? [stack(m.parts, m.whole, "Slots now"), legend(m)] : empty("There is no slot.", "Start a worker: ", h("code", {}, "mr-worker"), ".")),
            h("section", { class: "card", key: "past" }, h("h2", {}, "Over the last minutes"), history(moments), h("p", { class: "quiet" }, "All slots since this page was opened, every 2 s; the newest is on the right.")),
            h("section", { class: "card", key: "speed" }, h("h2", {}, "Tasks a second"), h("div", { key: "chart", class: "keep", keep: true }))),
        h("section", { class: "card", key: "jobs" }, jobs(s, ended.data ?? [])),
        h("div", { class: "columns", key: "parts" },
            h("section", { class: "card", key: "services" }, h("h2", {}, "Services"), table({ label: "Services and their health", rows: s.services, key: (r) => r.name, columns: [
                { title: "Service", isWide: true, cell: (r) => r.name }, { title: "State", cell: (r) => badge(old ? "not known" : r.state) }, { title: "Uses", isWide: true, cell: (r) => r.more }] })),
            h("section", { class: "card", key: "events" }, h("h2", {}, "Events"), events.length ? h("ol", { class: "events" }, events.map((e) => h("li", { key: e.event_id }, time(e.time_ns), " ", eventText(e))))
                : h("p", { class: "quiet" }, "Workers and stores that join or leave are listed here.")))];
    }

    function render() {
        morph(c.root, h("h1", {}, "Overview"), problem ? errorBox(problem, start) : null, state ? body(state) : problem ? null : h("p", { class: "quiet loading" }, "Loading…"));
        const box = c.root.querySelector(".card .keep");
        if (!box || chart) return;
        chart = new Chart(/** @type {HTMLElement} */ (box), { lines: [{ name: "tasks a second", color: OP_COLORS[0] }], label: "Tasks a second since this page was opened", format: rate, least: 1 });
        chart.set(speed);
    }

    const age = setInterval(() => {
        if (state && isOld() !== wasOld) draw();
    }, 1000);
    start();
    listen();
    draw();
    return {
        close() {
            stop.abort();
            clearInterval(age);
            ended.close();
            chart?.close();
        },
        retheme() {
            chart?.retheme();
            draw();
        },
    };
}
