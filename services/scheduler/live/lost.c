#include "services/scheduler/live/lost.h"

#include "base/defs.h"

#include <stdlib.h>

#define EVENTS_LOOKED_MAX 4096u

static int compare(struct mr_str a, bool a_is_store, const struct mr_lost_one *b)
{
    if (a_is_store != b->is_store) return a_is_store ? 1 : -1;
    return mr_str_cmp(a, b->name);
}

/* Of equal names, the one that was lost last comes first. */
static int by_name(const void *a, const void *b)
{
    const struct mr_lost_one *x = *(struct mr_lost_one *const *)a;
    const struct mr_lost_one *y = *(struct mr_lost_one *const *)b;
    int order = compare(x->name, x->is_store, y);
    return order ? order : (x > y) - (x < y);
}

static void add(struct mr_lost *out, const struct mr_cluster_event *e)
{
    bool is_store = e->change == MR_CLUSTER_STORE_LOST;
    const char *name = is_store ? e->node : e->worker;
    if (!name || (!is_store && e->change != MR_CLUSTER_WORKER_LOST)) return;
    struct mr_lost_one *x = &out->at[out->count];
    *x = (struct mr_lost_one){.name = mr_str(name), .is_store = is_store, .wall_ns = e->wall_ns};
    out->by_name[out->count++] = x;
}

void mr_lost_find(const struct mr_cluster_ring *ring, uint64_t since_ns, struct mr_lost *out)
{
    uint64_t first = mr_cluster_ring_first(ring), missed;
    out->count = out->names_count = 0;
    out->compared = 0;
    for (uint64_t n = ring->last, i = 0; n >= first && i < EVENTS_LOOKED_MAX; n--, i++) {
        const struct mr_cluster_event *e = mr_cluster_ring_next(ring, n - 1, &missed);
        if (!e || e->wall_ns < since_ns || out->count == MR_LOST_MAX) break;
        add(out, e);
    }
    if (out->count) qsort(out->by_name, out->count, sizeof *out->by_name, by_name);
    for (uint32_t i = 0; i < out->count; i++) {
        struct mr_lost_one *x = out->by_name[i];
        struct mr_lost_one *before = out->names_count ? out->by_name[out->names_count - 1] : NULL;
        if (before && !compare(x->name, x->is_store, before))
            x->is_here = true; /* it came back before it was lost again */
        else
            out->by_name[out->names_count++] = x;
    }
}

void mr_lost_here(struct mr_lost *l, bool is_store, struct mr_str name)
{
    for (uint32_t low = 0, high = l->names_count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare(name, is_store, l->by_name[middle]);
        l->compared++;
        if (!order) {
            l->by_name[middle]->is_here = true;
            return;
        }
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
}
