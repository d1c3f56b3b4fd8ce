/* Measures how fast parameters and gradients move between the roles of a training session on one
 * machine: a parameter server with 1, 2 and 4 workers, all-reduce groups, and both over gRPC with a
 * UNIX socket, compared with memcpy.
 *
 *     params_bench [numbers, in millions; default 2.8]
 *
 * Workers compute nothing, so all the time is in the exchange. Roles are threads of this process
 * with connections and mappings of their own, as in separate processes. */
#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/thread.h"
#include "rpc/loop.h"
#include "rpc/server.h"
#include "train/params/client.h"
#include "train/params/update.h"
#include "train/service/service.h"
#include "train/allreduce/allreduce.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADAM "{\"type\": \"adam\", \"learning_rate\": 0.001}"
#define SGD "{\"type\": \"sgd\", \"learning_rate\": 0.1}"
#define LONG (mr_time_after(mr_clock_now(), 60 * MR_SECOND))

static uint64_t count;
static float *initial;

static void must(int err, const struct mr_error *e)
{
    if (!err) return;
    (void)fprintf(stderr, "params_bench: %s\n", e->text);
    exit(1);
}

static struct mr_nn_optim optim_of(const char *json)
{
    struct mr_nn_optim o;
    struct mr_error e;
    must(mr_nn_optim_parse(mr_str(json), &o, &e), &e);
    return o;
}

static void copies(void)
{
    float *to = mr_alloc_aligned(count * sizeof *to, 64);
    double best = 1e9;
    for (int i = 0; i < 10; i++) {
        mr_time begun = mr_clock_now();
        memcpy(to, initial, count * sizeof *to);
        double s = (double)(mr_clock_now() - begun) / 1e9;
        best = MR_MIN(best, s);
    }
    double bytes = (double)count * sizeof *to;
    (void)printf("memcpy of %.1f MB: %.2f ms, %.1f GB/s read and written\n", bytes / 1e6,
        best * 1e3, 2 * bytes / best / 1e9);
    mr_release(to);
}

/* ---- parameter server -------------------------------------------------------------------------*/

struct ps {
    struct mr_shard *shard;
    struct mr_update *update;
    struct mr_thread *thread;
    struct mr_flag stop;
};

static void ps_run(void *ctx)
{
    struct ps *p = ctx;
    while (mr_update_run(p->update, 0, mr_time_after(mr_clock_now(), 50 * MR_MS)) != MR_ECANCELED) {
    }
}

static void ps_open(
    struct ps *p, const char *optim, enum mr_update_rule rule, uint32_t aggregate, uint32_t threads)
{
    struct mr_error e;
    *p = (struct ps){0};
    struct mr_nn_optim o = optim_of(optim);
    struct mr_shard_options so = {
        .session = "bench", .shards = 1, .count = count, .params = initial, .stop = &p->stop};
    must(mr_shard_open(&so, &p->shard, &e), &e);
    struct mr_update_options uo = {.shard = p->shard,
        .optim = &o,
        .trainable_count = count,
        .rule = rule,
        .aggregate = aggregate,
        .threads = threads};
    must(mr_update_open(&uo, &p->update, &e), &e);
    p->thread = mr_thread_start("ps", ps_run, p);
}

static void ps_close(struct ps *p)
{
    mr_flag_set(&p->stop, true);
    mr_thread_join(&p->thread);
    mr_update_close(&p->update);
    mr_shard_close(&p->shard);
}

struct worker {
    const struct mr_place *place;
    uint32_t index;
    uint64_t steps;
    bool is_sync, is_remote;
    struct mr_params_counts counts;
    struct mr_thread *thread;
};

static void worker_run(void *ctx)
{
    struct worker *w = ctx;
    struct mr_error e;
    struct mr_params_options o = {.session = "bench",
        .worker = w->index,
        .incarnation = 1,
        .count = count,
        .shards = w->place,
        .shards_count = 1,
        .only_remote = w->is_remote};
    struct mr_params *p = NULL;
    must(mr_params_open(&o, LONG, &p, &e), &e);
    for (uint64_t step = 1; step <= w->steps; step++) {
        struct mr_params_view v;
        float *g = NULL;
        must(mr_params_pull(p, w->is_sync ? step - 1 : 0, LONG, &v, &e), &e);
        must(mr_params_buffer(p, LONG, &g, &e), &e);
        g[0] = v.params[0];
        mr_params_release(p);
        must(mr_params_push(p, step, 1, &e), &e);
    }
    must(mr_params_flush(p, LONG, &e), &e);
    mr_params_counts(p, &w->counts);
    mr_params_close(&p);
}

static void ps_bench(const char *name, const char *optim, uint32_t workers, bool is_sync,
    bool is_remote, uint32_t threads, const struct mr_place *place)
{
    uint64_t steps = (is_remote ? 50 : 300) / workers;
    struct ps ps;
    struct worker w[8];
    ps_open(&ps, optim, is_sync ? MR_UPDATE_SYNC : MR_UPDATE_ASYNC, workers, threads);
    mr_time begun = mr_clock_now();
    for (uint32_t i = 0; i < workers; i++) {
        w[i] = (struct worker){
            .place = place, .index = i, .steps = steps, .is_sync = is_sync, .is_remote = is_remote};
        w[i].thread = mr_thread_start("worker", worker_run, &w[i]);
    }
    double spent = 0, waited = 0;
    for (uint32_t i = 0; i < workers; i++) {
        mr_thread_join(&w[i].thread);
        spent += (double)(w[i].counts.pull_ns + w[i].counts.push_ns);
        waited += (double)w[i].counts.wait_ns;
    }
    double s = (double)(mr_clock_now() - begun) / 1e9;
    double n = (double)steps * workers;
    struct mr_update_counts c;
    mr_update_counts(ps.update, &c);
    (void)printf(
        "%-28s %u workers, %u threads: %7.0f gradients/s, %7.0f updates/s, %5.2f ms an update; "
        "a worker's pull + push %8.1f us, waits %7.0f us\n",
        name, workers, threads, n / s, (double)c.updates / s,
        (double)c.update_ns / (double)c.updates / 1e6, spent / n / 1e3, waited / n / 1e3);
    ps_close(&ps);
}

/* ---- all-reduce -------------------------------------------------------------------------------*/

struct rank {
    const struct mr_place *places;
    const char *optim;
    uint32_t index, ranks;
    uint64_t steps;
    bool is_remote;
    mr_duration took;
    struct mr_thread *thread;
};

static void rank_run(void *ctx)
{
    struct rank *k = ctx;
    struct mr_error e;
    struct mr_nn_optim o = optim_of(k->optim);
    uint64_t first, n;
    mr_transport_slice(count, k->ranks, k->index, &first, &n);
    struct mr_reduce_options ro = {.session = "bench",
        .rank = k->index,
        .ranks = k->ranks,
        .places = k->places,
        .count = count,
        .trainable_count = count,
        .optim = &o,
        .params = initial + first,
        .only_remote = k->is_remote};
    struct mr_reduce *r = NULL;
    must(mr_reduce_open(&ro, LONG, &r, &e), &e);
    memset(mr_reduce_buffer(r), 0, count * sizeof(float));
    must(mr_reduce_step(r, LONG, &e), &e);
    mr_time begun = mr_clock_now();
    for (uint64_t step = 0; step < k->steps; step++)
        must(mr_reduce_step(r, LONG, &e), &e);
    k->took = mr_clock_now() - begun;
    mr_reduce_close(&r);
}

static void reduce_bench(const char *name, const char *optim, uint32_t ranks, bool is_remote,
    const struct mr_place *place)
{
    struct mr_place places[8];
    struct rank k[8];
    uint64_t steps = is_remote ? 20 : 200;
    for (uint32_t i = 0; i < ranks; i++)
        places[i] = *place;
    for (uint32_t i = 0; i < ranks; i++) {
        k[i] = (struct rank){.places = places,
            .optim = optim,
            .index = i,
            .ranks = ranks,
            .steps = steps,
            .is_remote = is_remote};
        k[i].thread = mr_thread_start("rank", rank_run, &k[i]);
    }
    for (uint32_t i = 0; i < ranks; i++)
        mr_thread_join(&k[i].thread);
    double s = (double)k[0].took / 1e9 / (double)steps;
    /* Bytes that move: the gradients of all ranks are read, and the parameters are read and
     * written. */
    double bytes = (double)count * sizeof(float) * (ranks + 2);
    (void)printf(
        "%-28s %u ranks: %.2f ms a step, %.1f GB/s\n", name, ranks, s * 1e3, bytes / s / 1e9);
}

/* ---- all --------------------------------------------------------------------------------------*/

struct net {
    struct mr_rpc_loop *loop;
    struct mr_rpc_server *server;
    struct mr_params_service *service;
    struct mr_flag stop;
};

static void net_run(void *ctx)
{
    struct net *n = ctx;
    while (!mr_flag_is_set(&n->stop))
        (void)mr_rpc_loop_run(n->loop, mr_time_after(mr_clock_now(), 50 * MR_MS));
}

static void net_bench(const struct mr_place *here)
{
    char dir[] = "/tmp/params-bench-XXXXXX", address[64];
    mr_assert(mkdtemp(dir));
    (void)snprintf(address, sizeof address, "unix:%s/s", dir);
    struct mr_error e;
    struct net n = {.loop = mr_rpc_loop_new()};
    const struct mr_rpc_server_options o = {0};
    n.server = mr_rpc_server_new(n.loop, &o);
    n.service = mr_params_service_open(n.server, n.loop);
    must(mr_rpc_server_listen(n.server, address, NULL, &e), &e);
    mr_rpc_server_start(n.server);
    struct mr_thread *t = mr_thread_start("net", net_run, &n);
    struct mr_place place = *here;
    place.address = address;
    ps_bench("async sgd, gRPC", SGD, 1, false, true, 1, &place);
    ps_bench("async sgd, gRPC", SGD, 4, false, true, 1, &place);
    reduce_bench("all-reduce sgd, ring", SGD, 2, true, &place);
    reduce_bench("all-reduce sgd, ring", SGD, 4, true, &place);
    mr_flag_set(&n.stop, true);
    mr_thread_join(&t);
    mr_rpc_server_close(&n.server, 100 * MR_MS);
    mr_params_service_close(&n.service);
    mr_rpc_loop_free(&n.loop);
    (void)rmdir(dir);
}

int main(int argc, char **argv)
{
    count = (uint64_t)((argc > 1 ? strtod(argv[1], NULL) : 2.8) * 1e6);
    initial = mr_alloc_aligned(count * sizeof *initial, 64);
    for (uint64_t i = 0; i < count; i++)
        initial[i] = (float)i;
    const struct mr_transport_options o = {.node = "bench"};
    mr_transport_configure(&o);
    struct mr_error e;
    struct mr_place here = {.address = "", .node = "bench"};
    must(mr_transport_socket(&here.socket, &e), &e);
    copies();
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        ps_bench("async sgd", SGD, workers, false, false, 1, &here);
        ps_bench("async adam", ADAM, workers, false, false, 1, &here);
        ps_bench("sync sgd", SGD, workers, true, false, 1, &here);
        ps_bench("sync adam", ADAM, workers, true, false, 1, &here);
    }
    for (uint32_t threads = 2; threads <= 4; threads++)
        ps_bench("sync adam", ADAM, 4, true, false, threads, &here);
    for (uint32_t ranks = 1; ranks <= 4; ranks *= 2) {
        reduce_bench("all-reduce sgd", SGD, ranks, false, &here);
        reduce_bench("all-reduce adam", ADAM, ranks, false, &here);
    }
    net_bench(&here);
    mr_transport_close();
    mr_release(initial);
    return 0;
}
