/* What the trainer asks of the scheduler: submit, look at, cancel and forget the jobs of a
 * session. Each question is asked once and its answer becomes one event of the core, which knows
 * when to ask again; only forgetting, which has no answer, is tried again here, and cancels what it
 * finds running. Never blocks; on the loop's thread. */
#pragma once

#include "services/trainer/core/event.h"
#include "services/trainer/shell/shell.h"

struct mr_sched_link;

enum mr_sched_link_which { /* of a session's jobs: link/role_job.h */
    MR_LINK_GRAPH,
    MR_LINK_ROLES,
    MR_LINK_FEED,
};

struct mr_sched_link_config {
    /* Of the owner; NULL in it: there is no scheduler, and every request fails. */
    struct mr_rpc_channel *const *channel;
    /* The answer, as an event for the core; texts in it are lent for the call. */
    void (*on_event)(void *ctx, struct mr_trainer_event *ev);
    void *ctx;
};

struct mr_sched_link *mr_sched_link_new(const struct mr_sched_link_config *config);
void mr_sched_link_free(struct mr_sched_link **link); /* after the channel: no call is open */

struct mr_sched_link_job {
    mr_training_id session;
    enum mr_sched_link_which which;
    uint64_t
        created_ns;     /* the session's, of submit: with it a request id never means another job */
    mr_job_id job;      /* of all but submit */
    struct mr_str text; /* of cancel: why */
    struct mr_str document; /* of submit: link/role_job.h */
    struct mr_str trainer;  /* of submit */
};

void mr_sched_link_submit(struct mr_sched_link *l, const struct mr_sched_link_job *j);
void mr_sched_link_poll(struct mr_sched_link *l, const struct mr_sched_link_job *j);
void mr_sched_link_cancel(struct mr_sched_link *l, const struct mr_sched_link_job *j);
void mr_sched_link_forget(struct mr_sched_link *l, const struct mr_sched_link_job *j);

mr_time mr_sched_link_turn(struct mr_sched_link *l, mr_time now); /* when to come again */
