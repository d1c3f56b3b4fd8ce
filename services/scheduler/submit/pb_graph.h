/* Turns typed messages into nodes of a graph builder: SubmitGraph's tree and SubmitStream's
 * columns. No I/O. Error texts name the key and the field. */
#pragma once

#include "graph/build/builder.h"

#include <millrace/v1/jobs.pb-c.h>

int mr_pb_graph_add(
    struct mr_builder *b, const Millrace__V1__SubmitGraphRequest *m, struct mr_error *e);

/* Columns take two passes over the messages: the first declares all nodes, the second defines them.
 * `first`: number of the message's first node. `*next` becomes the number of the next message's
 * first node. */
int mr_pb_columns_declare(struct mr_builder *b, const Millrace__V1__SubmitColumns *m,
    uint32_t first, uint32_t *next, struct mr_error *e);
struct mr_pb_columns_ops { /* the stream's table of operator names, which grows with the messages */
    struct mr_buf names;   /* struct mr_str each; the messages lend the texts */
};
int mr_pb_columns_define(struct mr_builder *b, const Millrace__V1__SubmitColumns *m, uint32_t first,
    uint32_t nodes, struct mr_pb_columns_ops *ops, struct mr_error *e);
int mr_pb_job_options(struct mr_builder *b, const Millrace__V1__JobOptions *m,
    const char *request_id, struct mr_error *e);
int mr_pb_task_options(
    struct mr_builder *b, uint32_t node, const Millrace__V1__TaskOptions *m, struct mr_error *e);
