/* A list of work that the thread of an event loop puts off until the loop's next round. The thread
 * puts work off when the inbox that the work needs is full. The thread cannot wait for room in the
 * inbox, because the thread itself makes this room. Each gRPC call defers at most one item, so the
 * number of open calls bounds the list. Only the loop's thread uses the list. */
#pragma once

#include "base/alloc.h"

#include <stddef.h>

struct mr_deferred_item {
    void (*run)(void *p);
    void *p;
};

struct mr_deferred { /* all zeros: the list is empty */
    struct mr_deferred_item *items;
    size_t count, room;
};

static inline void mr_deferred_add(struct mr_deferred *l, void (*run)(void *p), void *p)
{
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        l->items = mr_grow(l->items, l->room * sizeof *l->items, room * sizeof *l->items);
        l->room = room;
    }
    l->items[l->count++] = (struct mr_deferred_item){run, p};
}

/* Runs the items that are in the list now, in order, and returns their number. Items that are added
 * meanwhile stay for the next round. */
static inline size_t mr_deferred_run(struct mr_deferred *l)
{
    if (!l->count) return 0;
    struct mr_deferred now = *l;
    *l = (struct mr_deferred){0};
    for (size_t i = 0; i < now.count; i++)
        now.items[i].run(now.items[i].p);
    mr_release(now.items);
    return now.count;
}

static inline void mr_deferred_fini(struct mr_deferred *l)
{
    mr_release(l->items);
    *l = (struct mr_deferred){0};
}
