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

/* `bytes` not 0: adds this estimated size of the result that `task` is computing to the store's
 * sum. `bytes` 0: subtracts the mean size of the results in the sum, because the estimate that was
 * added may have changed since. So the sum is 0 when no task is left. */
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
