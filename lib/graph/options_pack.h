/* Options of tasks and jobs in MessagePack: a map with the options that are given. */
#pragma once

#include "graph/options.h"

void mr_task_options_pack(struct mr_buf *b, const struct mr_task_options *o);
void mr_job_options_pack(struct mr_buf *b, const struct mr_job_options *o);

/* Read options. The form is checked, and texts are copied into the arena. The functions of
 * options.h check the bounds. */
int mr_task_options_unpack(struct mr_str pack, struct mr_text_arena *arena,
    struct mr_task_options *out, struct mr_error *e);
int mr_job_options_unpack(struct mr_str pack, struct mr_text_arena *arena,
    struct mr_job_options *out, struct mr_error *e);
