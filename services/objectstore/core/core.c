/* The step of the core, its deadline, its invariants, and queries about its state. */
#include "services/objectstore/core/core.h"

#include "base/alloc.h"
#include "services/objectstore/core/info.h"
#include "services/objectstore/core/internal.h"

#define ORPHAN_CHECK_NS MR_SECOND
/* Limit of the entries of the object table that clients may not use for new objects. They stay free
 * for objects that clients get, and for new objects whose SEAL has not arrived yet. */
#define RESERVE_MAX 4096u

void mr_ostore_effects_init(struct mr_ostore_effects *fx, const struct mr_ostore_config *config)
{
    /* The step with the most effects: the only client goes, and it has all objects and waiters. */
    size_t n = (size_t)config->objects_max * 7 + (size_t)config->waiters_max * 2 +
               config->segments_max + GRANTS_MAX + config->clients_max + 64;
    *fx = (struct mr_ostore_effects){.n_max = n};
    mr_arena_init(&fx->arena, n * sizeof *fx->items + 4096);
    fx->items = MR_ARENA_ARRAY(&fx->arena, struct mr_ostore_effect, n);
}

void mr_ostore_effects_fini(struct mr_ostore_effects *fx)
{
    mr_arena_fini(&fx->arena);
}

struct mr_ostore *mr_ostore_new(const struct mr_ostore_config *config)
{
    mr_assert(config->objects_max > 1);
    mr_assert(config->memory_bytes > 0);
    size_t bytes =
        sizeof(struct mr_ostore) + sizeof(struct object) * config->objects_max +
        sizeof(struct link) * config->links_max + sizeof(struct waiter) * config->waiters_max +
        sizeof(struct segment) * (config->segments_max + 1) + sizeof(uint32_t) * MR_SEGMENTS_MAX +
        sizeof(struct client) * config->clients_max +
        sizeof(struct group) * (config->clients_max * 2 + 1) + 65536;
    struct mr_arena arena;
    mr_arena_init(&arena, bytes);
    struct mr_ostore *s = MR_ARENA_ARRAY(&arena, struct mr_ostore, 1);
    s->config = *config;
    s->objects = MR_ARENA_ARRAY(&arena, struct object, config->objects_max);
    s->links = MR_ARENA_ARRAY(&arena, struct link, config->links_max);
    s->waiters = MR_ARENA_ARRAY(&arena, struct waiter, config->waiters_max);
    s->segments = MR_ARENA_ARRAY(&arena, struct segment, config->segments_max + 1);
    s->segment_slots = MR_ARENA_ARRAY(&arena, uint32_t, MR_SEGMENTS_MAX);
    s->clients = MR_ARENA_ARRAY(&arena, struct client, config->clients_max);
    /* the table also has groups whose clients have gone */
    s->groups_max = config->clients_max * 2 + 1;
    s->groups = MR_ARENA_ARRAY(&arena, struct group, s->groups_max);
    s->arena = arena;
    s->waiters_deadline = s->retry = s->orphan_check = MR_NEVER;
    mr_index_init(&s->by_id, config->objects_max);
    return s;
}

void mr_ostore_free(struct mr_ostore **ps)
{
    struct mr_ostore *s = MR_STEAL(*ps);
    if (!s) return;
    mr_index_fini(&s->by_id);
    struct mr_arena arena = s->arena;
    mr_arena_fini(&arena);
}

/* ---- step -------------------------------------------------------------------------------------*/

static void expire_waiters(struct mr_ostore *s)
{
    mr_time first = MR_NEVER;
    for (uint32_t w = s->waiters_head, next; w; w = next) {
        next = s->waiters[w].all_next;
        const struct object *x = &s->objects[s->waiters[w].object];
        bool is_coming = !s->waiters[w].persist && x->disk == DISK_WRITTEN;
        /* A GET of an object that is on disk gets more time, because the restore of the object will
         * end, whether it succeeds or fails. */
        if (s->waiters[w].deadline <= s->now && is_coming)
            s->waiters[w].deadline = mr_time_after(s->now, WAIT_MORE_NS);
        if (s->waiters[w].deadline <= s->now)
            mr_ostore__waiter_expire(s, w, MR_ETIMEOUT);
        else
            first = MR_MIN(first, s->waiters[w].deadline);
    }
    s->waiters_deadline = first;
}

static void pass_time(struct mr_ostore *s)
{
    if (s->now >= s->waiters_deadline) expire_waiters(s);
    if (s->now >= mr_ostore__grants_deadline(s)) mr_ostore__expire_grants(s);
    if (s->now >= s->retry) {
        s->retry = MR_NEVER;
        mr_ostore__retry_doomed(s);
        if (s->lists[LIST_DOOMED].count) {
            s->retry = s->now + s->doomed_wait;
            s->doomed_wait = MR_MIN(s->doomed_wait * 2, DOOMED_WAIT_MAX);
        }
    }
    if (s->now >= s->orphan_check) {
        s->orphan_check = MR_NEVER;
        mr_ostore__check_orphans(s);
    }
    if ((s->replicas || s->unvouched) && s->orphan_check == MR_NEVER)
        s->orphan_check = s->now + ORPHAN_CHECK_NS;
}

static void unpin(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    uint32_t o = mr_ostore__find(s, ev->id);
    if (!o || !mr_ostore__unlink(s, o, LINK_PIN, ev->client)) return;
    if (s->objects[o].place == PLACE_DOOMED && !s->objects[o].pins) s->retry = s->now;
}

static void hold(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    uint32_t o = mr_ostore__find(s, ev->id);
    if (!o || s->objects[o].place == PLACE_WANTED) return;
    uint64_t key = ev->holder.kind == MR_HOLD_CLIENT ? ev->client : ev->holder.key;
    if (ev->type == MR_OE_HOLD) {
        if (s->objects[o].place == PLACE_DOOMED) return;
        (void)mr_ostore__link(s, o, (uint32_t)ev->holder.kind, key);
        if (ev->holder.kind == MR_HOLD_JOB) mr_ostore__vouch(s, o);
        if (ev->holder.kind == MR_HOLD_NAME) mr_ostore__live_by_holders(s, o, true);
        return;
    }
    if (!s->objects[o].offered) s->objects[o].unheld_since = s->now;
    bool every_job = ev->holder.kind == MR_HOLD_JOB && !key;
    bool went = every_job ? mr_ostore__unlink_jobs(s, o)
                          : mr_ostore__unlink(s, o, (uint32_t)ev->holder.kind, key);
    if (went) mr_ostore__unheld(s, o);
}

static void used(struct mr_ostore *s, uint32_t o)
{
    if (!o || o > s->objects_used) return;
    struct object *x = &s->objects[o];
    if (x->list != LIST_SMALL && x->list != LIST_LARGE) return;
    if (!x->offered) x->unheld_since = s->now;
    mr_ostore__enlist(s, o, x->list);
}

static void offer_one(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    if (!o || !x->unvouched || x->offered) return;
    x->offered = true;
    x->unheld_since = s->now;
}

static void offered(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    if (!mr_object_id_is_none(ev->id)) {
        offer_one(s, mr_ostore__find(s, ev->id));
        return;
    }
    for (uint32_t o = 1; o <= s->objects_used; o++)
        offer_one(s, o);
}

/* Called when a new scheduler connects. Puts the holds of the old scheduler in doubt. A scheduler
 * holds an object as a job whose key is 0. The new scheduler holds the objects that it knows when
 * it connects, and is asked about the others. */
static void ask_again(struct mr_ostore *s)
{
    for (uint32_t o = 1; o <= s->objects_used; o++) {
        if (s->objects[o].place == PLACE_DOOMED) continue;
        if (mr_ostore__is_held_by(s, o, MR_HOLD_JOB, 0)) mr_ostore__doubt(s, o);
    }
}

static void handle(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    switch (ev->type) {
    case MR_OE_TICK: break;
    case MR_OE_JOIN: mr_ostore__join(s, ev); break;
    case MR_OE_GONE: mr_ostore__gone(s, ev); break;
    case MR_OE_LIMIT: mr_ostore__limit(s, ev); break;
    case MR_OE_GRANT: mr_ostore__grant(s, ev); break;
    case MR_OE_CANCEL: mr_ostore__cancel(s, ev); break;
    case MR_OE_RETURN: mr_ostore__returned(s, ev); break;
    case MR_OE_SEAL: mr_ostore__seal(s, ev); break;
    case MR_OE_GET: mr_ostore__get(s, ev); break;
    case MR_OE_UNPIN: unpin(s, ev); break;
    case MR_OE_HOLD: hold(s, ev); break;
    case MR_OE_UNHOLD: hold(s, ev); break;
    case MR_OE_DELETE: mr_ostore__delete(s, ev); break;
    case MR_OE_PERSIST: mr_ostore__persist(s, ev); break;
    case MR_OE_DRAIN: mr_ostore__drain(s); break;
    case MR_OE_EVICT_DONE: mr_ostore__evicted(s, ev); break;
    case MR_OE_WRITTEN: mr_ostore__written(s, ev); break;
    case MR_OE_FETCH_FAILED: mr_ostore__fetch_failed(s, ev); break;
    case MR_OE_RECOVERED: mr_ostore__recovered(s, ev); break;
    case MR_OE_USED: used(s, ev->object); break;
    case MR_OE_WANT: mr_ostore__want(s, ev); break;
    case MR_OE_OFFERED: offered(s, ev); break;
    case MR_OE_PLACED: mr_ostore__placed(s, ev); break;
    case MR_OE_ASK_AGAIN: ask_again(s); break;
    }
}

void mr_ostore_step(struct mr_ostore *s, mr_time now, const struct mr_ostore_event *ev,
    struct mr_ostore_effects *fx)
{
    mr_assert(now >= s->now);
    s->now = now;
    s->fx = fx;
    handle(s, ev);
    pass_time(s);
    mr_ostore__make_room(s);
    s->fx = NULL;
}

mr_time mr_ostore_deadline(const struct mr_ostore *s)
{
    mr_time first = MR_MIN(s->waiters_deadline, s->retry);
    first = MR_MIN(first, s->orphan_check);
    return MR_MIN(first, mr_ostore__grants_deadline(s));
}

uint32_t mr_ostore_objects_left(const struct mr_ostore *s)
{
    uint32_t reserve = MR_MIN(s->config.objects_max / 8, RESERVE_MAX);
    uint32_t taken = s->objects_count + reserve + 1; /* entry 0 is not used */
    return taken < s->config.objects_max ? s->config.objects_max - taken : 0;
}

uint32_t mr_ostore_objects_away(const struct mr_ostore *s)
{
    return (uint32_t)s->stats.objects_spilled;
}

bool mr_ostore_is_pinned(const struct mr_ostore *s, uint32_t object)
{
    return object && object <= s->objects_used && s->objects[object].pins;
}

/* ---- queries ----------------------------------------------------------------------------------*/

static void tell(const struct mr_ostore *s, uint32_t o, struct mr_ostore_info *out)
{
    const struct object *x = &s->objects[o];
    *out = (struct mr_ostore_info){
        .id = x->id,
        .bytes = x->bytes,
        .in_memory = x->place == PLACE_RESIDENT || x->place == PLACE_EVICTING,
        .on_disk = x->disk == DISK_WRITTEN,
        .persisted = x->persisted,
        .segment = x->segment,
        .offset = x->offset,
        .pins = x->pins,
        .sequence = x->sequence,
        .created = x->created,
        .owner = x->owner,
        .holders_count = x->holders,
    };
    uint32_t n = 0;
    for (uint32_t at = x->links; at && n < MR_OSTORE_HOLDERS_SHOWN; at = s->links[at].next) {
        const struct link *l = &s->links[at];
        if (l->kind == LINK_PIN) continue;
        out->holders[n++] = (struct mr_store_holder){(enum mr_store_holder_kind)l->kind, l->key};
    }
}

int mr_ostore_stat(const struct mr_ostore *s, mr_object_id id, struct mr_ostore_info *out)
{
    uint32_t o = mr_ostore__find(s, id);
    if (!o || !mr_ostore_is_here(&s->objects[o])) return MR_ENOENT;
    tell(s, o, out);
    return MR_OK;
}

size_t mr_ostore_unvouched(const struct mr_ostore *s, mr_object_id *out, size_t n_max)
{
    size_t n = 0;
    for (uint32_t o = 1; o <= s->objects_used && n < n_max && s->unvouched; o++)
        if (s->objects[o].unvouched) out[n++] = s->objects[o].id;
    return n;
}

size_t mr_ostore_page(
    const struct mr_ostore *s, uint64_t after, struct mr_ostore_info *out, size_t n_max)
{
    size_t n = 0;
    for (uint32_t o = 1; o <= s->objects_used && n_max; o++) {
        const struct object *x = &s->objects[o];
        if (!mr_ostore_is_here(x) || x->sequence <= after) continue;
        if (n == n_max && out[n - 1].sequence < x->sequence) continue;
        if (n < n_max) n++;
        size_t at = n - 1;
        for (; at > 0 && out[at - 1].sequence > x->sequence; at--)
            out[at] = out[at - 1];
        tell(s, o, &out[at]);
    }
    return n;
}

void mr_ostore_stats(const struct mr_ostore *s, struct mr_store_stats *out)
{
    *out = s->stats;
    out->memory_bytes_max = s->config.memory_bytes;
    out->memory_bytes = s->committed_bytes;
    out->objects = s->objects_count;
    out->objects_max = s->config.objects_max;
    out->clients = s->clients_count;
    out->segments = s->segments_count;
}

struct mr_ostore_disk mr_ostore_disk(const struct mr_ostore *s)
{
    return (struct mr_ostore_disk){s->disk_full, s->write_failures};
}

/* ---- invariants -------------------------------------------------------------------------------*/

struct sums {
    uint64_t object_bytes, rooms_bytes, coming_bytes, spilled_bytes, persisted_bytes, leaving_bytes,
        pinned_bytes;
    uint32_t objects, spilled, replicas, unvouched, waiters, listed, rooms, writes;
};

static void check_object(const struct mr_ostore *s, uint32_t o, struct sums *sum)
{
    const struct object *x = &s->objects[o];
    if (x->place == PLACE_FREE) return;
    mr_assert(mr_ostore__find(s, x->id) == o);
    bool resident = x->place == PLACE_RESIDENT || x->place == PLACE_EVICTING;
    mr_assert(x->in_place == (resident || x->place == PLACE_DOOMED));
    mr_assert((x->list == LIST_SMALL || x->list == LIST_LARGE) == resident);
    mr_assert((x->list == LIST_DOOMED) == (x->place == PLACE_DOOMED));
    mr_assert(x->place != PLACE_WANTED || x->waiters);
    mr_assert(!x->placed || mr_ostore_is_here(x)); /* I34 (docs/invariants.md) */
    mr_assert(x->place != PLACE_SPILLED || x->disk == DISK_WRITTEN);
    mr_assert(!x->persisted || x->disk == DISK_WRITTEN);
    mr_assert(!x->pins || x->in_place); /* a pinned object has to be in memory */
    mr_assert(x->place != PLACE_EVICTING || !x->pins);
    mr_assert(!x->leaving || x->place == PLACE_EVICTING || x->being_written);
    mr_assert(x->place != PLACE_EVICTING || x->evict_asked);
    mr_assert(x->disk != DISK_WRITING || x->being_written);
    mr_assert(x->group == (x->in_place ? s->segments[s->segment_slots[x->segment]].group : 0));
    uint32_t holders = 0;
    uint32_t pins = 0;
    for (uint32_t at = x->links; at; at = s->links[at].next) {
        const struct link *l = &s->links[at];
        mr_assert(l->count > 0);
        if (l->kind == LINK_PIN)
            pins += l->count;
        else
            holders++;
    }
    mr_assert(pins == x->pins);
    mr_assert(holders == x->holders);
    for (uint32_t w = x->waiters; w; w = s->waiters[w].next) {
        mr_assert(s->waiters[w].object == o);
        mr_assert(s->waiters[w].persist || x->place != PLACE_RESIDENT);
        sum->waiters++;
    }
    bool spilled =
        x->place == PLACE_SPILLED || (x->place == PLACE_FETCHING && x->disk == DISK_WRITTEN);
    sum->coming_bytes += spilled && x->place == PLACE_FETCHING ? x->bytes : 0;
    sum->objects++;
    sum->spilled += spilled;
    sum->spilled_bytes += spilled ? x->bytes : 0;
    sum->object_bytes += x->in_place ? x->bytes : 0;
    sum->rooms_bytes += x->in_place ? x->room : 0;
    sum->pinned_bytes += x->pins ? x->bytes : 0;
    sum->persisted_bytes += x->persisted ? x->bytes : 0;
    sum->leaving_bytes += x->leaving ? x->room : 0;
    sum->replicas += x->replica;
    sum->unvouched += x->unvouched;
    sum->listed += x->list != LIST_NONE;
    sum->rooms += x->in_place;
    sum->writes += x->being_written;
}

static void check_lists(const struct mr_ostore *s)
{
    for (int l = 1; l < LIST_COUNT; l++) {
        uint32_t count = 0, prev = 0;
        for (uint32_t o = s->lists[l].head; o; prev = o, o = s->objects[o].next, count++)
            mr_assert((int)s->objects[o].list == l && s->objects[o].prev == prev);
        mr_assert(s->lists[l].tail == prev && s->lists[l].count == count);
    }
}

static void check_segment(const struct mr_ostore *s, const struct segment *g)
{
    uint32_t live = 0;
    for (uint32_t o = 1; o <= s->objects_used; o++) {
        const struct object *x = &s->objects[o];
        live += x->place != PLACE_FREE && x->in_place && x->segment == g->number;
    }
    mr_assert(g->live == live);
    mr_assert(&s->segments[s->segment_slots[g->number]] == g);
}

/* Checks for each table that the number of rows in use and the number of free rows add up to the
 * number of rows that were ever used. */
static void check_free(const struct mr_ostore *s)
{
    uint32_t links = 0, waiters = 0, objects = s->objects_count, segments = s->segments_count;
    for (uint32_t o = 1; o <= s->objects_used; o++)
        for (uint32_t at = s->objects[o].place == PLACE_FREE ? 0 : s->objects[o].links; at;
             at = s->links[at].next)
            links++;
    for (uint32_t at = s->links_free; at; at = s->links[at].next)
        links++;
    for (uint32_t w = s->waiters_head; w; w = s->waiters[w].all_next)
        waiters++;
    for (uint32_t w = s->waiters_free; w; w = s->waiters[w].next)
        waiters++;
    for (uint32_t o = s->objects_free; o; o = s->objects[o].next)
        objects++;
    for (uint32_t i = s->segments_free; i; i = s->segments[i].next)
        segments++;
    mr_assert(links == s->links_used && waiters == s->waiters_used);
    mr_assert(objects == s->objects_used && segments == s->segments_used);
}

/* Checks that the core's deadline is not later than any time at which something is due, and that
 * the deadline has not passed. */
static void check_due(const struct mr_ostore *s)
{
    mr_time deadline = mr_ostore_deadline(s);
    for (uint32_t i = 0; i < s->grants_count; i++)
        mr_assert(deadline <= s->grants[i].deadline);
    for (uint32_t w = s->waiters_head; w; w = s->waiters[w].all_next)
        mr_assert(deadline <= s->waiters[w].deadline);
    if (s->lists[LIST_DOOMED].count || s->grants_count) mr_assert(s->retry != MR_NEVER);
    if (s->replicas || s->unvouched) mr_assert(s->orphan_check != MR_NEVER);
    mr_assert(deadline > s->now);
}

void mr_ostore_check(const struct mr_ostore *s)
{
    struct sums sum = {0};
    for (uint32_t o = 1; o <= s->objects_used; o++)
        check_object(s, o, &sum);
    mr_assert(sum.objects == s->objects_count);
    mr_assert(sum.objects == s->by_id.count);
    mr_assert(sum.object_bytes == s->stats.object_bytes);
    mr_assert(sum.rooms_bytes == s->rooms_bytes);
    mr_assert(sum.coming_bytes == s->coming_bytes);
    mr_assert(sum.spilled_bytes == s->stats.spilled_bytes);
    mr_assert(sum.persisted_bytes == s->stats.persisted_bytes);
    mr_assert(sum.spilled == s->stats.objects_spilled);
    mr_assert(sum.leaving_bytes == s->leaving_bytes);
    mr_assert(sum.pinned_bytes == s->stats.pinned_bytes);
    mr_assert(sum.replicas == s->replicas);
    mr_assert(sum.unvouched == s->unvouched);
    uint32_t listed = 0;
    for (int l = 1; l < LIST_COUNT; l++)
        listed += s->lists[l].count;
    mr_assert(listed == sum.listed);
    uint32_t waiters = 0;
    for (uint32_t w = s->waiters_head; w; w = s->waiters[w].all_next) {
        mr_assert(s->waiters[w].deadline >= s->waiters_deadline);
        waiters++;
    }
    mr_assert(waiters == sum.waiters);
    /* some of the writes are of objects that were deleted since */
    mr_assert(sum.writes <= s->writes);
    check_lists(s);
    check_free(s);
    check_due(s);
    uint64_t committed = 0;
    uint32_t live = 0, segments = 0;
    for (uint32_t i = 1; i <= s->segments_used; i++) {
        const struct segment *g = &s->segments[i];
        if (!g->number) continue;
        mr_assert(g->live || !g->orphaned);
        check_segment(s, g);
        committed += g->bytes;
        live += g->live;
        segments++;
    }
    mr_assert(segments == s->segments_count);
    mr_assert(committed == s->committed_bytes);
    mr_assert(committed <= s->config.memory_bytes);
    mr_assert(live == sum.rooms);
    mr_ostore__groups_check(s);
}
