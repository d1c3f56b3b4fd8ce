/* The scheduler core's state as a whole. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/cluster_tables.h"
#include "services/scheduler/core/state/effect.h"

struct mr_sched {
    struct mr_sched_config config;
    mr_time now;
    uint64_t wall_offset; /* wall = now + this */
    mr_time deadline;
    bool is_recovered, is_recovering, journal_is_away, has_work;

    struct task *tasks;
    uint32_t *job_at;   /* of JOB_ALIGN tasks each */
    uint32_t tasks_top; /* numbers used so far */
    struct extent *free_tasks;
    uint32_t free_count;
    uint64_t *queue[4]; /* bits of queued tasks, each level summing up the one below */
    uint32_t *rank_of;  /* of jobs with priorities: task -> place */
    uint32_t *ranked;   /* place -> task */
    uint32_t *join_source, *join_next, *join_head; /* of joined tasks: number + 1, 0: none */
    uint64_t queued;                               /* tasks in the queue */
    uint32_t *stack;                               /* for walks over graphs */
    uint32_t stack_count;

    struct job *jobs;
    uint32_t jobs_top, jobs_free, jobs_count, jobs_running, newest, oldest;
    uint32_t job_serial, job_number;
    uint32_t unplanned; /* a job that was accepted in the last step, or NONE */
    struct mr_index job_index, request_index, key_index;
    uint32_t *heap;
    uint32_t heap_count;
    struct level levels[LEVELS]; /* from the least priority on */
    uint64_t level_clock;        /* the highest of theirs, ever */
    uint32_t *sweeps;            /* jobs to be put away */
    uint32_t sweeps_count;
    mr_time job_deadline; /* no job has an earlier one */

    struct value *values;
    uint32_t values_top, values_free, values_count;
    struct block *blocks;
    uint32_t blocks_top, blocks_free, blocks_left;
    struct sent_row *rows;

    struct worker *workers;
    struct worker_facts *worker_facts;
    uint64_t *worker_ops; /* bits: worker x op */
    uint32_t worker_op_words, workers_top, workers_live, workers_usable, slots_usable;
    uint64_t slots_us; /* slots of connected workers times microseconds, up to `slots_at` */
    mr_time slots_at;
    uint32_t slots_connected;
    uint32_t workers_free_at;                          /* no place before this one is free */
    struct mr_index worker_names, worker_incarnations; /* of those whose place is not */
    uint32_t worker_number;
    uint32_t bucket_head[LOAD_BUCKETS], bucket_tail[LOAD_BUCKETS];
    uint64_t bucket_bits[LOAD_BUCKETS / 64];
    uint32_t told_worker; /* whose completions are read: it gets its place in there after them */
    uint32_t sticky_worker;
    uint64_t sticky_ns;
    mr_time lease_check_at, steal_at;

    struct op *ops;
    uint32_t ops_count;
    struct mr_index op_index;
    struct class *classes;
    uint32_t classes_top;
    uint32_t *active; /* classes with parked tasks */
    uint32_t active_count;
    char resource_names[RESOURCES][NAME_BYTES];
    uint32_t resources_count;
    uint32_t *suspects; /* to be run alone, a ring */
    uint32_t suspects_at, suspects_count;
    uint32_t *squeezed; /* found no room in memory, to be run again with less beside them; a ring */
    uint32_t squeezed_at, squeezed_count;
    struct drain drains[DRAINS_MAX]; /* oldest first */
    uint32_t drains_count;
    uint32_t quiet;    /* the store whose workers run one of those, 0: none */
    uint32_t alone;    /* that task, once it was sent; or NONE */
    bool is_disturbed; /* something else began to run there meanwhile */
    mr_time ghosts_at; /* workers of an earlier life may be lost, nobody knows where; 0: not so */
    uint32_t reserved; /* the worker that drains for one */

    struct store *stores;
    uint32_t stores_count;
    uint32_t stores_changes; /* one came, or its session came or went */
    uint64_t store_events;   /* one came or went, or lost objects */
    struct scan *scans;      /* a ring */
    uint32_t scans_max, scans_at, scans_count;

    struct story *stories; /* ring by age, found by task */
    uint32_t stories_at;
    struct mr_index story_index;

    uint64_t sequence, acked, written_bytes, acked_bytes;
    struct pending *pending; /* ring */
    uint64_t pending_at, pending_end;
    uint32_t *ring; /* targets and impure tasks whose values are not acknowledged */
    uint64_t ring_at, ring_end;

    uint64_t writers[WRITERS_MAX]; /* incarnations of schedulers, a ring: who wrote this journal */
    uint32_t writers_count;
    struct forgotten *forgotten; /* ring of the last ones */
    uint64_t forgotten_count;
    struct mr_buf scratch;
    struct mr_buf payload; /* of the record being written */
    struct mr_buf open;    /* rows of the record of values being written, of job open_job */
    uint64_t open_job;
    uint32_t open_count;
    struct mr_str passing; /* bytes of the value being accepted */
    uint64_t recovered_job;
    uint64_t jobs_unread, unread_job; /* accepted, and the journal does not give them back */
    struct mr_error unread_why;       /* of the last of them */
    bool is_replaying, is_adopting;
    mr_time progress_at, keep_at;
    struct mr_buf recovered; /* graph pieces while the journal is read */
    uint64_t tasks_done, tasks_sent, steals, recomputed, turns;
    struct shape shapes[SHAPES_MAX];
    uint64_t shapes_clock;
    uint64_t placed_cached, placed_repaired, placed_scored, roots_held;
    struct mr_sched_effects *fx; /* of the step that runs */
};
