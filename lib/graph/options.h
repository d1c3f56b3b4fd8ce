/* Options of tasks and of jobs: their bounds and copies. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "graph/graph.h"

#define MR_PRIORITY_MAX 100 /* -100 to 100, of jobs and tasks; also in proto/gen/api.py */
#define MR_OPTION_SECONDS_MAX 1e9
#define MR_OPTION_WORKERS_MAX 1024
#define MR_RESOURCE_AMOUNT_MICRO_MAX ((uint64_t)1000000000000000) /* a thousand million */

/* Check all bounds. The error names the option, not the task. */
int mr_task_options_check(const struct mr_task_options *o, struct mr_error *e);
int mr_job_options_check(const struct mr_job_options *o, struct mr_error *e);

/* Copy texts and arrays into the arena. */
void mr_task_options_copy(
    struct mr_text_arena *p, const struct mr_task_options *o, struct mr_task_options *out);
void mr_job_options_copy(
    struct mr_text_arena *p, const struct mr_job_options *o, struct mr_job_options *out);

/* Seconds of a user in ns. MR_EINVAL: not above 0, or more than 1e9. */
int mr_option_seconds(const char *what, double seconds, mr_duration *out, struct mr_error *e);
int mr_option_amount(struct mr_str what, double amount, uint64_t *micro, struct mr_error *e);
