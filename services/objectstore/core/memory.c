/* Decides which client gets a segment, and which objects leave memory when there is no room for a
 * segment. The budget counts segments, not objects, because a sealed segment gives no page back
 * before the whole segment is closed.
 *
 * memory.c, residency.c and object.c call each other: a grant that lacks memory makes objects
 * leave, and an object that has left frees its room in a segment. */
#include "services/objectstore/core/internal.h"

static void close_segment(struct mr_ostore *s, uint32_t slot)
{
    struct segment *g = &s->segments[slot];
    mr_assert(g->live == 0);
    s->committed_bytes -= g->bytes;
    s->stuck_since = 0;
    s->segments_count--;
    s->segment_slots[g->number] = 0;
    mr_ostore__emit(s, MR_OX_CLOSE)->segment = g->number;
    mr_ostore__group_closed(s, g);
    *g = (struct segment){.next = s->segments_free};
    s->segments_free = slot;
}

void mr_ostore__room_free(struct mr_ostore *s, uint32_t segment, uint64_t offset, uint64_t room)
{
    uint32_t slot = mr_ostore__segment_of(s, segment);
    mr_assert(slot);
    struct segment *g = &s->segments[slot];
    mr_assert(g->live > 0);
    g->live--;
    s->stuck_since = 0;
    if (g->group) s->groups[g->group].stuck_since = 0;
    if (g->orphaned) {
        if (!g->live) close_segment(s, slot);
        return;
    }
    struct client *c = mr_ostore__client(s, g->client);
    mr_assert(c);
    c->may_have_empty = true;
    struct mr_ostore_effect *fx = mr_ostore__emit(s, MR_OX_FREED);
    fx->client = g->client;
    fx->segment = segment;
    fx->offset = offset;
    fx->room = room;
}

/* ---- grants -----------------------------------------------------------------------------------*/

static void grant_pop(struct mr_ostore *s, uint32_t at)
{
    s->grants_count--;
    memmove(&s->grants[at], &s->grants[at + 1], (s->grants_count - at) * sizeof s->grants[0]);
}

static struct mr_ostore_effect *answer_grant(struct mr_ostore *s, uint32_t client, uint64_t request)
{
    struct mr_ostore_effect *fx = mr_ostore__emit(s, MR_OX_GRANTED);
    fx->client = client;
    fx->request = request;
    return fx;
}

static void refuse_grant(struct mr_ostore *s, const struct grant *g, bool by_group)
{
    struct mr_ostore_effect *fx = answer_grant(s, g->client, g->request);
    fx->bytes = g->bytes_min;
    fx->err = MR_ELIMIT;
    const struct client *c = mr_ostore__client(s, g->client);
    if (by_group && c->group) fx->room = mr_ostore__group_max(s, c->group);
}

static uint32_t segment_new(struct mr_ostore *s, const struct client *c, uint64_t bytes)
{
    if (s->segment_number + 1 >= MR_SEGMENTS_MAX) return 0;
    uint32_t slot = s->segments_free;
    if (slot)
        s->segments_free = s->segments[slot].next;
    else if (s->segments_used + 1 < s->config.segments_max)
        slot = ++s->segments_used;
    else
        return 0;
    uint32_t number = ++s->segment_number;
    s->segments[slot] =
        (struct segment){.number = number, .client = c->number, .bytes = bytes, .group = c->group};
    s->groups[c->group].bytes += c->group ? bytes : 0;
    s->segment_slots[number] = slot;
    s->committed_bytes += bytes;
    s->segments_count++;
    return number;
}

static uint64_t budget_left(const struct mr_ostore *s)
{
    return s->config.memory_bytes - MR_MIN(s->config.memory_bytes, s->committed_bytes);
}

/* `group` is the client's control group; 0: the group has no memory limit. True: a grant of
 * `bytes_min` has to wait until objects of this group have left memory. The wait delays only later
 * grants of this group. */
static bool waits_for_group(struct mr_ostore *s, uint32_t group, uint64_t bytes_min)
{
    if (!group) return false;
    struct group *g = &s->groups[group];
    uint64_t left = mr_ostore__group_left(s, group);
    if (!g->lacking && left >= bytes_min) return false;
    if (!g->lacking) g->lacking = bytes_min - left;
    g->wanted += bytes_min;
    return true;
}

/* Serves waiting grants in their order, as far as there is room. Records what each group lacks.
 * Returns how many bytes are missing for the first grant that waits for the budget; 0: no grant
 * waits for it. */
static uint64_t serve_grants(struct mr_ostore *s)
{
    for (uint32_t i = 1; i <= s->groups_used; i++)
        s->groups[i].lacking = s->groups[i].wanted = 0;
    for (uint32_t at = 0; at < s->grants_count;) {
        struct grant g = s->grants[at];
        struct client *c = mr_ostore__client(s, g.client);
        if (waits_for_group(s, c->group, g.bytes_min)) {
            at++;
            continue;
        }
        uint64_t page = MR_ARENA_PAGE, left = budget_left(s) & ~(page - 1);
        if (left < g.bytes_min) return g.bytes_min - left;
        uint64_t own = mr_ostore__group_left(s, c->group) & ~(page - 1);
        uint64_t bytes = MR_MIN(g.bytes, MR_MIN(left, own));
        mr_assert(bytes <= mr_ostore__group_left(s, c->group)); /* I35 (docs/invariants.md) */
        uint32_t segment = segment_new(s, c, bytes);
        grant_pop(s, at);
        /* the new segment is empty until the client seals an object in it */
        c->may_have_empty = true;
        struct mr_ostore_effect *fx = answer_grant(s, g.client, g.request);
        fx->segment = segment;
        fx->bytes = bytes;
        fx->waited = s->now - g.since;
        fx->err = segment ? MR_OK : MR_ELIMIT;
    }
    return 0;
}

static bool is_of_group(struct mr_ostore *s, const struct grant *g)
{
    const struct client *c = mr_ostore__client(s, g->client);
    return c->group && s->groups[c->group].lacking;
}

void mr_ostore__grant(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    const struct client *c = mr_ostore__client(s, ev->client);
    if (!c) return;
    uint64_t bytes_max = s->config.memory_bytes;
    uint64_t group_max = mr_ostore__group_max(s, c->group) & ~(uint64_t)(MR_ARENA_PAGE - 1);
    bool sane = ev->room > 0 && ev->room <= ev->bytes && ev->room <= bytes_max;
    bool fits = sane && ev->room <= group_max;
    if (!fits || s->grants_count == GRANTS_MAX) {
        struct mr_ostore_effect *fx = answer_grant(s, ev->client, ev->request);
        fx->bytes = ev->room;
        fx->err = fits ? MR_ELIMIT : MR_ETOOBIG;
        if (sane && !fits) fx->room = group_max;
        return;
    }
    struct grant g = {
        .client = ev->client,
        .request = ev->request,
        .bytes_min = mr_align_up(ev->room, MR_ARENA_PAGE),
        .bytes = mr_align_up(MR_MIN(ev->bytes, bytes_max), MR_ARENA_PAGE),
        .since = s->now,
        .deadline = mr_time_after(s->now, ev->timeout),
    };
    s->grants[s->grants_count++] = g;
    mr_ostore__make_room(s); /* this comes before the step refuses grants whose timeout is 0 */
}

void mr_ostore__cancel(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    for (uint32_t i = 0; i < s->grants_count; i++) {
        if (s->grants[i].client != ev->client || s->grants[i].request != ev->request) continue;
        grant_pop(s, i);
        return;
    }
}

void mr_ostore__expire_grants(struct mr_ostore *s)
{
    for (uint32_t i = 0; i < s->grants_count;) {
        struct grant g = s->grants[i];
        if (g.deadline > s->now) {
            i++;
            continue;
        }
        bool by_group = is_of_group(s, &g);
        grant_pop(s, i);
        refuse_grant(s, &g, by_group);
    }
}

mr_time mr_ostore__grants_deadline(const struct mr_ostore *s)
{
    mr_time first = MR_NEVER;
    for (uint32_t i = 0; i < s->grants_count; i++)
        first = MR_MIN(first, s->grants[i].deadline);
    return first;
}

void mr_ostore__returned(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    struct client *c = mr_ostore__client(s, ev->client);
    if (!c) return;
    if (!ev->segment) { /* this is the last RETURN of the answer to a RECLAIM */
        c->reclaiming = false;
        if (!c->gave) c->may_have_empty = false;
        c->gave = false;
        return;
    }
    uint32_t slot = mr_ostore__segment_of(s, ev->segment);
    if (s->segments[slot].client != ev->client || s->segments[slot].orphaned) return;
    c->gave = true;
    if (s->segments[slot].live)
        /* the client returned a segment by mistake; the segment is closed when it is empty */
        s->segments[slot].orphaned = true;
    else
        close_segment(s, slot);
}

/* ---- clients ----------------------------------------------------------------------------------*/

void mr_ostore__join(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    mr_assert(s->clients_count < s->config.clients_max);
    mr_assert(!mr_ostore__client(s, ev->client));
    s->clients[s->clients_count++] =
        (struct client){.number = ev->client, .maker = ev->maker, .internal = ev->internal};
}

void mr_ostore__gone(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    struct client *c = mr_ostore__client(s, ev->client);
    if (!c) return;
    mr_ostore__group_leave(s, c);
    *c = s->clients[--s->clients_count];
    for (uint32_t i = s->grants_count; i-- > 0;)
        if (s->grants[i].client == ev->client) grant_pop(s, i);
    for (uint32_t i = 1; i <= s->segments_used; i++) {
        struct segment *g = &s->segments[i];
        if (!g->number || g->client != ev->client) continue;
        g->orphaned = true;
        if (!g->live) close_segment(s, i);
    }
    for (uint32_t w = s->waiters_head, next; w; w = next) {
        next = s->waiters[w].all_next;
        if (s->waiters[w].client != ev->client) continue;
        uint32_t o = s->waiters[w].object;
        mr_ostore__waiter_drop(s, w);
        struct object *x = &s->objects[o];
        if (x->place == PLACE_WANTED && !x->waiters) mr_ostore__object_drop(s, o);
    }
    for (uint32_t o = 1; o <= s->objects_used; o++) {
        struct object *x = &s->objects[o];
        if (x->place == PLACE_FREE || !x->links) continue;
        if (x->maker == ev->client && !x->unvouched && mr_ostore__has_job(s, o))
            mr_ostore__doubt(s, o);
        while (mr_ostore__unlink(s, o, LINK_PIN, ev->client))
            ;
        if (mr_ostore__unlink(s, o, MR_HOLD_CLIENT, ev->client)) mr_ostore__unheld(s, o);
    }
    if (s->lists[LIST_DOOMED].count) s->retry = s->now;
}

/* ---- pressure ---------------------------------------------------------------------------------*/

static bool is_asked(const struct mr_ostore *s, const struct client *c, mr_duration timeout)
{
    return c->reclaiming && s->now < mr_time_after(c->reclaim_asked, timeout);
}

static bool is_in(uint32_t group, uint32_t all_or_one)
{
    return !all_or_one || group == all_or_one;
}

/* True: clients that were asked for empty segments will return at least `bytes`. An answer may take
 * a while on a busy machine. A client may also be stopped, so the wait is bounded. */
static bool is_worth_waiting(struct mr_ostore *s, uint32_t group, uint64_t bytes)
{
    uint64_t empty = 0;
    for (uint32_t i = 1; i <= s->segments_used && empty < bytes; i++) {
        const struct segment *g = &s->segments[i];
        if (!g->number || g->live || !is_in(g->group, group)) continue;
        const struct client *c = mr_ostore__client(s, g->client);
        if (c && is_asked(s, c, RECLAIM_WAIT_MAX_NS)) empty += g->bytes;
    }
    return empty >= bytes;
}

/* Asks the clients of a group (0: all clients) for empty segments. `lacking`: bytes that the first
 * waiting grant lacks; `bytes`: bytes that all waiting grants lack together; `*again`: the time
 * when every client is asked again. True: the answers are worth waiting for. */
static bool reclaim(
    struct mr_ostore *s, uint32_t group, uint64_t lacking, uint64_t bytes, mr_time *again)
{
    bool under_way = false;
    /* a client that aborts drafts sends no message, so now and then all clients are asked */
    bool all = s->now >= *again;
    if (all) *again = s->now + RECLAIM_AGAIN_NS;
    for (uint32_t i = 0; i < s->clients_count; i++) {
        struct client *c = &s->clients[i];
        if (!is_in(c->group, group)) continue;
        c->may_have_empty |= all;
        if (c->may_have_empty && !c->reclaiming) {
            c->reclaiming = true;
            c->reclaim_asked = s->now;
            struct mr_ostore_effect *fx = mr_ostore__emit(s, MR_OX_RECLAIM);
            fx->client = c->number;
            fx->bytes = bytes;
        }
        under_way |= is_asked(s, c, RECLAIM_WAIT_NS);
    }
    return under_way || is_worth_waiting(s, group, lacking);
}

/* Starts to evict or to spill an object, if the object can leave memory now. Returns the bytes that
 * will leave; 0: the object cannot leave now. */
static uint64_t start_leaving(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    mr_assert(x->place == PLACE_RESIDENT || x->place == PLACE_EVICTING);
    bool busy = x->place == PLACE_EVICTING || x->pins || x->leaving || x->disk == DISK_WRITING;
    bool tried = x->tried && s->now < mr_time_after(x->tried, RETRY_NS);
    if (busy || tried) return 0;
    bool at_once = x->disk == DISK_WRITTEN || x->replica;
    if (!at_once && (!s->config.may_spill || s->writes >= SPILLS_MAX)) return 0;
    if (!at_once && s->disk_full && (s->writes || s->now < s->disk_probe)) return 0;
    x->leaving = true;
    s->leaving_bytes += x->room;
    mr_ostore__group_leaving(s, x, true);
    if (at_once)
        mr_ostore__evict(s, o);
    else
        mr_ostore__write(s, o);
    return x->room;
}

/* True: the large object should leave before the small one. One large write costs less than many
 * small writes. But an object that was just used would have to be restored soon. */
static bool is_rather(const struct mr_ostore *s, uint32_t large, uint32_t small)
{
    if (!large || !small) return large;
    mr_duration idle = s->now - s->objects[large].used;
    return idle >= (s->now - s->objects[small].used) / 2;
}

static void start_leavers(struct mr_ostore *s, uint64_t need)
{
    uint32_t large = s->lists[LIST_LARGE].head, small = s->lists[LIST_SMALL].head;
    for (uint32_t i = 0; i < SCAN_MAX && (large || small) && s->leaving_bytes < need; i++) {
        if (s->writes >= SPILLS_MAX && i >= SCAN_FULL)
            /* while SPILLS_MAX writes run, only objects that are on disk can leave, so few objects
             * are examined */
            return;
        uint32_t *at = is_rather(s, large, small) ? &large : &small;
        uint32_t o = *at;
        *at = s->objects[o].next;
        (void)start_leaving(s, o);
    }
}

/* Returns by how many bytes the objects exceed 90 % of the budget; always 0 if the store has no
 * disk. This many bytes are spilled before any client has to wait. */
static uint64_t above_high_water(const struct mr_ostore *s)
{
    uint64_t high = s->config.memory_bytes / 10 * 9;
    return s->config.may_spill && s->rooms_bytes > high ? s->rooms_bytes - high : 0;
}

/* Returns how many bytes all waiting grants lack, at most an eighth of the budget: this many bytes
 * are spilled at the same time. */
static uint64_t lacking_in_all(struct mr_ostore *s)
{
    uint64_t wanted = 0;
    for (uint32_t i = 0; i < s->grants_count; i++)
        wanted += is_of_group(s, &s->grants[i]) ? 0 : s->grants[i].bytes_min;
    return MR_MIN(wanted - MR_MIN(wanted, budget_left(s)), s->config.memory_bytes / 8);
}

/* True: it is time to refuse a grant. *stuck: the time since which no memory has become free.
 * `is_leaving`: some memory will become free when a write ends. */
static bool is_stuck(struct mr_ostore *s, mr_time *stuck, bool is_leaving)
{
    if (!*stuck || (is_leaving && !s->disk_full)) *stuck = s->now;
    if (s->now < mr_time_after(*stuck, STUCK_NS)) return false;
    /* A full disk is tried once more before a grant is refused. */
    bool untried = s->disk_full && s->disk_failed < *stuck;
    if (untried && s->now < mr_time_after(*stuck, 4 * STUCK_NS)) return false;
    *stuck = s->now;
    return true;
}

/* Refuses the youngest waiting grant, because no object can leave. A client that waits for room
 * usually has pinned other objects. After the refusal it releases its pins and tries again. With a
 * `group`, one of this group's grants is refused; with 0, one of the grants that wait for the
 * budget. */
static void let_one_go(struct mr_ostore *s, uint32_t group)
{
    for (uint32_t i = s->grants_count; i-- > 0;) {
        struct grant g = s->grants[i];
        bool by_group = is_of_group(s, &g);
        if (by_group != (group > 0)) continue;
        if (group && mr_ostore__client(s, g.client)->group != group) continue;
        grant_pop(s, i);
        refuse_grant(s, &g, by_group);
        if (!group) return;
        s->groups[group].owed = g.bytes_min;
        s->groups[group].owed_until = mr_time_after(s->now, OWED_NS);
        return;
    }
}

/* ---- groups -----------------------------------------------------------------------------------*/

static void start_group_leavers(struct mr_ostore *s, struct group *g, uint64_t need)
{
    uint32_t o = g->head;
    for (uint32_t i = 0; i < SCAN_MAX && o && g->leaving < need; i++) {
        if (s->writes >= SPILLS_MAX && i >= SCAN_FULL) return;
        uint32_t next = s->objects[o].group_next;
        (void)start_leaving(s, o);
        o = next;
    }
}

/* True: an object of the group is being written to disk and is to leave memory afterwards. If a
 * client has pinned the object by then, the object stays in memory. It can leave later without
 * another write. */
static bool is_group_writing(const struct mr_ostore *s, const struct group *g)
{
    uint32_t o = g->head;
    for (uint32_t i = 0; i < SCAN_MAX && o; i++, o = s->objects[o].group_next)
        if (s->objects[o].leaving && s->objects[o].being_written) return true;
    return false;
}

/* Returns how many bytes a control group still lacks for a grant that was refused. The task that
 * asked for the grant releases its inputs, runs again, and asks again. The inputs should leave
 * memory before the task runs again: they are then restored into segments of the store, and the
 * group is not charged for these segments. */
static uint64_t group_owes(struct mr_ostore *s, uint32_t at)
{
    struct group *g = &s->groups[at];
    uint64_t left = mr_ostore__group_left(s, at);
    if (s->now >= g->owed_until || left >= g->owed) g->owed = 0;
    return g->owed ? g->owed - left : 0;
}

static void group_make_room(struct mr_ostore *s, uint32_t at)
{
    struct group *g = &s->groups[at];
    if (!g->lacking) g->stuck_since = 0;
    uint64_t lacking = MR_MAX(g->lacking, group_owes(s, at));
    if (!lacking) return;
    s->retry = MR_MIN(s->retry, s->now + RETRY_NS);
    uint64_t left = mr_ostore__group_left(s, at);
    uint64_t in_all = g->wanted - MR_MIN(g->wanted, left);
    uint64_t need = MR_MAX(lacking, MR_MIN(in_all, mr_ostore__group_max(s, at) / 4));
    if (reclaim(s, at, lacking, need, &g->reclaim_again)) return;
    start_group_leavers(s, g, need);
    if (!g->lacking || !is_stuck(s, &g->stuck_since, is_group_writing(s, g))) return;
    let_one_go(s, at);
}

void mr_ostore__make_room(struct mr_ostore *s)
{
    uint64_t lacking = serve_grants(s);
    uint64_t above = above_high_water(s);
    for (uint32_t i = 1; i <= s->groups_used; i++)
        group_make_room(s, i);
    if (!lacking) s->stuck_since = 0;
    if (!lacking && !above) return;
    s->retry = MR_MIN(s->retry, s->now + RETRY_NS);
    if (above) start_leavers(s, above);
    if (!lacking || reclaim(s, 0, lacking, lacking_in_all(s), &s->reclaim_again))
        /* While clients are expected to return empty segments, no object leaves to serve a grant.
         * A client's answer (the event RETURN) or a timeout runs this function again. */
        return;
    start_leavers(s, MR_MAX(lacking, MR_MAX(above, lacking_in_all(s))));
    if (is_stuck(s, &s->stuck_since, s->writes)) let_one_go(s, 0);
}
