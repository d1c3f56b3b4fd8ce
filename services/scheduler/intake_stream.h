/* What has come of a SubmitStream. Made by the core's thread, the intake's own from the first piece
 * on. What came is kept until it is a graph: when something is wrong it is read again, for the
 * words. */
#pragma once

#include "graph/builder.h"

struct mr_intake_stream;

struct mr_intake_stream *mr_intake_stream_new(void);
void mr_intake_stream_free(struct mr_intake_stream **s);
/* Messages, each behind its length (u64). The bytes are the stream's now; what is in them is looked
 * at once. */
void mr_intake_stream_feed(struct mr_intake_stream *s, struct mr_buf *bytes);
/* After the last one: all of it in a builder, also on failure (then of no use). */
int mr_intake_stream_end(struct mr_intake_stream *s, struct mr_builder **out, struct mr_error *e);
size_t mr_intake_stream_bytes(const struct mr_intake_stream *s);
mr_graph_hash mr_intake_stream_hash(const struct mr_intake_stream *s); /* of all bytes */
