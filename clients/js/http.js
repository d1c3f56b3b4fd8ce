/* Requests to the gateway: addresses, the token, errors and answers in JSON. */
import { parseMessage, writeMessage } from "./json.js";

const CODE_DEADLINE_EXCEEDED = 4;
const CODE_UNAVAILABLE = 14;

/** An error that the gateway or a service answered. `message` is the API's own sentence. */
export class ApiError extends Error {
    /**
     * @param {number} status HTTP status
     * @param {number} code google.rpc.Code, e.g. 5 for NOT_FOUND
     * @param {string} message
     * @param {number} [retryAfterS] seconds after which the request may succeed
     */
    constructor(status, code, message, retryAfterS) {
        super(message);
        this.name = "ApiError";
        this.status = status;
        this.code = code;
        this.retryAfterS = retryAfterS;
    }

    /** True: the service is away or busy, and the same request may succeed later. */
    get isTransient() {
        return [429, 502, 503, 504].includes(this.status) || this.code === CODE_UNAVAILABLE || this.code === CODE_DEADLINE_EXCEEDED;
    }
}

/** The gateway cannot be reached, or closed the connection before its answer was complete. */
export class ConnectionError extends Error {
    /** @param {string} message @param {unknown} cause */
    constructor(message, cause) {
        super(message, { cause });
        this.name = "ConnectionError";
    }

    get isTransient() {
        return true;
    }
}

/**
 * @typedef {object} ClientOptions
 * @property {string} [url] address of the gateway, e.g. "http://127.0.0.1:8080". Default: the
 *   origin of the page.
 * @property {string} [token] sent as Authorization: Bearer. A page leaves the token out and uses
 *   the cookie of `client.login()`.
 * @property {typeof fetch} [fetch] replaces the platform's fetch
 */

/**
 * @typedef {object} RequestOptions
 * @property {{[name: string]: any}} [query] undefined members are left out; lists repeat the name
 * @property {any} [json] a message: BigInt becomes a string
 * @property {BodyInit} [body] raw bytes, with `type`
 * @property {string} [type] content type of `body`
 * @property {string} [accept]
 * @property {{[name: string]: string | undefined}} [headers]
 * @property {AbortSignal} [signal]
 */

/**
 * One part of a path. Slashes are encoded, and "." and ".." cannot leave the path.
 * @param {string} part
 */
export function segment(part) {
    return encodeURIComponent(part).replace(/^\.+$/, (dots) => "%2E".repeat(dots.length));
}

/** @param {{[name: string]: any}} [query] */
function queryText(query) {
    const words = new URLSearchParams();
    for (const [name, value] of Object.entries(query ?? {})) {
        if (value === undefined || value === "" || value === false) continue;
        for (const one of Array.isArray(value) ? value : [value]) words.append(name, String(one));
    }
    const text = words.toString();
    return text ? `?${text}` : "";
}

export class Http {
    /** @param {ClientOptions} options */
    constructor(options) {
        const origin = globalThis.location?.origin;
        const url = options.url ?? origin;
        if (!url) throw new TypeError("new Client({url}) needs the address of the gateway");
        this.base = url.replace(/\/+$/, "");
        this.token = options.token;
        this.doFetch = options.fetch ?? ((...args) => globalThis.fetch(...args));
    }

    /**
     * @param {string} path
     * @param {{[name: string]: any}} [query]
     */
    url(path, query) {
        return this.base + path + queryText(query);
    }

    /**
     * Sends a request and returns the answer's head. Throws if the status is an error.
     * @param {string} method
     * @param {string} path
     * @param {RequestOptions} [o]
     * @returns {Promise<Response>}
     */
    async send(method, path, o = {}) {
        /** @type {{[name: string]: string}} */
        const headers = { Accept: o.accept ?? "application/json" };
        for (const [name, value] of Object.entries(o.headers ?? {}))
            if (value !== undefined) headers[name] = value;
        if (this.token) headers.Authorization = `Bearer ${this.token}`;
        let body = o.body;
        if (o.json !== undefined) body = writeMessage(o.json);
        if (body !== undefined) headers["Content-Type"] = o.type ?? "application/json";
        /** @type {RequestInit} */
        const init = { method, headers, body, signal: o.signal, cache: "no-cache", credentials: "same-origin" };
        /** @type {Response} */
        let response;
        try {
            response = await this.doFetch(this.url(path, o.query), init);
        } catch (e) {
            if (o.signal?.aborted) throw e;
            throw new ConnectionError(`the gateway at ${this.base} does not answer`, e);
        }
        if (!response.ok) throw await errorOf(response);
        return response;
    }

    /**
     * Sends a request and returns the message that answers it, with 64-bit integers as BigInt.
     * @param {string} method
     * @param {string} path
     * @param {string} message name of the answer's message
     * @param {RequestOptions} [o]
     * @returns {Promise<any>}
     */
    async call(method, path, message, o) {
        const response = await this.send(method, path, o);
        return parseMessage(await textOf(response, o?.signal), message);
    }
}

/**
 * @param {Response} response
 * @param {AbortSignal} [signal]
 */
export async function textOf(response, signal) {
    try {
        return await response.text();
    } catch (e) {
        if (signal?.aborted) throw e;
        throw new ConnectionError("the connection broke before the answer was complete", e);
    }
}

/** @param {Response} response */
async function errorOf(response) {
    const retry = Number(response.headers.get("Retry-After")) || undefined;
    const text = await response.text().catch(() => "");
    try {
        const status = JSON.parse(text);
        return new ApiError(response.status, Number(status.code ?? 2), String(status.message ?? text), retry);
    } catch {
        return new ApiError(response.status, 2, text.slice(0, 300) || `HTTP status ${response.status}`, retry);
    }
}
