/* Makes the request message of the route's gRPC method, in wire format, from path, query, headers
 * and JSON body of an HTTP request. */
#pragma once

#include "base/buf.h"
#include "gateway/http/route.h"

struct mr_bind_header {
    /* The value of mr_route.headers[i]; p NULL: the header is absent. */
    struct mr_str value;
};

#define MR_BIND_HEADERS_MAX 8

struct mr_bind_input {
    const struct mr_match *match;
    struct mr_str query; /* the query as sent, not decoded */
    /* One for each header of the route, in the order of the route's headers. */
    const struct mr_bind_header *headers;
    struct mr_uri_text *text; /* memory for the decoded query */
};

/* Appends the fields that path, query and headers set. A header sets its field only if path and
 * query did not. The header Last-Event-ID is an exception: it takes precedence over the query. */
int mr_bind_fields(const struct mr_bind_input *in, struct mr_buf *wire, struct mr_error *e);

/* Appends the fields of a JSON body. An empty body is an empty object. */
int mr_bind_body(
    const struct mr_match *match, struct mr_str body, struct mr_buf *wire, struct mr_error *e);
