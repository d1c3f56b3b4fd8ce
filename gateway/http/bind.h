/* Path, query, headers and JSON body of an HTTP request become the request message of the route's
 * gRPC method, in wire format. */
#pragma once

#include "base/buf.h"
#include "gateway/http/route.h"

struct mr_bind_header {
    struct mr_str value; /* of mr_route.headers[i]; p NULL: the header is absent */
};

#define MR_BIND_HEADERS_MAX 8

struct mr_bind_input {
    const struct mr_match *match;
    struct mr_str query;                  /* as sent, not decoded */
    const struct mr_bind_header *headers; /* one for each header of the route, in that order */
    struct mr_uri_text *text;             /* memory for the decoded query */
};

/* Appends the fields that path, query and headers set. A header sets its field only where path and
 * query did not. */
int mr_bind_fields(const struct mr_bind_input *in, struct mr_buf *wire, struct mr_error *e);

/* Appends the fields of a JSON body. An empty body is an empty object. */
int mr_bind_body(
    const struct mr_match *match, struct mr_str body, struct mr_buf *wire, struct mr_error *e);
