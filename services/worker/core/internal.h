/* Functions of the worker's core that its own files call. */
#pragma once

#include "services/worker/core/state.h"

/* Walks the rows of columns that are grouped by job. */
struct run_walk {
    const struct mr_ws_run *runs;
    uint32_t run, left;
};

static inline mr_job_id run_next(struct run_walk *k)
{
    while (!k->left)
        k->left = k->runs[k->run++].count;
    k->left--;
    return k->runs[k->run - 1].job;
}

/* Of the job that run_next returned last. */
static inline bool run_is_unfused(const struct run_walk *k)
{
    return k->runs[k->run - 1].unfused;
}

static inline mr_job_id value_job(const struct mr_worker *w, const struct value *v)
{
    return w->jobs[v->job].id;
}

static inline struct edge *task_edges(const struct task *t)
{
    return t->edges ? mr_worker__blob_at(t->edges) : NULL;
}

/* core.c */
struct mr_worker_effect *mr_worker__fx_add(struct mr_worker *w, enum mr_worker_effect_kind kind);

/* value.c */
uint32_t mr_worker__job_find(struct mr_worker *w, mr_job_id id);
uint32_t mr_worker__value_find(struct mr_worker *w, mr_job_id job, uint32_t index);
uint32_t mr_worker__value_get(
    struct mr_worker *w, mr_job_id job, uint32_t index); /* NONE: no room */
void mr_worker__value_collect(
    struct mr_worker *w, uint32_t value); /* frees the row if nothing keeps it */
void mr_worker__value_clear(struct mr_worker *w, struct value *v, bool drop); /* its content goes */
void mr_worker__value_settle(
    struct mr_worker *w, uint32_t value); /* after its last user, or release */
void mr_worker__value_came(
    struct mr_worker *w, uint32_t value); /* is PLACED or HERE: counts down */
bool mr_worker__value_serves(
    const struct mr_worker *w, const struct value *v, const struct task *t);
void mr_worker__value_lost(struct mr_worker *w, uint32_t value, struct mr_str why);
void mr_worker__value_no_room(
    struct mr_worker *w, uint32_t value, struct mr_str why);          /* to fetch it */
void mr_worker__value_withdraw(struct mr_worker *w, struct value *v); /* its users wait again */
void mr_worker__value_release(struct mr_worker *w, mr_job_id job, uint32_t index, uint32_t attempt);
void mr_worker__values_bring(struct mr_worker *w, const struct mr_ws_values *m);
void mr_worker__values_sweep(struct mr_worker *w);
void mr_worker__job_forget(struct mr_worker *w, mr_job_id id);

/* fetch.c */
void mr_worker__fetch_want(struct mr_worker *w, uint32_t value, const struct task *t);
void mr_worker__fetch_unwant(struct mr_worker *w, struct value *v);
void mr_worker__fetch_start(struct mr_worker *w);
void mr_worker__fetch_done(struct mr_worker *w, const struct mr_worker_event *ev);

/* task.c */
bool mr_worker__task_before(const struct mr_worker *w, uint32_t a, uint32_t b);
void mr_worker__task_move(struct mr_worker *w, uint32_t task, enum task_state to);
void mr_worker__task_give(struct mr_worker *w, uint32_t task);
void mr_worker__task_ready(struct mr_worker *w, uint32_t task);
void mr_worker__task_unready(struct mr_worker *w, uint32_t task);
/* GIVEN to WAITING or READY, or to its end when an input is gone for good. */
void mr_worker__task_park(struct mr_worker *w, uint32_t task, struct mr_str why);
void mr_worker__task_report(struct mr_worker *w, uint32_t task, enum mr_ws_outcome outcome);
void mr_worker__task_fail(
    struct mr_worker *w, uint32_t task, enum mr_ws_outcome outcome, int code, const char *text);
void mr_worker__task_lose(struct mr_worker *w, uint32_t task, uint32_t input, struct mr_str why);
void mr_worker__task_end(struct mr_worker *w, uint32_t task, bool success);
void mr_worker__task_take_again(
    struct task *t); /* it is the later attempt from now on, if there is one */
void mr_worker__tasks_cancel(struct mr_worker *w, const struct mr_ws_refs *m);
void mr_worker__tasks_steal(struct mr_worker *w, const struct mr_ws_refs *m);
void mr_worker__tasks_leave(struct mr_worker *w, const struct mr_ws_refs *m);
void mr_worker__task_stop(struct mr_worker *w, uint32_t task, bool mute);
void mr_worker__tasks_return_all(struct mr_worker *w);

/* assign.c */
void mr_worker__tasks_assign(struct mr_worker *w, const struct mr_ws_tasks *m);

/* Its executor can be given something to begin with. */
static inline bool slot_is_idle(const struct mr_worker *w, uint32_t slot)
{
    return !w->slots[slot].count && w->slots[slot].held < MR_SLOT_STRANDS_MAX;
}

/* strand.c */
void mr_worker__strands_leave(
    struct mr_worker *w); /* moves those that wait for jobs of their own */
void mr_worker__strands_report_left(struct mr_worker *w);
void mr_worker__strands_dispatch(struct mr_worker *w);
void mr_worker__strands_balance(struct mr_worker *w); /* asks for cuts */
void mr_worker__strand_retire(struct mr_worker *w, struct mr_strand *s);
void mr_worker__strand_let_go(struct mr_worker *w, struct mr_strand *s); /* its executor did */

/* report.c */
void mr_worker__strand_reported(struct mr_worker *w, const struct mr_worker_event *ev);
void mr_worker__strand_cut(struct mr_worker *w, const struct mr_worker_event *ev);
void mr_worker__strands_watch(struct mr_worker *w); /* timeouts and graces */
mr_time mr_worker__strands_deadline(const struct mr_worker *w);

/* outbox.c */
struct outrow *mr_worker__out_add(struct mr_worker *w);
struct outrow *mr_worker__out_last(struct mr_worker *w);
bool mr_worker__out_may_wait(const struct mr_worker *w); /* everything in the outbox */
void mr_worker__out_failure(struct mr_worker *w, struct outrow *r, int code, struct mr_str message,
    struct mr_str arguments, struct mr_str log);
void mr_worker__out_held(struct mr_worker *w, struct value *v);
void mr_worker__out_clear(struct mr_worker *w);
void mr_worker__out_drop_reported(struct mr_worker *w); /* rows that `holding` carries */
void mr_worker__answer_add(
    struct mr_worker *w, struct refs *a, mr_job_id job, uint32_t index, uint32_t attempt);
void mr_worker__missing_add(struct mr_worker *w, const struct missing_row *row);
void mr_worker__out_fetch(struct mr_worker *w, const struct mr_ws_refs *m);

/* message.c */
mr_time mr_worker__heartbeat_due(const struct mr_worker *w);
void mr_worker__send_turn(struct mr_worker *w, bool may_send);
void mr_worker__send_free(struct mr_worker *w); /* what the last SEND lent */
void mr_worker__registered_apply(struct mr_worker *w, const struct mr_ws_registered *m);
