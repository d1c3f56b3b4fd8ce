/* The connection to the gateway, and who the user is. There is one session a page. */
import { ApiError, Client } from "../client/millrace.js";
import { Feed } from "./feed.js";

const RANKS = { reader: 0, user: 1, admin: 2 };

/** Waits until somebody sees the page. @param {AbortSignal} signal @returns {Promise<boolean>} false: aborted */
function seen(signal) {
    return new Promise((resolve) => {
        const check = () => {
            if (document.hidden && !signal.aborted) return;
            document.removeEventListener("visibilitychange", check);
            signal.removeEventListener("abort", check);
            resolve(!signal.aborted);
        };
        document.addEventListener("visibilitychange", check);
        signal.addEventListener("abort", check);
        check();
    });
}

export class Session {
    constructor() {
        this.client = new Client();
        /** @type {import("../client/api.d.ts").Identity | undefined} */
        this.identity = undefined;
        /** @type {any} the last error of the connection; undefined: the gateway answers */
        this.trouble = undefined;
        /** Called when the identity or the connection changed. */
        this.onChange = () => {};
        /** Called when the gateway asks for a token. */
        this.onLogin = () => {};
    }

    async start() {
        this.identity = await this.client.whoami();
        this.onChange();
    }

    /** @param {string} token @param {boolean} isKept for a week, instead of until the browser ends */
    async login(token, isKept) {
        this.identity = await this.client.login(token, isKept ? { max_age_s: 604800 } : undefined);
        this.onChange();
    }

    async logout() {
        await this.client.logout();
        this.identity = undefined;
        this.onChange();
    }

    /** True: the gateway has users, so one can log out. Without a token file everybody is "local". */
    get hasUsers() {
        return this.identity !== undefined && this.identity.name !== "local";
    }

    /** @param {"user" | "admin"} role */
    may(role) {
        return this.identity !== undefined && RANKS[this.identity.role] >= RANKS[role];
    }

    /** Notes the outcome of a request. @param {any} error undefined: it was answered */
    note(error) {
        if (error instanceof ApiError && error.status === 401) {
            this.identity = undefined;
            this.onLogin();
            return;
        }
        const trouble = error?.isTransient ? error : undefined;
        if (this.trouble?.message === trouble?.message) return;
        this.trouble = trouble;
        this.onChange();
    }

    /**
     * @template T
     * @param {(client: Client, signal: AbortSignal) => Promise<T>} read
     * @param {() => void} onChange
     * @param {import("./feed.js").Pace} [every_ms]
     * @returns {Feed<T>}
     */
    feed(read, onChange, every_ms) {
        const get = async (/** @type {AbortSignal} */ signal) => {
            const data = await read(this.client, signal);
            this.note(undefined);
            return data;
        };
        return new Feed(get, { every_ms, onChange, onError: (e) => this.note(e) });
    }

    /**
     * Reads a stream until its end, or until `signal` is aborted. The stream is closed while nobody
     * sees the page, and then goes on after its last event. If events are whole states, it goes on
     * with the present state: some changes of a state have no id. Notes the state of the connection.
     * @template T
     * @param {(client: Client, o: import("../client/events.js").StreamOptions) => import("../client/millrace.js").EventStream<T>} open
     * @param {AbortSignal} signal
     * @param {object} [o]
     * @param {boolean} [o.isState] events are whole states
     * @param {(isOpen: boolean) => void} [o.onLink] called when the stream is open, and when it is lost or closed
     * @returns {import("../client/millrace.js").EventStream<T>}
     */
    async *watch(open, signal, { isState, onLink } = {}) {
        const onState = (/** @type {"open" | "lost"} */ state, /** @type {any} */ e) => {
            this.note(state === "lost" ? e : undefined);
            onLink?.(state === "open");
        };
        let lastEventId = "";
        while (await seen(signal)) {
            const control = new AbortController();
            const close = () => {
                if (!signal.aborted && !document.hidden) return;
                control.abort();
                onLink?.(false);
            };
            document.addEventListener("visibilitychange", close);
            signal.addEventListener("abort", close);
            close(); // the signal or the page may have changed since seen() looked at them
            try {
                for await (const event of open(this.client, { signal: control.signal, lastEventId, onState })) {
                    if (!isState) lastEventId = event.id || lastEventId;
                    yield event;
                }
                if (!control.signal.aborted) return;
            } catch (e) {
                this.note(e);
                throw e;
            } finally {
                document.removeEventListener("visibilitychange", close);
                signal.removeEventListener("abort", close);
            }
        }
    }
}
