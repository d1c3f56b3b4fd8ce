/* One request of grpc.reflection and its answer, as bytes. */
#pragma once

#include "base/buf.h"
#include "rpc/server/descriptors.h"

/* Appends a ServerReflectionResponse, also for an unknown name. MR_EFORMAT for bytes that are no
 * ServerReflectionRequest, MR_ELIMIT past the ceiling of `out`. */
int mr_reflection_answer(const struct mr_descriptors *d, const struct mr_str *services,
    size_t services_count, struct mr_str question, struct mr_buf *out);
