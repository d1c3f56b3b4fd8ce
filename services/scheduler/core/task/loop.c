/* Loops whose rounds are unrolled into tasks (loop.h). In each round the value of the task `until`
 * decides whether the loop ends. An exit is a task that takes the loop's result; the state is what
 * one round hands to the next one. */
#include "services/scheduler/core/task/loop.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/pack.h"
#include "services/scheduler/core/state/inline_bytes.h"
#include "services/scheduler/core/state/lookup.h"
#include "services/scheduler/core/task/journal.h"
#include "services/scheduler/core/task/refcount.h"
#include "services/scheduler/core/task/task.h"

#include <math.h>

#define TELL_EVERY MR_SECOND /* the journal gets a loop's progress at most once in this time */

static uint32_t loop_of_exit(const struct mr_graph *g, uint32_t node)
{
    for (uint32_t l = 0; l < g->loops_count; l++)
        for (uint32_t i = 0; i < g->loops[l].exits_count; i++)
            if (g->loops[l].exits[i] == node) return l;
    mr_assert(false);
    return 0;
}

static struct loop *of_exit(const struct mr_sched *s, uint32_t exit)
{
    const struct job *j = job_of(s, exit);
    mr_assert(s->tasks[exit].is_exit);
    return &j->loops[loop_of_exit(j->graph, exit - j->base)];
}

static uint32_t round_of(const struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    return j->graph->round_of[task - j->base];
}

static bool is_count(const struct mr_sched *s, uint32_t exit)
{
    const struct job *j = job_of(s, exit);
    const struct mr_graph *g = j->graph;
    return mr_graph_is_count(g, &g->loops[loop_of_exit(g, exit - j->base)], exit - j->base);
}

static void begin(struct mr_sched *s, struct loop *l)
{
    *l = (struct loop){.stop = NONE, .told_at = s->now};
}

void mr_sched__loop_new(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    const struct mr_graph *g = j->graph;
    if (!g->loops_count) return;
    j->loops = mr_alloc_array(g->loops_count, sizeof *j->loops);
    for (uint32_t l = 0; l < g->loops_count; l++) {
        const struct mr_graph_loop *from = &g->loops[l];
        begin(s, &j->loops[l]);
        for (uint32_t r = 0; r + 1 < from->rounds; r++)
            s->tasks[j->base + from->until[r]].is_until = true;
        for (uint32_t i = 0; i < from->exits_count; i++)
            s->tasks[j->base + from->exits[i]].is_exit = true;
    }
}

bool mr_sched__loop_is_decided(const struct mr_sched *s, uint32_t exit)
{
    return of_exit(s, exit)->is_over;
}

/* True: `input` is the last round's state, and the exit takes this state. */
static bool is_last_state(const struct mr_sched *s, uint32_t exit, uint32_t input)
{
    const struct job *j = job_of(s, exit);
    uint32_t n, stop = of_exit(s, exit)->stop;
    const uint32_t *in = mr_graph_inputs(j->graph, exit - j->base, &n);
    return stop != NONE && !is_count(s, exit) && input == j->base + in[stop];
}

bool mr_sched__loop_is_live(const struct mr_sched *s, uint32_t exit, uint32_t input)
{
    return of_exit(s, exit)->is_over && is_last_state(s, exit, input);
}

bool mr_sched__loop_has_ref(const struct mr_sched *s, uint32_t exit, uint32_t input)
{
    const struct loop *l = of_exit(s, exit);
    return l->stop == NONE ? round_of(s, input) >= l->at : is_last_state(s, exit, input);
}

bool mr_sched__loop_holds(const struct mr_sched *s, uint32_t until)
{
    const struct job *j = job_of(s, until);
    const struct loop *l = &j->loops[mr_graph_loop_of(j->graph, until - j->base)];
    return l->holds && l->stop == round_of(s, until);
}

bool mr_sched__loop_may_go_ahead(const struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    if (!j->loops || !(s->tasks[task].flags & T_IMPURE)) return true;
    uint32_t loop = mr_graph_loop_of(j->graph, task - j->base);
    if (loop == MR_NODE_NONE) return true;
    return round_of(s, task) <= j->loops[loop].at;
}

bool mr_sched__loop_is_skipped(const struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    if (!j->loops) return false;
    uint32_t loop = mr_graph_loop_of(j->graph, task - j->base);
    return loop != MR_NODE_NONE && j->loops[loop].stop < round_of(s, task);
}

const uint32_t *mr_sched__exit_inputs(const struct mr_sched *s, uint32_t task, uint32_t *n)
{
    const struct job *j = job_of(s, task);
    const uint32_t *in = mr_graph_inputs(j->graph, task - j->base, n);
    const struct loop *l = of_exit(s, task);
    *n = l->is_over && !is_count(s, task);
    return in + (*n ? l->stop : 0);
}

struct mr_str mr_sched__args(struct mr_sched *s, uint32_t task)
{
    const struct job *j = job_of(s, task);
    if (!s->tasks[task].is_exit || !is_count(s, task))
        return mr_graph_args(j->graph, task - j->base);
    mr_buf_clear(&s->scratch);
    mr_pack_list(&s->scratch, 1);
    mr_pack_uint(&s->scratch, (uint64_t)of_exit(s, task)->stop + 1);
    return mr_buf_str(&s->scratch);
}

const char *mr_sched__loop_complaint(struct mr_str bytes)
{
    struct mr_pack_reader r = mr_pack_read(bytes);
    struct mr_pack_item item;
    if (!bytes.n) return "a stored value";
    if (mr_pack_next(&r, &item)) return "no value";
    switch (item.type) {
    case MR_PACK_BOOL:
    case MR_PACK_INT:
    case MR_PACK_UINT: return NULL;
    case MR_PACK_FLOAT: return isnan(item.f) ? "NaN" : NULL;
    case MR_PACK_NIL: return "null";
    case MR_PACK_TEXT: return "a text";
    case MR_PACK_BYTES: return "bytes";
    case MR_PACK_LIST: return "a list";
    case MR_PACK_MAP: return "an object";
    case MR_PACK_EXT: return "a tensor or table";
    }
    return "no value";
}

/* True: the value of `until`, which exists, ends the loop. */
static bool says_stop(struct mr_sched *s, uint32_t until)
{
    const struct value *v = &s->values[s->tasks[until].value];
    struct mr_pack_reader r = mr_pack_read(mr_sched__value_bytes(s, v));
    struct mr_pack_item item;
    /* The scheduler has no bytes of a value that is an object in a store, so the read fails. Such a
     * value does not end the loop. */
    if (mr_pack_next(&r, &item)) return false;
    if (item.type == MR_PACK_BOOL) return item.boolean;
    if (item.type == MR_PACK_INT) return item.i != 0;
    if (item.type == MR_PACK_UINT) return item.u != 0;
    return item.type == MR_PACK_FLOAT && item.f != 0;
}

static void tell(struct mr_sched *s, uint32_t job, uint32_t loop)
{
    struct loop *l = &s->jobs[job].loops[loop];
    l->told_at = s->now;
    mr_sched__journal_loop(s, job, loop);
}

/* Makes the exits drop their references to the rounds `from` to `to`, but not the reference to the
 * state of the loop's last round. Goes from round `to` down to `from`: the tasks of round r + 1 are
 * released first and drop their references to round r, so that round r can be released next. */
static void unref_stack(
    struct mr_sched *s, const struct job *j, uint32_t loop, uint32_t from, uint32_t to)
{
    const struct mr_graph_loop *of = &j->graph->loops[loop];
    for (uint32_t r = to + 1; r-- > from;)
        for (uint32_t i = 0; i < of->exits_count; i++) {
            uint32_t n, exit = of->exits[i];
            const uint32_t *in = mr_graph_inputs(j->graph, exit, &n);
            if (!s->tasks[j->base + exit].refs) continue;
            uint32_t states = n < of->rounds ? 0 : of->rounds;
            if (states && r != j->loops[loop].stop) mr_sched__unref_one(s, j->base + in[r]);
            if (states + r < n) mr_sched__unref_one(s, j->base + in[states + r]);
        }
}

/* Makes `round` the last round of the loop. */
static void stop(struct mr_sched *s, uint32_t job, uint32_t loop, uint32_t round)
{
    struct job *j = &s->jobs[job];
    struct loop *l = &j->loops[loop];
    const struct mr_graph_loop *of = &j->graph->loops[loop];
    l->stop = round;
    if (round + 1 < of->rounds) {
        l->holds = true;
        s->tasks[j->base + of->until[round]].consumers++;
        j->skipped += mr_graph_loop_tail(j->graph, loop, round);
        unref_stack(s, j, loop, round, of->rounds - 1);
    }
    tell(s, job, loop);
}

/* Lets the exits of a loop run, if its last round is decided. */
static void finish(struct mr_sched *s, uint32_t job, uint32_t loop)
{
    const struct job *j = &s->jobs[job];
    struct loop *l = &j->loops[loop];
    const struct mr_graph_loop *of = &j->graph->loops[loop];
    if (l->is_over || l->stop == NONE) return;
    l->is_over = true;
    for (uint32_t i = 0; i < of->exits_count; i++) {
        uint32_t n, exit = j->base + of->exits[i];
        struct task *t = &s->tasks[exit];
        if (!is_unfinished(t)) continue;
        const uint32_t *in = mr_sched__inputs(s, exit, &n);
        const struct task *u = n ? &s->tasks[j->base + in[0]] : NULL;
        t->waiting = u && !is_done(u);
        t->unsent = t->waiting && !(u->flags & T_SENT);
        if (!t->waiting)
            mr_sched__task_inputs_done(s, exit, n ? j->base + in[0] : exit);
        else
            mr_sched__task_requeue(s, exit);
    }
}

static void next_round(struct mr_sched *s, uint32_t job, uint32_t loop)
{
    struct job *j = &s->jobs[job];
    struct loop *l = &j->loops[loop];
    l->at++;
    unref_stack(s, j, loop, l->at - 1, l->at - 1);
}

/* Advances the loop as far as existing values decide its rounds. */
static void advance(struct mr_sched *s, uint32_t job, uint32_t loop)
{
    struct job *j = &s->jobs[job];
    struct loop *l = &j->loops[loop];
    const struct mr_graph_loop *of = &j->graph->loops[loop];
    while (l->stop == NONE && l->at + 1 < of->rounds) {
        uint32_t until = j->base + of->until[l->at];
        if (!is_done(&s->tasks[until])) break;
        if (says_stop(s, until))
            stop(s, job, loop, l->at);
        else
            next_round(s, job, loop);
    }
    if (l->stop == NONE && l->at + 1 == of->rounds) stop(s, job, loop, l->at);
    if (l->stop == NONE && mr_time_after(l->told_at, TELL_EVERY) <= s->now && l->at)
        tell(s, job, loop);
    finish(s, job, loop);
}

bool mr_sched__loop_found(struct mr_sched *s, uint32_t until)
{
    uint32_t job = job_no(s, &s->tasks[until]);
    const struct job *j = &s->jobs[job];
    uint32_t loop = mr_graph_loop_of(j->graph, until - j->base);
    const struct loop *l = &j->loops[loop];
    if (l->stop != NONE || round_of(s, until) != l->at) return false;
    if (!says_stop(s, until)) return true;
    stop(s, job, loop, l->at);
    return false;
}

void mr_sched__loop_go_on(struct mr_sched *s, uint32_t until, bool is_on)
{
    uint32_t job = job_no(s, &s->tasks[until]);
    const struct job *j = &s->jobs[job];
    uint32_t loop = mr_graph_loop_of(j->graph, until - j->base);
    if (j->flags & J_STOPPED) return;
    if (is_on && j->loops[loop].at == round_of(s, until)) next_round(s, job, loop);
    advance(s, job, loop);
}

void mr_sched__loop_settle(struct mr_sched *s, uint32_t job)
{
    for (uint32_t i = 0; i < s->jobs[job].graph->loops_count; i++)
        advance(s, job, i);
}

/* True: each exit that is not done has its input, which is a value of the loop's last round. */
static bool has_states(const struct mr_sched *s, const struct job *j, uint32_t loop)
{
    const struct mr_graph_loop *of = &j->graph->loops[loop];
    for (uint32_t i = 0; i < of->exits_count; i++) {
        uint32_t n, exit = j->base + of->exits[i];
        const uint32_t *in = mr_sched__inputs(s, exit, &n);
        if (!is_done(&s->tasks[exit]) && n && !is_done(&s->tasks[j->base + in[0]])) return false;
    }
    return true;
}

void mr_sched__loop_again(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    for (uint32_t i = 0; i < j->graph->loops_count; i++) {
        struct loop *l = &j->loops[i];
        if (l->is_over && has_states(s, j, i)) {
            tell(s, job, i);
            continue;
        }
        if (l->stop != NONE) j->skipped -= mr_graph_loop_tail(j->graph, i, l->stop);
        begin(s, l);
    }
}

void mr_sched__loop_replay(
    struct mr_sched *s, uint32_t job, uint32_t loop, uint32_t at, uint32_t stop_at)
{
    struct job *j = &s->jobs[job];
    if (loop >= j->graph->loops_count) return;
    struct loop *l = &j->loops[loop];
    uint32_t rounds = j->graph->loops[loop].rounds;
    if (at >= rounds || (stop_at != NONE && stop_at >= rounds)) return;
    if (l->stop != NONE) j->skipped -= mr_graph_loop_tail(j->graph, loop, l->stop);
    l->at = at;
    l->stop = stop_at;
    l->is_over = stop_at != NONE;
    if (l->is_over) j->skipped += mr_graph_loop_tail(j->graph, loop, stop_at);
}

/* After a restart, finds which round the loop has reached. A value of round r + 1 proves that round
 * r was not the last. The exception: the `until` of round r has a value that ends the loop. Then a
 * task of round r + 1 was sent before that value existed, and its value proves nothing. */
void mr_sched__loop_infer(struct mr_sched *s, uint32_t job)
{
    struct job *j = &s->jobs[job];
    const struct mr_graph *g = j->graph;
    uint32_t reached[MR_LOOPS_MAX] = {0};
    if (!g->loops_count || j->flags & (J_STOPPED | J_FORGETTING)) return;
    for (uint32_t i = 0; i < g->nodes_count; i++) {
        if (g->slot_of[i] == MR_NODE_NONE || !is_done(&s->tasks[j->base + i])) continue;
        uint32_t loop = mr_graph_loop_of(g, i);
        if (loop != MR_NODE_NONE) reached[loop] = MR_MAX(reached[loop], g->round_of[i]);
    }
    for (uint32_t i = 0; i < g->loops_count; i++) {
        struct loop *l = &j->loops[i];
        while (l->stop == NONE && l->at < reached[i]) {
            uint32_t until = j->base + g->loops[i].until[l->at];
            if (is_done(&s->tasks[until]) && says_stop(s, until)) break;
            next_round(s, job, i);
        }
        advance(s, job, i);
    }
}

void mr_sched__loop_explain(const struct mr_sched *s, uint32_t task, struct mr_buf *lines)
{
    const struct job *j = job_of(s, task);
    if (!j->loops) return;
    const struct mr_graph *g = j->graph;
    uint32_t loop = s->tasks[task].is_exit ? loop_of_exit(g, task - j->base)
                                           : mr_graph_loop_of(g, task - j->base);
    if (loop == MR_NODE_NONE) return;
    struct mr_str name = g->loops[loop].name;
    const struct loop *l = &j->loops[loop];
    if (l->stop == NONE)
        mr_buf_printf(lines, "loop \"%.*s\" is in round %u, of at most %u\n", MR_STR_ARG(name),
            l->at + 1, g->loops[loop].rounds);
    else if (l->stop + 1 < g->loops[loop].rounds)
        mr_buf_printf(lines, "loop \"%.*s\" ended after %u rounds, of at most %u\n",
            MR_STR_ARG(name), l->stop + 1, g->loops[loop].rounds);
    else
        mr_buf_printf(lines, "loop \"%.*s\" ended after all its %u rounds, without \"until\"\n",
            MR_STR_ARG(name), l->stop + 1);
}
