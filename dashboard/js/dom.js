/* Elements without a framework. A page is a function that returns elements made by h(). `morph`
 * changes what the browser shows into these elements, node by node, so the focus, the scroll
 * position and open details stay as they are while numbers change. */

/** @typedef {Node | string | number | bigint | null | undefined | false | any[]} Child a list: its items */
/** @typedef {{[name: string]: any}} Attributes */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {Element} element
 * @param {Attributes} attributes `on…`: handlers; `style`: an object of CSS properties; `key`: tells
 *   apart the children of one element; `keep`: morph leaves the element and its
 *   children alone
 */
function assign(element, attributes) {
    for (const [name, value] of Object.entries(attributes)) {
        if (name === "checked") Object.assign(element, { checked: value, mrHasChecked: true });
        else if (value === undefined || value === null || value === false) continue;
        else if (name.startsWith("on")) /** @type {any} */ (element)[name] = value;
        else if (name === "style") setStyle(/** @type {HTMLElement} */ (element), value);
        else if (name === "key") /** @type {any} */ (element).mrKey = String(value);
        else if (name === "keep") /** @type {any} */ (element).mrKeep = true;
        else if (name === "value") Object.assign(element, { value, mrHasValue: true });
        else element.setAttribute(name, value === true ? "" : String(value));
    }
}

/** Sets properties by script, which the Content-Security-Policy allows; attributes it does not.
 * @param {HTMLElement | SVGElement} element @param {{[name: string]: string | number}} style */
function setStyle(element, style) {
    for (const [name, value] of Object.entries(style)) element.style.setProperty(name, String(value));
}

/** @param {Element} element @param {Array<Child | Child[]>} children */
function append(element, children) {
    for (const child of children.flat(Infinity))
        if (child !== null && child !== undefined && child !== false)
            element.append(child instanceof Node ? child : String(child));
}

/**
 * Makes an element of HTML.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    append(element, children);
    assign(element, attributes);
    return element;
}

/**
 * Makes an element of SVG.
 * @param {string} tag
 * @param {Attributes} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export function svg(tag, attributes = {}, ...children) {
    const element = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
    append(element, children);
    assign(element, attributes);
    return element;
}

const HANDLERS = ["onclick", "oninput", "onchange", "onsubmit", "onkeydown", "ontoggle", "onpointermove", "onpointerleave"];

/** @param {Node} a @param {Node} b */
function isSame(a, b) {
    const x = /** @type {any} */ (a), y = /** @type {any} */ (b);
    return a.nodeType === b.nodeType && a.nodeName === b.nodeName && x.mrKey === y.mrKey;
}

/** @param {any} old @param {any} now */
function morphElement(old, now) {
    if (now.mrKeep) return;
    for (const { name } of [...old.attributes])
        if (name !== "style" && !now.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
    for (const { name, value } of now.attributes)
        if (name !== "style" && name !== "open" && old.getAttribute(name) !== value) old.setAttribute(name, value);
    if (old.style && old.style.cssText !== now.style.cssText) old.style.cssText = now.style.cssText;
    for (const name of HANDLERS) if (old[name] !== now[name]) old[name] = now[name];
    morphChildren(old, [...now.childNodes]);
    // What a person types stays, unless the page says the value.
    if (now.mrHasValue && old !== document.activeElement && old.value !== now.value) old.value = now.value;
    if (now.mrHasChecked) old.checked = now.checked;
}

/** @param {Element} parent @param {Node[]} wanted */
function morphChildren(parent, wanted) {
    const keyed = new Map();
    for (const child of parent.childNodes) {
        const key = /** @type {any} */ (child).mrKey;
        if (key !== undefined) keyed.set(key, child);
    }
    /** @type {ChildNode | null} */
    let at = parent.firstChild;
    for (const now of wanted) {
        const key = /** @type {any} */ (now).mrKey;
        const found = key === undefined ? at : keyed.get(key) ?? at;
        if (found && isSame(found, now)) {
            if (found !== at) parent.insertBefore(found, at);
            else at = found.nextSibling;
            if (found === now) continue;
            if (now.nodeType === Node.ELEMENT_NODE) morphElement(found, now);
            else if (found.nodeValue !== now.nodeValue) found.nodeValue = now.nodeValue;
        } else {
            parent.insertBefore(now, at);
        }
    }
    while (at) {
        const next = at.nextSibling;
        at.remove();
        at = next;
    }
}

/**
 * Makes `parent` show these children.
 * @param {Element} parent
 * @param {...(Child | Child[])} children
 */
export function morph(parent, ...children) {
    const box = document.createElement("div");
    append(box, children);
    morphChildren(parent, [...box.childNodes]);
}

/** Says a sentence to users of screen readers. @param {string} text */
export function announce(text) {
    const box = document.getElementById("said");
    if (box) box.textContent = text;
}

/**
 * Calls `draw` once before the next frame, however often it was asked for.
 * @param {() => void} draw
 * @returns {() => void}
 */
export function onFrame(draw) {
    let isAsked = false;
    return () => {
        if (isAsked) return;
        isAsked = true;
        requestAnimationFrame(() => {
            isAsked = false;
            draw();
        });
    };
}
