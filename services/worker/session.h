/* WorkerSession as the core sees it: the messages of proto/millrace/v1/session.proto as plain
 * columns. The shell fills them from the wire, the simulator from the scheduler's core; all memory
 * is borrowed for the call. Field i of each column is row i; `runs` says which job the rows belong
 * to. Knows no encoding. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "base/time.h"

struct mr_ws_run {
    mr_job_id job;
    uint32_t count;
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
    const uint32_t *attempt;
    const uint32_t *op; /* in the session's table, from 1 */
    struct mr_str args;
    const uint32_t *args_bytes;
    const uint32_t *inputs_count;
    const uint32_t *inputs;
    const uint32_t *last_use; /* positions in `inputs`, ascending */
    const int32_t *priority;  /* one a task, or NULL: all 0 */
    const uint32_t *order;
    const struct mr_ws_extra *extras; /* rows ascending */
    uint32_t runs_count;
    uint32_t count;
    uint32_t inputs_total;
    uint32_t last_use_count;
    uint32_t extras_count;
};

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
    const mr_job_id *forget_jobs;
    uint32_t forget_jobs_count;
    bool drain;
    uint64_t heard;
};

enum mr_ws_outcome { /* numbers of the wire */
    MR_WS_OK = 0,
    MR_WS_ERROR = 1,
    MR_WS_CANCELLED = 2,
    MR_WS_TIMEOUT = 3,
    MR_WS_BAD_ARGUMENT = 4,
    MR_WS_LOST_INPUT = 5,
    MR_WS_RETURNED = 6,
};

struct mr_ws_failure {
    uint32_t row;
    int code; /* MR_E… */
    struct mr_str message;
    struct mr_str arguments;
    struct mr_str log;
};

struct mr_ws_completed {
    const struct mr_ws_run *runs;
    const uint32_t *index;
    const uint32_t *attempt;
    const uint8_t *outcome; /* enum mr_ws_outcome; NULL: all OK */
    const uint32_t *inline_bytes;
    struct mr_str inlined;
    const uint64_t *object_maker; /* one a row that is OK and has inline_bytes 0 */
    const uint64_t *object_number;
    const uint64_t *object_bytes;
    mr_time base_ns; /* 0 in what is lost or never started: then so are its spans */
    const uint64_t *started_ns;
    const uint64_t *duration_ns;
    const uint64_t *cpu_ns;
    const uint32_t *slot;
    const struct mr_ws_failure *failures;
    uint32_t runs_count;
    uint32_t count;
    uint32_t objects_count;
    uint32_t failures_count;
};

struct mr_ws_missing {
    mr_job_id job;
    uint32_t index;
    uint32_t attempt;
    uint32_t input;
    struct mr_str why;
};

struct mr_ws_heartbeat {
    uint64_t sequence;
    mr_time time_ns;
    uint64_t memory_used_bytes;
    uint64_t held_bytes;
    uint32_t queued;
    uint32_t running;
    uint64_t tasks_started;
    uint64_t tasks_done;
    struct mr_ws_refs running_tasks;
    const uint64_t *running_ns;
    mr_duration queue_ns;
};

/* The part of Register that the core knows; the shell adds what describes the process. */
struct mr_ws_register {
    uint64_t incarnation;
    uint32_t epoch;
    mr_time time_ns;
    struct mr_ws_completed holding;
    struct mr_ws_refs queued;
};

struct mr_ws_up { /* WorkerMessage */
    const struct mr_ws_register *reg;
    const struct mr_ws_heartbeat *heartbeat;
    struct mr_ws_completed completed;
    struct mr_ws_refs given;
    struct mr_ws_refs started;
    struct mr_ws_refs unknown;
    const struct mr_ws_missing *missing;
    uint32_t missing_count;
    bool leaving;
};

/* Do the columns of a message from outside belong together: counts, sums, row numbers? The shell
 * asks before it hands a message to the core. MR_EFORMAT names the column. */
int mr_ws_down_check(const struct mr_ws_down *m, struct mr_error *e);
