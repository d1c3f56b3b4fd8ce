/* Functions of the worker's core that its own files call. A strand is a list of tasks, its items,
 * that one executor runs back to back. A slot is a place for one executor. */
#pragma once

#include "services/worker/core/state.h"

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
uint32_t mr_worker__value_find(struct mr_worker *w, mr_job_id job, uint32_t index);
uint32_t mr_worker__value_get(
    struct mr_worker *w, mr_job_id job, uint32_t index); /* NONE: the table is full */
/* drops the content and keeps the row */
void mr_worker__value_clear(struct mr_worker *w, struct value *v);
/* called after the last user of the value has gone, or after the value was released: clears the
 * content if nothing needs it, and frees the row if nothing uses it */
void mr_worker__value_settle(struct mr_worker *w, uint32_t value);
/* called when the value came to another node (PLACED) or to this one (HERE): each task that can use
 * the value there waits for one input less; for any other user the object is fetched */
void mr_worker__value_came(struct mr_worker *w, uint32_t value);
bool mr_worker__value_serves(
    const struct mr_worker *w, const struct value *v, const struct task *t);
void mr_worker__value_lost(struct mr_worker *w, uint32_t value, struct mr_str why);
/* called when the value is lost, or when there is no room to fetch it: ends the tasks that wait for
 * the value and are in no strand */
void mr_worker__value_users_end(struct mr_worker *w, uint32_t value, struct mr_str why);
/* drops the content and keeps the row; tasks in no strand that need the value wait for it again */
void mr_worker__value_withdraw(struct mr_worker *w, struct value *v);
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
/* Moves a task from GIVEN back to WAITING or READY. A task with a lost input ends. */
void mr_worker__task_park(struct mr_worker *w, uint32_t task, struct mr_str why);
void mr_worker__task_report(struct mr_worker *w, uint32_t task, enum mr_outcome outcome);
void mr_worker__task_fail(
    struct mr_worker *w, uint32_t task, enum mr_outcome outcome, int code, struct mr_str text);
void mr_worker__task_lose(struct mr_worker *w, uint32_t task, uint32_t input, struct mr_str why);
void mr_worker__task_end(struct mr_worker *w, uint32_t task, bool success);
void mr_worker__task_take_again(
    struct task *t); /* makes the later attempt, if one came, the present one */
void mr_worker__tasks_cancel(struct mr_worker *w, const struct mr_ws_refs *m);
void mr_worker__tasks_steal(struct mr_worker *w, const struct mr_ws_refs *m);
void mr_worker__tasks_leave(struct mr_worker *w, const struct mr_ws_refs *m);
void mr_worker__task_stop(struct mr_worker *w, uint32_t task, bool mute);
void mr_worker__tasks_return_all(struct mr_worker *w);

/* assign.c */
void mr_worker__tasks_assign(struct mr_worker *w, const struct mr_ws_tasks *m);

/* True: the slot has no strand, and its executor has room for one. */
static inline bool slot_is_idle(const struct mr_worker *w, uint32_t slot)
{
    return !w->slots[slot].count && w->slots[slot].held < MR_SLOT_STRANDS_MAX;
}

/* strand.c */
/* moves strands out of their slots: those whose running task may wait for a job that the task
 * itself submitted */
void mr_worker__strands_leave(struct mr_worker *w);
void mr_worker__strands_report_left(struct mr_worker *w);
void mr_worker__strands_dispatch(struct mr_worker *w);
/* asks executors to give items back (a cut) if a slot has too much work and another too little */
void mr_worker__strands_balance(struct mr_worker *w);
void mr_worker__strand_retire(struct mr_worker *w, struct mr_strand *s);
/* called when the executor has released the strand */
void mr_worker__strand_let_go(struct mr_worker *w, struct mr_strand *s);

/* report.c */
void mr_worker__strand_reported(struct mr_worker *w, const struct mr_worker_event *ev);
void mr_worker__strand_cut(struct mr_worker *w, const struct mr_worker_event *ev);
/* stops tasks at their timeout, and ends the process if a task has not stopped after the grace
 * period */
void mr_worker__strands_watch(struct mr_worker *w);
mr_time mr_worker__strands_deadline(const struct mr_worker *w);

/* outbox.c */
/* Adds a completion without value, failure and times. The row is lent until the next call. */
struct outrow *mr_worker__out_add(
    struct mr_worker *w, mr_job_id job, uint32_t index, uint32_t attempt, enum mr_outcome outcome);
struct outrow *mr_worker__out_last(struct mr_worker *w);
/* sets the parts of the row that was added last */
void mr_worker__out_parts(struct mr_worker *w, const struct outparts *parts);
/* true: all rows of the outbox may wait for more rows; false: they are to be sent now */
bool mr_worker__out_may_wait(const struct mr_worker *w);
void mr_worker__out_failure(struct mr_worker *w, struct outrow *r, int code, struct mr_str message,
    struct mr_str arguments, struct mr_str log);
/* returns a row that reports the completion of `v`, a value that was made here; the row has its own
 * reference to v->blob, which the caller must release */
struct outrow mr_worker__out_row(const struct mr_worker *w, const struct value *v);
void mr_worker__out_held(struct mr_worker *w, struct value *v);
void mr_worker__out_clear(struct mr_worker *w);
/* drops the rows of the outbox that a Register reports in its field `holding` */
void mr_worker__out_drop_reported(struct mr_worker *w);
void mr_worker__answer_add(
    struct mr_worker *w, struct refs *a, mr_job_id job, uint32_t index, uint32_t attempt);
void mr_worker__missing_add(struct mr_worker *w, const struct missing_row *row);
void mr_worker__out_fetch(struct mr_worker *w, const struct mr_ws_refs *m);

/* message.c */
mr_time mr_worker__heartbeat_due(const struct mr_worker *w);
void mr_worker__send_turn(struct mr_worker *w);
void mr_worker__send_free(struct mr_worker *w); /* frees what the last message (effect SEND) lent */
void mr_worker__registered_apply(struct mr_worker *w, const struct mr_ws_registered *m);
