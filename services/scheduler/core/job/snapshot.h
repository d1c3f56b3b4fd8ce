#pragma once

#include "base/buf.h"
#include "services/scheduler/core/state/types.h"

/* Appends the whole durable state to `out` as journal records. Heads and payloads are laid out as
 * in the member `journal` of mr_sched_effects; the sequence number in each head is 0. Records that
 * are older than the snapshot may be trimmed as soon as Redis has the snapshot. */
void mr_sched_snapshot(const struct mr_sched *s, struct mr_buf *out);
