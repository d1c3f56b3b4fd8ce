/* The agent of a role (a parameter server, a worker or a scorer) is a thread that joins the
 * session, reports the role's state, and keeps the trainer's latest answer. While the trainer does
 * not answer, the agent tries again and the role goes on. The role's thread may call every
 * function. A function waits for the network only if its comment says so. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "base/time.h"
#include "host/flag.h"
#include "millrace/v1/trainings.pb-c.h"
#include "train/feed/rpc.h"

#define MR_AGENT_REPORT_EVERY (250 * MR_MS)

struct mr_agent;

struct mr_agent_config { /* the struct and its texts are copied */
    const char *trainer;
    const struct mr_credential *credential; /* lent; may be NULL */
    const char *session;
    Millrace__V1__TrainingRole role;
    uint32_t index;
    const char *task; /* job, index and attempt, such as "j1kq07ab-7/0/1" */
    const char *address;
    const char *node;
    const char *socket;       /* path of the UNIX socket of the role's process; "": none */
    struct mr_stop cancelled; /* called on the agent's and on the role's thread */
    /* Both flags are lent. `stop` is set when the task was cancelled or the role has to end.
     * `is_void` is set whenever `stop` is set, and also when the session goes back to a checkpoint;
     * the role clears `is_void`. */
    struct mr_flag *is_void, *stop;
};

struct mr_agent *mr_agent_start(const struct mr_agent_config *c);
/* Stops the agent. If the trainer has not acknowledged the latest finished phase, failure or
 * checkpoint, waits for this acknowledgement: at most 2 s, or 0.5 s if the task was cancelled. */
void mr_agent_stop(struct mr_agent **agent);

/* ---- answers of the trainer ------------------------------------------------------------------ */

struct mr_agent_view {
    uint32_t generation;    /* grows when a member comes or goes */
    uint32_t restore_epoch; /* grows when the session goes back to a checkpoint */
    Millrace__V1__TrainingPhase phase;
    /* number of training workers that are not lost, by the trainer's last answer to Join */
    uint32_t workers_live;
    uint64_t joined; /* number of memberships that the agent has got so far */
    bool is_over;    /* another attempt has replaced this role, or the session has ended */
    const char *why; /* lent until mr_agent_stop */
};

/* Copies the trainer's latest answers to `*out`. */
void mr_agent_look(struct mr_agent *a, struct mr_agent_view *out);

struct mr_membership { /* the members in one generation of the session */
    struct mr_pb_arena arena;
    const Millrace__V1__JoinResponse *m;
};

/* Gives the latest membership to the caller; NULL: no new one has come since the last call. */
struct mr_membership *mr_agent_take(struct mr_agent *a);
void mr_membership_free(struct mr_membership **m);
/* Finds a member, lent by the membership; NULL: there is no such member. */
const Millrace__V1__TrainingMember *mr_membership_find(
    const struct mr_membership *m, Millrace__V1__TrainingRole role, uint32_t index);

/* ---- reports of the role --------------------------------------------------------------------- */

struct mr_agent_counters { /* totals since the role's start, with the fields of TrainingCounters */
    uint64_t steps, examples, epoch;
    double loss_sum, correct; /* sums over `scored` examples; the agent reports means */
    double pull_s, push_s, wait_s, compute_s, feed_s;
    uint64_t gradients_stale, gradients_lost, steps_lost, gradients_applied;
    uint64_t moved_parts, moved_bytes;
    uint64_t scored;
    /* number of batches whose loss was infinite or not a number; loss_sum is without these */
    uint64_t spoiled;
};

struct mr_agent_post {
    struct mr_agent_counters counters;
    uint64_t version;
    uint32_t restore_epoch;
    bool exhausted;
};

/* Sets the state that the next report carries. */
void mr_agent_report(struct mr_agent *a, const struct mr_agent_post *p);
/* Reports that a shard's checkpoint was stored. The agent repeats this in each report until the
 * trainer acknowledges it. */
void mr_agent_report_checkpoint(struct mr_agent *a, uint64_t version, const char *object);
/* Adds the scores of one batch to the counters. */
void mr_agent_count_scored(
    struct mr_agent_counters *c, double loss_sum, uint64_t correct, uint64_t examples);

/* Reports that the role has done what `phase` asks for. The role that saves the model also passes
 * the saved model and its scores; other roles pass NULL. The agent sends this at once and repeats
 * it with each report while the phase lasts. */
void mr_agent_report_finished(struct mr_agent *a, Millrace__V1__TrainingPhase phase,
    const char *model_object, const char *score_json);
/* Reports that neither this attempt nor another one can go on: the session fails with `why`. Waits,
 * at most `timeout`, until the trainer has acknowledged the report or the task is cancelled. */
void mr_agent_report_failure(struct mr_agent *a, const char *why, mr_duration timeout);

/* Waits until `deadline`, or until what mr_agent_look returns may have changed. */
void mr_agent_wait(struct mr_agent *a, mr_time deadline);
