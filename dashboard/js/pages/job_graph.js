/* The graph of a job. Nodes of one operator in one layer are one box; a click on a box lists its tasks. */
import { h, morph, onFrame, svg } from "../dom.js";
import { count, counted, cut, plain } from "../format.js";
import { badge, empty, shown } from "../parts.js";
import { Task } from "../task.js";
import { theme } from "../theme.js";
import { OpPalette } from "../timeline/colors.js";

const NODES_MAX = 5000;
const BOXES_MAX = 60;
const KEYS_MAX = 100;
const BOX = { width: 150, height: 46, gapX: 60, gapY: 14 };

/** @typedef {import("../../client/api.d.ts").GraphNode} Node */
/** @typedef {{id: string, op: string, layer: number, nodes: Node[]}} Box */

/** The layer of each node: one more than that of its deepest input. @param {Node[]} nodes inputs before their users */
function layersOf(nodes) {
    /** @type {number[]} */
    const layers = new Array(nodes.length).fill(0);
    nodes.forEach((n, i) => {
        for (const input of n.inputs) if (input < i) layers[i] = Math.max(layers[i], layers[input] + 1);
    });
    return layers;
}

/**
 * Groups nodes into boxes and edges between boxes. No DOM.
 * @param {Node[]} nodes
 * @param {"task" | "layer" | "op"} by
 * @returns {{boxes: Box[], edges: Map<string, number>}}
 */
export function group(nodes, by) {
    const layers = layersOf(nodes);
    /** @type {Map<string, Box>} */
    const boxes = new Map();
    /** @type {string[]} */
    const ids = nodes.map((n, i) => (by === "task" ? String(i) : by === "layer" ? `${layers[i]} ${n.op}` : n.op));
    nodes.forEach((n, i) => {
        const box = boxes.get(ids[i]) ?? /** @type {Box} */ ({ id: ids[i], op: n.op, layer: layers[i], nodes: [] });
        box.nodes.push(n);
        boxes.set(ids[i], box);
    });
    /** @type {Map<string, number>} */
    const edges = new Map();
    nodes.forEach((n, i) => {
        for (const input of n.inputs) {
            if (input >= nodes.length || ids[input] === ids[i]) continue;
            const name = `${ids[input]}\n${ids[i]}`;
            edges.set(name, (edges.get(name) ?? 0) + 1);
        }
    });
    return { boxes: [...boxes.values()], edges };
}

/** Nodes by state, the order of the colours on a box. @param {Node[]} nodes */
function statesOf(nodes) {
    /** @type {{[state: string]: number}} */
    const n = {};
    for (const { state } of nodes) n[state === "TASK_RELEASED" ? "done" : plain(state)] = (n[state === "TASK_RELEASED" ? "done" : plain(state)] ?? 0) + 1;
    return n;
}

const STATE_COLORS = /** @type {{[state: string]: string}} */ ({ done: "var(--good)", running: "var(--busy)", sent: "var(--busy-weak)", ready: "var(--ready)", erred: "var(--bad)" });

/**
 * @param {import("./job.js").JobContext} c
 * @returns {import("./job.js").View}
 */
export function openGraph(c) {
    const draw = onFrame(render);
    const colors = new OpPalette();
    /** @type {"task" | "layer" | "op" | undefined} what the user chose */
    let chosen;
    let picked = "";
    /** @type {Task | undefined} */
    let task;
    const feed = c.session.feed((api, signal) => api.jobs.graph(c.id, { signal, nodes_max: NODES_MAX }), draw, () => (c.isOver() ? undefined : 3000));

    /** @param {Box} box */
    function title(box) {
        return box.nodes.length === 1 ? box.nodes[0].key : box.op || "values";
    }

    /** @param {{boxes: Box[], edges: Map<string, number>}} g */
    function picture(g) {
        /** @type {Map<number, Box[]>} */
        const columns = new Map();
        for (const box of g.boxes) columns.set(box.layer, [...(columns.get(box.layer) ?? []), box]);
        const order = [...columns.keys()].sort((a, b) => a - b);
        const tallest = Math.max(...[...columns.values()].map((b) => b.length));
        const height = tallest * (BOX.height + BOX.gapY) + BOX.gapY, width = order.length * (BOX.width + BOX.gapX);
        /** @type {Map<string, {x: number, y: number}>} */
        const at = new Map();
        order.forEach((layer, i) => {
            const boxes = columns.get(layer) ?? [];
            const top = (height - boxes.length * (BOX.height + BOX.gapY)) / 2;
            boxes.forEach((box, k) => at.set(box.id, { x: i * (BOX.width + BOX.gapX) + 8, y: top + k * (BOX.height + BOX.gapY) }));
        });
        const lines = [...g.edges].map(([name, n]) => {
            const [a, b] = name.split("\n").map((id) => at.get(id));
            if (!a || !b) return null;
            const x1 = a.x + BOX.width, y1 = a.y + BOX.height / 2, x2 = b.x, y2 = b.y + BOX.height / 2, bend = Math.max(24, Math.abs(x2 - x1) / 2);
            return svg("path", { key: name, class: "edge", d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`, "stroke-width": Math.min(5, 1 + Math.log10(n)) });
        });
        const boxes = g.boxes.map((box) => {
            const { x, y } = /** @type {{x: number, y: number}} */ (at.get(box.id));
            const states = statesOf(box.nodes);
            let from = 0;
            const segments = Object.entries(STATE_COLORS).map(([state, color]) => {
                const size = ((BOX.width - 16) * (states[state] ?? 0)) / box.nodes.length;
                from += size;
                return svg("rect", { x: 8 + from - size, y: BOX.height - 11, width: size, height: 5, style: { fill: color } });
            });
            const pick = () => {
                picked = picked === box.id ? "" : box.id;
                task?.close();
                task = box.nodes.length === 1 && picked ? new Task(c.session, c.id, box.nodes[0].key, draw) : undefined;
                draw();
            };
            const onkeydown = (/** @type {KeyboardEvent} */ e) => {
                if (e.key !== "Enter" && e.key !== " ") return;
                e.preventDefault();
                pick();
            };
            const label = `${title(box)}: ${counted(box.nodes.length, "task")}, ${Object.entries(states).map(([s, n]) => `${n} ${s}`).join(", ")}`;
            return svg("g", { key: box.id, class: `node ${picked === box.id ? "picked" : ""}`, transform: `translate(${x} ${y})`, tabindex: "0", role: "button", "aria-pressed": picked === box.id ? "true" : "false", "aria-label": label, onclick: pick, onkeydown },
                svg("title", {}, label), svg("rect", { class: "box", width: BOX.width, height: BOX.height, rx: 5 }), svg("rect", { width: 5, height: BOX.height, rx: 2, style: { fill: box.op ? colors.color(box.op, theme()) : "var(--idle)" } }),
                svg("text", { x: 12, y: 17 }, cut(title(box), 19)), svg("text", { x: 12, y: 31, class: "small" }, box.nodes.length === 1 ? cut(box.op || "value", 22) : counted(box.nodes.length, box.op ? "task" : "value")), segments);
        });
        return h("div", { class: "scroll graph", role: "region", "aria-label": "Graph of the job", tabindex: "0" },
            svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` }, lines, boxes));
    }

    /** @param {Box} box */
    function details(box) {
        return h("section", { class: "card", key: "details" }, h("h3", {}, title(box)), task ? task.show() : [h("p", { class: "quiet" }, `${counted(box.nodes.length, "task")}${box.nodes.length > KEYS_MAX ? `; the first ${count(KEYS_MAX)}` : ""}`),
            h("ul", { class: "keys" }, box.nodes.slice(0, KEYS_MAX).map((n) => h("li", { key: n.key }, h("a", { href: `#/jobs/${c.id}/failures?key=${encodeURIComponent(n.key)}` }, cut(n.key, 60)), " ", badge(n.state))))]);
    }

    function render() {
        morph(c.root, h("h2", {}, "Graph"), shown(feed, (data) => {
            if (!data.nodes.length) return empty("The graph is empty.", "The job has no tasks.");
            const by = chosen ?? (data.nodes.length <= BOXES_MAX ? "task" : group(data.nodes, "layer").boxes.length <= BOXES_MAX ? "layer" : "op");
            const g = group(data.nodes, by);
            colors.add(data.nodes.map((n) => n.op).filter(Boolean));
            const isTooLarge = g.boxes.length > 400;
            const box = g.boxes.find((b) => b.id === picked);
            const choose = (/** @type {Event} */ e) => {
                chosen = /** @type {any} */ (e.target).value;
                picked = "";
                task?.close();
                task = undefined;
                draw();
            };
            return [h("div", { class: "row filters" }, h("label", {}, "One box is", h("select", { value: by, onchange: choose }, [["task", "one task"], ["layer", "an operator in a layer"], ["op", "an operator"]].map(([value, text]) => h("option", { value, selected: value === by }, text)))),
                h("p", { class: "quiet" }, data.nodes_count > BigInt(data.nodes.length) ? `The first ${count(data.nodes.length)} of ${count(data.nodes_count)} nodes.` : `${counted(data.nodes_count, "node")}. Inputs are on the left of their users.`)),
            isTooLarge ? empty(`${count(g.boxes.length)} boxes are too many to draw.`, "Choose a coarser grouping above.") : picture(g), box && !isTooLarge ? details(box) : null];
        }));
    }

    draw();
    return {
        close() {
            feed.close();
            task?.close();
        },
        update: () => feed.refresh(),
        retheme: draw,
    };
}
