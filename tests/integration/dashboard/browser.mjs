/* Uses every page and action of the dashboard as a person would: node browser.mjs URL IDS TOKENS.
 * Prints "kill scheduler", "start scheduler" or "start a training" when that is to be done, and then
 * reads a line. The line is "cannot" if nothing can kill the scheduler. */
import assert from "node:assert/strict";
import fs from "node:fs";
import { createRequire } from "node:module";
import readline from "node:readline";
import { chromium } from "playwright-core";

const [url, idsText, tokensText] = process.argv.slice(2);
const ids = JSON.parse(idsText), tokens = JSON.parse(tokensText);
const SLOW = Number(process.env.MILLRACE_TEST_SLOW ?? 1);
const TIMEOUT = 20000 * SLOW;
const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const origin = new URL(url).origin;
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: process.getuid() === 0 ? ["--no-sandbox"] : [] });
const strangers = [], faults = [], flaws = [];

/** A page of a browser of its own. Notes requests to other origins, and faults of scripts. */
async function open(options) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 720 }, ...options });
    context.setDefaultTimeout(TIMEOUT);
    const page = await context.newPage();
    page.on("request", (r) => {
        const u = new URL(r.url());
        if (u.origin !== origin && !["data:", "blob:"].includes(u.protocol)) strangers.push(r.url());
    });
    page.on("pageerror", (e) => faults.push(e.stack));
    page.on("console", (m) => {
        if (m.type() === "error" && !/Failed to load resource|net::ERR/.test(m.text())) faults.push(m.text());
    });
    return page;
}

const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];

/** Runs axe-core, and looks whether the page fits the window. `rules`: of axe; none: axe does not run. */
async function check(page, name, rules = RULES) {
    if (rules.length) await page.evaluate(axe);
    const found = rules.length ? await page.evaluate((runOnly) => window.axe.run(document, { runOnly }), rules) : { violations: [] };
    const text = found.violations.map((v) => `${v.id}: ${v.help}\n${v.nodes.slice(0, 3).map((n) => `    ${n.html.slice(0, 200)} ${n.any[0]?.message ?? ""}`).join("\n")}`);
    flaws.push(...text.map((t) => `axe on ${name}: ${t}`));
    const width = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    if (width > 0) flaws.push(`${name} is ${width} pixels wider than the window`);
}

async function go(page, path, text) {
    await page.goto(`${url}/#/${path}`);
    await page.locator("main").getByText(text).locator("visible=true").first().waitFor();
    assert.equal(await page.locator(".error[role=alert]").count(), 0, `an error on ${path}: ${await page.locator("main").innerText()}`);
}

async function logIn(page, token) {
    await page.goto(url);
    await page.getByLabel("Token", { exact: true }).fill(token);
    await page.getByRole("button", { name: "Log in" }).click();
}

const PAGES = [["overview", "What the slots do now"], ["jobs", "broken shapes"], [`jobs/${ids.done}`, "array.matmul"], [`jobs/${ids.done}/time`, "= wall × slots"],
    [`jobs/${ids.done}/timeline`, "array.matmul"], [`jobs/${ids.done}/graph`, "product/0"], [`jobs/${ids.failed}/failures`, "bad"], [`jobs/${ids.done}/results`, "means"],
    [`jobs/${ids.second}/compare?with=${ids.done}`, "What explains the change"], [`jobs/${ids.done}/compare`, "Compare with another job"],
    [`jobs/${ids.done}/whatif?slots=12&free=transfer`, "Longest chain of tasks"], [`jobs/${ids.running}/whatif`, "The job is not over."],
    ["workers", "connected"], ["objects", "f64[192,192]"], ["trainings", "digits"], [`trainings/${ids.training}`, "scorer 0"], ["channels", "batches"], ["channels/beamline", "counts"],
    ["channels/queue/batches", "Dead letters"], ["library", "array.matmul"]];

/** A request to the gateway, beside the page. */
async function call(method, path, body) {
    const headers = { Authorization: `Bearer ${tokens.admin}`, "Content-Type": "application/json" };
    const response = await fetch(origin + path, { method, headers, body: body && JSON.stringify(body) });
    assert.equal(response.status, 200, await response.clone().text());
    return response.json();
}

/** Hides the page's tab, or shows it again. Chromium without a window shows all its tabs. */
function setHidden(page, hidden) {
    return page.evaluate((value) => {
        Object.defineProperty(document, "hidden", { value, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
}

/** Confirms the question of an action. */
async function sure(page, name) {
    await page.locator("main").getByRole("button", { name, exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name, exact: true }).click();
}

const steps = {
    async "a wrong token is refused, and the right one is not kept by scripts"() {
        const page = await open();
        await logIn(page, "wrong-wrong-wrong-wrong");
        await page.getByRole("alert").getByText("token").waitFor();
        await check(page, "login");
        await page.getByLabel("Token", { exact: true }).fill(tokens.admin);
        await page.getByRole("button", { name: "Log in" }).click();
        await page.getByText("What the slots do now").waitFor();
        assert.equal(await page.evaluate(() => document.cookie), "", "scripts can read the cookie");
        assert.equal(await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage })).then((t) => t.includes(tokens.admin.slice(0, 8))), false);
        await page.getByRole("button", { name: "Log out" }).click();
        await page.getByRole("heading", { name: "Log in" }).waitFor();
        await page.context().close();
    },
    async "every page is read without an error, and axe finds nothing, in light and dark and on a phone"() {
        // Dark differs in its colours only, and the phone in its width.
        const looks = [[{ colorScheme: "light" }, RULES], [{ colorScheme: "dark" }, ["color-contrast"]], [{ viewport: { width: 390, height: 800 } }, []]];
        for (const [look, rules] of looks) {
            const page = await open(look);
            await logIn(page, tokens.admin);
            await page.getByText("What the slots do now").waitFor();
            for (const [path, text] of PAGES) {
                await go(page, path, text);
                await check(page, `${path} ${JSON.stringify(look)}`, rules);
            }
            await page.context().close();
        }
    },
    async "jobs are searched, and filtered by state and label"() {
        const page = await open();
        await logIn(page, tokens.admin);
        await page.getByRole("link", { name: "Jobs", exact: true }).click();
        await page.getByLabel("State").selectOption("failed");
        await page.getByText("reconstruction").first().waitFor({ state: "detached" });
        await page.getByText("broken shapes").waitFor();
        await page.getByLabel("State").selectOption("any");
        await page.getByLabel("Search").fill("recon");
        await page.getByText("broken shapes").first().waitFor({ state: "detached" });
        await page.getByLabel("Search").fill("nothing of this name");
        await page.getByText("No job matches.").waitFor();
        await page.getByRole("button", { name: "Show all jobs" }).click();
        await page.getByLabel("Label").fill("team=operations");
        await page.getByText("broken shapes").first().waitFor({ state: "detached" });
        await page.getByText("slow scan").waitFor();
        await page.context().close();
    },
    async "a result is shown: a number with all digits, a list, an array as a picture"() {
        const page = await open();
        await logIn(page, tokens.admin);
        await go(page, `jobs/${ids.small}/results`, "9223372036854775807");
        await go(page, `jobs/${ids.done}/results`, "total");
        await page.getByRole("button", { name: "Show", exact: true }).first().click();
        await page.getByRole("img", { name: /Picture of the array, 192 × 192/ }).waitFor();
        await go(page, `jobs/${ids.failed}/failures?key=bad`, "16 elements");
        await page.context().close();
    },
    async "the timeline is used by keys, and the graph and the operators unfold"() {
        const page = await open();
        await logIn(page, tokens.admin);
        await go(page, `jobs/${ids.done}/timeline`, "Click a task");
        await page.locator(".mr-timeline").focus();
        for (const key of ["+", "ArrowRight", "-", "0"]) await page.keyboard.press(key);
        await page.getByLabel("Color by").selectOption("class");
        await page.locator(".legend").getByText("compute").waitFor();
        const pathButton = page.getByRole("button", { name: "Show the critical path" });
        await pathButton.click();
        await page.getByRole("button", { name: "Hide the critical path" }).waitFor();
        await go(page, `jobs/${ids.done}/graph`, "product/0");
        await page.getByRole("button", { name: /^image:/ }).click();
        await page.getByText("Times of the last attempt").waitFor();
        await page.getByLabel("One box is").selectOption("op");
        await page.getByRole("button", { name: /^array.matmul: 8 tasks/ }).focus();
        await page.keyboard.press("Enter");
        await page.getByRole("link", { name: "product/7" }).waitFor();
        await go(page, "library?q=matmul", "matrix product");
        await page.locator("details.op").first().click();
        await page.getByText("Returns").first().waitFor();
        await page.context().close();
    },
    async "a job is compared with the last one like it, and with another one"() {
        const page = await open();
        await logIn(page, tokens.user);
        await go(page, `jobs/${ids.second}/compare`, "What explains the change");
        assert.equal(new URL(page.url()).hash, `#/jobs/${ids.second}/compare?with=${ids.done}`, "the last job with this name is chosen");
        await page.getByText(`job ${ids.second} took`).waitFor();
        await page.getByRole("region", { name: "Changes by operator" }).getByText("array.matmul").first().waitFor();
        await page.getByLabel("Other job").fill("broken");
        await page.getByRole("button", { name: `Compare with ${ids.failed}` }).click();
        await page.locator(".summary").getByText(`job ${ids.failed}`).waitFor();
        await page.goBack();
        await page.locator(".summary").getByText(`job ${ids.done}`).waitFor();
        await page.getByLabel("Other job").fill("j1-999");
        await page.keyboard.press("Enter");
        await page.getByRole("alert").getByText("no job j1-999").waitFor();
        await page.goto(`${url}/#/jobs/${ids.second}/compare?with=${ids.running}`);
        await page.getByText(`${ids.running} still runs`).waitFor();
        await page.context().close();
    },
    async "a reader asks what would be with other slots and a faster operator"() {
        const page = await open();
        await logIn(page, tokens.reader);
        await go(page, `jobs/${ids.done}/whatif`, "How long would the job have taken");
        await page.getByLabel(/^Slots/).fill("12");
        await page.getByRole("checkbox", { name: /^scheduler/ }).check();
        await page.getByText("Operators that are faster or slower").click();
        await page.getByLabel("sleep is so many times as fast").fill("4");
        await page.getByRole("button", { name: "Predict" }).click();
        await page.getByRole("heading", { name: "Predicted: 12 slots, without scheduler, sleep × 4" }).waitFor();
        assert.equal(new URL(page.url()).hash, `#/jobs/${ids.done}/whatif?slots=12&free=scheduler&op_speed=sleep%3D4`);
        await page.getByText("on 12 slots", { exact: true }).waitFor();
        await page.getByRole("region", { name: "Recorded and predicted time of all slots by class" }).getByRole("row", { name: /^Sum/ }).waitFor();
        await page.reload();
        await page.getByRole("heading", { name: "Predicted: 12 slots, without scheduler, sleep × 4" }).waitFor();
        assert.equal(await page.getByLabel(/^Slots/).inputValue(), "12");
        await page.getByRole("button", { name: "Reset" }).click();
        await page.getByRole("heading", { name: /^Predicted:/ }).waitFor({ state: "detached" });
        assert.equal(await page.getByRole("checkbox", { name: /^scheduler/ }).isChecked(), false);
        await page.goto(`${url}/#/jobs/${ids.done}/whatif?free=lunch`);
        await page.getByRole("alert").getByText("free: expected scheduler").waitFor();
        let asked = 0;
        await page.route("**/whatif?*", (route) => (++asked === 1
            ? route.fulfill({ status: 429, contentType: "application/json", body: JSON.stringify({ code: 8, message: "another prediction is being made", details: [] }) }) : route.continue()));
        await page.goto(`${url}/#/jobs/${ids.done}/whatif?slots=2`);
        await page.getByText("The page asks again by itself.").waitFor();
        await page.getByRole("heading", { name: "Predicted: 2 slots" }).waitFor();
        await page.context().close();
    },
    async "an older cluster, without tiles, live state and samples, is shown too"() {
        const page = await open();
        const missing = { status: 404, contentType: "application/json", body: JSON.stringify({ code: 5, message: "there is nothing here", details: [] }) };
        for (const path of ["**/tiles?*", "**/v1/cluster/live", "**/v1/samples?*"]) await page.route(path, (route) => route.fulfill(missing));
        await logIn(page, tokens.admin);
        await page.locator(".legend").getByText("run tasks").waitFor();
        await go(page, `jobs/${ids.done}/timeline`, "array.matmul");
        await page.getByLabel("Color by").selectOption("class");
        await page.getByText("This cluster has no tiles").waitFor();
        await go(page, "workers", "connected");
        assert.equal(await page.getByText("Use over the last ten minutes").count(), 0);
        await page.context().close();
    },
    async "a reader sees everything and changes nothing"() {
        const page = await open();
        await logIn(page, tokens.reader);
        await page.getByText("(reader)").waitFor();
        await go(page, `jobs/${ids.running}`, "Progress by operator");
        assert.equal(await page.getByRole("button", { name: "Cancel" }).isDisabled(), true);
        await go(page, "workers", "connected");
        assert.equal(await page.getByRole("button", { name: "Drain" }).first().isDisabled(), true);
        await go(page, "objects", "f64[192,192]");
        assert.equal(await page.getByRole("button", { name: "Delete" }).first().isDisabled(), true);
        await page.context().close();
    },
    async "a tab that was hidden shows the present state of its job"() {
        const page = await open();
        await logIn(page, tokens.admin);
        await page.getByText("What the slots do now").waitFor();
        const { id } = await call("POST", "/v1/jobs", { name: "goes on behind", tasks: { soon: { op: "sleep", args: [1.5] }, late: { op: "sleep", args: [600] } } });
        await go(page, `jobs/${id}`, "goes on behind");
        await page.locator("main").getByText(/[01] of 2 tasks/).waitFor();
        await setHidden(page, true);
        while ((await call("GET", `/v1/jobs/${id}`)).counts.done !== "1") await new Promise((r) => setTimeout(r, 100));
        await setHidden(page, false);
        await page.locator("main").getByText("1 of 2 tasks").waitFor();
        await setHidden(page, true);
        await call("POST", `/v1/jobs/${id}:cancel`, {});
        await setHidden(page, false);
        await page.locator(".title .badge").getByText("cancelled").waitFor();
        await page.context().close();
    },
    async "the page outlives the scheduler, and does not jump"() {
        // The window is low, so that the page scrolls.
        const page = await open({ viewport: { width: 1280, height: 420 } });
        await logIn(page, tokens.admin);
        await page.getByText("What the slots do now").waitFor();
        const { id } = await call("POST", "/v1/jobs", { name: "outlives the scheduler", tasks: { wait: { op: "sleep", args: [600] } } });
        await go(page, `jobs/${id}`, "outlives the scheduler");
        await page.locator(".title .badge").getByText("running").waitFor();
        await page.locator("main").getByText("Targets").waitFor();
        const other = await page.context().newPage(), deep = await page.context().newPage();
        await go(other, "overview", "Tasks a second");
        const { epoch } = await page.evaluate(() => fetch("/v1/cluster").then((r) => r.json()));
        await page.getByRole("button", { name: "Cancel" }).focus();
        await page.evaluate(() => window.scrollTo(0, 60));
        const place = () => page.evaluate(() => [document.activeElement?.textContent, document.activeElement?.getBoundingClientRect().top, window.scrollY]);
        const before = await place();
        assert.deepEqual([before[0], before[2]], ["Cancel", 60]);

        console.log("kill scheduler");
        const { value: answer } = await lines.next();
        if (answer === "cannot") {
            console.log("SKIPPED: the page outlives the scheduler: no command kills and starts the scheduler");
            await call("POST", `/v1/jobs/${id}:cancel`, {});
            return page.context().close();
        }
        const banner = (of) => of.locator("#banner").getByText("The cluster is not ready");
        // The address of a job is opened while the scheduler is away.
        await deep.goto(`${url}/#/jobs/${id}`);
        for (const one of [page, other, deep]) await banner(one).waitFor();
        await deep.locator("main").getByText("The page asks again by itself").waitFor();
        await other.locator(".alarms").getByText("Not known: the last state is of").waitFor();
        await other.getByText("What the slots do now").waitFor();
        await page.locator(".title .badge").getByText("running").waitFor();
        await page.locator("main").getByText("Targets").waitFor();
        assert.deepEqual(await place(), before, "the page has jumped");
        assert.ok(await banner(page).evaluate((e) => e.getBoundingClientRect().bottom <= innerHeight && e.getBoundingClientRect().top >= 0), "the banner is outside of the window");

        console.log("start scheduler");
        await lines.next();
        for (const one of [page, other, deep]) await banner(one).waitFor({ state: "detached" });
        await other.locator(".events").getByText(`started, epoch ${epoch + 1}`).waitFor();
        await other.locator(".badge").getByText("connected").first().waitFor();
        await other.locator(".alarms").getByText("Not known").waitFor({ state: "detached" });
        for (const one of [page, deep]) await one.locator(".title .badge").getByText("running").waitFor();
        await deep.getByRole("heading", { name: "outlives the scheduler" }).waitFor();
        assert.deepEqual(await place(), before, "the page has jumped");
        // The pages still follow the job.
        await call("POST", `/v1/jobs/${id}:cancel`, {});
        for (const one of [page, deep]) await one.locator(".title .badge").getByText("cancelled").waitFor();
        await page.context().close();
    },
    async "a user cancels, retries and forgets a job, stops a training, deletes an object"() {
        const page = await open();
        await logIn(page, tokens.user);
        await go(page, `jobs/${ids.running}`, "slow scan");
        await sure(page, "Cancel");
        await page.locator(".title .badge").getByText("cancelled").waitFor();
        await page.getByRole("button", { name: "Retry" }).click();
        await page.locator(".title .badge").getByText(/running|pending/).waitFor();
        await sure(page, "Cancel");
        await page.locator(".title .badge").getByText("cancelled").waitFor();
        await sure(page, "Forget");
        await page.getByRole("heading", { name: "Jobs" }).waitFor();
        await page.goto(`${url}/#/jobs/${ids.running}`);
        await page.getByText("forgotten").first().waitFor();
        console.log("start a training");
        const { value: training } = await lines.next();
        await go(page, `trainings/${training}`, "cross entropy");
        await sure(page, "Stop");
        await page.locator(".title .badge").getByText(/stopping|done/).waitFor();
        await go(page, "objects", "f64");
        await page.locator("tbody tr", { hasText: "scratch" }).getByRole("button", { name: "Delete" }).click();
        await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
        await page.locator(".said").getByText("The object is deleted.").waitFor();
        // the training that was stopped may add objects meanwhile
        await page.locator("tbody tr", { hasText: "scratch" }).waitFor({ state: "detached" });
        await go(page, "workers", "connected");
        assert.equal(await page.getByRole("button", { name: "Drain" }).first().isDisabled(), true);
        await page.context().close();
    },
    async "an admin drains a worker"() {
        const page = await open();
        await logIn(page, tokens.admin);
        await go(page, "workers", "connected");
        await page.getByRole("button", { name: "Drain" }).first().click();
        await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
        await page.locator(".said").getByText("leaves when its running tasks have ended").waitFor();
        await page.context().close();
    },
};

let failed = 0;
for (const [name, step] of Object.entries(steps)) {
    if (process.env.ONLY && !name.includes(process.env.ONLY)) continue;
    const begin = Date.now();
    try {
        await step();
        assert.deepEqual(strangers, [], "requests that left the origin");
        assert.deepEqual(faults, [], "faults of scripts");
        assert.deepEqual(flaws, [], "flaws of pages");
        console.log(`ok: ${name} (${((Date.now() - begin) / 1000).toFixed(1)} s)`);
    } catch (e) {
        failed++;
        console.log(`FAILED: ${name}\n${e.stack}`);
        for (const context of browser.contexts()) {
            for (const page of context.pages()) console.log(`at ${page.url()}\n${await page.locator("body").innerText().catch(() => "")}`);
            await context.close();
        }
        break;
    }
}
await browser.close();
process.exit(failed ? 1 : 0);
