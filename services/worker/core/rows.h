/* Rows that wait to be sent to the scheduler, and the columns of the message that they become.
 * Private to the files of this folder. */
#pragma once

#include "services/worker/core/blob_pool.h"
#include "session/up.h"

/* What the time of a completion's task consisted of, in ns: struct mr_strand_parts (strand_item.h),
 * and PART_WAITED. */
enum part {
    PART_INPUT,
    PART_OUTPUT,
    PART_LATE,
    PART_WAITED, /* time from the arrival of the last input to the start */
    PART_DELAYED,
    PART_ROOM,
    PART_RESTORE,
    PART_TRAINING, /* shares, not ns (account/training_shares.h) */
    PARTS
};

struct outparts {
    uint64_t at[PARTS];
};

struct outrow { /* a completion to be sent */
    mr_job_id job;
    uint32_t index, attempt, slot;
    enum mr_outcome outcome;
    struct mr_blob *blob;
    mr_object_id object;
    uint64_t object_bytes;
    mr_time started_ns;
    mr_duration duration_ns, cpu_ns;
    bool has_parts;          /* the row of `out_parts` with the same number is set */
    struct mr_blob *failure; /* struct failure and its texts */
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
    uint64_t *parts[PARTS]; /* a column that is not in use has no meaning */
    struct mr_ws_failure *failures;
    struct mr_blob **texts; /* blobs with the texts of `failures` */
    size_t inlined_bytes, inlined_max, texts_bytes;
    uint32_t runs_count, count, objects_count, failures_count;
    unsigned parts_used; /* bit 1 << p: column p of `parts` is in use */
    bool any_not_ok;
};

struct refs {
    struct mr_ws_run *runs;
    uint32_t *index, *attempt;
    uint32_t runs_count, count, room;
};
