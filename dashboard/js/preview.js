/* Shows a value: numbers, texts, JSON, tables, arrays as numbers, curves or pictures. Parses the bytes
 * that the gateway sends: JSON, .npy, CSV, PNG. */
import { parseExact, writeExact } from "../client/millrace.js";
import { h, svg } from "./dom.js";
import { bytes, count, decimal, element } from "./format.js";

export const PREVIEW_BYTES_MAX = 16 << 20;
const TEXT_MAX = 20000;
const ROWS_MAX = 20;
const PIXELS_MAX = 512;

/** @typedef {{dtype: string, shape: number[], isFortran: boolean, values: ArrayLike<number | bigint>}} Tensor */

const TYPES = /** @type {{[descr: string]: any}} */ ({ f8: Float64Array, f4: Float32Array, i8: BigInt64Array, u8: BigUint64Array, i4: Int32Array, u4: Uint32Array,
    i2: Int16Array, u2: Uint16Array, i1: Int8Array, u1: Uint8Array, b1: Uint8Array });

/**
 * Reads a .npy file. undefined: the file is none, or its type of elements is not known here.
 * @param {Uint8Array} data
 * @returns {Tensor | undefined}
 */
export function parseNpy(data) {
    if (data.length < 12 || data[0] !== 0x93 || String.fromCharCode(...data.subarray(1, 6)) !== "NUMPY") return undefined;
    const view = new DataView(data.buffer, data.byteOffset, data.byteLength);
    const isFirst = data[6] === 1;
    const length = isFirst ? view.getUint16(8, true) : view.getUint32(8, true);
    const begin = (isFirst ? 10 : 12) + length;
    const head = new TextDecoder().decode(data.subarray(isFirst ? 10 : 12, begin));
    const descr = /'descr':\s*'([<|=>])([a-z]\d+)'/.exec(head);
    const shape = /'shape':\s*\(([^)]*)\)/.exec(head);
    if (!descr || !shape || descr[1] === ">" || !TYPES[descr[2]]) return undefined;
    const axes = shape[1].split(",").map((s) => s.trim()).filter(Boolean).map(Number);
    const length_ = axes.reduce((a, b) => a * b, 1);
    const Type = TYPES[descr[2]];
    if (data.length - begin < length_ * Type.BYTES_PER_ELEMENT) return undefined;
    const copy = data.slice(begin, begin + length_ * Type.BYTES_PER_ELEMENT);
    return { dtype: descr[2], shape: axes, isFortran: /'fortran_order':\s*True/.test(head), values: new Type(copy.buffer) };
}

/** @param {Tensor} t */
function summaryOf(t) {
    let min = Infinity, max = -Infinity, sum = 0, n = 0;
    /** The same as `min` and `max`, with all digits. @type {number | bigint} */
    let least = NaN, greatest = /** @type {number | bigint} */ (NaN);
    for (let i = 0; i < t.values.length; i++) {
        const exact = t.values[i], v = Number(exact);
        if (!Number.isFinite(v)) continue;
        if (!n || exact < least) least = exact;
        if (!n || exact > greatest) greatest = exact;
        if (v < min) min = v;
        if (v > max) max = v;
        sum += v;
        n++;
    }
    return { min, max, least, greatest, mean: sum / n, n };
}

/** The element type as the API names it: "f8" is "f64". @param {string} descr as in a .npy file */
function typeName(descr) {
    return descr === "b1" ? "bool" : `${descr[0]}${8 * Number(descr.slice(1))}`;
}

/** What an array is, in words. @param {Tensor} t */
export function textOf(t, s = summaryOf(t)) {
    return `${typeName(t.dtype)}[${t.shape.join(",")}], ${count(t.values.length)} elements: minimum ${element(t.dtype, s.least)}, mean ${decimal(s.mean)}, maximum ${element(t.dtype, s.greatest)}`;
}

/**
 * A picture of a matrix: the smallest value is dark, the largest is bright.
 * @param {Tensor} t @param {number} rows @param {number} columns @param {{min: number, max: number}} s
 */
function picture(t, rows, columns, s) {
    const step = Math.max(1, Math.ceil(Math.max(rows, columns) / PIXELS_MAX));
    const height = Math.ceil(rows / step), width = Math.ceil(columns / step);
    const canvas = h("canvas", { width, height, class: "picture", role: "img", "aria-label": `Picture of the array, ${rows} × ${columns}: dark is ${decimal(s.min)}, bright is ${decimal(s.max)}` });
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const image = context.createImageData(width, height);
    for (let y = 0; y < height; y++)
        for (let x = 0; x < width; x++) {
            const at = t.isFortran ? y * step + x * step * rows : y * step * columns + x * step;
            const v = (255 * (Number(t.values[at]) - s.min)) / (s.max - s.min || 1);
            image.data.set([v, v, v, 255], 4 * (y * width + x));
        }
    context.putImageData(image, 0, 0);
    const zoom = Math.max(1, Math.min(12, Math.floor(240 / Math.max(height, width))));
    canvas.style.width = `${width * zoom}px`;
    return canvas;
}

/** @param {Tensor} t @param {{min: number, max: number}} s */
function curve(t, s) {
    const n = t.values.length, step = Math.max(1, Math.ceil(n / 1000));
    const points = [];
    for (let i = 0; i < n; i += step)
        points.push(`${((600 * i) / Math.max(1, n - 1)).toFixed(1)},${(100 - (96 * (Number(t.values[i]) - s.min)) / (s.max - s.min || 1) - 2).toFixed(1)}`);
    return svg("svg", { viewBox: "0 0 600 100", preserveAspectRatio: "none", class: "curve", role: "img", "aria-label": `Curve of ${n} values from ${decimal(s.min)} to ${decimal(s.max)}` },
        svg("polyline", { points: points.join(" "), fill: "none", stroke: "currentColor", "stroke-width": 1.5, "vector-effect": "non-scaling-stroke" }));
}

/** @param {Tensor} t */
function tensor(t) {
    const s = summaryOf(t);
    const [a, b] = t.shape.slice(-2);
    const text = textOf(t, s);
    const few = t.values.length <= 64 ? h("pre", { tabindex: "0" }, Array.from(t.values, (v) => element(t.dtype, v)).join("  ")) : null;
    const isPicture = t.shape.length >= 2 && a > 1 && b > 1;
    const side = t.shape.length === 1 || t.shape.slice(-2).some((n) => n === 1) ? Math.sqrt(t.values.length) : 0;
    if (isPicture) return h("div", {}, h("p", {}, text), t.shape.length > 2 ? h("p", { class: "quiet" }, "The picture is the first matrix of the array.") : null, picture(t, a, b, s), few);
    if (side >= 8 && Number.isInteger(side) && /u1|f4/.test(t.dtype))
        return h("div", {}, h("p", {}, text), h("p", { class: "quiet" }, `Drawn as ${side} × ${side}.`), picture(t, side, side, s), few);
    return h("div", {}, h("p", {}, text), t.values.length > 2 ? curve(t, s) : null, few);
}

/** The fields of one line of CSV. @param {string} line */
function fields(line) {
    return [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(?:,|$)/g)].map((m) => m[1].replace(/^"|"$/g, "").replaceAll('""', '"')).slice(0, -1);
}

/** @param {string} text */
function csv(text) {
    const lines = text.split(/\r?\n/).filter(Boolean);
    const [head, ...rows] = lines.slice(0, ROWS_MAX + 1).map(fields);
    return h("div", {}, h("div", { class: "scroll", role: "region", "aria-label": "First rows of the table", tabindex: "0" }, h("table", {}, h("thead", {}, h("tr", {}, (head ?? []).map((f) => h("th", { scope: "col" }, f)))),
        h("tbody", {}, rows.map((r) => h("tr", {}, r.map((f) => h("td", {}, f))))))), h("p", { class: "quiet" }, `${count(rows.length)} of ${count(lines.length - 1)} rows.`));
}

/** @param {any} value of JSON */
export function json(value) {
    const text = typeof value === "string" ? value : writeExact(value);
    return h("pre", { class: "value", tabindex: "0" }, text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}… (${count(text.length)} characters)` : text);
}

/**
 * @param {string} type content type
 * @param {Uint8Array} data
 * @returns {HTMLElement}
 */
export function preview(type, data) {
    if (type.startsWith("image/")) {
        const image = h("img", { class: "picture", alt: "The value as an image", src: URL.createObjectURL(new Blob([/** @type {BlobPart} */ (data)], { type })) });
        image.onload = () => URL.revokeObjectURL(image.src);
        return image;
    }
    const array = parseNpy(data);
    if (array) return tensor(array);
    const text = new TextDecoder();
    if (type.startsWith("text/csv")) return csv(text.decode(data));
    if (type.startsWith("application/json")) return json(parseExact(text.decode(data)));
    if (type.startsWith("text/")) return json(text.decode(data));
    const hex = Array.from(data.subarray(0, 256), (b) => b.toString(16).padStart(2, "0")).join(" ");
    return h("div", {}, h("p", {}, `${bytes(data.length)} of ${type || "unknown type"}; the first ones in hexadecimal:`), h("pre", { class: "value", tabindex: "0" }, hex));
}

/**
 * Reads a value and shows it. @param {import("../client/millrace.js").Client} client
 * @param {string} path @param {{[name: string]: string}} query @param {AbortSignal} [signal]
 */
export async function load(client, path, query, signal) {
    const response = await client.http.send("GET", path, { query, accept: "*/*", signal });
    const size = Number(response.headers.get("Content-Length"));
    if (size > PREVIEW_BYTES_MAX) {
        await response.body?.cancel();
        return h("p", {}, `The value has ${bytes(size)}; the page shows values up to ${bytes(PREVIEW_BYTES_MAX)}. Download it instead.`);
    }
    return preview(response.headers.get("Content-Type") ?? "", new Uint8Array(await response.arrayBuffer()));
}
