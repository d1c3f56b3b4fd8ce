/* A large submission, columns or JSON, that is parsed while it arrives. The core thread makes it; a
 * parser thread owns it from the first piece on. The bytes are kept until the graph is built: on an
 * error a slower parser reads them again and writes the error text. */
#pragma once

#include "graph/build/builder.h"

struct mr_parser_stream;

struct mr_parser_stream *mr_parser_stream_new(bool is_json);
void mr_parser_stream_free(struct mr_parser_stream **s);
/* Parses a piece and takes its bytes. Columns: whole messages, each after its length (u64). JSON:
 * the next part of the text. */
void mr_parser_stream_feed(
    struct mr_parser_stream *s, const struct mr_graph_catalogue *catalogue, struct mr_buf *bytes);
/* Called after the last piece: builds the graph. */
int mr_parser_stream_end(struct mr_parser_stream *s, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e);
/* Returns the hash of all bytes that were fed. */
mr_graph_hash mr_parser_stream_hash(const struct mr_parser_stream *s);

/* Opens a thread pool for a body of `bytes` bytes. False: the body is so short that one thread
 * parses it, and no pool was opened. The caller closes `parallel` in both cases. */
bool mr_parser_parallel_open(size_t bytes, struct mr_graph_parallel *parallel);
void mr_parser_parallel_close(struct mr_graph_parallel *parallel);
