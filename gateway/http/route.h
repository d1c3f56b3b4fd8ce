/* Which method a request is for. Works on any table of routes, so that tests bring their own. */
#pragma once

#include "gateway/http/uri.h"
#include "proto/methods.h"

#define MR_ROUTE_FIELDS_MAX 4

struct mr_bound {
    const char *field;
    struct mr_str value; /* decoded */
};

struct mr_match {
    const struct mr_route *route;
    struct mr_bound bound[MR_ROUTE_FIELDS_MAX];
    size_t bound_count;
};

/* The route of a verb and a raw path. A `{name=**}` may be left out (with its slash or
 * without) when no other route matches, or literals follow it: the query then has to name the
 * field. MR_ENOENT; MR_EMETHOD, with the verbs that exist there as bits (1 << verb) in *verbs;
 * MR_EINVAL for a path that does not decode. */
int mr_route_match(const struct mr_route *routes, size_t count, enum mr_http_verb verb,
    struct mr_str path, struct mr_uri_text *text, struct mr_match *out, unsigned *verbs,
    struct mr_error *e);

/* The segment `{name=**}`, of which there is one at most; NULL: none. */
const struct mr_route_segment *mr_route_rest(const struct mr_route *route);

const char *mr_http_verb_name(enum mr_http_verb verb);
int mr_http_verb_parse(const char *name, enum mr_http_verb *out); /* MR_EMETHOD */
