/* Inside the worker's core: what its parts ask of each other. */
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

/* Of the job that run_next said last. */
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
    return t->edges ? mr_blob_at(t->edges) : NULL;
}

/* core.c */
struct mr_worker_effect *fx_add(struct mr_worker *w, enum mr_worker_effect_kind kind);

/* value.c */
uint32_t job_find(struct mr_worker *w, mr_job_id id);
uint32_t value_find(struct mr_worker *w, mr_job_id job, uint32_t index);
uint32_t value_get(struct mr_worker *w, mr_job_id job, uint32_t index); /* NONE: no room */
void value_collect(struct mr_worker *w, uint32_t value); /* frees the row if nothing keeps it */
void value_clear(struct mr_worker *w, struct value *v, bool drop); /* its content goes */
void value_settle(struct mr_worker *w, uint32_t value); /* after its last user, or release */
void value_came(struct mr_worker *w, uint32_t value);   /* is PLACED or HERE: counts down */
bool value_serves(const struct mr_worker *w, const struct value *v, const struct task *t);
void value_lost(struct mr_worker *w, uint32_t value, struct mr_str why);
void value_no_room(struct mr_worker *w, uint32_t value, struct mr_str why); /* to fetch it */
void value_withdraw(struct mr_worker *w, struct value *v); /* its users wait again */
void value_release(struct mr_worker *w, mr_job_id job, uint32_t index, uint32_t attempt);
void values_bring(struct mr_worker *w, const struct mr_ws_values *m);
void values_sweep(struct mr_worker *w);
void job_forget(struct mr_worker *w, mr_job_id id);

/* fetch.c */
void fetch_want(struct mr_worker *w, uint32_t value, const struct task *t);
void fetch_unwant(struct mr_worker *w, struct value *v);
void fetch_start(struct mr_worker *w);
void fetch_done(struct mr_worker *w, const struct mr_worker_event *ev);

/* task.c */
bool task_before(const struct mr_worker *w, uint32_t a, uint32_t b);
void task_move(struct mr_worker *w, uint32_t task, enum task_state to);
void task_give(struct mr_worker *w, uint32_t task);
void task_ready(struct mr_worker *w, uint32_t task);
void task_unready(struct mr_worker *w, uint32_t task);
/* GIVEN to WAITING or READY, or to its end when an input is gone for good. */
void task_park(struct mr_worker *w, uint32_t task, struct mr_str why);
void task_report(struct mr_worker *w, uint32_t task, enum mr_ws_outcome outcome);
void task_fail(
    struct mr_worker *w, uint32_t task, enum mr_ws_outcome outcome, int code, const char *text);
void task_lose(struct mr_worker *w, uint32_t task, uint32_t input, struct mr_str why);
void task_end(struct mr_worker *w, uint32_t task, bool success);
void task_take_again(struct task *t); /* it is the later attempt from now on, if there is one */
void tasks_cancel(struct mr_worker *w, const struct mr_ws_refs *m);
void tasks_steal(struct mr_worker *w, const struct mr_ws_refs *m);
void tasks_leave(struct mr_worker *w, const struct mr_ws_refs *m);
void task_stop(struct mr_worker *w, uint32_t task, bool mute);
void tasks_return_all(struct mr_worker *w);

/* assign.c */
void tasks_assign(struct mr_worker *w, const struct mr_ws_tasks *m);

/* Its executor can be given something to begin with. */
static inline bool slot_is_idle(const struct mr_worker *w, uint32_t slot)
{
    return !w->slots[slot].count && w->slots[slot].held < MR_SLOT_STRANDS_MAX;
}

/* strand.c */
void strands_leave(struct mr_worker *w); /* moves those that wait for jobs of their own */
void strands_report_left(struct mr_worker *w);
void strands_dispatch(struct mr_worker *w);
void strands_balance(struct mr_worker *w); /* asks for cuts */
void strand_retire(struct mr_worker *w, struct mr_strand *s);
void strand_let_go(struct mr_worker *w, struct mr_strand *s); /* its executor did */

/* report.c */
void strand_reported(struct mr_worker *w, const struct mr_worker_event *ev);
void strand_cut(struct mr_worker *w, const struct mr_worker_event *ev);
void strands_watch(struct mr_worker *w); /* timeouts and graces */
mr_time strands_deadline(const struct mr_worker *w);

/* outbox.c */
struct outrow *out_add(struct mr_worker *w);
struct outrow *out_last(struct mr_worker *w);
bool out_may_wait(const struct mr_worker *w); /* all that is to be told */
void out_failure(struct mr_worker *w, struct outrow *r, int code, struct mr_str message,
    struct mr_str arguments, struct mr_str log);
void out_held(struct mr_worker *w, struct value *v);
void out_clear(struct mr_worker *w);
void out_drop_reported(struct mr_worker *w); /* rows that `holding` carries */
void answer_add(
    struct mr_worker *w, struct refs *a, mr_job_id job, uint32_t index, uint32_t attempt);
void missing_add(struct mr_worker *w, const struct missing_row *row);
void out_fetch(struct mr_worker *w, const struct mr_ws_refs *m);

/* message.c */
mr_time heartbeat_due(const struct mr_worker *w);
void send_turn(struct mr_worker *w, bool may_send);
void send_free(struct mr_worker *w); /* what the last SEND lent */
void registered_apply(struct mr_worker *w, const struct mr_ws_registered *m);
