/* The cluster in virtual time that whatif.h replays a job on. Private to virtual/whatif. The
 * scheduler's thread is busy while it decides, and a worker's thread while it takes the tasks of a
 * message. Messages, handoffs and transfers take time. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "graph/graph.h"
#include "services/scheduler/core/batch_message.h"
#include "services/scheduler/core/core.h"
#include "services/worker/core/core.h"
#include "virtual/message.h"
#include "virtual/queue.h"
#include "virtual/whatif/whatif.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* incarnation of the store of node 0; those of the other nodes follow */
#define MR_WHATIF_STORE ((uint64_t)0x1000)

enum mr_whatif_event {
    MR_WHATIF_SUBMIT,
    MR_WHATIF_TURN,    /* of the scheduler */
    MR_WHATIF_UP,      /* a message reaches the scheduler; a: worker */
    MR_WHATIF_DOWN,    /* a message reaches a worker; a: worker */
    MR_WHATIF_WAKE,    /* of a worker's core; a: worker */
    MR_WHATIF_EXECUTE, /* an executor begins a strand or ends an item; a: worker, b: slot */
    MR_WHATIF_FETCHED, /* a: worker, b: value, c: serial */
    MR_WHATIF_ACK,     /* the journal has the records up to number c */
};

struct mr_whatif_run { /* a strand, a list of tasks, at an executor */
    struct mr_whatif_run *next_run;
    struct mr_strand *strand;
    uint32_t id;
    uint32_t count;                     /* items that cuts have left to the executor */
    uint32_t begun;                     /* items that have begun */
    uint32_t done;                      /* items that have ended */
    uint32_t told;                      /* items that the executor has reported */
    uint32_t reported;                  /* items that the core knows to have ended */
    uint32_t settled;                   /* items that may be reported */
    uint32_t locals;                    /* values that only later items of the strand use */
    uint32_t uses[MR_STRAND_ITEMS_MAX]; /* of a local value: uses that are left */
    mr_time reported_at;
    bool is_spare; /* counted in mr_whatif_worker.spare */
};

struct mr_whatif_slot {
    struct mr_whatif_run *runs; /* the first one runs */
    bool is_planned;            /* an event EXECUTE is planned or being handled */
    mr_time started;            /* of the item that runs */
    mr_time could;              /* the next item does not begin before this time */
};

struct mr_whatif_report {
    struct mr_whatif_run *run; /* owned by the report that is the last */
    uint32_t done;
    bool is_last;
};

struct mr_whatif_worker {
    struct mr_worker *core;
    struct mr_worker_effects fx;
    uint32_t slots;
    struct mr_whatif_slot *slot;
    uint32_t slot_count;   /* elements of `slot` */
    struct mr_buf reports; /* struct mr_whatif_report each; they wait for the core */
    /* numbers of items: that executors have reported; that the core has learned; and the number of
     * the first kind that wakes the core */
    uint64_t told, taken, wake_at;
    uint32_t spare;     /* strands with items that have not begun */
    mr_time wake;       /* time of the planned event WAKE; an event of another time is void */
    mr_time busy_until; /* the worker's thread takes the tasks of a message until then */
    double begin_ns;    /* what an idle executor waits for after this turn of the core */
    uint32_t flying_up;
    mr_time last_up, last_down;
    mr_time link_free;    /* when the network link has fetched all that was asked for */
    uint32_t place;       /* in the scheduler's table of workers */
    uint64_t incarnation; /* 0: the scheduler does not know the worker yet */
    struct mr_sched_numbers numbers;
    uint32_t lane; /* number of its first slot in the account */
};

struct mr_whatif_cluster {
    const struct mr_whatif_job *job;
    struct mr_whatif_task *tasks; /* the job's, with the durations that the change gives them */
    struct mr_whatif_costs costs;
    const struct mr_whatif_change *change;
    struct mr_graph *graph;   /* until the submission */
    uint32_t *task_of;        /* by node of the graph: the recorded task */
    struct mr_worker_op *ops; /* by operator of the job */
    mr_time now;
    struct mr_virtual_queue queue;

    struct mr_arena arena;
    struct mr_sched *sched;
    struct mr_sched_effects fx;
    struct mr_buf inbox;    /* struct mr_virtual_event each: messages that wait for the scheduler */
    mr_time free_at;        /* the scheduler's thread is busy until then */
    mr_time turn_at;        /* time of the planned turn; MR_NEVER: none */
    uint32_t turns_at_once; /* turns in a row that asked for another one at once */

    struct mr_whatif_worker *workers;
    uint32_t workers_count;
    uint32_t *worker_at;    /* by place in the scheduler's table */
    uint64_t objects_count; /* objects that tasks have made */
    mr_time *received;      /* by recorded task */

    struct mr_buf account_tasks; /* struct mr_account_task each */
    mr_time accounted;           /* time of the last completion */
    mr_time over;                /* 0: the job is not over */
    struct mr_whatif_result *out;
    struct mr_error *error;
    int err; /* the first error; it ends the replay */
};

/* graph.c: makes c->graph and c->task_of of the tasks that ran. */
int mr_whatif__graph_make(struct mr_whatif_cluster *c);

/* executor.c */
void mr_whatif__execute_give(
    struct mr_whatif_cluster *c, struct mr_whatif_worker *w, struct mr_strand *strand);
void mr_whatif__execute_take(
    struct mr_whatif_cluster *c, struct mr_whatif_worker *w, uint32_t strand, uint32_t keep);
void mr_whatif__execute_look(
    struct mr_whatif_cluster *c, struct mr_whatif_worker *w, uint32_t strand);
void mr_whatif__execute_move(struct mr_whatif_worker *w, uint32_t from, uint32_t to);
/* Handles an event EXECUTE. */
void mr_whatif__execute(struct mr_whatif_cluster *c, struct mr_whatif_worker *w, uint32_t slot);
void mr_whatif__execute_fini(struct mr_whatif_worker *w);

/* worker.c */
void mr_whatif__worker_begin(struct mr_whatif_cluster *c, uint32_t worker);
void mr_whatif__worker_fini(struct mr_whatif_worker *w);
void mr_whatif__worker_step(
    struct mr_whatif_cluster *c, struct mr_whatif_worker *w, const struct mr_worker_event *ev);
/* Takes the reports of executors and runs the core's turns. */
void mr_whatif__worker_turn(struct mr_whatif_cluster *c, struct mr_whatif_worker *w);
/* Handles the events DOWN, WAKE and FETCHED. */
void mr_whatif__worker_event(struct mr_whatif_cluster *c, struct mr_virtual_event *ev);

/* scheduler.c */
void mr_whatif__scheduler_begin(struct mr_whatif_cluster *c);
void mr_whatif__scheduler_fini(struct mr_whatif_cluster *c);
/* Handles the events SUBMIT, TURN, UP and ACK. */
void mr_whatif__scheduler_event(struct mr_whatif_cluster *c, const struct mr_virtual_event *ev);

/* whatif.c: takes the spans of completions. */
void mr_whatif__spans_take(struct mr_whatif_cluster *c, const struct mr_buf *spans);
