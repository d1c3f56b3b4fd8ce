/* The difference between the profiles of two jobs. No I/O. */
#pragma once

#include "base/buf.h"

#include <stdint.h>
#include <yyjson.h>

struct mr_compare_time { /* ns of a class, or of a class and an operator, in both jobs */
    const char *class;
    const char *op; /* "": the row is about the class alone */
    int64_t before, after;
};

enum mr_compare_measure {
    MR_COMPARE_TASKS, /* attempts */
    MR_COMPARE_WALL,
    MR_COMPARE_CPU,
    MR_COMPARE_QUEUE,
    MR_COMPARE_BYTES,
    MR_COMPARE_MEDIAN,
    MR_COMPARE_P99,
    MR_COMPARE_MEASURES,
};

struct mr_compare_op {
    const char *op;
    int64_t path_change; /* change of the operator's run time on the critical path, ns */
    int64_t before[MR_COMPARE_MEASURES], after[MR_COMPARE_MEASURES];
};

struct mr_compare_job {
    int64_t wall_ns, slot_ns, slots;
};

struct mr_compare {
    struct mr_compare_job before, after;
    /* The parts of the wall times, the largest change first. With `has_path` they are parts of the
     * critical paths: the class "dependency" has a row for each operator that ran. Otherwise one of
     * the jobs is not over, and they are the slot time of each class, divided by the number of
     * slots. */
    bool has_path;
    struct mr_compare_time *causes;
    uint32_t causes_count, causes_room;
    struct mr_compare_time *classes; /* slot time by class, the largest change first */
    uint32_t classes_count, classes_room;
    struct mr_compare_op *ops; /* the largest `path_change` first */
    uint32_t ops_count, ops_room;
};

/* Compares two ProfileResponses of the API. The texts of `out` are lent from the two documents. */
void mr_compare_profiles(yyjson_val *before, yyjson_val *after, struct mr_compare *out);
void mr_compare_fini(struct mr_compare *c);

/* Appends a sentence that says how the wall time changed, and what explains most of the change. */
void mr_compare_sum_up(
    const struct mr_compare *c, const char *before, const char *after, struct mr_buf *out);
/* Returns the comparison as a JSON document. The caller frees it with yyjson_mut_doc_free. */
yyjson_mut_doc *mr_compare_document(
    const struct mr_compare *c, const char *before, const char *after);
