/* Sets the options of a builder's nodes and of its job. */
#pragma once

#include "base/err.h"
#include "graph/graph.h"

struct mr_builder;

/* Copy the options into the builder and check their bounds. */
int mr_builder_options(
    struct mr_builder *b, uint32_t node, const struct mr_task_options *o, struct mr_error *e);
int mr_builder_job(struct mr_builder *b, const struct mr_job_options *job, struct mr_error *e);
