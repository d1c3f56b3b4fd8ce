/* Rows of tables, for the core's own files only: tasks, values, failures and jobs. Rows are in
 * arrays of the arena and are known by number. Graphs and error texts are on the heap, and bounded.
 */
#pragma once

#include "base/limits.h"
#include "services/scheduler/core/state/event.h"
#include "services/scheduler/core/state/types.h"

#define NONE UINT32_MAX
#define LITERAL (UINT32_MAX - 1) /* in task.value: the value is a literal of the graph */
#define INLINE_SMALL 16          /* size limit of a value that is kept in its struct value */
#define BLOCK_BYTES 28
#define RESOURCES MR_RESOURCES_MAX
#define LOAD_BUCKETS 512
#define KILLS_MAX 3 /* fits `kills` of a task */
/* Task numbers of a job begin at a multiple of this, so that the bits of the job in the ready queue
 * are whole 64-bit words. */
#define JOB_ALIGN 64
#define RETRIES_MASK 0xfffu
_Static_assert(MR_RETRIES_MAX <= RETRIES_MASK, "retries_left has room");

/*  A task has two independent facts. Its state:
 *
 *   WAITING ◀──▶ READY ◀──▶ RUNNING ──▶ DONE ──▶ RELEASED
 *      ▲                                  │          │
 *      └──────────── value lost ──────────┴──────────┘
 *   The first three states also lead to RELEASED, ERRED and CANCELLED. RELEASED: nothing needs the
 *   value any more. A retry of the job takes ERRED and CANCELLED back to WAITING. A WAITING or
 *   READY task becomes DONE without running if another job's task, or a worker that registers
 *   again, has the value.
 *
 *  Where it was sent: flag SENT, `worker`, `attempt`. A WAITING task may be sent, too. */
enum task_flag {
    T_TARGET = 1 << 0,
    T_IMPURE = 1 << 1,
    T_QUEUED = 1 << 2, /* the task is in the ready queue */
    T_PARKED = 1 << 3, /* no worker could take the task, so it is in the list of its struct class */
    T_SENT = 1 << 4,
    T_STEALING = 1 << 5,    /* the worker was asked to give the task back and has not answered */
    T_UNKNOWN = 1 << 6,     /* the task was sent while the run time of its operator was unknown */
    T_QUARANTINED = 1 << 7, /* the task may have crashed a worker: place/quarantine.c */
    T_WAS_NEAR_CRASH = 1 << 8, /* the task was on a worker that died */
    T_SEEN = 1 << 9,           /* mark: the registering worker has the task, or its value */
    T_LONG = 1 << 10,          /* the task occupies no slot */
    /* the node is no task: its value was given (an alias, which refers to a key of another job, has
     * the flag only while it has a value) */
    T_FIXED = 1 << 11,
    T_UNACKED = 1 << 12,     /* Redis has not acknowledged the record of the task's value */
    T_SHARED = 1 << 13,      /* another job's task, the source, computes the value */
    T_HAS_SHARERS = 1 << 14, /* the task is the source of tasks of other jobs */
    T_STARTED = 1 << 15,     /* the worker reported that the task runs */
};

/* The inputs that a task refers to. Each such input counts the task as a consumer. */
enum ref {
    REF_NONE,
    /* the inputs that have a value: the task's own value was read from the journal at a restart and
     * refers to the values of these inputs */
    REF_VALUES,
    REF_ALL, /* all inputs: the task is unfinished, or its value refers to the inputs' values */
};

/* Tells whether a worker may consume a task's value without reporting it. The worker then runs the
 * task and all tasks that use the value in one go, a fused run: task/fused.c. */
enum fused_use {
    /* the worker reports the value and keeps it until the scheduler releases the value */
    FUSED_REPORTED,
    FUSED_COUNTED, /* sent with the number of users of the value; the number is still right */
    /* the task and all tasks that use its value have run in one fused run; the completion of the
     * last of these tasks releases the value */
    FUSED_CONSUMED,
};

struct task { /* 48 bytes, since there are millions of tasks; job_of finds a task's job */
    union {
        struct {              /* while WAITING */
            uint32_t waiting; /* inputs without a value */
            uint32_t unsent;  /* inputs without a value whose task was not sent to a worker */
        };
        struct {                    /* while READY, RUNNING or DONE */
            uint64_t ready_us : 40; /* see ready_at; 0: the task was never ready */
            /* index of the input whose value came last; the task's own index: it waited for none */
            uint64_t last_input : 24;
        };
    };
    /* references to the task: from dependents, and from tasks of other jobs that share its value */
    uint32_t consumers;
    uint32_t value; /* its row in `values`, LITERAL or NONE */
    /* if SENT, the task's worker. Else NONE, or a hint for placement: a worker to which one of the
     * task's inputs was sent */
    uint32_t worker;
    uint32_t attempt; /* number of the last attempt: how often the task was sent to a worker */
    /* Neighbours in a list. If SENT: the list of the worker's tasks. If PARKED: the list of parked
     * tasks of the task's class (struct class). */
    uint32_t prev, next;
    union {
        uint32_t estimate; /* ns that the task adds to the worker's queue */
        /* if ERRED: the task whose failure made this task fail; usually the task itself */
        uint32_t cause;
    };
    uint32_t sent_us; /* time of sending in microseconds, the low 32 bits: see sent_at */
    uint16_t flags;
    uint16_t retries_left : 12;
    uint16_t probations : 2;  /* times that the task entered quarantine anew; at most 3 */
    uint16_t oom_retries : 2; /* attempts that had too little memory */
    uint16_t class;
    uint8_t state : 4; /* enum mr_task_state */
    uint8_t kills : 2; /* crashes of workers that this task is blamed for: place/quarantine.c */
    uint8_t
        was_held : 1; /* when ready, the task waited for memory or for a worker that may run it */
    /* the task is RELEASED without a value, because the tasks that needed it failed */
    uint8_t is_abandoned : 1;
    uint8_t refs : 2;      /* enum ref */
    uint8_t is_marked : 1; /* mark of a walk over the graph */
    uint8_t is_exit : 1;   /* the task takes the result of a loop: task/loop.h */
    uint8_t is_until : 1;  /* the task's value decides whether a loop ends */
    uint8_t fused_use : 2; /* enum fused_use; used while the flag T_SENT is set */
    uint8_t is_coming : 1; /* the task is counted in `coming` of its worker's store */
};
_Static_assert(sizeof(struct task) == 48, "memory of a task");
_Static_assert(MR_TASKS_MAX <= 1 << 24, "last_input has room");

enum value_kind { V_FREE, V_SMALL, V_BLOCKS, V_AWAY, V_OBJECT };
enum {
    V_FETCHING = 1, /* the worker was asked for the value's bytes */
    V_HELD = 2,     /* the value's store was told to hold the object */
    V_LAST = 4,     /* the worker was told that it may drop the value after the last use */
    /* the store that had the object was replaced, and the new store was asked whether it has the
     * object */
    V_DOUBTED = 16,
    V_ORDERED = 8, /* the value's consumers are sent next: place/memory_order.c */
};

struct value {
    union {
        unsigned char small[INLINE_SMALL];
        uint32_t block; /* V_BLOCKS: the first block */
        mr_object_id object;
    };
    uint64_t bytes;
    uint32_t task;
    uint32_t worker;     /* the keeper: the worker that made the value and keeps it; NONE: none */
    uint32_t prev, next; /* neighbours in the keeper's list; `next`: also in the free list */
    uint32_t attempt;    /* the task's attempt that made the value */
    uint16_t store;
    uint8_t kind;
    uint8_t flags;
};

struct block { /* up to BLOCK_BYTES bytes of a value with more than INLINE_SMALL bytes */
    uint32_t next;
    unsigned char bytes[BLOCK_BYTES];
};

struct failure { /* why a task failed; owns the texts, which are on the heap */
    uint32_t task;
    int code;
    uint32_t attempts;
    uint32_t op;
    char *message;
    char *arguments;
    char *worker;
    char *log;
};

enum job_flag {
    J_ACCEPTED = 1 << 0,
    J_HELD_BACK = 1 << 1, /* the job waits for the end of recovery after a restart */
    /* the job failed or was cancelled: completions that still arrive do not count */
    J_STOPPED = 1 << 2,
    J_RECLAIMING = 1 << 3, /* tasks below `unreclaimed` are still to be released */
    J_FORGETTING = 1 << 4,
    J_RANKED = 1 << 5, /* the tasks have priorities of their own */
    J_CONTINUE = 1 << 6,
    J_DIRTY = 1 << 7,     /* `counts` (tasks by state) has changed: to be announced */
    J_REFERS = 1 << 8,    /* one of the job's values refers to other values */
    J_RETRIED = 1 << 9,   /* a client has retried the job */
    J_UNFUSED = 1 << 10,  /* the client wants every task reported, so none is fused */
    J_UNWANTED = 1 << 11, /* the job is to be forgotten as soon as no other job uses its keys */
    J_MARKED = 1 << 12,   /* mark of a walk over jobs */
};

struct loop { /* state of a loop of the job's graph */
    /* number of rounds that are known not to be the last; this is also the index of the present
     * round */
    uint32_t at;
    uint32_t stop; /* number of the last round; NONE: not decided yet */
    bool is_over;  /* the last round is decided, and the exits may run */
    /* the loop keeps the value of `until` that ended it, so that the loop ends in the same round
     * after a restart */
    bool holds;
    mr_time told_at;
};

struct cached_placement { /* the worker to which a task of a loop or template was first sent */
    uint32_t worker;
    uint64_t incarnation; /* 0: the entry is empty */
};

struct job {
    uint64_t id;
    struct mr_graph *graph;
    uint16_t *ops; /* from an operator's number in the graph to its number in the core */
    struct loop *loops;
    /* Table of cached workers. First come the entries of tasks in loops, in the order of
     * graph->slot_of. If `shape_1` is not 0, one entry for each node follows. NULL: no table */
    struct cached_placement *cache;
    /* 1 + the number of the struct shape that owns `cache`; 0: the job owns `cache` */
    uint32_t shape_1;
    uint32_t base; /* number of the job's first task */
    uint32_t span; /* how many task numbers the job has: its nodes, rounded up to JOB_ALIGN */
    uint32_t serial;
    int32_t priority;
    uint32_t flags;
    uint8_t state;
    uint8_t announced; /* the state that was last announced to clients */
    uint32_t counts[MR_TASK_STATES];
    uint32_t joined, fallen;
    uint32_t skipped;      /* tasks in the rounds after a loop's last round */
    uint32_t abandoned;    /* tasks whose is_abandoned is set */
    uint32_t users;        /* how many tasks of other jobs share a value of this job */
    uint32_t targets_left; /* targets that neither have a value nor have failed */
    uint32_t targets_failed;
    uint32_t queued;
    uint32_t heap_at;    /* place in the heap of jobs with queued tasks, or NONE */
    uint64_t virtual_ns; /* virtual time: index/ready_queue.c */
    uint64_t charged_ns; /* work that was sent and is not yet part of virtual_ns */
    uint32_t unreclaimed;
    uint32_t older, newer;
    uint64_t retried, recomputed;
    uint64_t created_wall, started_wall, finished_wall;
    uint64_t event_sequence;
    uint64_t ticket;
    uint64_t parent;
    mr_graph_hash body_hash;
    mr_time deadline;
    mr_time ended_at;
    mr_time ran_mark;          /* start of the present run; 0: the job does not run */
    uint64_t slots_mark;       /* mr_sched__slots_us at ran_mark */
    uint64_t slots_us, ran_us; /* sums over earlier runs */
    /* cluster/store_grace.c: start of the grace period, and last failure of a task because of a
     * store; 0: none */
    mr_time away_since, away_at;
    uint64_t away_events;
    uint32_t away_count, away_renewed;
    struct failure failure;
    bool has_failure;
};
