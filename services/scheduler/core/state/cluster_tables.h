/* Rows of tables, for the core's own files only: workers, operators, placement classes, stores, and
 * announcements that wait for the journal. */
#pragma once

#include "base/index.h"
#include "graph/options.h"
#include "services/scheduler/core/state/task_tables.h"

#define NAME_BYTES 128

enum { W_FREE, W_CONNECTED, W_SILENT };

#define BEGAN_MAX 64u

struct began { /* the time when a task began to run, from its worker's last heartbeat */
    uint32_t task, attempt;
    mr_time at;
};

struct worker_facts { /* members of a worker that are seldom read */
    char name[NAME_BYTES];
    char node[NAME_BYTES];
    uint64_t capacity[RESOURCES], taken[RESOURCES];
    struct began began[BEGAN_MAX];
    uint32_t began_count;
};

/* Each task that is sent or completed touches its worker's row. The rows of a large cluster do not
 * fit into the CPU's inner caches, so the members that each task touches share one cache line. */
struct worker {
    _Alignas(64) uint8_t state;
    bool is_retiring;
    /* the journal has the worker's incarnation, so tasks may be sent to the worker */
    bool is_known;
    /* the worker returned a task, so it gets no tasks until its next success or heartbeat */
    bool is_full;
    bool is_reserved;      /* the worker gets no tasks: a quarantined task is to run alone there */
    bool is_node_reserved; /* the worker's node is kept free for one task: place/memory_retry.c */
    /* the journal names the worker, which has not registered since the restart */
    bool is_unrecovered;
    bool is_closed; /* the worker gets no tasks while it has the task `probation` */
    uint64_t queue_ns;
    uint32_t slots;
    uint32_t sent, sent_head, sent_tail;
    /* tasks on the worker that were sent before the run time of their operator was known */
    uint32_t unknown;
    uint32_t long_sent;
    uint32_t bucket, bucket_prev, bucket_next;
    uint32_t probation; /* the quarantined task that was sent to the worker, or NONE */
    uint32_t stealing;
    uint32_t held_head;

    uint64_t held_bytes; /* size of all values that the worker keeps, by the scheduler's count */
    uint64_t memory_bytes, memory_used_bytes;
    uint64_t incarnation;
    mr_time last_heard;
    int64_t clock_offset; /* the scheduler's clock minus the worker's */
    uint64_t session;
    uint32_t store; /* number of its store */
    uint32_t running;

    struct worker_facts *facts;
    uint32_t name_hash;
    /* sum of the hashes (mr_sched__stopping_mark) of those attempts that the worker was told to
     * stop and that have not ended */
    uint32_t stopping;
    mr_time stopping_at;  /* time when the last of these attempts was told to stop */
    mr_time probation_at; /* time when the task `probation` started; 0: not started */
    uint64_t tasks_started, tasks_done;
    uint64_t record; /* sequence number of the worker's journal record */
};
_Static_assert(offsetof(struct worker, held_bytes) == 64, "what each task touches");
_Static_assert(offsetof(struct worker, facts) == 128, "what each message touches");
_Static_assert(sizeof(struct worker) == 192, "three lines");

#define LARGE_RESULT ((uint64_t)64 << 10) /* bytes */

struct op {
    struct mr_str name; /* owned */
    uint64_t cost_ns;
    uint64_t estimate_ns; /* run time of one task; 0: no task has finished yet */
    bool deterministic, by_reference, passes, long_running;
    uint32_t workers;
    uint64_t tasks, wall_ns, cpu_ns, queue_ns, bytes;
    uint64_t large_bytes; /* mean size of its results if that is above LARGE_RESULT, else 0 */
};

struct op_tasks {          /* the tasks of a job with one operator */
    uint32_t tasks, ended; /* ended: in a state after RUNNING */
};

/* Tasks that may run on the same workers. A ready task that no worker can take is parked on the
 * list of its class. A class whose number is that of an operator has no other condition than the
 * operator. Higher numbers are special classes: an operator with resources or named workers. */
struct class
{
    uint32_t op;
    /* special classes: number of tasks that have the class; 0: the class is free */
    uint32_t users;
    uint32_t parked_head, parked_tail, parked;
    uint32_t active_at; /* index in the list of classes with parked tasks, or NONE */
    uint32_t names_count;
    bool any_worker; /* any worker may run the tasks: `names` are a preference, or empty */
    uint64_t need[RESOURCES];
    struct mr_str *names; /* owned: one block */
};

struct store {
    uint64_t incarnation;
    bool is_alive, is_connected, is_lost;
    /* the journal names the store, which has not registered since the scheduler's start */
    bool is_expected;
    bool is_heir; /* the journal says that this store replaced another one of its node */
    char node[NAME_BYTES];
    char *address;
    uint64_t memory_bytes;
    uint64_t kept_bytes;   /* bytes of the store's objects that workers made and keep */
    uint64_t coming_bytes; /* estimate of the large results that its workers are computing */
    uint32_t coming;       /* tasks that compute these large results */
    char disk_full[128];   /* the directory whose disk is full; "": none */
    mr_time last_heard;
    /* time when the lease of a worker of this store ended; 0: no lease has ended, or a worker of
     * that name has registered since */
    mr_time lost_at;
    uint32_t lost_name; /* hash of that worker's name; 0: the leases of several workers ended */
};

#define MEMORY_ORDER_MAX 64u

struct ordered_value { /* a value whose consumers are sent next: place/memory_order.c */
    uint64_t job;
    uint32_t task, at; /* `at`: position of the first consumer that was not visited yet */
    bool is_partial;   /* some consumers wait for other inputs */
};

#define WRITERS_MAX 64u

/* bit in the attempt of a journaled value: the value refers to inputs */
#define RECORD_REFERS (1u << 31)
#define RECORD_RETRIED (1u << 31) /* bit in the state of a journaled job: the job was retried */

enum scan_type {
    SCAN_STORE_LOST,
    SCAN_STORE_REPLACED,
    SCAN_STORE_HOLD,
    SCAN_OBJECTS_LOST,
    SCAN_OBJECTS_UNHELD
};

#define SCAN_IDS_MAX ((size_t)1 << 18) /* limit of object ids that one scan searches for */

struct scan { /* a walk over all values; scans wait in a ring, and the first one runs */
    enum scan_type type;
    uint32_t store;
    uint32_t heir;     /* REPLACED: the store that took the place of `store` */
    uint32_t at;       /* number of the next value to look at */
    struct mr_buf ids; /* ids of the objects to search for, sorted */
};

enum pending_type { P_ACCEPT, P_VALUES, P_STATE, P_WORKER, P_REPLY };

struct pending { /* an announcement that waits until Redis has acknowledged its record */
    uint64_t sequence;
    uint64_t job;
    uint32_t type;
    uint32_t state;       /* only in STATE */
    uint32_t count;       /* only in VALUES: entries of the ring `unacked` */
    uint64_t ticket;      /* only in ACCEPT and REPLY */
    uint32_t slot;        /* only in WORKER */
    uint64_t incarnation; /* only in WORKER */
    uint64_t bytes;       /* all bytes written to the journal up to this record */
};

/* A table that the jobs of one template share: the worker to which each task was first sent. */
struct shape {
    uint64_t template, used;
    uint32_t size, users; /* `users`: jobs */
    struct cached_placement *at;
};

#define SHAPES_MAX 64u

#define LEVELS (2 * MR_PRIORITY_MAX + 1)

struct level { /* the jobs of one priority, which share the workers fairly: index/ready_queue.c */
    bool is_used;
    uint32_t jobs; /* jobs with queued tasks */
    uint64_t clock;
};

struct extent {
    uint32_t at, count;
};

struct sent_row { /* the batch number `serial`, for `worker`, has a row for the value of `task` */
    uint32_t task, worker, serial;
};

#define SENT_ROWS 65536u

#define FORGOTTEN_MAX 65536u

struct forgotten {
    uint64_t id, wall;
};
