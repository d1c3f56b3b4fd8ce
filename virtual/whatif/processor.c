/* A node's processors in virtual time. The kernel's fair share of many short time slices is taken
 * as a flow: N threads that work on P processors each run at P/N of a processor's speed. All works
 * run at the same speed. So the order in which they end follows from `served`, a clock that runs at
 * this speed, and a new work changes the end of each other work without a look at it. */
#include "virtual/whatif/internal.h"

#include "base/alloc.h"

#include <math.h>

#define ROUNDING_NS 0.5 /* a work counts as done if less than this is left */

static double speed_of(const struct mr_whatif_processors *p)
{
    return MR_MIN(1.0, p->count / p->uses_count);
}

static bool is_before(const struct mr_whatif_use *a, const struct mr_whatif_use *b)
{
    return a->until != b->until ? a->until < b->until : a->order < b->order;
}

static void add(struct mr_whatif_processors *p, struct mr_whatif_use use)
{
    if (p->uses_count == p->uses_room) {
        uint32_t room = MR_MAX(16u, 2 * p->uses_room);
        p->uses = mr_grow(p->uses, p->uses_room * sizeof use, room * sizeof use);
        p->uses_room = room;
    }
    uint32_t at = p->uses_count++;
    for (; at && is_before(&use, &p->uses[(at - 1) / 2]); at = (at - 1) / 2)
        p->uses[at] = p->uses[(at - 1) / 2];
    p->uses[at] = use;
}

static void remove_first(struct mr_whatif_processors *p)
{
    struct mr_whatif_use last = p->uses[--p->uses_count];
    uint32_t at = 0;
    for (uint32_t down = 1; down < p->uses_count; down = 2 * at + 1) {
        if (down + 1 < p->uses_count && is_before(&p->uses[down + 1], &p->uses[down])) down++;
        if (!is_before(&p->uses[down], &last)) break;
        p->uses[at] = p->uses[down];
        at = down;
    }
    if (p->uses_count) p->uses[at] = last;
}

/* Computes p->served for the present time. */
static void serve(struct mr_whatif_processors *p, mr_time now)
{
    if (p->uses_count) p->served += (double)(now - p->at) * speed_of(p);
    p->at = now;
}

/* Plans the event PROCESSED for the time at which the first work ends. */
static void plan(struct mr_whatif_cluster *c, struct mr_whatif_processors *p)
{
    mr_time at = MR_NEVER;
    if (p->uses_count)
        at = p->at + (mr_duration)ceil(MR_MAX(p->uses[0].until - p->served, 0.0) / speed_of(p));
    if (at == p->planned) return;
    p->planned = at;
    struct mr_virtual_event ev = {.kind = MR_WHATIF_PROCESSED, .a = (uint32_t)(p - c->processors)};
    if (at != MR_NEVER) mr_virtual_push(&c->queue, at, ev);
}

void mr_whatif__processors_use(
    struct mr_whatif_cluster *c, uint32_t node, double ns, struct mr_virtual_event done)
{
    struct mr_whatif_processors *p = &c->processors[node];
    if (p->count <= 0) {
        mr_virtual_push(&c->queue, c->now + (mr_duration)ns, done);
        return;
    }
    serve(p, c->now);
    add(p, (struct mr_whatif_use){.until = p->served + ns, .order = ++p->order, .done = done});
    plan(c, p);
}

void mr_whatif__processors_event(struct mr_whatif_cluster *c, const struct mr_virtual_event *ev)
{
    struct mr_whatif_processors *p = &c->processors[ev->a];
    if (p->planned != ev->at) return;
    p->planned = MR_NEVER;
    serve(p, c->now);
    while (p->uses_count && p->uses[0].until - p->served < ROUNDING_NS) {
        mr_virtual_push(&c->queue, c->now, p->uses[0].done);
        remove_first(p);
    }
    plan(c, p);
}
