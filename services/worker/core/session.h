/* WorkerSession as the core sees it: the messages of proto/millrace/v1/session.proto as plain
 * columns. The shell fills them from the wire, the simulator from the scheduler's core; all memory
 * is borrowed for the call. Field i of each column is row i; `runs` says which job the rows belong
 * to. Here: from scheduler to worker; session_up.h: back. Knows no encoding. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "base/time.h"

struct mr_ws_run {
    mr_job_id job;
    uint32_t count;
    bool unfused; /* of tasks: each is run and reported by itself */
};

struct mr_ws_refs { /* TaskRefs */
    const struct mr_ws_run *runs;
    const uint32_t *index;
    const uint32_t *attempt;
    uint32_t runs_count;
    uint32_t count;
};

struct mr_ws_resource {
    struct mr_str name;
    uint64_t micro; /* millionths: the wire's double, rounded */
};

struct mr_ws_node {
    struct mr_str address; /* gRPC address of the node's store */
    mr_node_id id;
};

struct mr_ws_registered {
    uint64_t incarnation;
    uint32_t epoch;
    uint64_t scheduler; /* its incarnation */
    mr_duration heartbeat_ns;
    mr_duration lease_ns;
    struct mr_ws_refs adopt;
    struct mr_ws_refs keep;
};

struct mr_ws_values {
    const struct mr_ws_run *runs;
    const uint32_t *index;
    const uint32_t *inline_bytes; /* 0: an object */
    struct mr_str inlined;
    const uint64_t *object_maker; /* from here: one a row that is an object */
    const uint64_t *object_number;
    const uint64_t *object_bytes;
    const uint32_t *object_node; /* in the session's table, from 1 */
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
    mr_duration timeout_ns; /* 0: none */
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
    const uint32_t *op;      /* in the session's table, from 1; NULL: all op_of_all */
    uint32_t op_of_all;
    struct mr_str args;
    const uint32_t *args_bytes;
    const uint32_t *inputs_count; /* NULL: all 0 */
    const uint32_t *inputs;
    const uint32_t *last_use;         /* positions in `inputs`, ascending */
    const int32_t *priority;          /* one a task, or NULL: all 0 */
    const uint32_t *order;            /* NULL: as the index */
    const uint32_t *uses;             /* one a task, or NULL: all 0 */
    const struct mr_ws_extra *extras; /* rows ascending */
    uint32_t runs_count;
    uint32_t count;
    uint32_t inputs_total;
    uint32_t last_use_count;
    uint32_t extras_count;
};

static inline uint32_t mr_ws_cell(const uint32_t *column, uint32_t row, uint32_t usual)
{
    return column ? column[row] : usual;
}

static inline uint32_t mr_ws_attempt(const struct mr_ws_tasks *m, uint32_t row)
{
    return mr_ws_cell(m->attempt, row, 1);
}

static inline uint32_t mr_ws_op(const struct mr_ws_tasks *m, uint32_t row)
{
    return mr_ws_cell(m->op, row, m->op_of_all);
}

struct mr_ws_down { /* SchedulerMessage; applied in this order */
    const struct mr_ws_registered *registered;
    const struct mr_str *ops; /* names; they get the next numbers */
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

/* Do the columns of a message from outside belong together: counts, sums, row numbers? The shell
 * asks before it hands a message to the core. MR_EFORMAT names the column. */
int mr_ws_down_check(const struct mr_ws_down *m, struct mr_error *e);
