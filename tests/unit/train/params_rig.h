/* Common parts of tests of parameter sharing: a small model, gradients that any process can
 * compute, the result of sequential training, the threads of servers and workers, and a gRPC
 * server. */
#pragma once

#include "base/alloc.h"
#include "base/assert.h"
#include "base/id.h"
#include "base/rng.h"
#include "host/clock.h"
#include "host/thread.h"
#include "rpc/loop.h"
#include "rpc/server.h"
#include "train/params/client.h"
#include "train/params/update.h"
#include "train/service/service.h"
#include "train/allreduce/allreduce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define SOON (mr_time_after(mr_clock_now(), 20 * MR_SECOND))
#define SHORTLY (mr_time_after(mr_clock_now(), 30 * MR_MS))

static inline struct mr_nn_optim rig_optim(const char *json)
{
    struct mr_nn_optim o;
    struct mr_error e = {0};
    int err = mr_nn_optim_parse(mr_str(json), &o, &e);
    mr_assert(!err);
    return o;
}

static inline float *rig_vector(uint64_t count, uint64_t seed)
{
    float *v = mr_alloc_aligned(count * sizeof *v + 64, 64);
    for (uint64_t i = 0; i < count; i++)
        v[i] = (float)(mr_hash_u64(seed * 1000003 + i) % 2001) / 1000 - 1;
    return v;
}

/* Computes a gradient that depends on the parameters, the worker and the step. */
static inline void rig_gradient(
    const float *params, uint64_t count, uint32_t worker, uint64_t step, float *out)
{
    uint64_t seed = (uint64_t)worker * 7919 + step;
    for (uint64_t i = 0; i < count; i++)
        out[i] = 0.1f * params[i] + (float)(mr_hash_u64(seed * 65537 + i) % 201) / 1000 - 0.1f;
}

struct rig_plain { /* the model, updated sequentially in one thread */
    struct mr_nn_optim optim;
    uint64_t count, trainable;
    float *params, *slots[MR_NN_SLOTS_MAX];
    uint64_t t;
};

static inline void rig_plain_init(
    struct rig_plain *p, const char *optim, uint64_t count, uint64_t trainable)
{
    *p = (struct rig_plain){.optim = rig_optim(optim), .count = count, .trainable = trainable};
    p->params = rig_vector(count, 1);
    for (int i = 0; i < MR_NN_SLOTS_MAX; i++)
        p->slots[i] = mr_alloc_aligned(count * sizeof(float) + 64, 64);
}

static inline void rig_plain_fini(struct rig_plain *p)
{
    mr_release(p->params);
    for (int i = 0; i < MR_NN_SLOTS_MAX; i++)
        mr_release(p->slots[i]);
}

static inline void rig_plain_mean(struct rig_plain *p, const float *const *grads, uint32_t n,
    uint64_t first, uint64_t count, uint64_t t)
{
    float *slots[MR_NN_SLOTS_MAX];
    const float *g[64];
    for (int i = 0; i < MR_NN_SLOTS_MAX; i++)
        slots[i] = p->slots[i] + first;
    for (uint32_t i = 0; i < n; i++)
        g[i] = grads[i] + first;
    struct mr_nn_range r = {.from = p->params + first,
        .to = p->params + first,
        .slots = slots,
        .first = first,
        .count = count,
        .trainable_count = p->trainable};
    if (count) mr_nn_optim_apply_mean(&p->optim, t, &r, g, n);
}

/* ---- a train.ps with S shards, each served by a thread --------------------------------------- */

struct rig_ps {
    struct mr_shard *shard;
    struct mr_update *update;
    struct mr_thread *thread;
    struct mr_flag stop;
};

static inline void rig_ps_run(void *ctx)
{
    struct rig_ps *p = ctx;
    while (mr_update_run(p->update, 0, mr_time_after(mr_clock_now(), 50 * MR_MS)) != MR_ECANCELED) {
    }
}

static inline void rig_ps_open(struct rig_ps *p, const struct rig_plain *plain, uint32_t shard,
    uint32_t shards, enum mr_update_rule rule, uint32_t aggregate, uint32_t threads)
{
    uint64_t first, count;
    mr_transport_slice(plain->count, shards, shard, &first, &count);
    *p = (struct rig_ps){0};
    struct mr_shard_options o = {.session = "t1-1",
        .shard = shard,
        .shards = shards,
        .count = plain->count,
        .incarnation = 1,
        .params = plain->params + first,
        .stop = &p->stop};
    struct mr_error e = {0};
    int err = mr_shard_open(&o, &p->shard, &e);
    if (err) print_error("%s\n", e.text);
    assert_int_equal(err, MR_OK);
    struct mr_update_options u = {.shard = p->shard,
        .optim = &plain->optim,
        .trainable_count = plain->trainable,
        .rule = rule,
        .aggregate = aggregate,
        .threads = threads};
    assert_int_equal(mr_update_open(&u, &p->update, &e), MR_OK);
}

static inline void rig_ps_start(struct rig_ps *p)
{
    p->thread = mr_thread_start("ps", rig_ps_run, p);
}

/* Stops the server's thread. From then on only the caller uses the shard. */
static inline void rig_ps_stop(struct rig_ps *p)
{
    mr_flag_set(&p->stop, true);
    mr_thread_join(&p->thread);
}

static inline void rig_ps_close(struct rig_ps *p)
{
    rig_ps_stop(p);
    mr_update_close(&p->update);
    mr_shard_close(&p->shard);
}

/* ---- workers --------------------------------------------------------------------------------- */

static inline struct mr_params *rig_connect(
    const struct mr_place *places, uint32_t shards, uint64_t count, uint32_t worker, bool remote)
{
    struct mr_params_options o = {.session = "t1-1",
        .worker = worker,
        .incarnation = 10 + worker,
        .count = count,
        .shards = places,
        .shards_count = shards,
        .same_version = true,
        .only_remote = remote};
    struct mr_params *p = NULL;
    struct mr_error e = {0};
    int err = mr_params_open(&o, SOON, &p, &e);
    if (err) print_error("%s\n", e.text);
    assert_int_equal(err, MR_OK);
    return p;
}

struct rig_worker {
    const struct mr_place *places;
    uint32_t shards, index, workers;
    uint64_t count, steps;
    bool is_sync, is_remote;
    struct mr_thread *thread;
};

static inline void rig_worker_run(void *ctx)
{
    struct rig_worker *w = ctx;
    struct mr_params *p = rig_connect(w->places, w->shards, w->count, w->index, w->is_remote);
    float *zeros = mr_alloc(w->count * sizeof *zeros);
    struct mr_error e = {0};
    for (uint64_t step = 1; step <= w->steps; step++) {
        struct mr_params_view v;
        float *g = NULL;
        int err = mr_params_pull(p, w->is_sync ? step - 1 : 0, SOON, &v, &e);
        if (!err) err = mr_params_buffer(p, SOON, &g, &e);
        if (err) print_error("worker %u step %u: %s\n", w->index, (unsigned)step, e.text);
        mr_assert(!err);
        rig_gradient(w->is_sync ? v.params : zeros, w->count, w->index, step, g);
        mr_params_release(p);
        err = mr_params_push(p, step, 64, &e);
        mr_assert(!err);
    }
    int err = mr_params_flush(p, SOON, &e);
    if (err) print_error("flush: %s\n", e.text);
    mr_assert(!err);
    struct mr_params_counts c;
    mr_params_counts(p, &c);
    mr_assert(c.dropped == 0);
    mr_assert(w->is_remote ? c.shards_remote == w->shards : c.shards_local == w->shards);
    mr_release(zeros);
    mr_params_close(&p);
}

static inline void rig_workers_run(struct rig_worker *w, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        w[i].thread = mr_thread_start("worker", rig_worker_run, &w[i]);
    for (uint32_t i = 0; i < n; i++)
        mr_thread_join(&w[i].thread);
}

/* Applies sequentially the steps that `workers` workers make in synchronous training. */
static inline void rig_plain_sync(struct rig_plain *p, uint32_t workers, uint64_t steps)
{
    float *g[64];
    for (uint32_t i = 0; i < workers; i++)
        g[i] = mr_alloc(p->count * sizeof(float));
    for (uint64_t step = 1; step <= steps; step++) {
        for (uint32_t i = 0; i < workers; i++)
            rig_gradient(p->params, p->count, i, step, g[i]);
        rig_plain_mean(p, (const float *const *)g, workers, 0, p->count, step);
    }
    for (uint32_t i = 0; i < workers; i++)
        mr_release(g[i]);
}

/* Applies sequentially the steps that one worker makes in asynchronous training. The worker
 * computes its gradients from zeros, because the version of its parameters is not determined. */
static inline void rig_plain_async(struct rig_plain *p, uint64_t steps)
{
    float *g = mr_alloc(p->count * sizeof *g), *zeros = mr_alloc(p->count * sizeof *g);
    for (uint64_t step = 1; step <= steps; step++) {
        rig_gradient(zeros, p->count, 0, step, g);
        const float *one = g;
        rig_plain_mean(p, &one, 1, 0, p->count, step);
    }
    mr_release(g);
    mr_release(zeros);
}

/* ---- a process's server ---------------------------------------------------------------------- */

struct rig_net {
    struct mr_rpc_loop *loop;
    struct mr_rpc_server *server;
    struct mr_params_service *service;
    struct mr_thread *thread;
    struct mr_flag stop;
    char dir[32], address[64];
};

static inline void rig_net_run(void *ctx)
{
    struct rig_net *n = ctx;
    while (!mr_flag_is_set(&n->stop))
        (void)mr_rpc_loop_run(n->loop, mr_time_after(mr_clock_now(), 20 * MR_MS));
}

static inline void rig_net_open(struct rig_net *n)
{
    *n = (struct rig_net){0};
    (void)snprintf(n->dir, sizeof n->dir, "/tmp/rig-XXXXXX");
    assert_non_null(mkdtemp(n->dir));
    (void)snprintf(n->address, sizeof n->address, "unix:%s/s", n->dir);
    n->loop = mr_rpc_loop_new();
    const struct mr_rpc_server_options o = {0};
    n->server = mr_rpc_server_new(n->loop, &o);
    n->service = mr_params_service_open(n->server, n->loop);
    struct mr_error e = {0};
    assert_int_equal(mr_rpc_server_listen(n->server, n->address, NULL, &e), MR_OK);
    mr_rpc_server_start(n->server);
    n->thread = mr_thread_start("net", rig_net_run, n);
}

static inline void rig_net_close(struct rig_net *n)
{
    mr_flag_set(&n->stop, true);
    mr_rpc_loop_wake(n->loop);
    mr_thread_join(&n->thread);
    mr_rpc_server_close(&n->server, 100 * MR_MS);
    mr_params_service_close(&n->service);
    mr_rpc_loop_free(&n->loop);
    (void)rmdir(n->dir);
}
