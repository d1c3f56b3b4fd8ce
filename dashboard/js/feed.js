/* Data that a page reads again and again. A feed keeps its last data while the gateway is away, and
 * asks less often then. It rests while nobody sees the page, and ends when its data is final. */
import { ApiError } from "../client/millrace.js";

const WAIT_MS_MAX = 15000;

/**
 * Milliseconds between two reads, or a function that returns them. If it returns undefined, what the
 * feed reads has become final: it is read once more, and then no more.
 * @typedef {number | (() => number | undefined)} Pace
 */

/** @template T */
export class Feed {
    /**
     * @param {(signal: AbortSignal) => Promise<T>} read
     * @param {{every_ms?: Pace, onChange: () => void, onError?: (e: any) => void}} options
     *   without `every_ms` the data is read once, and again by refresh()
     */
    constructor(read, options) {
        this.read = read;
        this.options = options;
        /** @type {T | undefined} */
        this.data = undefined;
        /** @type {any} */
        this.error = undefined;
        this.isClosed = false;
        /** @type {AbortController | undefined} */
        this.running = undefined;
        /** @type {ReturnType<typeof setTimeout> | undefined} */
        this.timer = undefined;
        this.failures = 0;
        /** @type {number | undefined} the pace when the last read began; undefined: the data was final */
        this.pace = undefined;
        this.onVisible = () => {
            if (!document.hidden && (this.error || (this.pace ?? this.#every()))) this.refresh();
        };
        document.addEventListener("visibilitychange", this.onVisible);
        this.refresh();
    }

    #every() {
        const { every_ms } = this.options;
        return typeof every_ms === "function" ? every_ms() : every_ms;
    }

    /** Reads now. A read that is under way is dropped. */
    async refresh() {
        if (this.isClosed) return;
        clearTimeout(this.timer);
        this.running?.abort();
        const control = (this.running = new AbortController());
        this.pace = this.#every();
        try {
            const data = await this.read(control.signal);
            if (control.signal.aborted) return;
            this.data = data;
            this.error = undefined;
            this.failures = 0;
        } catch (e) {
            if (control.signal.aborted) return;
            this.error = e;
            this.failures++;
            this.options.onError?.(e);
        }
        this.running = undefined;
        this.options.onChange();
        this.#plan();
    }

    #plan() {
        if (this.isClosed || document.hidden) return;
        const isLasting = this.error instanceof ApiError && !this.error.isTransient;
        // Data whose read began before it was final may be older than its end.
        const every = this.#every() ?? this.pace;
        if (!every && (!this.error || isLasting)) return;
        const wait = Math.min((every ?? 2000) * 2 ** Math.min(this.failures, 4), Math.max(WAIT_MS_MAX, every ?? 0));
        this.timer = setTimeout(() => this.refresh(), wait);
    }

    close() {
        this.isClosed = true;
        clearTimeout(this.timer);
        this.running?.abort();
        document.removeEventListener("visibilitychange", this.onVisible);
    }
}
