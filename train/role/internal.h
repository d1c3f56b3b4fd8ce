/* What the roles share. Private to train/role. */
#pragma once

#include "host/flag.h"
#include "train/feed/feed.h"
#include "train/role/role.h"
#include "train/role/agent.h"
#include "train/plan/plan.h"
#include "train/feed/store.h"
#include "train/transport/transport.h"

#define MR_ROLE_TURN (50 * MR_MS) /* the longest that a role waits without looking up */
#define MR_ROLE_RUN MILLRACE__V1__TRAINING_PHASE__TRAINING_PHASE_RUN
#define MR_ROLE_HALT MILLRACE__V1__TRAINING_PHASE__TRAINING_PHASE_HALT
#define MR_ROLE_KEEP MILLRACE__V1__TRAINING_PHASE__TRAINING_PHASE_KEEP
#define MR_ROLE_EXIT MILLRACE__V1__TRAINING_PHASE__TRAINING_PHASE_EXIT
#define MR_ROLE_PS MILLRACE__V1__TRAINING_ROLE__TRAINING_PS
#define MR_ROLE_WORKER MILLRACE__V1__TRAINING_ROLE__TRAINING_WORKER
#define MR_ROLE_SCORER MILLRACE__V1__TRAINING_ROLE__TRAINING_SCORER

const struct mr_role_env *mr_role_env(void);
/* A worker that was told of its trainer calls no other; where the cluster has a secret, one that
 * was told of none calls none. */
int mr_role_trainer_check(const char *trainer, struct mr_error *e);
/* The credential for a trainer: the cluster's secret if the trainer is this worker's own. */
const struct mr_credential *mr_role_credential_for(const char *trainer);

struct mr_role {
    struct mr_op_call *call;
    mr_time begun;
    const struct mr_role_env *env;
    uint32_t cpu; /* of mr_role_cpu_take */
    Millrace__V1__TrainingRole kind;
    uint32_t index;
    char *session, *trainer;
    const struct mr_credential *credential; /* for the trainer; NULL: none */
    const struct mr_arg *data;              /* dict of sets */
    struct mr_flag stop;                    /* every wait ends */
    struct mr_flag is_void;        /* the same, or the parameters went back to a checkpoint */
    struct mr_agent *agent;        /* NULL until it has joined */
    struct mr_agent_view view;     /* as last looked at */
    struct mr_membership *members; /* the latest that was complete */
    struct mr_role_plan plan;
    struct mr_role_store store;
    struct mr_feed_store feed_store;
    struct mr_role_link *link; /* to the trainer, of the role's thread */
    struct mr_agent_post post; /* what is reported */
    bool is_drawn;             /* its data, or some of it, was drawn, not given */
};

/* The calling thread, which computes for a training worker, settles on a processor that no other
 * such thread of this process is on: workers that start each step together are then not woken on
 * one processor. */
void mr_role_cpu_take(struct mr_role *r);
void mr_role_cpu_release(struct mr_role *r);

/* Reads the arguments, joins, and waits until all are there. `socket`: of shared memory, "" for
 * none; `address`: of the role, NULL: the process's. After MR_OK and after an error (in words)
 * mr_role_end is due. MR_ECANCELED may also mean that there is nothing left to do. */
int mr_role_begin(struct mr_op_call *call, struct mr_role *r, Millrace__V1__TrainingRole kind,
    const char *socket, const char *address);
/* Instead of both, after an error before it. */
int mr_role_refuse(struct mr_op_call *call, int err, const struct mr_error *e);
/* Ends the op: with nil when the session told it to end, else with `err` and the words of `e`.
 * What the trainer must know it is told. */
int mr_role_end(struct mr_role *r, int err, const struct mr_error *e);

/* What the trainer said meanwhile, without waiting; `*is_new` (may be NULL): others are there now.
 * MR_ECANCELED: end. */
int mr_role_look(struct mr_role *r, bool *is_new);
bool mr_role_should_stop(void *ctx); /* of struct mr_stop; ctx is the role */
struct mr_stop mr_role_stop_of(struct mr_role *r);

/* Is everybody of the membership of the generation that counts now? */
bool mr_role_is_current(const struct mr_role *r);
/* Waits for a complete membership of the current generation; MR_ECANCELED, or the phase changed:
 * MR_OK, and the caller looks. */
int mr_role_await_members(struct mr_role *r);
struct mr_place mr_role_place(
    const struct mr_role *r, Millrace__V1__TrainingRole role, uint32_t index);

/* The arguments of a set of the data ("validation"); NULL: not given. */
const struct mr_arg *mr_role_set(const struct mr_role *r, const char *set, const char *part);

/* ---- parameters to begin with: init_state.c -------------------------------------------------- */

struct mr_role_state { /* numbers first … first + count - 1 of the vector, with slots */
    uint64_t version;
    float *params;
    float *slots[MR_NN_SLOTS_MAX];
    bool has_slots;
};

/* Of the membership's checkpoint, or as the document's `init` says. Numbers behind the model's own
 * are 0. */
int mr_role_state_load(struct mr_role *r, uint64_t first, uint64_t count, struct mr_role_state *out,
    struct mr_error *e);
/* Of this checkpoint; NULL: as `init` says. */
int mr_role_state_load_from(struct mr_role *r, const Millrace__V1__TrainingCheckpoint *checkpoint,
    uint64_t first, uint64_t count, struct mr_role_state *out, struct mr_error *e);
void mr_role_state_fini(struct mr_role_state *s);

/* ---- checkpoints: checkpoint.c --------------------------------------------------------------- */

struct mr_checkpointer; /* writes in a thread of its own */

struct mr_checkpointer *mr_checkpointer_start(struct mr_role *r, uint32_t shard);
void mr_checkpointer_stop(struct mr_checkpointer **c);
/* Copies and returns; written and reported later. Skipped when the one before is not done yet. */
void mr_checkpointer_snapshot(struct mr_checkpointer *c, uint64_t version, const float *params,
    float *const *slots, uint64_t count);
/* What the object is of: behind each row's numbers stand MR_CHECKPOINT_HEAD_WORDS more, and those
 * of the first row say it. */
struct mr_checkpoint_head {
    uint64_t version, model_count; /* of parameters of the whole model */
    uint64_t first;                /* of the shard's numbers in the vector */
    uint32_t slots;
    enum mr_nn_optim_type optim;
};
#define MR_CHECKPOINT_HEAD_WORDS 16
#define MR_RING_WORDS 2 /* numbers more than the model has, that ranks agree upon things by */
void mr_checkpoint_head_write(const struct mr_checkpoint_head *h, float *to);
bool mr_checkpoint_head_read(const float *from, struct mr_checkpoint_head *out);
/* The version after `version` that a checkpoint is due at; 0: none. */
uint64_t mr_checkpoint_after(const struct mr_role *r, uint64_t version);

/* ---- scores and the kept model: evaluate.c --------------------------------------------------- */

struct mr_evaluation; /* held-out data, ready to be scored */

/* `examples_max`: 0: all. */
int mr_evaluation_open(struct mr_role *r, const char *set, uint64_t examples_max,
    struct mr_evaluation **out, struct mr_error *e);
void mr_evaluation_close(struct mr_evaluation **x);
int mr_evaluation_score(struct mr_evaluation *x, const float *params, struct mr_nn_score *out,
    struct mr_error *e); /* MR_ECANCELED between two batches */

/* For the saver: scores validation and test data, stores the model, reports that it is done. */
int mr_role_save_model(
    struct mr_role *r, const float *params, uint64_t version, struct mr_error *e);

/* ---- clocks ---------------------------------------------------------------------------------- */

/* Seconds since `*at`, which becomes now. */
double mr_role_lap(mr_time *at);

extern const struct mr_op_desc mr_train_ps_op, mr_train_worker_op, mr_train_scorer_op,
    mr_train_exec_op, mr_queue_put_op, mr_queue_close_op;
