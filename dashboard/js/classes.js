/* The classes of the account: their order, and what a slot does in each. */
import { classColor } from "./timeline/colors.js";
import { theme } from "./theme.js";

/**
 * @typedef {object} TimeClass
 * @property {string} name as the API says it
 * @property {string} group
 * @property {string} means continues "The slot …"
 * @property {string} advice what may make it smaller
 */

/** @type {ReadonlyArray<TimeClass>} */
export const CLASSES = [
    { name: "compute", group: "busy", means: "runs a task that uses the processor", advice: "This is the work itself. Faster operators or more slots make it shorter." },
    { name: "input", group: "busy", means: "maps or decodes the inputs of a task", advice: "Smaller or fewer inputs help, or binary formats." },
    { name: "output", group: "busy", means: "stores the result of a task", advice: "Smaller results help, or more memory for the object store." },
    { name: "blocked", group: "busy", means: "runs a task that waits for a page fault, a lock, a file or a time", advice: "Look at the files and locks that the operator uses." },
    { name: "preempted", group: "busy", means: "runs a task that could use the processor, but the kernel runs another thread", advice: "Other programs use the processors, or the workers have more slots than the machine has processors." },
    { name: "feed", group: "busy", means: "fetches batches", advice: "Smaller examples help, or more partitions near the workers." },
    { name: "pull", group: "busy", means: "fetches parameters", advice: "More parameter servers help, or rarer updates." },
    { name: "push", group: "busy", means: "sends gradients", advice: "More parameter servers help, or larger batches." },
    { name: "wait", group: "busy", means: "waits for other roles", advice: "The roles are not equally fast. Look at the role that never waits." },
    { name: "dependency", group: "waits for tasks", means: "waits for the result of a task that runs", advice: "The graph is too narrow here. Look at the critical path." },
    { name: "imbalance", group: "waits for tasks", means: "waits for a task like those that it ran before", advice: "Tasks of one operator take unequal time. Smaller pieces help." },
    { name: "transfer", group: "waits for data", means: "waits for an input from another node", advice: "Results are large for the network. Tasks near their data help." },
    { name: "restore", group: "busy", means: "runs a task that waits for an input from disk", advice: "Memory was full and values were written to disk. More memory helps." },
    { name: "memory", group: "waits for data", means: "waits because tasks are held back while memory is short", advice: "More memory, or fewer large values at a time." },
    { name: "report", group: "waits for messages", means: "waits for a completion that is on its way", advice: "Larger tasks make messages matter less." },
    { name: "decide", group: "waits for messages", means: "waits for the scheduler, which has a ready task", advice: "The scheduler is busy or paused. Larger tasks help." },
    { name: "send", group: "waits for messages", means: "waits for a task that is on its way", advice: "Larger tasks make messages matter less." },
    { name: "handoff", group: "waits for messages", means: "waits until the worker wakes an executor", advice: "Larger tasks make hand-offs matter less." },
    { name: "journal", group: "waits for messages", means: "waits until Redis has the record of the job", advice: "Redis is slow or away. Look at its disk." },
    { name: "restricted", group: "held back", means: "waits because few workers may run the tasks that are ready", advice: "Tasks ask for resources or workers that are busy." },
    { name: "start_up", group: "held back", means: "belongs to a worker whose process starts", advice: "Plug-ins that load slowly, or workers that were restarted." },
    { name: "stopped", group: "held back", means: "belongs to a worker that is lost, drained or paused", advice: "Look at the events of the workers." },
    { name: "client", group: "no work", means: "waits for the next job of a client whose last job is over", advice: "The client computes between its jobs. Submit the next job earlier." },
    { name: "no_work", group: "no work", means: "has no job", advice: "Nothing was submitted." },
    { name: "unknown", group: "unknown", means: "waits, and the trace lacks the times that would tell for what", advice: "Parts of the trace are missing." },
];

const BY_NAME = new Map(CLASSES.map((c) => [c.name, c]));

/** @param {string} name @returns {TimeClass} */
export function classOf(name) {
    return BY_NAME.get(name) ?? { name, group: "unknown", means: "is in a class that this page does not know", advice: "The cluster is newer than the dashboard." };
}

/** The colour of a class on the page as it is now. @param {string} name */
export function colorOf(name) {
    return classColor(name, theme());
}
