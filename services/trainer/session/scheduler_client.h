/* The trainer's requests to the scheduler: submit, poll, cancel and forget the jobs of a session.
 * Each request is sent once, and its answer becomes one event of the core, which decides about
 * retries. Forgetting is different: it yields no event. It is repeated here until it succeeds, and
 * it cancels a job that still runs. No function blocks; all run on the loop's thread. */
#pragma once

#include "services/trainer/core/event.h"
#include "services/trainer/shell/shell.h"

struct mr_sched_link;

enum mr_sched_link_which { /* names the jobs of a session (link/role_job.h) */
    MR_LINK_GRAPH,
    MR_LINK_ROLES,
    MR_LINK_FEED,
};

struct mr_sched_link_config {
    /* Points to the trainer's channel to the scheduler. If the channel is NULL, there is no
     * scheduler, and every request fails. */
    struct mr_rpc_channel *const *channel;
    /* Gives an answer to the core. The event's texts are lent for the call. */
    void (*on_event)(void *ctx, struct mr_trainer_event *ev);
    void *ctx;
};

struct mr_sched_link *mr_sched_link_new(const struct mr_sched_link_config *config);
/* Frees the client. Called after the channel is closed, so no call is open. */
void mr_sched_link_free(struct mr_sched_link **link);

struct mr_sched_link_job {
    mr_training_id session;
    enum mr_sched_link_which which;
    /* only in submit: time of the session's creation, which makes the request id unique */
    uint64_t created_ns;
    mr_job_id job;          /* except in submit */
    struct mr_str text;     /* only in cancel: the reason */
    struct mr_str document; /* only in submit: the document with defaults (link/role_job.h) */
    struct mr_str trainer;  /* only in submit: the address of the trainer */
};

void mr_sched_link_submit(struct mr_sched_link *l, const struct mr_sched_link_job *j);
void mr_sched_link_poll(struct mr_sched_link *l, const struct mr_sched_link_job *j);
void mr_sched_link_cancel(struct mr_sched_link *l, const struct mr_sched_link_job *j);
void mr_sched_link_forget(struct mr_sched_link *l, const struct mr_sched_link_job *j);

/* Reports requests that could not be sent. Repeats failed requests to forget a job, each after its
 * pause. Returns the time of the next call, or MR_NEVER if nothing is due. */
mr_time mr_sched_link_turn(struct mr_sched_link *l, mr_time now);
