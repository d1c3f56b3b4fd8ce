/* WorkerSession as the core sees it, from worker to scheduler: plain columns, lent by the core
 * until its next step. See session.h. */
#pragma once

#include "services/worker/core/session.h"

enum mr_ws_outcome { /* numbers of the wire */
    MR_WS_OK = 0,
    MR_WS_ERROR = 1,
    MR_WS_CANCELLED = 2,
    MR_WS_TIMEOUT = 3,
    MR_WS_BAD_ARGUMENT = 4,
    MR_WS_LOST_INPUT = 5,
    MR_WS_RETURNED = 6,
    MR_WS_USED_UP = 7, /* a success whose value is gone, as its uses have all run here */
    MR_WS_NO_ROOM = 8, /* with a failure, whose message names what needed the room */
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
    uint32_t epoch; /* the highest epoch that it knows, and its scheduler */
    uint64_t scheduler;
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
    struct mr_ws_refs left_slot;
    const struct mr_ws_missing *missing;
    uint32_t missing_count;
    bool leaving;
};
