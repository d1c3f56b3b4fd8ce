/* Rows that wait to be sent to the scheduler, and the columns of the message that they become.
 * Private to the files of this folder. */
#pragma once

#include "services/worker/core/blob_pool.h"
#include "session/up.h"

struct outrow { /* a completion to be sent */
    mr_job_id job;
    uint32_t index, attempt, slot;
    enum mr_outcome outcome;
    struct mr_blob *blob;
    mr_object_id object;
    uint64_t object_bytes;
    mr_time started_ns;
    mr_duration duration_ns, cpu_ns;
    /* parts of the duration (strand_item.h) */
    mr_duration input_ns, output_ns, late_ns;
    mr_duration waited_ns; /* time from the arrival of the last input to the start */
    mr_duration delayed_ns, room_ns, restore_ns; /* strand_item.h */
    uint64_t training;                           /* account/training_shares.h */
    struct mr_blob *failure;                     /* struct failure and its texts */
};

struct failure {
    int code;
    uint32_t message_bytes, arguments_bytes, log_bytes;
};

struct missing_row {
    mr_job_id job;
    uint32_t index, attempt, input;
    struct mr_blob *why;
};

struct columns { /* the columns of one message to the scheduler */
    struct mr_ws_run *runs;
    uint32_t *index, *attempt, *inline_bytes, *slot, *outcome;
    unsigned char *inlined;
    uint64_t *maker, *number, *object_bytes, *started, *duration, *cpu;
    uint64_t *input, *output, *late, *waited, *delayed, *room, *restore, *training;
    struct mr_ws_failure *failures;
    struct mr_blob **texts; /* blobs with the texts of `failures` */
    size_t inlined_bytes, inlined_max, texts_bytes;
    uint32_t runs_count, count, objects_count, failures_count;
    bool any_not_ok, any_input, any_output, any_late, any_waited, any_delayed, any_room,
        any_restore, any_training;
};

struct refs {
    struct mr_ws_run *runs;
    uint32_t *index, *attempt;
    uint32_t runs_count, count, room;
};
