/* Keeps metric series and writes them in Prometheus' text format 0.0.4. The format wants all
 * samples of one name together, so the series are grouped by name. */
#include "host/os/stats.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/os/machine.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum kind { COUNTER, COUNTER_ASK, GAUGE, GAUGE_ASK, HISTOGRAM };

struct series {
    struct series *next;
    char *labels; /* "": the series has no labels */
    double (*ask)(void *ctx);
    void *ctx;
    union {
        struct mr_counter counter;
        struct mr_gauge gauge;
        struct mr_histogram histogram;
    };
};

struct family {
    struct family *next;
    char *name;
    char *help;
    enum kind kind;
    struct series *series;
};

struct mr_stats {
    pthread_mutex_t lock; /* protects the lists of series; the numbers are atomic */
    struct family *families;
    uint32_t series_count;
    uint64_t started_wall;
};

static struct family *find_family(
    struct mr_stats *stats, const char *name, const char *help, enum kind kind)
{
    struct family **at = &stats->families;
    for (; *at; at = &(*at)->next) {
        if (strcmp((*at)->name, name) != 0) continue;
        mr_assert((*at)->kind == kind);
        return *at;
    }
    struct family *f = mr_alloc(sizeof *f);
    f->name = mr_copy_text(name);
    f->help = mr_copy_text(help);
    f->kind = kind;
    *at = f;
    return f;
}

static struct series *find_series(struct mr_stats *stats, struct family *f, const char *labels)
{
    struct series **at = &f->series;
    for (; *at; at = &(*at)->next)
        if (strcmp((*at)->labels, labels ? labels : "") == 0) return *at;
    mr_assert(stats->series_count < MR_STATS_SERIES_MAX);
    stats->series_count++;
    struct series *s = mr_alloc(sizeof *s);
    s->labels = mr_copy_text(labels ? labels : "");
    *at = s;
    return s;
}

static struct series *add(
    struct mr_stats *stats, const char *name, const char *help, const char *labels, enum kind kind)
{
    (void)pthread_mutex_lock(&stats->lock);
    struct series *s = find_series(stats, find_family(stats, name, help, kind), labels);
    (void)pthread_mutex_unlock(&stats->lock);
    return s;
}

struct mr_counter *mr_stats_counter(
    struct mr_stats *stats, const char *name, const char *help, const char *labels)
{
    return &add(stats, name, help, labels, COUNTER)->counter;
}

struct mr_gauge *mr_stats_gauge(
    struct mr_stats *stats, const char *name, const char *help, const char *labels)
{
    return &add(stats, name, help, labels, GAUGE)->gauge;
}

static void ask(struct mr_stats *stats, const char *name, const char *help, const char *labels,
    enum kind kind, double (*fn)(void *ctx), void *ctx)
{
    struct series *s = add(stats, name, help, labels, kind);
    (void)pthread_mutex_lock(&stats->lock);
    s->ask = fn;
    s->ctx = ctx;
    (void)pthread_mutex_unlock(&stats->lock);
}

void mr_stats_gauge_ask(struct mr_stats *stats, const char *name, const char *help,
    const char *labels, double (*fn)(void *ctx), void *ctx)
{
    ask(stats, name, help, labels, GAUGE_ASK, fn, ctx);
}

void mr_stats_counter_ask(struct mr_stats *stats, const char *name, const char *help,
    const char *labels, double (*fn)(void *ctx), void *ctx)
{
    ask(stats, name, help, labels, COUNTER_ASK, fn, ctx);
}

struct mr_histogram *mr_stats_histogram(struct mr_stats *stats, const char *name, const char *help,
    const char *labels, const double *bounds, uint32_t bounds_count, double unit)
{
    mr_assert(bounds_count <= MR_HISTOGRAM_BOUNDS_MAX);
    struct mr_histogram *h = &add(stats, name, help, labels, HISTOGRAM)->histogram;
    (void)pthread_mutex_lock(&stats->lock);
    if (!h->bounds_count) {
        for (uint32_t i = 0; i < bounds_count; i++) {
            mr_assert(!i || bounds[i] > bounds[i - 1]);
            h->bounds[i] = bounds[i];
        }
        h->unit = unit;
        h->bounds_count = bounds_count;
    }
    (void)pthread_mutex_unlock(&stats->lock);
    return h;
}

void mr_histogram_add(struct mr_histogram *h, uint64_t units)
{
    double v = (double)units * h->unit;
    uint32_t i = 0;
    while (i < h->bounds_count && v > h->bounds[i])
        i++;
    atomic_fetch_add_explicit(&h->buckets[i], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&h->sum_units, units, memory_order_relaxed);
}

/* ---- what the kernel knows of this process ------------------------------------------------ */

static double cpu_seconds(void *ctx)
{
    (void)ctx;
    return (double)mr_clock_process_cpu() * 1e-9;
}

static double resident_bytes(void *ctx)
{
    (void)ctx;
    return (double)mr_machine_resident();
}

static double start_seconds(void *ctx)
{
    const struct mr_stats *stats = ctx;
    return (double)stats->started_wall * 1e-9;
}

struct mr_stats *mr_stats_new(void)
{
    struct mr_stats *stats = mr_alloc(sizeof *stats);
    (void)pthread_mutex_init(&stats->lock, NULL);
    stats->started_wall = mr_clock_wall();
    mr_stats_counter_ask(
        stats, "process_cpu_seconds_total", "CPU time, all threads.", NULL, cpu_seconds, NULL);
    mr_stats_gauge_ask(
        stats, "process_resident_memory_bytes", "Resident memory.", NULL, resident_bytes, NULL);
    mr_stats_gauge_ask(stats, "process_start_time_seconds", "Start, in seconds since 1970.", NULL,
        start_seconds, stats);
    return stats;
}

void mr_stats_free(struct mr_stats **stats_at)
{
    if (!*stats_at) return;
    struct mr_stats *stats = MR_STEAL(*stats_at);
    for (struct family *f = stats->families, *f_next; f; f = f_next) {
        f_next = f->next;
        for (struct series *s = f->series, *s_next; s; s = s_next) {
            s_next = s->next;
            mr_release(s->labels);
            mr_release(s);
        }
        mr_release(f->name);
        mr_release(f->help);
        mr_release(f);
    }
    (void)pthread_mutex_destroy(&stats->lock);
    mr_release(stats);
}

/* ---- text ---------------------------------------------------------------------------------- */

static void write_number(struct mr_buf *out, double v)
{
    if (isnan(v))
        mr_buf_add_text(out, "NaN\n");
    else if (isinf(v))
        mr_buf_add_text(out, v > 0 ? "+Inf\n" : "-Inf\n");
    else
        mr_buf_printf(out, "%.15g\n", v);
}

static void write_name(
    struct mr_buf *out, const struct family *f, const char *suffix, const char *labels)
{
    mr_buf_printf(out, "%s%s", f->name, suffix);
    if (*labels) mr_buf_printf(out, "{%s}", labels);
    mr_buf_add_byte(out, ' ');
}

static void write_histogram(struct mr_buf *out, const struct family *f, const struct series *s)
{
    const struct mr_histogram *h = &s->histogram;
    uint64_t total = 0;
    for (uint32_t i = 0; i <= h->bounds_count; i++) {
        total += atomic_load_explicit(&h->buckets[i], memory_order_relaxed);
        mr_buf_printf(out, "%s_bucket{%s%s", f->name, s->labels, *s->labels ? "," : "");
        if (i < h->bounds_count)
            mr_buf_printf(out, "le=\"%.15g\"} %" PRIu64 "\n", h->bounds[i], total);
        else
            mr_buf_printf(out, "le=\"+Inf\"} %" PRIu64 "\n", total);
    }
    write_name(out, f, "_sum", s->labels);
    write_number(out, (double)atomic_load_explicit(&h->sum_units, memory_order_relaxed) * h->unit);
    write_name(out, f, "_count", s->labels);
    mr_buf_printf(out, "%" PRIu64 "\n", total);
}

static void write_series(struct mr_buf *out, const struct family *f, const struct series *s)
{
    switch (f->kind) {
    case COUNTER:
        write_name(out, f, "", s->labels);
        mr_buf_printf(out, "%" PRIu64 "\n", mr_counter_get(&s->counter));
        return;
    case GAUGE:
        write_name(out, f, "", s->labels);
        mr_buf_printf(
            out, "%" PRId64 "\n", atomic_load_explicit(&s->gauge.v, memory_order_relaxed));
        return;
    case COUNTER_ASK:
    case GAUGE_ASK:
        if (!s->ask) return;
        write_name(out, f, "", s->labels);
        write_number(out, s->ask(s->ctx));
        return;
    case HISTOGRAM: write_histogram(out, f, s); return;
    }
}

void mr_stats_write(struct mr_stats *stats, struct mr_buf *out)
{
    static const char *const kinds[] = {[COUNTER] = "counter",
        [COUNTER_ASK] = "counter",
        [GAUGE] = "gauge",
        [GAUGE_ASK] = "gauge",
        [HISTOGRAM] = "histogram"};
    (void)pthread_mutex_lock(&stats->lock);
    for (const struct family *f = stats->families; f; f = f->next) {
        mr_buf_printf(
            out, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name, kinds[f->kind]);
        for (const struct series *s = f->series; s; s = s->next)
            write_series(out, f, s);
    }
    (void)pthread_mutex_unlock(&stats->lock);
}
