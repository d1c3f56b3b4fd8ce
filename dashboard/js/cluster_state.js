/* What the overview shows, from one of two sources: the stream Cluster.Live, or, if the cluster is older
 * and has no such stream, requests every two seconds. */
import { colorOf } from "./classes.js";
import { ago, bytes, counted, duration, share } from "./format.js";
import { isMissing } from "./parts.js";

/** @typedef {{name: string, value: number, color: string}} Part */
/** What the slots do at one moment. @typedef {{at: number, parts: Part[], whole: number}} Moment */
/** @typedef {{name: string, state: string, more: string}} Service */
/** @typedef {{id: string, name: string, created_ns: bigint, done: number, failed: number, all: number}} JobRow */

/**
 * @typedef {object} State
 * @property {Moment} moment
 * @property {number} workers connected
 * @property {number} busy slots that run tasks
 * @property {bigint} ready tasks that wait for a slot
 * @property {bigint} tasksDone
 * @property {number | undefined} tasksPerS undefined: not known yet
 * @property {bigint} jobsRunning
 * @property {JobRow[]} jobs
 * @property {number} memory of workers, in bytes
 * @property {number} stored bytes of objects in memory
 * @property {number} budget of object stores, in bytes
 * @property {number} spilled bytes
 * @property {Array<{text: string, more: string}>} alarms
 * @property {Service[]} services
 */

/** What to do about an alarm, by its kind. */
const ADVICE = /** @type {{[kind: string]: string}} */ ({ redis_away: "Jobs cannot be submitted until Redis is back. Look at its log and its disk.", recovering: "It goes on when they return, or when their lease is over.",
    no_worker: "Start a worker: no task can run.", no_store: "Start an object store: no large value can be kept.", worker_silent: "Its tasks run elsewhere when its lease ends. Look at its log and its machine.",
    worker_lost: "Its tasks run elsewhere. Look at its log and its machine.", store_silent: "Values of this node cannot be read now.", store_lost: "Values that were only there are computed again.",
    store_full: "Forget jobs, delete objects, or give the store more memory.", disk_full: "Delete objects or files: values cannot be spilled or persisted.", service_silent: "Look at its log." });
const HEALTH = /** @type {{[health: string]: string}} */ ({ ok: "connected", away: "lost", silent: "silent", full: "lost" });
const KINDS = /** @type {{[kind: string]: string}} */ ({ redis: "Redis", scheduler: "Scheduler", gateway: "Gateway", trainer: "Trainer", objectstore: "Object store" });

/** @param {import("../client/api.d.ts").LiveState} l @returns {State} */
export function fromLive(l) {
    /** @type {Map<string, number>} */
    const classes = new Map();
    for (const d of l.doing) classes.set(d.class, (classes.get(d.class) ?? 0) + d.slots);
    const parts = [...classes].map(([name, value]) => ({ name, value, color: colorOf(name) }));
    return {
        moment: { at: Number(l.time_ns / 1000000n), whole: l.slots, parts },
        workers: l.workers_connected, busy: classes.get("compute") ?? 0, ready: l.tasks_ready, tasksDone: l.tasks_done, tasksPerS: Number(l.tasks_per_s), jobsRunning: l.jobs_running,
        jobs: l.jobs.map((j) => ({ id: j.id, name: j.name, created_ns: j.created_ns, done: j.ended - j.failed, failed: j.failed, all: j.tasks })),
        memory: Number(l.memory?.workers_used_bytes ?? 0), stored: Number(l.memory?.stores_used_bytes ?? 0), budget: Number(l.memory?.stores_bytes ?? 0), spilled: Number(l.memory?.spilled_bytes ?? 0),
        alarms: l.alarms.map((a) => ({ text: a.text, more: ADVICE[a.kind] ?? "" })),
        services: l.services.map((s) => ({ name: s.kind === s.name ? KINDS[s.kind] ?? s.name : `${KINDS[s.kind] ?? s.kind} ${s.name}`, state: HEALTH[s.health] ?? s.health,
            more: [s.memory_bytes ? bytes(s.memory_bytes) : "", s.cpu_milli ? `${s.cpu_milli / 10} % of a processor` : ""].filter(Boolean).join(", ") })),
    };
}

/**
 * @param {import("../client/api.d.ts").InfoResponse} info
 * @param {import("../client/api.d.ts").WorkerInfo[]} workers
 * @param {import("../client/api.d.ts").Job[]} jobs in progress
 * @returns {State}
 */
export function fromRequests(info, workers, jobs) {
    let whole = 0, busy = 0, silent = 0, queued = 0n, memory = 0;
    const alarms = info.ready ? [] : [{ text: `No job can run: ${info.not_ready}.`, more: "Jobs that are accepted wait until this is mended." }];
    for (const w of workers) {
        whole += w.slots;
        queued += BigInt(w.queued);
        memory += Number(w.memory_used_bytes);
        if (w.state !== "silent") busy += Math.min(w.running, w.slots);
        else {
            silent += w.slots;
            alarms.push({ text: `Worker ${w.name} is silent for ${duration(w.last_heard_ns)}.`, more: ADVICE.worker_silent });
        }
    }
    const sum = (/** @type {"used_bytes" | "memory_bytes" | "spilled_bytes"} */ field) => info.store.reduce((n, s) => n + Number(s[field]), 0);
    for (const s of info.store) {
        if (s.disk_full) alarms.push({ text: `The disk of node ${s.node} is full: ${s.disk_full}.`, more: ADVICE.disk_full });
        else if (Number(s.used_bytes) > 0.9 * Number(s.memory_bytes)) alarms.push({ text: `The object store of node ${s.node} is ${share(s.used_bytes, s.memory_bytes)} full.`, more: ADVICE.store_full });
    }
    return {
        moment: { at: Date.now(), whole, parts: [{ name: "run tasks", value: busy, color: "var(--busy)" }, { name: "silent", value: silent, color: "var(--bad)" }, { name: "free", value: whole - busy - silent, color: "var(--idle)" }].filter((p) => p.value) },
        workers: info.workers, busy, ready: queued, tasksDone: info.tasks_done, tasksPerS: undefined, jobsRunning: info.jobs_running,
        jobs: jobs.map((j) => ({ id: j.id, name: j.name, created_ns: j.created_ns, done: Number(j.counts?.done ?? 0), failed: Number(j.counts?.erred ?? 0), all: Number((j.counts?.submitted ?? 0n) - (j.counts?.culled ?? 0n)) })),
        memory, stored: sum("used_bytes"), budget: sum("memory_bytes"), spilled: sum("spilled_bytes"), alarms,
        services: [{ name: "Scheduler", state: "connected", more: `version ${info.version}, started ${ago(info.started_ns)}` },
            ...info.store.map((s) => ({ name: `Object store ${s.node}`, state: s.disk_full ? "lost" : "connected", more: `${bytes(s.used_bytes)} of ${bytes(s.memory_bytes)}, ${counted(s.objects, "object")}` }))],
    };
}

/**
 * Calls `onState` with each state until `signal` is aborted. Throws if the gateway refuses.
 * @param {import("./session.js").Session} session
 * @param {AbortSignal} signal
 * @param {(state: State) => void} onState
 */
export async function follow(session, signal, onState) {
    const api = session.client;
    try {
        for await (const { data } of session.watch((client, o) => client.cluster.live(o), signal)) onState(fromLive(data));
        return;
    } catch (e) {
        if (!isMissing(e)) throw e;
    }
    while (!signal.aborted) {
        if (!document.hidden) {
            try {
                const [info, { workers }, { jobs }] = await Promise.all([api.cluster.info({ signal }), api.cluster.workers({ signal, page_size: 1000 }), api.jobs.list({ signal, state: "JOB_RUNNING", page_size: 16 })]);
                session.note(undefined);
                onState(fromRequests(info, workers, jobs));
            } catch (e) {
                if (signal.aborted) return;
                if (!(/** @type {any} */ (e).isTransient)) throw e;
                session.note(e);
            }
        }
        await new Promise((resolve) => setTimeout(resolve, 2000));
    }
}
