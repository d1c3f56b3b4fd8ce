/* Measures how long the scheduler's core thread takes to make a live state
 * (services/scheduler/live) and to find the events of the cluster, with many workers. bench_live
 * [WORKERS]
 *
 * There is no Redis, no connection and no job. The program prints times for a cluster in which
 * nothing changes, for one whose workers were all lost within a second, and for one whose workers
 * all came back. */
#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "services/scheduler/live/live.h"
#include "services/scheduler/live/state.h"
#include "services/scheduler/live/usage.h"
#include "services/scheduler/telemetry/cluster_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 50u
#define LEASE (10 * MR_SECOND)

struct cluster {
    struct mr_shell sh;
    uint32_t workers;
    uint64_t session;
    mr_time now;         /* of the core */
    mr_duration looking; /* time in mr_cluster_watch_tell since the last report */
};

static void step(struct cluster *c, struct mr_sched_event *ev)
{
    mr_sched_step(c->sh.core, c->now, ev, &c->sh.fx);
    mr_sched_effects_clear(&c->sh.fx);
}

/* What the shell does at the end of a pass of its loop. */
static void tell(struct cluster *c)
{
    mr_time began = mr_clock_now();
    mr_cluster_watch_tell(&c->sh, began);
    c->looking += mr_clock_now() - began;
}

/* Each worker registers in a pass of its own. */
static void join_all(struct cluster *c)
{
    const struct mr_ws_operator op = {.name = MR_STR_INIT("inc"), .deterministic = true};
    for (uint32_t i = 0; i < c->workers; i++) {
        char name[32], node[32];
        struct mr_sched_event ev = {.type = MR_SCHED_WORKER_REGISTER, .session = ++c->session};
        (void)snprintf(name, sizeof name, "worker-%u-%u", i / 8, i % 8);
        (void)snprintf(node, sizeof node, "node-%u", i / 8);
        ev.worker.name = mr_str(name);
        ev.worker.node = mr_str(node);
        ev.worker.slots = 4;
        ev.worker.memory_bytes = (uint64_t)1 << 30;
        ev.worker.store_address = MR_STR("a");
        ev.worker.time_ns = c->now;
        ev.worker.ops = &op;
        ev.worker.ops_count = 1;
        step(c, &ev);
        mr_cluster_watch_dirty(&c->sh);
        tell(c);
    }
}

/* The connection of each worker breaks in a pass of its own. Then the leases end. */
static void lose_all(struct cluster *c)
{
    for (uint32_t i = 0; i < c->workers; i++) {
        struct mr_sched_worker_info w;
        struct mr_sched_event ev = {.type = MR_SCHED_WORKER_CLOSED, .slot = i};
        if (!mr_sched_worker(c->sh.core, i, &w)) continue;
        ev.incarnation = w.incarnation;
        step(c, &ev);
        mr_cluster_watch_dirty(&c->sh);
        tell(c);
    }
    c->now += 2 * LEASE;
    for (uint32_t i = 0; i < 1000 && mr_sched_deadline(c->sh.core) <= c->now; i++) {
        struct mr_sched_event tick = {.type = MR_SCHED_TICK};
        step(c, &tick);
    }
    mr_cluster_watch_dirty(&c->sh);
}

static int by_time(const void *a, const void *b)
{
    const mr_duration *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void report(struct cluster *c, const char *what)
{
    mr_duration times[ROUNDS];
    struct mr_live_speed speed = {0};
    struct mr_buf state;
    mr_buf_init(&state, 1 << 20);
    mr_clock_sleep(300 * MR_MS); /* longer than the pause between two searches for events */
    tell(c);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        mr_time began = mr_clock_now();
        mr_buf_clear(&state);
        mr_live_render(&c->sh, c->now, false, &speed, &state);
        times[i] = mr_clock_now() - began;
    }
    qsort(times, ROUNDS, sizeof *times, by_time);
    (void)printf("%s: a state takes %.2f ms (median; longest %.2f ms) and has %zu bytes; finding "
                 "events took %.0f ms\n",
        what, (double)times[ROUNDS / 2] / 1e6, (double)times[ROUNDS - 1] / 1e6, state.n,
        (double)c->looking / 1e6);
    c->looking = 0;
    mr_buf_fini(&state);
}

static void open_cluster(struct cluster *c)
{
    struct mr_sched_config *config = &c->sh.options.core;
    mr_sched_config_default(config);
    config->workers_max = MR_MAX(c->workers, 16u);
    config->lease = LEASE;
    c->sh.options.events_kept = 4096;
    c->now = MR_SECOND;
    mr_arena_init(&c->sh.arena, mr_sched_arena_bytes(config));
    mr_sched_effects_init(&c->sh.fx, config->workers_max, config->stores_max);
    c->sh.core = mr_sched_new(config, &c->sh.arena);
    mr_pb_arena_init(&c->sh.scratch, (size_t)64 << 20);
    c->sh.usage = mr_usage_new(&c->sh);
    c->sh.cluster_watch = mr_cluster_watch_new(&c->sh);
    struct mr_sched_event ev = {.type = MR_SCHED_RECOVERED};
    step(c, &ev);
}

static void close_cluster(struct cluster *c)
{
    mr_cluster_watch_free(&c->sh.cluster_watch);
    mr_usage_free(&c->sh.usage);
    mr_pb_arena_fini(&c->sh.scratch);
    mr_sched_free(&c->sh.core);
    mr_sched_effects_fini(&c->sh.fx);
    mr_arena_fini(&c->sh.arena);
}

int main(int argc, char **argv)
{
    struct cluster *c = mr_alloc(sizeof *c);
    c->workers = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000;
    open_cluster(c);
    join_all(c);
    report(c, "all workers joined");
    lose_all(c);
    report(c, "all were lost");
    join_all(c);
    report(c, "all came back");
    close_cluster(c);
    mr_release(c);
    return 0;
}
