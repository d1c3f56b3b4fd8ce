/* Parts that several pages show: tables, bars, badges, errors, actions. */
import { ApiError, ConnectionError } from "../client/millrace.js";
import { announce, h } from "./dom.js";
import { clock, count, isoTime, plain, share } from "./format.js";

/** @typedef {import("./dom.js").Child} Child */
/** @typedef {import("./session.js").Session} Session */

/** A name that may break after a slash. @param {string} name @returns {Child[]} */
export function breakable(name) {
    return name.split("/").flatMap((part, i) => (i ? ["/", h("wbr", {}), part] : [part]));
}

/** @param {bigint} ns @returns {Child} */
export function time(ns) {
    return ns ? h("time", { datetime: isoTime(ns), title: isoTime(ns) }, clock(ns)) : "–";
}

/** What a person can do about an error. @param {any} e */
function advice(e) {
    if (e instanceof ConnectionError) return "Is the gateway running? The page asks again by itself.";
    if (!(e instanceof ApiError)) return "This is a fault of the page. Reload it; if that does not help, report it with the text above.";
    if (e.status === 403) return "Your role does not allow it. Log in with another token, or ask an admin.";
    if (e.status === 404) return "It may have been forgotten or deleted. Go back to the list.";
    if (e.status === 501) return "The cluster is older than this page. Update its services.";
    if (e.isTransient) return "The page asks again by itself. The page Overview says what is missing.";
    return "";
}

/** @param {any} e @param {(() => void)} [again] */
export function errorBox(e, again) {
    return h("div", { class: "error", role: "alert", key: "problem" },
        h("p", {}, h("strong", {}, e.message || String(e))),
        h("p", {}, advice(e)),
        again && h("button", { type: "button", onclick: again }, "Try again"));
}

/** True: the cluster has no such method, because it is older or built without it. @param {any} e */
export function isMissing(e) {
    return e instanceof ApiError && (e.status === 404 || e.status === 405 || e.status === 501);
}

/**
 * What a feed has: its data, with a note if it is old; or its error; or that it is loading.
 * @template T
 * @param {import("./feed.js").Feed<T>} feed
 * @param {(data: T) => Child | Child[]} show
 * @returns {Child[]}
 */
export function shown(feed, show) {
    if (feed.data !== undefined) {
        const old = feed.error && !feed.error.isTransient ? errorBox(feed.error, () => feed.refresh()) : null;
        return [old, show(feed.data)].flat();
    }
    if (feed.error) return [errorBox(feed.error, () => feed.refresh())];
    return [h("p", { class: "quiet loading" }, "Loading…")];
}

/** @param {string} title @param {...Child} next what to do next */
export function empty(title, ...next) {
    return h("div", { class: "empty" }, h("p", {}, h("strong", {}, title)), h("p", {}, ...next));
}

const TONES = /** @type {{[state: string]: string}} */ ({ done: "good", finished: "good", connected: "good", here: "good", running: "busy", forming: "busy",
    preparing: "busy", stopping: "busy", recovering: "warn", pending: "idle", failed: "bad", lost: "bad", erred: "bad", silent: "warn", retiring: "warn",
    missing: "warn", cancelled: "idle", timeout: "bad" });
const SIGNS = /** @type {{[tone: string]: string}} */ ({ good: "✓", bad: "✕", warn: "!", busy: "▸", idle: "·" });

/** A state in words, with a colour and a sign. @param {string} state */
export function badge(state) {
    const text = plain(state);
    const tone = TONES[text] ?? "idle";
    return h("span", { class: `badge ${tone}` }, h("span", { "aria-hidden": "true" }, SIGNS[tone]), " ", text);
}

/**
 * @template T
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: T) => Child | Child[]} cell
 * @property {boolean} [isNumber]
 * @property {boolean} [isWide] the text may break
 * @property {(row: T) => number | bigint | string} [sort] the column can be sorted by this
 */

/**
 * @template T
 * @param {object} o
 * @param {string} o.label for screen readers
 * @param {Column<T>[]} o.columns
 * @param {T[]} o.rows
 * @param {(row: T) => string} o.key
 * @param {Child} [o.foot]
 * @param {{column: string, down: boolean}} [o.order] is changed by a click
 * @param {() => void} [o.redraw]
 */
export function table(o) {
    const { order } = o;
    const by = order && o.columns.find((c) => c.title === order.column)?.sort;
    const rows = by ? [...o.rows].sort((a, b) => (by(a) < by(b) ? -1 : by(a) > by(b) ? 1 : 0) * (order.down ? -1 : 1)) : o.rows;
    const head = (/** @type {Column<T>} */ c) => {
        const now = order?.column === c.title ? (order.down ? "descending" : "ascending") : undefined;
        if (!c.title) return h("td", {});
        if (!c.sort || !order) return h("th", { scope: "col", class: c.isNumber ? "number" : "" }, c.title);
        const click = () => {
            order.down = order.column === c.title ? !order.down : !!c.isNumber;
            order.column = c.title;
            o.redraw?.();
        };
        return h("th", { scope: "col", class: c.isNumber ? "number" : "", "aria-sort": now ?? "none" },
            h("button", { type: "button", class: "sort", onclick: click }, c.title, h("span", { "aria-hidden": "true" }, now ? (order.down ? " ▾" : " ▴") : "")));
    };
    return h("div", { class: "scroll", role: "region", "aria-label": o.label, tabindex: "0" },
        h("table", {}, h("caption", { class: "unseen" }, o.label),
            h("thead", {}, h("tr", {}, o.columns.map(head))),
            h("tbody", {}, rows.map((row) => h("tr", { key: o.key(row) },
                o.columns.map((c) => h("td", { class: `${c.isNumber ? "number" : ""} ${c.isWide ? "wide" : ""}`.trim() }, c.cell(row)))))),
            o.foot));
}

/**
 * Parts of a whole, side by side. The same numbers stand in a table or list next to it.
 * @param {Array<{name: string, value: number, color: string}>} parts
 * @param {number} whole
 * @param {string} label
 */
export function stack(parts, whole, label) {
    const filled = parts.filter((p) => p.value > 0);
    const text = filled.map((p) => `${p.name} ${share(p.value, whole)}`).join(", ");
    return h("div", { class: "stack", role: "img", "aria-label": `${label}: ${text || "nothing"}` },
        filled.map((p) => h("span", { key: p.name, title: `${p.name}: ${share(p.value, whole)}`,
            style: { "flex-grow": whole ? p.value / whole : 0, "background-color": p.color } })));
}

/** @param {number} part @param {number} whole @param {string} [color] */
export function bar(part, whole, color = "var(--accent)") {
    const width = whole > 0 ? Math.min(100, (100 * part) / whole) : 0;
    return h("div", { class: "bar", "aria-hidden": "true" }, h("span", { style: { width: `${width}%`, "background-color": color } }));
}

/** A number with its name. @param {string} name @param {Child | Child[]} value @param {Child | Child[]} [more] */
export function figure(name, value, more) {
    return h("div", { class: "figure", key: name }, h("dt", {}, name), h("dd", {}, value, more ? h("small", {}, more) : null));
}

/**
 * Tasks of a job by state, as a bar and in words.
 * @param {import("../client/api.d.ts").TaskCounts | undefined} c
 */
export function progress(c) {
    if (!c) return h("span", { class: "quiet" }, "–");
    const whole = Number(c.submitted - c.culled);
    const parts = [{ name: "done", value: Number(c.done), color: "var(--good)" }, { name: "running", value: Number(c.running), color: "var(--busy)" },
        { name: "failed", value: Number(c.erred), color: "var(--bad)" }, { name: "cancelled", value: Number(c.cancelled), color: "var(--idle)" }];
    return h("div", { class: "progress" }, stack(parts, whole, "Tasks"), h("small", {}, `${count(c.done)} of ${count(whole)}`));
}

/** Actions that run now. A page that is drawn again leaves their buttons off. @type {Set<string>} */
const running = new Set();

/**
 * A button for an action that changes the cluster. It is off while the action runs, and if the
 * user's role does not allow the action. The outcome is shown by `say`.
 * @param {object} o
 * @param {Session} o.session
 * @param {"user" | "admin"} o.role
 * @param {string} o.label
 * @param {string} o.of id of what is changed
 * @param {string} [o.sure] a question to confirm
 * @param {boolean} [o.isDanger]
 * @param {() => Promise<string>} o.act returns what to say
 * @param {(said: Said) => void} o.say
 */
export function action(o) {
    const isAllowed = o.session.may(o.role);
    const name = `${o.label} ${o.of}`;
    const click = async (/** @type {Event} */ event) => {
        const button = /** @type {HTMLButtonElement} */ (event.currentTarget);
        if (o.sure && !(await confirmed(o.sure, o.label))) return;
        running.add(name);
        button.disabled = true;
        try {
            const text = await o.act();
            announce(text);
            o.say({ text });
        } catch (e) {
            o.session.note(e);
            o.say({ error: e });
        } finally {
            running.delete(name);
            button.disabled = false;
        }
    };
    return h("button", { type: "button", key: `action ${o.label}`, class: o.isDanger ? "danger" : "", disabled: !isAllowed || running.has(name), onclick: click,
        title: isAllowed ? undefined : `This needs the role ${o.role}; yours is ${o.session.identity?.role ?? "unknown"}.` }, o.label);
}

/** @typedef {{text?: string, error?: any} | undefined} Said */

/** @param {Said} said */
export function outcome(said) {
    if (!said) return null;
    return said.error ? errorBox(said.error) : h("p", { class: "said" }, said.text ?? "");
}

/** Asks a question in a dialog. @param {string} question @param {string} yes @returns {Promise<boolean>} */
function confirmed(question, yes) {
    return new Promise((resolve) => {
        const close = (/** @type {boolean} */ answer) => {
            dialog.close();
            dialog.remove();
            resolve(answer);
        };
        const dialog = h("dialog", { "aria-labelledby": "question" }, h("p", { id: "question" }, question),
            h("div", { class: "row" },
                h("button", { type: "button", class: "danger", onclick: () => close(true) }, yes),
                h("button", { type: "button", onclick: () => close(false) }, "Keep it as it is")));
        dialog.addEventListener("cancel", (e) => {
            e.preventDefault();
            close(false);
        });
        document.body.append(dialog);
        dialog.showModal();
    });
}

/** Buttons to the older and the newer rows of a list. @param {{token: string, next: string, go: (token: string) => void, back: () => void, isFirst: boolean}} o */
export function pager(o) {
    if (o.isFirst && !o.next) return null;
    return h("nav", { class: "row pager", "aria-label": "Pages of the list" },
        h("button", { type: "button", disabled: o.isFirst, onclick: o.back }, "‹ Previous page"),
        h("button", { type: "button", disabled: !o.next, onclick: () => o.go(o.next) }, "Next page ›"));
}
