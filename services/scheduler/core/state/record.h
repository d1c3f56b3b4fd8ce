/* Payloads of journal records. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

void mr_sched__record_job(const struct job *j, const struct mr_sched_resolved *r, uint32_t n,
    uint64_t graph_bytes, struct mr_buf *out);
void mr_sched__record_value(const struct mr_sched *s, uint32_t task, struct mr_buf *out);
void mr_sched__record_loop(const struct job *j, uint32_t loop, struct mr_buf *out);
void mr_sched__record_erred(
    const struct mr_sched *s, uint32_t task, const struct failure *st, struct mr_buf *out);
void mr_sched__record_state(const struct mr_sched *s, const struct job *j, struct mr_buf *out);
