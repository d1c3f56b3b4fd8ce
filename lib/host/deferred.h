/* Work that a loop's own thread defers to its next round when its inbox has no room: the thread
 * that makes room cannot wait for it. It grows with the calls under way; each call defers one item
 * at most. Owned by the loop's thread. */
#pragma once

#include "base/alloc.h"

#include <stddef.h>

struct mr_deferred_item {
    void (*run)(void *p);
    void *p;
};

struct mr_deferred { /* zero: empty */
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

/* Runs what was left until now, in order; what that leaves stays for the next round. */
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
