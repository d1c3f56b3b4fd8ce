/* The tables of objects, of links (holders and pins of an object) and of waiters: takes and frees
 * their rows, and moves objects from list to list. This file decides nothing. */
#include "services/objectstore/core/internal.h"

struct mr_ostore_effect *mr_ostore__emit(struct mr_ostore *s, enum mr_ostore_effect_type type)
{
    struct mr_ostore_effects *fx = s->fx;
    mr_assert(fx->n < fx->n_max);
    struct mr_ostore_effect *x = &fx->items[fx->n++];
    *x = (struct mr_ostore_effect){.type = type};
    return x;
}

static bool same_id(const void *ctx, uint32_t item, const void *key)
{
    const struct mr_ostore *s = ctx;
    return mr_object_id_eq(s->objects[item].id, *(const mr_object_id *)key);
}

uint32_t mr_ostore__find(const struct mr_ostore *s, mr_object_id id)
{
    uint32_t o = mr_index_find(&s->by_id, mr_object_id_hash(id), same_id, s, &id);
    return o == MR_INDEX_NONE ? 0 : o;
}

uint32_t mr_ostore__object_new(struct mr_ostore *s, mr_object_id id)
{
    uint32_t o = s->objects_free;
    if (o)
        s->objects_free = s->objects[o].next;
    else if (s->objects_used + 1 < s->config.objects_max)
        o = ++s->objects_used;
    else
        return 0;
    s->objects[o] = (struct object){
        .id = id, .place = PLACE_WANTED, .sequence = ++s->sequence, .created = s->now};
    mr_index_add(&s->by_id, mr_object_id_hash(id), o, NULL, s);
    s->objects_count++;
    struct mr_ostore_effect *x = mr_ostore__emit(s, MR_OX_ADD);
    x->object = o;
    x->id = id;
    return o;
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

void mr_ostore__object_drop(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    mr_assert(!x->waiters);
    mr_assert(!x->in_place);
    mr_assert(!x->pins);
    mr_ostore__vouch(s, o);
    while (x->links) {
        struct link *l = &s->links[x->links];
        uint32_t at = x->links;
        x->links = l->next;
        l->next = s->links_free;
        s->links_free = at;
    }
    bool known = mr_index_remove(&s->by_id, mr_object_id_hash(x->id), o);
    mr_assert(known);
    mr_ostore__emit(s, MR_OX_REMOVE)->object = o;
    x->place = PLACE_FREE;
    x->next = s->objects_free;
    s->objects_free = o;
    s->objects_count--;
}

void mr_ostore__enlist(struct mr_ostore *s, uint32_t o, enum list list)
{
    struct object *x = &s->objects[o];
    if (x->list != LIST_NONE) {
        if (x->prev)
            s->objects[x->prev].next = x->next;
        else
            s->lists[x->list].head = x->next;
        if (x->next)
            s->objects[x->next].prev = x->prev;
        else
            s->lists[x->list].tail = x->prev;
        s->lists[x->list].count--;
    }
    if (x->list == LIST_SMALL || x->list == LIST_LARGE) mr_ostore__group_unlist(s, o);
    x->list = list;
    x->prev = x->next = 0;
    if (list == LIST_NONE) return;
    if (list == LIST_SMALL || list == LIST_LARGE) mr_ostore__group_enlist(s, o);
    x->used = s->now;
    x->prev = s->lists[list].tail;
    if (x->prev)
        s->objects[x->prev].next = o;
    else
        s->lists[list].head = o;
    s->lists[list].tail = o;
    s->lists[list].count++;
}

/* ---- links: holders and pins ------------------------------------------------------------------*/

static void pins_change(struct mr_ostore *s, struct object *x, int by)
{
    if (x->pins) s->stats.pinned_bytes -= x->bytes;
    x->pins = (uint32_t)((int)x->pins + by);
    if (x->pins) s->stats.pinned_bytes += x->bytes;
}

bool mr_ostore__link(struct mr_ostore *s, uint32_t o, uint32_t kind, uint64_t key)
{
    struct object *x = &s->objects[o];
    for (uint32_t at = x->links; at; at = s->links[at].next) {
        struct link *l = &s->links[at];
        if (l->kind != kind || l->key != key) continue;
        if (kind == LINK_PIN) {
            l->count++;
            pins_change(s, x, 1);
        }
        return true;
    }
    uint32_t at = s->links_free;
    if (at)
        s->links_free = s->links[at].next;
    else if (s->links_used + 1 < s->config.links_max)
        at = ++s->links_used;
    else
        return false;
    s->links[at] = (struct link){kind, 1, key, x->links};
    x->links = at;
    if (kind == LINK_PIN)
        pins_change(s, x, 1);
    else
        x->holders++;
    return true;
}

bool mr_ostore__unlink(struct mr_ostore *s, uint32_t o, uint32_t kind, uint64_t key)
{
    struct object *x = &s->objects[o];
    for (uint32_t *at = &x->links; *at; at = &s->links[*at].next) {
        uint32_t gone = *at;
        struct link *l = &s->links[gone];
        if (l->kind != kind || l->key != key) continue;
        if (kind == LINK_PIN)
            pins_change(s, x, -1);
        else
            x->holders--;
        if (--l->count) return true;
        *at = l->next;
        l->next = s->links_free;
        s->links_free = gone;
        return true;
    }
    return false;
}

bool mr_ostore__unlink_jobs(struct mr_ostore *s, uint32_t o)
{
    struct object *x = &s->objects[o];
    bool any = false;
    for (uint32_t at = x->links, next; at; at = next) {
        next = s->links[at].next;
        if (s->links[at].kind == MR_HOLD_JOB)
            any |= mr_ostore__unlink(s, o, MR_HOLD_JOB, s->links[at].key);
    }
    return any;
}

bool mr_ostore__is_held_by(const struct mr_ostore *s, uint32_t o, uint32_t kind, uint64_t key)
{
    for (uint32_t at = s->objects[o].links; at; at = s->links[at].next)
        if (s->links[at].kind == kind && s->links[at].key == key) return true;
    return false;
}

bool mr_ostore__has_job(const struct mr_ostore *s, uint32_t o)
{
    for (uint32_t at = s->objects[o].links; at; at = s->links[at].next)
        if (s->links[at].kind == MR_HOLD_JOB) return true;
    return false;
}

/* Returns a holder that keeps `but_client` from deleting the object. The store's own client does
 * not count: it holds uploads that have no other holder yet. A result of kind 0: no holder keeps
 * the client from it. */
struct mr_store_holder mr_ostore__some_holder(struct mr_ostore *s, uint32_t o, uint32_t but_client)
{
    for (uint32_t at = s->objects[o].links; at; at = s->links[at].next) {
        const struct link *l = &s->links[at];
        if (l->kind == LINK_PIN) continue;
        bool is_client = l->kind == MR_HOLD_CLIENT;
        const struct client *c = is_client ? mr_ostore__client(s, (uint32_t)l->key) : NULL;
        if (c && (c->number == but_client || c->internal)) continue;
        return (struct mr_store_holder){(enum mr_store_holder_kind)l->kind, l->key};
    }
    return (struct mr_store_holder){0};
}

/* ---- waiters ----------------------------------------------------------------------------------*/

bool mr_ostore__wait(struct mr_ostore *s, uint32_t o, const struct mr_ostore_event *ev)
{
    uint32_t w = s->waiters_free;
    if (w)
        s->waiters_free = s->waiters[w].next;
    else if (s->waiters_used + 1 < s->config.waiters_max)
        w = ++s->waiters_used;
    else
        return false;
    bool persist = ev->type == MR_OE_PERSIST;
    s->waiters[w] = (struct waiter){
        .object = o,
        .client = ev->client,
        .request = ev->request,
        .deadline = persist ? MR_NEVER : mr_time_after(s->now, ev->timeout),
        .persist = persist,
        .next = s->objects[o].waiters,
        .all_next = s->waiters_head,
    };
    if (s->waiters_head) s->waiters[s->waiters_head].all_prev = w;
    s->waiters_head = w;
    s->objects[o].waiters = w;
    s->waiters_deadline = MR_MIN(s->waiters_deadline, s->waiters[w].deadline);
    return true;
}

void mr_ostore__waiter_drop(struct mr_ostore *s, uint32_t w)
{
    struct waiter *x = &s->waiters[w];
    uint32_t *at = &s->objects[x->object].waiters;
    while (*at != w)
        at = &s->waiters[*at].next;
    *at = x->next;
    if (x->all_prev)
        s->waiters[x->all_prev].all_next = x->all_next;
    else
        s->waiters_head = x->all_next;
    if (x->all_next) s->waiters[x->all_next].all_prev = x->all_prev;
    *x = (struct waiter){.next = s->waiters_free};
    s->waiters_free = w;
}

/* ---- clients and segments ---------------------------------------------------------------------*/

struct client *mr_ostore__client(struct mr_ostore *s, uint32_t number)
{
    for (uint32_t i = 0; i < s->clients_count; i++)
        if (s->clients[i].number == number) return &s->clients[i];
    return NULL;
}

uint32_t mr_ostore__segment_of(const struct mr_ostore *s, uint32_t number)
{
    return number < MR_SEGMENTS_MAX ? s->segment_slots[number] : 0;
}
