/* A process's door to the object store of its node: make an object in shared memory, read any
 * object without a copy, wait for one that is not here yet. Knows the store's control socket and
 * shared pages; refuses to know what the bytes mean (store/object does) and what a job is.
 *
 * One `struct mr_store` serves a whole process; every call is thread-safe. It has one thread of its
 * own that reads the socket. If the store dies, calls return MR_EAWAY from then on, and bytes
 * already viewed stay readable until released. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "base/time.h"
struct mr_store;

/* `socket_path` is what mr-objectstore got as --socket; `name` (at most 63 bytes) is shown in its
 * statistics. MR_EAWAY when nobody answers there, MR_EPERM when the store refuses us. */
int mr_store_open(
    const char *socket_path, const char *name, struct mr_store **out, struct mr_error *e);
void mr_store_close(struct mr_store **st); /* the store frees what only we held */
mr_node_id mr_store_node(const struct mr_store *st);
bool mr_store_is_alive(const struct mr_store *st);

/* ---- making an object ------------------------------------------------------------------------ */

/* Who an object is made for. With job.v == 0 the object is held by this client and dies with it;
 * otherwise it is held by the job, until mr_store_unhold. */
struct mr_store_owner {
    mr_job_id job;
    uint32_t task;
    uint32_t attempt;
};

struct mr_store_draft {
    void *p;        /* `bytes` writable bytes, 64-byte aligned, not zeroed */
    uint64_t bytes; /* may be lowered before the seal, never raised */
    mr_object_id id;
    uint32_t segment; /* private from here */
    uint64_t offset;
    uint64_t room;
    bool is_new; /* not a copy: it takes a place among the store's objects */
};

/* Bytes that anyone may read and nobody may write. */
struct mr_store_view {
    const void *p; /* 64-byte aligned */
    uint64_t bytes;
    mr_object_id id;
    uint64_t pin;   /* private */
    bool is_pulled; /* this get has brought it from another store; told once for each pull */
};

/* Room for a new object, under a fresh id. Up to 256 KiB it is a pointer bump; larger ones may cost
 * one round trip, and when the store is full the call waits until it has spilled others: at most
 * `timeout`, then MR_ELIMIT. So it does when the store has as many objects as it may keep. */
int mr_store_create(struct mr_store *st, uint64_t bytes, mr_duration timeout,
    struct mr_store_draft *out, struct mr_error *e);

/* Publishes the draft: from here on its bytes never change. `*view` (may be NULL) receives a pinned
 * view of our own object, valid at once, to be released like any other. The store is told without
 * waiting for it. The draft is consumed either way. */
int mr_store_seal(struct mr_store *st, struct mr_store_draft *draft,
    const struct mr_store_owner *owner, struct mr_store_view *view, struct mr_error *e);
void mr_store_abort(struct mr_store *st, struct mr_store_draft *draft);

/* All in one for bytes that are there already; large ones are copied by several threads. */
int mr_store_put(struct mr_store *st, const void *bytes, uint64_t n,
    const struct mr_store_owner *owner, mr_duration timeout, mr_object_id *id, struct mr_error *e);

/* ---- reading one ----------------------------------------------------------------------------- */

/* A pinned view: the bytes stay where they are until the release. Here and in memory: no round
 * trip. Otherwise the store restores it from disk, pulls it from `source` (address of a store that
 * has it, as the scheduler tells; NULL or "": unknown), or waits until someone makes it, `timeout`
 * at most (MR_ETIMEOUT; with 0: MR_EAGAIN at once). MR_ELOST: it existed and is gone. */
int mr_store_get(struct mr_store *st, mr_object_id id, const char *source, mr_duration timeout,
    struct mr_store_view *out, struct mr_error *e);
void mr_store_release(struct mr_store *st, struct mr_store_view *view); /* twice is harmless */

/* The same without blocking. If the object is here and in memory, MR_OK and `*out` at once. If not,
 * MR_EAGAIN: exactly one completion with this `token` follows (also after a timeout). Any other
 * code: failed, no completion. One copy of an object is under way however many ask for it. */
int mr_store_get_start(struct mr_store *st, mr_object_id id, const char *source,
    mr_duration timeout, uint64_t token, struct mr_store_view *out, struct mr_error *e);

struct mr_store_completion {
    uint64_t token;
    int err;                   /* MR_OK: `view` is pinned and yours to release */
    struct mr_store_view view; /* when failed: only the id */
};

int mr_store_fd(const struct mr_store *st); /* readable while completions wait; do not read it */
size_t mr_store_completions(struct mr_store *st, struct mr_store_completion *out, size_t n_max);

/* Those of these that are on disk are to come back, as far as there is room to spare; `at_once`:
 * somebody is about to get them. Nothing is pinned, nothing answered. */
void mr_store_want(struct mr_store *st, const mr_object_id *ids, size_t n, bool at_once);
bool mr_store_has_spilled(const struct mr_store *st); /* is anything on disk only? */

/* ---- life of an object ----------------------------------------------------------------------- */

enum mr_store_holder_kind {
    MR_HOLD_CLIENT = 1, /* this client: `key` ignored, ends with it */
    MR_HOLD_JOB,        /* key: job id */
    MR_HOLD_NAME,       /* key: number of the name, by the store */
    MR_HOLD_QUEUE,
    MR_HOLD_COLLECTION,
    MR_HOLD_CHECKPOINT,
};

struct mr_store_holder {
    enum mr_store_holder_kind kind;
    uint64_t key;
};

/* Holders are a set per object. When the last one goes, the object is freed (as soon as nobody has
 * it pinned). Ids the store does not know are skipped. Sent without waiting for an answer. */
void mr_store_hold(
    struct mr_store *st, const mr_object_id *ids, size_t n, struct mr_store_holder holder);
void mr_store_unhold(
    struct mr_store *st, const mr_object_id *ids, size_t n, struct mr_store_holder holder);

/* Frees objects; MR_ESTATE naming a holder if one is held by another than this client, unless
 * `force`. Ids that are not there are skipped. */
int mr_store_delete(
    struct mr_store *st, const mr_object_id *ids, size_t n, bool force, struct mr_error *e);

struct mr_store_stats {
    uint64_t memory_bytes_max; /* the budget */
    uint64_t memory_bytes;     /* committed: all segments */
    uint64_t object_bytes;     /* of live objects in memory */
    uint64_t spilled_bytes;    /* of objects on disk only */
    uint64_t persisted_bytes;
    uint64_t objects;
    uint64_t objects_spilled; /* now on disk only */
    uint64_t spills;          /* since the start, as all below */
    uint64_t restores;
    uint64_t pulls;
    uint64_t pulled_bytes;
    uint64_t orphans_freed; /* held by nobody for too long */
    uint64_t pinned_bytes;  /* of objects in memory that somebody has pinned */
    uint64_t objects_max;
    uint64_t seals_refused; /* objects lost because objects_max was reached */
    uint64_t clients;
    uint64_t segments;
    uint64_t written_bytes, read_bytes; /* of objects, to the disk and back */
};

int mr_store_stats(struct mr_store *st, struct mr_store_stats *out, struct mr_error *e);
