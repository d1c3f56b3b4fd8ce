/* The plan: what a role needs of the session's document. The trainer has checked the document,
 * filled in defaults and sent it with the answer to Join. A missing field has the default of
 * docs/training.md. */
#pragma once

#include "base/time.h"
#include "nn/net/loss.h"
#include "nn/model/model.h"
#include "nn/optim/optim.h"
#include "nn/optim/early_stopping.h"

enum mr_role_rule { MR_ROLE_ASYNC, MR_ROLE_SYNC, MR_ROLE_ALLREDUCE };

struct mr_role_plan {
    char *name;
    struct mr_nn_model *model;
    struct mr_nn_optim optim;
    enum mr_nn_loss loss;
    enum mr_role_rule rule;
    uint32_t aggregate; /* only with the rule sync: replicas_to_aggregate */
    uint32_t servers, workers, scorers;

    uint64_t init_seed;
    char *init_model;       /* a name or an object id; NULL: the model is drawn from the seed */
    char **init_checkpoint; /* object ids, one for each shard */
    uint32_t init_checkpoint_count;

    uint32_t batch;
    bool shuffle, keep_rest;
    uint64_t data_seed;
    char *queue; /* queue that feeds the workers; NULL: the data are arrays */
    bool has_validation, has_test;

    uint64_t epochs, steps; /* 0: there is no such limit */
    struct mr_nn_threshold threshold;
    char *threshold_channel; /* NULL: the session's own channel */
    struct mr_nn_patience patience;
    mr_duration score_every;
    uint64_t score_steps;      /* versions between two scores; 0: score_every decides */
    uint64_t score_examples;   /* 0: all examples */
    uint64_t checkpoint_steps; /* versions between two checkpoints; 0: there are none */
    char *save;

    /* argv of the foreign program that is the role, ended by NULL; NULL: the role is no such
     * program */
    char **exec;
    char **exec_env; /* "NAME=value" each, ended by NULL */
    /* true: when any member of the session is replaced, this role's program is killed and then
     * started again */
    bool exec_restart;
    mr_duration lease; /* the document's limits.lease_s */
};

/* Reads the plan from the document. `kind` ("ps", "worker", "scorer"): the role whose `exec` is
 * read. */
int mr_role_plan_read(
    struct mr_str document, const char *kind, struct mr_role_plan *out, struct mr_error *e);
void mr_role_plan_fini(struct mr_role_plan *p);
