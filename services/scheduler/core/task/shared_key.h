/* Keys shared by the jobs of a namespace. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

bool mr_sched__is_alias(const struct mr_sched *s, uint32_t task);
uint32_t mr_sched__shared_key_source(const struct mr_sched *s, uint32_t task);
bool mr_sched__shared_key_is_waited(
    const struct mr_sched *s, uint32_t source); /* any joined task */
uint32_t mr_sched__shared_key_users(
    const struct mr_sched *s, uint32_t task); /* tasks joined to this one */
void mr_sched__shared_key_leave(
    struct mr_sched *s, uint32_t task); /* the joined task needs it no more */
/* It has its value; `bytes` are those if they are just passing by. */
void mr_sched__shared_key_done(struct mr_sched *s, uint32_t source, struct mr_str bytes);
void mr_sched__shared_key_failed(struct mr_sched *s, uint32_t source); /* it never will */
int mr_sched__shared_key_link(struct mr_sched *s, uint32_t job, struct mr_error *e);
void mr_sched__shared_key_wait(struct mr_sched *s, uint32_t task); /* of an alias, released */
int mr_sched__shared_key_retry(struct mr_sched *s, uint32_t job);  /* to be retried */
void mr_sched__shared_key_settle(struct mr_sched *s, uint32_t job);
void mr_sched__shared_key_journal(struct mr_sched *s, uint32_t job);
void mr_sched__shared_key_enter(struct mr_sched *s, uint32_t job);
void mr_sched__shared_key_drop_job(struct mr_sched *s, uint32_t job);
bool mr_sched__shared_key_is_held(
    const struct mr_sched *s, uint32_t job); /* by a job that is kept */
bool mr_sched__shared_key_forget_all(
    struct mr_sched *s, uint32_t job); /* and all that hold it, or none */
