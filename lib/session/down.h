/* The messages that the scheduler sends to a worker on the gRPC stream WorkerSession:
 * SchedulerMessage and its parts. proto/millrace/v1/session.proto explains the fields; refs.h
 * explains rows and columns. The structs borrow all memory. A message that the scheduler's core
 * makes points into the core's batch. A decoded message points into its bytes and into the memory
 * that the caller gave to the decoder. */
#pragma once

#include "session/refs.h"

struct mr_ws_node {
    struct mr_str address; /* gRPC address of the node's object store; "": not known yet */
    mr_node_id id;
};

struct mr_ws_registered {
    uint64_t incarnation; /* of the worker */
    uint32_t epoch;       /* of the scheduler */
    uint64_t scheduler;   /* incarnation of the scheduler */
    mr_duration heartbeat_ns;
    mr_duration lease_ns;
    mr_time time_ns; /* present time of the scheduler's clock */
    struct mr_str cluster_id;
    struct mr_ws_refs adopt;
    struct mr_ws_refs keep;
};

struct mr_ws_values {
    const struct mr_ws_run *runs;
    const uint32_t *index;
    const uint32_t *inline_bytes; /* 0: the value is an object */
    struct mr_str inlined;
    const uint64_t *object_maker; /* this column and the next three have one row for each value that
                                   * is an object */
    const uint64_t *object_number;
    const uint64_t *object_bytes;
    const uint32_t *object_node; /* number of the node in the session's table of nodes, from 1 */
    uint32_t runs_count;
    uint32_t count;
    uint32_t objects_count;
};

struct mr_ws_extra { /* TaskExtra */
    uint32_t row;
    bool long_running;
    bool alone;
    bool want_object;
    bool persist;
    mr_duration timeout_ns; /* 0: no timeout */
    const struct mr_ws_resource *resources;
    uint32_t resources_count;
    struct mr_str key;
    struct mr_str persist_name;
    struct mr_str definition; /* 16 bytes or none */
};

struct mr_ws_tasks {
    const struct mr_ws_run *runs;
    const uint32_t *index;
    const uint32_t *attempt; /* NULL: all 1 */
    const uint32_t *op;      /* number in the session's table of operators, from 1; NULL: all
                              * op_of_all */
    uint32_t op_of_all;
    struct mr_str args;
    const uint32_t *args_bytes;
    const uint32_t *inputs_count; /* NULL: all 0 */
    const uint32_t *inputs;
    const uint32_t *last_use;         /* positions in `inputs`, ascending */
    const int32_t *priority;          /* one for each task; NULL: all 0 */
    const uint32_t *order;            /* NULL: equal to `index` */
    const uint32_t *uses;             /* one for each task; NULL: all 0 */
    const struct mr_ws_extra *extras; /* ascending by row */
    uint32_t runs_count;
    uint32_t count;
    uint32_t inputs_total;
    uint32_t last_use_count;
    uint32_t extras_count;
};

static inline uint32_t mr_ws_attempt(const struct mr_ws_tasks *m, uint32_t row)
{
    return mr_ws_cell(m->attempt, row, 1);
}

static inline uint32_t mr_ws_op(const struct mr_ws_tasks *m, uint32_t row)
{
    return mr_ws_cell(m->op, row, m->op_of_all);
}

struct mr_ws_down { /* SchedulerMessage */
    const struct mr_ws_registered *registered;
    const struct mr_str *ops; /* names of operators, which get the next numbers in the session's
                               * table */
    const struct mr_ws_node *nodes;
    uint32_t ops_count;
    uint32_t nodes_count;
    struct mr_ws_values values;
    struct mr_ws_tasks tasks;
    struct mr_ws_refs cancel;
    struct mr_ws_refs release;
    struct mr_ws_refs steal;
    struct mr_ws_refs fetch;
    struct mr_ws_refs leave;
    const mr_job_id *forget_jobs;
    uint32_t forget_jobs_count;
    bool drain;
    uint64_t heard;
};

/* Checks that the columns of a message belong together: sums, row numbers, limits. MR_EFORMAT: they
 * do not; the error text names the column. The decoder calls this function, and the worker's core
 * relies on the check. */
int mr_ws_down_check(const struct mr_ws_down *m, struct mr_error *e);
