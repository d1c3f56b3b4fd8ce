/* What the worker's core learns (events) and what it wants done (effects). An event lends its
 * pointers for the step. A strand is a list of tasks that one executor runs back to back, an item
 * one of these tasks (strand_item.h). */
#pragma once

#include "services/worker/core/strand_item.h"
#include "session/down.h"
#include "session/up.h"

enum mr_worker_event_kind {
    MR_WORKER_TICK,         /* the time of mr_worker_deadline has come */
    MR_WORKER_TURN,         /* the last event of a turn (one pass of the shell's loop) */
    MR_WORKER_CONNECTED,    /* the stream is open: Register is sent at the next TURN */
    MR_WORKER_DISCONNECTED, /* the stream ended or could not be opened */
    MR_WORKER_REVOKED, /* the scheduler refused the stream: this incarnation is no longer valid */
    MR_WORKER_MESSAGE, /* a message that mr_ws_down_check has accepted */
    MR_WORKER_REPORT,  /* an executor finished items of a strand */
    MR_WORKER_CUT,     /* answer to TAKE: where the strand ends now */
    MR_WORKER_FETCHED, /* answer to FETCH: the object is here and pinned, or `err` */
    MR_WORKER_DRAIN,   /* this process is about to end: return tasks that have not started */
};

struct mr_worker_event {
    enum mr_worker_event_kind kind;
    union {
        struct {
            /* may_send: the stream takes a message; has_spilled: some objects of the store are on
             * disk only */
            bool may_send, has_spilled;
            uint64_t memory_used_bytes;
            /* of the worker's process since its start; the bytes are those of gRPC messages */
            mr_duration cpu_ns;
            uint64_t received_bytes, sent_bytes;
        } turn;
        const struct mr_ws_down *message;
        struct {
            uint32_t strand;
            uint32_t done; /* items 0..done-1 are finished */
            /* the executor has released the strand. A report with `last` is also sent for a strand
             * of which a cut left nothing. */
            bool last;
        } report;
        struct {
            uint32_t strand;
            uint32_t count; /* the executor will start only items 0..count-1 */
        } cut;
        struct {
            /* `value` and `serial` are those of the effect FETCH that this event answers */
            uint32_t value;
            uint32_t serial;
            int err;
            struct mr_str why;
        } fetched;
    };
};

enum mr_worker_effect_kind {
    MR_WORKER_START, /* give `strand` to the executor of its slot; lent until its last REPORT */
    /* cut a strand: those of the items from `at` on that have not started shall not start; answered
     * by CUT */
    MR_WORKER_TAKE,
    /* send a REPORT of what the strand has finished, if that is more than the last REPORT said */
    MR_WORKER_LOOK,
    MR_WORKER_STOP, /* set the cancel flag of one item, whether or not it has started */
    /* the running strand leaves slot `from`: the executors of `from` and `to` change places */
    MR_WORKER_MOVE,
    MR_WORKER_FETCH, /* copy an object into this node's store and pin it; answered by FETCHED */
    /* the object of a FETCH is no longer needed; sent once for each FETCH that has not failed */
    MR_WORKER_UNPIN,
    MR_WORKER_DROP, /* a job no longer needs an object that this worker made */
    /* a ready task will read this object: the store should have it in memory soon */
    MR_WORKER_WANT,
    MR_WORKER_SEND,    /* send a message to the scheduler; lent until the next step */
    MR_WORKER_CONNECT, /* open the stream at time `at` */
    MR_WORKER_HANG_UP, /* all completions are sent: close the stream and end the process */
    /* a task ignores its cancel flag: carry out a SEND of the same step, then end the process */
    MR_WORKER_LETHAL,
};

struct mr_worker_effect {
    enum mr_worker_effect_kind kind;
    union {
        struct mr_strand *strand; /* START */
        struct {
            /* `at` in TAKE: the first item that shall not start; in STOP: the item whose cancel
             * flag is set; in LOOK: 0 */
            uint32_t strand, at;
        } item;
        /* MOVE: `from` is a slot. `to` is a thread for long-running tasks that runs nothing. Both
         * are numbers as in mr_strand.slot. */
        struct {
            uint32_t from, to;
        } move;
        /* FETCH sets all members, UNPIN only `serial`, WANT only `object`, DROP only `object` and
         * `job` */
        struct {
            uint32_t value;
            uint32_t serial;
            uint32_t node; /* number of the node that has the object: see mr_worker_node() */
            uint64_t bytes;
            mr_object_id object;
            mr_job_id job;
        } object;
        const struct mr_ws_up *send;
        mr_time at;
    };
};

struct mr_worker_effects { /* owned and emptied by the caller */
    struct mr_worker_effect *p;
    uint32_t count;
    uint32_t room;
};
