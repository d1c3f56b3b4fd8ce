/* What has come of a large submission, columns or JSON, before its end. Made by the core's thread,
 * the intake's own from the first piece on. What came is kept until it is a graph: when something
 * is wrong it is read again, for the words. */
#pragma once

#include "graph/build/builder.h"

struct mr_parser_stream;

struct mr_parser_stream *mr_parser_stream_new(bool is_json);
void mr_parser_stream_free(struct mr_parser_stream **s);
/* Columns: messages, each behind its length (u64). JSON: the next part of the text. The bytes are
 * the stream's now; what is in them is looked at once. */
void mr_parser_stream_feed(
    struct mr_parser_stream *s, const struct mr_graph_catalogue *catalogue, struct mr_buf *bytes);
/* After the last one: all of it as a graph. */
int mr_parser_stream_end(struct mr_parser_stream *s, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e);
mr_graph_hash mr_parser_stream_hash(const struct mr_parser_stream *s); /* of all bytes */

/* Several workers for a text of so many bytes; false: it is too short for them. Ended by close. */
bool mr_parser_parallel_open(size_t bytes, struct mr_graph_parallel *parallel);
void mr_parser_parallel_close(struct mr_graph_parallel *parallel);
