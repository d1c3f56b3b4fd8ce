/* More rows of tables, for the core's own files only: workers, ops, placement classes, stores, and
 * what waits for the journal. */
#pragma once

#include "base/index.h"
#include "graph/options.h"
#include "services/scheduler/core/state/task_tables.h"

#define NAME_BYTES 128

enum { W_FREE, W_CONNECTED, W_SILENT };

#define BEGAN_MAX 64u

struct began { /* since when a task runs, by its worker's last heartbeat */
    uint32_t task, attempt;
    mr_time at;
};

struct worker_facts { /* what is seldom read */
    char name[NAME_BYTES];
    char node[NAME_BYTES];
    uint64_t capacity[RESOURCES], taken[RESOURCES];
    struct began began[BEGAN_MAX];
    uint32_t began_count;
};

/* Each task that is sent or completed touches the row of its worker. The rows of a large cluster do
 * not fit into the caches next to the core, so what each task touches is one cache line. */
struct worker {
    _Alignas(64) uint8_t state;
    bool is_retiring;
    bool is_known;         /* the journal has its incarnation, so that it may get tasks */
    bool is_full;          /* it returned a task: nothing more is sent until it reports again */
    bool is_reserved;      /* it is emptied for a quarantined task */
    bool is_node_reserved; /* its node is reserved for one task: place/memory_retry.c */
    bool is_unrecovered;   /* it is of the scheduler's earlier life and has not returned */
    bool is_closed;        /* nothing else is sent while `probation` is here */
    uint64_t queue_ns;
    uint32_t slots;
    uint32_t sent, sent_head, sent_tail;
    uint32_t unknown; /* tasks that were sent while the run time of their op was unknown */
    uint32_t long_sent;
    uint32_t bucket, bucket_prev, bucket_next;
    uint32_t probation; /* the quarantined task that was sent here, or NONE */
    uint32_t stealing;
    uint32_t held_head;

    uint64_t held_bytes; /* as counted here */
    uint64_t memory_bytes, memory_used_bytes;
    uint64_t incarnation;
    mr_time last_heard;
    int64_t clock_offset; /* our clock less its clock */
    uint64_t session;
    uint32_t store; /* number */
    uint32_t running;

    struct worker_facts *facts;
    uint32_t name_hash;
    /* sum of marks of attempts that were told to stop and have not ended */
    uint32_t stopping;
    mr_time stopping_at;  /* when the last of those was told */
    mr_time probation_at; /* `probation` runs since then; 0: it has not started */
    uint64_t tasks_started, tasks_done;
    uint64_t told_queue_ns;
    uint64_t record; /* sequence of its journal record */
};
_Static_assert(offsetof(struct worker, held_bytes) == 64, "what each task touches");
_Static_assert(offsetof(struct worker, facts) == 128, "what each message touches");
_Static_assert(sizeof(struct worker) == 192, "three lines");

#define LARGE_RESULT ((uint64_t)64 << 10) /* bytes */

struct op {
    struct mr_str name; /* owned */
    uint64_t cost_ns;
    uint64_t estimate_ns; /* 0: none has finished yet */
    bool deterministic, by_reference, passes, long_running;
    uint32_t workers;
    uint64_t tasks, wall_ns, cpu_ns, queue_ns, bytes;
    uint64_t large_bytes; /* mean size of its results if that is large, else 0 */
};

/* Tasks that may run on the same workers. A class whose number is that of an op asks for nothing
 * but the op; the numbers above those are for an op with resources or named workers. */
struct class
{
    uint32_t op;
    uint32_t users; /* how many options of jobs use it; 0: free (special classes only) */
    uint32_t parked_head, parked_tail, parked;
    uint32_t active_at; /* place in the list of classes with parked tasks, or NONE */
    bool any_worker;    /* `workers` is a preference, or empty */
    uint64_t need[RESOURCES];
    uint32_t names_count;
    struct mr_str *names; /* owned: one block */
};

struct store {
    uint64_t incarnation;
    bool is_alive, is_connected, is_lost;
    bool is_expected; /* known from the journal: its lease runs from the start */
    bool is_heir;     /* it replaced another one, by the journal */
    char node[NAME_BYTES];
    char *address;
    uint64_t memory_bytes;
    uint64_t kept_bytes;   /* of objects that workers keep in it */
    uint64_t coming_bytes; /* of large results that its workers are making, as far as known */
    uint32_t coming;       /* tasks that make these */
    char disk_full[128];   /* the folder whose disk is full; "": none is */
    mr_time last_heard;
    /* a worker that used it lost its lease then, and none of that name came since */
    mr_time lost_at;
    uint32_t lost_name; /* hash of that worker's name; 0: of several workers */
};

#define MEMORY_ORDER_MAX 64u

struct ordered_value { /* a value whose users go next: place/memory_order.c */
    uint64_t job;
    uint32_t task, at; /* `at`: the first of its users that was not looked at */
    bool is_partial;   /* some of them wait for others */
};

#define WRITERS_MAX 64u

#define RECORD_REFERS (1u << 31)  /* in the attempt of a journaled value */
#define RECORD_RETRIED (1u << 31) /* in the state of a journaled job */

enum scan_type {
    SCAN_STORE_LOST,
    SCAN_STORE_REPLACED,
    SCAN_STORE_HOLD,
    SCAN_OBJECTS_LOST,
    SCAN_OBJECTS_UNHELD
};

#define SCAN_IDS_MAX ((size_t)1 << 18) /* objects that one scan searches for */

struct scan { /* a walk over all values, running or waiting for its turn */
    enum scan_type type;
    uint32_t store;
    uint32_t heir;     /* REPLACED: the store that took its place */
    uint32_t at;       /* the next value */
    struct mr_buf ids; /* sorted */
};

enum pending_type { P_ACCEPT, P_VALUES, P_STATE, P_WORKER, P_REPLY };

struct pending { /* what is announced when the journal has acknowledged it */
    uint64_t sequence;
    uint64_t job;
    uint32_t type;
    uint32_t state;       /* STATE */
    uint32_t count;       /* VALUES: entries of the ring */
    uint64_t ticket;      /* ACCEPT, REPLY */
    uint32_t slot;        /* WORKER */
    uint64_t incarnation; /* WORKER */
    uint64_t bytes;       /* of all records up to this one */
};

struct shape { /* where the tasks of a template's instances ran */
    uint64_t template, used;
    uint32_t size, users; /* jobs */
    struct cached_placement *at;
};

#define SHAPES_MAX 64u

#define LEVELS (2 * MR_PRIORITY_MAX + 1)

struct level { /* jobs of one priority, which share work: index/ready_queue.c */
    bool is_used;
    uint32_t jobs; /* in the queue */
    uint64_t clock;
};

struct extent {
    uint32_t at, count;
};

struct sent_row { /* a value that stands in the unsent batch of a worker */
    uint32_t task, worker, serial;
};

#define SENT_ROWS 65536u

#define FORGOTTEN_MAX 65536u

struct forgotten {
    uint64_t id, wall;
};
