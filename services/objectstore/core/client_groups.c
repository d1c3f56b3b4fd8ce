/* Memory limits of clients by control group. The kernel charges a page to the group of the process
 * that writes it first, until the segment is closed. So a group is charged for all segments of its
 * clients. Objects that are restored from disk lie in segments of the store itself. */
#include "services/objectstore/core/internal.h"

#include "store/arena/client_limit.h"

#define LIMIT_BYTES_MAX ((uint64_t)1 << 50) /* a limit above this counts as none */

/* Returns the number of the group with this id, or a free number; 0: there is neither. */
static uint32_t place_of(struct mr_ostore *s, uint64_t id)
{
    uint32_t free_place = 0;
    for (uint32_t i = 1; i <= s->groups_used; i++) {
        if (s->groups[i].id == id) return i;
        if (!s->groups[i].id && !free_place) free_place = i;
    }
    if (!free_place && s->groups_used + 1 < s->groups_max) free_place = ++s->groups_used;
    return free_place;
}

static void drop_if_empty(struct mr_ostore *s, uint32_t group)
{
    struct group *g = &s->groups[group];
    if (g->clients || g->bytes) return;
    mr_assert(!g->head);
    mr_assert(!g->leaving);
    *g = (struct group){0};
}

/* Sets the memory limit of the client's group. The limit is ignored if the client has segments
 * already, or if the table is full of groups whose clients have gone and whose segments are still
 * in use. */
void mr_ostore__limit(struct mr_ostore *s, const struct mr_ostore_event *ev)
{
    struct client *c = mr_ostore__client(s, ev->client);
    if (!c || c->group || !ev->group || !ev->bytes || ev->bytes > LIMIT_BYTES_MAX) return;
    for (uint32_t i = 1; i <= s->segments_used; i++)
        if (s->segments[i].number && s->segments[i].client == c->number) return;
    uint32_t at = place_of(s, ev->group);
    if (!at) return;
    struct group *g = &s->groups[at];
    g->limit_bytes = g->clients ? MR_MIN(g->limit_bytes, ev->bytes) : ev->bytes;
    g->id = ev->group;
    g->clients++;
    c->group = at;
    c->own_bytes = MR_MIN(ev->room, ev->bytes);
    g->own_bytes += c->own_bytes;
}

void mr_ostore__group_leave(struct mr_ostore *s, struct client *c)
{
    if (!c->group) return;
    s->groups[c->group].clients--;
    s->groups[c->group].own_bytes -= c->own_bytes;
    drop_if_empty(s, c->group);
}

void mr_ostore__group_closed(struct mr_ostore *s, const struct segment *g)
{
    if (!g->group) return;
    s->groups[g->group].bytes -= g->bytes;
    s->groups[g->group].stuck_since = 0;
    drop_if_empty(s, g->group);
}

uint64_t mr_ostore__group_max(const struct mr_ostore *s, uint32_t group)
{
    const struct group *g = &s->groups[group];
    return group ? mr_store_written_max(g->limit_bytes, g->own_bytes) : UINT64_MAX;
}

uint64_t mr_ostore__group_left(const struct mr_ostore *s, uint32_t group)
{
    uint64_t most = mr_ostore__group_max(s, group);
    return group ? most - MR_MIN(most, s->groups[group].bytes) : most;
}

/* ---- objects of a group -----------------------------------------------------------------------*/

void mr_ostore__group_unlist(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    if (!x->group) return;
    struct group *g = &s->groups[x->group];
    if (x->group_prev)
        s->objects[x->group_prev].group_next = x->group_next;
    else
        g->head = x->group_next;
    if (x->group_next)
        s->objects[x->group_next].group_prev = x->group_prev;
    else
        g->tail = x->group_prev;
    x->group_prev = x->group_next = 0;
}

void mr_ostore__group_enlist(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    if (!x->group) return;
    struct group *g = &s->groups[x->group];
    x->group_prev = g->tail;
    if (x->group_prev)
        s->objects[x->group_prev].group_next = o;
    else
        g->head = o;
    g->tail = o;
}

void mr_ostore__group_leaving(struct mr_ostore *s, const struct object *x, bool starts)
{
    if (!x->group) return;
    struct group *g = &s->groups[x->group];
    g->leaving = starts ? g->leaving + x->room : g->leaving - x->room;
}

/* ---- invariants -------------------------------------------------------------------------------*/

static void check_group(const struct mr_ostore *s, uint32_t at)
{
    const struct group *g = &s->groups[at];
    uint64_t bytes = 0, own = 0, leaving = 0;
    uint32_t clients = 0, listed = 0, resident = 0;
    for (uint32_t i = 1; i <= s->segments_used; i++)
        if (s->segments[i].number && s->segments[i].group == at) bytes += s->segments[i].bytes;
    for (uint32_t i = 0; i < s->clients_count; i++) {
        if (s->clients[i].group != at) continue;
        own += s->clients[i].own_bytes;
        clients++;
    }
    for (uint32_t o = 1; o <= s->objects_used; o++) {
        const struct object *x = &s->objects[o];
        if (x->place == PLACE_FREE || x->group != at) continue;
        resident += x->list == LIST_SMALL || x->list == LIST_LARGE;
        leaving += x->leaving ? x->room : 0;
    }
    for (uint32_t o = g->head, before = 0; o; before = o, o = s->objects[o].group_next) {
        mr_assert(s->objects[o].group == at);
        mr_assert(s->objects[o].group_prev == before);
        listed++;
    }
    mr_assert(g->id);
    mr_assert(clients == g->clients);
    mr_assert(own == g->own_bytes);
    mr_assert(bytes == g->bytes);
    mr_assert(leaving == g->leaving);
    mr_assert(listed == resident);
}

/* Asserts I35 (docs/invariants.md). */
void mr_ostore__groups_check(const struct mr_ostore *s)
{
    for (uint32_t i = 1; i <= s->groups_used; i++)
        if (s->groups[i].id) check_group(s, i);
    for (uint32_t i = 0; i < s->clients_count; i++)
        mr_assert(!s->clients[i].group || s->groups[s->clients[i].group].id);
}
