/* Object stores, one a node: which of them has which object, and who holds it there. */
#include "tests/sim/sim.h"

#include <stdio.h>

#define MAKER 0x5157u

static void tell(struct sim *s, uint32_t node, enum mr_sched_event_type type)
{
    char name[16];
    if (!s->sched) return;
    (void)snprintf(name, sizeof name, "n%" PRIu32, node);
    struct mr_sched_event ev = {.type = type};
    ev.store = (struct mr_sched_store){
        .store = s->store_of[node], .node = mr_str(name), .address = mr_str(name)};
    sim_sched_step(s, &ev);
}

void sim_store_start(struct sim *s, uint32_t node)
{
    if (!s->store_of[node]) {
        s->store_of[node] = 0x1000 + ++s->stores_count;
        sim_say(s, "store %" PRIx64 " starts on node %" PRIu32, s->store_of[node], node);
    }
    tell(s, node, MR_SCHED_STORE_REGISTER);
}

void sim_stores_beat(struct sim *s)
{
    for (uint32_t i = 0; i < s->nodes; i++)
        if (s->store_of[i]) tell(s, i, MR_SCHED_STORE_HEARD);
}

static struct sim_copy *copy_in(struct sim *s, uint64_t number, uint64_t store)
{
    if (!number || number > s->objects_count || !store) return NULL;
    struct sim_object *o = &s->objects[number];
    for (uint32_t i = 0; i < MR_ARRAY_LEN(o->copy); i++)
        if (o->copy[i].store == store) return &o->copy[i];
    return NULL;
}

bool sim_object_has(struct sim *s, uint64_t number, uint64_t store)
{
    return copy_in(s, number, store) != NULL;
}

uint64_t sim_object_make(struct sim *s, uint64_t store, uint64_t value, uint64_t bytes)
{
    uint64_t number = ++s->objects_count;
    if (number >= s->objects_room) {
        uint64_t room = s->objects_room ? 2 * s->objects_room : 256;
        s->objects =
            mr_grow(s->objects, s->objects_room * sizeof *s->objects, room * sizeof *s->objects);
        s->objects_room = room;
    }
    s->objects[number] = (struct sim_object){
        .value = value, .bytes = bytes, .copy = {{.store = store, .made = true}}};
    return number;
}

/* made, held: 1 set, 0 clear, -1 leave; pin: added. A copy that nobody wants goes. */
void sim_object_change(struct sim *s, uint64_t number, uint64_t store, int made, int held, int pin)
{
    struct sim_copy *c = copy_in(s, number, store);
    if (!c && pin > 0) {
        struct sim_object *o = &s->objects[number];
        for (uint32_t i = 0; i < MR_ARRAY_LEN(o->copy) && !c; i++)
            if (!o->copy[i].store) c = &o->copy[i];
        mr_assert(c);
        *c = (struct sim_copy){.store = store};
    }
    if (!c) return;
    if (made >= 0) c->made = made;
    if (held >= 0) c->held = held;
    mr_assert(pin >= 0 || c->pins >= (uint32_t)-pin);
    c->pins = (uint32_t)((int)c->pins + pin);
    if (!c->made && !c->held && !c->pins) *c = (struct sim_copy){0};
}

void sim_store_lose(struct sim *s, uint32_t node)
{
    uint64_t store = s->store_of[node];
    if (!store || s->stores_count + 1 >= STORES_MAX) return;
    s->count.stores++;
    s->losses++;
    sim_say(s, "store %" PRIx64 " of node %" PRIu32 " dies", store, node);
    for (uint64_t i = 1; i <= s->objects_count; i++) {
        struct sim_copy *c = copy_in(s, i, store);
        if (c) *c = (struct sim_copy){0};
    }
    tell(s, node, MR_SCHED_STORE_CLOSED);
    s->store_of[node] = 0;
    for (uint32_t i = 0; i < s->procs_count; i++)
        if (s->procs[i].is_alive && s->procs[i].store == store) sim_proc_kill(s, i);
    sim_push(s, 20 * MR_MS + sim_below(s, 2 * MR_SECOND),
        (struct sim_ev){.kind = EV_STORE_START, .a = node});
}

/* One object is damaged: its store finds out, and tells. */
void sim_object_lose(struct sim *s)
{
    if (!s->objects_count || !s->sched) return;
    uint64_t number = 1 + sim_below(s, s->objects_count);
    struct sim_object *o = &s->objects[number];
    for (uint32_t i = 0; i < MR_ARRAY_LEN(o->copy); i++) {
        uint64_t store = o->copy[i].store;
        if (!store || o->copy[i].pins) continue;
        s->losses++;
        sim_say(s, "object %" PRIu64 " of store %" PRIx64 " is lost", number, store);
        o->copy[i] = (struct sim_copy){0};
        if (sim_chance(s, 3)) return; /* found out by whoever reads it */
        mr_object_id id = {MAKER, number};
        struct mr_sched_event ev = {.type = MR_SCHED_OBJECTS_LOST};
        ev.objects = (struct mr_sched_objects){.store = store, .ids = &id, .count = 1};
        sim_sched_step(s, &ev);
        return;
    }
}

/* A reader asked a store for what it does not have: the store tells the scheduler. */
void sim_object_missed(struct sim *s, mr_object_id id, uint64_t store)
{
    bool is_here = false;
    for (uint32_t i = 0; i < s->nodes; i++)
        is_here |= s->store_of[i] == store;
    struct mr_sched_event ev = {.type = MR_SCHED_OBJECTS_LOST};
    ev.objects = (struct mr_sched_objects){.store = store, .ids = &id, .count = 1};
    if (is_here && s->sched) sim_sched_step(s, &ev);
}
