/* A request's fields from what HTTP brings - path, query, headers, JSON body - as the wire bytes of
 * the route's request message. */
#pragma once

#include "base/buf.h"
#include "gateway/http/route.h"

struct mr_bind_header {
    struct mr_str value; /* of mr_route.headers[i]; p NULL: absent */
};

#define MR_BIND_HEADERS_MAX 8

struct mr_bind_input {
    const struct mr_match *match;
    struct mr_str query;                  /* raw */
    const struct mr_bind_header *headers; /* one for each of the route's, in order */
    struct mr_uri_text *text;             /* room for the decoded query */
};

/* Appends path, query and header fields. A header fills its field only when nothing else did. */
int mr_bind_fields(const struct mr_bind_input *in, struct mr_buf *wire, struct mr_error *e);

/* Appends the fields of a JSON body as the route wants them; an empty body is an empty object. */
int mr_bind_body(
    const struct mr_match *match, struct mr_str body, struct mr_buf *wire, struct mr_error *e);
