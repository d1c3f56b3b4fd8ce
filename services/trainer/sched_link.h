/* What the trainer asks of the scheduler: submit, look at, cancel and forget the two jobs of a
 * session. Each question is asked once and its answer becomes one event of the core, which knows
 * when to ask again; only forgetting, which has no answer, is tried again here. Never blocks; on
 * the loop's thread. */
#pragma once

#include "services/trainer/core_event.h"
#include "services/trainer/shell.h"

struct mr_sched_link;

struct mr_sched_link_config {
    struct mr_rpc_channel *channel; /* NULL: there is no scheduler: every answer says so */
    /* An event for the core; texts in it are lent for the call. */
    void (*on_event)(void *ctx, struct mr_trainer_event *ev);
    void *ctx;
};

struct mr_sched_link *mr_sched_link_new(const struct mr_sched_link_config *config);
void mr_sched_link_free(struct mr_sched_link **link); /* after the channel: no call is open */

struct mr_sched_link_job {
    mr_training_id session;
    bool roles;             /* the job of roles; else the graph's */
    mr_job_id job;          /* of all but submit */
    struct mr_str text;     /* of cancel: why */
    struct mr_str document; /* of submit: role_job.h */
    struct mr_str trainer;  /* of submit */
};

void mr_sched_link_submit(struct mr_sched_link *l, const struct mr_sched_link_job *j);
void mr_sched_link_poll(struct mr_sched_link *l, const struct mr_sched_link_job *j);
void mr_sched_link_cancel(struct mr_sched_link *l, const struct mr_sched_link_job *j);
void mr_sched_link_forget(struct mr_sched_link *l, const struct mr_sched_link_job *j);

mr_time mr_sched_link_turn(struct mr_sched_link *l, mr_time now); /* when to come again */
