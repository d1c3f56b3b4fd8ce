/* A sorted array of jobs. A new job usually has the highest id, so adding it moves no other job. */
#include "store/meta/trace/jobs.h"

#include "base/alloc.h"
#include "store/meta/trace/events.h"
#include "store/meta/trace/samples.h"

static uint32_t place_of(const struct mr_trace_jobs *t, mr_job_id id)
{
    uint32_t low = 0;
    uint32_t high = t->count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (t->items[mid].id.v < id.v)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

struct mr_trace_job *mr_trace_jobs_find(const struct mr_trace_jobs *t, mr_job_id id)
{
    uint32_t at = place_of(t, id);
    return at < t->count && t->items[at].id.v == id.v ? &t->items[at] : NULL;
}

struct mr_trace_job *mr_trace_jobs_add(struct mr_trace_jobs *t, mr_job_id id)
{
    uint32_t at = place_of(t, id);
    if (at < t->count && t->items[at].id.v == id.v) return &t->items[at];
    if (t->count == t->room) {
        uint32_t more = MR_MAX(64u, t->room * 2);
        t->items = mr_grow(t->items, t->room * sizeof *t->items, more * sizeof *t->items);
        t->room = more;
    }
    memmove(&t->items[at + 1], &t->items[at], (t->count - at) * sizeof *t->items);
    t->count++;
    t->items[at] = (struct mr_trace_job){.id = id};
    return &t->items[at];
}

void mr_trace_jobs_remove(struct mr_trace_jobs *t, struct mr_trace_job *j)
{
    uint32_t at = (uint32_t)(j - t->items);
    memmove(j, j + 1, (t->count - at - 1) * sizeof *j);
    t->count--;
}

void mr_trace_jobs_fini(struct mr_trace_jobs *t)
{
    mr_release(t->items);
    *t = (struct mr_trace_jobs){0};
}

/* The table is sorted by id: first the segments of samples, then those of events, then jobs. */
uint32_t mr_trace_jobs_segments(
    const struct mr_trace_jobs *t, bool samples, mr_job_id *out, uint32_t max)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        mr_job_id id = t->items[i].id;
        if (!mr_trace_is_segment(id)) break;
        if (mr_sample_is_segment(id) != samples) continue;
        if (n < max) out[n] = id;
        n++;
    }
    return n;
}
