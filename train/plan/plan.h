/* What a role needs of the session's document. The trainer has checked the document, filled in
 * defaults and sent it with the answer to Join. A missing field has the default of
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
    uint32_t aggregate; /* sync: replicas_to_aggregate */
    uint32_t servers, workers, scorers;

    uint64_t init_seed;
    char *init_model;       /* a name or an object id; NULL: from the seed */
    char **init_checkpoint; /* object ids, one a shard */
    uint32_t init_checkpoint_count;

    uint32_t batch;
    bool shuffle, keep_rest;
    uint64_t data_seed;
    char *queue; /* queue that feeds the workers; NULL: arrays do */
    bool has_validation, has_test;

    uint64_t epochs, steps; /* 0: no bound */
    struct mr_nn_threshold threshold;
    char *threshold_channel; /* NULL: the session's own */
    struct mr_nn_patience patience;
    mr_duration score_every;
    uint64_t score_steps;      /* versions between two scores; 0: by time */
    uint64_t score_examples;   /* 0: all */
    uint64_t checkpoint_steps; /* 0: none */
    char *save;

    char **exec;       /* NULL-terminated argv of foreign roles; NULL: none */
    char **exec_env;   /* NULL-terminated, "NAME=value" */
    bool exec_restart; /* start the program again when a member was replaced */
    mr_duration lease; /* limits.lease_s */
};

/* `kind` ("ps", "worker", "scorer"): the role whose `exec` is read. */
int mr_role_plan_read(
    struct mr_str document, const char *kind, struct mr_role_plan *out, struct mr_error *e);
void mr_role_plan_fini(struct mr_role_plan *p);
