/* A large submission, columns or JSON, that is parsed while it arrives. The core thread makes it; a
 * parser thread owns it from the first piece on. The bytes are kept until the graph is built: on an
 * error a slower parser reads them again and writes the error text. */
#pragma once

#include "graph/build/builder.h"

struct mr_parser_stream;

struct mr_parser_stream *mr_parser_stream_new(bool is_json);
void mr_parser_stream_free(struct mr_parser_stream **s);
/* Columns: messages, each behind its length (u64). JSON: the next part. Takes the bytes. */
void mr_parser_stream_feed(
    struct mr_parser_stream *s, const struct mr_graph_catalogue *catalogue, struct mr_buf *bytes);
/* After the last piece. */
int mr_parser_stream_end(struct mr_parser_stream *s, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e);
mr_graph_hash mr_parser_stream_hash(const struct mr_parser_stream *s); /* of all bytes fed */

/* A thread pool for a body of so many bytes; false: too short for one. Close follows anyway. */
bool mr_parser_parallel_open(size_t bytes, struct mr_graph_parallel *parallel);
void mr_parser_parallel_close(struct mr_graph_parallel *parallel);
