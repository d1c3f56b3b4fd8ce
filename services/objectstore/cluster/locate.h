/* The gRPC method Where: which stores have which of many objects. */
#pragma once

#include "rpc/server.h"

void mr_on_where(struct mr_rpc_call *rpc, struct mr_rpc_message *m);
