/* The life cycle of objects: created, found, pinned, held, spilled, restored, deleted. */
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

static void move_to(struct mr_ostore *s, uint32_t o, enum place to)
{
    struct object *x = &s->objects[o];
    mr_assert(allowed[x->place] & 1u << to);
    if (x->place == PLACE_FETCHING && x->disk == DISK_WRITTEN) s->coming_bytes -= x->bytes;
    x->place = to;
    if (x->place == PLACE_FETCHING && x->disk == DISK_WRITTEN) s->coming_bytes += x->bytes;
}

static void enlist_recent(struct mr_ostore *s, uint32_t o)
{
    bool large = s->objects[o].bytes > MR_SMALL_BYTES_MAX;
    mr_ostore__enlist(s, o, large ? LIST_LARGE : LIST_SMALL);
}

static void leave_room(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    mr_assert(x->in_place);
    x->in_place = false;
    x->group = 0;
    s->stats.object_bytes -= x->bytes;
    s->rooms_bytes -= x->room;
    mr_ostore__room_free(s, x->segment, x->offset - MR_EXTENT_HEAD, x->room);
}

static void stop_leaving(struct mr_ostore *s, struct object *x)
{
    if (!x->leaving) return;
    s->leaving_bytes -= x->room;
    mr_ostore__group_leaving(s, x, false);
    x->leaving = false;
}

/* ---- answers ----------------------------------------------------------------------------------*/

void mr_ostore__answer(
    struct mr_ostore *s, uint32_t client, uint64_t request, bool persist, mr_object_id id, int err)
{
    struct mr_ostore_effect *x = mr_ostore__emit(s, persist ? MR_OX_DONE : MR_OX_GOT);
    x->client = client;
    x->request = request;
    x->id = id;
    x->err = err;
}

/* True: it is the client's now. `flags`: of the effect. */
static bool answer_got(
    struct mr_ostore *s, uint32_t client, uint64_t request, uint32_t o, uint32_t flags)
{
    struct object *x = &s->objects[o];
    if (!mr_ostore__client(s, client)) return false;
    if (!mr_ostore__link(s, o, LINK_PIN, client)) {
        mr_ostore__answer(s, client, request, false, x->id, MR_ELIMIT);
        return false;
    }
    struct mr_ostore_effect *fx = mr_ostore__emit(s, MR_OX_GOT);
    fx->client = client;
    fx->request = request;
    fx->flags = flags;
    fx->object = o;
    fx->id = x->id;
    fx->segment = x->segment;
    fx->offset = x->offset;
    fx->bytes = x->bytes;
    return true;
}

/* The first client that gets it learns that it came from another store. */
static void answer_pulled(struct mr_ostore *s, uint32_t o)
{
    bool told = false;
    for (uint32_t w = s->objects[o].waiters, next; w && !told; w = next) {
        const struct waiter x = s->waiters[w];
        next = x.next;
        if (x.persist) continue;
        mr_ostore__waiter_drop(s, w);
        told = answer_got(s, x.client, x.request, o, MR_OSTORE_PULLED);
    }
}

static void answer_waiters(struct mr_ostore *s, uint32_t o, bool persist, int err)
{
    for (uint32_t w = s->objects[o].waiters, next; w; w = next) {
        struct waiter *x = &s->waiters[w];
        next = x->next;
        if (x->persist != persist) continue;
        uint32_t client = x->client;
        uint64_t request = x->request;
        mr_ostore__waiter_drop(s, w);
        if (err || persist)
            mr_ostore__answer(s, client, request, persist, s->objects[o].id, err);
        else
            (void)answer_got(s, client, request, o, 0);
    }
}

void mr_ostore__waiter_expire(struct mr_ostore *s, uint32_t w, int err)
{
    struct waiter x = s->waiters[w];
    mr_ostore__answer(s, x.client, x.request, x.persist, s->objects[x.object].id, err);
    mr_ostore__waiter_drop(s, w);
    struct object *object = &s->objects[x.object];
    if (object->place == PLACE_WANTED && !object->waiters) mr_ostore__object_drop(s, x.object);
}

/* ---- death ------------------------------------------------------------------------------------*/

static void tell_lost(struct mr_ostore *s, uint32_t o)
{
    if (mr_ostore__has_job(s, o)) mr_ostore__emit(s, MR_OX_LOST)->id = s->objects[o].id;
}

void mr_ostore__vouch(struct mr_ostore *s, uint32_t o)
{
    s->unvouched -= s->objects[o].unvouched;
    s->objects[o].unvouched = s->objects[o].offered = false;
}

void mr_ostore__doubt(struct mr_ostore *s, uint32_t o)
{
    s->unvouched += !s->objects[o].unvouched;
    s->objects[o].unvouched = true;
    s->objects[o].offered = false;
}

void mr_ostore__live_by_holders(struct mr_ostore *s, uint32_t o, bool on)
{
    struct object *x = &s->objects[o];
    if (x->by_holders == on) return;
    x->by_holders = on;
    if (!x->persisted) return; /* its file is not written yet */
    struct mr_ostore_effect *fx = mr_ostore__emit(s, MR_OX_MOVE);
    fx->id = x->id;
    fx->flags = on ? MR_OSTORE_BY_HOLDERS : 0;
}

/* An entry in the cluster's directory lives exactly as long as the object does here (I34). */
static void unplace(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    if (x->placed) mr_ostore__emit(s, MR_OX_UNPLACE)->id = x->id;
    x->placed = false;
}

/* PLACED comes after the entry was written. If there is no object, it was deleted meanwhile, or
 * the entry is of an earlier process. */
void mr_ostore__placed(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    uint32_t o = mr_ostore__find(s, ev->id);
    if (o && mr_ostore_is_here(&s->objects[o]))
        s->objects[o].placed = true;
    else
        mr_ostore__emit(s, MR_OX_UNPLACE)->id = ev->id;
}

static void drop(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    unplace(s, o);
    if (x->place != PLACE_DOOMED) tell_lost(s, o); /* else reported when doomed */
    answer_waiters(s, o, false, MR_ELOST);
    answer_waiters(s, o, true, MR_ELOST);
    stop_leaving(s, x);
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

static void ask_evict(struct mr_ostore *s, uint32_t o, bool for_ever)
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
        drop(s, o);
        return;
    }
    tell_lost(s, o);
    unplace(s, o);
    answer_waiters(s, o, false, MR_ELOST);
    answer_waiters(s, o, true, MR_ELOST);
    stop_leaving(s, x);
    move_to(s, o, PLACE_DOOMED);
    mr_ostore__enlist(s, o, LIST_DOOMED);
    if (!x->pins && !x->evict_asked) ask_evict(s, o, true);
    s->doomed_wait = RETRY_NS;
    s->retry = MR_MIN(s->retry, s->now + RETRY_NS);
}

void mr_ostore__retry_doomed(struct mr_ostore *s)
{
    uint32_t n = MR_MIN(s->lists[LIST_DOOMED].count, SCAN_MAX);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t o = s->lists[LIST_DOOMED].head;
        struct object *x = &s->objects[o];
        mr_ostore__enlist(s, o, LIST_DOOMED); /* to the other end */
        if (!x->pins && !x->evict_asked) ask_evict(s, o, true);
    }
}

void mr_ostore__unheld(struct mr_ostore *s, uint32_t o)
{
    const struct object *x = &s->objects[o];
    if (x->holders || x->to_persist || x->place == PLACE_DOOMED) return;
    if (x->persisted && !x->by_holders) return; /* until a client deletes it */
    if (x->place == PLACE_WANTED) return;       /* lives by its waiters */
    mr_ostore__doom(s, o);
}

static bool claim_is_over(const struct mr_ostore *s, const struct object *x)
{
    return s->now >= mr_time_after(x->unheld_since, s->config.orphan_ns);
}

/* All possible claimants were asked, and none claimed it. */
static void free_unclaimed(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    mr_ostore__vouch(s, o);
    /* Of what a living worker made, only the scheduler's own hold is in doubt. */
    bool went = mr_ostore__client(s, x->maker) ? mr_ostore__unlink(s, o, MR_HOLD_JOB, 0)
                                               : mr_ostore__unlink_jobs(s, o);
    if (x->holders || x->to_persist || (x->persisted && !x->by_holders)) return;
    if (!went && !x->by_holders) return;
    s->stats.orphans_freed++;
    mr_ostore__unheld(s, o);
}

/* Frees copies of other nodes' objects that no client here has used for a while. Also frees
 * objects that no living process vouches for, once the possible claimants were asked and claimed
 * none. */
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

/* ---- out of memory and back -------------------------------------------------------------------*/

void mr_ostore__evict(struct mr_ostore *s, uint32_t o)
{
    move_to(s, o, PLACE_EVICTING);
    ask_evict(s, o, false);
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

static void fetch(struct mr_ostore *s, uint32_t o, uint32_t source)
{
    struct object *x = &s->objects[o];
    move_to(s, o, PLACE_FETCHING);
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
    stop_leaving(s, x);
    mr_ostore__enlist(s, o, LIST_NONE);
    leave_room(s, o);
    if (x->place == PLACE_DOOMED) {
        drop(s, o);
        return;
    }
    if (x->disk == DISK_WRITTEN) {
        move_to(s, o, PLACE_SPILLED);
        s->stats.spilled_bytes += x->bytes;
        s->stats.objects_spilled++;
        s->stats.spills++;
        if (x->waiters) fetch(s, o, 0);
        return;
    }
    mr_assert(x->replica);
    unplace(s, o);
    move_to(s, o, PLACE_WANTED);
    s->replicas--;
    x->replica = false;
    if (!x->waiters) drop(s, o);
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
    if (x->place == PLACE_DOOMED) return; /* stands in its list */
    s->retry = MR_MIN(s->retry, s->now + RETRY_NS);
    move_to(s, o, PLACE_RESIDENT);
    enlist_recent(s, o);
    stop_leaving(s, x);
    answer_waiters(s, o, false, MR_OK);
}

/* A full disk is tried again after a while, with one object. */
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
    if (!o || !x->being_written) { /* deleted meanwhile; it may be wanted again, and on its way */
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
        stop_leaving(s, x);
        answer_waiters(s, o, true, ev->err);
        return;
    }
    x->disk = DISK_WRITTEN;
    s->stats.written_bytes += x->bytes;
    if ((ev->flags & MR_OSTORE_PERSISTED) && !x->persisted) {
        x->persisted = true;
        x->to_persist = false;
        s->stats.persisted_bytes += x->bytes;
        bool by_holders = x->by_holders; /* it may have changed meanwhile */
        x->by_holders = ev->flags & MR_OSTORE_BY_HOLDERS;
        mr_ostore__live_by_holders(s, o, by_holders);
        answer_waiters(s, o, true, MR_OK);
    } else if (x->to_persist && x->place != PLACE_DOOMED) {
        mr_ostore__write(s, o);
        return;
    }
    if (x->leaving && x->place == PLACE_RESIDENT && !x->pins)
        mr_ostore__evict(s, o);
    else
        stop_leaving(s, x);
}

void mr_ostore__fetch_failed(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    uint32_t o = mr_ostore__find(s, ev->id);
    if (!o || s->objects[o].place != PLACE_FETCHING) return;
    struct object *x = &s->objects[o];
    bool restoring = x->disk == DISK_WRITTEN;
    if (restoring && (ev->err == MR_ELOST || ev->err == MR_EFORMAT)) {
        drop(s, o); /* the file is gone or damaged: so is the object */
        return;
    }
    move_to(s, o, restoring ? PLACE_SPILLED : PLACE_WANTED);
    if (x->other_source && x->waiters && !restoring) {
        fetch(s, o, x->other_source);
        return;
    }
    if (ev->err == MR_EAGAIN && !restoring && x->waiters)
        return; /* no store has it: it may be made */
    answer_waiters(s, o, false, ev->err);
    if (restoring) return;
    answer_waiters(s, o, true, ev->err);
    drop(s, o);
}

void mr_ostore__recovered(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    if (mr_ostore__find(s, ev->id)) return;
    uint32_t o = mr_ostore__object_new(s, ev->id);
    if (!o) return;
    struct object *x = &s->objects[o];
    move_to(s, o, PLACE_SPILLED);
    x->disk = DISK_WRITTEN;
    x->persisted = true;
    x->bytes = ev->bytes;
    s->stats.spilled_bytes += x->bytes;
    s->stats.persisted_bytes += x->bytes;
    s->stats.objects_spilled++;
    x->by_holders = ev->flags & MR_OSTORE_BY_HOLDERS;
    if (x->by_holders) mr_ostore__doubt(s, o);
}

/* ---- what clients ask -------------------------------------------------------------------------*/

static bool room_is_theirs(
    struct mr_ostore *s, const struct mr_ostore_event *ev, const struct client *c)
{
    uint32_t slot = mr_ostore__segment_of(s, ev->segment);
    if (!slot) return false;
    const struct segment *g = &s->segments[slot];
    if (g->client != c->number || g->orphaned) return false;
    if (ev->offset < MR_EXTENT_HEAD || ev->room < MR_EXTENT_HEAD) return false;
    if (ev->bytes > ev->room - MR_EXTENT_HEAD || ev->room > g->bytes) return false;
    return ev->offset - MR_EXTENT_HEAD <= g->bytes - ev->room;
}

/* The object that this seal may fill, made if need be; 0: none, its room goes back. */
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

/* Writers are held back before it comes to this; some seals may have been on their way. */
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
    if (!c || !room_is_theirs(s, ev, c)) return; /* nonsense: only its sender loses by it */
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
    bool is_pulled = c->internal && (ev->flags & MR_SEAL_ADOPT) && x->disk != DISK_WRITTEN;
    take_holders(s, o, ev, c);
    move_to(s, o, PLACE_RESIDENT);
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
    enlist_recent(s, o);
    if (is_pulled) answer_pulled(s, o);
    answer_waiters(s, o, false, MR_OK);
    if (x->to_persist && x->disk == DISK_NONE) mr_ostore__write(s, o);
}

void mr_ostore__get(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    uint32_t o = mr_ostore__find(s, ev->id);
    enum place place = o ? s->objects[o].place : PLACE_FREE;
    if (place == PLACE_RESIDENT) {
        enlist_recent(s, o);
        (void)answer_got(s, ev->client, ev->request, o, 0);
        return;
    }
    int err = place == PLACE_DOOMED ? MR_ELOST : (ev->timeout == 0 ? MR_EAGAIN : MR_OK);
    if (!err && mr_object_id_is_none(ev->id)) err = MR_EINVAL;
    if (!err && !o) o = mr_ostore__object_new(s, ev->id);
    if (!err && (!o || !mr_ostore__wait(s, o, ev))) err = MR_ELIMIT;
    if (err) {
        mr_ostore__answer(s, ev->client, ev->request, false, ev->id, err);
        if (o && s->objects[o].place == PLACE_WANTED && !s->objects[o].waiters) drop(s, o);
        return;
    }
    struct object *x = &s->objects[o];
    place = x->place;
    bool known = ev->source && ev->source != MR_OSTORE_SEEK;
    if (place == PLACE_FETCHING && known && ev->source != x->source) x->other_source = ev->source;
    if (place == PLACE_SPILLED || (place == PLACE_WANTED && ev->source)) fetch(s, o, ev->source);
}

/* Reads ahead, so that the disk works while clients compute. Objects that are not needed at once
 * must not evict objects in use, so only a limited amount of them is restored at a time. */
void mr_ostore__want(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    uint32_t o = mr_ostore__find(s, ev->id);
    if (!o || s->objects[o].place != PLACE_SPILLED) return;
    bool at_once = ev->flags & MR_OSTORE_AT_ONCE;
    uint64_t most = s->config.memory_bytes / AHEAD_SHARE;
    if (!at_once && s->coming_bytes + s->objects[o].bytes > most) return;
    fetch(s, o, 0);
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
