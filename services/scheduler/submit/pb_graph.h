/* From the typed messages of Submit to a graph builder: SubmitGraph's tree and SubmitStream's
 * columns. Pure; names what is wrong by key and field. */
#pragma once

#include "graph/build/builder.h"

#include <millrace/v1/jobs.pb-c.h>

int mr_pb_graph_add(
    struct mr_builder *b, const Millrace__V1__SubmitGraphRequest *m, struct mr_error *e);

/* Columns: first every message declares its nodes, then every message defines them, in order.
 * `first` is the number of the first node of the message; `*next` becomes that of the next one. */
int mr_pb_columns_declare(struct mr_builder *b, const Millrace__V1__SubmitColumns *m,
    uint32_t first, uint32_t *next, struct mr_error *e);
struct mr_pb_columns_ops { /* the stream's table of op names, filled as messages come */
    struct mr_buf names;   /* struct mr_str, on loan from the messages */
};
int mr_pb_columns_define(struct mr_builder *b, const Millrace__V1__SubmitColumns *m, uint32_t first,
    uint32_t nodes, struct mr_pb_columns_ops *ops, struct mr_error *e);
int mr_pb_job_options(struct mr_builder *b, const Millrace__V1__JobOptions *m,
    const char *request_id, struct mr_error *e);
int mr_pb_task_options(
    struct mr_builder *b, uint32_t node, const Millrace__V1__TaskOptions *m, struct mr_error *e);
