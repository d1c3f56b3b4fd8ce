/* The core's whole state. For the core's own files only. Tables that every layer reads are members
 * of struct mr_sched, so that a row is s->tasks[task]. The state of one module is in that module's
 * struct. All arrays are in the arena, except those whose comment says "on the heap". */
#pragma once

#include "services/scheduler/core/state/cluster_tables.h"
#include "services/scheduler/core/state/effect.h"

struct task_numbers { /* job/plan.c: allocates task numbers, in multiples of JOB_ALIGN */
    uint32_t top;     /* numbers from here on were never used */
    struct extent *free;
    uint32_t free_count;
};

struct ready_queue { /* index/ready_queue.c */
    /* [0]: a bit for each queued task; [k]: a bit for each nonzero word of [k-1] */
    uint64_t *bits[4];
    uint32_t *rank_of; /* by task: its rank, if tasks of its job have priorities */
    uint32_t *ranked;  /* by rank: the task of this rank */
    uint64_t count;    /* tasks in the queue */
    uint32_t *heap;    /* jobs with queued tasks; the job at the top is served first */
    uint32_t heap_count;
    struct level levels[LEVELS]; /* ascending by priority */
    uint64_t clock;              /* the highest virtual time that a level's clock has shown */
};

struct shared_keys { /* task/shared_key.c */
    /* lists of the tasks that share another task's value; an entry is a task's number + 1; 0:
     * none */
    uint32_t *source, *next, *head;
    struct mr_index index; /* from namespace and key to a task; on the heap */
};

struct job_list { /* index/job_index.c, job/ */
    uint32_t top, free, count, running, newest, oldest;
    uint32_t serial, number;
    uint32_t unplanned; /* the job that the last step accepted and this step plans, or NONE */
    struct mr_index by_id, by_request; /* on the heap */
    uint32_t *reclaims;                /* ended jobs whose tasks are being reclaimed */
    uint32_t reclaims_count;
    struct forgotten *forgotten; /* ring of the jobs that were forgotten last */
    uint64_t forgotten_count;
};

struct value_list { /* task/value.c */
    uint32_t top, free, count;
};

struct block_cache { /* state/inline_bytes.c */
    struct block *at;
    uint32_t top, free, left;
};

struct worker_list { /* index/worker_index.c */
    struct worker_facts *facts;
    uint64_t *op_bits; /* a bit for each worker and op: the worker offers it */
    uint32_t op_words, top, live, number;
    uint32_t free_at; /* all rows of `workers` before this one are in use */
    /* workers that registered or that the journal names; on the heap */
    struct mr_index by_name, by_incarnation;
};

struct load_index { /* index/load_index.c: buckets of those workers that may be given work */
    uint32_t head[LOAD_BUCKETS], tail[LOAD_BUCKETS];
    uint64_t bits[LOAD_BUCKETS / 64];
    uint32_t workers, slots; /* sums over the workers in the buckets */
    /* the worker whose completions are being read; its bucket changes when all are read */
    uint32_t held_out;
};

struct slot_time { /* state/run_time.c: integral of the connected workers' slots over time */
    uint64_t us;   /* slots x microseconds up to the time `at` */
    mr_time at;
    uint32_t slots; /* slots of the workers that are connected */
};

struct due { /* times of the next deadlines */
    mr_time leases, steal, progress, keep;
    mr_time jobs; /* not later than the earliest deadline of a job */
};

struct op_list { /* index/op_index.c */
    uint32_t count;
    struct mr_index index; /* on the heap */
};

struct class_list { /* index/placement_class.c */
    uint32_t top;
    uint32_t *active; /* classes with parked tasks (ready tasks that no worker can take) */
    uint32_t active_count;
    char resource_names[RESOURCES][NAME_BYTES];
    uint32_t resources_count;
};

struct task_ring { /* index/retry_rings.c; a ring has room for tasks_max tasks */
    uint32_t *at;
    uint32_t first, count;
};

struct quarantine {        /* place/quarantine.c */
    struct task_ring ring; /* quarantined tasks */
    uint32_t reserved;     /* the worker that is kept free for one quarantined task, or NONE */
};

struct memory_retry {      /* place/memory_retry.c */
    struct task_ring ring; /* tasks whose last attempt had too little memory */
    /* the store of the node that is kept free for one of these tasks; 0: none */
    uint32_t reserved_store;
    /* the task that was sent to the node that is kept free for this task; NONE: there is none */
    uint32_t reserved_task;
    bool is_disturbed; /* another task has started on the node that is kept free */
    /* Time of the latest loss of a worker that is only known from the journal, so that its node is
     * unknown. Replay of a worker's record also sets the time, because the worker may have been
     * lost before the restart. 0: there was no such worker. */
    mr_time unrecovered_lost_at;
};

struct memory_order {                          /* place/memory_order.c */
    struct ordered_value at[MEMORY_ORDER_MAX]; /* the oldest first */
    uint32_t count;
};

struct placements { /* index/placement_table.c */
    struct shape at[SHAPES_MAX];
    uint64_t clock;
};

/* place/place.c: the worker to which root tasks (tasks without inputs) are sent, and how much more
 * work may go there. */
struct sticky {
    uint32_t worker;
    uint64_t left_ns;
};

struct store_list { /* cluster/store.c */
    uint32_t count;
    /* grows when a store registers, and when the session of a store opens or closes */
    uint32_t changes;
    /* grows with `changes`, and when a store is lost or replaced */
    uint64_t events;
};

struct scan_ring { /* cluster/value_scan.c */
    struct scan *at;
    uint32_t max, first, count;
};

struct failures { /* state/failure.c: a ring by age, with an index by task */
    struct failure *at;
    uint32_t next;
    struct mr_index index; /* on the heap */
};

struct journal { /* task/journal.c; buffers on the heap */
    bool is_away;
    uint64_t sequence, acked, written_bytes, acked_bytes;
    struct pending *pending; /* ring */
    uint64_t pending_at, pending_end;
    uint32_t *unacked; /* ring: targets and impure tasks whose values Redis has not acknowledged */
    uint64_t unacked_at, unacked_end;
    struct mr_buf payload; /* payload of the record that is being written */
    struct mr_buf open;    /* rows of the open record of values; all are values of job open_job */
    uint64_t open_job;
    uint32_t open_count;
};

struct writers { /* task/epoch.c: incarnations of schedulers that wrote this journal, a ring */
    uint64_t id[WRITERS_MAX];
    uint32_t count;
};

struct replay { /* job/replay.c */
    bool is_active;
    struct mr_buf graph; /* pieces of a graph while the journal is read; on the heap */
    uint64_t job;        /* the job whose graph these pieces are */
    /* accepted jobs that could not be restored: how many, and the last one */
    uint64_t unread_count, unread_job;
    struct mr_error unread_why; /* the reason for the last one */
};

struct totals { /* counters since the start; `turns`: rounds of dispatch */
    uint64_t tasks_done, tasks_sent, steals, recomputed, turns;
    uint64_t placed_cached, placed_repaired, placed_scored, roots_held;
};

struct mr_sched {
    struct mr_sched_config config;
    mr_time now;
    uint64_t wall_offset; /* wall clock = now + this offset */
    bool is_recovered;    /* the whole journal was read */
    /* some workers that the journal names have neither registered again nor been lost */
    bool is_recovering;
    bool is_adopting; /* the values that a registering worker holds are being read */
    bool has_work;
    struct mr_sched_effects *fx; /* effects of the running step */
    struct due due;

    struct task *tasks;
    uint32_t *job_at; /* the job of each block of JOB_ALIGN task numbers */
    struct job *jobs;
    struct value *values;
    struct worker *workers;
    struct store *stores;
    struct op *ops;
    struct class *classes;
    uint32_t *stack; /* stack of the walks over graphs */
    uint32_t stack_count;

    struct sent_row *rows;
    struct mr_buf scratch; /* on the heap */
    /* bytes of the small value that a completion reports, while the completion is handled */
    struct mr_str passing;

    struct task_numbers numbers;
    struct job_list job_list;
    struct value_list value_list;
    struct block_cache blocks;
    struct worker_list worker_list;
    struct store_list store_list;
    struct op_list op_list;
    struct class_list class_list;
    struct failures failures;
    struct slot_time slot_time;
    struct totals totals;

    struct ready_queue queue;
    struct load_index load;
    struct placements placements;

    struct shared_keys keys;
    struct journal journal;
    struct writers writers;

    struct sticky sticky;
    struct quarantine quarantine;
    struct memory_retry memory_retry;
    struct memory_order memory_order;

    struct scan_ring scans;
    struct replay replay;
};
