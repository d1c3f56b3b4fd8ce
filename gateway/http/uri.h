/* Request targets. The raw path is split first, then each piece is decoded once, so that `%2F`
 * inside a piece does not split it. Knows nothing of routes. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct mr_uri {
    struct mr_str path;  /* raw; begins with a slash */
    struct mr_str query; /* raw, without the question mark */
};

/* Splits "/a/b?c=d". MR_EINVAL: the target has another form. */
int mr_uri_split(struct mr_str target, struct mr_uri *out, struct mr_error *e);

/* Memory for decoded pieces. Decoding never makes a text longer, so the memory has the size of the
 * raw target. */
struct mr_uri_text {
    char *p;
    size_t n;
    size_t bytes_max;
};
void mr_uri_text_init(struct mr_uri_text *t, size_t raw_bytes);
void mr_uri_text_fini(struct mr_uri_text *t);

/* Decodes one piece. `plus`: '+' is a space, as in queries. MR_EINVAL: the piece has a bad escape
 * or `%00`, or is not UTF-8. `what` names the piece in the error's sentence. */
int mr_uri_decode(struct mr_uri_text *t, struct mr_str raw, bool plus, const char *what,
    struct mr_str *out, struct mr_error *e);

/* Takes the next `name=value` of a query. `*rest` starts as the whole query. MR_ENOENT: the query
 * has no more. MR_EINVAL: a piece cannot be decoded. */
int mr_uri_query_next(struct mr_str *rest, struct mr_uri_text *t, struct mr_str *name,
    struct mr_str *value, struct mr_error *e);
