/* What the files of the scheduler core call of each other. Task, value, job and worker numbers are
 * plain u32 in here; the whole state is lent to every one. */
#pragma once

#include "base/assert.h"
#include "services/scheduler/core/place/placement_cache.h"
#include "services/scheduler/core/task/epoch.h"
#include "services/scheduler/core/task/loop.h"
#include "services/scheduler/core/state/lookup.h"

#include <string.h>

/* state/ready_queue.c: what is ready, by (priority of the job, its virtual time, place in it) */
void mr_sc_queue_put(struct mr_sched *s, uint32_t task);
void mr_sc_queue_drop(struct mr_sched *s, uint32_t task);
uint32_t mr_sc_queue_job(const struct mr_sched *s); /* the job to serve first, or NONE */
uint32_t mr_sc_queue_first(const struct mr_sched *s, uint32_t job);
void mr_sc_queue_job_changed(struct mr_sched *s, uint32_t job);
void mr_sc_queue_charge(struct mr_sched *s, uint32_t task); /* it was sent */
void mr_sc_queue_check(const struct mr_sched *s);

/* state/load_index.c: workers by load */
void mr_sc_load_changed(struct mr_sched *s, uint32_t worker, bool to_tail);
uint32_t mr_sc_load_least(const struct mr_sched *s);                 /* or NONE */
uint32_t mr_sc_load_next(const struct mr_sched *s, uint32_t worker); /* in ascending order */
uint32_t mr_sc_load_most(const struct mr_sched *s);
uint32_t mr_sc_load_prev(const struct mr_sched *s, uint32_t worker); /* in descending order */
void mr_sc_load_check(const struct mr_sched *s);

/* task/value.c */
uint32_t mr_sc_value_new(struct mr_sched *s, uint32_t task);
void mr_sc_value_set_inline(struct mr_sched *s, struct value *v, struct mr_str bytes);
void mr_sc_value_uncache(struct mr_sched *s, struct value *v);
/* The bytes of a small value: where they stand, or gathered in the scratch buffer. */
struct mr_str mr_sc_value_bytes(struct mr_sched *s, const struct value *v);
void mr_sc_value_append(const struct mr_sched *s, const struct value *v, struct mr_buf *out);
void mr_sc_value_keep(struct mr_sched *s, uint32_t value, uint32_t worker); /* on its list */
void mr_sc_value_unkeep(struct mr_sched *s, uint32_t value);
void mr_sc_value_hold(struct mr_sched *s, struct value *v);
/* Frees the record; tells worker and store that the value is not needed. `dropped`: the worker has
 * done so by itself. */
void mr_sc_value_release(struct mr_sched *s, uint32_t value, bool dropped);
void mr_sc_value_check(const struct mr_sched *s);

/* task/refcount.c: who keeps whose value */
bool mr_sc_is_by_reference(const struct mr_sched *s, uint32_t task);
bool mr_sc_is_referring(const struct mr_sched *s, uint32_t task); /* its value names others */
bool mr_sc_may_name(const struct mr_sched *s, uint32_t by, uint32_t task);
bool mr_sc_is_object(const struct mr_sched *s, uint32_t task); /* its value is one */
bool mr_sc_is_broken(const struct mr_sched *s, uint32_t task); /* it refers to no value */
bool mr_sc_is_part(const struct mr_sched *s, uint32_t task);
uint32_t mr_sc_claimers(const struct mr_sched *s, uint32_t task); /* counted */
void mr_sc_claim_all(struct mr_sched *s, uint32_t task);          /* all inputs */
void mr_sc_claim_gone(struct mr_sched *s, uint32_t task);         /* one less on it */
void mr_sc_claim_stale(struct mr_sched *s, uint32_t task);        /* onto the stack */
void mr_sc_claim_again(struct mr_sched *s, uint32_t task);
void mr_sc_claim_settle(struct mr_sched *s, uint32_t task);
void mr_sc_claim_journal(struct mr_sched *s, uint32_t task);
/* It claims its inputs no more. by_worker: it just completed there, and what was marked as its last
 * use is dropped there already. */
void mr_sc_let_go(struct mr_sched *s, uint32_t task, uint32_t by_worker);

/* task/task.c: states, and what follows from them */
uint32_t mr_sc_find(const struct mr_sched *s, uint64_t job, uint32_t index); /* task, or NONE */
void mr_sc_task_move(struct mr_sched *s, uint32_t task, enum mr_task_state to);
void mr_sc_task_ready(struct mr_sched *s, uint32_t task); /* queue it, or wait as a suspect */
void mr_sc_task_unqueue(struct mr_sched *s, uint32_t task);
/* Off the worker's list; the two facts "sent" and "covered" change, nothing else. */
void mr_sc_task_unsend(struct mr_sched *s, uint32_t task);
void mr_sc_task_cancel_sent(struct mr_sched *s, uint32_t task); /* tells the worker, unsends */
void mr_sc_task_requeue(struct mr_sched *s, uint32_t task);     /* unsent: wait or be ready */
/* task/fused.c: values that are used up where they were made */
uint32_t mr_sc_uses(const struct mr_sched *s, uint32_t task); /* to be sent along; 0: it is told */
void mr_sc_used_up(struct mr_sched *s, uint32_t task);        /* its worker says so */
void mr_sc_use_release(struct mr_sched *s, uint32_t task);    /* off its worker: nobody needs it */
void mr_sc_use_other(struct mr_sched *s, uint32_t task);      /* somebody else wants the value */
void mr_sc_task_inputs_done(struct mr_sched *s, uint32_t task);
/* Its value record stands. by_worker: that completed what was sent to it, or NONE. */
void mr_sc_task_done(struct mr_sched *s, uint32_t task, uint32_t by_worker);
bool mr_sc_is_still_there(struct mr_sched *s, uint32_t task); /* its value, where it was kept */
void mr_sc_task_lost(struct mr_sched *s, uint32_t task);      /* its value is gone */
void mr_sc_task_again(struct mr_sched *s, uint32_t task);     /* of a released one: make it again */
void mr_sc_task_fail(struct mr_sched *s, uint32_t task, const struct story *story);

/* task/assign.c: rows of batches */
struct mr_sched_batch *mr_sc_batch(struct mr_sched *s, uint32_t worker);
struct mr_sched_batch *mr_sc_batch_more(struct mr_sched *s, uint32_t worker); /* to write `more` */
struct mr_sched_store_batch *mr_sc_store_batch(struct mr_sched *s, uint32_t store);
void mr_sc_refs_add(struct mr_sched_refs_out *r, uint64_t job, uint32_t index, uint32_t attempt);
void mr_sc_send(struct mr_sched *s, uint32_t task, uint32_t worker);
void mr_sc_send_adopted(struct mr_sched *s, uint32_t task, uint32_t worker);
void mr_sc_send_value(struct mr_sched *s, uint32_t task, uint32_t worker);
void mr_sc_send_bytes(struct mr_sched *s, uint32_t task, uint32_t worker, struct mr_str bytes);
void mr_sc_send_fetch(struct mr_sched *s, uint32_t task);

/* place/place.c: where */
uint64_t mr_sc_estimate(const struct mr_sched *s, uint32_t op);
bool mr_sc_may_run(const struct mr_sched *s, uint32_t worker, const struct class *c);
bool mr_sc_is_better(
    const struct mr_sched *s, uint32_t task, uint32_t worker, uint32_t from, uint64_t taken);
bool mr_sc_has_room(const struct mr_sched *s, uint32_t worker, const struct task *t);
bool mr_sc_has_room_again(const struct mr_sched *s, uint32_t worker, const struct task *t);
uint32_t mr_sc_place(struct mr_sched *s, uint32_t task);        /* a worker, or NONE */
bool mr_sc_has_place(struct mr_sched *s, const struct task *t); /* memory aside */
bool mr_sc_is_universal(const struct mr_sched *s, const struct task *t);

/* state/placement_class.c */
int mr_sc_class_of(struct mr_sched *s, uint32_t op, const struct mr_task_options *o,
    uint32_t *class, struct mr_error *e);
void mr_sc_class_drop(struct mr_sched *s, uint32_t class);
void mr_sc_park(struct mr_sched *s, uint32_t task);
void mr_sc_unpark(struct mr_sched *s, uint32_t task);
uint32_t mr_sc_resource(struct mr_sched *s, struct mr_str name); /* NONE: the table is full */

/* place/dispatch.c */
void mr_sc_dispatch(struct mr_sched *s);
void mr_sc_steal(struct mr_sched *s);

/* cluster/worker.c, cluster/register.c, cluster/completion.c, cluster/worker_message.c */
void mr_sc_worker_register(struct mr_sched *s, const struct mr_sched_register *r);
struct worker *mr_sc_worker_new(struct mr_sched *s, uint32_t slot, uint64_t incarnation);
void mr_sc_worker_name(struct mr_sched *s, uint32_t slot, struct mr_str name);
/* The place of the next worker, the first that is free; NONE: there are as many as may be. */
uint32_t mr_sc_worker_place(struct mr_sched *s);
void mr_sc_worker_free(struct mr_sched *s, uint32_t slot);
uint32_t mr_sc_worker_find(const struct mr_sched *s, uint64_t incarnation);
void mr_sc_worker_message(struct mr_sched *s, const struct mr_sched_message *m);
void mr_sc_worker_closed(struct mr_sched *s, uint32_t slot, uint64_t incarnation);
void mr_sc_worker_lost(
    struct mr_sched *s, uint32_t slot, const struct mr_sched_refs *ran, const char *why);
void mr_sc_worker_retire(struct mr_sched *s, uint32_t slot, uint64_t incarnation);
void mr_sc_worker_leases(struct mr_sched *s);
void mr_sc_completed(struct mr_sched *s, uint32_t worker, const struct mr_sched_completed *c,
    struct mr_sched_refs_out *adopt);
uint32_t mr_sc_op(struct mr_sched *s, struct mr_str name); /* made if new; 0: the table is full */

/* cluster/store.c */
void mr_sc_store_replay(struct mr_sched *s, uint64_t incarnation, struct mr_str node);
uint32_t mr_sc_store(struct mr_sched *s, uint64_t incarnation, struct mr_str address); /* 0: none */
void mr_sc_store_register(struct mr_sched *s, const struct mr_sched_store *st);
void mr_sc_store_heard(struct mr_sched *s, const struct mr_sched_store *st, bool is_connected);
void mr_sc_store_leases(struct mr_sched *s);
/* A task that makes a large result of about `bytes` runs, its inputs are there; 0: no more. */
void mr_sc_store_coming(struct mr_sched *s, uint32_t task, uint64_t bytes);
void mr_sc_objects_lost(struct mr_sched *s, const struct mr_sched_objects *o);
void mr_sc_objects_unheld(struct mr_sched *s, const struct mr_sched_objects *o);
/* cluster/store_grace.c: the task could not use a store. May it be tried again? */
bool mr_sc_store_may_return(struct mr_sched *s, uint32_t task);

/* cluster/value_scan.c: through all values, a stretch a step; ids NULL: of the store */
void mr_sc_scan(struct mr_sched *s, enum scan_type type, uint32_t store, const mr_object_id *ids,
    uint32_t count);
void mr_sc_scan_replaced(struct mr_sched *s, uint32_t store, uint32_t heir);
void mr_sc_scan_tick(struct mr_sched *s);
void mr_sc_scan_fini(struct mr_sched *s);

/* job/job.c, job/plan.c */
uint32_t mr_sc_job_find(const struct mr_sched *s, uint64_t id); /* slot, or NONE */
void mr_sc_job_submit(struct mr_sched *s, const struct mr_sched_event *ev);
void mr_sc_job_plan(struct mr_sched *s); /* of the last step, if one was submitted in it */
uint32_t mr_sc_job_add(
    struct mr_sched *s, uint64_t id, struct mr_graph **graph, struct mr_error *e);
uint32_t mr_sc_request_find(const struct mr_sched *s, struct mr_str id);
void mr_sc_job_unlist(struct mr_sched *s, uint32_t job);
void mr_sc_job_keep(struct mr_sched *s);
void mr_sc_job_drop(struct mr_sched *s, uint32_t job); /* frees it whole; its sweep is over */
void mr_sc_job_request(struct mr_sched *s, const struct mr_sched_event *ev);
void mr_sc_job_want(struct mr_sched *s, const struct mr_sched_event *ev);
void mr_sc_job_end(struct mr_sched *s, uint32_t job, enum mr_job_state state);
void mr_sc_job_target_final(struct mr_sched *s, uint32_t job);
void mr_sc_job_started(struct mr_sched *s, uint32_t job);
void mr_sc_job_sweep(struct mr_sched *s, uint32_t tasks_max);
void mr_sc_job_deadlines(struct mr_sched *s);
void mr_sc_job_forget(struct mr_sched *s, uint32_t job);
void mr_sc_plan(struct mr_sched *s, uint32_t job);
int mr_sc_resolve(struct mr_sched *s, uint32_t job, const struct mr_sched_resolved *r, uint32_t n,
    struct mr_error *e);

/* task/shared_key.c: keys shared by the jobs of a namespace */
int mr_sc_join(struct mr_sched *s, uint32_t job, struct mr_error *e);
int mr_sc_join_again(struct mr_sched *s, uint32_t job); /* to be retried */
void mr_sc_join_settle(struct mr_sched *s, uint32_t job);
void mr_sc_join_journal(struct mr_sched *s, uint32_t job);
uint32_t mr_sc_joins(const struct mr_sched *s, uint32_t task); /* tasks joined to this one */
bool mr_sc_is_alias(const struct mr_sched *s, uint32_t task);
uint32_t mr_sc_join_source(const struct mr_sched *s, uint32_t task);
bool mr_sc_join_is_waiting(const struct mr_sched *s, uint32_t source); /* any joined task */
void mr_sc_join_wait(struct mr_sched *s, uint32_t task);               /* of an alias, released */
/* It has its value; `bytes` are those if they are just passing by. */
void mr_sc_join_done(struct mr_sched *s, uint32_t source, struct mr_str bytes);
void mr_sc_join_failed(struct mr_sched *s, uint32_t source); /* it never will */
void mr_sc_join_leave(struct mr_sched *s, uint32_t task);    /* the joined task needs it no more */
void mr_sc_join_enter(struct mr_sched *s, uint32_t job);
void mr_sc_join_drop_job(struct mr_sched *s, uint32_t job);
bool mr_sc_join_is_held(const struct mr_sched *s, uint32_t job); /* by a job that is kept */
bool mr_sc_join_forget_all(struct mr_sched *s, uint32_t job);    /* and all that hold it, or none */

/* state/running.c */
void mr_sc_worker_is(struct mr_sched *s, struct worker *w, uint32_t state); /* W_CONNECTED … */
uint64_t mr_sc_slots_us(const struct mr_sched *s); /* all slots ever, in slots x microseconds */
void mr_sc_slots_begin(struct mr_sched *s, struct job *j); /* it runs from now on */
void mr_sc_slots_end(struct mr_sched *s, struct job *j);   /* it does not any more */
void mr_sc_began(struct mr_sched *s, uint32_t worker, uint32_t task, mr_time at);
void mr_sc_span_lost(struct mr_sched *s, uint32_t task); /* it ran, and its worker is lost */

/* state/failure.c */
struct story mr_sc_story_make(
    struct mr_sched *s, uint32_t task, int code, struct mr_str message, const char *worker);
void mr_sc_story_more(struct story *st, struct mr_str arguments, struct mr_str log);
void mr_sc_story_put(struct mr_sched *s, uint32_t task, const struct story *from);
const struct story *mr_sc_story(const struct mr_sched *s, uint32_t task); /* or NULL */
void mr_sc_story_drop(struct mr_sched *s, uint32_t task);
void mr_sc_story_drop_job(struct mr_sched *s, uint32_t job);
void mr_sc_story_copy(struct story *to, const struct story *from);
void mr_sc_story_fini(struct story *st);

/* state/effect.c */
struct mr_sched_note *mr_sc_note(struct mr_sched *s, enum mr_sched_note_type type);
void mr_sc_note_text(struct mr_sched *s, struct mr_sched_note *n, const char *text);
void mr_sc_reply(struct mr_sched *s, uint64_t ticket, mr_job_id job, int code, const char *text);

/* task/journal.c, state/record.c, job/replay.c */
void mr_sc_journal_job(struct mr_sched *s, uint32_t job, const struct mr_sched_submit *sub);
void mr_sc_journal_state(struct mr_sched *s, uint32_t job);
void mr_sc_journal_erred(struct mr_sched *s, uint32_t task, const struct story *st);
void mr_sc_journal_forgotten(struct mr_sched *s, uint64_t id);
uint64_t mr_sc_journal_worker(struct mr_sched *s, uint32_t slot, bool is_lost);
void mr_sc_journal_epoch(struct mr_sched *s);
void mr_sc_journal_store(struct mr_sched *s, uint32_t store);
void mr_sc_journal_value(struct mr_sched *s, uint32_t task); /* written when the turn ends */
void mr_sc_journal_part(struct mr_sched *s, uint32_t task);  /* what the next one refers to */
void mr_sc_journal_flush(struct mr_sched *s);
void mr_sc_journal_tell(struct mr_sched *s);
void mr_sc_journal_acked(struct mr_sched *s, uint64_t sequence);
void mr_sc_promise(struct mr_sched *s, const struct pending *p);
void mr_sc_note_ready(struct mr_sched *s, uint32_t task);
void mr_sc_record_job(const struct job *j, const struct mr_sched_resolved *r, uint32_t n,
    uint64_t graph_bytes, struct mr_buf *out);
void mr_sc_record_value(const struct mr_sched *s, uint32_t task, struct mr_buf *out);
void mr_sc_record_erred(
    const struct mr_sched *s, uint32_t task, const struct story *st, struct mr_buf *out);
void mr_sc_record_state(const struct mr_sched *s, const struct job *j, struct mr_buf *out);
void mr_sc_replay(struct mr_sched *s, uint32_t type, struct mr_str bytes, uint64_t sequence);
void mr_sc_replay_end(struct mr_sched *s, uint64_t sequence);
void mr_sc_recover_tick(struct mr_sched *s);

static inline uint64_t mr_sc_wall(const struct mr_sched *s)
{
    return s->now + s->wall_offset;
}
