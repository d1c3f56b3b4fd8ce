#pragma once

#include "base/buf.h"
#include "services/scheduler/core/state/types.h"

/* The whole durable state as records appended to `out` (heads and payloads as in `journal`,
 * sequence 0); what the journal holds before it may be trimmed. */
void mr_sched_snapshot(const struct mr_sched *s, struct mr_buf *out);
