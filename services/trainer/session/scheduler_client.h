/* The trainer's requests to the scheduler: submit, poll, cancel and forget the jobs of a session.
 * Each request is sent once, and its answer becomes one event of the core, which decides about
 * retries. Only forgetting, which has no answer, is retried here, and cancels a job that still
 * runs. Never blocks; runs on the loop's thread. */
#pragma once

#include "services/trainer/core/event.h"
#include "services/trainer/shell/shell.h"

struct mr_sched_link;

enum mr_sched_link_which { /* the jobs of a session (link/role_job.h) */
    MR_LINK_GRAPH,
    MR_LINK_ROLES,
    MR_LINK_FEED,
};

struct mr_sched_link_config {
    /* The owner's channel. If it is NULL, there is no scheduler and every request fails. */
    struct mr_rpc_channel *const *channel;
    /* Gives an answer to the core. The event's texts are lent for the call. */
    void (*on_event)(void *ctx, struct mr_trainer_event *ev);
    void *ctx;
};

struct mr_sched_link *mr_sched_link_new(const struct mr_sched_link_config *config);
/* After the channel is closed: no call may be open. */
void mr_sched_link_free(struct mr_sched_link **link);

struct mr_sched_link_job {
    mr_training_id session;
    enum mr_sched_link_which which;
    uint64_t created_ns;    /* submit: the session's; makes the request id unique */
    mr_job_id job;          /* all but submit */
    struct mr_str text;     /* cancel: the reason */
    struct mr_str document; /* submit: the document with defaults (link/role_job.h) */
    struct mr_str trainer;  /* submit */
};

void mr_sched_link_submit(struct mr_sched_link *l, const struct mr_sched_link_job *j);
void mr_sched_link_poll(struct mr_sched_link *l, const struct mr_sched_link_job *j);
void mr_sched_link_cancel(struct mr_sched_link *l, const struct mr_sched_link_job *j);
void mr_sched_link_forget(struct mr_sched_link *l, const struct mr_sched_link_job *j);

/* Returns the time of the next turn. */
mr_time mr_sched_link_turn(struct mr_sched_link *l, mr_time now);
