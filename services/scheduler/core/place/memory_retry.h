/* Tasks that found no room in memory. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__stopping_end(struct mr_sched *s, uint32_t worker, uint32_t mark);
/* A worker's lease has run out; one has joined. */
void mr_sched__memory_retry_lost(struct mr_sched *s, uint32_t worker);
void mr_sched__memory_retry_joined(struct mr_sched *s, uint32_t worker);
void mr_sched__memory_retry_dispatch(struct mr_sched *s);
/* A worker had no room for it, says `why`: fails, or is to come again. It is not sent any more. */
void mr_sched__memory_retry_refused(
    struct mr_sched *s, uint32_t task, uint32_t worker, struct mr_str why);
void mr_sched__memory_retry_explain(const struct mr_sched *s, uint32_t task, struct mr_buf *out);
