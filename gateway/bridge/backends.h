/* Channels to the services: which one a request goes to, and whom to ask for counters. The gRPC
 * thread's. */
#pragma once

#include "proto/methods.h"
#include "rpc/client.h"

#define MR_BACKEND_STORES_MAX 64
#define MR_BACKEND_WORKERS_MAX 1024 /* that are asked for their counters */

struct mr_backends;

/* No stores: the scheduler is asked where they are. `trainer` NULL: there is none. */
struct mr_backends *mr_backends_new(struct mr_rpc_loop *loop, const char *scheduler,
    const char *trainer, const char *const *stores, size_t stores_count,
    struct mr_secret_file *secrets);
void mr_backends_free(struct mr_backends **b);

/* NULL: none is known (of stores: the scheduler is being asked). */
struct mr_rpc_channel *mr_backends_pick(struct mr_backends *b, enum mr_proto_backend backend);
/* The n-th store; NULL: there are not so many. */
struct mr_rpc_channel *mr_backends_store(struct mr_backends *b, uint32_t n);
size_t mr_backends_stores_count(const struct mr_backends *b);
/* The last one picked was not there: another is tried next. */
void mr_backends_away(struct mr_backends *b, enum mr_proto_backend backend);

/* Channels to the workers' own ports: those of `addresses` are opened or kept, others closed. */
void mr_backends_set_workers(struct mr_backends *b, const char *const *addresses, size_t count);
struct mr_rpc_channel *mr_backends_worker(struct mr_backends *b, const char *address); /* or NULL */

size_t mr_backends_count(const struct mr_backends *b);
struct mr_rpc_channel *mr_backends_at(const struct mr_backends *b, size_t i);
