/* Keys shared by the jobs of a namespace. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

bool mr_sched__is_alias(const struct mr_sched *s, uint32_t task);
uint32_t mr_sched__shared_key_source(const struct mr_sched *s, uint32_t task);
bool mr_sched__shared_key_is_waited(
    const struct mr_sched *s, uint32_t source); /* true: a sharing task waits for it */
uint32_t mr_sched__shared_key_users(
    const struct mr_sched *s, uint32_t task); /* number of tasks that share its value */
void mr_sched__shared_key_leave(
    struct mr_sched *s, uint32_t task); /* the sharing task no longer needs the value */
/* The source has its value. `bytes`: of the value, if the caller has them. */
void mr_sched__shared_key_done(struct mr_sched *s, uint32_t source, struct mr_str bytes);
/* The source will have no value. */
void mr_sched__shared_key_failed(struct mr_sched *s, uint32_t source);
int mr_sched__shared_key_link(struct mr_sched *s, uint32_t job, struct mr_error *e);
/* For an alias without a value. */
void mr_sched__shared_key_wait(struct mr_sched *s, uint32_t task);
/* For a job that is retried. */
int mr_sched__shared_key_retry(struct mr_sched *s, uint32_t job);
void mr_sched__shared_key_settle(struct mr_sched *s, uint32_t job);
void mr_sched__shared_key_journal(struct mr_sched *s, uint32_t job);
void mr_sched__shared_key_enter(struct mr_sched *s, uint32_t job);
void mr_sched__shared_key_drop_job(struct mr_sched *s, uint32_t job);
bool mr_sched__shared_key_is_held(
    const struct mr_sched *s, uint32_t job); /* by a job that is not being forgotten */
bool mr_sched__shared_key_forget_all(struct mr_sched *s,
    uint32_t job); /* with all jobs that hold it; false: one of them stays, so all do */
