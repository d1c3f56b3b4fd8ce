/* Which objects of other nodes are fetched, in which order, and how many at a time. The queue is a
 * binary heap, ordered by the best task that waits for each object. */
#include "services/worker/core/internal.h"

#define FETCHING_MAX 16u

static bool fetch_before(const struct mr_worker *w, uint32_t a, uint32_t b)
{
    const struct value *x = &w->values[a], *y = &w->values[b];
    if (x->fetch_priority != y->fetch_priority) return x->fetch_priority > y->fetch_priority;
    if (x->fetch_order != y->fetch_order) return x->fetch_order < y->fetch_order;
    if (x->job != y->job) return value_job(w, x).v < value_job(w, y).v;
    return x->index < y->index;
}

static void fetch_put(struct mr_worker *w, uint32_t at, uint32_t value)
{
    w->fetch_heap[at] = value;
    w->values[value].fetch_at = at;
}

static void fetch_up(struct mr_worker *w, uint32_t at, uint32_t value)
{
    while (at) {
        uint32_t up = (at - 1) / 2;
        if (!fetch_before(w, value, w->fetch_heap[up])) break;
        fetch_put(w, at, w->fetch_heap[up]);
        at = up;
    }
    fetch_put(w, at, value);
}

static void fetch_down(struct mr_worker *w, uint32_t at, uint32_t value)
{
    for (;;) {
        uint32_t down = 2 * at + 1;
        if (down >= w->fetch_count) break;
        if (down + 1 < w->fetch_count &&
            fetch_before(w, w->fetch_heap[down + 1], w->fetch_heap[down]))
            down++;
        if (!fetch_before(w, w->fetch_heap[down], value)) break;
        fetch_put(w, at, w->fetch_heap[down]);
        at = down;
    }
    fetch_put(w, at, value);
}

void mr_worker__fetch_want(struct mr_worker *w, uint32_t value, const struct task *t)
{
    struct value *v = &w->values[value];
    bool queued = v->fetch_at != NONE;
    if (queued && (t->priority < v->fetch_priority ||
                      (t->priority == v->fetch_priority && t->order >= v->fetch_order)))
        return;
    v->fetch_priority = t->priority;
    v->fetch_order = t->order;
    fetch_up(w, queued ? v->fetch_at : w->fetch_count++, value);
}

void mr_worker__fetch_unwant(struct mr_worker *w, struct value *v)
{
    uint32_t at = v->fetch_at;
    uint32_t last = w->fetch_heap[--w->fetch_count];
    v->fetch_at = NONE;
    if (at == w->fetch_count) return;
    if (at && fetch_before(w, last, w->fetch_heap[(at - 1) / 2])) {
        fetch_up(w, at, last);
    } else {
        fetch_down(w, at, last);
    }
}

/* True: the fetch may start. One fetch starts even above the budget if no other fetch is under way
 * and no task is ready or runs, because nothing else could free memory. */
static bool fetch_fits(const struct mr_worker *w, const struct value *v)
{
    if (w->fetching_count >= FETCHING_MAX) return false;
    if (v->object_bytes <=
        w->config.prefetch_bytes - MR_MIN(w->fetched_bytes, w->config.prefetch_bytes))
        return true;
    return !w->fetching_count && !w->given_count && !w->ready_count;
}

void mr_worker__fetch_start(struct mr_worker *w)
{
    while (w->fetch_count) {
        uint32_t value = w->fetch_heap[0];
        struct value *v = &w->values[value];
        if (!fetch_fits(w, v)) return;
        mr_worker__fetch_unwant(w, v);
        mr_assert(v->state == VALUE_PLACED);
        v->state = VALUE_FETCHING;
        v->serial = ++w->serial;
        w->fetching_count++;
        w->fetched_bytes += v->object_bytes;
        struct mr_worker_effect *e = mr_worker__fx_add(w, MR_WORKER_FETCH);
        e->object.value = value;
        e->object.serial = v->serial;
        e->object.node = v->node;
        e->object.bytes = v->object_bytes;
        e->object.object = v->object;
        e->object.job = value_job(w, v);
    }
}

void mr_worker__fetch_done(struct mr_worker *w, const struct mr_worker_event *ev)
{
    uint32_t value = ev->fetched.value;
    mr_assert(value < w->values_high);
    struct value *v = &w->values[value];
    /* A fetch that is no longer current is ignored: the core has sent UNPIN for it. */
    if (v->state != VALUE_FETCHING || v->serial != ev->fetched.serial) return;
    w->fetching_count--;
    if (ev->fetched.err) {
        w->fetched_bytes -= v->object_bytes;
        v->state = VALUE_PLACED; /* nothing is pinned */
        if (ev->fetched.err == MR_ELIMIT)
            mr_worker__value_users_end(w, value, ev->fetched.why);
        else
            mr_worker__value_lost(w, value, ev->fetched.why);
        return;
    }
    v->fetched = true;
    v->state = VALUE_HERE;
    mr_worker__value_came(w, value);
}
