/* Uses the timeline of the dashboard as a person does, on a synthetic job: node timeline.mjs ROOT.
 * Nothing here depends on how long something takes: each step waits for its effect. */
import assert from "node:assert/strict";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const bench = (/** @type {string} */ name) => import(pathToFileURL(path.join(process.argv[2], "bench/timeline", name)).href);
const { serve } = await bench("server.mjs");
const { Synthetic } = await bench("synthetic.mjs");
const TIMEOUT = 20000 * Number(process.env.MILLRACE_TEST_SLOW ?? 1);

const job = new Synthetic({ slots: 200, spans: 2e6, cellNs: 2_300_000 });
const { url, server } = await serve(job);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: process.getuid() === 0 ? ["--no-sandbox"] : [] });
const faults = [];

/** A page with the timeline, and what the tests ask of it. */
async function open(hash = "", options = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, reducedMotion: "reduce", ...options });
    context.setDefaultTimeout(TIMEOUT);
    const page = await context.newPage();
    page.on("pageerror", (e) => faults.push(e.stack));
    page.on("console", (m) => m.type() === "error" && faults.push(m.text()));
    await page.goto(`${url}/page/index.html#${hash}`);
    const of = (/** @type {string} */ expression) => page.evaluate(expression);
    const t = {
        page, context,
        root: page.locator(".mr-timeline"),
        /** @returns {Promise<{from: number, until: number, width: number}>} the window, in seconds */
        window: async () => {
            const w = await of("({ from: timeline.window.from / 1e9, until: timeline.window.until / 1e9 })");
            return { ...w, width: w.until - w.from };
        },
        show: (/** @type {number} */ from, /** @type {number} */ until) =>
            page.evaluate(([a, b]) => {
                const begin = BigInt(window.source.beginNs);
                window.timeline.setWindow(begin + BigInt(Math.round(a * 1e9)), begin + BigInt(Math.round(b * 1e9)));
            }, [from, until]),
        said: () => page.locator("[role=status]").textContent(),
        /** Waits until an expression holds. (The page's policy forbids Playwright's own way, eval.) */
        async until(/** @type {string} */ expression) {
            for (const end = Date.now() + TIMEOUT; !(await of(expression)); await new Promise((r) => setTimeout(r, 20)))
                assert.ok(Date.now() < end, `this did not become true: ${expression}`);
        },
        of,
    };
    await t.until("window.timeline?.data.tiles.values.size > 0");
    return t;
}

/** The tasks on the screen are drawn one by one. */
const NEAR = "timeline.data.isNear && timeline.data.chunksIn(timeline.window, timeline.rows).length > 0";
const near = (a, b, slack) => assert.ok(Math.abs(a - b) <= slack, `${a} is not ${b} ± ${slack}`);

/** Where the middle of a task on the screen is: [x, y, key], or null. */
const SOME_TASK = `(() => {
    const t = timeline, s = t.scale(), ratio = t.size.ratio;
    for (const chunk of t.data.chunksIn(t.window, t.rows))
        for (const [row, spans] of chunk.rows)
            for (let i = 0; i < spans.starts.length; i++) {
                const x = ((spans.starts[i] + spans.ends[i]) / 2 / s.nsPerPx - s.first + t.size.left) / ratio;
                const y = 28 + ((row + 0.4) * t.rows.pitch - t.rows.scroll) / ratio;
                const wide = (spans.ends[i] - spans.starts[i]) / s.nsPerPx > 12;
                if (wide && x > 300 && x < 1000 && y > 100 && y < 500) return [x, y, spans.spans[i].key];
            }
    return null;
})()`;

async function someTask(t) {
    const [x, y, key] = await t.of(SOME_TASK);
    const box = await t.page.locator(".mr-timeline-canvas").boundingBox();
    return { x: box.x + x, y: box.y + y, key };
}

const tests = {
    async "ctrl and wheel zoom at the pointer, shift and wheel pan, a plain wheel scrolls the rows"() {
        const t = await open();
        const before = await t.window();
        await t.page.mouse.move(700, 300);
        const under = await t.of("timeline.timeAt(700 - document.querySelector('.mr-timeline').getBoundingClientRect().x)");
        await t.page.keyboard.down("Control");
        await t.page.mouse.wheel(0, -120);
        await t.until(`timeline.window.until - timeline.window.from < ${before.width * 1e9 * 0.9}`);
        await t.page.keyboard.up("Control");
        const zoomed = await t.window();
        const now = await t.of("timeline.timeAt(700 - document.querySelector('.mr-timeline').getBoundingClientRect().x)");
        near(now, under, (before.width * 1e9) / 500);
        await t.page.keyboard.down("Shift");
        await t.page.mouse.wheel(0, 100);
        await t.until(`timeline.window.from > ${zoomed.from * 1e9}`);
        await t.page.keyboard.up("Shift");
        near((await t.window()).width, zoomed.width, zoomed.width * 1e-6);
        await t.page.mouse.wheel(0, 100);
        await t.until("timeline.rows.scroll > 0");
    },

    async "a drag moves the time and the rows, and shift and drag zoom to a part"() {
        const t = await open();
        await t.show(4, 8);
        await t.until("Math.abs(timeline.window.from - 4e9) < 1e6");
        await t.page.mouse.move(800, 400);
        await t.page.mouse.down();
        await t.page.mouse.move(700, 340, { steps: 5 });
        await t.page.mouse.up();
        const w = await t.window();
        near(w.from, 4 + (100 / 1156) * 4, 0.02);
        near(await t.of("timeline.rows.scroll / timeline.size.ratio"), 60, 1);
        assert.equal(await t.of("document.body.dataset.selected ?? null"), null, "a drag chooses nothing");
        await t.page.keyboard.down("Shift");
        await t.page.mouse.move(500, 300);
        await t.page.mouse.down();
        await t.page.mouse.move(789, 320, { steps: 5 });
        await t.page.mouse.up();
        await t.page.keyboard.up("Shift");
        near((await t.window()).width, 1, 0.02);
    },

    async "a task tells about itself under the pointer, and a click chooses it"() {
        const t = await open("", { reducedMotion: "no-preference" });
        await t.show(5, 5.02);
        await t.until(NEAR);
        const task = await someTask(t);
        await t.page.mouse.move(task.x, task.y);
        await t.page.locator(".mr-timeline-tip", { hasText: task.key }).waitFor();
        assert.match(await t.page.locator(".mr-timeline-tip").innerText(), /start[\s\S]*duration[\s\S]*on[\s\S]*slot[\s\S]*before/);
        await t.page.mouse.click(task.x, task.y);
        await t.page.locator(`body[data-selected="${task.key}"]`).waitFor();
        assert.match(await t.said(), new RegExp(`task ${task.key}, on w\\d+, slot \\d+, started at .*, took `));
        await t.page.mouse.move(20, 400);
        await t.page.locator(".mr-timeline-tip").waitFor({ state: "hidden" });
    },

    async "a click where only tiles are drawn chooses a task too"() {
        const t = await open();
        await t.until("!timeline.data.isNear");
        await t.page.mouse.click(640, 200);
        await t.page.locator("body[data-selected]:not([data-selected=''])").waitFor();
        assert.match(await t.said(), /started at/);
    },

    async "everything can be done with keys"() {
        const t = await open();
        await t.root.focus();
        const before = await t.window();
        for (const key of ["+", "w", "="]) await t.page.keyboard.press(key);
        const w = await t.window();
        near(w.width, before.width * 0.343, before.width * 0.01);
        assert.match(await t.said(), /^Shows /);
        for (const [key, sign] of [["ArrowRight", 1], ["d", 1], ["ArrowLeft", -1], ["a", -1]]) {
            const from = (await t.window()).from;
            await t.page.keyboard.press(key);
            near((await t.window()).from - from, sign * 0.1 * w.width, w.width * 0.001);
        }
        await t.page.keyboard.press("Home");
        assert.ok((await t.window()).from <= 0);
        await t.page.keyboard.press("End");
        near((await t.window()).until, job.extent / 1e9, w.width * 0.05);
        await t.page.keyboard.press("0");
        near((await t.window()).width, before.width, 1e-6);
        await t.page.keyboard.press("s");
        near((await t.window()).width, before.width, 1e-6);

        for (let i = 0; i < 3; i++) await t.page.keyboard.press("ArrowDown");
        assert.equal(await t.said(), "w0, slot 2.");
        await t.page.keyboard.press("Enter");
        await t.page.locator("body[data-selected]:not([data-selected=''])").waitFor();
        const first = await t.of("timeline.selected.start");
        await t.page.keyboard.press(".");
        await t.until(`timeline.selected.start > ${first}`);
        await t.page.keyboard.press(",");
        await t.until(`timeline.selected.start === ${first}`);
        await t.page.keyboard.press("f");
        assert.ok((await t.window()).width < 0.02);
        await t.until(NEAR);
        const pitch = await t.of("timeline.rows.pitch");
        await t.page.keyboard.press("]");
        assert.ok((await t.of("timeline.rows.pitch")) > pitch);
        await t.page.keyboard.press("Escape");
        assert.equal(await t.of("timeline.selected"), null);
        assert.equal(await t.of("document.body.dataset.selected"), "");
    },

    async "rows beyond the screen are loaded when they are scrolled to"() {
        const t = await open();
        await t.root.focus();
        assert.equal(await t.of("timeline.data.slots.has(199)"), false);
        for (let i = 0; i < 6; i++) await t.page.keyboard.press("PageDown");
        await t.until("timeline.data.slots.has(199)");
        assert.deepEqual(await t.of("timeline.data.slots.get(199)"), { worker: "w24", slot: 7 });
    },

    async "two fingers zoom, one pans"() {
        const t = await open("", { hasTouch: true, viewport: { width: 412, height: 800 } });
        const before = await t.window();
        const cdp = await t.context.newCDPSession(t.page);
        const touch = (/** @type {string} */ type, /** @type {number[]} */ xs) =>
            cdp.send("Input.dispatchTouchEvent", { type, touchPoints: xs.map((x, id) => ({ x, y: 300, id })) });
        await touch("touchStart", [200, 260]);
        for (const apart of [40, 80, 120]) await touch("touchMove", [200 - apart / 2, 260 + apart / 2]);
        await touch("touchEnd", []);
        const w = await t.window();
        near(w.width, before.width * (60 / 180), before.width * 0.05);
        await touch("touchStart", [200]);
        for (const x of [240, 280, 300]) await touch("touchMove", [x]);
        await touch("touchEnd", []);
        assert.ok((await t.window()).from < w.from);
    },

    async "it follows the theme, the size of its container and the end of a running job"() {
        const t = await open();
        const ground = () => t.of("timeline.look.theme");
        assert.equal(await ground(), "light");
        await t.of("document.documentElement.dataset.theme = 'dark'");
        await t.until("timeline.look.theme === 'dark'");
        await t.page.setViewportSize({ width: 900, height: 500 });
        await t.until("timeline.parts.canvas.width === 900 && timeline.size.width === 900");
        const until = (await t.window()).until;
        await t.of("source.endNs = String(BigInt(source.endNs) + 5000000000n); timeline.refresh()");
        assert.ok((await t.window()).until > until + 4);
        await t.of("timeline.destroy()");
        assert.equal(await t.root.count(), 0);
    },

    async "a source that fails is told about, and loaded again on demand"() {
        const t = await open();
        const isFault = (/** @type {string} */ text) => /503/.test(text);
        let isAway = true;
        await t.page.route("**/tiles*", (route) => (isAway ? route.fulfill({ status: 503, body: "{" }) : route.continue()));
        await t.show(1, 1.5);
        await t.page.getByText("A part cannot be loaded").waitFor();
        isAway = false;
        await t.page.getByRole("button", { name: "Load again" }).click();
        await t.page.getByText("A part cannot be loaded").waitFor({ state: "hidden" });
        for (let i = faults.length - 1; i >= 0; i--) if (isFault(faults[i])) faults.splice(i, 1);
    },

    async "it says what it is, and an idle one asks for nothing and draws nothing"() {
        const t = await open("path");
        await t.until("timeline.data.tiles.active.size === 0 && !timeline.frame && !timeline.rest");
        assert.equal(await t.root.getAttribute("role"), "application");
        assert.ok(await t.root.getAttribute("aria-label"));
        const help = await t.root.getAttribute("aria-describedby");
        assert.match(await t.page.locator(`#${help}`).textContent(), /zoom/);
        await t.page.getByRole("button", { name: "Keys and gestures" }).click();
        assert.equal(await t.page.locator(".mr-timeline-help").isVisible(), true);
        await t.root.focus();
        await t.page.keyboard.press("Escape");
        assert.equal(await t.page.locator(".mr-timeline-help").isVisible(), false);
        await t.until("!timeline.frame && timeline.data.tiles.active.size === 0");
        await t.of("window.drawn = 0; { const now = timeline.drawNow; timeline.drawNow = function (...a) { window.drawn++; return now.apply(this, a); }; }");
        await t.of("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))");
        assert.equal(await t.of("window.drawn"), 0);
    },
};

let failed = 0;
for (const [name, run] of Object.entries(tests)) {
    try {
        await run();
        assert.deepEqual(faults, []);
        console.log(`ok   ${name}`);
    } catch (e) {
        failed++;
        faults.length = 0;
        console.log(`FAIL ${name}\n${e.stack}`);
    }
    for (const context of browser.contexts()) await context.close();
}
await browser.close();
server.close();
process.exitCode = failed ? 1 : 0;
