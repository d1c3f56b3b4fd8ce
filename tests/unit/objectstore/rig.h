/* An object store's core in a test that calls it event by event. After each event the core checks
 * all of its invariants. */
#pragma once

#include "services/objectstore/core/info.h"

#include "base/alloc.h"
#include "store/arena/control.h"
#include "store/arena/layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MIB ((uint64_t)1 << 20)

static const struct mr_ostore_config config = {
    .memory_bytes = 64 * MIB,
    .segment_bytes = 8 * MIB,
    .objects_max = 400,
    .links_max = 2000,
    .waiters_max = 300,
    .segments_max = 64,
    .clients_max = 8,
    .may_spill = true,
    .orphan_ns = 60 * MR_SECOND,
};

struct world {
    struct mr_ostore *s;
    struct mr_ostore_effects fx;
    mr_time now;
};

static inline int setup(void **state)
{
    struct world *w = mr_alloc(sizeof *w);
    w->s = mr_ostore_new(&config);
    mr_ostore_effects_init(&w->fx, &config);
    w->now = MR_SECOND;
    *state = w;
    return 0;
}

static inline int teardown(void **state)
{
    struct world *w = *state;
    mr_ostore_free(&w->s);
    mr_ostore_effects_fini(&w->fx);
    mr_release(w);
    return 0;
}

/* Replaces the core by a new core with another config. */
static inline void begin_with(struct world *w, const struct mr_ostore_config *other)
{
    mr_ostore_free(&w->s);
    w->s = mr_ostore_new(other);
    assert_int_equal(mr_ostore_deadline(w->s), MR_NEVER);
}

static inline void act(struct world *w, struct mr_ostore_event ev)
{
    w->fx.n = 0;
    mr_ostore_step(w->s, w->now, &ev, &w->fx);
    mr_ostore_check(w->s);
}

static inline const struct mr_ostore_effect *effect(
    const struct world *w, enum mr_ostore_effect_type type)
{
    for (size_t i = 0; i < w->fx.n; i++)
        if (w->fx.items[i].type == type) return &w->fx.items[i];
    return NULL;
}

static inline size_t count(const struct world *w, enum mr_ostore_effect_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < w->fx.n; i++)
        n += w->fx.items[i].type == type;
    return n;
}

/* Lets time pass until the core's deadline, and gives the core a tick. */
static inline void tick(struct world *w)
{
    w->now = mr_ostore_deadline(w->s);
    act(w, (struct mr_ostore_event){.type = MR_OE_TICK});
}

static inline void join(struct world *w, uint32_t client)
{
    act(w, (struct mr_ostore_event){
               .type = MR_OE_JOIN, .client = client, .maker = client, .internal = client == 9});
}

static inline uint32_t grant(struct world *w, uint32_t client, uint64_t bytes)
{
    act(w, (struct mr_ostore_event){.type = MR_OE_GRANT,
               .client = client,
               .request = 1,
               .bytes = bytes,
               .room = bytes,
               .timeout = MR_SECOND});
    const struct mr_ostore_effect *x = effect(w, MR_OX_GRANTED);
    return x && !x->err ? x->segment : 0;
}

static inline mr_object_id id_of(uint64_t maker, uint64_t n)
{
    return (mr_object_id){maker, n};
}

static inline void seal(struct world *w, uint32_t client, mr_object_id id, uint32_t segment,
    uint64_t offset, uint64_t bytes, uint64_t job)
{
    act(w, (struct mr_ostore_event){.type = MR_OE_SEAL,
               .client = client,
               .id = id,
               .segment = segment,
               .offset = offset + MR_EXTENT_HEAD,
               .bytes = bytes,
               .room = bytes + MR_EXTENT_HEAD,
               .flags = client == 9 ? MR_SEAL_ADOPT : 0,
               .owner = {.job = {job}}});
}

static inline void get(struct world *w, uint32_t client, uint64_t request, mr_object_id id,
    mr_duration timeout, uint32_t source)
{
    act(w, (struct mr_ostore_event){.type = MR_OE_GET,
               .client = client,
               .request = request,
               .id = id,
               .timeout = timeout,
               .source = source});
}

static inline void unhold(struct world *w, uint32_t client, mr_object_id id, uint64_t job)
{
    act(w, (struct mr_ostore_event){
               .type = MR_OE_UNHOLD, .client = client, .id = id, .holder = {MR_HOLD_JOB, job}});
}

static inline void evicted(struct world *w, int err)
{
    const struct mr_ostore_effect *x = effect(w, MR_OX_EVICT);
    assert_non_null(x);
    act(w, (struct mr_ostore_event){.type = MR_OE_EVICT_DONE, .object = x->object, .err = err});
}

/* If the holder's kind is MR_HOLD_CLIENT, the holder is `client`. */
static inline void hold(struct world *w, enum mr_ostore_event_type type, uint32_t client,
    mr_object_id id, struct mr_store_holder holder)
{
    act(w, (struct mr_ostore_event){.type = type, .client = client, .id = id, .holder = holder});
}

static inline void persist(struct world *w, uint64_t request, mr_object_id id)
{
    act(w,
        (struct mr_ostore_event){.type = MR_OE_PERSIST, .client = 1, .request = request, .id = id});
}

/* Tells the core that its effect MR_OX_WRITE for object `id` has ended with `err`. */
static inline void written(struct world *w, mr_object_id id, uint32_t flags, int err)
{
    act(w, (struct mr_ostore_event){.type = MR_OE_WRITTEN, .id = id, .flags = flags, .err = err});
}

static inline struct mr_ostore_info info_of(const struct world *w, mr_object_id id)
{
    struct mr_ostore_info info;
    assert_int_equal(mr_ostore_stat(w->s, id, &info), MR_OK);
    return info;
}

static inline int there(const struct world *w, mr_object_id id)
{
    struct mr_ostore_info info;
    return mr_ostore_stat(w->s, id, &info);
}

static inline struct mr_store_stats stats_of(const struct world *w)
{
    struct mr_store_stats stats;
    mr_ostore_stats(w->s, &stats);
    return stats;
}

static inline size_t objects_left(const struct world *w, uint32_t *ticks)
{
    assert_true(++*ticks < 1000);
    return stats_of(w).objects;
}
