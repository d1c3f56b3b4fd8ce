/* The gRPC method Pull: sends an object of this store to another store. */
#pragma once

#include "rpc/server.h"

extern const struct mr_rpc_handler mr_pull_handler;
