/* Sums of the spans of a job by operator, for the account of the job. Pure: no clock, no I/O. */
#pragma once

#include "services/scheduler/history/job_account.h"

/* Operators have numbers below this. The caller gives all further operators the last number. */
#define MR_OP_TABLE_MAX 4096u

struct mr_op_sums {
    struct mr_job_account_op op; /* without name, median_ns, p99_ns and white_ns */
    uint32_t *buckets;           /* counts of attempts by wall time; NULL: there was no attempt */
};

struct mr_op_table { /* all zeros: empty */
    struct mr_op_sums *items;
    uint32_t room;
};

void mr_op_table_fini(struct mr_op_table *t);
void mr_op_table_add(struct mr_op_table *t, uint32_t op, const struct mr_trace_span *span);
/* Stores the sums of an operator, without name and white_ns. False: it had no attempt, and `*out`
 * becomes zero. */
bool mr_op_table_get(const struct mr_op_table *t, uint32_t op, struct mr_job_account_op *out);
