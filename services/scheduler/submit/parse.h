/* Parses one request: body to graph, names to objects, graph to bytes for the journal. What a
 * thread needs for it, the thread owns alone; nothing is shared. */
#pragma once

#include "services/scheduler/submit/ops.h"
#include "services/scheduler/submit/request.h"

struct mr_directory;
struct mr_templates;

struct mr_parse_thread { /* what one parser thread owns */
    struct mr_parser_ops ops;
    struct mr_directory *directory;
    struct mr_templates *templates; /* NULL: another parser thread has the templates */
};

/* Parses a request. Waits for Redis if the graph names objects or results. */
struct mr_parser_result *mr_parse(struct mr_parse_thread *t, struct mr_parser_request *r);
/* Parses the request of a small job, in about 10 ms. NULL: the request is larger, and was not
 * parsed. */
struct mr_parser_result *mr_parse_small(struct mr_parse_thread *t, struct mr_parser_request *r);
/* Parses the request of a tiny job without waiting, in about 100 us. NULL: a parser thread has to
 * parse the request. */
struct mr_parser_result *mr_parse_tiny(struct mr_parser_ops *ops, struct mr_parser_request *r);
/* Parses the next bytes of a stream, and takes the buffer `bytes` over. An error is reported when
 * the whole body is parsed. */
void mr_parse_feed(
    struct mr_parse_thread *t, struct mr_parser_stream *stream, struct mr_buf *bytes);

#define MR_PARSE_SMALL_BYTES_MAX ((size_t)64 << 10) /* limit of the body of a small job */
