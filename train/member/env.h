/* What all roles and queue operators of this process share: the trainer that they may call, the
 * credentials, the object store and this process's address. */
#pragma once

#include "base/err.h"
#include "store/arena/client.h"

struct mr_credential;

struct mr_role_env {
    /* the only trainer that roles may call; NULL: each may call the trainer that its job names */
    const char *trainer;
    const struct mr_credential *for_trainer; /* NULL: the cluster has no secret */
    const struct mr_credential *for_store;
    /* address at which this process serves Parameters and Collective; "": they are not served */
    const char *address;
    const char *node;
    uint32_t processor;     /* roles prefer this processor and those after it */
    struct mr_store *store; /* NULL: this process has no object store */
    const char *store_address;
};

/* Sets the environment. Called once, before any role runs. Copies the struct; what its pointers
 * refer to is lent for the life of the process. */
void mr_role_configure(const struct mr_role_env *env);
const struct mr_role_env *mr_role_env(void);

/* Returns MR_OK if this process may call `trainer`, else MR_EINVAL. With --trainer the process
 * calls only that trainer. Without --trainer the process calls any trainer if the cluster has no
 * secret, and no trainer if the cluster has a secret, because a job could name an address that
 * collects secrets. */
int mr_role_trainer_check(const char *trainer, struct mr_error *e);
/* Returns the credential to show to `trainer`: the cluster's secret for the trainer of --trainer,
 * else NULL. */
const struct mr_credential *mr_role_credential_for(const char *trainer);
