/* Spans are kept as they come, in blocks of one job each, 48 bytes a span; a job keeps at most 64
 * MiB, past which new ones are counted and shown as "not recorded". All together keep 256 MiB, past
 * which the oldest job's go: who looks, looks at what runs now. Times
 * are offsets from the job's first span in units of 100 ns, which 32 bits carry for seven minutes
 * and a wider base renews. */
#include "services/scheduler/trace.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/index.h"
#include "host/clock.h"

#include <stdlib.h>

#define JOB_BYTES_MAX ((size_t)64 << 20)
#define ALL_BYTES_MAX ((size_t)256 << 20)

struct span { /* started and the rest as distances, so that a span stays small */
    uint32_t index;
    uint16_t op;
    uint16_t worker;
    uint16_t slot;
    uint8_t attempt; /* 255: that or more */
    uint8_t outcome;
    uint64_t started;
    uint32_t since_ready; /* 100 ns, saturating: started - ready */
    uint32_t since_sent;
    uint32_t ran;
    uint32_t to_accounted; /* accounted - finished */
    uint32_t cpu;
    uint32_t spare;
};
_Static_assert(sizeof(struct span) == 48, "a span's size is part of the caps' arithmetic");

struct job_trace {
    mr_job_id job;
    struct mr_buf spans;
    uint64_t not_recorded;
};

struct mr_trace {
    struct job_trace *jobs; /* ascending by id */
    uint32_t count;
    size_t bytes;
};

struct mr_trace *mr_trace_new(void)
{
    return mr_alloc(sizeof(struct mr_trace));
}

void mr_trace_free(struct mr_trace **tp)
{
    struct mr_trace *t = *tp;
    *tp = NULL;
    if (!t) return;
    for (uint32_t i = 0; i < t->count; i++)
        mr_buf_fini(&t->jobs[i].spans);
    mr_release(t->jobs);
    mr_release(t);
}

/* Where the job is, or where it would be put. */
static uint32_t place_of(const struct mr_trace *t, mr_job_id job)
{
    uint32_t low = 0;
    uint32_t high = t->count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (t->jobs[mid].job.v < job.v)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct job_trace *find(const struct mr_trace *t, mr_job_id job)
{
    uint32_t at = place_of(t, job);
    return at < t->count && t->jobs[at].job.v == job.v ? &t->jobs[at] : NULL;
}

static struct job_trace *find_or_add(struct mr_trace *t, mr_job_id job)
{
    uint32_t at = place_of(t, job);
    if (at < t->count && t->jobs[at].job.v == job.v) return &t->jobs[at];
    size_t old = t->count * sizeof *t->jobs;
    t->jobs = mr_grow(t->jobs, old, old + sizeof *t->jobs);
    memmove(&t->jobs[at + 1], &t->jobs[at], (t->count - at) * sizeof *t->jobs);
    t->count++;
    t->jobs[at] = (struct job_trace){.job = job};
    mr_buf_init(&t->jobs[at].spans, JOB_BYTES_MAX);
    return &t->jobs[at];
}

static uint32_t hundreds(uint64_t from, uint64_t to)
{
    if (!from || to < from) return 0;
    uint64_t d = (to - from) / 100;
    return d > UINT32_MAX ? UINT32_MAX : (uint32_t)d;
}

/* Room for one more of `of`'s: the spans of the oldest other job that has any go. */
static bool make_room(struct mr_trace *t, const struct job_trace *of)
{
    for (uint32_t i = 0; i < t->count; i++) {
        struct job_trace *j = &t->jobs[i];
        if (j == of || !j->spans.n) continue;
        j->not_recorded += j->spans.n / sizeof(struct span);
        t->bytes -= j->spans.n;
        mr_buf_fini(&j->spans);
        mr_buf_init(&j->spans, JOB_BYTES_MAX);
        return true;
    }
    return false;
}

void mr_trace_add(struct mr_shell *sh)
{
    const struct mr_sched_span *in = (const void *)sh->fx.spans.p;
    size_t n = sh->fx.spans.n / sizeof *in;
    struct mr_trace *t = sh->trace;
    struct job_trace *j = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!j || j->job.v != in[i].job.v) j = find_or_add(t, in[i].job);
        const struct span s = {.index = in[i].index,
            .op = (uint16_t)in[i].op,
            .worker = (uint16_t)in[i].worker,
            .slot = (uint16_t)in[i].slot,
            .attempt = (uint8_t)MR_MIN(in[i].attempt, 255u),
            .outcome = (uint8_t)in[i].outcome,
            .started = in[i].started,
            .since_ready = hundreds(in[i].ready, in[i].started),
            .since_sent = hundreds(in[i].sent, in[i].started),
            .ran = hundreds(in[i].started, in[i].finished),
            .to_accounted = hundreds(in[i].finished, in[i].accounted),
            .cpu = hundreds(1, in[i].cpu_ns + 1)};
        bool has_room = j->spans.n + sizeof s <= JOB_BYTES_MAX &&
                        (t->bytes + sizeof s <= ALL_BYTES_MAX || make_room(t, j));
        if (!has_room) {
            j->not_recorded++;
            continue;
        }
        mr_buf_add(&j->spans, &s, sizeof s);
        t->bytes += sizeof s;
    }
}

void mr_trace_forget(struct mr_shell *sh, mr_job_id job)
{
    struct mr_trace *t = sh->trace;
    uint32_t at = place_of(t, job);
    if (at >= t->count || t->jobs[at].job.v != job.v) return;
    t->bytes -= t->jobs[at].spans.n;
    mr_buf_fini(&t->jobs[at].spans);
    memmove(&t->jobs[at], &t->jobs[at + 1], (t->count - at - 1) * sizeof *t->jobs);
    t->count--;
}

/* Wall clock of a monotonic time. */
static uint64_t wall_of(mr_time t)
{
    return mr_clock_wall() - mr_clock_now() + t;
}

static mr_time finished_of(const struct span *s)
{
    return s->started + (uint64_t)s->ran * 100;
}

static Millrace__V1__TimelineSpan *span_out(
    struct mr_shell *sh, const struct mr_sched_job_info *info, const struct span *s)
{
    Millrace__V1__TimelineSpan *m = mr_shell_take(sh, sizeof *m);
    Millrace__V1__TaskTimes *times = mr_shell_take(sh, sizeof *times);
    struct mr_sched_worker_info worker;
    millrace__v1__timeline_span__init(m);
    millrace__v1__task_times__init(times);
    m->key = mr_shell_text(sh, mr_graph_key(info->graph, s->index));
    m->op = mr_shell_text(sh, mr_sched_op_name(sh->core, s->op));
    if (mr_sched_worker(sh->core, s->worker, &worker)) m->worker = mr_shell_text(sh, worker.name);
    m->slot = s->slot;
    m->attempt = s->attempt;
    m->failed = s->outcome != MR_OUTCOME_OK;
    m->cpu_ns = (uint64_t)s->cpu * 100;
    m->times = times;
    times->started_ns = wall_of(s->started);
    times->ready_ns = times->started_ns - (uint64_t)s->since_ready * 100;
    times->sent_ns = times->started_ns - (uint64_t)s->since_sent * 100;
    times->finished_ns = wall_of(finished_of(s));
    times->accounted_ns = times->finished_ns + (uint64_t)s->to_accounted * 100;
    return m;
}

static int by_start(const void *a, const void *b)
{
    const struct span *const *x = a;
    const struct span *const *y = b;
    if ((*x)->started != (*y)->started) return (*x)->started < (*y)->started ? -1 : 1;
    return (*x)->index < (*y)->index ? -1 : (*x)->index > (*y)->index;
}

Millrace__V1__TimelineResponse *mr_trace_timeline(struct mr_shell *sh,
    const struct mr_sched_job_info *info, uint64_t after_wall_ns, uint32_t spans_max)
{
    const struct job_trace *j = find(sh->trace, info->id);
    Millrace__V1__TimelineResponse *m = mr_shell_take(sh, sizeof *m);
    millrace__v1__timeline_response__init(m);
    if (!j) return m;
    const struct span *spans = (const void *)j->spans.p;
    size_t n = j->spans.n / sizeof *spans;
    const struct span **wanted = mr_alloc_array(n, sizeof(struct span *));
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (spans[i].started && wall_of(finished_of(&spans[i])) > after_wall_ns)
            wanted[count++] = &spans[i];
    qsort(wanted, count, sizeof *wanted, by_start);
    m->more = count > spans_max;
    m->not_recorded = j->not_recorded;
    m->n_spans = MR_MIN(count, (size_t)spans_max);
    m->spans = mr_shell_take(sh, m->n_spans * sizeof *m->spans);
    for (size_t i = 0; i < m->n_spans; i++)
        m->spans[i] = span_out(sh, info, wanted[i]);
    mr_release((void *)(uintptr_t)wanted);
    return m;
}

bool mr_trace_last(
    const struct mr_shell *sh, mr_job_id job, uint32_t index, struct mr_sched_span *out)
{
    const struct job_trace *j = find(sh->trace, job);
    if (!j) return false;
    const struct span *spans = (const void *)j->spans.p;
    for (size_t i = j->spans.n / sizeof *spans; i > 0; i--) {
        const struct span *s = &spans[i - 1];
        if (s->index != index) continue;
        *out = (struct mr_sched_span){.job = job,
            .index = index,
            .attempt = s->attempt,
            .op = s->op,
            .worker = s->worker,
            .slot = s->slot,
            .outcome = s->outcome,
            .started = s->started,
            .ready = s->started - (uint64_t)s->since_ready * 100,
            .sent = s->started - (uint64_t)s->since_sent * 100,
            .finished = finished_of(s),
            .accounted = finished_of(s) + (uint64_t)s->to_accounted * 100,
            .cpu_ns = (uint64_t)s->cpu * 100};
        return true;
    }
    return false;
}

struct row {
    uint32_t op;
    uint64_t tasks, wall, cpu, queue;
};

static int by_wall(const void *a, const void *b)
{
    const struct row *x = a;
    const struct row *y = b;
    if (x->wall != y->wall) return x->wall > y->wall ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

Millrace__V1__ProfileResponse *mr_trace_profile(
    struct mr_shell *sh, const struct mr_sched_job_info *info)
{
    const struct job_trace *j = find(sh->trace, info->id);
    Millrace__V1__ProfileResponse *m = mr_shell_take(sh, sizeof *m);
    struct mr_sched_totals totals;
    millrace__v1__profile_response__init(m);
    mr_sched_totals(sh->core, &totals);
    m->slots = totals.slots;
    if (!j) return m;
    const struct span *spans = (const void *)j->spans.p;
    uint32_t ops = mr_sched_ops_count(sh->core) + 1;
    struct row *rows = mr_alloc_array(ops, sizeof *rows);
    uint64_t cpu = 0;
    mr_time first = MR_NEVER;
    mr_time last = 0;
    for (size_t i = 0; i < j->spans.n / sizeof *spans; i++) {
        const struct span *s = &spans[i];
        if (!s->started || s->op >= ops) continue;
        struct row *r = &rows[s->op];
        r->op = s->op;
        r->tasks++;
        r->wall += (uint64_t)s->ran * 100;
        r->cpu += (uint64_t)s->cpu * 100;
        r->queue += (uint64_t)s->since_ready * 100;
        cpu += (uint64_t)s->cpu * 100;
        first = MR_MIN(first, s->started);
        last = MR_MAX(last, finished_of(s));
    }
    qsort(rows, ops, sizeof *rows, by_wall);
    m->rows = mr_shell_take(sh, ops * sizeof *m->rows);
    for (uint32_t i = 0; i < ops && rows[i].tasks; i++) {
        Millrace__V1__ProfileRow *row = mr_shell_take(sh, sizeof *row);
        millrace__v1__profile_row__init(row);
        row->op = mr_shell_text(sh, mr_sched_op_name(sh->core, rows[i].op));
        row->tasks = rows[i].tasks;
        row->wall_ns = rows[i].wall;
        row->cpu_ns = rows[i].cpu;
        row->queue_ns = rows[i].queue;
        m->rows[m->n_rows++] = row;
    }
    mr_release(rows);
    if (last > first) m->wall_ns = last - first;
    if (m->wall_ns && m->slots)
        m->white_space = 1.0 - (double)cpu / ((double)m->wall_ns * (double)m->slots);
    return m;
}
