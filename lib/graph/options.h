/* Options of tasks and of jobs: their bounds, their packed form (what bytes/bytes.c writes),
 * copies. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "graph/graph.h"

#define MR_PRIORITY_MAX 100 /* of jobs and of tasks, either way; proto/gen/api.py has it, too */
#define MR_OPTION_SECONDS_MAX 1e9
#define MR_OPTION_WORKERS_MAX 1024
#define MR_RESOURCE_AMOUNT_MICRO_MAX ((uint64_t)1000000000000000) /* a thousand million */

/* Within every limit? The error names the option, not the task. */
int mr_task_options_check(const struct mr_task_options *o, struct mr_error *e);
int mr_job_options_check(const struct mr_job_options *o, struct mr_error *e);

/* Texts and arrays into the pool. */
void mr_task_options_copy(
    struct mr_pool *p, const struct mr_task_options *o, struct mr_task_options *out);
void mr_job_options_copy(
    struct mr_pool *p, const struct mr_job_options *o, struct mr_job_options *out);

/* One pack each, a map with the entries that are given. Reading checks the form, copies into the
 * pool, and leaves the bounds to the functions above. */
void mr_task_options_pack(struct mr_buf *b, const struct mr_task_options *o);
void mr_job_options_pack(struct mr_buf *b, const struct mr_job_options *o);
int mr_task_options_unpack(
    struct mr_str pack, struct mr_pool *p, struct mr_task_options *out, struct mr_error *e);
int mr_job_options_unpack(
    struct mr_str pack, struct mr_pool *p, struct mr_job_options *out, struct mr_error *e);

/* Seconds, as users give them, in ns; MR_EINVAL unless above 0 and within a thousand million. */
int mr_option_seconds(const char *what, double seconds, mr_duration *out, struct mr_error *e);
int mr_option_amount(struct mr_str what, double amount, uint64_t *micro, struct mr_error *e);
