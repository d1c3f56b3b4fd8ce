/* millrace.v1.Waits: a caller that is about to stop has the waits of its calls ended, and so gets
 * answers where cancelling them would lose what is known. */
#pragma once

#include "rpc/server.h"

#define MR_RPC_WAITER "millrace-waiter" /* metadata of a call whose wait may be ended */

struct mr_rpc_waits {
    /* On the loop's thread. Answers what waits and is mr_rpc_waits_of the waiter. */
    void (*end)(void *ctx, struct mr_str waiter);
    void *ctx;
};

/* Before start. `waits` is kept, not copied. */
void mr_rpc_server_add_waits(struct mr_rpc_server *server, struct mr_rpc_waits *waits);

/* Did this waiter make the call? */
bool mr_rpc_waits_of(const struct mr_rpc_call *call, struct mr_str waiter);
