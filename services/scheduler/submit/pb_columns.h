/* The fast path for SubmitStream: columns go from the message's bytes straight into a builder. It
 * takes valid columns only. On anything else it fails without an error text; mr_pb_columns_add then
 * reads all messages again, node by node, and says what is wrong. Owned by one thread at a time. */
#pragma once

#include "graph/build/builder.h"

/* In one stream, at most this many messages may bring no graph node. There is a limit because a
 * decoded message without a node takes more memory than it has bytes. */
#define MR_PB_EMPTY_MESSAGES_MAX 1024

struct mr_pb_stream;

struct mr_pb_stream *mr_pb_stream_new(void);
void mr_pb_stream_free(struct mr_pb_stream **s);
/* Adds a message, which is lent for the call. */
void mr_pb_stream_add(struct mr_pb_stream *s, struct mr_str message);
/* Ends the stream after the last message and returns the builder; NULL: the fast path has
 * failed. */
struct mr_builder *mr_pb_stream_end(struct mr_pb_stream *s);

/* Returns the message at `*at` and moves `*at` behind it. In `framed` each message follows its
 * length (u64). */
struct mr_str mr_pb_framed_next(struct mr_str framed, size_t *at);
/* The slow path: adds all messages to an empty builder, with error texts. */
int mr_pb_columns_add(
    struct mr_builder *b, const struct mr_buf *framed, size_t count, struct mr_error *e);
