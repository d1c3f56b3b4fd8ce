/* What the roles and queue operators of this process share: the trainer that they may call, the
 * credentials, the object store and this process's address. */
#pragma once

#include "base/err.h"
#include "store/arena/client.h"

struct mr_credential;

struct mr_role_env {
    const char *trainer; /* the only trainer that roles may call; NULL: any that a job names */
    const struct mr_credential *for_trainer; /* NULL: the cluster has no secret */
    const struct mr_credential *for_store;
    const char *address; /* where this process serves Parameters and Collective; "": nowhere */
    const char *node;
    uint32_t processor;     /* roles prefer this processor and the ones after it */
    struct mr_store *store; /* NULL: none */
    const char *store_address;
};

/* Call once, before any role runs. Copies the struct; what its pointers refer to is lent for the
 * life of the process. */
void mr_role_configure(const struct mr_role_env *env);
const struct mr_role_env *mr_role_env(void);

/* MR_EINVAL if this process may not call `trainer`. With --trainer the process calls only that
 * trainer. Without --trainer the process calls any, unless the cluster has a secret: then it calls
 * none, because a job could name an address that collects secrets. */
int mr_role_trainer_check(const char *trainer, struct mr_error *e);
/* The credential to show to `trainer`: the cluster's secret for the trainer of --trainer, else
 * NULL. */
const struct mr_credential *mr_role_credential_for(const char *trainer);
