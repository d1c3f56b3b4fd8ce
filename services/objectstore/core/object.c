/* The life cycle of an object: the moves between its states, and its end. An object ends when a
 * client deletes it, when its last holder goes, or when its only copy is lost. A copy of another
 * node's object also ends when no client uses it. */
#include "services/objectstore/core/internal.h"

#define P(x) (1u << PLACE_##x)
static const unsigned allowed[] = {
    [PLACE_FREE] = 0,
    [PLACE_WANTED] = P(FETCHING) | P(RESIDENT) | P(SPILLED),
    [PLACE_FETCHING] = P(RESIDENT) | P(SPILLED) | P(WANTED),
    [PLACE_RESIDENT] = P(EVICTING) | P(DOOMED),
    [PLACE_EVICTING] = P(RESIDENT) | P(SPILLED) | P(WANTED) | P(DOOMED),
    [PLACE_SPILLED] = P(FETCHING),
    [PLACE_DOOMED] = 0,
};

void mr_ostore__move_to(struct mr_ostore *s, uint32_t o, enum place to)
{
    struct object *x = &s->objects[o];
    mr_assert(allowed[x->place] & 1u << to);
    if (x->place == PLACE_FETCHING && x->disk == DISK_WRITTEN) s->coming_bytes -= x->bytes;
    x->place = to;
    if (x->place == PLACE_FETCHING && x->disk == DISK_WRITTEN) s->coming_bytes += x->bytes;
}

void mr_ostore__enlist_recent(struct mr_ostore *s, uint32_t o)
{
    bool large = s->objects[o].bytes > MR_SMALL_BYTES_MAX;
    mr_ostore__enlist(s, o, large ? LIST_LARGE : LIST_SMALL);
}

void mr_ostore__leave_room(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    mr_assert(x->in_place);
    x->in_place = false;
    x->group = 0;
    s->stats.object_bytes -= x->bytes;
    s->rooms_bytes -= x->room;
    mr_ostore__room_free(s, x->segment, x->offset - MR_EXTENT_HEAD, x->room);
}

void mr_ostore__stop_leaving(struct mr_ostore *s, struct object *x)
{
    if (!x->leaving) return;
    s->leaving_bytes -= x->room;
    mr_ostore__group_leaving(s, x, false);
    x->leaving = false;
}

/* ---- death ------------------------------------------------------------------------------------*/

static void tell_lost(struct mr_ostore *s, uint32_t o)
{
    if (mr_ostore__has_job(s, o)) mr_ostore__emit(s, MR_OX_LOST)->id = s->objects[o].id;
}

void mr_ostore__live_by_holders(struct mr_ostore *s, uint32_t o, bool on)
{
    struct object *x = &s->objects[o];
    if (x->by_holders == on) return;
    x->by_holders = on;
    if (!x->persisted) return; /* the object's file is not written yet */
    struct mr_ostore_effect *fx = mr_ostore__emit(s, MR_OX_MOVE);
    fx->id = x->id;
    fx->flags = on ? MR_OSTORE_BY_HOLDERS : 0;
}

/* Removes the object's entry from the cluster's directory. The entry lives exactly as long as the
 * object is in this store (I34 in docs/invariants.md). */
void mr_ostore__unplace(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    if (x->placed) mr_ostore__emit(s, MR_OX_UNPLACE)->id = x->id;
    x->placed = false;
}

/* Takes note that the directory has an entry for the object. If this store does not have the
 * object, it was deleted meanwhile, or an earlier process wrote the entry; then the entry is
 * removed. */
void mr_ostore__placed(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    uint32_t o = mr_ostore__find(s, ev->id);
    if (o && mr_ostore_is_here(&s->objects[o]))
        s->objects[o].placed = true;
    else
        mr_ostore__emit(s, MR_OX_UNPLACE)->id = ev->id;
}

void mr_ostore__remove(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    mr_ostore__unplace(s, o);
    if (x->place != PLACE_DOOMED)
        tell_lost(s, o); /* a doomed object was reported as lost when it was doomed */
    mr_ostore__answer_waiters(s, o, false, MR_ELOST);
    mr_ostore__answer_waiters(s, o, true, MR_ELOST);
    mr_ostore__stop_leaving(s, x);
    if (x->disk == DISK_WRITTEN) {
        mr_ostore__emit(s, MR_OX_ERASE)->id = x->id;
        if (x->persisted) s->stats.persisted_bytes -= x->bytes;
    }
    if (x->place == PLACE_SPILLED || (x->place == PLACE_FETCHING && x->disk == DISK_WRITTEN)) {
        s->stats.spilled_bytes -= x->bytes;
        s->stats.objects_spilled--;
    }
    if (x->place == PLACE_FETCHING && x->disk == DISK_WRITTEN) s->coming_bytes -= x->bytes;
    s->replicas -= x->replica;
    mr_ostore__object_drop(s, o);
}

void mr_ostore__ask_evict(struct mr_ostore *s, uint32_t o, bool for_ever)
{
    struct object *x = &s->objects[o];
    mr_assert(!x->evict_asked);
    x->evict_asked = true;
    x->tried = s->now;
    struct mr_ostore_effect *fx = mr_ostore__emit(s, MR_OX_EVICT);
    fx->object = o;
    fx->flags = for_ever;
}

void mr_ostore__doom(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    if (x->place == PLACE_DOOMED) return;
    if (x->place != PLACE_RESIDENT && x->place != PLACE_EVICTING) {
        mr_ostore__remove(s, o);
        return;
    }
    tell_lost(s, o);
    mr_ostore__unplace(s, o);
    mr_ostore__answer_waiters(s, o, false, MR_ELOST);
    mr_ostore__answer_waiters(s, o, true, MR_ELOST);
    mr_ostore__stop_leaving(s, x);
    mr_ostore__move_to(s, o, PLACE_DOOMED);
    mr_ostore__enlist(s, o, LIST_DOOMED);
    if (!x->pins && !x->evict_asked) mr_ostore__ask_evict(s, o, true);
    s->doomed_wait = RETRY_NS;
    s->retry = MR_MIN(s->retry, s->now + RETRY_NS);
}

void mr_ostore__retry_doomed(struct mr_ostore *s)
{
    uint32_t n = MR_MIN(s->lists[LIST_DOOMED].count, SCAN_MAX);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t o = s->lists[LIST_DOOMED].head;
        struct object *x = &s->objects[o];
        mr_ostore__enlist(s, o, LIST_DOOMED); /* moves the object to the other end of the list */
        if (!x->pins && !x->evict_asked) mr_ostore__ask_evict(s, o, true);
    }
}

void mr_ostore__unheld(struct mr_ostore *s, uint32_t o)
{
    const struct object *x = &s->objects[o];
    if (x->holders || x->to_persist || x->place == PLACE_DOOMED) return;
    if (x->persisted && !x->by_holders) return; /* the object lives until a client deletes it */
    if (x->place == PLACE_WANTED) return; /* the object lives as long as clients wait for it */
    mr_ostore__doom(s, o);
}

static bool claim_is_over(const struct mr_ostore *s, const struct object *x)
{
    return s->now >= mr_time_after(x->unheld_since, s->config.orphan_ns);
}

/* Called for an object that the scheduler was asked about and did not claim: no job holds it. */
static void free_unclaimed(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    mr_ostore__vouch(s, o);
    /* A maker that is still connected vouches for the hold of its own job. Only the hold of the
     * scheduler, which has the key 0, is in doubt. */
    bool went = mr_ostore__client(s, x->maker) ? mr_ostore__unlink(s, o, MR_HOLD_JOB, 0)
                                               : mr_ostore__unlink_jobs(s, o);
    if (x->holders || x->to_persist || (x->persisted && !x->by_holders)) return;
    if (!went && !x->by_holders) return;
    s->stats.orphans_freed++;
    mr_ostore__unheld(s, o);
}

/* Frees copies of other nodes' objects that no client of this node has used for orphan_ns. An
 * object whose holders may no longer exist is `unvouched`. If no job has claimed such an object
 * orphan_ns after the scheduler was asked, calls free_unclaimed. Examines at most SCAN_MAX objects,
 * and the next call goes on behind them. */
void mr_ostore__check_orphans(struct mr_ostore *s)
{
    for (uint32_t i = 0; i < SCAN_MAX && i < s->objects_used; i++) {
        uint32_t o = s->orphan_cursor % s->objects_used + 1;
        s->orphan_cursor = o;
        struct object *x = &s->objects[o];
        if (x->unvouched && x->offered && claim_is_over(s, x)) {
            free_unclaimed(s, o);
            continue;
        }
        if (x->place != PLACE_RESIDENT || !x->replica || x->holders || x->persisted) continue;
        if (x->pins || !claim_is_over(s, x)) continue;
        s->stats.orphans_freed++;
        mr_ostore__doom(s, o);
    }
}
