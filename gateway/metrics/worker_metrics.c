/* Gauges and counters from Cluster.Info and Cluster.Workers. */
#include "gateway/metrics/worker_metrics.h"

#include "gateway/metrics/prometheus.h"

#include <inttypes.h>

static void family(struct mr_buf *out, const char *name, const char *type, const char *help)
{
    mr_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void single(
    struct mr_buf *out, const char *name, const char *type, const char *help, uint64_t v)
{
    family(out, name, type, help);
    mr_buf_printf(out, "%s %" PRIu64 "\n", name, v);
}

void mr_census_info(const Millrace__V1__InfoResponse *i, struct mr_buf *out)
{
    single(out, "millrace_ready", "gauge", "Whether a job could run.", i->ready != 0);
    single(out, "millrace_epoch", "counter", "Starts of the scheduler.", i->epoch);
    single(out, "millrace_workers", "gauge", "Workers known.", i->workers);
    single(out, "millrace_slots", "gauge", "Their executor threads.", i->slots);
    single(out, "millrace_stores", "gauge", "Object stores known.", i->stores);
    single(out, "millrace_jobs_running", "gauge", "Jobs that run.", i->jobs_running);
    single(out, "millrace_tasks_done_total", "counter", "Tasks done since the scheduler started.",
        i->tasks_done);
}

typedef uint64_t (*read_fn)(const Millrace__V1__WorkerInfo *w);

static uint64_t connected(const Millrace__V1__WorkerInfo *w)
{
    return strcmp(w->state, "connected") == 0;
}
static uint64_t slots(const Millrace__V1__WorkerInfo *w)
{
    return w->slots;
}
static uint64_t running(const Millrace__V1__WorkerInfo *w)
{
    return w->running;
}
static uint64_t queued(const Millrace__V1__WorkerInfo *w)
{
    return w->queued;
}
static uint64_t memory(const Millrace__V1__WorkerInfo *w)
{
    return w->memory_bytes;
}
static uint64_t memory_used(const Millrace__V1__WorkerInfo *w)
{
    return w->memory_used_bytes;
}
static uint64_t held(const Millrace__V1__WorkerInfo *w)
{
    return w->held_bytes;
}
static uint64_t started(const Millrace__V1__WorkerInfo *w)
{
    return w->tasks_started;
}
static uint64_t done(const Millrace__V1__WorkerInfo *w)
{
    return w->tasks_done;
}

static const struct {
    const char *name, *type, *help;
    read_fn read;
} families[] = {
    {"millrace_worker_connected", "gauge", "Whether the worker is connected.", connected},
    {"millrace_worker_slots", "gauge", "Executor threads.", slots},
    {"millrace_worker_running", "gauge", "Tasks that run.", running},
    {"millrace_worker_queued", "gauge", "Tasks sent and not started.", queued},
    {"millrace_worker_memory_limit_bytes", "gauge", "Memory limit.", memory},
    {"millrace_worker_memory_used_bytes", "gauge", "Memory in use.", memory_used},
    {"millrace_worker_held_bytes", "gauge", "Results held.", held},
    {"millrace_worker_tasks_started_total", "counter", "Tasks started, by its own count.", started},
    {"millrace_worker_tasks_done_total", "counter", "Tasks done, by its own count.", done},
};

void mr_census_workers(const Millrace__V1__WorkersResponse *all, struct mr_buf *out)
{
    for (size_t f = 0; f < MR_ARRAY_LEN(families); f++) {
        family(out, families[f].name, families[f].type, families[f].help);
        for (size_t i = 0; i < all->n_workers; i++) {
            const Millrace__V1__WorkerInfo *w = all->workers[i];
            mr_buf_printf(out, "%s{", families[f].name);
            mr_prometheus_label(out, "worker", w->name);
            mr_prometheus_label(out, "node", w->node);
            mr_buf_printf(out, "} %" PRIu64 "\n", families[f].read(w));
        }
    }
}
