/* Loops of a job while it runs: which rounds come is decided here, by the values of `until`. All
 * rounds are tasks of the job from the start (graph/loop.h); those after the last one are given up
 * like any task that nobody needs.
 *
 * An exit has an edge from each round, but only that from the last one counts: until the loop has
 * been decided an exit waits for that, as for one input more, and keeps the values of all rounds
 * that may be the last. For the core's own files only. */
#pragma once

#include "graph/loop.h"
#include "services/scheduler/core/state/lookup.h"

/* Of a job that was made just now. */
void mr_sched__loop_new(struct mr_sched *s, uint32_t job);
bool mr_sched__loop_is_decided(const struct mr_sched *s, uint32_t exit);
/* Is the edge from an input to an exit one that counts? */
bool mr_sched__loop_is_live(const struct mr_sched *s, uint32_t exit, uint32_t input);
/* Does the exit, if it claims anything, claim this input? */
bool mr_sched__loop_has_ref(const struct mr_sched *s, uint32_t exit, uint32_t input);
/* Does the loop keep this value, which decided it? */
bool mr_sched__loop_holds(const struct mr_sched *s, uint32_t until);
/* May it be sent before its inputs are there? Not what must not run for nothing. */
bool mr_sched__loop_may_go_ahead(const struct mr_sched *s, uint32_t task);
/* It is in a round that does not come. */
bool mr_sched__loop_is_skipped(const struct mr_sched *s, uint32_t task);
/* The inputs that a task takes, and its arguments (a loan until the next call). */
const uint32_t *mr_sched__exit_inputs(const struct mr_sched *s, uint32_t task, uint32_t *n);
struct mr_str mr_sched__args(struct mr_sched *s, uint32_t task);
/* What is wrong with bytes as the value of `until`; NULL: nothing. */
const char *mr_sched__loop_complaint(struct mr_str bytes);
/* `until` is done. True: the loop goes on, once all else has followed from that; tell it. */
bool mr_sched__loop_found(struct mr_sched *s, uint32_t until);
void mr_sched__loop_go_on(struct mr_sched *s, uint32_t until, bool is_on);
/* It was planned: values that are there may decide. */
void mr_sched__loop_settle(struct mr_sched *s, uint32_t job);
/* It is to be retried: loops without what came out of them begin anew. */
void mr_sched__loop_again(struct mr_sched *s, uint32_t job);
void mr_sched__loop_replay(
    struct mr_sched *s, uint32_t job, uint32_t loop, uint32_t at, uint32_t stop);
/* All workers of the earlier life are back: a round that something is left of did come. */
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
