/* What the timeline says in words: the tooltip and the sentences for screen readers. Pure. */
import { clockText, durationText } from "./ticks.js";

/** @typedef {import("./spans.js").Span} Span */
/** @typedef {{title: string, subtitle: string, lines: Array<[string, string]>, color?: string}} Words */

/** @param {Span} span @param {bigint} beginNs @returns {{start: number, end: number}} */
export function timesOf(span, beginNs) {
    const start = Number(BigInt(span.startedNs) - beginNs);
    return { start, end: Math.max(start, Number(BigInt(span.finishedNs) - beginNs)) };
}

/** "SPAN_OUTCOME_LOST" is "lost"; "" if the attempt made its value. @param {string | undefined} outcome */
function outcomeText(outcome) {
    const plain = (outcome ?? "").replace(/^SPAN_OUTCOME_/, "").toLowerCase().replaceAll("_", " ");
    return plain === "ok" || plain === "unspecified" ? "" : plain;
}

/** @param {{worker: string, slot: number} | undefined} slot */
export function slotText(slot) {
    return slot ? `${slot.worker || "worker"}, slot ${slot.slot}` : "";
}

/** @param {Span} span @param {bigint} beginNs @param {{worker: string, slot: number} | undefined} slot
 * @returns {Words} */
export function spanWords(span, beginNs, slot) {
    const { start, end } = timesOf(span, beginNs);
    /** @type {Array<[string, string]>} */
    const lines = [
        ["start", clockText(Math.max(0, start), 1e3)],
        ["duration", durationText(end - start)],
    ];
    if (slot) lines.push(["on", slotText(slot)]);
    if ((span.attempt ?? 1) > 1) lines.push(["attempt", String(span.attempt)]);
    const outcome = outcomeText(span.outcome);
    if (outcome) lines.push(["outcome", outcome]);
    if (span.cause) lines.push(["before", span.cause]);
    lines.push(...(span.details ?? []));
    return { title: span.op, subtitle: span.key, lines };
}

/** @param {Span} span @param {bigint} beginNs @param {{worker: string, slot: number} | undefined} slot
 * @returns {string} */
export function spanSentence(span, beginNs, slot) {
    const w = spanWords(span, beginNs, slot);
    const [start, duration] = [w.lines[0][1], w.lines[1][1]];
    const more = w.lines.slice(slot ? 3 : 2).map(([k, v]) => `, ${k}: ${v}`).join("");
    return `${w.title}, task ${w.subtitle}, on ${slotText(slot) || "an unknown slot"}, started at ${start}, took ${duration}${more}.`;
}

/** @param {{name: string, share: number, from: number, until: number}} part @param {"op" | "class"} by
 * @param {{worker: string, slot: number} | undefined} slot @param {string | undefined} means
 * @param {boolean} isCoarse tasks can be seen after zooming in @returns {Words} */
export function pixelWords(part, by, slot, means, isCoarse) {
    const title = part.name ? (by === "class" ? part.name.replaceAll("_", " ") : part.name) : "idle";
    /** @type {Array<[string, string]>} */
    const lines = [["at", clockText(Math.max(0, part.from), Math.max(1, part.until - part.from))]];
    if (part.name) lines.push([by === "class" ? "share" : "busy", `${Math.round(part.share * 100)} % of ${durationText(part.until - part.from)}`]);
    if (slot) lines.push(["on", slotText(slot)]);
    if (means) lines.push(["", means]);
    return { title, subtitle: part.name && isCoarse ? (by === "class" ? "the class with the most time here" : "the operator with the most time here") : "", lines };
}

/** @param {number} from @param {number} until @returns {string} */
export function windowSentence(from, until) {
    const step = Math.max(1, (until - from) / 100);
    return `Shows ${clockText(Math.max(0, from), step)} to ${clockText(until, step)}, ${durationText(until - from)}.`;
}

/** Keys and what they do, for the help and for screen readers. @type {ReadonlyArray<[string, string]>} */
export const HELP = [
    ["Drag", "move"],
    ["Ctrl + wheel, pinch", "zoom"],
    ["Shift + wheel", "move in time"],
    ["Wheel", "scroll the rows"],
    ["Shift + drag", "zoom to a part"],
    ["Double click", "zoom in, or to a task"],
    ["Click", "explain a task"],
    ["← →, A D", "move in time"],
    ["+ −, W S", "zoom"],
    ["Home, End, 0", "begin, end, whole job"],
    ["↑ ↓", "choose a row"],
    [", .", "task before, after"],
    ["Enter", "task in the middle"],
    ["F", "zoom to the chosen task"],
    ["[ ]", "height of rows"],
    ["Esc", "choose nothing"],
];
