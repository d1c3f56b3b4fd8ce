/* Counters for Prometheus. A series is made once, at start, and stays; adding to it is one relaxed
 * atomic addition from any thread. Making series and writing the text take a lock.
 *
 *     struct mr_counter *done = mr_stats_counter(stats, "millrace_tasks_total", "Tasks finished.",
 *         "state=\"done\"");
 *     mr_counter_add(done, 1);
 */
#pragma once

#include "base/buf.h"
#include "base/time.h"

#include <stdatomic.h>

#define MR_STATS_SERIES_MAX 4096
#define MR_HISTOGRAM_BOUNDS_MAX 32

struct mr_stats;

struct mr_counter {
    _Atomic uint64_t v;
};

struct mr_gauge {
    _Atomic int64_t v;
};

struct mr_histogram {
    uint32_t bounds_count;
    /* Upper bounds of the buckets, ascending. The bucket +Inf always exists and is not listed. */
    double bounds[MR_HISTOGRAM_BOUNDS_MAX];
    _Atomic uint64_t buckets[MR_HISTOGRAM_BOUNDS_MAX + 1];
    _Atomic uint64_t sum_units; /* sum of the observations, in multiples of `unit` */
    /* mr_histogram_add counts in multiples of `unit`: 1e-9 if the series is in seconds and the
     * caller adds nanoseconds. */
    double unit;
};

struct mr_stats *mr_stats_new(void); /* the new set has the usual process_* series */
void mr_stats_free(struct mr_stats **stats);

/* Makes a series, or returns the existing series with this name and these labels. `labels` is
 * `a="x",b="y"` or NULL. All texts are copied. A series lives as long as `stats`. */
struct mr_counter *mr_stats_counter(
    struct mr_stats *stats, const char *name, const char *help, const char *labels);
struct mr_gauge *mr_stats_gauge(
    struct mr_stats *stats, const char *name, const char *help, const char *labels);
/* Makes a histogram. `bounds` are in the unit of the series. mr_histogram_add counts in multiples
 * of `unit`: 1e-9 if the series is in seconds and the caller adds nanoseconds. */
struct mr_histogram *mr_stats_histogram(struct mr_stats *stats, const char *name, const char *help,
    const char *labels, const double *bounds, uint32_t bounds_count, double unit);

/* Make a gauge or a counter whose value the caller keeps. `ask` returns the value, and is called
 * whenever the text is written, on the thread that writes the text. */
void mr_stats_gauge_ask(struct mr_stats *stats, const char *name, const char *help,
    const char *labels, double (*ask)(void *ctx), void *ctx);
void mr_stats_counter_ask(struct mr_stats *stats, const char *name, const char *help,
    const char *labels, double (*ask)(void *ctx), void *ctx);

/* Appends all series in Prometheus' text format 0.0.4, on any thread. */
void mr_stats_write(struct mr_stats *stats, struct mr_buf *out);

static inline void mr_counter_add(struct mr_counter *c, uint64_t n)
{
    atomic_fetch_add_explicit(&c->v, n, memory_order_relaxed);
}

static inline uint64_t mr_counter_get(const struct mr_counter *c)
{
    return atomic_load_explicit(&c->v, memory_order_relaxed);
}

static inline void mr_gauge_set(struct mr_gauge *g, int64_t v)
{
    atomic_store_explicit(&g->v, v, memory_order_relaxed);
}

static inline int64_t mr_gauge_get(const struct mr_gauge *g)
{
    return atomic_load_explicit(&g->v, memory_order_relaxed);
}

static inline void mr_gauge_add(struct mr_gauge *g, int64_t n)
{
    atomic_fetch_add_explicit(&g->v, n, memory_order_relaxed);
}

void mr_histogram_add(struct mr_histogram *h, uint64_t units);
