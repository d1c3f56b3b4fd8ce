/* The pins that the method Pin takes. Each is released after the time that its request asked
 * for. */
#include "services/objectstore/api/internal.h"

#include "base/alloc.h"
#include "host/clock.h"

struct lease {
    struct mr_list node;
    struct mr_store_view view;
    mr_time until;
};

void mr_lease_add(struct mr_service *sv, struct mr_store_view *view, mr_duration d)
{
    struct lease *l = mr_alloc(sizeof *l);
    l->view = *view;
    l->until = mr_time_after(mr_clock_now(), d);
    *view = (struct mr_store_view){.id = view->id};
    mr_list_add_tail(&sv->leases, &l->node);
}

mr_time mr_leases_end(struct mr_service *sv, mr_time now)
{
    mr_time next = MR_NEVER;
    MR_LIST_EACH(node, &sv->leases)
    {
        struct lease *l = MR_LIST_ITEM(node, struct lease, node);
        if (l->until > now) {
            next = MR_MIN(next, l->until);
            continue;
        }
        mr_list_remove(node);
        mr_store_release(sv->self, &l->view);
        mr_release(l);
    }
    return next;
}
