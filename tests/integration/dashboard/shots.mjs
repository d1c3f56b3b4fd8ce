/* Takes pictures of the dashboard's pages: node shots.mjs URL OUT IDS.json [light|dark|phone]... */
import fs from "node:fs";
import path from "node:path";
import { chromium } from "playwright-core";

const [url, out, ids, ...looks] = process.argv.slice(2);
const id = JSON.parse(ids);
const PAGES = { overview: "overview", jobs: "jobs", job: `jobs/${id.done}`, time: `jobs/${id.done}/time`, timeline: `jobs/${id.done}/timeline`, graph: `jobs/${id.done}/graph`,
    failures: `jobs/${id.failed}/failures?key=bad`, results: `jobs/${id.done}/results`, compare: `jobs/${id.second}/compare?with=${id.done}`, whatif: `jobs/${id.second}/whatif?slots=12&free=scheduler&op_speed=sleep%3D2`, workers: "workers", objects: "objects",
    trainings: "trainings", training: `trainings/${id.training}`, channels: "channels", library: "library" };
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
fs.mkdirSync(out, { recursive: true });
for (const look of looks.length ? looks : ["light", "dark"]) {
    const isPhone = look === "phone";
    const context = await browser.newContext({ viewport: isPhone ? { width: 390, height: 844 } : { width: 1280, height: 720 }, colorScheme: look === "dark" ? "dark" : "light" });
    const page = await context.newPage();
    page.on("console", (m) => m.type() === "error" && console.log(look, "console:", m.text(), m.location().url));
    page.on("pageerror", (e) => console.log(look, "page:", e.stack));
    for (const [name, at] of Object.entries(PAGES)) {
        if (process.env.ONLY && !process.env.ONLY.split(",").includes(name)) continue;
        await page.goto(`${url}/#/${at}`);
        await page.waitForTimeout(name === "overview" ? 9000 : ["training", "whatif"].includes(name) ? 3500 : 1500);
        if (name === "results") {
            const show = page.getByRole("button", { name: "Show", exact: true });
            while (await show.count()) {
                await show.first().click();
                await page.waitForTimeout(500);
            }
        }
        if (name === "trainings") {
            await page.getByRole("checkbox").first().check();
            await page.waitForTimeout(1000);
        }
        const first = { compare: ".view .figures", whatif: ".view .figures" }[name];
        if (first && !process.env.FULL) await page.locator(first).evaluate((e) => window.scrollBy(0, e.getBoundingClientRect().top - 110));
        await page.screenshot({ path: path.join(out, `dashboard-${name}${look === "light" ? "" : `-${look}`}.png`), fullPage: !!process.env.FULL });
    }
    await context.close();
}
await browser.close();
