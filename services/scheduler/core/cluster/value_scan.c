/* Walks over all values, to find the values of one store or those of given objects. Each step does
 * a bounded part of a walk. If values are lost, a value that the walk has not reached yet still
 * counts as present. A worker that reads such a value meanwhile reports the value as missing. */
#include "services/scheduler/core/cluster/value_scan.h"

#include "base/assert.h"
#include "services/scheduler/core/state/emit.h"
#include "services/scheduler/core/task/lineage.h"
#include "services/scheduler/core/task/value.h"

#include <stdlib.h>

static int by_id(const void *a, const void *b)
{
    const mr_object_id *x = a, *y = b;
    if (x->maker != y->maker) return x->maker < y->maker ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static bool is_in(const struct scan *x, mr_object_id id)
{
    return bsearch(&id, x->ids.p, x->ids.n / sizeof id, sizeof id, by_id) != NULL;
}

static void value_lost(struct mr_sched *s, uint32_t value)
{
    struct value *v = &s->values[value];
    v->flags &= (uint8_t)~V_HELD;
    mr_sched__task_lost(s, v->task);
}

/* Records that `store` has the object of `v`: the store was restarted and found the object on its
 * disk, or had it all the time while the scheduler was restarted. */
static void claim(struct mr_sched *s, struct value *v, uint32_t store)
{
    if (v->store != store && v->store && s->stores[v->store].is_connected) return;
    if (v->worker != NONE) { /* kept_bytes counts only objects that a worker keeps */
        s->stores[v->store].kept_bytes -= v->bytes;
        s->stores[store].kept_bytes += v->bytes;
    }
    v->store = (uint16_t)store;
    v->flags = (uint8_t)((v->flags | V_HELD) & ~V_DOUBTED);
    mr_buf_add(&mr_sched__store_batch(s, store)->claimed, &v->object, sizeof v->object);
}

/* Moves the value from its store to `heir`, the store that has taken its place on the node, and
 * asks `heir` whether it has the object. `heir` may have found the object on the disk. */
static void pass_on(struct mr_sched *s, struct value *v, uint32_t heir)
{
    if (v->worker != NONE) { /* kept_bytes counts only objects that a worker keeps */
        s->stores[v->store].kept_bytes -= v->bytes;
        s->stores[heir].kept_bytes += v->bytes;
    }
    v->store = (uint16_t)heir;
    v->flags = (uint8_t)((v->flags | V_DOUBTED) & ~V_HELD);
    mr_sched__value_hold(s, v);
}

static void look_at(struct mr_sched *s, const struct scan *x, uint32_t value)
{
    struct value *v = &s->values[value];
    if (v->kind != V_OBJECT) return;
    switch (x->type) {
    case SCAN_STORE_LOST:
        if (v->store == x->store) value_lost(s, value);
        return;
    case SCAN_STORE_REPLACED:
        if (v->store == x->store) pass_on(s, v, x->heir);
        return;
    /* tells the store again to hold the object: the last messages to the store may be lost */
    case SCAN_STORE_HOLD:
        if (v->store != x->store) return;
        v->flags &= (uint8_t)~V_HELD;
        mr_sched__value_hold(s, v);
        return;
    case SCAN_OBJECTS_LOST:
        if ((v->store == x->store || !v->store) && is_in(x, v->object)) value_lost(s, value);
        return;
    case SCAN_OBJECTS_UNHELD:
        if (is_in(x, v->object)) claim(s, v, x->store);
        return;
    }
}

void mr_sched__scan_tick(struct mr_sched *s)
{
    uint32_t left = s->config.scan_values;
    while (s->scans.count && left) {
        struct scan *x = &s->scans.at[s->scans.first];
        for (; x->at < s->value_list.top && left; left--)
            look_at(s, x, x->at++);
        s->has_work = true;
        if (x->at < s->value_list.top) return;
        mr_buf_fini(&x->ids);
        s->scans.first = (s->scans.first + 1) % s->scans.max;
        s->scans.count--;
    }
}

/* Returns the ring's scan of this type and store that has not begun; NULL: there is no such
 * scan. */
static struct scan *waiting(struct scan_ring *r, enum scan_type type, uint32_t store)
{
    for (uint32_t i = 1; i < r->count; i++) { /* the scan at 0 has begun */
        struct scan *x = &r->at[(r->first + i) % r->max];
        if (x->type == type && x->store == store) return x;
    }
    return NULL;
}

static void scan(struct mr_sched *s, enum scan_type type, uint32_t store, uint32_t heir,
    const mr_object_id *ids, uint32_t count)
{
    bool is_first = !s->scans.count;
    struct scan *x = waiting(&s->scans, type, store);
    if (!x) {
        /* Scans of reported objects may use a quarter of the ring. The rest is for scans of whole
         * stores, at most one of each type for a store. A refused report does no harm: workers that
         * miss the objects report them again. */
        if (ids && s->scans.count > s->scans.max / 4) return;
        mr_assert(s->scans.count < s->scans.max);
        x = &s->scans.at[(s->scans.first + s->scans.count++) % s->scans.max];
        *x = (struct scan){.type = type, .store = store};
        mr_buf_init(&x->ids, SCAN_IDS_MAX * sizeof *ids);
    }
    x->heir = heir;
    if (ids) {
        if (x->ids.n + count * sizeof *ids > SCAN_IDS_MAX * sizeof *ids) return;
        mr_buf_add(&x->ids, ids, count * sizeof *ids);
        qsort(x->ids.p, x->ids.n / sizeof *ids, sizeof *ids, by_id);
    }
    if (is_first) mr_sched__scan_tick(s); /* this step ends the scan if there are few values */
}

void mr_sched__scan(struct mr_sched *s, enum scan_type type, uint32_t store,
    const mr_object_id *ids, uint32_t count)
{
    scan(s, type, store, 0, ids, count);
}

void mr_sched__scan_replaced(struct mr_sched *s, uint32_t store, uint32_t heir)
{
    scan(s, SCAN_STORE_REPLACED, store, heir, NULL, 0);
}

void mr_sched__scan_fini(struct scan_ring *r)
{
    for (uint32_t i = 0; i < r->count; i++)
        mr_buf_fini(&r->at[(r->first + i) % r->max].ids);
}
