#include "services/scheduler/history/sample_series.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/time.h"

#include <string.h>

void mr_series_init(struct mr_series *s, const struct mr_series_ask *ask)
{
    mr_assert(ask->from_ns < ask->until_ns);
    mr_assert(ask->points_max && ask->processes_max);
    uint64_t window = ask->until_ns - ask->from_ns;
    *s = (struct mr_series){.ask = *ask};
    s->step_ns = window / ask->points_max + (window % ask->points_max != 0);
    s->processes = mr_alloc_array(ask->processes_max, sizeof *s->processes);
}

static void process_fini(struct mr_series_process *p)
{
    mr_release(p->name);
    mr_release(p->node);
    mr_release(p->points);
}

void mr_series_fini(struct mr_series *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        process_fini(&s->processes[i]);
    mr_release(s->processes);
    *s = (struct mr_series){0};
}

static int compare(struct mr_str a, const char *b)
{
    size_t n = strlen(b);
    int d = memcmp(a.p, b, MR_MIN(a.n, n));
    return d ? d : a.n < n ? -1 : a.n > n;
}

static char *copy_text(struct mr_str s)
{
    char *p = mr_alloc(s.n + 1);
    if (s.n) memcpy(p, s.p, s.n);
    return p;
}

/* Returns the process of the sample; NULL: there is no room for it. The processes with the smallest
 * names stay. A process that was left out, or removed for one with a smaller name, never comes
 * back: the greatest name that stays only becomes smaller. So each process that stays has all its
 * samples. */
static struct mr_series_process *process_of(struct mr_series *s, const struct mr_sample *sample)
{
    uint32_t low = 0, high = s->count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        int d = compare(sample->process, s->processes[mid].name);
        if (!d) return &s->processes[mid];
        if (d > 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (s->count == s->ask.processes_max) {
        s->more = true;
        if (low == s->count) return NULL;
        process_fini(&s->processes[--s->count]);
    }
    memmove(&s->processes[low + 1], &s->processes[low], (s->count - low) * sizeof *s->processes);
    s->count++;
    s->processes[low] = (struct mr_series_process){
        .name = copy_text(sample->process), .node = copy_text(sample->node), .kind = sample->kind};
    return &s->processes[low];
}

/* Returns the place of the first point whose interval is not before `interval`. Samples come nearly
 * in the order of their times, so the place is near the end. */
static uint32_t place_of(const struct mr_series_process *p, uint32_t interval)
{
    uint32_t at = p->points_count;
    while (at && p->points[at - 1].interval >= interval)
        at--;
    return at;
}

static struct mr_series_point *point_of(struct mr_series_process *p, uint32_t interval)
{
    uint32_t at = place_of(p, interval);
    if (at < p->points_count && p->points[at].interval == interval) return &p->points[at];
    if (p->points_count == p->points_room) {
        uint32_t more = MR_MAX(16u, p->points_room * 2);
        p->points =
            mr_grow(p->points, p->points_room * sizeof *p->points, more * sizeof *p->points);
        p->points_room = more;
    }
    memmove(&p->points[at + 1], &p->points[at], (p->points_count - at) * sizeof *p->points);
    p->points_count++;
    p->points[at] = (struct mr_series_point){.interval = interval};
    return &p->points[at];
}

void mr_series_add(void *ctx, const struct mr_sample *sample)
{
    struct mr_series *s = ctx;
    const struct mr_series_ask *ask = &s->ask;
    if (sample->at < ask->from_ns || sample->at >= ask->until_ns) return;
    if (ask->process[0] && compare(sample->process, ask->process) != 0) return;
    if (ask->after[0] && compare(sample->process, ask->after) <= 0) return;
    struct mr_series_process *process = process_of(s, sample);
    if (!process) return;
    uint32_t interval = (uint32_t)((sample->at - ask->from_ns) / s->step_ns);
    struct mr_series_point *p = point_of(process, interval);
    for (uint32_t i = 0; i < MR_SAMPLE_VALUES; i++) {
        uint64_t v = sample->values[i];
        p->min[i] = p->count ? MR_MIN(p->min[i], v) : v;
        p->max[i] = MR_MAX(p->max[i], v);
        p->sum[i] += v;
    }
    p->count++;
}

void mr_series_read(struct mr_series *s, const struct mr_trace_source *source,
    const struct mr_trace_view *view, const mr_job_id *segments, uint32_t count)
{
    uint64_t from = mr_sample_segment_id(s->ask.from_ns / MR_SECOND).v;
    for (uint32_t i = 0; i < count; i++) {
        /* A segment ends when the next one begins. Ids may run ahead of the clock, so a late id
         * says nothing about the time. */
        if (i + 1 < count && segments[i + 1].v < from) continue;
        struct mr_trace_cursor *c = mr_trace_cursor_open(source, view, segments[i]);
        struct mr_str block;
        while (mr_trace_cursor_next(c, &block))
            (void)mr_samples_decode(block, mr_series_add, s);
        mr_trace_cursor_close(&c);
    }
}
