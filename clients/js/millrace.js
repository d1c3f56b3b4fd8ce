/* Millrace's API for programs in a browser or in Node: jobs, trainings, objects, channels, queues,
 * templates and the cluster.
 *
 *     import { Client } from "millrace";
 *     const client = new Client({ url: "http://127.0.0.1:8080" });
 *     const { id } = await client.jobs.submit({ dsk: { x: ["inc", 1] }, targets: ["x"] });
 *     console.log(await client.jobs.result(id, "x", { wait_s: 10 })); // 2
 *
 * - Errors are exceptions: ApiError with the API's message, or ConnectionError.
 * - In messages every 64-bit integer is a BigInt: times such as `created_ns`, counts, sizes.
 * - In values of jobs an integer outside of ±(2^53 - 1) is a BigInt, and any other a number.
 * - A stream (`watch`, `followLogs`) is an async iterable. It connects again after a loss and goes
 *   on after the last event. Events of a job or training are whole states: such a stream goes on with
 *   the present state.
 * The messages are those of openapi.json; api.d.ts has their types. */
import { Http, segment, textOf } from "./http.js";
import { stream } from "./events.js";
import { parseExact, writeExact } from "./json.js";

export { ApiError, ConnectionError } from "./http.js";
export { parseExact, writeExact } from "./json.js";

/** @typedef {import("./api.d.ts")} Api */
/** @typedef {import("./http.js").ClientOptions} ClientOptions */
/** @typedef {import("./events.js").StreamOptions} StreamOptions */
/**
 * @template T
 * @typedef {import("./events.js").StreamEvent<T>} StreamEvent
 */
/**
 * @template T
 * @typedef {AsyncGenerator<StreamEvent<T>, void, void>} EventStream
 */
/** @typedef {{signal?: AbortSignal}} CallOptions */
/** @typedef {CallOptions & {page_size?: number, page_token?: string}} PageOptions */
/** @typedef {CallOptions & {request_id?: string, wait_s?: number, want_values?: boolean}} SubmitOptions */
/** @typedef {{body: Blob | ArrayBuffer | Uint8Array | string, type: string}} Bytes */
/** @typedef {CallOptions & {accept?: string, wait_s?: number}} ValueOptions */
/** @typedef {"TILE_COLOR_OP" | "TILE_COLOR_CLASS"} TileColor */

const JOB_FINAL = new Set(["JOB_DONE", "JOB_FAILED", "JOB_CANCELLED"]);
const TRAINING_FINAL = new Set(["TRAINING_DONE", "TRAINING_FAILED"]);

/** @param {any} o options of a call */
function queryOf(o) {
    const { signal: _, ...query } = o ?? {};
    return query;
}

/** What all groups of methods share. */
class Group {
    /** @param {Http} http */
    constructor(http) {
        this.http = http;
    }

    /**
     * @param {string} path
     * @param {string} message
     * @param {CallOptions} [o] `signal`; everything else becomes the query
     */
    _get(path, message, o) {
        return this.http.call("GET", path, message, { query: queryOf(o), signal: o?.signal });
    }

    /**
     * @param {string} path
     * @param {string} message
     * @param {any} json
     * @param {CallOptions} [o]
     */
    _post(path, message, json, o) {
        return this.http.call("POST", path, message, { json, signal: o?.signal });
    }

    /**
     * Sends a document in JSON: a graph, a template, a description of a training.
     * @param {string} path
     * @param {string} message
     * @param {any} document an object, or its text
     * @param {SubmitOptions & {[name: string]: any}} [o]
     */
    _document(path, message, document, o) {
        const { request_id, ...query } = queryOf(o);
        const body = typeof document === "string" ? document : writeExact(document);
        return this.http.call("POST", path, message, { body, query, headers: { "Idempotency-Key": request_id }, signal: o?.signal });
    }

    /**
     * All rows of a list, page by page.
     * @template T
     * @param {(o: PageOptions) => Promise<any>} list
     * @param {string} field
     * @param {PageOptions} [o]
     * @returns {AsyncGenerator<T, void, void>}
     */
    async *_all(list, field, o) {
        let page_token = o?.page_token;
        do {
            const page = await list({ ...o, page_token });
            yield* page[field];
            page_token = page.next_page_token;
        } while (page_token);
    }

    /**
     * A value in the format of `accept`; without one, JSON values are read, and others are bytes.
     * @param {string} path
     * @param {ValueOptions & {[name: string]: any}} [o]
     * @returns {Promise<any>}
     */
    async _value(path, o) {
        const { accept, ...query } = queryOf(o);
        const response = await this.http.send("GET", path, { query, accept: accept ?? "*/*", signal: o?.signal });
        const type = response.headers.get("Content-Type") ?? "";
        if (type.startsWith("application/json")) return parseExact(await textOf(response, o?.signal));
        if (type.startsWith("text/")) return textOf(response, o?.signal);
        return new Uint8Array(await response.arrayBuffer());
    }
}

export class Jobs extends Group {
    /**
     * Submits a graph (docs/graphs.md).
     * @param {import("./api.d.ts").GraphDocument | string} graph
     * @param {SubmitOptions} [o]
     * @returns {Promise<import("./api.d.ts").SubmitResponse>}
     */
    submit(graph, o) {
        return this._document("/v1/jobs", "SubmitResponse", graph, o);
    }

    /**
     * One job. With `wait_s` the answer comes at the job's end or after this time.
     * @param {string} id
     * @param {CallOptions & {wait_s?: number}} [o]
     * @returns {Promise<import("./api.d.ts").Job>}
     */
    get(id, o) {
        return this._get(`/v1/jobs/${segment(id)}`, "Job", o);
    }

    /**
     * One page of jobs, newest first.
     * @param {PageOptions & {state?: import("./api.d.ts").JobState, label?: string}} [o]
     * @returns {Promise<import("./api.d.ts").ListJobsResponse>}
     */
    list(o) {
        return this._get("/v1/jobs", "ListJobsResponse", o);
    }

    /**
     * All jobs, newest first.
     * @param {PageOptions & {state?: import("./api.d.ts").JobState, label?: string}} [o]
     * @returns {AsyncGenerator<import("./api.d.ts").Job, void, void>}
     */
    all(o) {
        return this._all((p) => this.list(p), "jobs", o);
    }

    /**
     * @param {string} id
     * @param {string} [reason]
     * @returns {Promise<import("./api.d.ts").Job>}
     */
    cancel(id, reason) {
        return this._post(`/v1/jobs/${segment(id)}:cancel`, "Job", reason ? { reason } : {});
    }

    /**
     * Runs the failed and cancelled tasks again.
     * @param {string} id
     * @returns {Promise<import("./api.d.ts").Job>}
     */
    retry(id) {
        return this._post(`/v1/jobs/${segment(id)}:retry`, "Job", {});
    }

    /**
     * Drops an ended job with its results.
     * @param {string} id
     * @returns {Promise<import("./api.d.ts").ForgetJobResponse>}
     */
    forget(id) {
        return this.http.call("DELETE", `/v1/jobs/${segment(id)}`, "ForgetJobResponse");
    }

    /**
     * States and progress of a job, until its end. Begins with the present state, also when it
     * connects again after a loss.
     * @param {string} id
     * @param {StreamOptions} [o]
     * @returns {EventStream<import("./api.d.ts").JobEvent>}
     */
    async *watch(id, o) {
        for await (const event of stream(this.http, `/v1/jobs/${segment(id)}/events`, "JobEvent", {}, { ...o, isState: true })) {
            yield event;
            if (JOB_FINAL.has(/** @type {any} */ (event.data)?.job?.state)) return;
        }
    }

    /**
     * The value of one target. JSON values are read; tensors come as bytes of a .npy file, tables
     * as CSV, unless `accept` names another format.
     * @param {string} id
     * @param {string} key
     * @param {ValueOptions} [o]
     * @returns {Promise<any>}
     */
    result(id, key, o) {
        return this._value(`/v1/jobs/${segment(id)}/results/`, { ...o, key });
    }

    /**
     * Address of a target's value, e.g. for an image or a download.
     * @param {string} id
     * @param {string} key
     * @param {{accept?: string}} [o]
     */
    resultUrl(id, key, o) {
        return this.http.url(`/v1/jobs/${segment(id)}/results/`, { ...o, key });
    }

    /**
     * Small values of several targets, the places of larger ones, and reasons of missing ones.
     * @param {string} id
     * @param {CallOptions & {key?: string[], wait_s?: number}} [o] no `key`: all targets
     * @returns {Promise<import("./api.d.ts").ResultSet>}
     */
    results(id, o) {
        return this._get(`/v1/jobs/${segment(id)}/results`, "ResultSet", o);
    }

    /**
     * The end of what a task wrote.
     * @param {string} id
     * @param {string} key
     * @param {CallOptions} [o]
     * @returns {Promise<import("./api.d.ts").LogsResponse>}
     */
    logs(id, key, o) {
        return this._get(`/v1/jobs/${segment(id)}/logs`, "LogsResponse", /** @type {any} */ ({ ...o, key }));
    }

    /**
     * What one task, or without `key` every task, wrote and writes.
     * @param {string} id
     * @param {StreamOptions & {key?: string, follow?: boolean}} [o]
     * @returns {EventStream<import("./api.d.ts").LogEvent>}
     */
    followLogs(id, o) {
        return stream(this.http, `/v1/jobs/${segment(id)}/logs/events`, "LogEvent", { key: o?.key, follow: o?.follow }, o);
    }

    /**
     * Why a task ran, runs, waits or never will run.
     * @param {string} id
     * @param {string} key
     * @param {CallOptions} [o]
     * @returns {Promise<import("./api.d.ts").Explanation>}
     */
    explain(id, key, o) {
        return this._get(`/v1/jobs/${segment(id)}/explain`, "Explanation", /** @type {any} */ ({ ...o, key }));
    }

    /**
     * Attempts that ran, in the order of their ends.
     * @param {string} id
     * @param {CallOptions & {after_ns?: bigint, spans_max?: number, from_ns?: bigint, until_ns?: bigint, worker?: string[], slot?: number[]}} [o]
     * @returns {Promise<import("./api.d.ts").TimelineResponse>}
     */
    timeline(id, o) {
        return this._get(`/v1/jobs/${segment(id)}/timeline`, "TimelineResponse", o);
    }

    /**
     * A picture of the timeline: for each slot and pixel the operator or class with the most time.
     * @param {string} id
     * @param {CallOptions & {from_ns?: bigint, until_ns?: bigint, width?: number, first_row?: number, rows?: number, color?: TileColor}} [o]
     * @returns {Promise<import("./api.d.ts").TilesResponse>}
     */
    tiles(id, o) {
        return this._get(`/v1/jobs/${segment(id)}/tiles`, "TilesResponse", o);
    }

    /**
     * @param {string} id
     * @param {CallOptions & {nodes_max?: number}} [o]
     * @returns {Promise<import("./api.d.ts").GraphResponse>}
     */
    graph(id, o) {
        return this._get(`/v1/jobs/${segment(id)}/graph`, "GraphResponse", o);
    }

    /**
     * The account of the job: time of all slots by class, critical path, sums by operator.
     * @param {string} id
     * @param {CallOptions & {steps_max?: number}} [o]
     * @returns {Promise<import("./api.d.ts").ProfileResponse>}
     */
    profile(id, o) {
        return this._get(`/v1/jobs/${segment(id)}/profile`, "ProfileResponse", o);
    }

    /**
     * Predicts how long a job that is over would have taken. May take a minute. An ApiError with
     * status 429: another prediction is being made.
     * @param {string} id
     * @param {CallOptions & {slots?: number, processors?: number, bandwidth?: number, free?: string[], op_speed?: string[]}} [o] `op_speed`:
     *   for example ["array.matmul=2"]
     * @returns {Promise<import("./api.d.ts").WhatIfResponse>}
     */
    whatIf(id, o) {
        return this._get(`/v1/jobs/${segment(id)}/whatif`, "WhatIfResponse", o);
    }
}

export class Trainings extends Group {
    /**
     * Starts a session (docs/training.md).
     * @param {any} description an object, or its text
     * @param {SubmitOptions} [o]
     * @returns {Promise<import("./api.d.ts").Training>}
     */
    start(description, o) {
        return this._document("/v1/trainings", "Training", description, o);
    }

    /**
     * @param {string} id
     * @param {CallOptions & {wait_s?: number}} [o]
     * @returns {Promise<import("./api.d.ts").Training>}
     */
    get(id, o) {
        return this._get(`/v1/trainings/${segment(id)}`, "Training", o);
    }

    /**
     * @param {PageOptions} [o]
     * @returns {Promise<import("./api.d.ts").ListTrainingsResponse>}
     */
    list(o) {
        return this._get("/v1/trainings", "ListTrainingsResponse", o);
    }

    /**
     * @param {PageOptions} [o]
     * @returns {AsyncGenerator<import("./api.d.ts").Training, void, void>}
     */
    all(o) {
        return this._all((p) => this.list(p), "trainings", o);
    }

    /**
     * What the time of the roles went into.
     * @param {string} id
     * @param {CallOptions & {steps_max?: number}} [o]
     * @returns {Promise<import("./api.d.ts").ProfileResponse>}
     */
    profile(id, o) {
        return this._get(`/v1/trainings/${segment(id)}/profile`, "ProfileResponse", o);
    }

    /**
     * Stops a session as if its stop rule had fired. `abandon`: the session fails, without a model.
     * @param {string} id
     * @param {{reason?: string, abandon?: boolean}} [o]
     * @returns {Promise<import("./api.d.ts").Training>}
     */
    stop(id, o) {
        return this._post(`/v1/trainings/${segment(id)}:stop`, "Training", o ?? {});
    }

    /**
     * @param {string} id
     * @returns {Promise<import("./api.d.ts").ForgetTrainingResponse>}
     */
    forget(id) {
        return this.http.call("DELETE", `/v1/trainings/${segment(id)}`, "ForgetTrainingResponse");
    }

    /**
     * States and counters of a session, until its end. Begins with the present state, also when it
     * connects again after a loss.
     * @param {string} id
     * @param {StreamOptions} [o]
     * @returns {EventStream<import("./api.d.ts").TrainingEvent>}
     */
    async *watch(id, o) {
        for await (const event of stream(this.http, `/v1/trainings/${segment(id)}/events`, "TrainingEvent", {}, { ...o, isState: true })) {
            yield event;
            if (TRAINING_FINAL.has(/** @type {any} */ (event.data)?.training?.state)) return;
        }
    }
}

export class Objects extends Group {
    /**
     * Uploads a value.
     * @param {Bytes} bytes
     * @param {CallOptions & {name?: string, replace?: boolean, persist?: boolean, format?: string, options_json?: string}} [o]
     * @returns {Promise<import("./api.d.ts").ObjectInfo>}
     */
    put(bytes, o) {
        const body = /** @type {BodyInit} */ (bytes.body);
        return this.http.call("POST", "/v1/objects", "ObjectInfo", { body, type: bytes.type, query: queryOf(o), signal: o?.signal });
    }

    /**
     * @param {string} id id of an object, or "name:" and its name
     * @param {ValueOptions & {offset?: number, bytes_max?: number}} [o]
     * @returns {Promise<any>}
     */
    get(id, o) {
        return this._value("/v1/objects/", { ...o, id });
    }

    /**
     * Address of an object's value, e.g. for an image or a download.
     * @param {string} id
     * @param {{accept?: string}} [o]
     */
    url(id, o) {
        return this.http.url("/v1/objects/", { ...o, id });
    }

    /**
     * @param {string} id
     * @param {CallOptions} [o]
     * @returns {Promise<import("./api.d.ts").ObjectInfo>}
     */
    stat(id, o) {
        return this._get("/v1/objects/stat", "ObjectInfo", /** @type {any} */ ({ ...o, id }));
    }

    /**
     * @param {PageOptions} [o]
     * @returns {Promise<import("./api.d.ts").ListObjectsResponse>}
     */
    list(o) {
        return this._get("/v1/objects", "ListObjectsResponse", o);
    }

    /**
     * @param {PageOptions} [o]
     * @returns {AsyncGenerator<import("./api.d.ts").ObjectInfo, void, void>}
     */
    all(o) {
        return this._all((p) => this.list(p), "objects", o);
    }

    /**
     * @param {string} id
     * @param {{force?: boolean}} [o]
     * @returns {Promise<import("./api.d.ts").DeleteObjectResponse>}
     */
    delete(id, o) {
        return this.http.call("DELETE", "/v1/objects/", "DeleteObjectResponse", { query: { ...o, id } });
    }

    /**
     * @param {string} id
     * @param {number} seconds
     * @returns {Promise<import("./api.d.ts").ObjectInfo>}
     */
    pin(id, seconds) {
        return this._post(`/v1/objects/${segment(id)}:pin`, "ObjectInfo", { seconds });
    }

    /**
     * @param {string} id
     * @returns {Promise<import("./api.d.ts").ObjectInfo>}
     */
    persist(id) {
        return this._post(`/v1/objects/${segment(id)}:persist`, "ObjectInfo", {});
    }

    /**
     * Gives an object a name.
     * @param {string} name
     * @param {string} object id of the object
     * @param {{replace?: boolean}} [o]
     * @returns {Promise<import("./api.d.ts").NameInfo>}
     */
    name(name, object, o) {
        return this.http.call("PUT", `/v1/names/${segment(name)}`, "NameInfo", { json: { object, ...o } });
    }

    /**
     * The object that has a name.
     * @param {string} name
     * @param {CallOptions} [o]
     * @returns {Promise<import("./api.d.ts").NameInfo>}
     */
    resolve(name, o) {
        return this._get(`/v1/names/${segment(name)}`, "NameInfo", o);
    }

    /**
     * @param {string} name
     * @returns {Promise<import("./api.d.ts").UnnameResponse>}
     */
    unname(name) {
        return this.http.call("DELETE", `/v1/names/${segment(name)}`, "UnnameResponse");
    }

    /**
     * @param {PageOptions & {prefix?: string}} [o]
     * @returns {Promise<import("./api.d.ts").NamesResponse>}
     */
    names(o) {
        return this._get("/v1/names", "NamesResponse", o);
    }
}

export class Channels extends Group {
    /**
     * Appends values, which may be anything that JSON can express.
     * @param {string} channel
     * @param {any[]} values
     * @param {{entries_max?: number}} [o]
     * @returns {Promise<import("./api.d.ts").AppendResponse>}
     */
    append(channel, values, o) {
        const value_json = values.map(writeExact);
        return this._post(`/v1/channels/${segment(channel)}:append`, "AppendResponse", { value_json, ...o });
    }

    /**
     * @param {string} channel
     * @param {CallOptions & {after_id?: string, entries_max?: number}} [o]
     * @returns {Promise<import("./api.d.ts").ReadChannelResponse>}
     */
    read(channel, o) {
        return this._get(`/v1/channels/${segment(channel)}/entries`, "ReadChannelResponse", o);
    }

    /**
     * Entries from the oldest or after `lastEventId` on ("$": only new ones). If the entries after
     * the last id are lost, one event with `gap` says so, and the stream goes on with the oldest.
     * @param {string} channel
     * @param {StreamOptions} [o]
     * @returns {EventStream<import("./api.d.ts").ChannelEntry>}
     */
    watch(channel, o) {
        return stream(this.http, `/v1/channels/${segment(channel)}/events`, "ChannelEntry", {}, o);
    }

    /**
     * @param {PageOptions} [o]
     * @returns {Promise<import("./api.d.ts").ListChannelsResponse>}
     */
    list(o) {
        return this._get("/v1/channels", "ListChannelsResponse", o);
    }
}

export class Queues extends Group {
    /** @param {string} queue @param {string} [verb] */
    _path(queue, verb) {
        return `/v1/queues/${segment(queue)}${verb ? ":" + verb : ""}`;
    }

    /**
     * Creates a queue, or changes its bounds.
     * @param {string} queue
     * @param {{items_max?: number, deliveries_max?: number}} [o]
     * @returns {Promise<import("./api.d.ts").Queue>}
     */
    create(queue, o) {
        return this.http.call("PUT", this._path(queue), "Queue", { json: o ?? {} });
    }

    /**
     * Appends an item: `{value}` for anything that JSON can express, or `{object}` for an object.
     * @param {string} queue
     * @param {{value?: any, object?: string, item_id?: string, wait_s?: number}} item
     * @returns {Promise<import("./api.d.ts").PutItemResponse>}
     */
    put(queue, item) {
        const { value, ...rest } = item;
        const json = "value" in item ? { value_json: writeExact(value), ...rest } : rest;
        return this._post(this._path(queue, "put"), "PutItemResponse", json);
    }

    /**
     * @param {string} queue
     * @param {{items_max?: number, wait_s?: number, lease_s?: number}} [o]
     * @returns {Promise<import("./api.d.ts").TakeItemsResponse>}
     */
    take(queue, o) {
        return this._post(this._path(queue, "take"), "TakeItemsResponse", o ?? {});
    }

    /**
     * @param {string} queue
     * @param {string[]} receipts
     * @returns {Promise<import("./api.d.ts").AckItemsResponse>}
     */
    ack(queue, receipts) {
        return this._post(this._path(queue, "ack"), "AckItemsResponse", { receipts });
    }

    /**
     * @param {string} queue
     * @param {string[]} receipts
     * @param {{dead?: boolean, reason?: string}} [o]
     * @returns {Promise<import("./api.d.ts").AckItemsResponse>}
     */
    nack(queue, receipts, o) {
        return this._post(this._path(queue, "nack"), "AckItemsResponse", { receipts, ...o });
    }

    /**
     * @param {string} queue
     * @param {CallOptions} [o]
     * @returns {Promise<import("./api.d.ts").Queue>}
     */
    get(queue, o) {
        return this._get(this._path(queue), "Queue", o);
    }

    /**
     * @param {PageOptions} [o]
     * @returns {Promise<import("./api.d.ts").ListQueuesResponse>}
     */
    list(o) {
        return this._get("/v1/queues", "ListQueuesResponse", o);
    }

    /**
     * @param {string} queue
     * @returns {Promise<import("./api.d.ts").Queue>}
     */
    close(queue) {
        return this._post(this._path(queue, "close"), "Queue", {});
    }

    /**
     * @param {string} queue
     * @returns {Promise<import("./api.d.ts").DeleteQueueResponse>}
     */
    delete(queue) {
        return this.http.call("DELETE", this._path(queue), "DeleteQueueResponse");
    }
}

export class Templates extends Group {
    /**
     * @param {any} document an object, or its text
     * @param {CallOptions & {name?: string, replace?: boolean}} [o]
     * @returns {Promise<import("./api.d.ts").Template>}
     */
    install(document, o) {
        return this._document("/v1/templates", "Template", document, o);
    }

    /**
     * @param {string} name
     * @param {CallOptions} [o]
     * @returns {Promise<import("./api.d.ts").Template>}
     */
    get(name, o) {
        return this._get(`/v1/templates/${segment(name)}`, "Template", o);
    }

    /**
     * @param {PageOptions} [o]
     * @returns {Promise<import("./api.d.ts").ListTemplatesResponse>}
     */
    list(o) {
        return this._get("/v1/templates", "ListTemplatesResponse", o);
    }

    /**
     * @param {string} name
     * @returns {Promise<import("./api.d.ts").DeleteTemplateResponse>}
     */
    delete(name) {
        return this.http.call("DELETE", `/v1/templates/${segment(name)}`, "DeleteTemplateResponse");
    }

    /**
     * Makes a job from a template.
     * @param {string} name
     * @param {{[name: string]: any}} [params] values for some of the template's parameters
     * @param {SubmitOptions} [o]
     * @returns {Promise<import("./api.d.ts").SubmitResponse>}
     */
    instantiate(name, params, o) {
        return this._document(`/v1/templates/${segment(name)}:instantiate`, "SubmitResponse", params ? { params } : {}, o);
    }
}

export class Cluster extends Group {
    /**
     * @param {CallOptions} [o]
     * @returns {Promise<import("./api.d.ts").InfoResponse>}
     */
    info(o) {
        return this._get("/v1/cluster", "InfoResponse", o);
    }

    /**
     * @param {PageOptions} [o]
     * @returns {Promise<import("./api.d.ts").WorkersResponse>}
     */
    workers(o) {
        return this._get("/v1/workers", "WorkersResponse", o);
    }

    /**
     * Asks a worker to finish its tasks and leave. Needs the role admin.
     * @param {string} worker
     * @returns {Promise<import("./api.d.ts").RetireResponse>}
     */
    retire(worker) {
        return this._post(`/v1/workers/${segment(worker)}:retire`, "RetireResponse", {});
    }

    /**
     * Operators with their documentation.
     * @param {PageOptions & {name?: string}} [o]
     * @returns {Promise<import("./api.d.ts").OpsResponse>}
     */
    ops(o) {
        return this._get("/v1/ops", "OpsResponse", o);
    }

    /**
     * What the time of all slots went into. Without a window: in the last minute. With a namespace,
     * `other_ns` is the time of tasks of jobs outside of the namespace.
     * @param {CallOptions & {from_ns?: bigint, until_ns?: bigint, namespace?: string}} [o]
     * @returns {Promise<import("./api.d.ts").ProfileResponse>}
     */
    account(o) {
        return this._get("/v1/account", "ProfileResponse", o);
    }

    /**
     * Changes of the cluster, from now on or after `lastEventId`.
     * @param {StreamOptions & {without_jobs?: boolean}} [o]
     * @returns {EventStream<import("./api.d.ts").ClusterEvent>}
     */
    watch(o) {
        return stream(this.http, "/v1/cluster/events", "ClusterEvent", { without_jobs: o?.without_jobs }, o);
    }

    /**
     * What the cluster does now, at most four times a second. A slow reader misses states.
     * @param {StreamOptions} [o]
     * @returns {EventStream<import("./api.d.ts").LiveState>}
     */
    live(o) {
        return stream(this.http, "/v1/cluster/live", "LiveState", {}, o);
    }

    /**
     * Memory, processor time, network and waiting work of processes in a window of time.
     * @param {PageOptions & {from_ns?: bigint, until_ns?: bigint, process?: string, points_max?: number}} [o]
     * @returns {Promise<import("./api.d.ts").SamplesResponse>}
     */
    samples(o) {
        return this._get("/v1/samples", "SamplesResponse", o);
    }

    /**
     * Whether a job could run now, and if not, the reason.
     * @param {CallOptions} [o]
     * @returns {Promise<import("./api.d.ts").Health>}
     */
    async health(o) {
        try {
            return await this._get("/healthz", "Health", o);
        } catch (e) {
            if (/** @type {any} */ (e).status === 503) return { ready: false, reason: /** @type {Error} */ (e).message };
            throw e;
        }
    }
}

/** A connection to one cluster's gateway. */
export class Client {
    /** @param {ClientOptions} [options] */
    constructor(options = {}) {
        this.http = new Http(options);
        this.jobs = new Jobs(this.http);
        this.trainings = new Trainings(this.http);
        this.objects = new Objects(this.http);
        this.channels = new Channels(this.http);
        this.queues = new Queues(this.http);
        this.templates = new Templates(this.http);
        this.cluster = new Cluster(this.http);
    }

    /**
     * Exchanges a token for the gateway's cookie, which scripts cannot read.
     * @param {string} token
     * @param {{max_age_s?: number}} [o]
     * @returns {Promise<import("./api.d.ts").Identity>}
     */
    login(token, o) {
        return this.http.call("POST", "/v1/login", "Identity", { json: { token, ...o } });
    }

    /** Deletes the cookie. */
    async logout() {
        await this.http.call("POST", "/v1/logout", "");
    }

    /**
     * Name and role of the token or cookie in use.
     * @param {CallOptions} [o]
     * @returns {Promise<import("./api.d.ts").Identity>}
     */
    whoami(o) {
        return this.http.call("GET", "/v1/login", "Identity", { signal: o?.signal });
    }
}
