/* Workers by load. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/lookup.h"

/* Moves the worker to the bucket of its present load, or out of the index if the worker takes no
 * tasks. `to_tail`: moves the worker behind the others of its bucket even if the bucket stays the
 * same. */
void mr_sched__load_changed(struct mr_sched *s, uint32_t worker, bool to_tail);
uint32_t mr_sched__load_least(const struct mr_sched *s);                 /* or NONE */
uint32_t mr_sched__load_next(const struct mr_sched *s, uint32_t worker); /* in ascending order */
uint32_t mr_sched__load_most(const struct mr_sched *s);
uint32_t mr_sched__load_prev(const struct mr_sched *s, uint32_t worker); /* in descending order */
void mr_sched__load_check(const struct mr_sched *s);

static inline uint64_t mr_sched__load(const struct worker *w) /* ns of work per slot */
{
    return w->slots == 1 ? w->queue_ns : w->queue_ns / w->slots; /* avoids a division */
}

static inline bool mr_sched__load_is_usable(const struct worker *w)
{
    return w->state == W_CONNECTED && w->is_known && !w->is_retiring && !w->is_full &&
           !w->is_reserved && !w->is_closed && !w->is_node_reserved;
}
