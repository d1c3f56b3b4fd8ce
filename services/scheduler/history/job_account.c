/* The spans of all jobs in the window go through one account, in the order in which the scheduler
 * accounted them, together with the events of workers and the ends of jobs. */
#include "services/scheduler/history/job_account.h"

#include "account/share.h"
#include "base/alloc.h"
#include "base/limits.h"
#include "base/unconst.h"
#include "services/scheduler/history/cluster_past.h"
#include "services/scheduler/history/task_feed.h"

#include <stdlib.h>
#include <string.h>

#define RECENT_MIN (1u << 16)
#define RECENT_MAX (1u << 20)
/* The end of a job is a reading of the wall clock. The times of its spans are converted from the
 * monotonic clock. A job is taken as over this much later, so that all of its spans come before. */
#define OVER_DELAY MR_MS
/* Clients are told of a job's end some time after the end. The event that says when is searched in
 * this much time after the end. */
#define TOLD_MAX (600 * MR_SECOND)
/* An account of more spans is read by two threads. The account of fewer spans takes about 20 ms
 * or less. */
#define SPANS_ALONE (1u << 17)

/* Tasks between the one whose memory is loaded and the present one: about a microsecond. */
#define AHEAD 12u

struct worker {
    uint32_t *lanes; /* numbers of the slots */
    uint32_t lanes_count, slots, processors;
    bool is_known; /* an event has told of the worker */
    bool is_present;
    uint64_t incarnation;
    uint64_t doubted; /* when a scheduler began that the worker has not joined; 0: none */
};

struct slot {
    uint32_t worker, slot;
};

struct reading {
    struct mr_job_account *out;
    const struct mr_job_account_ask *ask;
    struct mr_account *account;
    struct mr_cluster_past past;
    uint32_t target; /* number of the job; MR_ACCOUNT_NONE: the account is of more than one */
    struct mr_account_share share;
    bool *is_own; /* what the share lends */
    struct worker *workers;
    uint32_t workers_room, lanes;
    struct slot *slots; /* by the number of the lane; only if the pieces are wanted */
    uint32_t slots_room;
    uint32_t next_event, next_over;
    uint32_t *overs; /* numbers of the jobs that are over, by the time of their end */
    uint32_t overs_count;
    uint64_t *white; /* by operator: idle time of slots that waited for a task of the operator */
    uint32_t white_room;
    /* by the number that the feed gave to the worker: the number of its name in past.workers */
    uint32_t *worker_numbers;
    uint32_t worker_numbers_count, worker_numbers_room;
};

/* ---- operators ------------------------------------------------------------------------------- */

static void white_add(struct reading *r, uint32_t op, uint64_t ns)
{
    if (op >= r->white_room) {
        uint32_t more = MR_MAX(op + 1, MR_MAX(16u, r->white_room * 2));
        r->white = mr_grow(r->white, r->white_room * sizeof *r->white, more * sizeof *r->white);
        r->white_room = more;
    }
    r->white[op] += ns;
}

static int by_wall(const void *a, const void *b)
{
    const struct mr_job_account_op *x = a, *y = b;
    return x->wall_ns > y->wall_ns ? -1 : x->wall_ns < y->wall_ns;
}

/* Gives the operators to the account, and renumbers those of the critical path. */
static void ops_finish(
    struct reading *r, const struct mr_op_table *table, const struct mr_trace_names *names)
{
    struct mr_job_account *out = r->out;
    uint32_t count = MR_MAX(table->room, r->white_room);
    uint32_t *number = mr_alloc_array(MR_MAX(count, 1u), sizeof *number);
    memset(number, 0xff, count * sizeof *number); /* MR_ACCOUNT_NONE: an operator of other jobs */
    out->ops = mr_alloc_array(MR_MAX(count, 1u), sizeof *out->ops);
    for (uint32_t i = 0; i < count; i++) {
        struct mr_job_account_op *o = &out->ops[out->ops_count];
        uint64_t white = i < r->white_room ? r->white[i] : 0;
        if (!mr_op_table_get(table, i, o) && !white) continue;
        o->white_ns = white;
        o->name = names->names[i];
        out->ops_count++;
    }
    qsort(out->ops, out->ops_count, sizeof *out->ops, by_wall);
    for (uint32_t i = 0; i < out->ops_count; i++) {
        struct mr_str name = out->ops[i].name;
        for (uint32_t k = 0; k < count && k < names->count; k++)
            if (names->names[k].p == name.p) number[k] = i;
        out->ops[i].name = mr_str_of(mr_copy(name.p, MR_MAX(name.n, (size_t)1)), name.n);
    }
    for (uint32_t i = 0; i < out->steps_count; i++) {
        uint32_t *op = &out->steps[i].op;
        *op = *op < count ? number[*op] : MR_ACCOUNT_NONE;
    }
    mr_release(number);
}

/* ---- slots ----------------------------------------------------------------------------------- */

static struct worker *worker_of(struct reading *r, uint32_t number)
{
    if (number >= r->workers_room) {
        uint32_t more = MR_MAX(number + 1, MR_MAX(16u, r->workers_room * 2));
        r->workers =
            mr_grow(r->workers, r->workers_room * sizeof *r->workers, more * sizeof *r->workers);
        r->workers_room = more;
    }
    return &r->workers[number];
}

/* Notes the slot of the next lane. */
static void slot_note(struct reading *r, struct slot slot)
{
    if (!r->ask->on_piece) return;
    if (r->lanes == r->slots_room) {
        uint32_t more = MR_MAX(64u, r->slots_room * 2);
        r->slots = mr_grow(r->slots, r->slots_room * sizeof slot, more * sizeof slot);
        r->slots_room = more;
    }
    r->slots[r->lanes] = slot;
}

static void lanes_make(struct reading *r, struct worker *w, uint32_t slots)
{
    if (slots <= w->lanes_count) return;
    w->lanes =
        mr_grow(w->lanes, w->lanes_count * sizeof *w->lanes, (size_t)slots * sizeof *w->lanes);
    while (w->lanes_count < slots) {
        slot_note(r, (struct slot){(uint32_t)(w - r->workers), w->lanes_count});
        w->lanes[w->lanes_count++] = r->lanes++;
    }
}

static void worker_joins(
    struct reading *r, struct worker *w, uint32_t slots, uint64_t began, uint64_t at)
{
    lanes_make(r, w, slots);
    w->is_present = true;
    w->slots = slots;
    for (uint32_t i = 0; i < slots; i++)
        mr_account_lane(r->account, w->lanes[i], began ? began : at, at);
}

static void processors_note(struct reading *r, const struct worker *w)
{
    r->out->processors = MR_MAX(r->out->processors, w->processors);
}

static void worker_goes(struct reading *r, struct worker *w, uint64_t at)
{
    if (!w->is_present) return;
    w->is_present = false;
    if (at > r->out->from_ns) processors_note(r, w);
    for (uint32_t i = 0; i < w->slots; i++)
        mr_account_lane_gone(r->account, w->lanes[i], at);
}

static void worker_event(struct reading *r, const struct mr_past_worker_event *e)
{
    if (e->kind == MR_TRACE_EVENT_BEGAN) {
        for (uint32_t i = 0; i < r->workers_room; i++)
            if (r->workers[i].is_present) r->workers[i].doubted = e->at;
        return;
    }
    if (e->kind == MR_TRACE_EVENT_PAUSED && !e->incarnation) {
        mr_account_pause(r->account, MR_ACCOUNT_NONE, e->since, e->at);
        return;
    }
    struct worker *w = worker_of(r, e->worker);
    bool is_same = w->is_present && w->incarnation == e->incarnation;
    if (e->kind == MR_TRACE_EVENT_PAUSED) {
        if (is_same) lanes_make(r, w, w->slots + MR_LONG_TASKS_MAX);
        for (uint32_t i = 0; is_same && i < w->slots + MR_LONG_TASKS_MAX; i++)
            mr_account_pause(r->account, w->lanes[i], e->since, e->at);
        return;
    }
    w->is_known = true;
    if (e->kind == MR_TRACE_EVENT_GONE) {
        if (is_same) worker_goes(r, w, e->at);
        return;
    }
    if (is_same && w->doubted) w->doubted = 0;
    if (is_same) return; /* the worker has joined a new scheduler, or the event is a copy */
    worker_goes(r, w, w->doubted ? w->doubted : e->at);
    w->doubted = 0;
    w->incarnation = e->incarnation;
    w->processors = e->processors;
    worker_joins(r, w, e->slots, e->since, e->at);
}

/* Sets the lane of a task of the worker `number`. A slot that no event has told of exists from the
 * beginning of the account on. Executors with numbers above those of the slots run long-running
 * tasks. */
static void lane_find(struct reading *r, uint32_t number, uint32_t slot, struct mr_account_task *t)
{
    struct worker *w = worker_of(r, number);
    slot = MR_MIN(slot, MR_SLOTS_MAX + MR_LONG_TASKS_MAX - 1);
    if (!w->is_known) {
        uint32_t had = w->slots;
        lanes_make(r, w, slot + 1);
        w->is_present = true;
        w->slots = MR_MAX(had, slot + 1);
        for (uint32_t i = had; i < w->slots; i++)
            mr_account_lane(r->account, w->lanes[i], r->out->from_ns, r->out->from_ns);
    }
    lanes_make(r, w, slot + 1);
    t->lane = w->lanes[slot];
    t->is_beside = slot >= w->slots;
}

/* Tells the account what happened until `t`. */
static void events_until(struct reading *r, uint64_t t)
{
    const struct mr_cluster_past *p = &r->past;
    for (; r->next_event < p->events_count && p->events[r->next_event].at <= t; r->next_event++)
        worker_event(r, &p->events[r->next_event]);
    for (; r->next_over < r->overs_count; r->next_over++) {
        uint32_t job = r->overs[r->next_over];
        const struct mr_past_job *j = &p->jobs[job];
        if (j->told + OVER_DELAY > t) return;
        mr_account_job_over(r->account, job, j->over, j->told);
    }
}

/* ---- the account ----------------------------------------------------------------------------- */

static void on_piece(void *ctx, const struct mr_account_piece *p)
{
    struct reading *r = ctx;
    bool is_own = mr_account_share_add(&r->share, p);
    if (r->ask->on_piece)
        r->ask->on_piece(r->ask->ctx, r->past.workers.names[r->slots[p->lane].worker],
            r->slots[p->lane].slot, p);
    if (!mr_account_class_is_busy(p->class) && is_own && p->op != MR_ACCOUNT_NONE)
        white_add(r, p->op, p->to - p->from);
}

/* Takes the critical path, of which the last segments are kept if there are too many. */
static void on_path(void *ctx, const struct mr_account_segment *segments, uint32_t count)
{
    struct reading *r = ctx;
    struct mr_job_account *out = r->out;
    uint32_t kept = MR_MIN(count, r->ask->steps_max);
    out->steps = mr_alloc_array(MR_MAX(kept, 1u), sizeof *out->steps);
    out->steps_count = kept;
    out->is_path_cut = kept < count;
    for (uint32_t i = 0; i < count; i++) { /* the latest segment comes first */
        const struct mr_account_segment *s = &segments[i];
        out->path.ns[s->class] += s->to - s->from;
        if (s->class == MR_ACCOUNT_UNKNOWN) out->is_path_cut = true;
        if (i >= kept) continue;
        out->steps[kept - 1 - i] = (struct mr_job_account_step){.from_ns = s->from,
            .to_ns = s->to,
            .class = s->class,
            .index = s->job == r->target ? s->index : MR_ACCOUNT_NONE,
            .op = s->op};
    }
}

/* Numbers the workers that had no span before this batch. */
static void workers_add(struct reading *r, const struct mr_task_batch *b)
{
    uint32_t count = r->worker_numbers_count + b->workers_count;
    if (count > r->worker_numbers_room) {
        uint32_t more = MR_MAX(count, MR_MAX(16u, r->worker_numbers_room * 2));
        r->worker_numbers = mr_grow(r->worker_numbers,
            r->worker_numbers_room * sizeof *r->worker_numbers, more * sizeof *r->worker_numbers);
        r->worker_numbers_room = more;
    }
    for (uint32_t i = 0; i < b->workers_count; i++)
        r->worker_numbers[r->worker_numbers_count++] =
            mr_trace_names_number(&r->past.workers, b->workers[i]);
}

static void batch_account(struct reading *r, struct mr_task_batch *b)
{
    workers_add(r, b);
    for (uint32_t i = 0; i < b->count; i++) {
        struct mr_account_task *t = &b->items[i].task;
        if (i + AHEAD < b->count) mr_account_task_soon(r->account, &b->items[i + AHEAD].task);
        events_until(r, t->accounted);
        lane_find(r, r->worker_numbers[b->items[i].worker], b->items[i].slot, t);
        mr_account_task(r->account, t);
    }
}

static int by_over(const void *a, const void *b, void *ctx)
{
    const struct mr_past_job *jobs = ctx;
    uint64_t x = jobs[*(const uint32_t *)a].told, y = jobs[*(const uint32_t *)b].told;
    return x < y ? -1 : x > y;
}

static void overs_find(struct reading *r)
{
    const struct mr_cluster_past *p = &r->past;
    r->overs = mr_alloc_array(MR_MAX(p->jobs_count, 1u), sizeof *r->overs);
    for (uint32_t i = 0; i < p->jobs_count; i++)
        if (p->jobs[i].over) r->overs[r->overs_count++] = i;
    if (r->overs_count) qsort_r(r->overs, r->overs_count, sizeof *r->overs, by_over, p->jobs);
}

static void on_extent(void *ctx, const struct mr_trace_span *s)
{
    struct mr_past_job *j = ctx;
    uint64_t begin = s->ready ? s->ready : s->sent ? s->sent : s->started;
    if (begin && (!j->submitted || begin < j->submitted)) j->submitted = begin;
    j->over = j->told = MR_MAX(j->over, s->accounted);
}

/* Finds the account's own jobs. */
static int own_find(struct reading *r)
{
    const struct mr_job_account_ask *ask = r->ask;
    bool is_any = !ask->job.v && !ask->name_space.n;
    uint32_t space = is_any ? 0 : mr_trace_names_number(&r->past.spaces, ask->name_space);
    r->target = MR_ACCOUNT_NONE;
    if (is_any) return MR_OK;
    r->is_own = mr_alloc_array(MR_MAX(r->past.jobs_count, 1u), sizeof *r->is_own);
    for (uint32_t i = 0; i < r->past.jobs_count; i++) {
        const struct mr_past_job *j = &r->past.jobs[i];
        r->is_own[i] = ask->job.v ? j->id.v == ask->job.v : j->name_space == space;
        is_any = is_any || r->is_own[i];
        if (ask->job.v && r->is_own[i]) r->target = i;
    }
    r->share.is_own = r->is_own;
    r->share.jobs_count = r->past.jobs_count;
    return is_any ? MR_OK : MR_ENOENT;
}

/* Determines the window. A job whose events are not kept any more lasts from its first span to its
 * last one. */
static int window_find(
    struct reading *r, const struct mr_trace_source *source, const struct mr_trace_view *view)
{
    const struct mr_job_account_ask *ask = r->ask;
    struct mr_job_account *out = r->out;
    struct mr_past_job none = {0}, last = {0}, *j = &none;
    if (ask->job.v) {
        struct mr_trace_tally tally;
        j = mr_cluster_past_job(&r->past, ask->job);
        if (!j->submitted) mr_trace_read(source, view, NULL, on_extent, j, &tally);
        if (!j->submitted) return MR_ENOENT;
        if (!j->told) j->over = j->told = ask->over_ns;
        if (!j->told && !ask->now_ns) mr_trace_read(source, view, NULL, on_extent, &last, &tally);
        out->accepted_ns = j->accepted;
    }
    out->is_over = j->over != 0;
    out->from_ns = ask->from_ns ? ask->from_ns : j->submitted;
    out->until_ns = ask->until_ns ? ask->until_ns
                    : j->told     ? j->told
                                  : MR_MAX(ask->now_ns, last.told);
    out->until_ns = MR_MAX(out->until_ns, out->from_ns + 1);
    mr_cluster_past_select(&r->past, out->from_ns, out->until_ns);
    return own_find(r);
}

static void account_run(
    struct reading *r, const struct mr_trace_source *source, const struct mr_trace_view *view)
{
    struct mr_job_account *out = r->out;
    uint64_t recent = view->spans;
    const struct mr_account_config config = {.from = out->from_ns,
        .until = out->until_ns,
        .recent_max = (uint32_t)MR_MIN(MR_MAX(recent, RECENT_MIN), RECENT_MAX),
        .sink = on_piece,
        .path = r->target == MR_ACCOUNT_NONE ? NULL : on_path,
        .path_job = r->target,
        .ctx = r};
    r->account = mr_account_open(&config);
    for (uint32_t i = 0; i < r->past.jobs_count; i++) {
        const struct mr_past_job *j = &r->past.jobs[i];
        mr_account_job(r->account, i, j->client, j->submitted, j->accepted);
    }
    overs_find(r);
    const struct mr_task_feed_config feeding = {.source = source,
        .view = view,
        .past = &r->past,
        .from = out->from_ns,
        .target = r->target,
        .share = &r->share,
        .alone_max = r->ask->spans_alone ? r->ask->spans_alone : SPANS_ALONE};
    struct mr_task_feed *f = mr_task_feed_open(&feeding);
    struct mr_task_batch *b;
    while ((b = mr_task_feed_next(f)))
        batch_account(r, b);
    events_until(r, out->until_ns + OVER_DELAY);
    for (uint32_t i = 0; i < r->workers_room; i++)
        if (r->workers[i].doubted) worker_goes(r, &r->workers[i], r->workers[i].doubted);
    for (uint32_t i = 0; i < r->workers_room; i++)
        if (r->workers[i].is_present) processors_note(r, &r->workers[i]);
    mr_account_close(&r->account);
    const struct mr_span_merge *m = mr_task_feed_merge(f);
    ops_finish(r, mr_task_feed_ops(f), mr_span_merge_ops(m));
    out->is_away = mr_span_merge_is_away(m);
    uint64_t spans = mr_span_merge_spans(m);
    if (view->spans > spans) out->not_recorded = view->spans - spans;
    mr_task_feed_close(&f);
    out->sums = r->share.sums;
    out->other_ns = r->share.other_ns;
    for (uint32_t i = 0; i < MR_ACCOUNT_CLASSES; i++)
        out->slot_ns += out->sums.ns[i];
}

int mr_job_account_read(const struct mr_trace_source *source, const struct mr_trace_view *view,
    const struct mr_job_account_ask *ask, struct mr_job_account *out)
{
    struct reading r = {.out = out, .ask = ask};
    *out = (struct mr_job_account){0};
    mr_cluster_past_init(&r.past);
    const struct mr_past_range range = {.segments = ask->segments,
        .count = ask->segments_count,
        .from = ask->from_ns,
        .until = ask->until_ns  ? ask->until_ns
                 : ask->over_ns ? ask->over_ns + TOLD_MAX
                                : UINT64_MAX};
    mr_cluster_past_read(&r.past, source, view, &range);
    int err = window_find(&r, source, view);
    if (!err) account_run(&r, source, view);
    for (uint32_t i = 0; i < r.workers_room; i++)
        mr_release(r.workers[i].lanes);
    mr_release(r.workers);
    mr_release(r.worker_numbers);
    mr_release(r.slots);
    mr_release(r.white);
    mr_release(r.overs);
    mr_release(r.is_own);
    mr_cluster_past_fini(&r.past);
    return err;
}

void mr_job_account_fini(struct mr_job_account *a)
{
    for (uint32_t i = 0; i < a->ops_count; i++)
        mr_release(mr_unconst(a->ops[i].name.p));
    mr_release(a->ops);
    mr_release(a->steps);
    *a = (struct mr_job_account){0};
}

uint64_t mr_job_account_busy(const struct mr_job_account *a)
{
    return mr_account_sums_busy(&a->sums);
}
