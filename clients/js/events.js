/* Event streams: Server-Sent Events over fetch, with EventSource's rules for reconnecting. fetch is
 * used in place of EventSource for two reasons: Node 20 has no EventSource, and an EventSource hides
 * the status and the text of an error from its page. A broken stream is opened again with the header
 * Last-Event-ID, after a wait that doubles from the server's `retry` to 8 s. */
import { ApiError, ConnectionError } from "./http.js";
import { parseMessage } from "./json.js";

/**
 * @template T
 * @typedef {object} StreamEvent
 * @property {string} id "": the stream cannot be resumed from this event
 * @property {T} data
 * @property {string} [gap] says that entries before this event are lost. `data` is then undefined.
 */

/**
 * @typedef {object} StreamOptions
 * @property {AbortSignal} [signal] ends the stream without an error
 * @property {string} [lastEventId] begin after this event
 * @property {boolean} [isState] each event is a whole state: a stream that is opened again begins with
 *   the present state. Otherwise, it goes on after the last event.
 * @property {(state: "open" | "lost", error?: Error) => void} [onState] called when the stream is
 *   open and when its connection is lost
 */

const WAIT_MS_MAX = 8000;
const CODE_OUT_OF_RANGE = 11;

/** Splits the text of a stream into events. */
export class EventReader {
    constructor() {
        this.rest = "";
        this.id = "";
        this.retryMs = 1000;
        /** @type {string[]} */
        this.data = [];
        this.type = "";
        this.eventId = "";
    }

    /**
     * @param {string} text the next piece
     * @returns {Array<{id: string, type: string, data: string}>} the events that are complete now.
     *   `id` is the event's own, "" if it has none; the reader's `id` is the last one that came.
     */
    push(text) {
        const events = [];
        this.rest += text;
        for (let end = this.rest.indexOf("\n"); end >= 0; end = this.rest.indexOf("\n")) {
            const line = this.rest.slice(0, end).replace(/\r$/, "");
            this.rest = this.rest.slice(end + 1);
            if (line) {
                this.#line(line);
                continue;
            }
            if (this.eventId) this.id = this.eventId;
            if (this.data.length) events.push({ id: this.eventId, type: this.type, data: this.data.join("\n") });
            this.data = [];
            this.type = this.eventId = "";
        }
        return events;
    }

    /** @param {string} line */
    #line(line) {
        const colon = line.indexOf(":");
        if (colon === 0) return; // a comment
        const field = colon < 0 ? line : line.slice(0, colon);
        const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "data") this.data.push(value);
        else if (field === "event") this.type = value;
        else if (field === "id") this.eventId = value;
        else if (field === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
    }
}

/** @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>} */
function pause(ms, signal) {
    if (signal?.aborted) return Promise.resolve(); // it sends no event any more
    return new Promise((resolve) => {
        const done = () => {
            clearTimeout(timer);
            signal?.removeEventListener("abort", done);
            resolve();
        };
        const timer = setTimeout(done, ms);
        signal?.addEventListener("abort", done);
    });
}

/** @param {any} data a google.rpc.Status */
function statusError(data) {
    return new ApiError(200, Number(data.code ?? 2), String(data.message ?? "the stream ended with an error"));
}

/**
 * Reads a stream until its end (status 204) or until `signal` is aborted. Connects again after a
 * loss. Throws an ApiError if the request is refused, e.g. because the job does not exist.
 * @template T
 * @param {import("./http.js").Http} http
 * @param {string} path
 * @param {string} message name of the events' message
 * @param {{[name: string]: any}} query
 * @param {StreamOptions} [o]
 * @returns {AsyncGenerator<StreamEvent<T>, void, void>}
 */
export async function* stream(http, path, message, query, o = {}) {
    const reader = new EventReader();
    reader.id = o.lastEventId ?? "";
    let waitMs = 0;
    let wasOpen = false;
    while (!o.signal?.aborted) {
        try {
            const after = o.isState && wasOpen ? "" : reader.id;
            const headers = { "Last-Event-ID": after || undefined };
            const response = await http.send("GET", path, { query, headers, accept: "text/event-stream", signal: o.signal });
            if (response.status === 204 || !response.body) return;
            if (o.signal?.aborted) {
                await response.body.cancel().catch(() => {});
                return;
            }
            o.onState?.("open");
            wasOpen = true;
            waitMs = reader.retryMs;
            for await (const event of events(response.body, reader)) {
                const data = parseMessage(event.data, message);
                if (event.type !== "error") yield { id: event.id, data };
                else if (data.code === CODE_OUT_OF_RANGE) yield { id: event.id, data: /** @type {any} */ (undefined), gap: data.message };
                else throw statusError(data);
            }
        } catch (e) {
            if (o.signal?.aborted) return;
            if (e instanceof ApiError && !e.isTransient) throw e;
            o.onState?.("lost", /** @type {Error} */ (e));
        }
        await pause(waitMs || reader.retryMs, o.signal);
        waitMs = Math.min(2 * (waitMs || reader.retryMs), WAIT_MS_MAX);
        reader.rest = reader.type = reader.eventId = "";
        reader.data = [];
    }
}

/**
 * @param {ReadableStream<Uint8Array>} body
 * @param {EventReader} reader
 */
async function* events(body, reader) {
    const bytes = body.getReader();
    const decoder = new TextDecoder();
    try {
        for (;;) {
            const { done, value } = await bytes.read();
            if (done) return;
            yield* reader.push(decoder.decode(value, { stream: true }));
        }
    } catch (e) {
        throw e instanceof ApiError ? e : new ConnectionError("the stream broke", e);
    } finally {
        await bytes.cancel().catch(() => {});
    }
}
