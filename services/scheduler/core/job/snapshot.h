#pragma once

#include "base/buf.h"
#include "services/scheduler/core/state/types.h"

/* Appends the whole durable state to `out` as records: heads and payloads as in mr_sched_effects,
 * sequence 0. When Redis has them, older records may be trimmed. */
void mr_sched_snapshot(const struct mr_sched *s, struct mr_buf *out);
