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
