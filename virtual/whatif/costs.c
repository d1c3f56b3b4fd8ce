/* Each cost is a quantile or a trimmed mean of its samples. So a few samples that are too long,
 * because the kernel ran another thread, do not count. */
#include "virtual/whatif/costs.h"

#include "base/alloc.h"
#include "base/defs.h"

#include <stdlib.h>

/* Costs of which the recorded job has no sample. They matter little, because this job did not have
 * such costs. */
#define DECIDE_NS 600.0
#define SEND_NS 40000.0
#define REPORT_NS 40000.0
#define HANDOFF_NS 8000.0
#define GAP_NS 200.0
#define TRANSFER_NS 300000.0
#define TRANSFER_BYTE_NS 1.0
#define SAMPLES_MIN 8 /* least number of samples of decide_ns: fewer may all be disturbed */
#define ROWS_MANY 16  /* a message with so many tasks shows what a single task costs */

struct sample {
    double ns, count;
};

struct samples {
    struct sample *p;
    uint32_t count, room;
};

static void sample_add(struct samples *s, double ns, double count)
{
    if (s->count == s->room) {
        uint32_t room = s->room ? 2 * s->room : 256;
        s->p = mr_grow(s->p, s->room * sizeof *s->p, room * sizeof *s->p);
        s->room = room;
    }
    s->p[s->count++] = (struct sample){ns, count};
}

static int by_ns(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    return x->ns < y->ns ? -1 : x->ns > y->ns;
}

static int by_count(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    return x->count < y->count ? -1 : x->count > y->count;
}

static double quantile(struct sample *p, uint32_t count, double share)
{
    qsort(p, count, sizeof *p, by_ns);
    return p[MR_MIN(count - 1, (uint32_t)(share * count))].ns;
}

/* Returns the mean of the samples, without the largest 1 % of them. */
static double trimmed_mean(struct samples *s)
{
    double sum = 0;
    uint32_t kept = MR_MAX(1u, s->count - (s->count + 99) / 100);
    qsort(s->p, s->count, sizeof *s->p, by_ns);
    for (uint32_t i = 0; i < kept; i++)
        sum += s->p[i].ns;
    return sum / kept;
}

/* Makes a line from samples that are few, or whose counts are about equal. If most counts are
 * large, first_ns is at most `first`, and the rest of the time is the cost of the tasks. Otherwise
 * each_ns is 0. */
static struct mr_whatif_line line_through(struct samples *s, double share, double first)
{
    uint32_t many = 0;
    double all = quantile(s->p, s->count, share);
    struct sample *each = mr_alloc_array(s->count, sizeof *each);
    for (uint32_t i = 0; i < s->count; i++)
        if (s->p[i].count >= ROWS_MANY)
            each[many++].ns = MR_MAX(s->p[i].ns - first, 0.0) / s->p[i].count;
    struct mr_whatif_line line = {.first_ns = all};
    if (2 * many > s->count)
        line = (struct mr_whatif_line){MR_MIN(first, all), quantile(each, many, share)};
    mr_release(each);
    return line;
}

/* Fits a line through two points: the quantile of the half of the samples with small counts, and
 * that of the half with large counts. If
 * these do not make a line, uses line_through() with `usual` as `first`. */
static struct mr_whatif_line line_of(struct samples *s, double share, double usual)
{
    double low_count = 0, high_count = 0;
    uint32_t half = s->count / 2;
    if (half < 4) return line_through(s, share, usual);
    qsort(s->p, s->count, sizeof *s->p, by_count);
    for (uint32_t i = 0; i < half; i++)
        low_count += s->p[i].count / half;
    for (uint32_t i = s->count - half; i < s->count; i++)
        high_count += s->p[i].count / half;
    double low = quantile(s->p, half, share);
    double high = quantile(s->p + s->count - half, half, share);
    if (high_count < 2 * low_count || high <= low) return line_through(s, share, usual);
    double each = (high - low) / (high_count - low_count);
    double first = MR_MAX(low - each * low_count, 0.0);
    return (struct mr_whatif_line){.first_ns = first, .each_ns = each};
}

/* ---- samples --------------------------------------------------------------------------------- */

struct measuring {
    const struct mr_whatif_job *job;
    uint32_t *order; /* tasks that ran */
    uint32_t *rows;  /* by task: number of tasks in the message that brought the task */
    uint32_t count;
    struct samples decide, send, report, handoff, local, gap, transfer;
};

static int compare(mr_time x, mr_time y, uint32_t a, uint32_t b)
{
    return x != y ? (x < y ? -1 : 1) : a < b ? -1 : a > b;
}

static int by_start(const void *a, const void *b, void *ctx)
{
    const struct mr_whatif_task *t = ctx;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct mr_whatif_task *x = &t[i], *y = &t[k];
    if (x->worker != y->worker) return x->worker < y->worker ? -1 : 1;
    if (x->slot != y->slot) return x->slot < y->slot ? -1 : 1;
    return compare(x->started, y->started, i, k);
}

static int by_received(const void *a, const void *b, void *ctx)
{
    const struct mr_whatif_task *t = ctx;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    if (t[i].worker != t[k].worker) return t[i].worker < t[k].worker ? -1 : 1;
    return compare(t[i].received, t[k].received, i, k);
}

static int by_accounted(const void *a, const void *b, void *ctx)
{
    const struct mr_whatif_task *t = ctx;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    return compare(t[i].accounted, t[k].accounted, i, k);
}

/* Returns the time from which the task's worker had all inputs. */
static mr_time inputs_of(const struct mr_whatif_job *j, const struct mr_whatif_task *t)
{
    mr_time at = t->inputs;
    for (uint32_t k = 0; k < t->inputs_count; k++) {
        uint32_t input = j->inputs[t->inputs_at + k];
        if (mr_whatif_ran(j, input)) at = MR_MAX(at, j->tasks[input].finished);
    }
    return at;
}

/* Returns whether the task's slot made an input that ended at `at`. */
static bool has_own_input(const struct mr_whatif_job *j, const struct mr_whatif_task *t, mr_time at)
{
    for (uint32_t k = 0; k < t->inputs_count; k++) {
        uint32_t input = j->inputs[t->inputs_at + k];
        const struct mr_whatif_task *u = &j->tasks[input];
        if (!mr_whatif_ran(j, input) || u->finished != at) continue;
        if (u->worker == t->worker && u->slot == t->slot) return true;
    }
    return false;
}

/* Takes a sample from each task that waited for no transfer: the time from when the task could
 * begin until it began. What came last decides which cost the sample belongs to. A value that
 * another slot made: `local`. The end of the slot's task before: `gap`, without the waits for a
 * processor. The message with the task: `handoff`. */
static void slots_look(struct measuring *m)
{
    const struct mr_whatif_job *j = m->job;
    const struct mr_whatif_task *before = NULL;
    qsort_r(m->order, m->count, sizeof *m->order, by_start, j->tasks);
    for (uint32_t i = 0; i < m->count; i++) {
        const struct mr_whatif_task *t = &j->tasks[m->order[i]];
        bool is_same = before && before->worker == t->worker && before->slot == t->slot;
        mr_time inputs = inputs_of(j, t), free = is_same ? before->finished : 0;
        mr_time could = MR_MAX(free, MR_MAX(t->received, inputs));
        before = t;
        if (!t->received || t->started < could || t->inputs) continue;
        bool is_own = free == could || has_own_input(j, t, could);
        struct samples *s = is_own ? &m->gap : inputs == could ? &m->local : &m->handoff;
        mr_duration took = t->started - could;
        if (is_own) took -= MR_MIN(took, t->delayed_ns);
        sample_add(s, (double)took, m->rows[m->order[i]]);
    }
}

/* Takes a sample from a task that waited for a value from another node. The sample is the time from
 * when the scheduler could name the value to the worker until the worker had the value. */
static void transfer_look(struct measuring *m, const struct mr_whatif_task *t)
{
    const struct mr_whatif_job *j = m->job;
    mr_time from = t->received, bytes = 0;
    for (uint32_t k = 0; t->inputs && j->node && k < t->inputs_count; k++) {
        uint32_t input = j->inputs[t->inputs_at + k];
        const struct mr_whatif_task *u = &j->tasks[input];
        if (!mr_whatif_ran(j, input)) continue;
        from = MR_MAX(from, u->accounted);
        if (j->node[u->worker] != j->node[t->worker]) bytes += u->bytes;
    }
    if (bytes && t->inputs > from)
        sample_add(&m->transfer, (double)(t->inputs - from), (double)bytes);
}

/* Takes samples of the messages with tasks. Tasks that one worker received at the same time came in
 * one message. */
static void sends_look(struct measuring *m)
{
    const struct mr_whatif_task *tasks = m->job->tasks;
    qsort_r(m->order, m->count, sizeof *m->order, by_received, m->job->tasks);
    for (uint32_t i = 0, n; i < m->count; i += n) {
        const struct mr_whatif_task *t = &tasks[m->order[i]];
        mr_time sent = t->sent;
        for (n = 1; i + n < m->count; n++) {
            const struct mr_whatif_task *u = &tasks[m->order[i + n]];
            if (u->worker != t->worker || u->received != t->received) break;
            sent = MR_MAX(sent, u->sent);
        }
        if (t->received && sent && t->received >= sent)
            sample_add(&m->send, (double)(t->received - sent), n);
        for (uint32_t k = 0; k < n; k++) {
            m->rows[m->order[i + k]] = n;
            transfer_look(m, &tasks[m->order[i + k]]);
        }
    }
}

/* Takes samples of reports: completions that the scheduler took at the same time. If all tasks of
 * the next report had ended before that time, the scheduler was busy between the two reports. Then
 * the time between them is what the scheduler needed for the tasks of the first report. */
static void reports_look(struct measuring *m)
{
    const struct mr_whatif_task *tasks = m->job->tasks;
    mr_time before = 0;
    uint32_t before_count = 0;
    qsort_r(m->order, m->count, sizeof *m->order, by_accounted, m->job->tasks);
    for (uint32_t i = 0, n; i < m->count; i += n) {
        const struct mr_whatif_task *t = &tasks[m->order[i]];
        mr_time last = t->finished;
        for (n = 1; i + n < m->count && tasks[m->order[i + n]].accounted == t->accounted; n++)
            last = MR_MAX(last, tasks[m->order[i + n]].finished);
        if (t->accounted > last) sample_add(&m->report, (double)(t->accounted - last), n);
        if (before_count >= ROWS_MANY && last < before)
            sample_add(&m->decide, (double)(t->accounted - before) / before_count, 1);
        before = t->accounted;
        before_count = n;
    }
}

void mr_whatif_costs_measure(const struct mr_whatif_job *j, struct mr_whatif_costs *out)
{
    struct measuring m = {.job = j};
    mr_time first = MR_NEVER, last = 0;
    *out = (struct mr_whatif_costs){.scale = 1,
        .share = 1,
        .decide_ns = DECIDE_NS,
        .send_ns = SEND_NS,
        .report = {.first_ns = REPORT_NS},
        .handoff = {.first_ns = HANDOFF_NS},
        .local_ns = HANDOFF_NS,
        .gap_ns = GAP_NS,
        .transfer = {TRANSFER_NS, TRANSFER_BYTE_NS}};
    m.order = mr_alloc_array(MR_MAX(j->tasks_count, 1u), sizeof *m.order);
    m.rows = mr_alloc_array(MR_MAX(j->tasks_count, 1u), sizeof *m.rows);
    for (uint32_t i = 0; i < j->tasks_count; i++) {
        const struct mr_whatif_task *t = &j->tasks[i];
        if (!mr_whatif_ran(j, i)) continue;
        m.order[m.count++] = i;
        mr_time begin = t->sent ? t->sent : t->started;
        first = MR_MIN(first, begin);
        last = MR_MAX(last, t->accounted);
    }
    if (first != MR_NEVER && first > j->submitted) out->begin_ns = first - j->submitted;
    if (j->over > last) out->end_ns = j->over - last;
    sends_look(&m);
    slots_look(&m);
    reports_look(&m);
    if (m.gap.count) out->gap_ns = trimmed_mean(&m.gap);
    if (m.local.count) out->local_ns = quantile(m.local.p, m.local.count, 0.5);
    if (m.send.count) out->send_ns = line_through(&m.send, 0.2, SEND_NS).first_ns;
    /* Most of the time of a message is that of waking its receiver. */
    if (m.handoff.count) out->handoff = line_of(&m.handoff, 0.5, out->send_ns);
    if (!m.local.count) out->local_ns = out->handoff.first_ns;
    /* Completions wait in the worker for more of them, for up to milliseconds, as the replay
     * repeats. Only the shortest samples are without this wait. */
    if (m.report.count) out->report = line_of(&m.report, 0.05, REPORT_NS);
    if (m.decide.count >= SAMPLES_MIN) out->decide_ns = quantile(m.decide.p, m.decide.count, 0.25);
    if (m.transfer.count) out->transfer = line_of(&m.transfer, 0.5, TRANSFER_NS);
    out->learned_ns = out->local_ns;
    out->local_samples = m.local.count;
    out->gap_samples = m.gap.count;
    out->handoff_samples = m.handoff.count;
    out->send_samples = m.send.count;
    out->report_samples = m.report.count;
    out->decide_samples = m.decide.count;
    out->transfer_samples = m.transfer.count;
    mr_release(m.local.p);
    mr_release(m.gap.p);
    mr_release(m.handoff.p);
    mr_release(m.send.p);
    mr_release(m.report.p);
    mr_release(m.decide.p);
    mr_release(m.transfer.p);
    mr_release(m.order);
    mr_release(m.rows);
}
