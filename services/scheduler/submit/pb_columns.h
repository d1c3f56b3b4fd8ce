/* SubmitStream's messages as they come, straight into a builder's columns: what is plain and right.
 * Where anything else shows it gives up without a word, and pb_graph.h's way over all messages says
 * what is wrong. Owned by one thread at a time. */
#pragma once

#include "graph/build/builder.h"

/* Messages of a stream that bring no node: each takes more memory than bytes. */
#define MR_PB_EMPTY_MESSAGES_MAX 1024

struct mr_pb_stream;

struct mr_pb_stream *mr_pb_stream_new(void);
void mr_pb_stream_free(struct mr_pb_stream **s);
void mr_pb_stream_add(struct mr_pb_stream *s, struct mr_str message); /* lent for the call */
/* After the last one: the builder with all of it, or NULL. */
struct mr_builder *mr_pb_stream_end(struct mr_pb_stream *s);

/* Messages end to end, each behind its length (u64). */
struct mr_str mr_pb_framed_next(struct mr_str framed, size_t *at);
/* All messages into an empty builder, node by node, with the words for what is wrong. */
int mr_pb_columns_add(
    struct mr_builder *b, const struct mr_buf *framed, size_t count, struct mr_error *e);
