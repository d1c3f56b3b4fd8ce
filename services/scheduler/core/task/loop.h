/* Loops of a running job: the values of `until` decide which rounds run. All rounds are tasks of
 * the job from the start (graph/graph's loops); those after the last round are given up like any
 * task that nothing needs.
 *
 * An exit has an edge from each round, but only the edge from the last round counts. Until the loop
 * is decided an exit waits for that, as for one more input, and keeps the values of all rounds that
 * may be the last. For the core's own files only. */
#pragma once

#include "graph/loop.h"
#include "services/scheduler/core/state/lookup.h"

/* For a new job. */
void mr_sched__loop_new(struct mr_sched *s, uint32_t job);
bool mr_sched__loop_is_decided(const struct mr_sched *s, uint32_t exit);
/* Does the edge from an input to an exit count? */
bool mr_sched__loop_is_live(const struct mr_sched *s, uint32_t exit, uint32_t input);
/* Does the exit, if it holds references, hold one to this input? */
bool mr_sched__loop_has_ref(const struct mr_sched *s, uint32_t exit, uint32_t input);
/* Does the loop keep the value that decided it? */
bool mr_sched__loop_holds(const struct mr_sched *s, uint32_t until);
/* May the task be sent before its inputs are there? Not if it must not run in vain. */
bool mr_sched__loop_may_go_ahead(const struct mr_sched *s, uint32_t task);
/* Is the task in a round that does not run? */
bool mr_sched__loop_is_skipped(const struct mr_sched *s, uint32_t task);
/* The inputs that an exit takes, and the arguments of a task; both are loans until the next call.
 */
const uint32_t *mr_sched__exit_inputs(const struct mr_sched *s, uint32_t task, uint32_t *n);
struct mr_str mr_sched__args(struct mr_sched *s, uint32_t task);
/* What is wrong with these bytes as the value of `until`; NULL: nothing. */
const char *mr_sched__loop_complaint(struct mr_str bytes);
/* `until` is done. True: the loop goes on; report it with _go_on after all other consequences. */
bool mr_sched__loop_found(struct mr_sched *s, uint32_t until);
void mr_sched__loop_go_on(struct mr_sched *s, uint32_t until, bool is_on);
/* The job was planned: values that are there may decide its loops. */
void mr_sched__loop_settle(struct mr_sched *s, uint32_t job);
/* The job is to be retried: loops without results start again. */
void mr_sched__loop_again(struct mr_sched *s, uint32_t job);
void mr_sched__loop_replay(
    struct mr_sched *s, uint32_t job, uint32_t loop, uint32_t at, uint32_t stop);
/* All workers of the earlier life are back: a round of which anything is left did run. */
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
