/* Keys shared by the jobs of a namespace. A task of a later job (the sharing task) takes the value
 * of an earlier job's task (its source). An alias is a node that only refers to a key of another
 * job. For the core's own files only. */
#pragma once

#include "services/scheduler/core/state/state.h"

bool mr_sched__is_alias(const struct mr_sched *s, uint32_t task);
uint32_t mr_sched__shared_key_source(const struct mr_sched *s, uint32_t task);
/* True: a sharing task waits for the source. */
bool mr_sched__shared_key_is_waited(const struct mr_sched *s, uint32_t source);
/* Returns the number of tasks that share the task's value. */
uint32_t mr_sched__shared_key_users(const struct mr_sched *s, uint32_t task);
/* Ends the sharing, because the sharing task no longer needs the value. */
void mr_sched__shared_key_leave(struct mr_sched *s, uint32_t task);
/* Called when the source has a value. `bytes`: the value's bytes if the caller has them, else
 * empty. */
void mr_sched__shared_key_done(struct mr_sched *s, uint32_t source, struct mr_str bytes);
/* Makes the sharing tasks run by themselves, because the source will have no value. */
void mr_sched__shared_key_failed(struct mr_sched *s, uint32_t source);
int mr_sched__shared_key_link(struct mr_sched *s, uint32_t job, struct mr_error *e);
/* Makes an alias without a value wait for its source. */
void mr_sched__shared_key_wait(struct mr_sched *s, uint32_t task);
/* Links the aliases of a failed job to their sources again, before the job is retried. Fails with
 * MR_ESTATE if a key that the job refers to has no value and will get none. */
int mr_sched__shared_key_retry(struct mr_sched *s, uint32_t job);
void mr_sched__shared_key_settle(struct mr_sched *s, uint32_t job);
void mr_sched__shared_key_journal(struct mr_sched *s, uint32_t job);
void mr_sched__shared_key_enter(struct mr_sched *s, uint32_t job);
void mr_sched__shared_key_drop_job(struct mr_sched *s, uint32_t job);
/* True: a job that is not being forgotten shares keys of this job. */
bool mr_sched__shared_key_is_held(const struct mr_sched *s, uint32_t job);
/* Forgets the job together with all jobs that share its keys. False: one of these jobs has to stay,
 * because no client has asked to forget it, so all stay. */
bool mr_sched__shared_key_forget_all(struct mr_sched *s, uint32_t job);
