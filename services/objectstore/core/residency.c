/* How objects leave memory and come back: evictions, writes to disk, restores from disk, and pulls
 * from other stores. */
#include "services/objectstore/core/internal.h"

void mr_ostore__evict(struct mr_ostore *s, uint32_t o)
{
    mr_ostore__move_to(s, o, PLACE_EVICTING);
    mr_ostore__ask_evict(s, o, false);
}

void mr_ostore__write(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    mr_assert(x->disk != DISK_WRITING);
    mr_assert(!x->persisted);
    if (x->disk == DISK_NONE) x->disk = DISK_WRITING;
    x->being_written = true;
    s->writes++;
    struct mr_ostore_effect *fx = mr_ostore__emit(s, MR_OX_WRITE);
    fx->object = o;
    fx->id = x->id;
    fx->bytes = x->bytes;
    fx->flags = x->to_persist ? MR_OSTORE_PERSISTED : 0;
    if (x->to_persist && x->by_holders) fx->flags |= MR_OSTORE_BY_HOLDERS;
}

void mr_ostore__fetch(struct mr_ostore *s, uint32_t o, uint32_t source)
{
    struct object *x = &s->objects[o];
    mr_ostore__move_to(s, o, PLACE_FETCHING);
    bool restore = x->disk == DISK_WRITTEN;
    x->source = source;
    x->other_source = 0;
    struct mr_ostore_effect *fx = mr_ostore__emit(s, restore ? MR_OX_RESTORE : MR_OX_PULL);
    fx->object = o;
    fx->id = x->id;
    fx->bytes = x->bytes;
    fx->source = source;
}

static void evict_succeeded(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    mr_ostore__stop_leaving(s, x);
    mr_ostore__enlist(s, o, LIST_NONE);
    mr_ostore__leave_room(s, o);
    if (x->place == PLACE_DOOMED) {
        mr_ostore__remove(s, o);
        return;
    }
    if (x->disk == DISK_WRITTEN) {
        mr_ostore__move_to(s, o, PLACE_SPILLED);
        s->stats.spilled_bytes += x->bytes;
        s->stats.objects_spilled++;
        s->stats.spills++;
        if (x->waiters) mr_ostore__fetch(s, o, 0);
        return;
    }
    mr_assert(x->replica);
    mr_ostore__unplace(s, o);
    mr_ostore__move_to(s, o, PLACE_WANTED);
    s->replicas--;
    x->replica = false;
    if (!x->waiters) mr_ostore__remove(s, o);
}

void mr_ostore__evicted(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    uint32_t o = ev->object;
    mr_assert(o > 0);
    mr_assert(o <= s->objects_used);
    struct object *x = &s->objects[o];
    mr_assert(x->evict_asked);
    x->evict_asked = false;
    if (!ev->err) {
        evict_succeeded(s, o);
        return;
    }
    /* the object is in LIST_DOOMED, and mr_ostore__retry_doomed asks for its eviction again */
    if (x->place == PLACE_DOOMED) return;
    mr_ostore__move_to(s, o, PLACE_RESIDENT);
    mr_ostore__enlist_recent(s, o);
    mr_ostore__stop_leaving(s, x);
    mr_ostore__answer_waiters(s, o, false, MR_OK);
}

/* Takes note of the result of a write. While the disk is full, one object is written every
 * DISK_PROBE_NS to notice when there is space again. */
static void note_disk(struct mr_ostore *s, int err)
{
    s->write_failures += err == MR_EDISKFULL || err == MR_EIO;
    if (!err) s->disk_full = false;
    if (err != MR_EDISKFULL) return;
    s->disk_full = true;
    s->disk_failed = s->now;
    s->disk_probe = mr_time_after(s->now, DISK_PROBE_NS);
}

void mr_ostore__written(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    mr_assert(s->writes > 0);
    s->writes--;
    uint32_t o = mr_ostore__find(s, ev->id);
    struct object *x = &s->objects[o];
    /* the object was deleted meanwhile; its id may be in use again, for a pull */
    if (!o || !x->being_written) {
        bool has_file = o && x->disk != DISK_NONE;
        if (!ev->err && !has_file) mr_ostore__emit(s, MR_OX_ERASE)->id = ev->id;
        return;
    }
    x->being_written = false;
    note_disk(s, ev->err);
    if (ev->err) {
        if (x->disk == DISK_WRITING) x->disk = DISK_NONE;
        x->tried = ev->err == MR_EDISKFULL ? s->now : mr_time_after(s->now, DISK_RETRY_NS);
        x->to_persist = false;
        mr_ostore__stop_leaving(s, x);
        mr_ostore__answer_waiters(s, o, true, ev->err);
        return;
    }
    x->disk = DISK_WRITTEN;
    s->stats.written_bytes += x->bytes;
    if ((ev->flags & MR_OSTORE_PERSISTED) && !x->persisted) {
        x->persisted = true;
        x->to_persist = false;
        s->stats.persisted_bytes += x->bytes;
        /* x->by_holders may have changed during the write, which used the value in ev->flags */
        bool by_holders = x->by_holders;
        x->by_holders = ev->flags & MR_OSTORE_BY_HOLDERS;
        mr_ostore__live_by_holders(s, o, by_holders);
        mr_ostore__answer_waiters(s, o, true, MR_OK);
    } else if (x->to_persist && x->place != PLACE_DOOMED) {
        mr_ostore__write(s, o);
        return;
    }
    if (x->leaving && x->place == PLACE_RESIDENT && !x->pins)
        mr_ostore__evict(s, o);
    else
        mr_ostore__stop_leaving(s, x);
}

void mr_ostore__fetch_failed(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    uint32_t o = mr_ostore__find(s, ev->id);
    if (!o || s->objects[o].place != PLACE_FETCHING) return;
    struct object *x = &s->objects[o];
    bool restoring = x->disk == DISK_WRITTEN;
    if (restoring && (ev->err == MR_ELOST || ev->err == MR_EFORMAT)) {
        mr_ostore__remove(s, o); /* the lost file was the only copy */
        return;
    }
    mr_ostore__move_to(s, o, restoring ? PLACE_SPILLED : PLACE_WANTED);
    if (x->other_source && x->waiters && !restoring) {
        mr_ostore__fetch(s, o, x->other_source);
        return;
    }
    if (ev->err == MR_EAGAIN && !restoring) { /* no store has the object yet: a task may make it */
        x->to_persist = false;
        mr_ostore__answer_waiters(
            s, o, true, MR_ENOENT); /* the same answer as for an object that was never made */
        if (x->waiters) return;
    }
    mr_ostore__answer_waiters(s, o, false, ev->err);
    if (restoring) return;
    mr_ostore__answer_waiters(s, o, true, ev->err);
    mr_ostore__remove(s, o);
}

void mr_ostore__recovered(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    if (mr_ostore__find(s, ev->id)) return;
    uint32_t o = mr_ostore__object_new(s, ev->id);
    if (!o) return;
    struct object *x = &s->objects[o];
    mr_ostore__move_to(s, o, PLACE_SPILLED);
    x->disk = DISK_WRITTEN;
    x->persisted = true;
    x->bytes = ev->bytes;
    s->stats.spilled_bytes += x->bytes;
    s->stats.persisted_bytes += x->bytes;
    s->stats.objects_spilled++;
    x->by_holders = ev->flags & MR_OSTORE_BY_HOLDERS;
    if (x->by_holders) mr_ostore__doubt(s, o);
}
