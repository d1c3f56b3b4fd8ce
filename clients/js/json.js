/* JSON without loss: integers that a number cannot hold become BigInt, in both directions. */
import { WIDE } from "./wide.js";

/** An integer that may be beyond 2^53. Texts without one are read by JSON.parse. */
const LARGE = /[0-9]{16}/;
const STRINGS = /"(?:[^"\\]|\\.)*"/gs;

/**
 * Reads the JSON of a job's value. An integer outside of ±(2^53 - 1) becomes a BigInt.
 * @param {string} text
 * @returns {any}
 */
export function parseExact(text) {
    if (!LARGE.test(text) || !LARGE.test(text.replace(STRINGS, ""))) return JSON.parse(text);
    JSON.parse(text); // throws what is wrong with the text, so that the reader below need not
    return read(text);
}

const TOKEN = /\s*("(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|[{}[\]:,]|true|false|null)/gys;

/** @param {string} text valid JSON */
function read(text) {
    /** @type {Array<{list: any, key: string | undefined}>} */
    const stack = [];
    /** @type {any} */
    let done;
    let key = /** @type {string | undefined} */ (undefined);
    let isKey = false;
    const place = (/** @type {any} */ value) => {
        const top = stack[stack.length - 1];
        if (!top) done = value;
        else if (Array.isArray(top.list)) top.list.push(value);
        else Object.defineProperty(top.list, /** @type {string} */ (key),
            { value, enumerable: true, writable: true, configurable: true });
    };
    TOKEN.lastIndex = 0;
    for (let m = TOKEN.exec(text); m; m = TOKEN.exec(text)) {
        const t = m[1];
        if (t === "{" || t === "[") {
            stack.push({ list: t === "{" ? {} : [], key });
            isKey = t === "{";
        } else if (t === "}" || t === "]") {
            const top = /** @type {{list: any, key: string | undefined}} */ (stack.pop());
            key = top.key;
            isKey = false;
            place(top.list);
        } else if (t === ",") {
            isKey = !Array.isArray(stack[stack.length - 1].list);
        } else if (t === ":") {
            isKey = false;
        } else if (isKey) {
            key = JSON.parse(t);
        } else {
            place(/^-?\d+$/.test(t) ? integer(t) : JSON.parse(t));
        }
    }
    return done;
}

/** @param {string} digits */
function integer(digits) {
    const n = Number(digits);
    return Number.isSafeInteger(n) ? n : BigInt(digits);
}

/**
 * Writes JSON. A BigInt becomes a JSON number, as values of jobs have it.
 * @param {any} value
 * @returns {string}
 */
export function writeExact(value) {
    if (typeof value === "bigint") return value.toString();
    if (value !== null && typeof value === "object" && typeof value.toJSON === "function")
        return writeExact(value.toJSON());
    if (Array.isArray(value)) return `[${value.map((v) => writeExact(v ?? null)).join(",")}]`;
    if (value !== null && typeof value === "object") {
        const members = Object.entries(value).filter(([, v]) => v !== undefined);
        return `{${members.map(([k, v]) => `${JSON.stringify(k)}:${writeExact(v)}`).join(",")}}`;
    }
    return JSON.stringify(value) ?? "null";
}

/** Messages with values of jobs inside. All other messages have 64-bit integers as strings. */
const WITH_VALUES = new Set(["SubmitResponse", "ResultSet", "ResultItem"]);

/**
 * Reads a message of the API.
 * @param {string} text
 * @param {string} message name of the message, as in openapi.json
 * @returns {any}
 */
export function parseMessage(text, message) {
    return widen(WITH_VALUES.has(message) ? parseExact(text) : JSON.parse(text), message);
}

/**
 * Turns the 64-bit integers of a message, which are strings in JSON, into BigInt. Changes `value`.
 * @param {any} value
 * @param {string} message name of the message, as in openapi.json
 * @returns {any}
 */
export function widen(value, message) {
    const fields = WIDE[message];
    if (!fields || value === null || typeof value !== "object") return value;
    for (const [field, spec] of Object.entries(fields)) {
        if (value[field] === undefined) continue;
        const isMap = spec.startsWith("{");
        const kind = isMap ? spec.slice(1) : spec;
        const one = (/** @type {any} */ v) => (kind === "int" ? BigInt(v) : widen(v, kind));
        if (isMap) for (const k of Object.keys(value[field])) value[field][k] = one(value[field][k]);
        else if (Array.isArray(value[field])) value[field] = value[field].map(one);
        else value[field] = one(value[field]);
    }
    return value;
}

/**
 * Turns BigInt into strings, as the messages of the API have 64-bit integers.
 * @param {any} value
 * @returns {string}
 */
export function writeMessage(value) {
    return JSON.stringify(value, (_, v) => (typeof v === "bigint" ? v.toString() : v));
}
