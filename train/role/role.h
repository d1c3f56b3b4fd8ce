/* The operators that are roles of a training session (docs/training.md), `train.ps`,
 * `train.worker`, `train.scorer` and `train.exec`, and `queue.put` and `queue.close`, which feed
 * one. They run as long as the session does, on executor threads, and stop within 100 ms of being
 * cancelled. */
#pragma once

#include "ops/registry/registry.h"
#include "store/arena/client.h"

struct mr_role_env {     /* of this process; copied, what it points to is lent for ever */
    const char *trainer; /* the only one that is called; NULL: any that a job names */
    const struct mr_credential *for_trainer; /* what is shown; NULL: the cluster has no secret */
    const struct mr_credential *for_store;
    const char *address; /* where this process serves Parameters and Collective; "": nowhere */
    const char *node;
    uint32_t processor;     /* the first of those on which roles settle, counted round and round */
    struct mr_store *store; /* NULL: none */
    const char *store_address;
};

void mr_role_configure(const struct mr_role_env *env); /* once, before any role runs */

/* `with_exec`: train.exec as well, which starts programs. */
int mr_role_add_ops(struct mr_registry *r, bool with_exec, struct mr_error *e);
