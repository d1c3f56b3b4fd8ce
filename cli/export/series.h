/* A curve over time: the sum of the weights of intervals, for example the number of tasks that run.
 * The curve has at most MR_EXPORT_SERIES_POINTS points of equal width; a point has the mean over
 * its width. If an interval lies outside, the width doubles until the interval fits. So memory does
 * not depend on the number of intervals or on the time. Intervals come in any order. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MR_EXPORT_SERIES_POINTS 2048

struct mr_export_series {
    uint64_t from;  /* begin of the first point, ns */
    uint64_t width; /* of a point, ns; 0: no interval was added yet */
    uint64_t until; /* the latest end of an interval */
    uint64_t begin; /* the earliest begin of an interval */
    double
        part[MR_EXPORT_SERIES_POINTS]; /* weight times ns, of intervals that fill a point partly */
    /* change of the weight of intervals that fill all of a point, against the point before */
    double step[MR_EXPORT_SERIES_POINTS + 1];
};

void mr_export_series_init(struct mr_export_series *s);
/* Adds `weight` between the two times. Does nothing unless from < until. */
void mr_export_series_add(struct mr_export_series *s, uint64_t from, uint64_t until, double weight);
/* Calls `fn` with the time and the value of each point that differs from the point before it, in
 * order, and with the value 0 at the end. No time is before the earliest begin of an interval. */
void mr_export_series_read(const struct mr_export_series *s,
    void (*fn)(void *ctx, uint64_t time, double value), void *ctx);
