/* Error texts of failed tasks. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

struct failure mr_sched__failure_make(
    struct mr_sched *s, uint32_t task, int code, struct mr_str message, const char *worker);
void mr_sched__failure_more(struct failure *st, struct mr_str arguments, struct mr_str log);
void mr_sched__failure_fini(struct failure *st);
void mr_sched__failure_copy(struct failure *to, const struct failure *from);
void mr_sched__failure_put(struct mr_sched *s, uint32_t task, const struct failure *from);
/* Returns the failure of the task; NULL: the task has not failed, or the texts are no longer
 * kept. */
const struct failure *mr_sched__failure(const struct mr_sched *s, uint32_t task);
void mr_sched__failure_drop(struct mr_sched *s, uint32_t task);
void mr_sched__failure_drop_job(struct mr_sched *s, uint32_t job);
