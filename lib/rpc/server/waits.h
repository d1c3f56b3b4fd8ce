/* millrace.v1.Waits: a caller that is about to stop, for example a gateway, ends the waits of its
 * own calls. A call waits if its method answers later, when a job or session has changed
 * (`wait_s`). Each of these calls is then answered at once with the present state. A cancelled call
 * would lose this answer. */
#pragma once

#include "rpc/server.h"

/* Metadata of a waiting call: the name of the caller that may end the wait. */
#define MR_RPC_WAITER "millrace-waiter"

struct mr_rpc_waits {
    /* Called on the loop's thread: answers each waiting call for which mr_rpc_waits_of is true. */
    void (*end)(void *ctx, struct mr_str waiter);
    void *ctx;
};

/* Adds the service; to be called before the start. `waits` is borrowed. */
void mr_rpc_server_add_waits(struct mr_rpc_server *server, struct mr_rpc_waits *waits);

/* True: the call was made by the caller with the name `waiter` (MR_RPC_WAITER). */
bool mr_rpc_waits_of(const struct mr_rpc_call *call, struct mr_str waiter);
