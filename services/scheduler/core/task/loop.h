/* Loops of a running job. lib/graph/build/unroll.c has unrolled them: the tasks of all rounds exist
 * from the start. In each round the value of the task `until` decides whether the loop ends. Rounds
 * after the last one are released like any task that nothing needs.
 *
 * An exit is a task that takes the loop's result. It has an edge from each round, but only the edge
 * from the last round counts. Until the last round is decided, an exit waits for the decision as
 * for one more input, and keeps the values of all rounds that may be the last. For the core's own
 * files only. */
#pragma once

#include "graph/loop.h"
#include "services/scheduler/core/state/lookup.h"

void mr_sched__loop_new(struct mr_sched *s, uint32_t job);
bool mr_sched__loop_is_decided(const struct mr_sched *s, uint32_t exit);
/* True: the edge from this input to the exit counts. */
bool mr_sched__loop_is_live(const struct mr_sched *s, uint32_t exit, uint32_t input);
/* Asked only while the exit holds references. True: the exit holds one to this input. */
bool mr_sched__loop_has_ref(const struct mr_sched *s, uint32_t exit, uint32_t input);
/* True: the loop of this `until` keeps the value that decided it. */
bool mr_sched__loop_holds(const struct mr_sched *s, uint32_t until);
/* True: the task may be sent before its inputs exist. False: the task has side effects, and its
 * round may turn out not to run. */
bool mr_sched__loop_may_go_ahead(const struct mr_sched *s, uint32_t task);
/* True: the task is in a round that does not run. */
bool mr_sched__loop_is_skipped(const struct mr_sched *s, uint32_t task);
/* mr_sched__exit_inputs returns the inputs that an exit takes, mr_sched__args the arguments of a
 * task. Both are lent until the next call. */
const uint32_t *mr_sched__exit_inputs(const struct mr_sched *s, uint32_t task, uint32_t *n);
struct mr_str mr_sched__args(struct mr_sched *s, uint32_t task);
/* Checks a value of `until`. Returns words for its kind ("a text") if the value is neither a
 * boolean nor a number; NULL: the value is right. */
const char *mr_sched__loop_complaint(struct mr_str bytes);
/* Called when `until` is done, before the other consequences. Ends the loop if the value says so.
 * True: the round of `until` is the present one, and the value does not end the loop. The caller
 * passes this result as `is_on` to mr_sched__loop_go_on, after the other consequences. */
bool mr_sched__loop_found(struct mr_sched *s, uint32_t until);
void mr_sched__loop_go_on(struct mr_sched *s, uint32_t until, bool is_on);
/* Called when the job was planned: existing values may decide its loops. */
void mr_sched__loop_settle(struct mr_sched *s, uint32_t job);
/* Called when the job is retried: loops without results start again. */
void mr_sched__loop_again(struct mr_sched *s, uint32_t job);
void mr_sched__loop_replay(
    struct mr_sched *s, uint32_t job, uint32_t loop, uint32_t at, uint32_t stop);
/* Called after recovery, when every worker has reported its values. Finds which round each loop has
 * reached: a round has run if a task of it has a value. */
void mr_sched__loop_infer(struct mr_sched *s, uint32_t job);
void mr_sched__loop_explain(const struct mr_sched *s, uint32_t task, struct mr_buf *lines);

static inline const uint32_t *mr_sched__inputs(const struct mr_sched *s, uint32_t task, uint32_t *n)
{
    if (s->tasks[task].is_exit) return mr_sched__exit_inputs(s, task, n);
    const struct job *j = job_of(s, task);
    return mr_graph_inputs(j->graph, task - j->base, n);
}

static inline bool mr_sched__is_edge(const struct mr_sched *s, uint32_t from, uint32_t to)
{
    return !s->tasks[to].is_exit || mr_sched__loop_is_live(s, to, from);
}
