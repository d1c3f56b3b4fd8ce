/* The client of the object store on this node. It makes objects in shared memory, reads any object
 * without a copy, and waits for objects that do not exist yet. store/object defines the bytes of an
 * object. A process opens one `struct mr_store`. All functions may be called on any thread. One
 * thread of the client reads the socket. If the store dies, calls return MR_EAWAY from then on;
 * views stay readable until they are released. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "base/time.h"
struct mr_store;

/* Connects to the store. `socket_path` is the --socket of mr-objectstore. `name` (at most 63 bytes)
 * is shown in the store's statistics. MR_EAWAY: no store answers there. MR_EPERM: the store refuses
 * this process. MR_ESTATE: the store is of another version. */
int mr_store_open(
    const char *socket_path, const char *name, struct mr_store **out, struct mr_error *e);
void mr_store_close(struct mr_store **st); /* ends all holds of this client */
mr_node_id mr_store_node(const struct mr_store *st);
bool mr_store_is_alive(const struct mr_store *st);

/* ---- making an object ------------------------------------------------------------------------ */

/* The owner of a new object. With job.v == 0, this client holds the object until its connection
 * ends. Otherwise the job holds the object until mr_store_unhold. */
struct mr_store_owner {
    mr_job_id job;
    uint32_t task;
    uint32_t attempt;
};

struct mr_store_draft {
    void *p;        /* `bytes` writable bytes, aligned to 64 and not zeroed */
    uint64_t bytes; /* the caller may lower the number before the seal, but not raise it */
    mr_object_id id;
    mr_duration waited; /* how long mr_store_create has waited for room */
    uint32_t segment;   /* this member and all after it are private */
    uint64_t offset;
    uint64_t room;
    bool is_new; /* false: a copy, which does not count against the limit of objects */
};

/* A pinned object: its bytes are read-only and never change. */
struct mr_store_view {
    const void *p; /* aligned to 64 */
    uint64_t bytes;
    mr_object_id id;
    uint64_t pin;            /* private */
    bool is_pulled;          /* this get has copied the object from another store */
    mr_duration restored_ns; /* wait of this get until the object was read back from disk */
};

/* Reserves room for a new object under a new id. Up to 256 KiB mostly need no message to the store,
 * more may need one round trip. If the store is full, or has as many objects as it may keep, the
 * call waits until the store has spilled or freed other objects. MR_ELIMIT: `timeout` is over.
 * MR_ETOOBIG: no object may be that large. */
int mr_store_create(struct mr_store *st, uint64_t bytes, mr_duration timeout,
    struct mr_store_draft *out, struct mr_error *e);

/* Publishes the draft: its bytes never change afterwards. `*view` (may be NULL) receives a pinned
 * view of the object, which the caller releases. The message to the store has no answer, so the
 * call does not wait. The draft is used up, also after an error. */
int mr_store_seal(struct mr_store *st, struct mr_store_draft *draft,
    const struct mr_store_owner *owner, struct mr_store_view *view, struct mr_error *e);
void mr_store_abort(struct mr_store *st, struct mr_store_draft *draft);

/* Creates, fills and seals an object, and sets `*id`. Several threads copy a large object. */
int mr_store_put(struct mr_store *st, const void *bytes, uint64_t n,
    const struct mr_store_owner *owner, mr_duration timeout, mr_object_id *id, struct mr_error *e);

/* ---- reading an object ----------------------------------------------------------------------- */

/* Gets a pinned view of an object, whose bytes stay in place until the release. If the object is in
 * memory on this node, no round trip is needed. Otherwise the store restores the object from disk,
 * pulls it from the store at address `source` (which the scheduler names; NULL or "": unknown), or
 * waits until the object is made. MR_ETIMEOUT: the object did not come within `timeout`. MR_EAGAIN:
 * `timeout` is 0, and the object is not in memory. MR_ELOST: the object existed and is lost. */
int mr_store_get(struct mr_store *st, mr_object_id id, const char *source, mr_duration timeout,
    struct mr_store_view *out, struct mr_error *e);
void mr_store_release(struct mr_store *st, struct mr_store_view *view); /* may be called twice */

/* Like mr_store_get, but does not block. MR_OK: the object is in memory, and `*out` is its view.
 * MR_EAGAIN: exactly one completion with this `token` follows, also after a timeout. Any other code
 * is an error without a completion. Any number of requests for one object share one copy. */
int mr_store_get_start(struct mr_store *st, mr_object_id id, const char *source,
    mr_duration timeout, uint64_t token, struct mr_store_view *out, struct mr_error *e);

struct mr_store_completion {
    uint64_t token;
    int err;                   /* MR_OK: `view` is set, and the caller has to release it */
    struct mr_store_view view; /* after an error only the view's id is set */
};

int mr_store_fd(const struct mr_store *st); /* readable while completions wait */
size_t mr_store_completions(struct mr_store *st, struct mr_store_completion *out, size_t n_max);

/* Prefetches: asks the store to restore those of the objects that are on disk, as far as there is
 * free memory. `at_once`: a get for them follows soon. Nothing is pinned. */
void mr_store_want(struct mr_store *st, const mr_object_id *ids, size_t n, bool at_once);
bool mr_store_has_spilled(const struct mr_store *st); /* an object is on disk and not in memory */

/* ---- life of an object ----------------------------------------------------------------------- */

enum mr_store_holder_kind {
    MR_HOLD_CLIENT = 1, /* this client, until its connection ends; `key` is ignored */
    MR_HOLD_JOB,        /* `key` is the id of the job */
    MR_HOLD_NAME,       /* `key` is a number that the store has given to the name */
    MR_HOLD_QUEUE,
    MR_HOLD_COLLECTION,
    MR_HOLD_CHECKPOINT,
};

struct mr_store_holder {
    enum mr_store_holder_kind kind;
    uint64_t key;
};

/* Add and remove holders of objects. The holders of an object are a set. When the last holder is
 * removed, the object is freed as soon as it is not pinned. Unknown ids are skipped. The store
 * sends no answer. */
void mr_store_hold(
    struct mr_store *st, const mr_object_id *ids, size_t n, struct mr_store_holder holder);
void mr_store_unhold(
    struct mr_store *st, const mr_object_id *ids, size_t n, struct mr_store_holder holder);

/* Frees objects. Unknown ids are skipped. MR_ESTATE: an object has a holder other than this client;
 * the error text names the holder. With `force`, such an object is freed, too. */
int mr_store_delete(
    struct mr_store *st, const mr_object_id *ids, size_t n, bool force, struct mr_error *e);

struct mr_store_stats {
    uint64_t memory_bytes_max; /* the limit of memory_bytes */
    uint64_t memory_bytes;     /* size of all segments */
    uint64_t object_bytes;     /* bytes of the objects in memory */
    uint64_t spilled_bytes;    /* bytes of the objects that are on disk and not in memory */
    uint64_t persisted_bytes;
    uint64_t objects;
    uint64_t objects_spilled; /* objects that are on disk and not in memory at present */
    uint64_t spills;          /* this counter and those below count since the store's start */
    uint64_t restores;
    uint64_t pulls, pulled_bytes;
    uint64_t orphans_freed; /* freed objects that no job claimed, and freed unused copies */
    uint64_t pinned_bytes;  /* bytes of the objects in memory that a client has pinned */
    uint64_t objects_max;
    uint64_t seals_refused; /* objects that were lost because objects_max was reached */
    uint64_t clients, segments;
    uint64_t written_bytes, read_bytes; /* bytes of objects written to disk and read back */
};

int mr_store_stats(struct mr_store *st, struct mr_store_stats *out, struct mr_error *e);
