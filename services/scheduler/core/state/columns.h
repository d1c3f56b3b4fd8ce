/* Rows of session.proto as the core reads them: element i of each column belongs to row i. `runs`
 * gives the jobs of the rows by run-length encoding: the first `count` rows belong to the job of
 * the first run, and so on. The shell has checked that columns have the same length and counts add
 * up; the core checks what the rows mean. */
#pragma once

#include "base/id.h"
#include "base/str.h"
#include "base/time.h"

struct mr_sched_run {
    uint64_t job;
    uint32_t count;
    bool unfused; /* in Tasks only */
};

struct mr_sched_refs { /* TaskRefs */
    const struct mr_sched_run *runs;
    uint32_t runs_count;
    const uint32_t *index;
    const uint32_t *attempt; /* NULL: all 0 */
    uint32_t count;
};

enum mr_sched_outcome { /* as Outcome of session.proto */
    MR_OUTCOME_OK,
    MR_OUTCOME_ERROR,
    MR_OUTCOME_CANCELLED,
    MR_OUTCOME_TIMEOUT,
    MR_OUTCOME_BAD_ARGUMENT,
    MR_OUTCOME_LOST_INPUT,
    MR_OUTCOME_RETURNED,
    MR_OUTCOME_USED_UP,
    MR_OUTCOME_NO_ROOM,
    MR_OUTCOME_LOST, /* in spans only: its worker was lost */
};

struct mr_sched_failure {
    uint32_t row;
    int32_t code; /* google.rpc.Code */
    struct mr_str message;
    struct mr_str arguments;
    struct mr_str log;
};

struct mr_sched_completed { /* Completed; a NULL column: all 0 */
    struct mr_sched_refs tasks;
    const uint32_t *outcome;      /* NULL: all OK */
    const uint32_t *inline_bytes; /* of each row */
    struct mr_str inline_data;
    const uint64_t *object_maker; /* of the rows that are OK and have no inline bytes, in order */
    const uint64_t *object_number;
    const uint64_t *object_bytes;
    uint32_t objects_count;
    uint64_t base_ns; /* the worker's clock; times are relative to it */
    const uint64_t *started_ns;
    const uint64_t *duration_ns;
    const uint64_t *cpu_ns;
    const uint32_t *slot;
    const struct mr_sched_failure *failures;
    uint32_t failures_count;
};

struct mr_sched_missing {
    uint64_t job;
    uint32_t index;
    uint32_t attempt;
    uint32_t input;
    struct mr_str why;
};

/* The task that submits the job. It must be running. It gives its slot back while it waits. */
struct mr_sched_parent {
    mr_job_id job; /* 0: none */
    uint32_t index;
    uint32_t attempt;
};
