#include "store/meta/trace/view.h"

#include "base/alloc.h"
#include "base/assert.h"

/* The log bounds what waits to 32 MiB, and each entry has more than 64 bytes. */
#define POINTERS_BYTES_MAX ((size_t)4 << 20)

struct mr_trace_waiting *mr_trace_waiting_new(
    mr_job_id job, uint64_t number, bool is_sheet, struct mr_str bytes)
{
    struct mr_trace_waiting *w = mr_alloc(sizeof *w + bytes.n);
    mr_ref_count_init(&w->owners);
    w->job = job;
    w->number = number;
    w->is_sheet = is_sheet;
    w->n = bytes.n;
    if (bytes.n) memcpy(w->bytes, bytes.p, bytes.n);
    return w;
}

void mr_trace_waiting_put(struct mr_trace_waiting **wp)
{
    struct mr_trace_waiting *w = *wp;
    *wp = NULL;
    if (w && mr_ref_count_put(&w->owners)) mr_release(w);
}

void mr_trace_view_init(struct mr_trace_view *v, mr_job_id job)
{
    *v = (struct mr_trace_view){.job = job};
    mr_buf_init(&v->waiting, POINTERS_BYTES_MAX);
}

void mr_trace_view_fini(struct mr_trace_view *v)
{
    struct mr_trace_waiting **all = (void *)v->waiting.p;
    for (uint32_t i = 0; i < mr_trace_view_count(v); i++)
        mr_trace_waiting_put(&all[i]);
    mr_buf_fini(&v->waiting);
}

void mr_trace_view_add(struct mr_trace_view *v, struct mr_trace_waiting *w)
{
    mr_buf_add(&v->waiting, &w, sizeof w);
    mr_assert(!mr_buf_status(&v->waiting));
    mr_ref_count_get(&w->owners);
}

uint32_t mr_trace_view_count(const struct mr_trace_view *v)
{
    return (uint32_t)(v->waiting.n / sizeof(struct mr_trace_waiting *));
}

const struct mr_trace_waiting *mr_trace_view_at(const struct mr_trace_view *v, uint32_t i)
{
    struct mr_trace_waiting *const *all = (const void *)v->waiting.p;
    return all[i];
}
