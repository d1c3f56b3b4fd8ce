/* The frame of the dashboard: header, navigation, theme, banner, and which page stands in the middle.
 * The part of the address behind "#" names the page: "#/jobs/j1-7/timeline?color=class". */
import { announce, h, morph } from "./dom.js";
import { errorBox } from "./parts.js";
import { Session } from "./session.js";
import { openLogin } from "./pages/login.js";
import { openOverview } from "./pages/overview.js";
import { openJobs } from "./pages/jobs.js";
import { openJob } from "./pages/job.js";
import { openWorkers } from "./pages/workers.js";
import { openObjects } from "./pages/objects.js";
import { openTrainings } from "./pages/trainings.js";
import { openTraining } from "./pages/training.js";
import { openChannels } from "./pages/channels.js";
import { openLibrary } from "./pages/library.js";

/**
 * @typedef {object} Route
 * @property {string[]} path parts of the address, decoded
 * @property {URLSearchParams} query
 */

/**
 * @typedef {object} Context what a page gets
 * @property {Session} session
 * @property {HTMLElement} root the page's own element
 * @property {Route} route
 * @property {(title: string) => void} title
 */

/**
 * @typedef {object} Page
 * @property {() => void} close
 * @property {(route: Route) => boolean} [change] shows another route of the same page; false: the
 *   page has to be opened anew
 * @property {() => void} [retheme]
 */

/** @type {Array<{name: string, title: string, open: (c: Context) => Page}>} */
const PAGES = [
    { name: "overview", title: "Overview", open: openOverview },
    { name: "jobs", title: "Jobs", open: (c) => (c.route.path[1] ? openJob(c) : openJobs(c)) },
    { name: "workers", title: "Workers", open: openWorkers },
    { name: "objects", title: "Objects", open: openObjects },
    { name: "trainings", title: "Trainings", open: (c) => (c.route.path[1] ? openTraining(c) : openTrainings(c)) },
    { name: "channels", title: "Channels & queues", open: openChannels },
    { name: "library", title: "Templates & operators", open: openLibrary },
];

const session = new Session();
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const top_ = /** @type {HTMLElement} */ (document.getElementById("top"));
const banner = /** @type {HTMLElement} */ (document.getElementById("banner"));
/** @type {Page | undefined} */
let page;
let pageName = "";
let isLogin = false;

/** @returns {Route} */
function routeNow() {
    const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
    const parts = path.split("/").map((p) => {
        try {
            return decodeURIComponent(p);
        } catch {
            return p;
        }
    });
    return { path: parts[0] ? parts : ["overview"], query: new URLSearchParams(query ?? "") };
}

function drawHeader() {
    const now = routeNow().path[0];
    const theme = document.documentElement.dataset.theme ?? "auto";
    const links = PAGES.map((p) => h("a", { key: p.name, href: `#/${p.name}`, "aria-current": !isLogin && p.name === now ? "page" : undefined }, p.title));
    const next = { auto: "light", light: "dark", dark: "auto" }[theme] ?? "auto";
    morph(top_, h("a", { class: "brand", href: "#/overview" }, h("img", { src: "icon.svg", alt: "", width: 22, height: 22 }), "millrace"),
        isLogin ? h("span", { class: "fill" }) : h("nav", { "aria-label": "Pages" }, links),
        h("button", { type: "button", class: "theme", onclick: () => setTheme(next), title: `Theme: ${theme}. Click for ${next}.`,
            "aria-label": `Theme: ${theme}` }, { auto: "◐", light: "○", dark: "●" }[theme] ?? "◐"),
        session.hasUsers ? h("span", { class: "user" }, h("span", {}, `${session.identity?.name} (${session.identity?.role})`),
            h("button", { type: "button", onclick: logout }, "Log out")) : null);
}

function drawBanner() {
    const e = session.trouble;
    morph(banner, e ? h("p", {}, h("strong", {}, e.name === "ConnectionError" ? "The gateway does not answer." : `The cluster is not ready: ${e.message}.`),
        " The page shows what it knew last, and asks again by itself.") : null);
    document.body.classList.toggle("stale", !!e);
}

session.onChange = () => {
    drawHeader();
    drawBanner();
};
session.onLogin = showLogin;

/** @param {string} theme */
function setTheme(theme) {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    localStorage.setItem("millrace.theme", theme);
    drawHeader();
    page?.retheme?.();
}

async function logout() {
    try {
        await session.logout();
        showLogin();
    } catch (e) {
        session.note(e);
    }
}

/** @param {string} name @param {(c: Context) => Page} open @param {Route} route */
function show(name, open, route) {
    page?.close();
    const root = h("div", { class: `page ${name}` });
    main.replaceChildren(root);
    const title = (/** @type {string} */ text) => {
        document.title = `${text} · millrace`;
    };
    page = open({ session, root, route, title });
    pageName = name;
}

function showLogin() {
    if (isLogin) return;
    isLogin = true;
    show("login", (c) => openLogin(c, () => {
        isLogin = false;
        pageName = "";
        showRoute();
    }), routeNow());
    drawHeader();
}

function showRoute() {
    if (isLogin || (location.hash && !location.hash.startsWith("#/"))) return;
    const route = routeNow();
    const found = PAGES.find((p) => p.name === route.path[0]);
    const name = route.path.slice(0, 2).join("/");
    if (page?.change && name === pageName && page.change(route)) return;
    if (found) {
        show(name, found.open, route);
        main.focus({ preventScroll: true });
        window.scrollTo(0, 0);
        announce(found.title);
    } else {
        page?.close();
        page = undefined;
        main.replaceChildren(h("h1", {}, "No such page"), h("p", {}, "Choose one of the pages above."));
    }
    drawHeader();
}

async function start() {
    setTheme(localStorage.getItem("millrace.theme") ?? "auto");
    document.querySelector(".skip")?.addEventListener("click", (e) => {
        e.preventDefault();
        main.focus();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page?.retheme?.());
    addEventListener("hashchange", showRoute);
    for (let wait = 1000; ; wait = Math.min(2 * wait, 8000)) {
        try {
            await session.start();
            break;
        } catch (e) {
            session.note(e);
            if (isLogin) return;
            main.replaceChildren(errorBox(e));
            await new Promise((r) => setTimeout(r, wait));
        }
    }
    session.note(undefined);
    showRoute();
}

start();
