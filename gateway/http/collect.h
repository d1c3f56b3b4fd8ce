/* Jobs.Results over HTTP: the messages of the stream as one JSON object, written as they come, or
 * as one such object a message. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "millrace/v1/jobs.pb-c.h"

#define MR_COLLECT_REST_BYTES_MAX ((size_t)64 << 20) /* places and errors wait for the end */

struct mr_collect {
    size_t results_count;
    struct mr_buf places;
    struct mr_buf errors;
};

void mr_collect_init(struct mr_collect *c);
void mr_collect_fini(struct mr_collect *c);

void mr_collect_begin(struct mr_buf *out);
void mr_collect_add(struct mr_collect *c, const Millrace__V1__ResultItem *item, struct mr_buf *out);
/* `status` (JSON, may be empty) says why the stream ended early. */
void mr_collect_end(struct mr_collect *c, struct mr_str status, struct mr_buf *out);

void mr_collect_one(const Millrace__V1__ResultItem *item, struct mr_buf *out); /* a whole object */
