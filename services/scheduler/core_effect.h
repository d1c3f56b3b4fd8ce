/* What the scheduler core wants done. The shell owns one mr_sched_effects, gives it to every step,
 * performs it once a turn, and clears what it performed. Batches for workers and stores stay and
 * grow while a stream is busy sending; everything else is to be taken every turn. */
#pragma once

#include "base/buf.h"
#include "services/scheduler/core_event.h"

struct mr_sched_refs_out { /* TaskRefs, growing; buffers of struct mr_sched_run and u32 */
    struct mr_buf runs;
    struct mr_buf index;
    struct mr_buf attempt; /* not filled in `values` */
    uint32_t count;
};

struct mr_sched_extra { /* TaskExtra; texts are in `text` of the batch, by offset and length */
    uint32_t row;
    bool long_running;
    bool alone;
    bool want_object;
    bool persist;
    uint64_t timeout_ns;
    uint32_t key_at, key_bytes;
    uint32_t persist_name_at, persist_name_bytes;
    uint32_t resources_at, resources_count; /* in `resources`: pairs of u32 and u64, below */
    mr_graph_hash definition;
};

struct mr_sched_amount {
    uint32_t kind; /* mr_sched_resource_name */
    uint64_t micro;
};

/* One SchedulerMessage to be. Sections apply in the order of session.proto. */
struct mr_sched_batch {
    bool is_dirty; /* something is in it */
    bool drain;
    bool has_registered; /* this is the answer to Register; adopt and keep belong to it */
    uint32_t serial;     /* grows with every clear */
    uint64_t incarnation;
    uint64_t session;
    uint64_t heard;
    struct mr_sched_refs_out adopt, keep;
    struct mr_sched_refs_out values;
    struct mr_buf value_inline_bytes; /* u32 a row */
    struct mr_buf value_inline;       /* bytes */
    struct mr_buf value_object;       /* mr_object_id, rows that are objects */
    struct mr_buf value_object_bytes; /* u64, the same rows */
    struct mr_buf value_object_store; /* u32 store numbers (0: unknown), the same rows */
    struct mr_sched_refs_out tasks;
    struct mr_buf op;           /* u32: op numbers, see mr_sched_op_name */
    struct mr_buf args;         /* bytes */
    struct mr_buf args_bytes;   /* u32 */
    struct mr_buf inputs_count; /* u32 */
    struct mr_buf inputs;       /* u32 */
    struct mr_buf last_use;     /* u32: positions in `inputs` */
    struct mr_buf priority;     /* i32, one a task; has_priority: some is not 0 */
    bool has_priority;
    struct mr_buf order; /* u32 */
    struct mr_buf uses;  /* u32, one a task; has_uses: some is not 0 */
    bool has_uses;
    struct mr_buf extra;     /* struct mr_sched_extra */
    struct mr_buf resources; /* struct mr_sched_amount */
    struct mr_buf text;
    struct mr_sched_refs_out cancel, release, steal, fetch, leave;
    struct mr_buf forget_jobs; /* u64 */
};

struct mr_sched_store_batch { /* StoreCommand */
    bool is_dirty;
    bool has_registered;
    struct mr_buf hold, unhold, claimed; /* mr_object_id */
};

enum mr_sched_note_type {
    MR_NOTE_REPLY,          /* ticket, code, text, job: to SUBMIT, CANCEL, RETRY, FORGET */
    MR_NOTE_JOB_STATE,      /* job: look at it; sequence: id of the event, for Watch */
    MR_NOTE_JOB_PROGRESS,   /* job: counts changed (at most 10 a second) */
    MR_NOTE_TARGETS_READY,  /* job, at, count: indexes in `ready`: their values can be read */
    MR_NOTE_TARGET_BYTES,   /* job, index, text: its value (a pack), answer to MR_SCHED_WANT */
    MR_NOTE_TARGET_FAILED,  /* job, index: it will not have a value; code, text */
    MR_NOTE_JOB_FORGOTTEN,  /* job, wall_ns */
    MR_NOTE_WORKER_REFUSED, /* session, code, text: end the stream so */
    MR_NOTE_WORKER_CLOSE,   /* slot, incarnation, code, text: it is lost; end its stream */
    MR_NOTE_WORKER_JOINED,  /* slot, incarnation, session */
    MR_NOTE_STORE_JOINED,   /* slot: store number, incarnation */
    MR_NOTE_STORE_LOST,     /* slot, incarnation */
};

struct mr_sched_note {
    enum mr_sched_note_type type;
    int code; /* MR_E…, MR_OK */
    bool existed;
    uint64_t ticket;
    mr_job_id job;
    uint32_t index;
    uint32_t slot;
    uint64_t incarnation;
    uint64_t session;
    uint64_t sequence;
    uint64_t wall_ns;
    uint32_t at, count;           /* in `ready` */
    uint32_t text_at, text_bytes; /* in `text` */
};

struct mr_sched_record_head { /* in `journal`; `bytes` of payload follow, padded to 8 */
    uint64_t sequence;
    uint32_t type; /* enum mr_sched_record */
    uint32_t bytes;
    uint32_t piece; /* 0: that is all; else what follows is that piece of the submitted graph, */
    uint32_t piece_bytes; /* which its owner has: of MR_CHUNK_BYTES each but the last */
};

struct mr_sched_span { /* one attempt of a task; times of the scheduler's clock, 0: not reached */
    mr_job_id job;
    uint32_t index, attempt;
    uint32_t op;
    uint32_t worker;
    uint32_t slot;
    uint32_t outcome;
    mr_time ready, sent, started, finished, accounted;
    uint64_t cpu_ns;
};

struct mr_sched_effects {
    struct mr_buf journal; /* records */
    struct mr_buf notes;   /* struct mr_sched_note */
    struct mr_buf ready;   /* u32 */
    struct mr_buf text;
    struct mr_buf spans;                /* struct mr_sched_span */
    struct mr_buf dirty_workers;        /* u32 slots whose batch became dirty */
    struct mr_buf dirty_stores;         /* u32 store numbers */
    struct mr_sched_batch *worker;      /* by slot */
    struct mr_sched_store_batch *store; /* by store number */
    uint32_t workers_max, stores_max;
};

void mr_sched_effects_init(struct mr_sched_effects *fx, uint32_t workers_max, uint32_t stores_max);
void mr_sched_effects_fini(struct mr_sched_effects *fx);
void mr_sched_effects_clear(struct mr_sched_effects *fx); /* all but the batches */
void mr_sched_batch_clear(struct mr_sched_batch *b);      /* once it is encoded */
void mr_sched_store_batch_clear(struct mr_sched_store_batch *b);
