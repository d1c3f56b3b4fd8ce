/* Object stores, one for each node: which store has which object, and for which objects a store has
 * a hold; and the streams to the scheduler, which break, are late and are opened again. An object
 * stays while its job holds it (first by the word of its maker, then by the scheduler's), while it
 * is pinned, or while it is on disk. An object that only a dead maker vouches for is offered to the
 * scheduler, and freed if the scheduler does not claim it. */
#include "tests/sim/sim.h"

#include <stdio.h>

#define MAKER 0x5157u
#define OFFER_BEATS 3 /* heartbeats between two offers */
/* time after which an object that was offered is freed, unless the scheduler has claimed it */
#define ORPHAN (3 * MR_SECOND)
#define OFFER_MAX 4096u

static struct mr_sched_event event_of(
    const struct sim *s, uint32_t node, enum mr_sched_event_type type, char name[16])
{
    struct mr_sched_event ev = {.type = type};
    (void)snprintf(name, 16, "n%" PRIu32, node);
    /* In most seeds a store has so little memory that tasks without inputs and with large results
     * are held back now and then. The inputs of one task always fit. */
    ev.store = (struct mr_sched_store){.store = s->store[node].id,
        .node = mr_str(name),
        .address = mr_str(name),
        .memory_bytes = s->seed % 4 ? STORE_BYTES : 0};
    return ev;
}

static void tell(struct sim *s, uint32_t node, enum mr_sched_event_type type)
{
    char name[16];
    struct mr_sched_event ev = event_of(s, node, type, name);
    if (s->sched) sim_sched_step(s, &ev);
}

static bool is_linked(const struct sim *s, uint32_t node)
{
    const struct sim_store *x = &s->store[node];
    return s->sched && x->id && x->is_up && x->life == s->life;
}

static struct sim_copy *copy_in(struct sim *s, uint64_t number, uint64_t store)
{
    if (!number || number > s->objects_count || !store) return NULL;
    struct sim_object *o = &s->objects[number];
    for (uint32_t i = 0; i < MR_ARRAY_LEN(o->copy); i++)
        if (o->copy[i].store == store) return &o->copy[i];
    return NULL;
}

/* Holds that the scheduler set in an earlier stream are in doubt until the scheduler claims the
 * objects again. */
static void doubt(struct sim *s, uint64_t store)
{
    for (uint64_t i = 1; i <= s->objects_count && s->plant != PLANT_ORPHAN; i++) {
        struct sim_copy *c = copy_in(s, i, store);
        if (!c || !c->held || c->is_unvouched) continue;
        c->is_unvouched = true;
        c->is_offered = false;
    }
}

/* Opens the stream of a store. Messages to the store that are still on their way in an earlier
 * stream are dropped. */
void sim_store_connect(struct sim *s, uint32_t node)
{
    struct sim_store *x = &s->store[node];
    if (!x->id || is_linked(s, node)) return;
    if (!s->sched) {
        sim_push(s, 20 * MR_MS + sim_below(s, 50 * MR_MS),
            (struct mr_virtual_event){.kind = EV_STORE_CONNECT, .a = node});
        return;
    }
    x->is_up = true;
    x->life = s->life;
    x->session++;
    x->last_down = 0;
    doubt(s, x->id);
    tell(s, node, MR_SCHED_STORE_REGISTER);
}

/* Gives a new store every object on its node's disk. */
static void read_disk(struct sim *s, uint64_t old, uint64_t now)
{
    for (uint64_t i = 1; i <= s->objects_count && old; i++)
        for (uint32_t k = 0; k < MR_ARRAY_LEN(s->objects[i].copy); k++)
            if (s->objects[i].copy[k].store == old)
                s->objects[i].copy[k] =
                    (struct sim_copy){.store = now, .is_persisted = true, .is_unvouched = true};
}

void sim_store_start(struct sim *s, uint32_t node)
{
    struct sim_store *x = &s->store[node];
    if (!x->id) {
        x->id = 0x1000 + ++s->stores_count;
        read_disk(s, x->dead, x->id);
        sim_say(s, "store %" PRIx64 " starts on node %" PRIu32, x->id, node);
    }
    sim_store_connect(s, node);
}

/* ---- objects -------------------------------------------------------------------------------- */

bool sim_object_has(struct sim *s, uint64_t number, uint64_t store)
{
    return copy_in(s, number, store) != NULL;
}

/* Returns whether a living store has the object. */
bool sim_object_is_somewhere(struct sim *s, uint64_t number)
{
    for (uint32_t i = 0; i < s->nodes; i++)
        if (copy_in(s, number, s->store[i].id)) return true;
    return false;
}

uint64_t sim_object_make(struct sim *s, uint32_t proc, uint64_t value, uint64_t bytes)
{
    uint64_t number = ++s->objects_count;
    if (number >= s->objects_room) {
        uint64_t room = s->objects_room ? 2 * s->objects_room : 256;
        s->objects =
            mr_grow(s->objects, s->objects_room * sizeof *s->objects, room * sizeof *s->objects);
        s->objects_room = room;
    }
    s->objects[number] = (struct sim_object){.value = value,
        .bytes = bytes,
        .copy = {{.store = s->procs[proc].store, .maker = proc + 1, .made = true}}};
    return number;
}

static void collect(struct sim_copy *c)
{
    if (!c->made && !c->held && !c->pins && !c->is_persisted) *c = (struct sim_copy){0};
}

void sim_object_pin(struct sim *s, uint64_t number, uint64_t store, bool on)
{
    struct sim_copy *c = copy_in(s, number, store);
    if (!c && on) {
        struct sim_object *o = &s->objects[number];
        for (uint32_t i = 0; i < MR_ARRAY_LEN(o->copy) && !c; i++)
            if (!o->copy[i].store) c = &o->copy[i];
        mr_assert(c);
        *c = (struct sim_copy){.store = store};
    }
    if (!c) return;
    mr_assert(on || c->pins);
    c->pins = on ? c->pins + 1 : c->pins - 1;
    collect(c);
}

/* Called when the maker of an object does not need it any more. */
void sim_object_drop(struct sim *s, uint64_t number, uint64_t store)
{
    struct sim_copy *c = copy_in(s, number, store);
    if (!c) return;
    c->made = false;
    collect(c);
}

void sim_object_persist(struct sim *s, uint64_t number, uint64_t store)
{
    struct sim_copy *c = copy_in(s, number, store);
    if (c) c->is_persisted = true;
}

static void hold(struct sim *s, uint64_t number, uint64_t store, bool on)
{
    struct sim_copy *c = copy_in(s, number, store);
    if (!c) return;
    if (!on && s->plant == PLANT_UNHOLD) return;
    c->held = on;
    c->made = on && c->made; /* if no job holds the object, the maker's hold ends, too */
    if (on) c->is_unvouched = c->is_offered = false;
    collect(c);
}

/* Called when a process dies: objects that it made in its store are in doubt. */
void sim_store_client_gone(struct sim *s, uint32_t proc)
{
    for (uint64_t i = 1; i <= s->objects_count; i++) {
        struct sim_copy *c = copy_in(s, i, s->procs[proc].store);
        if (c && c->maker == proc + 1 && (c->made || c->held)) c->is_unvouched = true;
    }
}

/* ---- the stream ----------------------------------------------------------------------------- */

static void objects_event(struct sim *s, uint32_t node, enum mr_sched_event_type type,
    const mr_object_id *ids, uint32_t count)
{
    if (!count || !is_linked(s, node)) return;
    struct mr_sched_event ev = {.type = type};
    ev.objects = (struct mr_sched_objects){.store = s->store[node].id, .ids = ids, .count = count};
    sim_sched_step(s, &ev);
}

static void offer(struct sim *s, uint32_t node)
{
    mr_object_id ids[OFFER_MAX];
    uint32_t n = 0;
    for (uint64_t i = 1; i <= s->objects_count && n < OFFER_MAX; i++) {
        struct sim_copy *c = copy_in(s, i, s->store[node].id);
        if (!c || !c->is_unvouched) continue;
        if (!c->is_offered) c->offered_at = s->now;
        c->is_offered = true;
        ids[n++] = (mr_object_id){MAKER, i};
    }
    objects_event(s, node, MR_SCHED_OBJECTS_UNHELD, ids, n);
}

static void free_orphans(struct sim *s, uint32_t node)
{
    for (uint64_t i = 1; i <= s->objects_count; i++) {
        struct sim_copy *c = copy_in(s, i, s->store[node].id);
        if (!c || !c->is_offered || s->now < c->offered_at + ORPHAN) continue;
        c->is_unvouched = c->is_offered = c->made = c->held = false;
        sim_say(s, "store %" PRIx64 " frees the orphan %" PRIu64, s->store[node].id, i);
        collect(c);
    }
}

void sim_stores_beat(struct sim *s)
{
    s->beats++;
    for (uint32_t i = 0; i < s->nodes; i++) {
        if (!s->store[i].id) continue;
        free_orphans(s, i);
        if (!is_linked(s, i)) continue;
        tell(s, i, MR_SCHED_STORE_HEARD);
        if (s->beats % OFFER_BEATS == i % OFFER_BEATS) offer(s, i);
    }
}

static uint32_t node_of(const struct sim *s, uint64_t store)
{
    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->store[i].id && s->store[i].id == store) return i;
    return NONE;
}

bool sim_store_is_alive(const struct sim *s, uint64_t store)
{
    return node_of(s, store) != NONE;
}

static uint32_t ids_of(
    struct mr_virtual_message *m, const struct mr_buf *b, const mr_object_id **out)
{
    *out = mr_virtual_keep(m, b->p, b->n);
    return (uint32_t)(b->n / sizeof(mr_object_id));
}

/* Sends the scheduler's messages to a store at the end of a turn; they arrive a little later. */
void sim_store_send(struct sim *s, uint32_t number)
{
    struct mr_sched_store_batch *b = &s->fx.store[number];
    uint64_t id = 0;
    struct mr_str node;
    struct mr_str address;
    bool is_alive;
    if (!b->is_dirty || !mr_sched_store(s->sched, number, &id, &node, &address, &is_alive)) return;
    uint32_t at = node_of(s, id);
    if (at == NONE || !is_linked(s, at)) return; /* the batch waits for a stream */
    struct mr_virtual_message *m = mr_virtual_message_new();
    m->hold_count = ids_of(m, &b->hold, &m->hold);
    m->unhold_count = ids_of(m, &b->unhold, &m->unhold);
    m->claimed_count = ids_of(m, &b->claimed, &m->claimed);
    m->verify_count = ids_of(m, &b->verify, &m->verify);
    for (uint32_t i = 0; i < m->unhold_count; i++)
        sim_guard_unheld(s, m->unhold[i].number);
    mr_sched_store_batch_clear(b);
    struct sim_store *x = &s->store[at];
    mr_duration wait = 10 * MR_US + sim_below(s, 200 * MR_US);
    if (!s->calm && sim_chance(s, 40)) wait = sim_below(s, 100 * MR_MS);
    x->last_down = MR_MAX(x->last_down, s->now + wait);
    sim_push(s, x->last_down - s->now,
        (struct mr_virtual_event){.kind = EV_STORE_DOWN, .a = at, .b = x->session, .msg = m});
}

void sim_store_down(struct sim *s, const struct mr_virtual_event *ev)
{
    const struct sim_store *x = &s->store[ev->a];
    const struct mr_virtual_message *m = ev->msg;
    if (!x->id || x->session != ev->b) return; /* the message is of an earlier stream */
    for (uint32_t i = 0; i < m->hold_count; i++)
        hold(s, m->hold[i].number, x->id, true);
    for (uint32_t i = 0; i < m->claimed_count; i++)
        hold(s, m->claimed[i].number, x->id, true);
    for (uint32_t i = 0; i < m->verify_count; i++)
        hold(s, m->verify[i].number, x->id, true);
    for (uint32_t i = 0; i < m->unhold_count; i++)
        hold(s, m->unhold[i].number, x->id, false);
    for (uint32_t i = 0; i < m->verify_count; i++)
        if (!copy_in(s, m->verify[i].number, x->id))
            objects_event(s, ev->a, MR_SCHED_OBJECTS_LOST, &m->verify[i], 1);
}

/* ---- what goes wrong ------------------------------------------------------------------------ */

void sim_store_cut(struct sim *s, uint32_t node)
{
    struct sim_store *x = &s->store[node];
    if (!is_linked(s, node)) return;
    s->losses++;
    sim_say(s, "the stream of store %" PRIx64 " breaks", x->id);
    x->is_up = false;
    x->session++;
    tell(s, node, MR_SCHED_STORE_CLOSED);
    sim_push(s, 10 * MR_MS + sim_below(s, 300 * MR_MS),
        (struct mr_virtual_event){.kind = EV_STORE_CONNECT, .a = node});
}

void sim_store_lose(struct sim *s, uint32_t node)
{
    struct sim_store *x = &s->store[node];
    if (!x->id || s->stores_count + 1 >= STORES_MAX) return;
    s->count.stores++;
    s->losses++;
    s->store_died = s->now;
    sim_say(s, "store %" PRIx64 " of node %" PRIu32 " dies", x->id, node);
    for (uint64_t i = 1; i <= s->objects_count; i++) {
        struct sim_copy *c = copy_in(s, i, x->id);
        if (!c) continue;
        *c = c->is_persisted
                 ? (struct sim_copy){.store = x->id, .is_persisted = true, .pins = c->pins}
                 : (struct sim_copy){0};
    }
    uint64_t dead = x->id;
    if (is_linked(s, node)) tell(s, node, MR_SCHED_STORE_CLOSED);
    *x = (struct sim_store){.dead = dead, .session = x->session + 1};
    for (uint32_t i = 0; i < s->procs_count; i++)
        if (s->procs[i].is_alive && s->procs[i].store == dead) sim_proc_kill(s, i);
    sim_push(s, 20 * MR_MS + sim_below(s, 2 * MR_SECOND),
        (struct mr_virtual_event){.kind = EV_STORE_START, .a = node});
}

/* Damages one object. Either its store notices and reports the loss, or a reader notices it
 * later. */
void sim_object_lose(struct sim *s)
{
    if (!s->objects_count || !s->sched) return;
    uint64_t number = 1 + sim_below(s, s->objects_count);
    for (uint32_t i = 0; i < s->nodes; i++) {
        struct sim_copy *c = copy_in(s, number, s->store[i].id);
        if (!c || c->pins) continue;
        s->losses++;
        sim_say(s, "object %" PRIu64 " of store %" PRIx64 " is lost", number, s->store[i].id);
        *c = (struct sim_copy){0};
        if (sim_chance(s, 3)) return; /* a reader will notice the loss */
        mr_object_id id = {MAKER, number};
        objects_event(s, i, MR_SCHED_OBJECTS_LOST, &id, 1);
        return;
    }
}

/* Called when a reader asks a store for an object that the store does not have: the store reports
 * the loss. */
void sim_object_missed(struct sim *s, mr_object_id id, uint64_t store)
{
    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->store[i].id && (s->store[i].id == store || !store))
            objects_event(s, i, MR_SCHED_OBJECTS_LOST, &id, 1);
}

/* Returns an object that is still held when no job is left, and its node; 0: none. Objects on disk
 * may stay. */
uint64_t sim_stores_leftover(struct sim *s, uint32_t *node)
{
    for (uint64_t i = 1; i <= s->objects_count; i++)
        for (*node = 0; *node < s->nodes; ++*node) {
            const struct sim_copy *c = copy_in(s, i, s->store[*node].id);
            if (c && (c->made || c->held || c->pins)) return i;
        }
    return 0;
}
