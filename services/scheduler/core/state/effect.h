/* The core's effects. The shell owns one mr_sched_effects and passes it to each step. Once in each
 * pass of its loop (a turn) the shell performs the effects and clears them. Only batches whose
 * receiver's stream is busy are not cleared; these grow. */
#pragma once

#include "services/scheduler/core/state/batch.h"

#define MR_SCHED_EFFECT_BYTES_MAX ((size_t)1 << 34) /* limit of each buffer */

struct mr_sched_store_batch { /* StoreCommand of session.proto */
    bool is_dirty;
    bool has_registered;
    struct mr_buf hold, unhold, claimed, verify; /* mr_object_id */
};

/* A note tells the shell what has happened; most notes become replies or events for clients. Each
 * comment begins with the members of struct mr_sched_note that the note uses. */
enum mr_sched_note_type {
    /* ticket, code, text, job: the reply to SUBMIT, CANCEL, RETRY, FORGET; index: PENDING if this
     * reply announces a new job, otherwise 0; existed: SUBMIT found the job there already */
    MR_NOTE_REPLY,
    MR_NOTE_JOB_STATE,    /* job; index: the job's new state; sequence: event number, for Watch */
    MR_NOTE_JOB_PROGRESS, /* job: its counts have changed; at most 10 notes a second for each job */
    MR_NOTE_TARGETS_READY, /* job, at, count: targets in `ready` whose values can be read */
    /* job, index, text: the value, as a pack (base/pack.h), that WANT asked for */
    MR_NOTE_TARGET_BYTES,
    /* job, index, code, text: the target will have no value; code 0: its task has failed */
    MR_NOTE_TARGET_FAILED,
    MR_NOTE_JOB_FORGOTTEN, /* job, wall_ns */
    /* session, code, text: the worker's stream is to be ended with this error */
    MR_NOTE_WORKER_REFUSED,
    /* slot, incarnation, session, code, text: the worker is lost; its stream is to be ended */
    MR_NOTE_WORKER_CLOSE,
    MR_NOTE_WORKER_JOINED, /* slot, incarnation, session */
    MR_NOTE_STORE_JOINED,  /* incarnation; slot: the store's number */
    MR_NOTE_STORE_LOST,    /* slot, incarnation, text; code: EEXIST if replaced on its node */
};

struct mr_sched_note {
    enum mr_sched_note_type type;
    int code; /* MR_OK or an error MR_E… */
    bool existed;
    uint64_t ticket;
    mr_job_id job;
    uint32_t index;
    uint32_t slot;
    uint64_t incarnation;
    uint64_t session;
    uint64_t sequence;
    uint64_t wall_ns;
    uint32_t at, count;           /* range of `ready` */
    uint32_t text_at, text_bytes; /* range of `text` */
};

/* The head of a record in `journal`. `bytes` of payload follow, padded to a multiple of 8. */
struct mr_sched_record_head {
    uint64_t sequence;
    uint32_t type; /* enum mr_sched_record */
    uint32_t bytes;
    /* 0: the payload is complete. Else 1 + the index of the piece of the submitted graph that
     * follows the payload; the shell, which sent SUBMIT, has the pieces. */
    uint32_t piece;
    uint32_t piece_bytes; /* MR_CHUNK_BYTES, except for the last piece */
};

/* Bytes that precede the piece in its journal record: type (u32), job (u64), offset (u64). */
#define MR_SCHED_PIECE_HEAD_BYTES 20

enum mr_sched_held { /* why the scheduler held a task back after it was ready */
    MR_SCHED_HELD_NOT,
    MR_SCHED_HELD_MEMORY, /* memory was short */
    /* few workers may run the task: it asks for resources, names workers, is long-running, or is in
     * quarantine */
    MR_SCHED_HELD_RESTRICTED,
};

/* One attempt of a task. Times are of the scheduler's clock; 0: the attempt did not get so far. */
struct mr_sched_span {
    mr_job_id job;
    uint32_t index, attempt;
    uint32_t op;
    uint32_t worker;
    uint32_t slot;
    uint32_t outcome;
    /* index of the input whose value came last; `index`: the task waited for none, or it is not
     * known */
    uint32_t last_input;
    mr_time ready, sent, started, finished, accounted;
    mr_time received; /* when the worker received the task; the shell knows it, not the core */
    /* when the last input came to the worker; 0: the inputs came with the task, or the worker made
     * the last one itself */
    mr_time inputs;
    uint64_t cpu_ns;
    mr_duration input_ns;   /* time to map and load inputs */
    mr_duration restore_ns; /* part of input_ns in which the store read inputs back from disk */
    mr_duration output_ns;  /* time to store the result */
    mr_duration room_ns;    /* part of output_ns in which the store had no room */
    mr_duration late_ns;    /* time in which the thread could run and the kernel ran another one */
    mr_duration delayed_ns; /* wait of the worker's threads for a processor, before the start */
    uint64_t training;      /* account/training_shares.h */
    uint32_t held;          /* enum mr_sched_held */
    uint64_t bytes; /* size of the value; 0: there is no value, or its size was not reported */
};

struct mr_sched_effects {
    struct mr_buf journal; /* records */
    struct mr_buf notes;   /* elements: struct mr_sched_note */
    struct mr_buf ready;   /* u32 indexes of targets */
    struct mr_buf text;
    struct mr_buf spans;            /* elements: struct mr_sched_span */
    struct mr_buf dirty_workers;    /* u32 numbers of workers with a new batch */
    struct mr_buf dirty_stores;     /* u32 numbers of stores with a new batch */
    struct mr_sched_batch **worker; /* by worker number; NULL: nothing to send */
    /* free batches; the batch freed last comes first, since the CPU still caches it */
    struct mr_sched_batch *pool;
    uint32_t batch_serial;
    struct mr_sched_store_batch *store; /* by store number */
    uint32_t workers_max, stores_max;
};

void mr_sched_effects_init(struct mr_sched_effects *fx, uint32_t workers_max, uint32_t stores_max);
void mr_sched_effects_fini(struct mr_sched_effects *fx);
/* Clears all effects except the batches. */
void mr_sched_effects_clear(struct mr_sched_effects *fx);
/* Clears the batch *b, puts it into the pool of free batches, and sets *b to NULL. *b may be NULL.
 * The shell may set an element of `worker` to NULL and encode that batch while the worker's next
 * batch grows. Afterwards it passes the encoded batch to this function. */
void mr_sched_batch_put(struct mr_sched_effects *fx, struct mr_sched_batch **b);
void mr_sched_store_batch_clear(struct mr_sched_store_batch *b);
