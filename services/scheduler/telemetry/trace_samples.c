#include "services/scheduler/telemetry/trace_samples.h"

#include "base/alloc.h"
#include "base/page.h"
#include "base/time.h"
#include "base/unconst.h"
#include "services/scheduler/telemetry/trace_reader.h"
#include "store/meta/trace/samples.h"

#define SEGMENT_BYTES ((size_t)256 << 10)
#define SEGMENTS_MAX 256u

static void segment_begin(struct mr_trace_samples *t, uint64_t wall_ns)
{
    mr_job_id kept[SEGMENTS_MAX], oldest, id = mr_sample_segment_id(wall_ns / MR_SECOND);
    /* the segments of a scheduler that ran before may have ids that are ahead of the clock */
    uint32_t count = mr_trace_log_sample_segments(t->log, kept, SEGMENTS_MAX);
    uint64_t last = count ? kept[MR_MIN(count, SEGMENTS_MAX) - 1].v : 0;
    t->segment.v = MR_MAX(id.v, MR_MAX(t->segment.v, last) + 1);
    t->segment_bytes = 0;
    while (mr_trace_log_sample_segments(t->log, &oldest, 1) >= SEGMENTS_MAX)
        mr_trace_log_forget(t->log, oldest);
}

void mr_trace_samples_write(struct mr_trace_samples *t, struct mr_buf *block, uint64_t wall_ns)
{
    if (!t->segment.v || t->segment_bytes >= SEGMENT_BYTES) segment_begin(t, wall_ns);
    mr_samples_end(block, t->segment);
    (void)mr_trace_log_add(t->log, t->segment, mr_buf_str(block), 0);
    t->segment_bytes += block->n;
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool has_values(const struct mr_series_process *p, uint32_t value)
{
    for (uint32_t i = 0; i < p->points_count; i++)
        if (p->points[i].max[value]) return true;
    return false;
}

static Millrace__V1__SampleSeries *series_out(
    struct mr_shell *sh, const struct mr_series_process *p, uint32_t value)
{
    Millrace__V1__SampleSeries *m = mr_shell_take(sh, sizeof *m);
    size_t n = p->points_count;
    millrace__v1__sample_series__init(m);
    m->name = mr_unconst(mr_sample_value_name((enum mr_sample_value)value));
    m->n_min = m->n_mean = m->n_max = n;
    m->min = mr_shell_take(sh, n * sizeof *m->min);
    m->mean = mr_shell_take(sh, n * sizeof *m->mean);
    m->max = mr_shell_take(sh, n * sizeof *m->max);
    for (size_t i = 0; i < n; i++) {
        const struct mr_series_point *q = &p->points[i];
        m->min[i] = q->min[value];
        m->mean[i] = (q->sum[value] + q->count / 2) / q->count;
        m->max[i] = q->max[value];
    }
    return m;
}

static Millrace__V1__ProcessSeries *process_out(
    struct mr_shell *sh, const struct mr_series_process *p)
{
    Millrace__V1__ProcessSeries *m = mr_shell_take(sh, sizeof *m);
    millrace__v1__process_series__init(m);
    m->process = p->name;
    m->kind = mr_unconst(mr_sample_kind_name(p->kind));
    m->node = p->node;
    m->n_interval = p->points_count;
    m->interval = mr_shell_take(sh, p->points_count * sizeof *m->interval);
    for (uint32_t i = 0; i < p->points_count; i++)
        m->interval[i] = p->points[i].interval;
    m->series = mr_shell_take(sh, MR_SAMPLE_VALUES * sizeof *m->series);
    for (uint32_t value = 0; value < MR_SAMPLE_VALUES; value++)
        if (has_values(p, value)) m->series[m->n_series++] = series_out(sh, p, value);
    return m;
}

void mr_trace_samples_answer(
    struct mr_shell *sh, struct mr_rpc_call *call, const struct mr_trace_answer *answer)
{
    const struct mr_series *s = &answer->series;
    Millrace__V1__SamplesResponse r = MILLRACE__V1__SAMPLES_RESPONSE__INIT;
    r.from_ns = s->ask.from_ns;
    r.until_ns = s->ask.until_ns;
    r.step_ns = s->step_ns;
    r.processes = mr_shell_take(sh, (s->count + 1) * sizeof *r.processes);
    for (uint32_t i = 0; i < s->count; i++)
        r.processes[r.n_processes++] = process_out(sh, &s->processes[i]);
    MR_AUTO(mr_free_ptr)
    char *next = s->more && s->count ? mr_page_token(s->processes[s->count - 1].name) : NULL;
    if (next) r.next_page_token = next;
    (void)mr_rpc_call_reply_pb(call, &r.base);
}
