/* The worker's core decides which tasks start, which objects are fetched, which values are kept,
 * and what is reported. It is a deterministic state machine: no I/O, clock or threads. Of an
 * operator it knows the name and the cost. It does not know encodings, stores or sockets. It knows
 * a value by (job, index). A task starts when none of its inputs is missing.
 *
 *   task   WAITING ◀──▶ READY ──▶ GIVEN (in a strand) ──▶ reported, gone
 *             ▲                      │
 *             └──────────────────────┘ the task was cut off the strand, or skipped
 *   value  NONE ──▶ PLACED (an object elsewhere) ──▶ FETCHING ──▶ HERE
 *             └──────────────made, inline, local──────────────────▲
 *
 * A strand is a list of tasks, its items, that one executor runs back to back (strand_item.h). A
 * cut takes the last items off a strand again. A turn is one pass of the shell's loop.
 *
 * A message brings values and tasks, and each event may make tasks ready. The event TURN, the last
 * of each turn, gives strands to slots, starts fetches and sends all reports in one message.
 * Failures:
 *
 *   the scheduler goes away          work goes on until the outbox is full; a later Register
 *                                    reports the values and the tasks that are here
 *   the incarnation is revoked       all tasks stop; the next Register offers the values
 *   an input is lost                 the tasks that need it end as LOST_INPUT
 *   a task ignores its cancel flag   the process ends (LETHAL) */
#pragma once
#include "services/worker/core/event.h"

/* limit of the different combinations of needs (resources, alone, long-running) among the tasks
 * that are here */
#define MR_WORKER_CLASSES_MAX 64
#define MR_WORKER_GRACE (2 * MR_SECOND)

enum { /* flags of an operator */
    /* receives the ids of its inputs, which may be on any node */
    MR_WORKER_OP_BY_REFERENCE = 1 << 0,
    MR_WORKER_OP_SOLO = 1 << 1, /* may block, so it gets a strand of its own */
    MR_WORKER_OP_LONG = 1 << 2, /* long-running: runs outside the slots */
};

struct mr_worker_op {
    struct mr_str name;
    uint32_t flags;
    /* declared estimate, used until the core has measured the operator; 0: none */
    uint64_t cost_ns;
};

struct mr_worker_config {
    uint32_t slots; /* 1..MR_SLOTS_MAX */
    /* limit of tasks that are assigned and not finished; the worker returns tasks beyond it */
    uint32_t tasks_max;
    uint32_t values_max; /* limit of values known at the same time; must be above tasks_max */
    /* limit of completions that are not sent yet; at this number no more tasks start */
    uint32_t outbox_max;
    uint64_t bytes_max; /* limit of bytes of arguments, inline values and texts of failures */
    /* limit of bytes of objects that are being fetched, or were fetched and are in use; one fetch
     * is always allowed */
    uint64_t prefetch_bytes;
    /* this node's object store: its objects need no fetch; 0: there is no store */
    mr_node_id store;
    const struct mr_worker_op *ops; /* borrowed for the life of the core */
    uint32_t ops_count;
    mr_duration handoff_ns; /* time to wake an idle slot, until it is measured; 0: a guess */
    const struct mr_ws_resource *resources; /* copied */
    uint32_t resources_count;
};

void mr_worker_effects_init(struct mr_worker_effects *fx);
void mr_worker_effects_fini(struct mr_worker_effects *fx);
struct mr_worker;
struct mr_worker *mr_worker_new(const struct mr_worker_config *config);
void mr_worker_free(struct mr_worker **w);
void mr_worker_step(struct mr_worker *w, mr_time now, const struct mr_worker_event *ev,
    struct mr_worker_effects *fx);
/* Returns how many successful results must come before the core has something to do; 0: the next
 * result must be reported to the core at once. */
uint32_t mr_worker_wake_after(struct mr_worker *w);
/* Returns the time at which the caller must step the core with the event TURN, at the latest.
 * MR_NEVER: the core needs no step until the next event. */
mr_time mr_worker_deadline(const struct mr_worker *w);
void mr_worker_check(const struct mr_worker *w);
/* For tests and the simulator: returns the name of something that the worker still has, such as
 * "tasks". NULL: nothing is left of any job. */
const char *mr_worker_leftover(const struct mr_worker *w);
/* For the simulator. True: the worker made this value and keeps it until the scheduler releases
 * it. */
bool mr_worker_keeps(const struct mr_worker *w, mr_job_id job, uint32_t index);

/* Returns the address (which ends with a NUL) and the incarnation of the node of a FETCH, lent for
 * the life of the core. */
const struct mr_ws_node *mr_worker_node(const struct mr_worker *w, uint32_t node);
