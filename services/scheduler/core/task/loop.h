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
/* True: if the exit holds references to inputs, it holds one to this input. */
bool mr_sched__loop_has_ref(const struct mr_sched *s, uint32_t exit, uint32_t input);
/* True: the value of this `until` ended its loop, and the loop keeps this value. */
bool mr_sched__loop_holds(const struct mr_sched *s, uint32_t until);
/* True: the task may be sent before its inputs exist. False: the task has side effects, and its
 * round may turn out not to run. */
bool mr_sched__loop_may_go_ahead(const struct mr_sched *s, uint32_t task);
/* True: the task is in a round that does not run. */
bool mr_sched__loop_is_skipped(const struct mr_sched *s, uint32_t task);
/* Returns the inputs that an exit takes, lent by the graph of its job. */
const uint32_t *mr_sched__exit_inputs(const struct mr_sched *s, uint32_t task, uint32_t *n);
/* Returns the arguments of a task, lent until the next call of mr_sched__args or
 * mr_sched__value_bytes. */
struct mr_str mr_sched__args(struct mr_sched *s, uint32_t task);
/* Checks a value of `until`. Returns words for its kind ("a text") if the value is neither a
 * boolean nor a number; NULL: the value is right. */
const char *mr_sched__loop_complaint(struct mr_str bytes);
/* mr_sched__task_done calls mr_sched__loop_found when `until` is done, before the dependents of
 * `until` learn of its value. The function ends the loop if the value says so. True: the loop is in
 * the round of `until`, and the value does not end the loop. As its last step mr_sched__task_done
 * passes this result, as `is_on`, to mr_sched__loop_go_on. */
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
