/* An interval usually fills the points at its two ends partly, and all points between them. The two
 * ends get their parts of the weight (`part`). For the points between, only the first one and the
 * one after the last are changed (`step`). So adding an interval takes the same time however long
 * the interval is. */
#include "cli/export/series.h"

#include "base/defs.h"

#include <math.h>
#include <string.h>

#define POINTS MR_EXPORT_SERIES_POINTS
#define WIDTH_FIRST 1000u /* ns */

void mr_export_series_init(struct mr_export_series *s)
{
    memset(s, 0, sizeof *s);
}

/* Doubles the width of a point: joins the points in pairs. The joined points become the first half
 * of the series. With `back` they become the second half, and the series begins earlier. */
static void widen(struct mr_export_series *s, bool back)
{
    double joined[POINTS / 2] = {0};
    double level = 0;
    for (unsigned i = 0; i < POINTS; i++) {
        level += s->step[i];
        joined[i / 2] += s->part[i] + level * (double)s->width;
    }
    memset(s->part, 0, sizeof s->part);
    memset(s->step, 0, sizeof s->step);
    memcpy(s->part + (back ? POINTS / 2 : 0), joined, sizeof joined);
    if (back) s->from -= s->width * POINTS;
    s->width *= 2;
}

static void reach(struct mr_export_series *s, uint64_t from, uint64_t until)
{
    if (!s->width) {
        s->width = WIDTH_FIRST;
        s->from = s->begin = from;
    }
    while (from < s->from && s->from >= s->width * POINTS)
        widen(s, true);
    while (until > s->from + s->width * POINTS)
        widen(s, false);
    s->begin = MR_MIN(s->begin, from);
    s->until = MR_MAX(s->until, until);
}

void mr_export_series_add(struct mr_export_series *s, uint64_t from, uint64_t until, double weight)
{
    if (from >= until) return;
    reach(s, from, until);
    /* `reach` does not move the begin of the series before time 0, so it may be after `from` */
    from = MR_MAX(from, s->from);
    if (from >= until) return;
    uint64_t first = (from - s->from) / s->width, last = (until - s->from) / s->width;
    uint64_t first_end = s->from + (first + 1) * s->width, last_begin = s->from + last * s->width;
    if (first == last) {
        s->part[first] += weight * (double)(until - from);
        return;
    }
    s->part[first] += weight * (double)(first_end - from);
    /* `last` may be the number of points: the interval then ends with the last point */
    if (until > last_begin) s->part[last] += weight * (double)(until - last_begin);
    s->step[first + 1] += weight;
    s->step[last] -= weight;
}

void mr_export_series_read(
    const struct mr_export_series *s, void (*fn)(void *ctx, uint64_t time, double value), void *ctx)
{
    double level = 0, before = 0;
    if (!s->width) return;
    for (unsigned i = 0; i < POINTS; i++) {
        uint64_t at = s->from + i * s->width;
        if (at >= s->until) break;
        level += s->step[i];
        double value = s->part[i] / (double)s->width + level;
        /* Sums of floats leave remainders, so values are rounded. */
        value = round(value * 1000) / 1000;
        if (value < 0 || value == 0) value = 0; /* no -0 */
        if (value != before) fn(ctx, MR_MAX(at, s->begin), value);
        before = value;
    }
    if (before != 0) fn(ctx, s->until, 0);
}
