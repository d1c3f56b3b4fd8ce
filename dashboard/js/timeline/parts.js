/* The elements around the canvas: buttons, tooltip, note, help, texts for screen readers. */
import { HELP } from "./text.js";

/** @typedef {import("./text.js").Words} Words */

let count = 0;

/** @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {string} name class @param {HTMLElement} [parent] @returns {HTMLElementTagNameMap[K]} */
function element(tag, name, parent) {
    const e = document.createElement(tag);
    e.className = name;
    parent?.append(e);
    return e;
}

export class Parts {
    /** @param {HTMLElement} container @param {string} label
     * @param {{zoom: (factor: number) => void, whole: () => void}} act */
    constructor(container, label, act) {
        const id = `mr-timeline-${++count}`;
        this.root = element("div", "mr-timeline");
        this.root.tabIndex = 0;
        this.root.setAttribute("role", "application");
        this.root.setAttribute("aria-roledescription", "timeline");
        this.root.setAttribute("aria-label", label);
        this.root.setAttribute("aria-describedby", `${id}-keys`);
        this.canvas = element("canvas", "mr-timeline-canvas", this.root);
        this.canvas.setAttribute("aria-hidden", "true");

        const keys = element("p", "mr-timeline-unseen", this.root);
        keys.id = `${id}-keys`;
        keys.textContent = `${HELP.map(([k, v]) => `${k}: ${v}`).join(". ")}.`;
        this.live = element("div", "mr-timeline-unseen", this.root);
        this.live.setAttribute("role", "status");

        this.note = element("div", "mr-timeline-note", this.root);
        this.note.hidden = true;
        this.tip = element("div", "mr-timeline-tip", this.root);
        this.tip.setAttribute("aria-hidden", "true");
        this.tip.hidden = true;

        this.help = element("div", "mr-timeline-help", this.root);
        this.help.id = `${id}-help`;
        this.help.hidden = true;
        const list = element("dl", "", this.help);
        for (const [k, v] of HELP) {
            const row = element("div", "", list);
            element("dt", "", row).textContent = k;
            element("dd", "", row).textContent = v;
        }
        const tools = element("div", "mr-timeline-tools", this.root);
        this.button(tools, "−", "Zoom out", () => act.zoom(2));
        this.button(tools, "+", "Zoom in", () => act.zoom(0.5));
        this.button(tools, "⟷", "Show the whole job", () => act.whole());
        this.helpButton = this.button(tools, "?", "Keys and gestures", () => this.toggleHelp());
        this.helpButton.setAttribute("aria-expanded", "false");
        this.helpButton.setAttribute("aria-controls", this.help.id);
        container.append(this.root);
    }

    /** @param {HTMLElement} parent @param {string} text @param {string} label @param {() => void} run */
    button(parent, text, label, run) {
        const b = element("button", "", parent);
        b.type = "button";
        b.textContent = text;
        b.title = label;
        b.setAttribute("aria-label", label);
        b.addEventListener("click", run);
        return b;
    }

    /** @param {boolean} [isOpen] */
    toggleHelp(isOpen = this.help.hidden) {
        this.help.hidden = !isOpen;
        this.helpButton.setAttribute("aria-expanded", String(isOpen));
    }

    /** Speaks through a screen reader. @param {string} text */
    say(text) {
        this.live.textContent = text;
    }

    /** @param {string} text "": nothing to note @param {() => void} [retry] */
    setNote(text, retry) {
        const key = text + (retry ? "!" : "");
        if (this.note.dataset.key === key) return;
        this.note.dataset.key = key;
        this.note.textContent = text;
        this.note.hidden = !text;
        if (retry) this.button(this.note, "Try again", "Load again", retry);
    }

    hideTip() {
        this.tip.hidden = true;
    }

    /** @param {Words} words @param {number} x of the pointer @param {number} y */
    showTip(words, x, y) {
        const key = JSON.stringify(words);
        if (this.tip.dataset.key !== key || this.tip.hidden) {
            this.tip.dataset.key = key;
            this.fillTip(words);
        }
        this.tip.hidden = false;
        const [w, h] = [this.tip.offsetWidth, this.tip.offsetHeight];
        const [W, H] = [this.root.clientWidth, this.root.clientHeight];
        const left = x + 14 + w <= W ? x + 14 : Math.max(4, x - 14 - w);
        const top = y + 18 + h <= H ? y + 18 : Math.max(4, y - 12 - h);
        this.tip.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
    }

    /** @param {Words} words */
    fillTip(words) {
        this.tip.replaceChildren();
        const title = element("div", "mr-timeline-title", this.tip);
        if (words.color) element("span", "mr-timeline-swatch", title).style.background = words.color;
        title.append(words.title);
        if (words.subtitle) element("div", "mr-timeline-subtitle", this.tip).textContent = words.subtitle;
        const list = element("dl", "", this.tip);
        for (const [k, v] of words.lines) {
            const row = element("div", "", list);
            element("dt", "", row).textContent = k;
            element("dd", "", row).textContent = v;
        }
    }

    remove() {
        this.root.remove();
    }
}
