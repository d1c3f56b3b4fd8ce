/* The agent of a role: a thread that joins the session, reports the role's state, and keeps the
 * trainer's latest answer. While the trainer does not answer, the agent tries again and the role
 * goes on. The role's thread may call every function. None waits for the network unless its
 * comment says so. */
#pragma once

#include "base/err.h"
#include "base/id.h"
#include "base/time.h"
#include "host/flag.h"
#include "millrace/v1/trainings.pb-c.h"
#include "train/feed/rpc.h"

#define MR_AGENT_REPORT_EVERY (250 * MR_MS)

struct mr_agent;

struct mr_agent_config { /* copied */
    const char *trainer;
    const struct mr_credential *credential; /* lent; may be NULL */
    const char *session;
    Millrace__V1__TrainingRole role;
    uint32_t index;
    const char *task; /* "j1kq07ab-7/0/1" */
    const char *address;
    const char *node;
    const char *socket;       /* "": none */
    struct mr_stop cancelled; /* asked by the agent's thread and the role's */
    struct mr_flag *is_void; /* set when parameters went back to a checkpoint; the role clears it */
    struct mr_flag *stop;    /* set when it was, or the role is over, or is to end; lent */
};

struct mr_agent *mr_agent_start(const struct mr_agent_config *c);
void mr_agent_stop(struct mr_agent **agent); /* after a last report, if one is due; at most 2 s,
                                              * 0.5 s once the task is cancelled */

/* ---- answers of the trainer ------------------------------------------------------------------ */

struct mr_agent_view {
    uint32_t generation;
    uint32_t restore_epoch;
    Millrace__V1__TrainingPhase phase;
    uint32_t workers_live; /* of the training workers, by the trainer's last answer */
    uint64_t joined;       /* grows with each membership */
    bool is_over;          /* replaced by another attempt, or the session is gone: `why` */
    const char *why;       /* the agent's, for its life */
};

void mr_agent_look(struct mr_agent *a, struct mr_agent_view *out);

struct mr_membership { /* the members of one generation */
    struct mr_pb_arena arena;
    const Millrace__V1__JoinResponse *m;
};

/* The latest membership if it is newer than what was taken before; NULL: none. The caller's. */
struct mr_membership *mr_agent_take(struct mr_agent *a);
void mr_membership_free(struct mr_membership **m);
/* Member `index` of a role; NULL if there is none. */
const Millrace__V1__TrainingMember *mr_membership_find(
    const struct mr_membership *m, Millrace__V1__TrainingRole role, uint32_t index);

/* ---- reports of the role --------------------------------------------------------------------- */

struct mr_agent_counters { /* since the role's start; as TrainingCounters */
    uint64_t steps, examples, epoch;
    double loss_sum, correct; /* over the examples; the agent makes means of one report's part */
    double pull_s, push_s, wait_s, compute_s, feed_s;
    uint64_t gradients_stale, gradients_lost, steps_lost, gradients_applied;
    uint64_t moved_parts, moved_bytes;
    uint64_t scored;  /* examples that loss_sum and correct are of */
    uint64_t spoiled; /* batches whose loss was no number, and is not in loss_sum */
};

struct mr_agent_post {
    struct mr_agent_counters counters;
    uint64_t version;
    uint32_t restore_epoch;
    bool exhausted;
};

void mr_agent_report(
    struct mr_agent *a, const struct mr_agent_post *p); /* goes with the next report */
/* A shard's checkpoint; each is reported until the trainer acknowledges it. */
void mr_agent_report_checkpoint(struct mr_agent *a, uint64_t version, const char *object);
/* One batch's, with whatever loss. */
void mr_agent_count_scored(
    struct mr_agent_counters *c, double loss_sum, uint64_t correct, uint64_t examples);

/* What this phase asks for is done; of a saver also what it kept (else NULL). Sent at once, and
 * with each report as long as the phase lasts. */
void mr_agent_report_finished(struct mr_agent *a, Millrace__V1__TrainingPhase phase,
    const char *model_object, const char *score_json);
/* It cannot go on, and another attempt could not either. Waits until the trainer knows, or the
 * task is cancelled, at most `timeout`. */
void mr_agent_report_failure(struct mr_agent *a, const char *why, mr_duration timeout);

/* Waits until something that mr_agent_look returns has changed, or until `deadline`. */
void mr_agent_wait(struct mr_agent *a, mr_time deadline);
