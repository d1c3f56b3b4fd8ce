#include "account/pause.h"

#include "account/recent.h"
#include "base/alloc.h"
#include "base/defs.h"

void mr_account_pauses_fini(struct mr_account_pauses *p)
{
    mr_release(p->items);
    *p = (struct mr_account_pauses){0};
}

void mr_account_pauses_add(struct mr_account_pauses *p, uint32_t lane, mr_time from, mr_time until)
{
    if (from >= until) return;
    if (p->count == p->room) {
        uint32_t more = MR_MAX(16u, p->room * 2);
        p->items = mr_grow(p->items, p->room * sizeof *p->items, more * sizeof *p->items);
        p->room = more;
    }
    p->items[p->count++] = (struct mr_account_pause){lane, from, until};
}

static enum mr_account_class class_in(
    const struct mr_account_pause *p, uint32_t lane, enum mr_account_class class)
{
    /* in these classes the scheduler or the journal has to act, not the worker */
    bool is_elsewhere = class == MR_ACCOUNT_DECIDE || class == MR_ACCOUNT_MEMORY ||
                        class == MR_ACCOUNT_RESTRICTED || class == MR_ACCOUNT_JOURNAL;
    if (p->lane != MR_ACCOUNT_NONE)
        return p->lane == lane && !is_elsewhere ? MR_ACCOUNT_STOPPED : class;
    bool is_message = class == MR_ACCOUNT_REPORT || class == MR_ACCOUNT_SEND;
    return is_message ? MR_ACCOUNT_DECIDE : class;
}

enum mr_account_class mr_account_pauses_class(const struct mr_account_pauses *p, uint32_t lane,
    enum mr_account_class class, mr_time *from, mr_time until)
{
    enum mr_account_class found = class;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct mr_account_pause *x = &p->items[i];
        if (x->from >= until || x->until <= *from || class_in(x, lane, class) == class) continue;
        if (x->until >= until) {
            found = class_in(x, lane, class);
            *from = MR_MAX(*from, x->from);
            /* the answer holds for this pause; the caller asks again for the time before it */
            return found;
        }
        *from = MR_MAX(*from, x->until); /* the time after this pause keeps `class` */
    }
    return found;
}

mr_duration mr_account_pauses_ns(
    const struct mr_account_pauses *p, uint32_t lane, mr_time from, mr_time until)
{
    mr_duration ns = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct mr_account_pause *x = &p->items[i];
        mr_time begin = MR_MAX(x->from, from), end = MR_MIN(x->until, until);
        if (x->lane == lane && begin < end) ns += end - begin;
    }
    return ns;
}
