/* Queries of the shell between steps. Answers are lent until the next step. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "graph/graph.h"
#include "services/scheduler/core/state/types.h"

struct mr_sched_error { /* why a task, or a job, failed */
    uint32_t index;     /* MR_NODE_NONE: no task's failure (cancelled, deadline) */
    int code;           /* google.rpc.Code */
    uint32_t attempts;
    uint32_t fallen; /* tasks that failed with it */
    uint32_t op;
    struct mr_str message;
    struct mr_str arguments;
    struct mr_str worker; /* name */
    struct mr_str log;
};

struct mr_sched_job_info {
    mr_job_id id;
    mr_job_id parent;        /* 0: none */
    enum mr_job_state state; /* the announced state, which the journal has */
    bool accepted;           /* the journal has it */
    struct mr_graph *graph;  /* not const: mr_graph_find builds its index lazily */
    uint32_t counts[MR_TASK_STATES];
    uint32_t joined;
    uint32_t given;     /* nodes that are not tasks, but had values from the start */
    uint32_t skipped;   /* released tasks: in rounds that did not run */
    uint32_t abandoned; /* released tasks: not run, because what needed them failed */
    uint64_t retried;
    uint64_t recomputed;
    uint64_t created_wall_ns, started_wall_ns, finished_wall_ns;
    uint64_t event_sequence; /* event number of its last state change */
    bool has_error;
    struct mr_sched_error error;
};

struct mr_sched_task_info {
    enum mr_task_state state;
    uint32_t attempt; /* number of the last one, 0: none yet */
    uint32_t op;      /* 0: not a task */
    /* slot of the worker that it was sent to, or that made the value; UINT32_MAX: none */
    uint32_t worker;
    bool is_sent;
    bool is_skipped;   /* released: the loop did not run its round */
    bool is_abandoned; /* released without having run, because what needed it failed */
    uint32_t waiting_inputs;
    uint32_t retries_left;
    mr_time ready, sent; /* of the last attempt */
    bool has_error;
    struct mr_sched_error error;
    uint32_t cause; /* node whose failure keeps it from a value; MR_NODE_NONE: none, or itself */
    struct mr_sched_error cause_error; /* an empty message: no longer kept */
};

enum mr_sched_value_kind {
    MR_SCHED_VALUE_NONE,   /* there is none, or none any more */
    MR_SCHED_VALUE_INLINE, /* its bytes (a pack) are appended */
    MR_SCHED_VALUE_OBJECT,
    MR_SCHED_VALUE_AWAY,    /* small, at its worker only; MR_SCHED_WANT fetches it */
    MR_SCHED_VALUE_UNACKED, /* it exists, but Redis has not acknowledged its record */
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
    uint32_t workers;                                 /* workers that offer it */
    uint64_t tasks, wall_ns, cpu_ns, queue_ns, bytes; /* over all jobs since the start */
    uint64_t estimate_ns;                             /* 0: none has finished yet */
};

struct mr_sched_totals {
    uint32_t epoch, workers, slots, stores;
    uint64_t jobs_running, tasks_done, tasks_sent, steals, recomputed;
    uint64_t placed_cached, placed_repaired, placed_scored, roots_held; /* telemetry/metrics.c */
    uint64_t journal_sequence, journal_acked;
    bool journal_is_away;
    bool is_recovering; /* some workers that the journal knows have not registered again */
    bool is_paused;     /* dispatch waits for the journal */
};

bool mr_sched_job(const struct mr_sched *s, mr_job_id job, struct mr_sched_job_info *out);
/* When a job of this id was forgotten (wall clock); 0: unknown, or too long ago. */
uint64_t mr_sched_forgotten(const struct mr_sched *s, mr_job_id job);
/* True: ids of this tag come from a scheduler whose journal is lost (task/epoch.c). */
bool mr_sched_is_lost_journal(const struct mr_sched *s, uint32_t tag);
uint32_t mr_sched_epoch(const struct mr_sched *s);
mr_job_id mr_sched_job_newest(const struct mr_sched *s);               /* 0: none */
mr_job_id mr_sched_job_older(const struct mr_sched *s, mr_job_id job); /* 0: no older one */
bool mr_sched_task(
    const struct mr_sched *s, mr_job_id job, uint32_t index, struct mr_sched_task_info *out);
/* How a loop ended; false: the loop, or the job, has not ended. */
bool mr_sched_loop(
    const struct mr_sched *s, mr_job_id job, uint32_t loop, uint32_t *rounds, bool *by_max);
/* The value of a node. Appends the bytes of a small one to `bytes`, unless that is NULL. */
bool mr_sched_value(const struct mr_sched *s, mr_job_id job, uint32_t index, struct mr_buf *bytes,
    struct mr_sched_value *out);

bool mr_sched_worker(const struct mr_sched *s, uint32_t slot, struct mr_sched_worker_info *out);
uint32_t mr_sched_worker_slots(const struct mr_sched *s); /* slots are below this */
/* True: fewer tasks were sent than workers have slots. With more than 64 workers always false,
 * since counting them takes too long. */
bool mr_sched_has_idle_slots(const struct mr_sched *s);
uint32_t mr_sched_ops_count(const struct mr_sched *s); /* numbers 1..count */
struct mr_str mr_sched_op_name(const struct mr_sched *s, uint32_t op);
bool mr_sched_op(const struct mr_sched *s, uint32_t op, struct mr_sched_op_info *out);
struct mr_str mr_sched_resource_name(const struct mr_sched *s, uint32_t kind);
uint32_t mr_sched_stores_count(const struct mr_sched *s); /* numbers 1..count, never reused */
/* Changes when a store registers, or its session opens or closes. */
uint32_t mr_sched_stores_changes(const struct mr_sched *s);
bool mr_sched_store(const struct mr_sched *s, uint32_t number, uint64_t *incarnation,
    struct mr_str *node, struct mr_str *address, bool *is_alive);
void mr_sched_totals(const struct mr_sched *s, struct mr_sched_totals *out);
/* How many accepted jobs could not be restored from the journal; the last one, and why. */
uint64_t mr_sched_unread(const struct mr_sched *s, mr_job_id *job, struct mr_error *why);
