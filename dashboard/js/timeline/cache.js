/* Values that are loaded on demand, kept up to a number of bytes. Of those that are not wanted now, the
 * least recently used is given up first. If what is wanted alone exceeds the bound, its less urgent
 * part is not loaded. Requests for what is not wanted any more are aborted. Knows nothing of tiles. */

/**
 * @template T
 * @typedef {object} LoaderOptions
 * @property {(key: string, signal: AbortSignal) => Promise<T>} load
 * @property {(value: T) => number} bytesOf
 * @property {number} bytesMax bound of all values together; answers under way may exceed it
 * @property {number} [active] requests at a time
 * @property {() => void} [onChange] a value arrived, or a request failed
 * @property {(run: () => void, ms: number) => any} [later] setTimeout
 */

const RETRY_MS = 1000;
const RETRY_MS_MAX = 15000;

/** @template T */
export class Loader {
    /** @param {LoaderOptions<T>} options */
    constructor(options) {
        this.o = options;
        /** Values, the least recently used first. @type {Map<string, {value: T, bytes: number, isStale: boolean}>} */
        this.values = new Map();
        /** @type {Map<string, AbortController>} */
        this.active = new Map();
        /** Keys that failed, and how often. @type {Map<string, {count: number, isDue: boolean}>} */
        this.failed = new Map();
        /** The most urgent first. @type {Set<string>} */
        this.wanted = new Set();
        this.bytes = 0;
        /** @type {unknown} */
        this.error = null;
        this.isClosed = false;
    }

    /** The value, if it is here. It may be stale. @param {string} key @returns {T | undefined} */
    get(key) {
        const entry = this.values.get(key);
        if (!entry) return undefined;
        this.values.delete(key);
        this.values.set(key, entry);
        return entry.value;
    }

    /** Says what is wanted now, the most urgent first. Other requests are aborted.
     * @param {string[]} keys */
    want(keys) {
        const set = (this.wanted = new Set(keys));
        for (const [key, controller] of this.active)
            if (!set.has(key)) {
                this.active.delete(key);
                controller.abort();
            }
        for (const key of this.failed.keys()) if (!set.has(key)) this.failed.delete(key);
        if (this.failed.size === 0) this.error = null;
        this.start();
    }

    /** @param {string} key */
    isMissing(key) {
        const entry = this.values.get(key);
        return !entry || entry.isStale;
    }

    /** The values for which `isOld` holds are loaded again when they are wanted. Until then they are
     * still given out. @param {(value: T) => boolean} isOld */
    expire(isOld) {
        for (const entry of this.values.values()) if (isOld(entry.value)) entry.isStale = true;
    }

    /** Keys that failed are tried again now. */
    retry() {
        for (const f of this.failed.values()) f.isDue = true;
        this.start();
    }

    /** Gives everything up. */
    clear() {
        this.want([]);
        this.values.clear();
        this.bytes = 0;
    }

    close() {
        this.clear();
        this.isClosed = true;
    }

    start() {
        for (const key of this.wanted) {
            if (this.isClosed || this.active.size >= (this.o.active ?? 4)) return;
            if (this.bytes > this.o.bytesMax && !this.makeRoom()) return;
            const failure = this.failed.get(key);
            if (this.isMissing(key) && !this.active.has(key) && (!failure || failure.isDue)) this.request(key);
        }
    }

    /** @param {string} key */
    async request(key) {
        const controller = new AbortController();
        this.active.set(key, controller);
        try {
            const value = await this.o.load(key, controller.signal);
            if (this.active.get(key) !== controller) return;
            this.active.delete(key);
            this.failed.delete(key);
            if (this.failed.size === 0) this.error = null;
            this.put(key, value);
        } catch (error) {
            if (this.active.get(key) !== controller) return;
            this.active.delete(key);
            this.fail(key, error);
        }
        this.start();
        this.o.onChange?.();
    }

    /** @param {string} key @param {unknown} error */
    fail(key, error) {
        const failure = { count: (this.failed.get(key)?.count ?? 0) + 1, isDue: false };
        this.failed.set(key, failure);
        this.error = error;
        const ms = Math.min(RETRY_MS * 2 ** (failure.count - 1), RETRY_MS_MAX);
        (this.o.later ?? setTimeout)(() => {
            failure.isDue = true;
            if (this.failed.get(key) === failure) this.start();
        }, ms);
    }

    /** @param {string} key @param {T} value */
    put(key, value) {
        this.bytes -= this.values.get(key)?.bytes ?? 0;
        this.values.delete(key);
        const bytes = this.o.bytesOf(value);
        this.values.set(key, { value, bytes, isStale: false });
        this.bytes += bytes;
        this.makeRoom();
    }

    /** Gives up values that are not wanted. @returns {boolean} the bound holds */
    makeRoom() {
        for (const [key, entry] of this.values) {
            if (this.bytes <= this.o.bytesMax) return true;
            if (this.wanted.has(key)) continue;
            this.values.delete(key);
            this.bytes -= entry.bytes;
        }
        return this.bytes <= this.o.bytesMax;
    }
}
