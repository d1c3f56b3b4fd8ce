/* Finds the gRPC method of a request. Works on any table of routes, so that tests can use a table
 * of their own. */
#pragma once

#include "gateway/http/uri.h"
#include "gateway/json/field.h"
#include "proto/methods.h"

#define MR_ROUTE_FIELDS_MAX 4

struct mr_match {
    const struct mr_route *route;
    struct mr_path_field path_fields[MR_ROUTE_FIELDS_MAX];
    size_t path_fields_count;
};

/* Finds the route of a verb and a raw path. A route with a segment `{name=**}` also fits a path
 * without text for this segment; then the query has to set the field `name`. If no literals follow
 * the segment, such a route is taken only if no other route fits. MR_ENOENT: no route fits.
 * MR_EMETHOD: the path has routes, but none with this verb; *verbs has the bit 1 << verb for each
 * verb that the path has. MR_EINVAL: a piece of the path cannot be decoded. */
int mr_route_match(const struct mr_route *routes, size_t count, enum mr_http_verb verb,
    struct mr_str path, struct mr_uri_text *text, struct mr_match *out, unsigned *verbs,
    struct mr_error *e);

/* Returns the segment `{name=**}` of a route, which has at most one. NULL: it has none. */
const struct mr_route_segment *mr_route_rest(const struct mr_route *route);

const char *mr_http_verb_name(enum mr_http_verb verb);
/* MR_EMETHOD: no verb has this name */
int mr_http_verb_parse(const char *name, enum mr_http_verb *out);
