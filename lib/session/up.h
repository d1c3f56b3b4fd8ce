/* The messages that a worker sends to the scheduler on the gRPC stream WorkerSession: WorkerMessage
 * and its parts. proto/millrace/v1/session.proto explains the fields; refs.h explains rows and
 * columns. The structs borrow all memory. A message that the worker's core makes is valid until the
 * core's next step. A decoded message points into its bytes and into the memory that the caller
 * gave to the decoder. */
#pragma once

#include "session/refs.h"

enum mr_outcome { /* Outcome: how an attempt of a task ended */
    MR_OUTCOME_OK,
    MR_OUTCOME_ERROR,
    MR_OUTCOME_CANCELLED,
    MR_OUTCOME_TIMEOUT,
    MR_OUTCOME_BAD_ARGUMENT,
    MR_OUTCOME_LOST_INPUT,
    MR_OUTCOME_RETURNED,
    MR_OUTCOME_USED_UP, /* a success; all uses of the value ran on this worker, which has dropped
                         * the value */
    MR_OUTCOME_NO_ROOM, /* the failure's message says what needed the memory */
    MR_OUTCOME_LOST,    /* never sent; the scheduler uses it in the spans of attempts whose worker
                         * was lost */
};

struct mr_ws_failure { /* TaskFailure */
    uint32_t row;
    int code; /* google.rpc.Code */
    struct mr_str message;
    struct mr_str arguments;
    struct mr_str log;
};

struct mr_ws_completed {
    struct mr_ws_refs tasks;
    const uint32_t *outcome;      /* enum mr_outcome; NULL: all OK */
    const uint32_t *inline_bytes; /* NULL: all 0 */
    struct mr_str inlined;
    /* This column and the next two have one row for each task that is OK and has inline_bytes 0. */
    const uint64_t *object_maker;
    const uint64_t *object_number;
    const uint64_t *object_bytes;
    uint32_t objects_count;
    mr_time base_ns; /* a time of the worker's clock; `started_ns` is relative to it */
    /* ns after base_ns. This column and the next three may be NULL: all 0 */
    const uint64_t *started_ns;
    const uint64_t *duration_ns;
    const uint64_t *cpu_ns;
    const uint32_t *slot;
    /* Each of these columns may be NULL: all 0. */
    const uint64_t *input_ns, *output_ns, *late_ns, *waited_ns, *delayed_ns, *room_ns, *restore_ns;
    const uint64_t *training;             /* account/training_shares.h */
    const struct mr_ws_failure *failures; /* ascending by row */
    uint32_t failures_count;
};

struct mr_ws_missing { /* MissingInput */
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
    const uint64_t *running_ns; /* one for each row of running_tasks; NULL: not known */
    mr_duration queue_ns, cpu_ns;
    uint64_t received_bytes, sent_bytes; /* of gRPC messages */
};

struct mr_ws_operator { /* OpDescriptor */
    struct mr_str name;
    struct mr_str info_json; /* an OpInfo as JSON; "": the scheduler knows the operator already */
    uint32_t args_min, args_max;
    uint64_t cost_ns;
    bool deterministic;
    bool by_reference;
    bool passes; /* the result may contain an argument unchanged */
    bool long_running;
};

struct mr_ws_register {
    /* Facts of the worker's process; the worker's shell fills these members. */
    uint32_t protocol_version, layout_version;
    struct mr_str name, node;
    uint64_t store; /* incarnation of the node's object store; 0: the worker has no store */
    struct mr_str store_address;
    struct mr_str address; /* address of the worker's gRPC port; "": no port */
    struct mr_str version;
    uint32_t slots;
    uint32_t pid, processors; /* processors: that the process may use; 0: not known */
    mr_time began_ns;         /* when the process began, by the worker's clock; 0: not known */
    uint64_t memory_bytes;
    const struct mr_ws_resource *resources;
    const struct mr_str *runtimes;
    const struct mr_ws_operator *ops;
    uint32_t resources_count, runtimes_count, ops_count;
    bool has_suspects;          /* true: the last process with this name crashed */
    struct mr_ws_refs suspects; /* the tasks that ran when that process crashed, perhaps none */

    /* What the worker's core knows. */
    uint64_t incarnation; /* incarnation of the worker; 0: the scheduler has not given one yet */
    uint32_t epoch;       /* the highest epoch that a scheduler has given to this worker */
    uint64_t scheduler;   /* incarnation of the scheduler that gave `epoch`; 0: none did */
    mr_time time_ns;      /* present time of the worker's clock */
    struct mr_ws_completed holding;
    struct mr_ws_refs queued;
};

struct mr_ws_log { /* TaskLog: the output of a task since its last TaskLog */
    mr_job_id job;
    uint32_t index;
    uint32_t attempt;
    struct mr_str text;
    uint64_t lost; /* bytes before `text` that were not kept */
};

struct mr_ws_up {                     /* WorkerMessage */
    const struct mr_ws_register *reg; /* NULL except in the first message of a session */
    const struct mr_ws_heartbeat *heartbeat;
    struct mr_ws_completed completed;
    struct mr_ws_refs given;
    struct mr_ws_refs started;
    struct mr_ws_refs unknown;
    struct mr_ws_refs left_slot;
    const struct mr_ws_missing *missing;
    const struct mr_ws_log *logs;
    uint32_t missing_count, logs_count;
    const mr_time *received_ns; /* when messages with tasks came, by the worker's clock */
    uint32_t received_count;
    uint64_t received_first; /* number of the first of these messages */
    /* the process was paused between these two times of the worker's clock; 0: it was not */
    mr_time paused_from_ns, paused_until_ns;
    bool leaving;
};

/* Checks that the columns of a message belong together, that inline values are packs (base/pack.h),
 * and that a Register is within the limits. MR_EFORMAT, MR_EINVAL and MR_ELIMIT: the error text
 * names the column. MR_ESTATE: the worker speaks another version. The decoder calls this function,
 * and the scheduler's core relies on the check. */
int mr_ws_up_check(const struct mr_ws_up *m, struct mr_error *e);
int mr_ws_version_check(const struct mr_ws_register *r, struct mr_error *e);
