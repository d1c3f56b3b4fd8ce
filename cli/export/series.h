/* A curve over time: the sum of the weights of intervals, for example the number of tasks that run.
 * The curve has at most MR_EXPORT_SERIES_POINTS points of equal width in time. The value of a point
 * is the mean over its width. If an interval lies outside the curve, the width doubles until the
 * interval fits. So memory does not depend on the number of intervals or on their times. Intervals
 * may be added in any order. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MR_EXPORT_SERIES_POINTS 2048

struct mr_export_series {
    uint64_t from;  /* begin of the first point, ns */
    uint64_t width; /* of a point, ns; 0: no interval was added yet */
    uint64_t until; /* the latest end of an interval */
    uint64_t begin; /* the earliest begin of an interval */
    /* weight times ns of the intervals that fill the point partly */
    double part[MR_EXPORT_SERIES_POINTS];
    /* weight of the intervals that fill the whole point, minus that of the point before */
    double step[MR_EXPORT_SERIES_POINTS + 1];
};

void mr_export_series_init(struct mr_export_series *s);
/* Adds an interval with this weight. Does nothing unless from < until. */
void mr_export_series_add(struct mr_export_series *s, uint64_t from, uint64_t until, double weight);
/* Calls `fn` with the time and the value of each point that differs from the point before it, in
 * the order of their times. If the last value is not 0, a call with the value 0 at
 * the end follows. No time is before the earliest begin of an interval. */
void mr_export_series_read(const struct mr_export_series *s,
    void (*fn)(void *ctx, uint64_t time, double value), void *ctx);
