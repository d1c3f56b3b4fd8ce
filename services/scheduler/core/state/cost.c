/* Estimates: the run time of a task, by its operator, and the store memory for a large result. */
#include "services/scheduler/core/state/cost.h"

#include "base/assert.h"

#define UNKNOWN_NS (100 * MR_US) /* estimate for an operator that has never run */

uint64_t mr_sched__estimate(const struct mr_sched *s, uint32_t op)
{
    const struct op *o = &s->ops[op];
    uint64_t ns = o->estimate_ns ? o->estimate_ns : o->cost_ns ? o->cost_ns : UNKNOWN_NS;
    return MR_MAX(ns, (uint64_t)200);
}

/* A store's sum adds up the estimated sizes of the large results that running tasks will make.
 * `bytes` not 0: adds the estimate for the result of `task`. `bytes` 0: takes `task` out of the
 * sum. The estimate of a single task is not kept, so the mean of the estimates in the sum is
 * subtracted. Thus the sum is 0 when no task is left. */
void mr_sched__store_coming(struct mr_sched *s, uint32_t task, uint64_t bytes)
{
    struct task *t = &s->tasks[task];
    struct store *st = &s->stores[s->workers[t->worker].store];
    mr_assert(t->is_coming == !bytes);
    if (bytes) {
        st->coming++;
        st->coming_bytes += bytes;
    } else {
        st->coming_bytes -= st->coming_bytes / st->coming--;
    }
    t->is_coming = bytes != 0;
}
