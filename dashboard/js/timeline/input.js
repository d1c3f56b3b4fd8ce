/* Pointers, wheel and keys, as actions on a timeline. Places are CSS pixels of the canvas. */

/**
 * @typedef {object} Actions
 * @property {(x: number, y: number) => "plot" | "labels" | "overview" | "none"} partAt
 * @property {() => void} beginDrag remembers the window and the rows
 * @property {(dx: number, dy: number) => void} drag moves from where the drag began
 * @property {(a: number, b: number) => void} beginPinch places of two fingers
 * @property {(a: number, b: number) => void} pinch
 * @property {(x: number) => void} jump the overview was pressed there
 * @property {(from: number | null, until: number, isDone: boolean) => void} brush null: given up
 * @property {(x: number, factor: number) => void} zoomAt
 * @property {(dx: number) => void} panBy
 * @property {(dy: number) => boolean} scrollBy false: no row is further there
 * @property {(factor: number) => void} growRows
 * @property {(x: number, y: number) => void} hover
 * @property {() => void} leave
 * @property {(x: number, y: number) => void} click
 * @property {(x: number, y: number) => void} doubleClick
 * @property {() => void} hintWheel
 * @property {(key: string, isLarge: boolean) => boolean} key false: not a key of the timeline
 */

/** Pixels that a pointer may move and still click. */
const CLICK_PX = 4;

/** @param {HTMLElement} root receives keys @param {HTMLElement} surface receives pointers
 * @param {Actions} act @returns {() => void} ends it */
export function listen(root, surface, act) {
    const end = new AbortController();
    const o = { signal: end.signal };
    pointers(surface, act, o);
    surface.addEventListener("wheel", (e) => wheel(e, surface, act), { ...o, passive: false });
    surface.addEventListener("dblclick", (e) => act.doubleClick(e.offsetX, e.offsetY), o);
    root.addEventListener("keydown", (e) => {
        if (e.target !== root || e.ctrlKey || e.metaKey || e.altKey) return;
        if (act.key(e.key, e.shiftKey)) e.preventDefault();
    }, o);
    return () => end.abort();
}

/** @param {HTMLElement} surface @param {Actions} act @param {{signal: AbortSignal}} o */
function pointers(surface, act, o) {
    /** @type {Map<number, {x: number, y: number}>} */
    const down = new Map();
    /** @type {"none" | "press" | "drag" | "pinch" | "brush" | "overview"} */
    let mode = "none";
    let origin = { x: 0, y: 0 };
    const fingers = () => [...down.values()].map((p) => p.x);
    const press = (/** @type {{x: number, y: number}} */ p) => {
        origin = p;
        act.beginDrag();
    };
    surface.addEventListener("pointerdown", (e) => {
        if (e.pointerType === "mouse" && e.button !== 0) return;
        const p = { x: e.offsetX, y: e.offsetY };
        const part = act.partAt(p.x, p.y);
        if (part === "none") return;
        down.set(e.pointerId, p);
        surface.setPointerCapture(e.pointerId);
        if (down.size === 2) {
            if (mode === "brush") act.brush(null, 0, true);
            mode = "pinch";
            const [a, b] = fingers();
            act.beginPinch(a, b);
        } else if (down.size === 1) {
            mode = part === "overview" ? "overview" : e.shiftKey && part === "plot" ? "brush" : "press";
            press(p);
            if (mode === "overview") act.jump(p.x);
        }
    }, o);
    surface.addEventListener("pointermove", (e) => {
        const p = { x: e.offsetX, y: e.offsetY };
        if (!down.has(e.pointerId)) {
            if (down.size === 0 && e.pointerType !== "touch") act.hover(p.x, p.y);
            return;
        }
        down.set(e.pointerId, p);
        if (mode === "press" && Math.hypot(p.x - origin.x, p.y - origin.y) > CLICK_PX) {
            mode = "drag";
            surface.dataset.dragging = "";
            act.leave();
        }
        if (mode === "drag") act.drag(p.x - origin.x, p.y - origin.y);
        else if (mode === "brush") act.brush(origin.x, p.x, false);
        else if (mode === "overview") act.jump(p.x);
        else if (mode === "pinch" && down.size >= 2) {
            const [a, b] = fingers();
            act.pinch(a, b);
        }
    }, o);
    const up = (/** @type {PointerEvent} */ e) => {
        if (!down.delete(e.pointerId)) return;
        const p = { x: e.offsetX, y: e.offsetY };
        if (mode === "pinch" && down.size === 1) {
            // The finger that stays goes on as a drag.
            mode = "drag";
            press([...down.values()][0]);
            return;
        }
        if (down.size > 0) return;
        if (mode === "press" && e.type === "pointerup") act.click(p.x, p.y);
        if (mode === "brush")
            act.brush(e.type === "pointerup" && Math.abs(p.x - origin.x) > CLICK_PX ? origin.x : null, p.x, true);
        delete surface.dataset.dragging;
        mode = "none";
    };
    surface.addEventListener("pointerup", up, o);
    surface.addEventListener("pointercancel", up, o);
    surface.addEventListener("pointerleave", (e) => {
        if (e.pointerType !== "touch") act.leave();
    }, o);
}

/** Ctrl (or a pinch on a touchpad) zooms, shift or a sideways wheel pans, alt changes the height of
 * rows. A plain wheel scrolls the rows, or the page where no row is left.
 * @param {WheelEvent} e @param {HTMLElement} surface @param {Actions} act */
function wheel(e, surface, act) {
    const unit = e.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : e.deltaMode === WheelEvent.DOM_DELTA_PAGE ? surface.clientHeight : 1;
    const [dx, dy] = [e.deltaX * unit, e.deltaY * unit];
    if (e.ctrlKey || e.metaKey) {
        // Touchpads send many small steps for a pinch, wheels few large ones.
        const step = Math.abs(dy) < 40 ? 0.01 * dy : 0.0025 * Math.sign(dy) * Math.min(Math.abs(dy), 160);
        act.zoomAt(e.offsetX, Math.exp(step));
    } else if (e.altKey) act.growRows(Math.exp(-0.002 * dy));
    else if (e.shiftKey) act.panBy(dy || dx);
    else if (Math.abs(dx) > Math.abs(dy)) act.panBy(dx);
    else if (!act.scrollBy(dy)) {
        act.hintWheel();
        return;
    }
    e.preventDefault();
}
