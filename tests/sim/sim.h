/* Functions that files of the simulator share, grouped by the file that defines them. The state
 * that they share is in world.h. Words of the simulator:
 *
 *   spec      a job that a client of the simulation is to submit
 *   dice      random numbers, which the seed determines
 *   life      of the scheduler: from a start of its process to the next crash
 *   planted   a planted bug (enum sim_plant) breaks a rule on purpose; a check must find the bug
 *   suspect   a task that ran when a worker's process died */
#pragma once

#include "graph/build/builder.h"
#include "tests/sim/world.h"

#include <inttypes.h>
#include <string.h>

extern struct sim *sim_current;

/* world.c */
void sim_push(struct sim *s, mr_duration after, struct mr_virtual_event ev);
/* Adds a line to the trace; the last lines are kept. */
void sim_say(struct sim *s, const char *fmt, ...) MR_PRINTF(2, 3);
MR_NORETURN void sim_fail(struct sim *s, const char *fmt, ...) MR_PRINTF(2, 3);
void sim_story(const char *what);
uint64_t sim_below(struct sim *s, uint64_t n);
bool sim_chance(struct sim *s, uint32_t in);

/* main.c */
/* Handles events until the time `until`. With stop_when_content, stops earlier, when all jobs have
 * ended (or are forgotten, if s->is_forgetting). Returns true if stop_when_content is set and this
 * is the state of all jobs at the end. */
bool sim_run(struct sim *s, mr_time until, bool stop_when_content);
void sim_configure(struct sim *s);
void sim_tear_down(struct sim *s);

/* schedules.c */
mr_duration sim_schedules_duration(struct sim *s, const struct mr_strand_item *item);
int sim_schedules(const char *path);

/* graphs.c */
extern const char *const sim_ops[OPS];
extern const struct mr_graph_catalogue sim_catalogue;
void sim_spec_make(struct sim *s, uint32_t spec);
void sim_specs_expect(struct sim *s);
struct sim_job *sim_job_of(struct sim *s, uint64_t id);
uint64_t sim_value(enum sim_op op, struct mr_str args, const uint64_t *in, uint32_t n);
uint64_t sim_value_of_pack(struct mr_str pack);

/* loops.c */
uint32_t sim_loop_make(struct sim *s, struct mr_builder *b, uint32_t spec, uint32_t out[2]);
bool sim_loop_expect(const struct mr_graph *g, uint32_t i, struct sim_task *task);
uint64_t sim_loop_identity(struct mr_str args, const uint64_t *in, uint32_t n);

void sim_loop_record(struct sim *s, struct mr_str record, bool is_read);
void sim_loop_forget(struct sim *s);
struct mr_str sim_loop_plant(struct sim *s, struct mr_str record, unsigned char out[24]);

/* templates.c */
void sim_templates_install(struct sim *s);
void sim_templates_fini(struct sim *s);
void sim_template_instance(struct sim *s, struct sim_spec *x, uint32_t number);
void sim_template_sent(
    struct sim *s, uint32_t session, uint64_t job, uint32_t index, uint32_t attempt);
uint64_t sim_template_other(struct sim *s, uint64_t job);
void sim_template_again(struct sim *s, uint32_t round);
void sim_template_placed(struct sim *s, uint32_t round);

/* shared.c */
void sim_shared_make(struct sim *s);
uint32_t sim_shared_of(const struct sim *s, struct mr_str key);
uint32_t sim_shared_use(struct sim *s, struct mr_builder *b, bool has_namespace, uint32_t *out);
bool sim_shared_revives(struct sim *s, const struct mr_graph *g);
bool sim_shared_is_refused(struct sim *s, const struct mr_graph *g, int code);
void sim_name_set(struct sim *s, struct mr_str name, mr_graph_hash definition, mr_object_id object,
    uint64_t bytes);
uint32_t sim_names_resolve(
    const struct sim *s, const struct mr_graph *g, struct mr_sched_resolved *out);

/* digest.c */
void sim_digest_begin(struct sim *s);
void sim_digest_event(struct sim *s, const struct mr_virtual_event *ev);
void sim_digest_down(struct sim *s, uint32_t session, const struct mr_ws_down *m);
void sim_digest_up(struct sim *s, uint32_t session, const struct mr_ws_up *m);
void sim_digest_record(struct sim *s, const struct mr_sched_record_head *head, const void *p);

/* sched.c, journal.c */
void sim_sched_start(struct sim *s);
void sim_sched_crash(struct sim *s);
void sim_sched_count(struct sim *s);
void sim_sched_step(struct sim *s, struct mr_sched_event *ev);
void sim_sched_turn(struct sim *s);
bool sim_sched_knows(struct sim *s, uint32_t name);
void sim_up(struct sim *s, uint32_t session, struct mr_virtual_message *m);
void sim_up_end(struct sim *s, uint32_t session);
void sim_flush(struct sim *s, uint32_t slot);
void sim_journal_take(struct sim *s);
void sim_journal_replay(struct sim *s);
void sim_journal_lose_tail(struct sim *s);
void sim_journal_compact(struct sim *s);
void sim_journal_ack(struct sim *s, uint64_t upto);
void sim_journal_empty(struct sim *s);
void sim_journal_away(struct sim *s, bool is_away);
void sim_journal_fini(struct sim_journal *j);
void sim_journal_save(struct sim *s);
void sim_journal_rewind(struct sim *s);
void sim_journal_check_job(struct sim *s, uint64_t id, uint32_t spec);
void sim_journal_check_adopted(struct sim *s, const struct mr_sched_refs_out *adopt);
void sim_journal_check_epoch(struct sim *s, const struct mr_ws_register *r);

/* guard.c */
uint64_t sim_losses(const struct sim *s);
void sim_guard_name(struct sim *s, struct sim_job *j, const struct mr_sched_resolved *r);
void sim_guard_record(struct sim *s, uint32_t type, struct mr_str record);
void sim_guard_holding(struct sim *s, uint32_t session, const struct mr_ws_completed *c);
void sim_guard_replayed(struct sim *s);
void sim_guard_released(struct sim *s, uint64_t job, uint32_t index);
void sim_guard_retried(struct sim *s, struct sim_job *j);
void sim_guard_unheld(struct sim *s, uint64_t object);
void sim_guard_sent(
    struct sim *s, uint32_t session, uint64_t job, uint32_t index, uint32_t attempt);
void sim_guard_start(
    struct sim *s, struct sim_job *j, uint32_t index, uint32_t proc, uint32_t attempt);

/* wire.c */
struct mr_virtual_message *sim_wire_down(
    struct sim *s, struct sim_session *x, const struct mr_sched_batch *b);
struct mr_virtual_message *sim_wire_up(
    struct sim *s, const struct sim_proc *p, const struct mr_ws_up *up);

/* proc.c, exec.c */
void sim_proc_start(struct sim *s, uint32_t name);
void sim_proc_kill(struct sim *s, uint32_t proc);
void sim_proc_step(struct sim *s, struct sim_proc *p, const struct mr_worker_event *ev);
void sim_proc_turn(struct sim *s, struct sim_proc *p);
void sim_session_cut(struct sim *s, uint32_t session, bool lose);
void sim_exec_give(struct sim *s, struct sim_proc *p, struct mr_strand *strand);
void sim_exec_move(struct sim *s, struct sim_proc *p, uint32_t from, uint32_t to);
void sim_exec_take(struct sim *s, struct sim_proc *p, uint32_t strand, uint32_t keep);
void sim_exec_look(struct sim *s, struct sim_proc *p, uint32_t strand);
void sim_exec_stop(struct sim *s, struct sim_proc *p, uint32_t strand, uint32_t at);
void sim_exec_end(struct sim *s, struct sim_proc *p, uint32_t slot, uint64_t serial);
void sim_exec_drop(struct sim *s, struct sim_proc *p);

/* stores.c */
void sim_store_start(struct sim *s, uint32_t node);
void sim_store_connect(struct sim *s, uint32_t node);
bool sim_store_is_alive(const struct sim *s, uint64_t store);
void sim_store_cut(struct sim *s, uint32_t node);
void sim_store_lose(struct sim *s, uint32_t node);
void sim_store_send(struct sim *s, uint32_t number);
void sim_store_down(struct sim *s, const struct mr_virtual_event *ev);
void sim_store_client_gone(struct sim *s, uint32_t proc);
void sim_stores_beat(struct sim *s);
uint64_t sim_stores_leftover(struct sim *s, uint32_t *node);
uint64_t sim_object_make(struct sim *s, uint32_t proc, uint64_t value, uint64_t bytes);
bool sim_object_has(struct sim *s, uint64_t number, uint64_t store);
bool sim_object_is_somewhere(struct sim *s, uint64_t number);
void sim_object_pin(struct sim *s, uint64_t number, uint64_t store, bool on);
void sim_object_drop(struct sim *s, uint64_t number, uint64_t store);
void sim_object_persist(struct sim *s, uint64_t number, uint64_t store);
void sim_object_lose(struct sim *s);
void sim_object_missed(struct sim *s, mr_object_id id, uint64_t store);

/* client.c */
void sim_client_submit(struct sim *s, uint32_t spec);
void sim_client_note(struct sim *s, const struct mr_sched_note *n);
void sim_client_act_on(struct sim *s, uint32_t spec, enum sim_wish wish);
void sim_client_forget(struct sim *s);
bool sim_client_is_content(struct sim *s);
void sim_client_complain(struct sim *s);
void sim_client_values(struct sim *s, bool want, bool anew);

/* fair.c */
void sim_fair_begin(struct sim *s);
bool sim_fair_add(struct sim *s);
bool sim_fair_check(struct sim *s);
void sim_fair_sent(struct sim *s, uint64_t job);

/* faults.c */
/* the bits of faults_mask that stand for crashes of the scheduler */
extern const uint32_t sim_crashes;
extern const uint32_t sim_deaths_of_stores;
void sim_fault(struct sim *s);
void sim_calm(struct sim *s);
bool sim_tears(struct sim *s, struct sim_proc *p, const struct sim_run *r);
