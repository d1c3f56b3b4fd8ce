/* A lane is a slot. Each lane is `settled` up to a time: all its time before was passed to the sink
 * in pieces, or waits in `gaps`. A gap is idle time before the job of the lane's next task was
 * submitted. A gap is divided into pieces when all jobs that were submitted before its end are
 * over. Only then it is known for which tasks those jobs waited. */
#include "account/account.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/defs.h"
#include "account/training_shares.h"

/* limit of gaps of a lane; one more is divided at once, as if the running jobs had ended */
#define GAPS_MAX 4096u
/* limit of the earlier jobs that are looked at to find a job of the same client */
#define CLIENT_LOOKS_MAX 256u

struct gap {
    mr_time from, to;
};

struct lane {
    bool is_present;
    mr_time settled;
    mr_time joined; /* from this time on the slot takes tasks; before, its worker was starting */
    /* The lane's last task. */
    uint32_t job, index, op;
    mr_time finished, accounted; /* 0: the lane has run no task */
    struct gap *gaps;
    uint32_t gaps_count, gaps_room;
};

struct job {
    struct mr_account_job_times times;
    mr_time ended;       /* when the last task's end was processed */
    mr_time over;        /* when clients could know the end; MR_NEVER: the job is not over */
    mr_time over_before; /* the latest `over` of this job and of all submitted before it */
    uint32_t number, client;
    uint32_t last; /* the task that finished last; MR_ACCOUNT_NONE: none has */
    mr_time last_finished;
    struct mr_account_chain chain; /* the job's critical path (chain.h), from its end backward */
};

struct mr_account {
    struct mr_account_config config;
    struct mr_account_recents recents;
    struct mr_account_pauses pauses;
    struct lane *lanes;
    uint32_t lanes_count;
    struct job *jobs; /* in order of submission */
    uint32_t jobs_count, jobs_room;
    uint32_t *place; /* index in `jobs` by the job's number */
    uint32_t place_count;
    uint32_t active_from;        /* the jobs before this one are over */
    uint32_t chains_from;        /* the jobs before this one need no chain any more */
    struct mr_account_chain own; /* scratch */
};

struct mr_account *mr_account_open(const struct mr_account_config *config)
{
    struct mr_account *a = mr_alloc(sizeof *a);
    a->config = *config;
    mr_account_recents_init(&a->recents, config->recent_max);
    a->own.pauses = &a->pauses;
    return a;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static inline void piece(struct mr_account *a, struct mr_account_piece p)
{
    p.from = MR_MAX(p.from, a->config.from);
    p.to = MR_MIN(p.to, a->config.until);
    if (p.from < p.to) a->config.sink(a->config.ctx, &p);
}

static void empty_piece(
    struct mr_account *a, uint32_t lane, enum mr_account_class class, mr_time from, mr_time to)
{
    piece(a, (struct mr_account_piece){
                 lane, class, from, to, MR_ACCOUNT_NONE, MR_ACCOUNT_NONE, MR_ACCOUNT_NONE});
}

/* Passes to the sink the part of a segment that lies between `from` and `to`. */
static void segment_piece(struct mr_account *a, uint32_t lane, const struct mr_account_segment *s,
    mr_time from, mr_time to)
{
    const struct lane *l = &a->lanes[lane];
    from = MR_MAX(from, s->from);
    to = MR_MIN(to, s->to);
    if (from >= to) return;
    enum mr_account_class class = s->class;
    if (class == MR_ACCOUNT_DEPENDENCY) {
        /* the times at which the kernel ran another thread are not known, only their sum */
        mr_time late = from + (to - from) / 1000 * s->late_permille;
        piece(a, (struct mr_account_piece){
                     lane, MR_ACCOUNT_PREEMPTED, from, late, s->job, s->index, s->op});
        from = late;
        /* the lane's last task had the job and operator of the segment's task, and ended after
         * that task had begun */
        bool is_alike = l->job == s->job && l->op == s->op;
        if (is_alike && l->finished >= s->from) class = MR_ACCOUNT_IMBALANCE;
    }
    piece(a, (struct mr_account_piece){lane, class, from, to, s->job, s->index, s->op});
}

/* Passes to the sink the parts of the chain's segments that lie between `from` and `to`. The
 * segments are in order from the latest to the earliest. Returns c->at, the time down to which they
 * reach, moved into the range from `from` to `to`. */
static mr_time chain_pieces(
    struct mr_account *a, uint32_t lane, const struct mr_account_chain *c, mr_time from, mr_time to)
{
    uint32_t low = 0, high = c->count; /* the first segment that begins before `to` */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (c->segments[middle].from >= to)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t i = low; i < c->count && c->segments[i].to > from; i++)
        segment_piece(a, lane, &c->segments[i], from, to);
    return MR_MAX(MR_MIN(c->at, to), from);
}

/* ---- gaps ------------------------------------------------------------------------------------ */

/* Returns the number of jobs that were submitted before `t`. */
static uint32_t jobs_before(const struct mr_account *a, mr_time t)
{
    uint32_t low = 0, high = a->jobs_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (a->jobs[middle].times.submitted < t)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the class of the time before the submission of jobs[next], in which no job was active. */
static enum mr_account_class no_job_class(const struct mr_account *a, uint32_t next)
{
    if (next == a->jobs_count) return MR_ACCOUNT_NO_WORK;
    uint32_t client = a->jobs[next].client;
    uint32_t least = next - MR_MIN(next, CLIENT_LOOKS_MAX);
    for (uint32_t i = next; i-- > least;)
        if (a->jobs[i].client == client) return MR_ACCOUNT_CLIENT;
    return MR_ACCOUNT_NO_WORK;
}

/* Divides a gap, from its end to its beginning. Of the jobs that were active at a moment, the one
 * that was submitted last determines the class of that moment. */
static void gap_divide(struct mr_account *a, uint32_t lane, mr_time from, mr_time to)
{
    while (to > from) {
        uint32_t before = jobs_before(a, to);
        mr_time active = before ? MR_MAX(a->jobs[before - 1].over_before, from) : from;
        if (active < to) { /* no job was active in the last part of the gap */
            empty_piece(a, lane, no_job_class(a, before), active, to);
            to = active;
            continue;
        }
        /* Finds the job that was submitted last among those active just before `to`. From `least`
         * to `to`, no job that was submitted after that job is active. */
        mr_time least = from;
        uint32_t at = before - 1;
        for (; a->jobs[at].over < to; at--)
            least = MR_MAX(least, a->jobs[at].over);
        const struct job *j = &a->jobs[at];
        least = MR_MAX(least, j->times.submitted);
        mr_time rest = chain_pieces(a, lane, &j->chain, least, to);
        piece(a, (struct mr_account_piece){lane, MR_ACCOUNT_DEPENDENCY, least, rest, j->number,
                     MR_ACCOUNT_NONE, MR_ACCOUNT_NONE});
        to = least;
    }
}

/* Returns the time at which the first job that is not over was submitted. MR_NEVER: all jobs are
 * over. */
static mr_time first_active(const struct mr_account *a)
{
    return a->active_from < a->jobs_count ? a->jobs[a->active_from].times.submitted : MR_NEVER;
}

static void gap_add(struct mr_account *a, uint32_t lane, mr_time from, mr_time to)
{
    struct lane *l = &a->lanes[lane];
    from = MR_MAX(from, a->config.from);
    if (from >= to) return;
    if (to <= first_active(a) || l->gaps_count == GAPS_MAX) {
        gap_divide(a, lane, from, to);
        return;
    }
    if (l->gaps_count == l->gaps_room) {
        uint32_t more = MR_MAX(4u, l->gaps_room * 2);
        l->gaps = mr_grow(l->gaps, l->gaps_room * sizeof *l->gaps, more * sizeof *l->gaps);
        l->gaps_room = more;
    }
    l->gaps[l->gaps_count++] = (struct gap){from, to};
}

/* Divides the gaps that end before the first of the active jobs was submitted. */
static void gaps_settle(struct mr_account *a)
{
    mr_time known = first_active(a);
    for (uint32_t i = 0; i < a->lanes_count; i++) {
        struct lane *l = &a->lanes[i];
        uint32_t kept = 0;
        for (uint32_t k = 0; k < l->gaps_count; k++) {
            if (l->gaps[k].to <= known)
                gap_divide(a, i, l->gaps[k].from, l->gaps[k].to);
            else
                l->gaps[kept++] = l->gaps[k];
        }
        l->gaps_count = kept;
    }
}

/* Returns the earliest time that is not divided yet: the start of a gap, or the time up to which a
 * present lane is settled. MR_NEVER: there are no gaps and no present lanes. */
static mr_time needed_from(const struct mr_account *a)
{
    mr_time t = MR_NEVER;
    for (uint32_t i = 0; i < a->lanes_count; i++) {
        const struct lane *l = &a->lanes[i];
        if (l->is_present) t = MR_MIN(t, l->settled);
        if (l->gaps_count) t = MR_MIN(t, l->gaps[0].from);
    }
    return t;
}

static void chains_drop(struct mr_account *a)
{
    mr_time needed = needed_from(a);
    while (a->chains_from < a->jobs_count && a->jobs[a->chains_from].over <= needed)
        mr_account_chain_fini(&a->jobs[a->chains_from++].chain);
}

/* ---- lanes ----------------------------------------------------------------------------------- */

static struct lane *lane_of(struct mr_account *a, uint32_t lane)
{
    if (lane >= a->lanes_count) {
        uint32_t more = MR_MAX(lane + 1, a->lanes_count * 2);
        a->lanes = mr_grow(a->lanes, a->lanes_count * sizeof *a->lanes, more * sizeof *a->lanes);
        a->lanes_count = more;
    }
    return &a->lanes[lane];
}

/* Settles the time in which the lane's worker was starting. */
static void lane_start(struct mr_account *a, uint32_t lane, mr_time to)
{
    struct lane *l = &a->lanes[lane];
    mr_time started = MR_MIN(l->joined, to);
    if (started <= l->settled) return;
    empty_piece(a, lane, MR_ACCOUNT_START_UP, l->settled, started);
    l->settled = started;
}

void mr_account_lane(struct mr_account *a, uint32_t lane, mr_time began, mr_time joined)
{
    struct lane *l = lane_of(a, lane);
    mr_assert(!l->is_present);
    began = MR_MIN(began, joined);
    if (l->settled) empty_piece(a, lane, MR_ACCOUNT_STOPPED, l->settled, began);
    l->settled = MR_MAX(MR_MAX(l->settled, began), a->config.from);
    l->joined = joined;
    l->is_present = true;
}

void mr_account_lane_gone(struct mr_account *a, uint32_t lane, mr_time at)
{
    struct lane *l = lane_of(a, lane);
    if (!l->is_present) return;
    lane_start(a, lane, at);
    gap_add(a, lane, l->settled, at);
    l->settled = at > a->config.from ? MR_MAX(l->settled, at) : 0;
    l->is_present = false;
}

void mr_account_pause(struct mr_account *a, uint32_t lane, mr_time from, mr_time until)
{
    mr_account_pauses_add(&a->pauses, lane, from, until);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static struct job *job_of(const struct mr_account *a, uint32_t number)
{
    mr_assert(number < a->place_count && a->place[number] != MR_ACCOUNT_NONE);
    return &a->jobs[a->place[number]];
}

void mr_account_job(
    struct mr_account *a, uint32_t number, uint32_t client, mr_time submitted, mr_time accepted)
{
    if (number >= a->place_count) {
        uint32_t more = MR_MAX(number + 1, a->place_count * 2);
        a->place = mr_grow(a->place, a->place_count * sizeof *a->place, more * sizeof *a->place);
        while (a->place_count < more)
            a->place[a->place_count++] = MR_ACCOUNT_NONE;
    }
    if (a->jobs_count == a->jobs_room) {
        uint32_t more = MR_MAX(16u, a->jobs_room * 2);
        a->jobs = mr_grow(a->jobs, a->jobs_room * sizeof *a->jobs, more * sizeof *a->jobs);
        a->jobs_room = more;
    }
    mr_assert(a->place[number] == MR_ACCOUNT_NONE);
    mr_assert(!a->jobs_count || a->jobs[a->jobs_count - 1].times.submitted <= submitted);
    a->place[number] = a->jobs_count;
    a->jobs[a->jobs_count++] = (struct job){.times = {submitted, accepted},
        .over = MR_NEVER,
        .over_before = MR_NEVER,
        .number = number,
        .client = client,
        .chain = {.pauses = &a->pauses, .at = MR_NEVER},
        .last = MR_ACCOUNT_NONE};
}

static const struct mr_account_recent *last_of(const struct mr_account *a, const struct job *j)
{
    if (j->last == MR_ACCOUNT_NONE) return NULL;
    return mr_account_recents_find(&a->recents, j->number, j->last);
}

/* Begins the chain of a job that is over: from its end to the start of its last task. */
static void chain_begin(struct mr_account_chain *c, const struct job *j,
    const struct mr_account_recent *last, mr_time lower)
{
    mr_account_chain_begin(c, MR_MAX(j->times.submitted, lower), j->over);
    mr_account_chain_down(c, j->ended, MR_ACCOUNT_JOURNAL, last);
    if (last) {
        mr_account_chain_down(c, last->accounted, MR_ACCOUNT_DECIDE, last);
        mr_account_chain_down(c, last->finished, MR_ACCOUNT_REPORT, last);
        mr_account_chain_down(c, last->started, MR_ACCOUNT_DEPENDENCY, last);
    } else {
        mr_account_chain_down(c, j->times.accepted, MR_ACCOUNT_DECIDE, NULL);
        mr_account_chain_down(c, j->times.submitted, MR_ACCOUNT_JOURNAL, NULL);
    }
}

static void chain_make(struct mr_account *a, struct job *j)
{
    const struct mr_account_recent *last = last_of(a, j);
    chain_begin(&j->chain, j, last, needed_from(a));
    if (last) mr_account_chain_follow(&j->chain, &a->recents, last, &j->times, 0);
}

/* Passes the critical path of the job to the callback. */
static void path_tell(struct mr_account *a, const struct job *j)
{
    const struct mr_account_recent *last = last_of(a, j);
    struct mr_account_chain c = {.pauses = &a->pauses};
    chain_begin(&c, j, last, 0);
    if (last) mr_account_chain_critical(&c, &a->recents, last, &j->times);
    a->config.path(a->config.ctx, c.segments, c.count);
    mr_account_chain_fini(&c);
}

void mr_account_job_over(struct mr_account *a, uint32_t number, mr_time at, mr_time told)
{
    struct job *j = job_of(a, number);
    if (j->over != MR_NEVER) return;
    j->ended = MR_MAX(at, j->times.submitted);
    j->over = MR_MAX(told, j->ended);
    for (uint32_t i = a->place[number]; i < a->jobs_count; i++) {
        mr_time before = i ? a->jobs[i - 1].over_before : 0;
        a->jobs[i].over_before = MR_MAX(a->jobs[i].over, before);
    }
    while (a->active_from < a->jobs_count && a->jobs[a->active_from].over != MR_NEVER)
        a->active_from++;
    chain_make(a, j);
    if (a->config.path && number == a->config.path_job) path_tell(a, j);
    gaps_settle(a);
    chains_drop(a);
}

/* ---- tasks ----------------------------------------------------------------------------------- */

/* The time in which a task ran, by class. */
struct run {
    mr_duration restore, input, late, paused, blocked, cpu, room, output;
    mr_duration training[MR_TRAINING_PARTS];
};

/* Divides the time in which the task ran. The kernel's delays are known as a sum. If the delays are
 * longer than the rest of the run, the surplus is taken from the time of the result, then from the
 * time of the inputs. */
static struct run run_of(const struct mr_account *a, const struct mr_account_task *t)
{
    struct run r = {0};
    mr_duration wall = t->finished - t->started;
    r.input = MR_MIN(t->input_ns, wall);
    r.output = MR_MIN(t->output_ns, wall - r.input);
    r.late = MR_MIN(t->late_ns, wall);
    mr_duration beside = wall - r.input - r.output;
    mr_duration within = r.late - MR_MIN(r.late, beside), of_output = MR_MIN(within, r.output);
    r.output -= of_output;
    r.input -= MR_MIN(within - of_output, r.input);
    r.room = MR_MIN(t->room_ns, r.output);
    r.blocked = wall - r.input - r.output - r.late;
    for (unsigned i = 0; t->training && i < MR_TRAINING_PARTS; i++) {
        r.training[i] = MR_MIN(mr_training_part_ns(t->training, i, wall), r.blocked);
        r.blocked -= r.training[i];
    }
    r.cpu = MR_MIN(t->cpu_ns, r.blocked);
    r.blocked -= r.cpu;
    /* a paused thread uses no processor: the pause is a part of what is left */
    if (a->pauses.count)
        r.paused = mr_account_pauses_ns(&a->pauses, t->lane, t->started, t->finished);
    r.paused = MR_MIN(r.paused, r.blocked);
    r.blocked -= r.paused;
    r.output -= r.room;
    r.restore = MR_MIN(t->restore_ns, r.input);
    r.input -= r.restore;
    return r;
}

/* A run whose parts are passed to the sink one after another. */
struct passing {
    struct mr_account *a;
    const struct mr_account_task *task;
    mr_time settled; /* no time before this is passed */
    mr_time at;      /* where the next part begins */
};

static inline void pass(struct passing *p, enum mr_account_class class, mr_duration ns)
{
    if (!ns) return;
    const struct mr_account_task *t = p->task;
    mr_time from = MR_MAX(p->at, p->settled);
    p->at += ns;
    piece(p->a, (struct mr_account_piece){t->lane, class, from, p->at, t->job, t->index, t->op});
}

/* Passes the time in which the task ran to the sink: inputs first, the result last. */
static void run_divide(struct mr_account *a, const struct mr_account_task *t, mr_time settled)
{
    const struct run r = run_of(a, t);
    struct passing p = {a, t, settled, t->started};
    pass(&p, MR_ACCOUNT_RESTORE, r.restore);
    pass(&p, MR_ACCOUNT_INPUT, r.input);
    pass(&p, MR_ACCOUNT_FEED, r.training[MR_TRAINING_FEED]);
    pass(&p, MR_ACCOUNT_PULL, r.training[MR_TRAINING_PULL]);
    pass(&p, MR_ACCOUNT_COMPUTE, r.cpu);
    pass(&p, MR_ACCOUNT_PUSH, r.training[MR_TRAINING_PUSH]);
    pass(&p, MR_ACCOUNT_WAIT, r.training[MR_TRAINING_WAIT]);
    pass(&p, MR_ACCOUNT_PREEMPTED, r.late);
    pass(&p, MR_ACCOUNT_STOPPED, r.paused);
    pass(&p, MR_ACCOUNT_BLOCKED, r.blocked);
    pass(&p, MR_ACCOUNT_MEMORY, r.room);
    pass(&p, MR_ACCOUNT_OUTPUT, r.output);
}

/* Divides the time in which the lane waited for the task into pieces and a gap. */
static void wait_divide(struct mr_account *a, uint32_t lane, const struct mr_account_recent *x)
{
    struct lane *l = &a->lanes[lane];
    const struct job *j = job_of(a, x->job);
    lane_start(a, lane, x->started);
    if (l->settled >= x->started) return;
    mr_account_chain_begin(&a->own, l->settled, x->started);
    mr_account_chain_follow(&a->own, &a->recents, x, &j->times, l->accounted);
    (void)chain_pieces(a, lane, &a->own, l->settled, x->started);
    gap_add(a, lane, l->settled, a->own.at);
}

/* Divides the time of a lane that exists only for this task. */
static void beside_divide(
    struct mr_account *a, const struct mr_account_task *t, const struct mr_account_recent *x)
{
    (void)lane_of(a, t->lane);
    mr_time ready = x->ready ? MR_MIN(x->ready, x->started) : x->started;
    mr_account_chain_begin(&a->own, ready, x->started);
    mr_account_chain_follow(&a->own, &a->recents, x, &job_of(a, x->job)->times, 0);
    mr_time known = chain_pieces(a, t->lane, &a->own, ready, x->started);
    empty_piece(a, t->lane, MR_ACCOUNT_UNKNOWN, ready, known);
    run_divide(a, t, 0);
}

void mr_account_task(struct mr_account *a, const struct mr_account_task *t)
{
    struct job *j = job_of(a, t->job);
    struct lane *l = t->lane == MR_ACCOUNT_NONE || t->is_beside ? NULL : lane_of(a, t->lane);
    mr_duration wall = t->finished > t->started ? t->finished - t->started : 0;
    if (!t->started || (l && !l->is_present)) return;
    /* the share of the delays is 0 for most tasks: no division then */
    mr_duration late = MR_MIN(t->late_ns, wall);
    const struct mr_account_recent x = {.job = t->job,
        .index = t->index,
        .last_input = t->last_input,
        .op = t->op,
        .lane = t->lane,
        .hold = t->hold,
        .late_permille = (uint16_t)(late ? late / (wall / 1000 + 1) : 0),
        .delayed_ns = t->delayed_ns,
        .ready = t->ready,
        .sent = t->sent,
        .received = t->received,
        .inputs = t->inputs,
        .started = t->started,
        .finished = MR_MAX(t->finished, t->started),
        .accounted = t->accounted,
        .lane_free = l ? l->finished : 0,
        .before_job = l ? l->job : 0,
        .before_index = l ? l->index : 0};
    if (l && x.finished > l->settled) {
        wait_divide(a, t->lane, &x);
        run_divide(a, t, l->settled);
        l->settled = x.finished;
        l->job = x.job;
        l->index = x.index;
        l->op = x.op;
        l->finished = x.finished;
        l->accounted = x.accounted;
    }
    if (t->is_beside && t->lane != MR_ACCOUNT_NONE && wall) beside_divide(a, t, &x);
    mr_account_recents_put(&a->recents, &x);
    if (j->last == MR_ACCOUNT_NONE || x.finished >= j->last_finished) {
        j->last = x.index;
        j->last_finished = x.finished;
    }
}

void mr_account_task_soon(const struct mr_account *a, const struct mr_account_task *t)
{
    mr_account_recents_prefetch(&a->recents, t->job, t->index);
}

/* ---- the end --------------------------------------------------------------------------------- */

void mr_account_close(struct mr_account **ap)
{
    struct mr_account *a = *ap;
    *ap = NULL;
    if (!a) return;
    mr_time until = a->config.until;
    for (uint32_t i = 0; i < a->lanes_count; i++) {
        struct lane *l = &a->lanes[i];
        if (!l->is_present && l->settled) empty_piece(a, i, MR_ACCOUNT_STOPPED, l->settled, until);
        if (!l->is_present) continue;
        lane_start(a, i, until);
        gap_add(a, i, l->settled, until);
        l->settled = MR_MAX(l->settled, until);
    }
    for (uint32_t i = 0; i < a->jobs_count; i++)
        mr_account_job_over(a, a->jobs[i].number, until, until);
    gaps_settle(a);
    for (uint32_t i = 0; i < a->jobs_count; i++)
        mr_account_chain_fini(&a->jobs[i].chain);
    for (uint32_t i = 0; i < a->lanes_count; i++) {
        mr_assert(!a->lanes[i].gaps_count);
        mr_release(a->lanes[i].gaps);
    }
    mr_account_chain_fini(&a->own);
    mr_account_recents_fini(&a->recents);
    mr_account_pauses_fini(&a->pauses);
    mr_release(a->lanes);
    mr_release(a->jobs);
    mr_release(a->place);
    mr_release(a);
}

void mr_account_sum(void *sums, const struct mr_account_piece *p)
{
    struct mr_account_sums *s = sums;
    s->ns[p->class] += p->to - p->from;
}

uint64_t mr_account_sums_busy(const struct mr_account_sums *s)
{
    uint64_t ns = 0;
    for (uint32_t i = 0; i < MR_ACCOUNT_CLASSES; i++)
        if (mr_account_class_is_busy((enum mr_account_class)i)) ns += s->ns[i];
    return ns;
}
