/* Sets the cluster up, and handles its events in the order of their times. Divides the time of its
 * slots into classes with the code that real clusters use (account/account.h). */
#include "virtual/whatif/internal.h"

#include "base/alloc.h"

#include <math.h>

#define BEGIN                                                                                      \
    (2 * MR_SECOND) /* virtual time of the submission, when all workers have joined                \
                     */
#define TASKS_MAX (4u << 20)
#define IDLE_MAX (100000 * MR_SECOND) /* a replay that is idle for so long has no end */
#define CALIBRATIONS_MAX 6
#define SCALE_MIN 0.33
#define SCALE_MAX 3.0
/* Both as shares of the recorded time. If even the best replay is farther off than FAR_OFF, or the
 * factor removes less than half of the difference, other things than the costs are the reason. Then
 * the costs stay as measured. */
#define FAR_OFF 0.05
#define CLOSE_ENOUGH 0.01

static const struct {
    const char *name;
    uint32_t bits;
} frees[] = {{"scheduler", MR_WHATIF_FREE_SCHEDULER}, {"decide", MR_WHATIF_FREE_DECIDE},
    {"report", MR_WHATIF_FREE_REPORT}, {"send", MR_WHATIF_FREE_SEND},
    {"handoff", MR_WHATIF_FREE_HANDOFF}, {"transfer", MR_WHATIF_FREE_TRANSFER},
    {"journal", MR_WHATIF_FREE_JOURNAL}, {"input", MR_WHATIF_FREE_INPUT},
    {"output", MR_WHATIF_FREE_OUTPUT}, {"preempted", MR_WHATIF_FREE_PREEMPTED}};

uint32_t mr_whatif_free_of(struct mr_str name)
{
    for (size_t i = 0; i < MR_ARRAY_LEN(frees); i++)
        if (mr_str_eq(name, mr_str(frees[i].name))) return frees[i].bits;
    return 0;
}

const char *mr_whatif_free_names(void)
{
    return "scheduler, decide, report, send, handoff, transfer, journal, input, output or preempted";
}

/* ---- the change ------------------------------------------------------------------------------ */

/* Returns the processors of each node in the replay. 0: each thread has one of its own. */
static uint32_t processors_of(const struct mr_whatif_job *j, const struct mr_whatif_change *change)
{
    if (change->free & MR_WHATIF_FREE_PREEMPTED) return 0;
    return change->processors ? change->processors : j->processors;
}

/* Returns whether the recorded threads shared processors, so that the replay repeats their waits
 * for one. Otherwise other programs have caused the waits, and a task's wait is part of its
 * duration. */
static bool has_shared(const struct mr_whatif_job *j)
{
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < j->workers_count; i++)
        nodes += j->node ? j->node[i] == i : !i;
    /* executors, the thread of each worker, and the scheduler's thread */
    uint32_t threads = mr_whatif_slots(j) + j->workers_count + 1;
    return j->processors && threads > j->processors * nodes;
}

/* Changes the duration of a task. The operator's speed does not change the time for inputs, for the
 * result, and of waiting for a processor. `no_late`: this wait becomes 0. */
static void task_change(
    const struct mr_whatif_change *change, bool no_late, struct mr_whatif_task *t)
{
    mr_duration all = t->finished - t->started;
    mr_duration fixed = MR_MIN(t->input_ns + t->output_ns + t->late_ns, all);
    double speed = change->op_speed && change->op_speed[t->op] > 0 ? change->op_speed[t->op] : 1;
    mr_duration own = (mr_duration)((double)(all - fixed) / speed);
    t->cpu_ns = (mr_duration)((double)t->cpu_ns / speed);
    if (change->free & MR_WHATIF_FREE_INPUT) t->input_ns = t->restore_ns = 0;
    if (change->free & MR_WHATIF_FREE_OUTPUT) t->output_ns = t->room_ns = 0;
    if (no_late) t->late_ns = 0;
    fixed = MR_MIN(t->input_ns + t->output_ns + t->late_ns, fixed);
    t->finished = t->started + MR_MAX(own + fixed, 1u);
}

static void costs_change(struct mr_whatif_costs *k, uint32_t free)
{
    static const struct mr_whatif_line none;
    if (free & MR_WHATIF_FREE_DECIDE) {
        k->decide_ns = 0;
        k->begin_ns = 0;
    }
    if (free & MR_WHATIF_FREE_REPORT) k->report = none;
    if (free & MR_WHATIF_FREE_SEND) k->send_ns = 0;
    if (free & MR_WHATIF_FREE_HANDOFF) {
        k->handoff = none;
        k->local_ns = k->gap_ns = 0;
    }
    if (free & MR_WHATIF_FREE_TRANSFER) k->transfer = none;
    if (free & MR_WHATIF_FREE_JOURNAL) k->end_ns = 0;
}

/* Returns the length of the longest chain of tasks. The inputs of a node come before the node. */
static uint64_t chain_of(const struct mr_whatif_cluster *c)
{
    uint64_t longest = 0;
    const struct mr_graph *g = c->graph;
    uint64_t *until = mr_alloc_array(g->nodes_count, sizeof *until);
    for (uint32_t i = 0; i < g->nodes_count; i++) {
        const struct mr_whatif_task *t = &c->tasks[c->task_of[i]];
        for (uint32_t k = g->input_at[i]; k < g->input_at[i + 1]; k++)
            until[i] = MR_MAX(until[i], until[g->inputs[k]]);
        until[i] += t->finished - t->started;
        longest = MR_MAX(longest, until[i]);
    }
    mr_release(until);
    return longest;
}

/* ---- the account ----------------------------------------------------------------------------- */

void mr_whatif__spans_take(struct mr_whatif_cluster *c, const struct mr_buf *spans)
{
    const struct mr_sched_span *s = (const void *)spans->p;
    for (size_t i = 0; i < spans->n / sizeof *s; i++) {
        const struct mr_sched_span *p = &s[i];
        uint32_t task = c->task_of[p->index];
        const struct mr_whatif_worker *w = &c->workers[c->worker_at[p->worker]];
        const struct mr_account_task t = {.job = 0,
            .index = p->index,
            .last_input = p->last_input,
            .op = c->tasks[task].op,
            .lane = w->lane + MR_MIN(p->slot, w->slots - 1),
            .ready = p->ready,
            .sent = p->sent,
            .received = MR_MAX(c->received[task], p->sent),
            .inputs = p->inputs,
            .started = p->started,
            .finished = p->finished,
            .accounted = p->accounted,
            .cpu_ns = p->cpu_ns,
            .input_ns = p->input_ns,
            .restore_ns = p->restore_ns,
            .output_ns = p->output_ns,
            .late_ns = p->late_ns,
            .room_ns = p->room_ns,
            .delayed_ns = p->delayed_ns};
        if (p->outcome && p->outcome != MR_OUTCOME_USED_UP) continue;
        c->out->tasks++;
        c->accounted = MR_MAX(c->accounted, p->accounted);
        mr_buf_add(&c->account_tasks, &t, sizeof t);
    }
}

static void on_path(void *ctx, const struct mr_account_segment *segments, uint32_t count)
{
    struct mr_whatif_result *out = ctx;
    for (uint32_t i = 0; i < count; i++)
        out->path.ns[segments[i].class] += segments[i].to - segments[i].from;
}

static void on_piece(void *ctx, const struct mr_account_piece *piece)
{
    struct mr_whatif_result *out = ctx;
    mr_account_sum(&out->sums, piece);
}

static void account_make(struct mr_whatif_cluster *c)
{
    const struct mr_account_task *tasks = (const void *)c->account_tasks.p;
    mr_time until = c->accounted + c->costs.end_ns;
    const struct mr_account_config config = {.from = BEGIN,
        .until = MR_MAX(until, BEGIN + 1),
        .recent_max = MR_MAX(1024u, c->job->tasks_count),
        .sink = on_piece,
        .path = on_path,
        .path_job = 0,
        .ctx = c->out};
    struct mr_account *a = mr_account_open(&config);
    for (uint32_t i = 0; i < c->out->slots; i++)
        mr_account_lane(a, i, BEGIN, BEGIN);
    mr_account_job(a, 0, 0, BEGIN, 0);
    for (size_t i = 0; i < c->account_tasks.n / sizeof *tasks; i++)
        mr_account_task(a, &tasks[i]);
    mr_account_job_over(a, 0, c->accounted, config.until);
    mr_account_close(&a);
    c->out->wall_ns = config.until - BEGIN;
}

/* ---- a replay -------------------------------------------------------------------------------- */

static void handle(struct mr_whatif_cluster *c, struct mr_virtual_event *ev)
{
    switch ((enum mr_whatif_event)ev->kind) {
    case MR_WHATIF_UP:
        mr_whatif__scheduler_event(c, ev); /* keeps the message until the scheduler's next turn */
        return;
    case MR_WHATIF_SUBMIT:
    case MR_WHATIF_TURN:
    case MR_WHATIF_DECIDED:
    case MR_WHATIF_ACK: mr_whatif__scheduler_event(c, ev); break;
    case MR_WHATIF_PROCESSED: mr_whatif__processors_event(c, ev); break;
    case MR_WHATIF_DOWN:
    case MR_WHATIF_WORKED:
    case MR_WHATIF_WAKE:
    case MR_WHATIF_FETCHED: mr_whatif__worker_event(c, ev); break;
    case MR_WHATIF_EXECUTE: mr_whatif__execute(c, &c->workers[ev->a], ev->b); break;
    }
    mr_virtual_message_free(&ev->msg);
}

static void run(struct mr_whatif_cluster *c)
{
    struct mr_virtual_event ev;
    mr_duration most = BEGIN + c->costs.begin_ns + IDLE_MAX;
    for (uint32_t i = 0; i < c->job->tasks_count; i++)
        if (mr_whatif_ran(c->job, i)) most += c->tasks[i].finished - c->tasks[i].started;
    while (!c->over && !c->err && c->now < most && mr_virtual_pop(&c->queue, &ev)) {
        c->now = ev.at;
        handle(c, &ev);
    }
    if (!c->over && !c->err) c->err = mr_fail(c->error, MR_EUNKNOWN, "the replay has no end");
}

/* Sets c->ops. Their costs are the mean run times, which the workers of a real cluster also know
 * once they have run the operators. */
static void ops_make(struct mr_whatif_cluster *c)
{
    const struct mr_whatif_job *j = c->job;
    uint64_t *sum = mr_alloc_array(2 * (size_t)MR_MAX(j->ops_count, 1u), sizeof *sum);
    c->ops = mr_alloc_array(MR_MAX(j->ops_count, 1u), sizeof *c->ops);
    for (uint32_t i = 0; i < j->tasks_count; i++) {
        const struct mr_whatif_task *t = &c->tasks[i];
        if (!mr_whatif_ran(j, i)) continue;
        sum[2 * t->op] += t->finished - t->started;
        sum[2 * t->op + 1]++;
    }
    for (uint32_t i = 0; i < j->ops_count; i++)
        c->ops[i] = (struct mr_worker_op){
            .name = j->ops[i], .cost_ns = sum[2 * i + 1] ? sum[2 * i] / sum[2 * i + 1] : 0};
    mr_release(sum);
}

static void begin(struct mr_whatif_cluster *c)
{
    const struct mr_whatif_job *j = c->job;
    uint32_t lane = 0, slots = c->out->slots;
    c->workers_count = MR_MIN(j->workers_count, slots);
    c->workers = mr_alloc_array(c->workers_count, sizeof *c->workers);
    c->processors = mr_alloc_array(c->workers_count, sizeof *c->processors);
    for (uint32_t i = 0; i < c->workers_count; i++)
        c->processors[i] = (struct mr_whatif_processors){
            .count = processors_of(j, c->change) * c->costs.share, .planned = MR_NEVER};
    c->worker_at = mr_alloc_array(c->workers_count + 4, sizeof *c->worker_at);
    c->received = mr_alloc_array(j->tasks_count, sizeof *c->received);
    mr_buf_init(&c->account_tasks, (size_t)1 << 34);
    ops_make(c);
    mr_whatif__scheduler_begin(c);
    for (uint32_t i = 0; i < c->workers_count; i++) {
        c->workers[i].slots = slots / c->workers_count + (i < slots % c->workers_count);
        c->workers[i].lane = lane;
        lane += c->workers[i].slots;
        mr_whatif__worker_begin(c, i);
    }
    mr_virtual_push(
        &c->queue, BEGIN + c->costs.begin_ns, (struct mr_virtual_event){.kind = MR_WHATIF_SUBMIT});
}

static void finish(struct mr_whatif_cluster *c)
{
    mr_virtual_queue_fini(&c->queue);
    for (uint32_t i = 0; i < c->workers_count; i++)
        mr_whatif__worker_fini(&c->workers[i]);
    mr_whatif__scheduler_fini(c);
    mr_graph_free(&c->graph);
    mr_buf_fini(&c->account_tasks);
    for (uint32_t i = 0; i < c->workers_count; i++)
        mr_release(c->processors[i].uses);
    mr_release(c->processors);
    mr_release(c->workers);
    mr_release(c->worker_at);
    mr_release(c->received);
    mr_release(c->ops);
    mr_release(c->task_of);
    mr_release(c->tasks);
}

int mr_whatif_replay(const struct mr_whatif_job *job, const struct mr_whatif_costs *costs,
    const struct mr_whatif_change *change, struct mr_whatif_result *out, struct mr_error *e)
{
    struct mr_whatif_cluster c = {
        .job = job, .costs = *costs, .change = change, .now = MR_SECOND, .error = e, .out = out};
    uint32_t slots = change->slots ? change->slots : mr_whatif_slots(job);
    if (job->tasks_count > TASKS_MAX)
        return mr_fail(e, MR_ELIMIT, "the job has more than %u tasks", TASKS_MAX);
    if (slots > (uint64_t)job->workers_count * MR_SLOTS_MAX)
        return mr_fail(e, MR_ELIMIT, "more than %u slots for each of %u workers", MR_SLOTS_MAX,
            job->workers_count);
    *out = (struct mr_whatif_result){.slots = slots};
    c.tasks = mr_copy(job->tasks, MR_MAX(job->tasks_count, 1u) * sizeof *job->tasks);
    bool no_late = has_shared(job) || (change->free & MR_WHATIF_FREE_PREEMPTED);
    for (uint32_t i = 0; i < job->tasks_count; i++)
        if (mr_whatif_ran(job, i)) task_change(change, no_late, &c.tasks[i]);
    costs_change(&c.costs, change->free);
    c.err = mr_whatif__graph_make(&c);
    if (!c.err) {
        out->chain_ns = chain_of(&c);
        begin(&c);
        run(&c);
    }
    if (!c.err) account_make(&c);
    finish(&c);
    return c.err;
}

/* ---- calibration ----------------------------------------------------------------------------- */

/* Returns the measured costs, changed so that the replay takes longer by a factor `by` above 1, or
 * shorter by one below 1. If threads shared processors, others use all but 1/by of the processors.
 * Otherwise, and if `by` is below 1, the costs of messages, transfers, the scheduler and executors
 * are multiplied by the factor. */
static struct mr_whatif_costs changed(
    const struct mr_whatif_job *job, const struct mr_whatif_costs *measured, double by)
{
    struct mr_whatif_costs k = *measured;
    double *const parts[] = {&k.decide_ns, &k.gap_ns, &k.local_ns, &k.handoff.first_ns,
        &k.handoff.each_ns, &k.send_ns, &k.report.first_ns, &k.report.each_ns, &k.transfer.first_ns,
        &k.transfer.each_ns};
    bool others = by > 1 && has_shared(job);
    k.share = others ? 1 / by : 1;
    k.scale = others ? 1 : by;
    for (size_t i = 0; i < MR_ARRAY_LEN(parts); i++)
        *parts[i] *= k.scale;
    return k;
}

/* Returns the factor to try after `by`, whose replay took `is`. `base`: what the replay with factor
 * 0 took. `low_high`: the largest factor whose replay was too short, and the smallest factor whose
 * replay was too long. */
static double next_scale(double by, double is, double base, double recorded, const double *low_high)
{
    double next = is > base ? by * (recorded - base) / (is - base) : SCALE_MIN;
    if (next <= low_high[0] || next >= low_high[1]) next = sqrt(low_high[0] * low_high[1]);
    return MR_MIN(MR_MAX(next, SCALE_MIN), SCALE_MAX);
}

int mr_whatif_calibrate(const struct mr_whatif_job *job, struct mr_whatif_costs *costs,
    struct mr_whatif_result *same, struct mr_error *e)
{
    static const struct mr_whatif_change none;
    struct mr_whatif_costs measured;
    struct mr_whatif_result r;
    double recorded = (double)(job->over - MR_MIN(job->submitted, job->over)), by = 1, best = 1;
    double low_high[] = {SCALE_MIN, SCALE_MAX}, off = INFINITY, off_before = 0;
    mr_whatif_costs_measure(job, &measured);
    *costs = changed(job, &measured, 0);
    int err = mr_whatif_replay(job, costs, &none, &r, e);
    double base = (double)r.wall_ns;
    for (uint32_t i = 0; !err && i < CALIBRATIONS_MAX && off > CLOSE_ENOUGH * recorded; i++) {
        *costs = changed(job, &measured, by);
        err = mr_whatif_replay(job, costs, &none, &r, e);
        double is = (double)r.wall_ns;
        if (!i) off_before = fabs(is - recorded);
        if (!err && fabs(is - recorded) < off) {
            off = fabs(is - recorded);
            best = by;
        }
        low_high[is > recorded] = by;
        by = next_scale(by, is, base, recorded, low_high);
    }
    if (off > FAR_OFF * recorded || off > off_before / 2) best = 1;
    *costs = changed(job, &measured, best);
    return err ? err : mr_whatif_replay(job, costs, &none, same, e);
}
