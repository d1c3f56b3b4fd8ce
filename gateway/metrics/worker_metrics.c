/* Makes gauges and counters from the answers to Cluster.Info and Cluster.Workers. */
#include "gateway/metrics/worker_metrics.h"

struct sample {
    struct mr_prometheus_family family;
    uint64_t value;
};

static void add(struct mr_prometheus *p, const struct sample *s, size_t count, const char *labels)
{
    for (size_t i = 0; i < count; i++)
        mr_prometheus_add_value(p, &s[i].family, labels, s[i].value);
}

void mr_worker_metrics_add_cluster(
    struct mr_prometheus *p, const Millrace__V1__InfoResponse *i, const char *labels)
{
    const struct sample samples[] = {
        {{"millrace_ready", "gauge", "Whether a job could run."}, i->ready != 0},
        {{"millrace_epoch", "counter", "Starts of the scheduler."}, i->epoch},
        {{"millrace_workers", "gauge", "Workers known."}, i->workers},
        {{"millrace_slots", "gauge", "Executor threads of all workers."}, i->slots},
        {{"millrace_stores", "gauge", "Object stores known."}, i->stores},
        {{"millrace_jobs_running", "gauge", "Jobs that run."}, i->jobs_running},
        {{"millrace_tasks_done_total", "counter", "Tasks done since the scheduler started."},
            i->tasks_done},
    };
    add(p, samples, MR_ARRAY_LEN(samples), labels);
}

void mr_worker_metrics_add_worker(
    struct mr_prometheus *p, const Millrace__V1__WorkerInfo *w, const char *labels)
{
    bool is_connected = strcmp(w->state, "connected") == 0;
    const struct sample samples[] = {
        {{"millrace_worker_connected", "gauge", "Whether the worker is connected."}, is_connected},
        {{"millrace_worker_slots", "gauge", "Executor threads."}, w->slots},
        {{"millrace_worker_running", "gauge", "Tasks that run."}, w->running},
        {{"millrace_worker_queued", "gauge", "Tasks sent and not started."}, w->queued},
        {{"millrace_worker_memory_limit_bytes", "gauge", "Memory limit."}, w->memory_bytes},
        {{"millrace_worker_memory_used_bytes", "gauge", "Memory in use."}, w->memory_used_bytes},
        {{"millrace_worker_held_bytes", "gauge", "Results held."}, w->held_bytes},
        {{"millrace_worker_tasks_started_total", "counter", "Tasks started, by its own count."},
            w->tasks_started},
        {{"millrace_worker_tasks_done_total", "counter", "Tasks done, by its own count."},
            w->tasks_done},
    };
    add(p, samples, MR_ARRAY_LEN(samples), labels);
}
