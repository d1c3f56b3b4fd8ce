/* The scheduler core's state as a whole. For the core's own files only. The tables that every layer
 * reads stand by themselves, so that a row is s->tasks[task]; what belongs to one module stands in
 * that module's struct. Everything is in arrays of the arena, except where a comment says
 * otherwise. */
#pragma once

#include "services/scheduler/core/state/cluster_tables.h"
#include "services/scheduler/core/state/effect.h"

struct task_numbers { /* job/plan.c: numbers of tasks, in whole words of the ready queue */
    uint32_t top;     /* numbers used so far */
    struct extent *free;
    uint32_t free_count;
};

struct ready_queue {   /* index/ready_queue.c */
    uint64_t *bits[4]; /* a bit for each queued task; each level sums up the one below */
    uint32_t *rank_of; /* of jobs with priorities: task -> place */
    uint32_t *ranked;  /* place -> task */
    uint64_t count;    /* tasks in the queue */
    uint32_t *heap;    /* jobs with queued tasks, the one to serve first on top */
    uint32_t heap_count;
    struct level levels[LEVELS]; /* from the least priority on */
    uint64_t clock;              /* the highest of theirs, ever */
};

struct shared_keys {                /* task/shared_key.c */
    uint32_t *source, *next, *head; /* of tasks with another's value: number + 1, 0: none */
    struct mr_index index;          /* by namespace and key; on the heap */
};

struct job_list { /* index/job_index.c, job/ */
    uint32_t top, free, count, running, newest, oldest;
    uint32_t serial, number;
    uint32_t unplanned;                /* a job that was accepted in the last step, or NONE */
    struct mr_index by_id, by_request; /* on the heap */
    uint32_t *sweeps;                  /* jobs to be put away */
    uint32_t sweeps_count;
    struct forgotten *forgotten; /* ring of the last ones */
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
    uint64_t *op_bits; /* worker x op */
    uint32_t op_words, top, live, number;
    uint32_t free_at;                        /* no place before this one is free */
    struct mr_index by_name, by_incarnation; /* of workers that are known; on the heap */
};

struct load_index { /* index/load_index.c: buckets of workers that may be given work */
    uint32_t head[LOAD_BUCKETS], tail[LOAD_BUCKETS];
    uint64_t bits[LOAD_BUCKETS / 64];
    uint32_t workers, slots; /* in the buckets */
    /* the worker whose completions are being read: it is sorted in after them */
    uint32_t held_out;
};

struct slot_time { /* state/run_time.c: slots of connected workers times microseconds */
    uint64_t us;   /* up to `at` */
    mr_time at;
    uint32_t slots; /* connected now */
};

struct due { /* when the core next wants time, and for what */
    mr_time leases, steal, progress, keep;
    mr_time jobs; /* no job has an earlier deadline */
};

struct op_list { /* index/op_index.c */
    uint32_t count;
    struct mr_index index; /* on the heap */
};

struct class_list { /* index/placement_class.c */
    uint32_t top;
    uint32_t *active; /* classes with parked tasks */
    uint32_t active_count;
    char resource_names[RESOURCES][NAME_BYTES];
    uint32_t resources_count;
};

struct task_ring { /* index/retry_rings.c; as long as there may be tasks */
    uint32_t *at;
    uint32_t first, count;
};

struct quarantine {        /* place/quarantine.c */
    struct task_ring ring; /* quarantined tasks */
    uint32_t reserved;     /* the worker that is emptied for one of them, or NONE */
};

struct memory_retry {      /* place/memory_retry.c */
    struct task_ring ring; /* tasks that found no room in memory */
    /* the store of the node that is reserved for one of them, 0: none */
    uint32_t reserved_store;
    uint32_t reserved_task; /* that task, once it is sent; or NONE */
    bool is_disturbed;      /* another task began to run on that node */
    /* a worker of an earlier life was lost, on an unknown node; 0: none */
    mr_time unrecovered_lost_at;
};

struct memory_order {                          /* place/memory_order.c */
    struct ordered_value at[MEMORY_ORDER_MAX]; /* oldest first */
    uint32_t count;
};

struct placements { /* index/placement_table.c */
    struct shape at[SHAPES_MAX];
    uint64_t clock;
};

struct sticky { /* place/place.c: where root tasks go, and for how much more work */
    uint32_t worker;
    uint64_t left_ns;
};

struct store_list { /* cluster/store.c */
    uint32_t count;
    uint32_t changes; /* grows when a store comes, or its session opens or closes */
    uint64_t events;  /* grows when a store comes, goes or loses objects */
};

struct scan_ring { /* cluster/value_scan.c */
    struct scan *at;
    uint32_t max, first, count;
};

struct failures { /* state/failure.c: a ring by age, found by task */
    struct failure *at;
    uint32_t next;
    struct mr_index index; /* on the heap */
};

struct journal { /* task/journal.c; buffers on the heap */
    bool is_away;
    uint64_t sequence, acked, written_bytes, acked_bytes;
    struct pending *pending; /* ring */
    uint64_t pending_at, pending_end;
    uint32_t *unacked; /* ring: targets and impure tasks whose values are not acknowledged */
    uint64_t unacked_at, unacked_end;
    struct mr_buf payload; /* of the record being written */
    struct mr_buf open;    /* rows of the record of values being written, of job open_job */
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
    uint64_t job;        /* whose they are */
    /* jobs that were accepted and could not be read back; the last one */
    uint64_t unread_count, unread_job;
    struct mr_error unread_why; /* of that one */
};

struct totals { /* since the start */
    uint64_t tasks_done, tasks_sent, steals, recomputed, turns;
    uint64_t placed_cached, placed_repaired, placed_scored, roots_held;
};

struct mr_sched {
    struct mr_sched_config config;
    mr_time now;
    uint64_t wall_offset; /* wall = now + this */
    bool is_recovered;    /* the journal is read */
    /* some workers of the earlier life have neither returned nor been lost */
    bool is_recovering;
    bool is_adopting; /* the values of a returning worker are being read */
    bool has_work;
    struct mr_sched_effects *fx; /* of the step that runs */
    struct due due;

    struct task *tasks;
    uint32_t *job_at; /* of JOB_ALIGN tasks each */
    struct job *jobs;
    struct value *values;
    struct worker *workers;
    struct store *stores;
    struct op *ops;
    struct class *classes;
    uint32_t *stack; /* for walks over graphs */
    uint32_t stack_count;

    struct sent_row *rows;
    struct mr_buf scratch; /* on the heap */
    struct mr_str passing; /* bytes of the value that is being accepted */

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
