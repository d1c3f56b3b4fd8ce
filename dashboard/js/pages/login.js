/* Exchanges a token for the gateway's cookie. The token stays in the form and is forgotten with it. */
import { h, morph } from "../dom.js";

/**
 * @param {import("../main.js").Context} c
 * @param {() => void} done
 * @returns {import("../main.js").Page}
 */
export function openLogin(c, done) {
    let problem = "";
    let isBusy = false;
    c.title("Log in");

    async function submit(/** @type {Event} */ event) {
        event.preventDefault();
        const form = /** @type {HTMLFormElement} */ (event.target);
        const field = /** @type {HTMLInputElement} */ (form.elements.namedItem("token"));
        const keep = /** @type {HTMLInputElement} */ (form.elements.namedItem("keep"));
        isBusy = true;
        problem = "";
        draw();
        try {
            if (!field.value.trim()) throw new Error("The token is empty.");
            await c.session.login(field.value.trim(), keep.checked);
            field.value = "";
            done();
        } catch (e) {
            isBusy = false;
            problem = /** @type {Error} */ (e).message;
            draw();
            field.select();
        }
    }

    function draw() {
        morph(c.root, h("form", { class: "card login", onsubmit: submit }, h("h1", {}, "Log in"),
            h("p", {}, "This cluster has users. Paste your token. Each line of the gateway's token file has the token of one user, that user's role and name; ask the admin of the cluster for yours."),
            h("label", { for: "token" }, "Token"),
            h("input", { id: "token", name: "token", type: "password", autocomplete: "off", required: true, "aria-describedby": "problem" }),
            h("label", { class: "row" }, h("input", { type: "checkbox", name: "keep" }), "Stay logged in for a week on this computer"),
            h("button", { type: "submit", class: "main", disabled: isBusy }, isBusy ? "Logging in…" : "Log in"),
            h("p", { id: "problem", class: "problem", role: "alert" }, problem)));
    }

    draw();
    c.root.querySelector("input")?.focus();
    return { close() {} };
}
