/* Shapes of graphs, without keys or operators: the inputs of each node, in the order of
 * definition. */
#pragma once

#include "base/alloc.h"
#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

/* A graph under test: the inputs of node v are `count[v]` numbers from `inputs[at[v]]` on. Nodes
 * are in the order of definition. */
struct shape {
    uint32_t n;
    uint32_t at[8192];
    uint32_t count[8192];
    uint32_t inputs[65536];
    uint32_t inputs_count;
    uint32_t targets[8192];
    uint32_t targets_count;
};

static inline uint32_t node(struct shape *s)
{
    assert_true(s->n < MR_ARRAY_LEN(s->at));
    s->at[s->n] = s->inputs_count;
    s->count[s->n] = 0;
    return s->n++;
}

static inline void input(struct shape *s, uint32_t from) /* Adds an input to the newest node. */
{
    for (uint32_t i = 0; i < s->count[s->n - 1]; i++)
        if (s->inputs[s->at[s->n - 1] + i] == from) return;
    assert_true(s->inputs_count < MR_ARRAY_LEN(s->inputs));
    s->inputs[s->inputs_count++] = from;
    s->count[s->n - 1]++;
}

static inline void target(struct shape *s, uint32_t v)
{
    s->targets[s->targets_count++] = v;
}

static inline struct shape *shape_new(void)
{
    return mr_alloc(sizeof(struct shape));
}

static inline struct shape *random_shape(uint64_t seed, bool forward_only)
{
    struct mr_rng r;
    mr_rng_init(&r, seed);
    struct shape *s = shape_new();
    uint32_t n = 1 + (uint32_t)mr_rng_below(&r, 200), most = 1 + (uint32_t)mr_rng_below(&r, 6);
    uint32_t perm[256];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = (uint32_t)mr_rng_below(&r, i + 1);
        perm[i] = perm[k];
        perm[k] = i;
    }
    /* perm[i] is node i's place in a topological order. The code under test does not know this
     * order. */
    for (uint32_t i = 0; i < n; i++)
        (void)node(s);
    s->inputs_count = 0;
    for (uint32_t i = 0; i < n; i++) {
        s->at[i] = s->inputs_count;
        for (uint32_t k = (uint32_t)mr_rng_below(&r, most + 1); k; k--) {
            uint32_t from = (uint32_t)mr_rng_below(&r, n);
            bool before = forward_only ? from < i : perm[from] < perm[i];
            bool twice = false;
            for (uint32_t j = 0; j < s->count[i]; j++)
                twice |= s->inputs[s->at[i] + j] == from;
            if (!before || twice) continue;
            s->inputs[s->inputs_count++] = from;
            s->count[i]++;
        }
    }
    for (uint32_t k = 1 + (uint32_t)mr_rng_below(&r, 3); k; k--)
        target(s, (uint32_t)mr_rng_below(&r, n));
    return s;
}
