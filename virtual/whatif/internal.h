/* The cluster in virtual time on which whatif.h replays a job. Private to virtual/whatif. These
 * threads work, and share the processors of their node: the scheduler's thread while it decides, a
 * worker's thread while it takes a message or makes one, and an executor while it runs a task.
 * Messages, transfers and waking a thread take time, and no processor. A strand is a list of tasks,
 * its items, that one executor runs in order. */
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

/* incarnation of node 0's object store; that of node N is larger by N */
#define MR_WHATIF_STORE ((uint64_t)0x1000)

enum mr_whatif_event {
    MR_WHATIF_SUBMIT,
    MR_WHATIF_TURN,    /* the scheduler's thread takes what waits for it */
    MR_WHATIF_DECIDED, /* the work of the scheduler's turn is done */
    MR_WHATIF_UP,      /* a message reaches the scheduler; a: worker */
    MR_WHATIF_DOWN,    /* a message reaches a worker; a: worker */
    MR_WHATIF_WORKED,  /* a worker's thread has done the first of its works; a: worker */
    MR_WHATIF_WAKE,    /* a deadline of a worker's core, or the end of its sleep; a: worker */
    MR_WHATIF_EXECUTE, /* an executor begins a strand or ends a part of an item; a: worker, b: slot
                        */
    MR_WHATIF_FETCHED, /* a worker has a value of another node; a: worker, b: value, c: serial */
    MR_WHATIF_ACK,     /* the journal has the records up to number `c` */
    /* some work on a node's processors may have ended; a: node */
    MR_WHATIF_PROCESSED,
};

/* The processors of a node. Threads that work at the same time share them equally. A thread never
 * has more than one processor. */
struct mr_whatif_use { /* some work of a thread */
    double until;      /* value of `served` at which the work is done */
    uint64_t order;
    struct mr_virtual_event done; /* what follows */
};
struct mr_whatif_processors {
    double count; /* less than the node has if others use them; 0: each thread has a processor of
                     its own */
    struct mr_whatif_use *uses; /* a heap: the work that ends next is the first */
    uint32_t uses_count, uses_room;
    double served;   /* ns of processor time that each thread has had that always worked */
    mr_time at;      /* the time at which `served` was computed */
    mr_time planned; /* time of the planned event PROCESSED; those of other times are ignored */
    uint64_t order;
};

struct mr_whatif_run { /* a strand at an executor */
    struct mr_whatif_run *next_run;
    struct mr_strand *strand;
    uint32_t id;
    uint32_t count;                     /* items, without those that the core has taken back */
    uint32_t begun;                     /* items that have begun */
    uint32_t done;                      /* items that have ended */
    uint32_t told;                      /* items that the executor has reported */
    uint32_t reported;                  /* items whose end the core knows */
    uint32_t settled;                   /* items that the executor may report now */
    uint32_t in_use;                    /* values that only later items of the strand use */
    uint32_t locals;                    /* large ones among them: local values */
    uint32_t uses[MR_STRAND_ITEMS_MAX]; /* by item: uses of its value that are left */
    bool is_local[MR_STRAND_ITEMS_MAX]; /* by item: its value is local */
    mr_time reported_at;                /* time of the last report, or of the first item's start */
    bool is_spare;                      /* counted in mr_whatif_worker.spare */
};

struct mr_whatif_slot {
    struct mr_whatif_run *runs; /* a queue: the first strand runs */
    bool is_planned;            /* an event EXECUTE is planned or being handled */
    bool is_blocked;            /* the item that runs needs no processor until its end */
    mr_time taken;              /* when the executor took the item that runs */
    mr_time started;            /* when that item has begun; known when its work is done */
    double gap_ns;              /* work of the executor before that item begins */
    mr_duration late_ns;        /* time in which that item waited for a processor */
    mr_duration delayed_ns;     /* the same before that item began */
};

struct mr_whatif_work { /* a message that a worker's thread takes or makes */
    struct mr_virtual_event message;
    double ns;
};

struct mr_whatif_report {
    struct mr_whatif_run *run; /* freed with the report that has `is_last` */
    uint32_t done;
    bool is_last;
};

struct mr_whatif_worker {
    struct mr_worker *core;
    struct mr_worker_effects fx;
    uint32_t slots;
    struct mr_whatif_slot *slot;
    uint32_t slot_count;   /* elements of `slot` */
    struct mr_buf reports; /* an array of struct mr_whatif_report that the core has yet to take */
    /* `told`: items that executors have reported. `taken`: items whose reports the core has taken.
     * `wake_at`: value of `told` at which a report wakes the core. */
    uint64_t told, taken, wake_at;
    uint32_t spare;      /* strands with items that have not begun */
    mr_time wake;        /* time of the planned event WAKE; those of other times are ignored */
    struct mr_buf works; /* an array of struct mr_whatif_work that the worker's thread has to do */
    bool is_working;     /* the thread does the first of `works` */
    double begin_ns;     /* delay until an idle executor begins a strand that it gets now */
    uint32_t flying_up;  /* messages to the scheduler that are on their way */
    /* arrival of the last message to the scheduler, and of the last message to the worker */
    mr_time last_up, last_down;
    mr_time link_free;    /* when the network link has carried all values that were asked for */
    uint32_t place;       /* index in the scheduler's table of workers */
    uint64_t incarnation; /* 0: the scheduler does not know the worker yet */
    struct mr_sched_numbers numbers;
    uint32_t node;
    uint32_t lane; /* number of the worker's first slot in the account */
};

struct mr_whatif_cluster {
    const struct mr_whatif_job *job;
    struct mr_whatif_task *tasks; /* the job's tasks, with durations as after the change */
    struct mr_whatif_costs costs;
    const struct mr_whatif_change *change;
    struct mr_graph *graph;   /* NULL after the submission */
    uint32_t *task_of;        /* by node of the graph: the recorded task */
    struct mr_worker_op *ops; /* by operator of the job */
    mr_time now;
    struct mr_virtual_queue queue;

    struct mr_arena arena;
    struct mr_sched *sched;
    struct mr_sched_effects fx;
    struct mr_buf inbox;    /* an array of struct mr_virtual_event: messages to the scheduler */
    bool is_deciding;       /* the scheduler's thread works for its last turn */
    mr_time turn_at;        /* time of the planned turn; MR_NEVER: none */
    mr_time turn_wanted;    /* while is_deciding: when the next turn is wanted; MR_NEVER: not */
    uint32_t turns_at_once; /* turns in a row that asked for another turn at once */

    struct mr_whatif_processors *processors; /* by node; the scheduler is on node 0 */
    struct mr_whatif_worker *workers;
    uint32_t workers_count;
    uint32_t *worker_at;    /* by place in the scheduler's table: index in `workers` */
    uint64_t objects_count; /* objects that tasks have made */
    mr_time *received;      /* by recorded task: when its worker received it */

    struct mr_buf account_tasks; /* an array of struct mr_account_task */
    mr_time accounted;           /* time of the last completion */
    mr_time over;                /* when the job ended; 0: it is not over */
    struct mr_whatif_result *out;
    struct mr_error *error;
    int err; /* the first error; it ends the replay */
};

/* graph.c: makes c->graph and c->task_of from the tasks that ran. */
int mr_whatif__graph_make(struct mr_whatif_cluster *c);

/* processor.c */
/* Begins work of `ns` on the node's processors. The event `done` follows when the work is done. */
void mr_whatif__processors_use(
    struct mr_whatif_cluster *c, uint32_t node, double ns, struct mr_virtual_event done);
/* Handles an event PROCESSED. */
void mr_whatif__processors_event(struct mr_whatif_cluster *c, const struct mr_virtual_event *ev);

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
/* Passes the reports of executors to the core, and runs the core's turns. */
void mr_whatif__worker_turn(struct mr_whatif_cluster *c, struct mr_whatif_worker *w);
/* Handles the events DOWN, WORKED, WAKE and FETCHED. */
void mr_whatif__worker_event(struct mr_whatif_cluster *c, struct mr_virtual_event *ev);

/* scheduler.c */
void mr_whatif__scheduler_begin(struct mr_whatif_cluster *c);
void mr_whatif__scheduler_fini(struct mr_whatif_cluster *c);
/* Handles the events SUBMIT, TURN, DECIDED, UP and ACK. */
void mr_whatif__scheduler_event(struct mr_whatif_cluster *c, const struct mr_virtual_event *ev);

/* whatif.c: adds the spans of completed tasks to the account of the replay, which divides the time
 * of the slots into classes (account/account.h). */
void mr_whatif__spans_take(struct mr_whatif_cluster *c, const struct mr_buf *spans);
