/* Numbers, times and sizes as texts for people. No DOM. */

/** @typedef {number | bigint} Amount */

const UNITS = /** @type {const} */ ([[3600e9, "h"], [60e9, "min"], [1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]]);

/** @param {number} x three significant digits, without zeros at the end */
function digits(x) {
    return x >= 100 ? x.toFixed(0) : x >= 10 ? String(Number(x.toFixed(1))) : String(Number(x.toFixed(2)));
}

/** @param {Amount} ns @returns {string} e.g. "1.23 s" or "2 h 5 min" */
export function duration(ns) {
    const n = Number(ns);
    if (n < 0) return `−${duration(-n)}`;
    if (n === 0) return "0 s";
    if (n >= 3600e9) return `${Math.floor(n / 3600e9)} h ${Math.floor((n % 3600e9) / 60e9)} min`;
    if (n >= 60e9) return `${Math.floor(n / 60e9)} min ${Math.floor((n % 60e9) / 1e9)} s`;
    const [unit, name] = UNITS.find(([u]) => n >= u * 0.9995) ?? [1, "ns"];
    return `${digits(n / unit)} ${name}`;
}

/** @param {Amount} n @returns {string} e.g. "1.5 GiB" */
export function bytes(n) {
    let x = Number(n);
    for (const unit of ["B", "KiB", "MiB", "GiB", "TiB"]) {
        if (x < 1024 || unit === "TiB") return `${unit === "B" ? x : digits(x)} ${unit}`;
        x /= 1024;
    }
    return "";
}

/** @param {Amount} n @returns {string} e.g. "1,234,567" */
export function count(n) {
    return n.toLocaleString("en");
}

/** @param {Amount} n @param {string} one @param {string} [many] @returns {string} e.g. "1 task" */
export function counted(n, one, many = `${one}s`) {
    return `${count(n)} ${Number(n) === 1 ? one : many}`;
}

/** @param {number} x a rate, e.g. tasks a second */
export function rate(x) {
    return x >= 1e6 ? `${digits(x / 1e6)} M` : x >= 1e4 ? `${digits(x / 1e3)} k` : digits(x);
}

/** @param {Amount} part @param {Amount} whole @returns {string} e.g. "12.3 %" */
export function share(part, whole) {
    if (Number(whole) === 0) return "0 %";
    const x = (100 * Number(part)) / Number(whole);
    return x > 0 && x < 0.05 ? "< 0.1 %" : `${x.toFixed(1)} %`;
}

/** @param {bigint} ns since 1970 @param {Date} [now] @returns {string} the time, with the date unless it is today's */
export function clock(ns, now = new Date()) {
    if (!ns) return "–";
    const d = new Date(Number(ns / 1000000n));
    const time = d.toLocaleTimeString("en-GB");
    return d.toDateString() === now.toDateString() ? time : `${d.toLocaleDateString("en-CA")} ${time}`;
}

/** @param {bigint} ns since 1970 @returns {string} for the attribute `datetime` */
export function isoTime(ns) {
    return new Date(Number(ns / 1000000n)).toISOString();
}

/** @param {bigint} ns since 1970 @returns {string} e.g. "12 s ago" */
export function ago(ns) {
    if (!ns) return "–";
    const gone = BigInt(Date.now()) * 1000000n - ns;
    const seconds = gone < 0n ? 0n : gone / 1000000000n;
    return seconds === 0n ? "now" : `${duration(seconds * 1000000000n)} ago`;
}

/** @param {number | "NaN" | "Infinity" | "-Infinity" | undefined} x */
export function decimal(x) {
    const n = Number(x);
    if (!Number.isFinite(n)) return "–";
    return n === 0 ? "0" : Math.abs(n) >= 1e5 || Math.abs(n) < 1e-3 ? n.toExponential(2) : String(Number(n.toPrecision(4)));
}

/** An element of an array; integers keep all digits. @param {string} dtype as in a .npy file, e.g. "i8" @param {number | bigint} v */
export function element(dtype, v) {
    return /^[iu]/.test(dtype) && !Number.isNaN(v) ? String(v) : decimal(Number(v));
}

/** @param {string} text @param {number} max @returns {string} at most `max` characters */
export function cut(text, max) {
    return text.length <= max ? text : `${text.slice(0, max - 1)}…`;
}

/** The name of a state without its prefix: "JOB_DONE" is "done". @param {string} state */
export function plain(state) {
    return state.replace(/^(JOB|TASK|TRAINING|SPAN_OUTCOME|CLUSTER_CHANGE)_/, "").toLowerCase().replaceAll("_", " ");
}
