/* Channels to the services. Chooses the channel of a request, and lists the channels of the
 * services whose metrics are collected. Owned by the gRPC thread. */
#pragma once

#include "proto/methods.h"
#include "rpc/client.h"

#define MR_BACKEND_STORES_MAX 64
#define MR_BACKEND_WORKERS_MAX 1024 /* limit of workers whose metrics are collected */

struct mr_backends;

/* Opens the channels. stores_count 0: the scheduler is asked for the addresses. `trainer` NULL:
 * there is no trainer. */
struct mr_backends *mr_backends_new(struct mr_rpc_loop *loop, const char *scheduler,
    const char *trainer, const char *const *stores, size_t stores_count,
    struct mr_secret_file *secrets);
void mr_backends_free(struct mr_backends **b);

/* Returns the channel for a request. NULL: no such service is known. If no store is known, the
 * function asks the scheduler again for the addresses, so a later call may return a channel. */
struct mr_rpc_channel *mr_backends_pick(struct mr_backends *b, enum mr_proto_backend backend);
/* Returns the channel of the n-th store. NULL: there are fewer stores. */
struct mr_rpc_channel *mr_backends_store(struct mr_backends *b, uint32_t n);
size_t mr_backends_stores_count(const struct mr_backends *b);
/* To be called when the service that mr_backends_pick returned last did not answer. For a store,
 * the next pick returns the next store of the list. For other services nothing changes, because
 * there is only one of each. */
void mr_backends_away(struct mr_backends *b, enum mr_proto_backend backend);

/* Opens or keeps the channels to the workers at `addresses`, and closes those to other workers.
 * Skips empty addresses, and workers beyond MR_BACKEND_WORKERS_MAX. */
void mr_backends_set_workers(struct mr_backends *b, const char *const *addresses, size_t count);
/* Returns the channel to the worker at `address`. NULL: there is none. */
struct mr_rpc_channel *mr_backends_worker(struct mr_backends *b, const char *address);

/* Returns how many channels there are to the scheduler, the stores and the trainer together. */
size_t mr_backends_count(const struct mr_backends *b);
/* Returns the i-th of these channels: 0 is the scheduler, then the stores, then the trainer. */
struct mr_rpc_channel *mr_backends_at(const struct mr_backends *b, size_t i);
