/* Requests of clients: to seal, get, read ahead and delete objects. */
#include "services/objectstore/core/internal.h"

static bool room_is_theirs(
    struct mr_ostore *s, const struct mr_ostore_event *ev, const struct client *c)
{
    /* slot 0, which stands for no segment, has no client */
    const struct segment *g = &s->segments[mr_ostore__segment_of(s, ev->segment)];
    if (g->client != c->number || g->orphaned) return false;
    if (ev->offset < MR_EXTENT_HEAD || ev->room < MR_EXTENT_HEAD) return false;
    if (ev->bytes > ev->room - MR_EXTENT_HEAD || ev->room > g->bytes) return false;
    return ev->offset - MR_EXTENT_HEAD <= g->bytes - ev->room;
}

/* Returns the object that this seal makes or fills; 0: there is none, and the caller frees the
 * room. */
static uint32_t object_to_seal(
    struct mr_ostore *s, const struct mr_ostore_event *ev, const struct client *c)
{
    bool copy = c->internal && (ev->flags & MR_SEAL_ADOPT);
    if (!copy && ev->id.maker != c->maker) return 0;
    if (mr_object_id_is_none(ev->id)) return 0;
    uint32_t o = mr_ostore__find(s, ev->id);
    if (!o) return copy ? 0 : mr_ostore__object_new(s, ev->id);
    const struct object *x = &s->objects[o];
    if (copy && x->disk == DISK_WRITTEN && x->bytes != ev->bytes) return 0;
    if (x->place == PLACE_FETCHING && (copy || x->disk == DISK_NONE)) return o;
    return x->place == PLACE_WANTED && !copy ? o : 0;
}

static void take_holders(
    struct mr_ostore *s, uint32_t o, const struct mr_ostore_event *ev, const struct client *c)
{
    struct object *x = &s->objects[o];
    if (c->internal && (ev->flags & MR_SEAL_ADOPT)) {
        if (x->disk == DISK_WRITTEN) {
            s->stats.restores++;
            s->stats.read_bytes += x->bytes;
            s->stats.spilled_bytes -= x->bytes;
            s->stats.objects_spilled--;
        } else {
            x->replica = true;
            x->unheld_since = s->now;
            s->replicas++;
            s->stats.pulls++;
            s->stats.pulled_bytes += ev->bytes;
        }
        return;
    }
    x->owner = ev->owner;
    x->maker = c->number;
    if (ev->owner.job.v)
        (void)mr_ostore__link(s, o, MR_HOLD_JOB, ev->owner.job.v);
    else
        (void)mr_ostore__link(s, o, MR_HOLD_CLIENT, c->number);
}

/* Refuses a seal, because the table of objects is full. Clients stop making objects before that,
 * but seals may have been on their way. */
static void refuse(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    s->stats.seals_refused++;
    struct mr_ostore_effect *fx = mr_ostore__emit(s, MR_OX_REFUSED);
    fx->client = ev->client;
    fx->id = ev->id;
    if (ev->owner.job.v) mr_ostore__emit(s, MR_OX_LOST)->id = ev->id;
}

void mr_ostore__seal(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    const struct client *c = mr_ostore__client(s, ev->client);
    if (!c || !room_is_theirs(s, ev, c)) return; /* the room does not belong to this client */
    struct segment *g = &s->segments[mr_ostore__segment_of(s, ev->segment)];
    g->live++;
    uint32_t before = s->objects_count;
    uint32_t o = object_to_seal(s, ev, c);
    if (!o) {
        if (before + 1 >= s->config.objects_max) refuse(s, ev);
        mr_ostore__room_free(s, ev->segment, ev->offset - MR_EXTENT_HEAD, ev->room);
        return;
    }
    struct object *x = &s->objects[o];
    bool is_copy = c->internal && (ev->flags & MR_SEAL_ADOPT);
    uint32_t from = x->disk == DISK_WRITTEN ? MR_OSTORE_RESTORED : MR_OSTORE_PULLED;
    take_holders(s, o, ev, c);
    mr_ostore__move_to(s, o, PLACE_RESIDENT);
    x->in_place = true;
    x->segment = ev->segment;
    x->group = g->group;
    x->offset = ev->offset;
    x->bytes = ev->bytes;
    x->room = ev->room;
    s->stats.object_bytes += x->bytes;
    s->rooms_bytes += x->room;
    if (ev->flags & MR_SEAL_KEEP) (void)mr_ostore__link(s, o, LINK_PIN, ev->client);
    struct mr_ostore_effect *fx = mr_ostore__emit(s, MR_OX_PUBLISH);
    fx->object = o;
    fx->id = x->id;
    fx->segment = x->segment;
    fx->offset = x->offset;
    fx->bytes = x->bytes;
    mr_ostore__enlist_recent(s, o);
    if (is_copy) mr_ostore__answer_copied(s, o, from);
    mr_ostore__answer_waiters(s, o, false, MR_OK);
    if (x->to_persist && x->disk == DISK_NONE) mr_ostore__write(s, o);
}

void mr_ostore__get(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    uint32_t o = mr_ostore__find(s, ev->id);
    enum place place = o ? s->objects[o].place : PLACE_FREE;
    if (place == PLACE_RESIDENT) {
        mr_ostore__enlist_recent(s, o);
        (void)mr_ostore__answer_got(s, ev->client, ev->request, o, 0);
        return;
    }
    int err = place == PLACE_DOOMED ? MR_ELOST : (ev->timeout == 0 ? MR_EAGAIN : MR_OK);
    if (!err && mr_object_id_is_none(ev->id)) err = MR_EINVAL;
    if (!err && !o) o = mr_ostore__object_new(s, ev->id);
    if (!err && (!o || !mr_ostore__wait(s, o, ev))) err = MR_ELIMIT;
    if (err) {
        mr_ostore__refuse_get(s, ev->client, ev->request, ev->id, err);
        if (o && s->objects[o].place == PLACE_WANTED && !s->objects[o].waiters)
            mr_ostore__remove(s, o);
        return;
    }
    struct object *x = &s->objects[o];
    place = x->place;
    bool known = ev->source && ev->source != MR_OSTORE_SEEK;
    if (place == PLACE_FETCHING && known && ev->source != x->source) x->other_source = ev->source;
    if (place == PLACE_SPILLED || (place == PLACE_WANTED && ev->source))
        mr_ostore__fetch(s, o, ev->source);
}

/* Prefetches an object from disk while clients compute. Prefetched objects must not evict objects
 * in use. So only 1/AHEAD_SHARE of memory is prefetched at a time, unless a task already waits for
 * the object. */
void mr_ostore__want(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    uint32_t o = mr_ostore__find(s, ev->id);
    if (!o || s->objects[o].place != PLACE_SPILLED) return;
    bool at_once = ev->flags & MR_OSTORE_AT_ONCE;
    uint64_t most = s->config.memory_bytes / AHEAD_SHARE;
    if (!at_once && s->coming_bytes + s->objects[o].bytes > most) return;
    mr_ostore__fetch(s, o, 0);
}

void mr_ostore__delete(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    uint32_t o = mr_ostore__find(s, ev->id);
    struct mr_store_holder holder = {0};
    if (o && !(ev->flags & MR_OSTORE_FORCE)) holder = mr_ostore__some_holder(s, o, ev->client);
    if (o && !holder.kind && s->objects[o].place != PLACE_WANTED) mr_ostore__doom(s, o);
    struct mr_ostore_effect *fx = mr_ostore__emit(s, MR_OX_DONE);
    fx->client = ev->client;
    fx->request = ev->request;
    fx->id = ev->id;
    fx->holder = holder;
    fx->err = holder.kind ? MR_ESTATE : MR_OK;
}
