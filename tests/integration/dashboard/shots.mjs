/* Takes pictures of the dashboard's pages: node shots.mjs URL OUT IDS [light|dark|phone]...
 * IDS is what sample.py printed for a cluster without tokens. ONLY=NAME,NAME chooses pages. */
import fs from "node:fs";
import path from "node:path";
import { chromium } from "playwright-core";

const [url, out, ids, ...looks] = process.argv.slice(2);
const id = JSON.parse(ids);
const PAGES = { jobs: "jobs", job: `jobs/${id.done}`, time: `jobs/${id.done}/time`, timeline: `jobs/${id.done}/timeline`, graph: `jobs/${id.done}/graph`,
    failures: `jobs/${id.failed}/failures?key=bad`, results: `jobs/${id.done}/results`, compare: `jobs/${id.second}/compare?with=${id.done}`, whatif: `jobs/${id.second}/whatif?slots=12&free=scheduler&op_speed=sleep%3D2`, workers: "workers", objects: "objects",
    trainings: "trainings", training: `trainings/${id.training}`, channels: "channels", library: "library" };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Submits a job of short tasks every two seconds, so that the overview shows a cluster at work. */
async function work(seconds) {
    for (let i = 0; i < seconds / 2; i++) {
        const tasks = Object.fromEntries(Array.from({ length: 10 + (i % 4) * 10 }, (_, k) => [`scan/${k}`, { op: "sleep", args: [0.05 + 0.05 * (k % 5)] }]));
        const answer = await fetch(`${url}/v1/jobs`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ name: `scan ${i}`, tasks }) });
        if (!answer.ok) throw new Error(`a job is refused: ${await answer.text()}`);
        await pause(2000);
    }
}

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
fs.mkdirSync(out, { recursive: true });
/** Pictures of pages in one look. */
async function take(look, pages) {
    const isPhone = look === "phone";
    const context = await browser.newContext({ viewport: isPhone ? { width: 390, height: 844 } : { width: 1280, height: 720 }, colorScheme: look === "dark" ? "dark" : "light" });
    const page = await context.newPage();
    page.on("console", (m) => m.type() === "error" && console.log(look, "console:", m.text(), m.location().url));
    page.on("pageerror", (e) => console.log(look, "page:", e.stack));
    for (const [name, at] of pages) {
        if (process.env.ONLY && !process.env.ONLY.split(",").includes(name)) continue;
        await page.goto(`${url}/#/${at}`);
        if (name === "overview") await work(60);
        else await pause(["training", "whatif"].includes(name) ? 3500 : 1500);
        if (name === "results") {
            const show = page.getByRole("button", { name: "Show", exact: true });
            while (await show.count()) {
                await show.first().click();
                await pause(500);
            }
        }
        if (name === "trainings") {
            await page.getByLabel("Compare digits, 32 units").check();
            await page.getByLabel("Compare digits, 64 units").check();
            await pause(1500);
        }
        await page.mouse.move(0, 0);
        await page.evaluate(() => window.scrollTo(0, 0));
        const first = { compare: ".view .figures", whatif: ".view .figures" }[name];
        if (first && !process.env.FULL) await page.locator(first).evaluate((e) => window.scrollBy(0, e.getBoundingClientRect().top - 110));
        await page.screenshot({ path: path.join(out, `dashboard-${name}${look === "light" ? "" : `-${look}`}.png`), fullPage: !!process.env.FULL });
    }
    await context.close();
}

const wanted = looks.length ? looks : ["light", "dark"];
for (const look of wanted) await take(look, Object.entries(PAGES));
// Last, because it adds jobs to the list.
for (const look of wanted) await take(look, [["overview", "overview"]]);
await browser.close();
