/* Jobs.Results over HTTP: all messages of the gRPC stream become one JSON object, which is written
 * while the messages arrive. In a stream of events each message becomes such an object. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "millrace/v1/jobs.pb-c.h"

/* Limit of the bytes that are kept until the last message: those of the members "places" and
 * "errors", which follow "results". */
#define MR_COLLECT_REST_BYTES_MAX ((size_t)64 << 20)

struct mr_collect {
    size_t results_count;
    struct mr_buf places;
    struct mr_buf errors;
};

void mr_collect_init(struct mr_collect *c);
void mr_collect_fini(struct mr_collect *c);

void mr_collect_begin(struct mr_buf *out);
void mr_collect_add(struct mr_collect *c, const Millrace__V1__ResultItem *item, struct mr_buf *out);
/* Ends the object. `status` is JSON and says why the stream ended early. Empty: the stream is
 * complete. */
void mr_collect_end(struct mr_collect *c, struct mr_str status, struct mr_buf *out);

/* Writes one message as an object of its own. */
void mr_collect_one(const Millrace__V1__ResultItem *item, struct mr_buf *out);
