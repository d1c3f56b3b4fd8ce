/* Rows of tables, for the core's own files only: tasks, values, failures and jobs. They stand in
 * arrays of the arena and are known by number. What a graph brings along (its columns, the texts of
 * failures) is on the heap and bounded. */
#pragma once

#include "base/limits.h"
#include "services/scheduler/core/state/event.h"
#include "services/scheduler/core/state/types.h"

#define NONE UINT32_MAX
#define LITERAL (UINT32_MAX - 1) /* task.value: the value is a literal of the graph */
#define INLINE_SMALL 16          /* bytes that fit in the record itself */
#define BLOCK_BYTES 28
#define RESOURCES MR_RESOURCES_MAX
#define LOAD_BUCKETS 512
#define KILLS_MAX 3
/* the numbers of a job begin and end at whole words of the ready queue */
#define JOB_ALIGN 64
#define RETRIES_MASK 0xfffu
_Static_assert(MR_RETRIES_MAX <= RETRIES_MASK, "retries_left has room");

/*  Two facts of a task. What it is:
 *
 *   WAITING ◀──▶ READY ◀──▶ RUNNING ──▶ DONE ──▶ RELEASED
 *      ▲ └───────────────────────────────▲│          │
 *      └──────────── value lost ──────────┴──────────┘
 *   and from the first three to ERRED, CANCELLED (RELEASED: nothing needs it any more)
 *
 *  Where it was sent: flag SENT, `worker`, `attempt`. A WAITING task may be sent. */
enum task_flag {
    T_TARGET = 1 << 0,
    T_IMPURE = 1 << 1,
    T_QUEUED = 1 << 2, /* its bit is set in the queue */
    T_PARKED = 1 << 3, /* on its class's list */
    T_SENT = 1 << 4,
    T_STEALING = 1 << 5,       /* the worker was asked to give it back and has not answered */
    T_UNKNOWN = 1 << 6,        /* sent while the run time of its op was unknown */
    T_QUARANTINED = 1 << 7,    /* it may have crashed a worker: it runs apart from others */
    T_WAS_NEAR_CRASH = 1 << 8, /* it was on a worker that died */
    T_SEEN = 1 << 9,           /* a mark while a returning worker's tasks are compared */
    T_LONG = 1 << 10,          /* does not occupy a slot */
    T_FIXED = 1 << 11,         /* not a task: the value is given (of an alias: while it has one) */
    T_UNACKED = 1 << 12,       /* the journal has not acknowledged its value */
    T_SHARED = 1 << 13,        /* another job's task makes its value */
    T_HAS_SHARERS = 1 << 14,
    T_STARTED = 1 << 15, /* its worker reported that it runs */
};

/* To which of its inputs a task holds a reference: they count it among their consumers. */
enum ref {
    REF_NONE,
    REF_VALUES, /* those with a value: this one was read back and its value refers to them */
    REF_ALL,    /* it is unfinished, or its value refers to them */
};

/* What is known of a value that may be consumed on its worker in one go with its users, so that the
 * scheduler never gets it. */
enum fused_use {
    FUSED_REPORTED, /* the worker reports it, and keeps it until it is released */
    FUSED_COUNTED,  /* sent with the number of its uses, and no use was added since */
    FUSED_CONSUMED, /* it ran, and so did its uses: the last of them releases the task */
};

struct task { /* its job: job_of; 48 bytes, for there are millions */
    union {
        struct {              /* WAITING */
            uint32_t waiting; /* inputs without a value */
            uint32_t unsent;  /* inputs that neither have a value nor were sent */
        };
        mr_time ready_at; /* READY, RUNNING, DONE; 0: it never was ready */
    };
    /* dependents with a reference to it, and tasks of other jobs that share it */
    uint32_t consumers;
    uint32_t value;      /* record, LITERAL or NONE */
    uint32_t worker;     /* SENT: its worker; otherwise where an input or a sibling is, or NONE */
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
        /* crashes that it was blamed for first, or again after it was cleared; up to 3 */
        probations : 2;
    uint16_t oom_retries : 2; /* attempts that found no room in memory */
    uint16_t class;
    uint8_t state : 4; /* enum mr_task_state */
    uint8_t kills : 3;
    uint8_t is_vain : 1;   /* RELEASED before it had a value, because what needed it failed */
    uint8_t refs : 2;      /* enum ref */
    uint8_t is_marked : 1; /* during a walk */
    uint8_t is_exit : 1;   /* of a loop */
    uint8_t is_until : 1;  /* its value decides whether the loop goes on */
    uint8_t fused_use : 2; /* enum fused_use, while it is sent */
    uint8_t is_coming : 1; /* counted in `coming` of its worker's store */
};
_Static_assert(sizeof(struct task) == 48, "what a task costs");

enum value_kind { V_FREE, V_SMALL, V_BLOCKS, V_AWAY, V_OBJECT };
enum {
    V_FETCHING = 1, /* the worker was asked for its bytes */
    V_HELD = 2,     /* its store was told to hold it */
    V_LAST = 4,     /* the worker may drop it after its last use */
    V_DOUBTED = 16, /* its store replaced the one that had it, and may not have it */
    V_ORDERED = 8,  /* its users go ahead of their turn */
};

struct value {
    union {
        unsigned char small[INLINE_SMALL];
        uint32_t block; /* the first of V_BLOCKS */
        mr_object_id object;
    };
    uint64_t bytes;
    uint32_t task;
    uint32_t worker;     /* the worker that made it and keeps it; NONE: none does */
    uint32_t prev, next; /* the worker's list; next: the free list */
    uint32_t attempt;    /* the attempt that made it */
    uint16_t store;
    uint8_t kind;
    uint8_t flags;
};

struct block { /* a piece of a small value that is longer than its record */
    uint32_t next;
    unsigned char bytes[BLOCK_BYTES];
};

struct failure { /* why a task failed; owns its texts, on the heap */
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
    J_STOPPED = 1 << 2,   /* failed or cancelled: completions come late */
    J_SWEEPING = 1 << 3,  /* tasks below `sweep` are still to be released */
    J_FORGETTING = 1 << 4,
    J_RANKED = 1 << 5, /* tasks have priorities of their own */
    J_CONTINUE = 1 << 6,
    J_DIRTY = 1 << 7,     /* its progress is to be announced */
    J_REFERS = 1 << 8,    /* one of its values refers to others */
    J_RETRIED = 1 << 9,   /* it was retried on request */
    J_UNFUSED = 1 << 10,  /* wants each task reported: no fused runs */
    J_UNWANTED = 1 << 11, /* was to be forgotten, but other jobs use its keys */
    J_MARKED = 1 << 12,   /* during a walk */
};

struct loop {      /* of a job, as in its graph */
    uint32_t at;   /* rounds that are known not to be the last */
    uint32_t stop; /* the last round, or NONE: not known yet */
    bool is_over;  /* the last round is known, and the exits can be made */
    bool holds;    /* it keeps the deciding value: a restart must read the same */
    mr_time told_at;
};

struct cached_placement { /* where a task of a loop's body, or of a template, ran last */
    uint32_t worker;
    uint64_t incarnation; /* 0: nowhere yet */
};

struct job {
    uint64_t id;
    struct mr_graph *graph;
    uint16_t *ops; /* number of an op in the graph: its number here */
    struct loop *loops;
    struct cached_placement *cache; /* by slot of the graph, then, of a template, by node */
    uint32_t shape_1; /* 1 + the table of placements that the template shares; 0: its own */
    uint32_t base;    /* the number of its first task */
    uint32_t span;    /* numbers taken: nodes rounded up to 64 */
    uint32_t serial;
    int32_t priority;
    uint32_t flags;
    uint8_t state;
    uint8_t announced; /* the state that was announced */
    uint32_t counts[MR_TASK_STATES];
    uint32_t joined, fallen;
    uint32_t skipped;       /* tasks of rounds that the loop does not run */
    uint32_t vain;          /* see task.is_vain */
    uint32_t users;         /* tasks of other jobs that share its keys */
    uint32_t targets_left;  /* without a final answer */
    uint32_t targets_ready; /* announced */
    uint32_t targets_failed;
    uint32_t queued;
    uint32_t heap_at;    /* place in the heap of jobs with queued tasks, or NONE */
    uint64_t virtual_ns; /* fair shares: work that was sent and counts, and */
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
    mr_time ran_mark;          /* it runs since then, or since the scheduler does; 0: it does not */
    uint64_t slots_mark;       /* mr_sched__slots_us then */
    uint64_t slots_us, ran_us; /* before that */
    mr_time away_since,
        away_at; /* cluster/store_grace.c: first and last failure by a store; 0: none */
    uint64_t away_events;
    uint32_t away_count, away_renewed;
    struct failure failure;
    bool has_failure;
};
