/* Makes the answer to one request of grpc.reflection. Request and answer are serialized
 * messages. */
#pragma once

#include "base/buf.h"
#include "rpc/server/descriptors.h"

/* Appends a ServerReflectionResponse to `out`, also for an unknown name. MR_EFORMAT: `question` is
 * not a ServerReflectionRequest. MR_ELIMIT: the answer does not fit into `out`. */
int mr_reflection_answer(const struct mr_descriptors *d, const struct mr_str *services,
    size_t services_count, struct mr_str question, struct mr_buf *out);
