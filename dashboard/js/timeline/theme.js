/* Colours of the page around the data, from CSS custom properties. */
import { contrast, luminance } from "./colors.js";

/** @typedef {import("./colors.js").Theme} Theme */
/** @typedef {readonly [number, number, number]} Rgb 0-255 */

/**
 * @typedef {object} Look
 * @property {Theme} theme which set of colours has contrast here
 * @property {string} ground behind everything
 * @property {Rgb} track a row where its slot does nothing
 * @property {string} trackText `track` for a canvas
 * @property {string} text @property {string} quiet @property {string} line @property {string} accent
 * @property {string} font
 */

const DEFAULTS = {
    light: { panel: "#ffffff", text: "#1b2330", quiet: "#566070", line: "#dde2e8", accent: "#0b63c4" },
    dark: { panel: "#161b22", text: "#e8ecf1", quiet: "#9aa5b1", line: "#2d343d", accent: "#6cb2ff" },
};

/** @type {CanvasRenderingContext2D | null} */
let probe = null;

/** Any CSS colour as numbers. @param {string} color @param {string} otherwise @returns {Rgb} */
function resolve(color, otherwise) {
    if (!probe) {
        const canvas = document.createElement("canvas");
        canvas.width = canvas.height = 1;
        probe = canvas.getContext("2d", { willReadFrequently: true });
    }
    if (!probe) return [0, 0, 0];
    probe.fillStyle = otherwise;
    probe.fillStyle = color;
    probe.clearRect(0, 0, 1, 1);
    probe.fillRect(0, 0, 1, 1);
    const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
    return [r, g, b];
}

/** @param {Rgb} a @param {Rgb} b @param {number} part of b @returns {Rgb} */
function mix(a, b, part) {
    const at = (/** @type {0 | 1 | 2} */ i) => Math.round(a[i] + (b[i] - a[i]) * part);
    return [at(0), at(1), at(2)];
}

/** @param {Rgb} c @returns {string} */
export function css(c) {
    return `rgb(${c[0]} ${c[1]} ${c[2]})`;
}

/** Reads --panel, --text, --quiet, --line and --accent of an element. What is missing has a default.
 * @param {Element} element @param {Theme | undefined} wanted @returns {Look} */
export function lookOf(element, wanted) {
    const style = getComputedStyle(element);
    const read = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    const preferred = wanted ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    const panel = resolve(read("panel"), DEFAULTS[preferred].panel);
    // The background decides which colours have contrast, whatever the theme is called.
    const theme = luminance(panel) > 0.2 ? "light" : "dark";
    const known = DEFAULTS[theme];
    const text = resolve(read("text"), known.text);
    const line = resolve(read("line"), known.line);
    // Darker than the page in both themes: in the dark one, colours then have more contrast.
    const track = theme === "light" ? mix(panel, text, 0.035) : mix(panel, [0, 0, 0], 0.28);
    const quiet = resolve(read("quiet"), known.quiet);
    return {
        theme, track, trackText: css(track), ground: css(panel), text: css(text), line: css(line),
        quiet: contrast(quiet, panel) >= 4.5 ? css(quiet) : css(text),
        accent: css(resolve(read("accent"), known.accent)),
        font: style.fontFamily || "system-ui, sans-serif",
    };
}
