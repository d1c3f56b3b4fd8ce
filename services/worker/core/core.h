/* The worker's core: which tasks to start, return and report, which objects to fetch and keep. It
 * knows values by (job, index), counts down the missing inputs of its tasks and gives strands to
 * executors. A deterministic state machine: no I/O, clock or threads. Of operators it knows name
 * and cost only; it does not know encodings, stores or sockets.
 *
 *   task   WAITING ──▶ READY ──▶ GIVEN (in a strand) ──▶ reported, gone
 *             ▲  ▲────────┘cut, skipped──┘
 *   value  NONE ──▶ PLACED (an object elsewhere) ──▶ FETCHING ──▶ HERE
 *             └──────────────made, inline, local──────────────────▲
 *
 * A message brings values and tasks, and each event may make tasks ready. The event TURN, the last
 * of each turn of the shell's loop, gives strands to slots, starts fetches and sends all reports
 * in one message. Failures: the scheduler goes away (work goes on until the outbox is full; a
 * later Register reports it), the incarnation is revoked (all stops, values are offered anew), an
 * input is lost (LOST_INPUT), a task ignores its cancel flag (LETHAL). */
#pragma once
#include "services/worker/core/session_up.h"
#include "services/worker/core/strand_item.h"

#define MR_WORKER_LONG_MAX 64    /* long-running tasks at a time */
#define MR_WORKER_CLASSES_MAX 64 /* different needs: resources, alone, long-running */
#define MR_WORKER_GRACE (2 * MR_SECOND)

enum {                                  /* of an op */
    MR_WORKER_OP_BY_REFERENCE = 1 << 0, /* takes the ids of its inputs, wherever they are */
    MR_WORKER_OP_SOLO = 1 << 1,         /* may block: no strand with others */
    MR_WORKER_OP_LONG = 1 << 2,         /* leaves the slots */
};

struct mr_worker_op {
    struct mr_str name;
    uint32_t flags;
    uint64_t cost_ns; /* guess until measured; 0: none */
};

struct mr_worker_config {
    uint32_t slots;          /* 1..MR_SLOTS_MAX */
    uint32_t tasks_max;      /* assigned and not finished; more are RETURNED */
    uint32_t values_max;     /* known at one time, more than tasks_max */
    uint32_t outbox_max;     /* completions not yet sent; when reached nothing more is started */
    uint64_t bytes_max;      /* arguments, inline values, texts of failures */
    uint64_t prefetch_bytes; /* objects being fetched and fetched ones in use; one always may */
    mr_node_id store;        /* objects with this node are at hand; 0: there is no store */
    const struct mr_worker_op *ops; /* borrowed for the life of the core */
    uint32_t ops_count;
    const struct mr_ws_resource *resources; /* copied */
    uint32_t resources_count;
};

enum mr_worker_event_kind {
    MR_WORKER_TICK,         /* the deadline came */
    MR_WORKER_TURN,         /* the last event of a turn */
    MR_WORKER_CONNECTED,    /* the stream is open: Register is sent at the next TURN */
    MR_WORKER_DISCONNECTED, /* it ended or could not be opened */
    MR_WORKER_REVOKED,      /* it was refused: this incarnation is not valid any more */
    MR_WORKER_MESSAGE,      /* checked: mr_ws_down_check */
    MR_WORKER_REPORT,       /* an executor finished items of a strand */
    MR_WORKER_CUT,          /* a strand was cut */
    MR_WORKER_FETCHED,      /* what FETCH asked for is here, or err */
    MR_WORKER_DRAIN,        /* this process is to end: hand back what has not started */
};

struct mr_worker_event {
    enum mr_worker_event_kind kind;
    union {
        struct {
            bool may_send, has_spilled; /* the stream takes a message; objects are on disk only */
            uint64_t memory_used_bytes;
        } turn;
        const struct mr_ws_down *message;
        struct {
            uint32_t strand;
            uint32_t done; /* items 0..done-1 are finished */
            bool last; /* the executor has released the strand, also one that was cut to nothing */
        } report;
        struct {
            uint32_t strand;
            uint32_t count; /* items from here on will never start */
        } cut;
        struct {
            uint32_t value; /* as given in FETCH */
            uint32_t serial;
            int err;
            struct mr_str why;
        } fetched;
    };
};

enum mr_worker_effect_kind {
    MR_WORKER_START, /* give `strand` to its slot; lent until the last report of it */
    MR_WORKER_TAKE,  /* cut: items >= keep that have not started do not start; CUT answers */
    MR_WORKER_LOOK,  /* REPORT what item.strand has finished, if it is more than was reported */
    MR_WORKER_STOP,  /* set the cancel flag of one item, started or not */
    MR_WORKER_MOVE,  /* what runs in slot `from` leaves it: the executors of both change places */
    MR_WORKER_FETCH, /* bring an object into this node's store and pin it; FETCHED answers */
    MR_WORKER_UNPIN, /* what FETCH brought, or is bringing, is not needed; once, unless it failed */
    MR_WORKER_DROP,  /* an object made here is not needed by its job any more */
    MR_WORKER_WANT,  /* an object that is to be in memory soon: a ready task reads it */
    MR_WORKER_SEND,  /* lent until the next step */
    MR_WORKER_CONNECT, /* open the stream at time `at` */
    MR_WORKER_HANG_UP, /* everything was sent: close the stream, end the process */
    MR_WORKER_LETHAL,  /* a task ignores cancel: send what is in SEND, then end the process */
};

struct mr_worker_effect {
    enum mr_worker_effect_kind kind;
    union {
        struct mr_strand *strand; /* START */
        struct {
            uint32_t strand, at; /* TAKE: keep; STOP: the item; LOOK: 0 */
        } item;
        struct { /* MOVE: to a place of long-running tasks, which is free */
            uint32_t from, to;
        } move;
        struct { /* FETCH, UNPIN, DROP; of WANT only the object */
            uint32_t value;
            uint32_t serial;
            uint32_t node; /* FETCH: mr_worker_node() */
            uint64_t bytes;
            mr_object_id object;
            mr_job_id job;
        } object;
        const struct mr_ws_up *send;
        mr_time at;
    };
};

struct mr_worker_effects { /* the caller's; emptied by the caller */
    struct mr_worker_effect *p;
    uint32_t count;
    uint32_t room;
};

void mr_worker_effects_init(struct mr_worker_effects *fx);
void mr_worker_effects_fini(struct mr_worker_effects *fx);
struct mr_worker;
struct mr_worker *mr_worker_new(const struct mr_worker_config *config);
void mr_worker_free(struct mr_worker **w);
void mr_worker_step(struct mr_worker *w, mr_time now, const struct mr_worker_event *ev,
    struct mr_worker_effects *fx);
/* So many successful results must come before there is work for the core; 0: report the first. */
uint32_t mr_worker_wake_after(struct mr_worker *w);
mr_time mr_worker_deadline(const struct mr_worker *w); /* step TICK, then TURN by then */
void mr_worker_check(const struct mr_worker *w);
/* For the simulator: what is left of jobs (NULL: nothing); is a value made here kept for others? */
const char *mr_worker_leftover(const struct mr_worker *w);
bool mr_worker_keeps(const struct mr_worker *w, mr_job_id job, uint32_t index);

/* Address (ends with NUL) and incarnation of a node named in FETCH; lent for ever. */
const struct mr_ws_node *mr_worker_node(const struct mr_worker *w, uint32_t node);
