/* millrace.v1.Waits: a caller that is about to stop ends the waits of its calls. The calls are then
 * answered with what is known so far, which cancelling them would lose. */
#pragma once

#include "rpc/server.h"

#define MR_RPC_WAITER "millrace-waiter" /* metadata: names the caller that may end the wait */

struct mr_rpc_waits {
    /* On the loop's thread. Answers each waiting call for which mr_rpc_waits_of is true. */
    void (*end)(void *ctx, struct mr_str waiter);
    void *ctx;
};

/* Before start. `waits` is kept, not copied. */
void mr_rpc_server_add_waits(struct mr_rpc_server *server, struct mr_rpc_waits *waits);

/* Did this waiter make the call? */
bool mr_rpc_waits_of(const struct mr_rpc_call *call, struct mr_str waiter);
