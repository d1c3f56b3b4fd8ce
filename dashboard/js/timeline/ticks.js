/* Ticks of a time axis from nanoseconds to days, and texts for times. Pure.
 * Times are nanoseconds since the beginning of the job. */

const STEPS = [
    ...[1, 10, 100].flatMap((k) => [k, 2 * k, 5 * k]),
    ...[1e3, 1e4, 1e5].flatMap((k) => [k, 2 * k, 5 * k]),
    ...[1e6, 1e7, 1e8].flatMap((k) => [k, 2 * k, 5 * k]),
    ...[1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400].map((s) => s * 1e9),
];
const DAY = 86400e9;

/** The smallest good step that is at least `least` nanoseconds. @param {number} least @returns {number} */
export function stepFor(least) {
    const step = STEPS.find((s) => s >= least);
    if (step) return step;
    const days = 10 ** Math.floor(Math.log10(least / DAY));
    return [1, 2, 5, 10].map((k) => k * days * DAY).find((s) => s >= least) ?? 10 * days * DAY;
}

/**
 * @typedef {object} Tick
 * @property {number} time
 * @property {string} text
 * @property {boolean} isMajor its text is a whole time; texts of the others begin with "+" and count
 *   from the major tick before
 */
/**
 * @typedef {object} Ticks
 * @property {number} step
 * @property {Tick[]} ticks
 * @property {string} base text of the last major tick before the window, or "" if none is needed
 */

/** The ticks between two times. Where the step is short against the time itself, texts are counted
 * from a round time, the base. @param {number} from @param {number} until
 * @param {number} most at most so many ticks @returns {Ticks} */
export function ticksOf(from, until, most) {
    const step = stepFor((until - from) / Math.max(1, most));
    const base = step < 1e6 ? baseFor(step) : Infinity;
    /** @type {Tick[]} */
    const ticks = [];
    const last = Math.floor(until / step);
    for (let i = Math.max(0, Math.ceil(from / step)); i <= last; i++) {
        const time = i * step;
        const rest = base === Infinity ? 0 : Math.round(time % base);
        const isMajor = base === Infinity || rest === 0 || time < base;
        ticks.push({ time, text: isMajor ? clockText(time, base === Infinity ? step : Math.min(step, base)) : `+${shortText(rest, step)}`, isMajor });
    }
    const before = base === Infinity ? 0 : Math.floor(Math.max(0, from) / base) * base;
    return { step, ticks, base: before > 0 ? clockText(before, base) : "" };
}

/** The unit of 1000^k that holds at least five steps. @param {number} step */
function baseFor(step) {
    return step * 5 <= 1e3 ? 1e3 : step * 5 <= 1e6 ? 1e6 : 1e9;
}

/** A time below a second, with the digits that `step` needs. @param {number} ns @param {number} step */
function shortText(ns, step) {
    if (ns === 0) return "0";
    const [unit, name] = ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    return `${trim(ns / unit, Math.max(0, Math.round(Math.log10(unit) - Math.floor(Math.log10(step)))))} ${name}`;
}

/** @param {number} x @param {number} decimals */
function trim(x, decimals) {
    const text = x.toFixed(Math.min(decimals, 9));
    return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A time as "2 d 03:04:05.25", "4:05.25" or "5.25 s", with the digits that `step` needs.
 * @param {number} ns @param {number} step @returns {string} */
export function clockText(ns, step) {
    if (ns < 1e9) return shortText(ns, step);
    const decimals = step >= 1e9 ? 0 : Math.max(0, 9 - Math.floor(Math.log10(step)));
    if (ns < 60e9) return `${trim(ns / 1e9, decimals)} s`;
    // Whole seconds first: the rest then cannot round up to 60.
    const scale = 10 ** decimals;
    const units = Math.round((ns / 1e9) * scale);
    const whole = Math.floor(units / scale);
    const part = decimals ? trim((units - whole * scale) / scale, decimals).slice(1) : "";
    const two = (/** @type {number} */ x) => String(x).padStart(2, "0");
    const [d, h, m, s] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60, whole % 60];
    if (whole < 3600) return `${m}:${two(s)}${part}`;
    const time = `${d ? two(h) : h}:${two(m)}:${two(s)}${part}`;
    return d ? `${d} d ${time}` : time;
}

/** A duration with three digits: "1.23 ms", "2 min 5 s". @param {number} ns @returns {string} */
export function durationText(ns) {
    if (ns < 0) return `−${durationText(-ns)}`;
    if (ns >= 86399.5e9) return `${Math.floor(ns / DAY + 1e-9)} d ${Math.floor((ns % DAY) / 3600e9)} h`;
    if (ns >= 3599.5e9) return `${Math.floor((ns + 0.5e9) / 3600e9)} h ${Math.floor(((ns + 0.5e9) % 3600e9) / 60e9)} min`;
    if (ns >= 59.95e9) return `${Math.floor((ns + 0.5e9) / 60e9)} min ${Math.floor(((ns + 0.5e9) % 60e9) / 1e9)} s`;
    const [unit, name] = ns >= 999.5e6 ? [1e9, "s"] : ns >= 999.5e3 ? [1e6, "ms"] : ns >= 999.5 ? [1e3, "µs"] : [1, "ns"];
    return `${Number((ns / /** @type {number} */ (unit)).toPrecision(3))} ${name}`;
}
