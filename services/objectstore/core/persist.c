/* Objects that must outlive this process, because a client asked for it or because the process is
 * about to end. residency.c starts the writes. */
#include "services/objectstore/core/internal.h"

static bool has_name(const struct mr_ostore *s, const struct object *x)
{
    for (uint32_t at = x->links; at; at = s->links[at].next)
        if (s->links[at].kind == MR_HOLD_NAME) return true;
    return false;
}

void mr_ostore__persist(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    uint32_t o = mr_ostore__find(s, ev->id);
    int err = MR_OK;
    if (!o || s->objects[o].place == PLACE_WANTED)
        err = MR_ENOENT;
    else if (s->objects[o].place == PLACE_DOOMED)
        err = MR_ELOST;
    else if (s->objects[o].place == PLACE_EVICTING)
        err = MR_EAGAIN; /* the eviction ends soon, and then a retry succeeds */
    else if (!s->config.may_spill)
        err = MR_ESTATE;
    bool done = !err && s->objects[o].persisted;
    if (!err && !has_name(s, &s->objects[o])) mr_ostore__live_by_holders(s, o, false);
    if (!err && !done && !mr_ostore__wait(s, o, ev)) err = MR_ELIMIT;
    if (err || done) {
        mr_ostore__answer_persist(s, ev->client, ev->request, ev->id, err);
        return;
    }
    struct object *x = &s->objects[o];
    bool asked = x->to_persist;
    x->to_persist = true;
    /* If a spill or a pull of the object runs now, this write starts when the spill or the pull has
     * ended: in mr_ostore__written or in mr_ostore__seal. */
    bool pulled_now = x->place == PLACE_FETCHING && x->disk == DISK_NONE;
    if (!asked && x->disk != DISK_WRITING && !pulled_now) mr_ostore__write(s, o);
}

static bool is_held_for_long(const struct mr_ostore *s, const struct object *x)
{
    for (uint32_t at = x->links; at; at = s->links[at].next)
        if (s->links[at].kind == MR_HOLD_JOB || s->links[at].kind == MR_HOLD_NAME) return true;
    return false;
}

/* Writes results that a job still holds, and objects with a name. Copies of other nodes' objects
 * are not written. */
void mr_ostore__drain(struct mr_ostore *s)
{
    if (!s->config.may_spill) return;
    for (uint32_t o = 1; o <= s->objects_used; o++) {
        struct object *x = &s->objects[o];
        bool is_here = x->place == PLACE_RESIDENT || x->place == PLACE_SPILLED;
        if (!is_here || x->persisted || x->to_persist || x->replica || !is_held_for_long(s, x))
            continue;
        x->to_persist = true;
        x->by_holders = true;
        if (x->disk != DISK_WRITING) mr_ostore__write(s, o);
    }
}

bool mr_ostore_is_writing(const struct mr_ostore *s)
{
    return s->writes > 0;
}
