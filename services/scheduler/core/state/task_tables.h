/* What the scheduler core is made of, for its own files only. Everything lives in arrays of the
 * arena and is known by number; what a graph brings along (its columns, the texts of failures) is
 * on the heap and bounded. */
#pragma once

#include "base/limits.h"
#include "services/scheduler/core/state/event.h"
#include "services/scheduler/core/state/types.h"

#define NONE UINT32_MAX
#define LITERAL (UINT32_MAX - 1) /* task.value: the pack that stands in the graph */
#define INLINE_SMALL 16          /* bytes that fit in the record itself */
#define BLOCK_BYTES 28
#define RESOURCES MR_RESOURCES_MAX
#define LOAD_BUCKETS 512
#define KILLS_MAX 3
#define JOB_ALIGN 64 /* a job's numbers begin and end at multiples: whole words of the queue */
#define RETRIES_MASK 0xfffu
_Static_assert(MR_RETRIES_MAX <= RETRIES_MASK, "retries_left has room");

/*  Two facts of a task. What it is:
 *
 *   WAITING ◀──▶ READY ◀──▶ RUNNING ──▶ DONE ──▶ RELEASED
 *      ▲ └───────────────────────────────▲│          │
 *      └──────────── value lost ──────────┴──────────┘
 *   and from the first three to ERRED, CANCELLED (RELEASED: nobody needs it any more)
 *
 *  Where it was sent: flag SENT, `worker`, `attempt`. A WAITING task may be sent. */
enum task_flag {
    T_TARGET = 1 << 0,
    T_IMPURE = 1 << 1,
    T_QUEUED = 1 << 2, /* its bit is set in the queue */
    T_PARKED = 1 << 3, /* on its class's list */
    T_SENT = 1 << 4,
    T_STEALING = 1 << 5,       /* asked back, not answered */
    T_UNKNOWN = 1 << 6,        /* sent while nobody knew how long its op takes */
    T_QUARANTINED = 1 << 7,    /* may have killed a worker: on trial, apart from others */
    T_WAS_NEAR_CRASH = 1 << 8, /* was on a worker that died, once */
    T_SEEN = 1 << 9,           /* mark while a returning worker is compared */
    T_LONG = 1 << 10,          /* does not occupy a slot */
    T_FIXED = 1 << 11,         /* no task: its value is given (an alias: as long as it has one) */
    T_UNACKED = 1 << 12,       /* its value is on the way to the journal */
    T_SHARED = 1 << 13,        /* another job's task makes its value */
    T_HAS_SHARERS = 1 << 14,
    T_STARTED = 1 << 15, /* the worker said that it runs */
};

/* Which of its inputs a task claims: those have it among their consumers. */
enum ref {
    REF_NONE,
    REF_VALUES, /* those that have one: it was read back, and its value refers to them */
    REF_ALL,    /* it is unfinished, or its value refers to them */
};

/* A value that only tasks of its job want may be used up where it was made: nobody here ever sees
 * it. */
enum fused_use {
    FUSED_REPORTED, /* its worker tells of it, and keeps it until it is released */
    FUSED_COUNTED,  /* sent with the number of its uses, and nobody was added to them since */
    FUSED_CONSUMED, /* it ran, and so did its uses: the task is released with the last of them */
};

struct task { /* its job: job_of; 48 bytes, for there are millions */
    union {
        struct {              /* WAITING */
            uint32_t waiting; /* inputs without a value */
            uint32_t unsent;  /* inputs neither with a value nor sent */
        };
        mr_time ready_at; /* READY, RUNNING, DONE; 0: it never was */
    };
    uint32_t consumers;  /* dependents that claim it, and joined tasks of other jobs */
    uint32_t value;      /* record, LITERAL or NONE */
    uint32_t worker;     /* SENT: where; otherwise where an input or a sibling is, or NONE */
    uint32_t attempt;    /* the highest number given out */
    uint32_t prev, next; /* the worker's list if SENT, the class's if PARKED */
    union {
        uint32_t estimate; /* ns, as counted in the worker's queue */
        uint32_t cause;    /* ERRED: the task whose failure this is, mostly itself */
    };
    uint32_t sent_us; /* the low bits of when it was sent, in microseconds: see sent_at */
    uint16_t flags;
    uint16_t retries_left : 12;
    uint16_t
        probations : 2; /* deaths that it was suspected of after an acquittal, or first: up to 3 */
    uint16_t oom_retries : 2; /* times that it found no room in memory */
    uint16_t class;
    uint8_t state : 4; /* enum mr_task_state */
    uint8_t kills : 3;
    uint8_t is_vain : 1;   /* RELEASED before it had a value: what needed it failed */
    uint8_t refs : 2;      /* enum ref */
    uint8_t is_marked : 1; /* during a walk */
    uint8_t is_exit : 1;   /* of a loop */
    uint8_t is_until : 1;  /* decides whether another round comes */
    uint8_t fused_use : 2; /* enum fused_use, while it is sent */
    uint8_t is_coming : 1; /* counted as such in its worker's store */
};
_Static_assert(sizeof(struct task) == 48, "what a task costs");

enum value_kind { V_FREE, V_SMALL, V_BLOCKS, V_AWAY, V_OBJECT };
enum {
    V_FETCHING = 1, /* its worker was asked for the bytes */
    V_HELD = 2,     /* the store was told to hold it */
    V_LAST = 4,     /* its worker may drop it after its last use */
    V_DOUBTED = 16, /* its store replaced the one that had it, and may not have it */
    V_ORDERED = 8,  /* its users were sent, or will be, ahead of their turn */
};

struct value {
    union {
        unsigned char small[INLINE_SMALL];
        uint32_t block; /* the first of V_BLOCKS */
        mr_object_id object;
    };
    uint64_t bytes;
    uint32_t task;
    uint32_t worker;     /* that made it and keeps it; NONE: gone */
    uint32_t prev, next; /* the worker's list; next: the free list */
    uint32_t attempt;    /* that made it */
    uint16_t store;
    uint8_t kind;
    uint8_t flags;
};

struct block { /* of small values longer than the record */
    uint32_t next;
    unsigned char bytes[BLOCK_BYTES];
};

struct failure { /* why a task failed, with its own texts on the heap */
    uint32_t task;
    uint32_t next; /* in the order of age */
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
    J_HELD_BACK = 1 << 1, /* waits for the workers of the scheduler's earlier life */
    J_STOPPED = 1 << 2,   /* failed or cancelled: completions are late */
    J_SWEEPING = 1 << 3,  /* tasks below `sweep` are still to be put away */
    J_FORGETTING = 1 << 4,
    J_RANKED = 1 << 5, /* tasks have priorities of their own */
    J_CONTINUE = 1 << 6,
    J_DIRTY = 1 << 7,     /* progress to be told */
    J_REFERS = 1 << 8,    /* a value of it refers to others */
    J_RETRIED = 1 << 9,   /* runs, or ran, again because that was asked for */
    J_UNFUSED = 1 << 10,  /* wants every task reported by itself */
    J_UNWANTED = 1 << 11, /* was to be forgotten, and others hold it */
    J_MARKED = 1 << 12,   /* during a walk */
};

struct loop {      /* of a job, as in its graph */
    uint32_t at;   /* rounds known not to be the last */
    uint32_t stop; /* the last round, or NONE: not known yet */
    bool is_over;  /* that is known, and what comes out can be made */
    bool holds;    /* it keeps the value that decided: a restart must find the same */
    mr_time told_at;
};

struct place { /* where a task of a body, or of a template, was last */
    uint32_t worker;
    uint64_t incarnation; /* 0: nowhere yet */
};

struct job {
    uint64_t id;
    struct mr_graph *graph;
    uint16_t *ops; /* op of the graph: op here */
    struct loop *loops;
    struct place *cache; /* by slot of the graph, then by node: of a template */
    uint32_t shape_1;    /* the template's, that has the cache, and 1; 0: it is the job's */
    uint32_t base;       /* number of its first task */
    uint32_t span;       /* numbers taken: nodes rounded up to 64 */
    uint32_t serial;
    int32_t priority;
    uint32_t flags;
    uint8_t state;
    uint8_t told; /* state as announced */
    uint32_t counts[MR_TASK_STATES];
    uint32_t joined, fallen;
    uint32_t skipped;       /* tasks of rounds that do not come */
    uint32_t vain;          /* see task.is_vain */
    uint32_t users;         /* tasks of other jobs that are joined to its own */
    uint32_t targets_left;  /* without a final answer */
    uint32_t targets_ready; /* announced */
    uint32_t targets_failed;
    uint32_t queued;
    uint32_t heap_at;    /* in the heap of jobs with queued tasks, or NONE */
    uint64_t virtual_ns; /* fair shares: work that was sent, and since that was charged: */
    uint64_t charged_ns;
    uint32_t sweep;
    uint32_t older, newer;
    uint64_t retried, recomputed;
    uint64_t created_wall, started_wall, finished_wall;
    uint64_t event_sequence;
    uint64_t ticket;
    uint64_t parent;
    mr_graph_hash body_hash;
    mr_time deadline;
    mr_time ended_at;
    mr_time told_progress_at;
    mr_time ran_mark;          /* it runs since then (or since the scheduler did); 0: not now */
    uint64_t slots_mark;       /* mr_sched__slots_us then */
    uint64_t slots_us, ran_us; /* of the time before that */
    mr_time away_since,
        away_at; /* cluster/store_grace.c: a store failed its tasks, first and last; 0: never */
    uint64_t away_events;
    uint32_t away_count, away_renewed;
    struct failure failure;
    bool has_failure;
};
