/* Measures the timeline of the dashboard in Chromium on a synthetic job of 100 million spans and 64 slots:
 * frame times while somebody pans and zooms, and the memory of the page. The machine should be idle.
 *
 *     npm install --prefix DIR playwright-core@1.57.0
 *     node bench/timeline/measure.mjs --modules DIR [--json FILE] [--pictures DIR] [--check]
 *
 * The input goes through the browser, as from a mouse. The times are the browser's own: its trace has
 * a PipelineReporter event for each frame, from the begin of the frame to its presentation. A frame
 * that was due and not shown counts as dropped. main_cpu is the processor time of the page's thread
 * for a frame (script, style, drawing), which other programs on the machine change little. Without a GPU everything is drawn by the processor,
 * so a machine with one does better. --check: exit 1 if the 95th percentile of all frames is above
 * 16.7 ms or the page has 300 MB or more. */
import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { serve } from "./server.mjs";
import { Synthetic } from "./synthetic.mjs";

const FRAME_MS = 16.7;
const BYTES_MAX = 300e6;
const PHASE_MS = 4000;
/** Time between two events of the mouse: 125 Hz. */
const EVENT_MS = 8;
const CATEGORIES = ["cc", "benchmark", "devtools.timeline", "disabled-by-default-devtools.timeline.frame"];

const { values: options } = parseArgs({
    options: {
        modules: { type: "string" }, json: { type: "string" }, pictures: { type: "string" },
        check: { type: "boolean", default: false }, chromium: { type: "string", default: "/usr/bin/chromium" },
    },
});
if (!options.modules) throw new Error("--modules DIR: a folder with node_modules/playwright-core");
const { chromium } = createRequire(path.resolve(options.modules, "x.js"))("playwright-core");

const sleep = (/** @type {number} */ ms) => new Promise((r) => setTimeout(r, ms));
const at = (/** @type {number[]} */ sorted, /** @type {number} */ p) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))] ?? NaN;
const round = (/** @type {number} */ x) => Math.round(x * 100) / 100;

/** The frames of a trace. @param {any[]} events */
function framesOf(events) {
    // The page's process is the one that runs animation frames.
    const page = events.find((e) => e.name === "FireAnimationFrame")?.pid;
    const begun = new Map();
    const times = [];
    let dropped = 0;
    for (const e of events.filter((x) => x.name === "PipelineReporter" && x.pid === page).sort((a, b) => a.ts - b.ts)) {
        const id = e.id2?.local ?? e.id;
        if (e.ph === "b") begun.set(id, e);
        const first = e.ph === "e" && begun.get(id);
        if (!first) continue;
        begun.delete(id);
        const state = (first.args.frame_reporter ?? first.args.chrome_frame_reporter)?.state ?? "";
        if (state === "STATE_DROPPED") dropped++;
        else if (state.startsWith("STATE_PRESENTED")) times.push((e.ts - first.ts) / 1000);
    }
    const cpu = events.filter((e) => e.name === "ProxyMain::BeginMainFrame" && e.pid === page && e.tdur).map((e) => e.tdur / 1000);
    return { times: times.sort((a, b) => a - b), dropped, cpu: cpu.sort((a, b) => a - b) };
}

/** @param {ReturnType<typeof framesOf>} f */
function report(f) {
    return {
        frames: f.times.length, dropped: f.dropped, p50_ms: round(at(f.times, 0.5)), p95_ms: round(at(f.times, 0.95)),
        max_ms: round(f.times.at(-1) ?? NaN), main_cpu_p95_ms: round(at(f.cpu, 0.95)),
    };
}

/** Bytes of the page's process, shared pages in part. @param {any} browser */
async function processBytes(browser) {
    const session = await browser.newBrowserCDPSession();
    const { processInfo } = await session.send("SystemInfo.getProcessInfo");
    const sizes = processInfo.filter((/** @type {any} */ p) => p.type === "renderer").map((/** @type {any} */ p) => {
        const text = fs.readFileSync(`/proc/${p.id}/smaps_rollup`, "utf8");
        return 1024 * Number(/^Pss:\s+(\d+)/m.exec(text)?.[1]);
    });
    return Math.max(...sizes);
}

/** Processor time of the machine so far: [idle, all]. @returns {[number, number]} */
function processors() {
    let [idle, all] = [0, 0];
    for (const { times } of os.cpus()) {
        idle += times.idle;
        all += times.user + times.nice + times.sys + times.idle + times.irq;
    }
    return [idle, all];
}

/** What the mouse does in each phase, at the time t in seconds. */
const PHASES = {
    "pan, whole phases": { window: [100e9, 700e9], move: drag },
    "pan, tiles": { window: [100e9, 160e9], move: drag },
    "pan, tasks with names": { window: [120e9, 120.05e9], move: drag },
    "pan, classes": { window: [100e9, 160e9], color: "class", move: drag },
    "pan, critical path": { window: [100e9, 400e9], path: true, move: drag },
    "zoom, whole job to tasks and back": { window: [-1e9, 1e15], move: zoom },
};

/** @param {any} cdp @param {number} t */
async function drag(cdp, t) {
    const x = 700 + 380 * Math.sin(t * 2.2);
    await cdp.send("Input.dispatchMouseEvent", { type: "mouseMoved", x, y: 300, button: "left", buttons: 1 });
}

/** @param {any} cdp @param {number} t */
async function zoom(cdp, t) {
    // Half of the time in, half of it out, with a modifier of 2: ctrl.
    const deltaY = Math.floor((t * 1000) / (PHASE_MS / 2)) % 2 ? 9 : -9;
    await cdp.send("Input.dispatchMouseEvent", { type: "mouseWheel", x: 640, y: 300, deltaX: 0, deltaY, modifiers: 2 });
}

/** @param {any} page @param {any} cdp @param {any} phase */
async function run(page, cdp, phase) {
    await page.evaluate((/** @type {any} */ p) => {
        const { timeline, source } = /** @type {any} */ (window);
        const begin = BigInt(source.beginNs);
        timeline.setColor(p.color ?? "op");
        timeline.setPath(p.path ? source.path : []);
        timeline.setWindow(begin + BigInt(p.window[0]), begin + BigInt(p.window[1]));
    }, { color: phase.color, path: phase.path, window: phase.window });
    await sleep(1500);
    /** @type {any[]} */
    const events = [];
    const collect = (/** @type {any} */ e) => events.push(...e.value);
    cdp.on("Tracing.dataCollected", collect);
    await page.mouse.move(700, 300);
    if (phase.move === drag) await page.mouse.down();
    await cdp.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories: CATEGORIES } });
    const begin = performance.now();
    while (performance.now() - begin < PHASE_MS) {
        await phase.move(cdp, (performance.now() - begin) / 1000);
        await sleep(EVENT_MS);
    }
    const done = new Promise((r) => cdp.once("Tracing.tracingComplete", r));
    await cdp.send("Tracing.end");
    await done;
    cdp.off("Tracing.dataCollected", collect);
    if (phase.move === drag) await page.mouse.up();
    return framesOf(events);
}

const { url, server } = await serve(new Synthetic({ slots: 64, spans: 1e8, cellNs: 2_300_000 }));
const browser = await chromium.launch({ executablePath: options.chromium, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
    const begin = performance.now();
    await page.goto(`${url}/page/index.html`);
    await page.waitForFunction(() => /** @type {any} */ (window).timeline?.data.tiles.values.size > 0);
    const usable = performance.now() - begin;
    const cdp = await page.context().newCDPSession(page);
    /** @type {Record<string, any>} */
    const result = { usable_ms: Math.round(usable), load_average: os.loadavg()[0], phases: {} };
    const all = { times: /** @type {number[]} */ ([]), dropped: 0, cpu: /** @type {number[]} */ ([]) };
    for (const [name, phase] of Object.entries(PHASES)) {
        const before = processors();
        const f = await run(page, cdp, phase);
        const after = processors();
        // Little idle time left: other programs ran, and the figures are theirs too.
        result.phases[name] = { ...report(f), idle: round((after[0] - before[0]) / (after[1] - before[1])) };
        console.log(name.padEnd(36), JSON.stringify(result.phases[name]));
        all.times.push(...f.times);
        all.cpu.push(...f.cpu);
        all.dropped += f.dropped;
        if (options.pictures) await page.screenshot({ path: path.join(options.pictures, `${name.replaceAll(/\W+/g, "-")}.png`) });
    }
    all.times.sort((a, b) => a - b);
    all.cpu.sort((a, b) => a - b);
    result.all = report(all);
    result.process_bytes = await processBytes(browser);
    result.heap_bytes = (await cdp.send("Runtime.getHeapUsage")).usedSize;
    console.log("all".padEnd(36), JSON.stringify(result.all));
    console.log(`usable after ${result.usable_ms} ms; process ${Math.round(result.process_bytes / 1e6)} MB, of which heap ${Math.round(result.heap_bytes / 1e6)} MB; load average ${result.load_average.toFixed(1)}`);
    if (options.json) fs.writeFileSync(options.json, JSON.stringify(result, null, 1));
    if (options.check && !(result.all.p95_ms <= FRAME_MS && result.process_bytes < BYTES_MAX)) process.exitCode = 1;
} finally {
    await browser.close();
    server.close();
}
