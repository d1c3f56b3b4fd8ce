/* Parts of the scheduler core's state besides tasks and jobs: workers, ops, classes of placement,
 * stores, promises that wait for the journal. For the core's own files only. */
#pragma once

#include "base/index.h"
#include "graph/options.h"
#include "services/scheduler/core/state/task_tables.h"

#define NAME_BYTES 128

enum { W_FREE, W_CONNECTED, W_SILENT };

#define BEGAN_MAX 64u

struct began { /* since when a task runs, as its worker said in its last heartbeat */
    uint32_t task, attempt;
    mr_time at;
};

struct worker_facts { /* what few ask for */
    char name[NAME_BYTES];
    char node[NAME_BYTES];
    uint64_t capacity[RESOURCES], taken[RESOURCES];
    struct began began[BEGAN_MAX];
    uint32_t began_count;
};

/* Every task that is sent or comes back touches its worker, and those of a large cluster do not fit
 * into the nearest caches. */
struct worker {
    _Alignas(64) uint8_t state;
    bool is_retiring;
    bool is_known;         /* the journal has its incarnation: may get tasks */
    bool is_full;          /* returned something: nothing more until it is heard again */
    bool is_reserved;      /* drains for a suspect */
    bool is_node_reserved; /* its node's memory is one task's: place/memory_retry.c */
    bool is_unrecovered;   /* of the scheduler's earlier life; not back yet */
    bool is_closed;        /* nothing is sent beside its trial */
    uint64_t queue_ns;
    uint32_t slots;
    uint32_t sent, sent_head, sent_tail;
    uint32_t unknown; /* sent while nobody knew how long their op takes */
    uint32_t long_sent;
    uint32_t bucket, bucket_prev, bucket_next;
    uint32_t probation; /* the suspect that was sent here, or NONE */
    uint32_t stealing;
    uint32_t held_head;

    uint64_t held_bytes; /* as counted here */
    uint64_t memory_bytes, memory_used_bytes;
    uint64_t incarnation;
    mr_time last_heard;
    int64_t clock_offset; /* ours - its */
    uint64_t session;
    uint32_t store; /* number */
    uint32_t running;

    struct worker_facts *facts;
    uint32_t name_hash;
    uint32_t stopping;    /* a sum over what was told to stop, and has not said that it ended */
    mr_time stopping_at;  /* the last of those was */
    mr_time probation_at; /* it runs since then; 0: it has not started */
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
    uint64_t large_bytes; /* mean of its results, where that is large; else 0 */
};

/* Tasks that may run on the same workers. Number = op: nothing but the op is asked for. Above
 * those: an op with resources or named workers. */
struct class
{
    uint32_t op;
    uint32_t users; /* jobs' options that mean it; 0: free (of the special ones) */
    uint32_t parked_head, parked_tail, parked;
    uint32_t active_at; /* in the list of classes with parked tasks, or NONE */
    bool any_worker;    /* `workers` is a wish, or empty */
    uint64_t need[RESOURCES];
    uint32_t names_count;
    struct mr_str *names; /* one owned block */
};

struct store {
    uint64_t incarnation;
    bool is_alive, is_connected, is_lost;
    bool is_expected; /* the journal knows it: its lease runs from the start */
    bool is_heir;     /* it replaced another, as the journal says */
    char node[NAME_BYTES];
    char *address;
    uint64_t memory_bytes;
    uint64_t kept_bytes;   /* of objects that workers keep in it */
    uint64_t coming_bytes; /* of large results that its workers make now, as far as known */
    uint32_t coming;       /* tasks that make those */
    char disk_full[128];   /* the folder on whose disk no space is left; "": there is some */
    mr_time last_heard;
    mr_time lost_at;    /* the lease of a worker with it ran out, and none of its name came since */
    uint32_t lost_name; /* a hash; 0: of several */
};

#define MEMORY_ORDER_MAX 64u

struct ordered_value { /* a value whose users go next: place/memory_order.c */
    uint64_t job;
    uint32_t task, at; /* and the first of its users that was not looked at */
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

#define SCAN_IDS_MAX ((size_t)1 << 18) /* objects that one scan looks for */

struct scan { /* of all values, under way or waiting for its turn */
    enum scan_type type;
    uint32_t store;
    uint32_t heir;     /* REPLACED: by which */
    uint32_t at;       /* the next value */
    struct mr_buf ids; /* sorted */
};

enum pending_type { P_ACCEPT, P_VALUES, P_STATE, P_WORKER, P_REPLY };

struct pending { /* what is announced once the journal has it */
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

struct shape { /* where tasks of a template's instances run */
    uint64_t template, used;
    uint32_t size, users; /* jobs */
    struct place *at;
};

#define SHAPES_MAX 64u

#define LEVELS (2 * MR_PRIORITY_MAX + 1)

struct level { /* a priority, among whose jobs work is shared: index/ready_queue.c */
    bool is_used;
    uint32_t jobs; /* in the queue */
    uint64_t clock;
};

struct extent {
    uint32_t at, count;
};

struct sent_row { /* a value that is in a worker's unsent batch already */
    uint32_t task, worker, serial;
};

#define SENT_ROWS 65536u

#define FORGOTTEN_MAX 65536u

struct forgotten {
    uint64_t id, wall;
};
