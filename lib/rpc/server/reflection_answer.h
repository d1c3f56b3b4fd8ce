/* The answer to one request of grpc.reflection, both as bytes. */
#pragma once

#include "base/buf.h"
#include "rpc/server/descriptors.h"

/* Appends a ServerReflectionResponse, also for an unknown name. MR_EFORMAT: the bytes of the
 * question are no ServerReflectionRequest. MR_ELIMIT: the answer does not fit into `out`. */
int mr_reflection_answer(const struct mr_descriptors *d, const struct mr_str *services,
    size_t services_count, struct mr_str question, struct mr_buf *out);
