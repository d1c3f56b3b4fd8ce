/* Failed tasks of a job, each with its error, arguments and log; and any task that the address names. */
import { h, morph, onFrame } from "../dom.js";
import { count, counted } from "../format.js";
import { empty, shown } from "../parts.js";
import { Task } from "../task.js";

const NODES_MAX = 20000;
const SHOWN_MAX = 100;

/**
 * @param {import("./job.js").JobContext} c
 * @returns {import("./job.js").View}
 */
export function openFailures(c) {
    const draw = onFrame(render);
    /** @type {Map<string, Task>} */
    const open = new Map();
    const named = c.route.query.get("key");
    if (named) open.set(named, new Task(c.session, c.id, named, draw));
    const feed = c.session.feed(async (api, signal) => {
        const job = c.job();
        const first = job?.error?.key ? [{ key: job.error.key, op: job.error.op }] : [];
        if (!job?.counts?.erred) return { tasks: first, isWhole: true };
        const graph = await api.jobs.graph(c.id, { signal, nodes_max: NODES_MAX });
        const failed = graph.nodes.filter((n) => n.state === "TASK_ERRED" && n.key !== first[0]?.key).map(({ key, op }) => ({ key, op }));
        return { tasks: [...first, ...failed], isWhole: graph.nodes_count <= BigInt(NODES_MAX) };
    }, draw);

    /** @param {string} key @param {string} op */
    function one(key, op) {
        const task = open.get(key);
        const toggle = (/** @type {Event} */ e) => {
            const isOpen = /** @type {HTMLDetailsElement} */ (e.target).open;
            if (isOpen && !open.has(key)) open.set(key, new Task(c.session, c.id, key, draw));
            draw();
        };
        return h("details", { key, class: "card", open: key === named, ontoggle: toggle }, h("summary", {}, h("b", {}, key), op ? [" ", h("code", {}, op)] : ""), task ? task.show() : h("p", { class: "quiet" }, "Loading…"));
    }

    function render() {
        morph(c.root, named ? h("section", { key: "named" }, h("h2", {}, "Task"), one(named, "")) : null,
            h("section", { key: "failed" }, h("h2", {}, "Failed tasks"), shown(feed, ({ tasks, isWhole }) => {
                const rest = tasks.filter((t) => t.key !== named);
                if (!rest.length) return tasks.length ? [] : empty("No task failed.", "Failed tasks would be here, each with its error, its arguments and what it wrote.");
                return [h("p", { class: "quiet" }, `${counted(tasks.length, "task")} failed, or needed a task that failed${rest.length > SHOWN_MAX ? `; the first ${count(SHOWN_MAX)} are shown` : ""}${isWhole ? "" : `, among the first ${count(NODES_MAX)} of the job`}.`),
                    rest.slice(0, SHOWN_MAX).map((t) => one(t.key, t.op))].flat();
            })));
    }

    draw();
    return {
        close() {
            feed.close();
            for (const task of open.values()) task.close();
        },
        update: () => feed.refresh(),
    };
}
