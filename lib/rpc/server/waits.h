/* millrace.v1.Waits: a caller that is about to stop ends the waits of its own calls. Each of these
 * calls is then answered with the state so far, which a cancelled call would lose. */
#pragma once

#include "rpc/server.h"

#define MR_RPC_WAITER "millrace-waiter" /* metadata: names the caller that may end the wait */

struct mr_rpc_waits {
    /* On the loop's thread: answers each waiting call for which mr_rpc_waits_of is true. */
    void (*end)(void *ctx, struct mr_str waiter);
    void *ctx;
};

/* Adds the service; before the start. `waits` is borrowed. */
void mr_rpc_server_add_waits(struct mr_rpc_server *server, struct mr_rpc_waits *waits);

/* Did this waiter make the call? */
bool mr_rpc_waits_of(const struct mr_rpc_call *call, struct mr_str waiter);
