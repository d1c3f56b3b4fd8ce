/* gRPC channels to other stores, one for each address. Owned by the gRPC thread. */
#pragma once

#include "rpc/client.h"
#include "rpc/util/auth.h"

struct mr_channels;

struct mr_channels *mr_channels_new(struct mr_rpc_loop *loop, struct mr_rpc_auth *auth);
void mr_channels_close(struct mr_channels **c);
/* Returns the channel to an address, and opens it at the first use. Copies `address`. NULL: there
 * are too many addresses, or `c` is NULL because the store is stopping. */
struct mr_rpc_channel *mr_channels_get(struct mr_channels *c, const char *address);
