/* The options of tasks and of jobs: checks their bounds and copies them. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "graph/graph.h"

/* Priorities reach from -100 to 100, for jobs and for tasks. proto/gen/api.py has the same
 * bound. */
#define MR_PRIORITY_MAX 100
#define MR_OPTION_SECONDS_MAX 1e9
#define MR_OPTION_WORKERS_MAX 1024
#define MR_RESOURCE_AMOUNT_MICRO_MAX ((uint64_t)1000000000000000) /* millionths: 1e9 units */

/* Check all bounds. The error names the option, not the task. */
int mr_task_options_check(const struct mr_task_options *o, struct mr_error *e);
int mr_job_options_check(const struct mr_job_options *o, struct mr_error *e);

/* Copy the options, with their texts and arrays, into the arena. */
void mr_task_options_copy(
    struct mr_text_arena *p, const struct mr_task_options *o, struct mr_task_options *out);
void mr_job_options_copy(
    struct mr_text_arena *p, const struct mr_job_options *o, struct mr_job_options *out);

/* Converts a user's number of seconds to ns. MR_EINVAL: the number is not above 0, or is more than
 * 1e9; the error text begins with `what`. */
int mr_option_seconds(const char *what, double seconds, mr_duration *out, struct mr_error *e);
int mr_option_amount(struct mr_str what, double amount, uint64_t *micro, struct mr_error *e);
