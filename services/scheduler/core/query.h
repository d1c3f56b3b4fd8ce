/* Reads the core's state. Texts and graphs in answers are lent until the next mr_sched_step. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "graph/graph.h"
#include "services/scheduler/core/state/types.h"

struct mr_sched_error { /* why a task, or a job, failed */
    uint32_t index;     /* node of the failed task; MR_NODE_NONE: cancelled, or deadline missed */
    int code;           /* google.rpc.Code */
    uint32_t attempts;
    uint32_t fallen; /* of a job: tasks that failed because an input failed */
    uint32_t op;
    struct mr_str message;
    struct mr_str arguments;
    struct mr_str worker; /* the worker's name */
    struct mr_str log;
};

struct mr_sched_job_info {
    mr_job_id id;
    mr_job_id parent;        /* 0: none */
    enum mr_job_state state; /* the announced state: the journal has the record of it */
    bool accepted;           /* the journal has the job's graph */
    struct mr_graph *graph;  /* not const: mr_graph_find builds its index lazily */
    uint32_t counts[MR_TASK_STATES];
    uint32_t joined;    /* nodes that take another job's value, or a value persisted earlier */
    uint32_t given;     /* nodes that are not tasks: they had values from the start */
    uint32_t skipped;   /* tasks that were released because their loop round did not run */
    uint32_t abandoned; /* tasks released without a value: their consumers failed */
    uint64_t retried;
    uint64_t recomputed;
    uint64_t created_wall_ns, started_wall_ns, finished_wall_ns;
    uint64_t event_sequence; /* event number of its last state change */
    bool has_error;
    struct mr_sched_error error;
};

struct mr_sched_task_info {
    enum mr_task_state state;
    uint32_t attempt; /* number of the last attempt; 0: none yet */
    uint32_t op;      /* number of the operator; 0: the node is not a task */
    /* slot of the worker that the task was sent to or that made the value; UINT32_MAX: none */
    uint32_t worker;
    bool is_sent;
    bool is_skipped;   /* the task was released, because the loop did not run its round */
    bool is_abandoned; /* released without a value: its consumers failed */
    uint32_t waiting_inputs;
    uint32_t retries_left;
    mr_time ready, sent; /* times of the last attempt */
    bool has_error;
    struct mr_sched_error error;
    /* the other node whose failure is why this task has no value; MR_NODE_NONE: there is none */
    uint32_t cause;
    struct mr_sched_error cause_error; /* failure of `cause`; all 0: it is no longer kept */
};

enum mr_sched_value_kind {
    MR_SCHED_VALUE_NONE,   /* the value never existed or was released */
    MR_SCHED_VALUE_INLINE, /* a small value; its pack (base/pack.h) was appended to `bytes` */
    MR_SCHED_VALUE_OBJECT,
    MR_SCHED_VALUE_AWAY,    /* a small value that only a worker has; MR_SCHED_WANT fetches it */
    MR_SCHED_VALUE_UNACKED, /* the value exists, but Redis has not acknowledged its record */
};

struct mr_sched_value {
    enum mr_sched_value_kind kind;
    mr_object_id object;
    uint64_t bytes;
    uint32_t store; /* the store's number; 0: unknown */
    uint32_t worker;
};

struct mr_sched_worker_info {
    uint64_t incarnation;
    struct mr_str name, node;
    bool is_connected, is_retiring;
    uint32_t slots, sent, running;
    uint64_t memory_bytes, memory_used_bytes, held_bytes;
    uint64_t tasks_started, tasks_done;
    uint64_t queue_ns;
    mr_time last_heard;
    uint64_t store;
};

struct mr_sched_op_info {
    struct mr_str name;
    bool deterministic, by_reference, long_running;
    uint32_t workers; /* workers that offer the operator */
    /* sums over all jobs since the scheduler's start */
    uint64_t tasks, wall_ns, cpu_ns, queue_ns, bytes;
    uint64_t estimate_ns; /* run time of one task; 0: none has finished yet */
};

struct mr_sched_totals {
    uint32_t epoch, workers, slots, stores;
    uint64_t jobs_running, tasks_done, tasks_ready, tasks_sent, steals, recomputed;
    /* see telemetry/metrics.c */
    uint64_t placed_cached, placed_repaired, placed_scored, roots_held;
    uint64_t journal_sequence, journal_acked;
    bool journal_is_away;
    bool is_recovering; /* some workers that the journal names have not registered again */
    bool is_paused;     /* no tasks are sent until Redis has acknowledged more of the journal */
};

bool mr_sched_job(const struct mr_sched *s, mr_job_id job, struct mr_sched_job_info *out);
/* Returns the wall-clock time when the job was forgotten; 0: never, or too long ago. */
uint64_t mr_sched_forgotten(const struct mr_sched *s, mr_job_id job);
/* True: ids with this tag (the upper half of an id) come from a scheduler whose journal is lost
 * (task/epoch.c). False: they do not, or this is unknown. */
bool mr_sched_is_lost_journal(const struct mr_sched *s, uint32_t tag);
uint32_t mr_sched_epoch(const struct mr_sched *s);
/* Returns the newest job's id; 0: there are no jobs. */
mr_job_id mr_sched_job_newest(const struct mr_sched *s);
/* Returns the job accepted just before `job`; 0: there is no older job, or no job `job`. */
mr_job_id mr_sched_job_older(const struct mr_sched *s, mr_job_id job);
bool mr_sched_task(
    const struct mr_sched *s, mr_job_id job, uint32_t index, struct mr_sched_task_info *out);
/* Stores in *rounds how many rounds of the loop ran, and in *by_max whether their maximum ended the
 * loop. False: there is no such loop, its job has not ended, or the job ended before the loop. */
bool mr_sched_loop(
    const struct mr_sched *s, mr_job_id job, uint32_t loop, uint32_t *rounds, bool *by_max);
/* Describes the value of a node in *out. Appends the bytes of a small value to `bytes`, unless
 * `bytes` is NULL. False: there is no such node. */
bool mr_sched_value(const struct mr_sched *s, mr_job_id job, uint32_t index, struct mr_buf *bytes,
    struct mr_sched_value *out);

bool mr_sched_worker(const struct mr_sched *s, uint32_t slot, struct mr_sched_worker_info *out);
/* The scheduler's clock minus the worker's. */
int64_t mr_sched_clock_offset(const struct mr_sched *s, uint32_t slot);
uint32_t mr_sched_worker_slots(const struct mr_sched *s); /* larger than every worker's `slot` */
/* True: the connected workers together have more slots than tasks. Always false with more than 64
 * workers, because counting the tasks would take too long. */
bool mr_sched_has_idle_slots(const struct mr_sched *s);
/* Returns a count n: the operators have the numbers 1 to n. */
uint32_t mr_sched_ops_count(const struct mr_sched *s);
struct mr_str mr_sched_op_name(const struct mr_sched *s, uint32_t op);
bool mr_sched_op(const struct mr_sched *s, uint32_t op, struct mr_sched_op_info *out);
struct mr_str mr_sched_resource_name(const struct mr_sched *s, uint32_t kind);
/* Returns a count n: the stores have the numbers 1 to n, which are never given again. */
uint32_t mr_sched_stores_count(const struct mr_sched *s);
/* Returns a number that changes when a store registers, and when its session opens or closes. */
uint32_t mr_sched_stores_changes(const struct mr_sched *s);
bool mr_sched_store(const struct mr_sched *s, uint32_t number, uint64_t *incarnation,
    struct mr_str *node, struct mr_str *address, bool *is_alive);
void mr_sched_totals(const struct mr_sched *s, struct mr_sched_totals *out);
/* Returns how many accepted jobs could not be restored from the journal. Stores the last of these
 * jobs in *job and the reason in *why. */
uint64_t mr_sched_unread(const struct mr_sched *s, mr_job_id *job, struct mr_error *why);
