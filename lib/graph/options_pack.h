/* Options of tasks and jobs in MessagePack: a map with the options that are given. */
#pragma once

#include "graph/options.h"

void mr_task_options_pack(struct mr_buf *b, const struct mr_task_options *o);
void mr_job_options_pack(struct mr_buf *b, const struct mr_job_options *o);

/* Read options, check their form, and copy their texts into the arena. The caller then has to check
 * the bounds with the functions of options.h. */
int mr_task_options_unpack(struct mr_str pack, struct mr_text_arena *arena,
    struct mr_task_options *out, struct mr_error *e);
int mr_job_options_unpack(struct mr_str pack, struct mr_text_arena *arena,
    struct mr_job_options *out, struct mr_error *e);
