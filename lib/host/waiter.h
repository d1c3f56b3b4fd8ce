/* How a thread that owns an inbox sleeps and is woken, when the inbox itself does not do it: the
 * gRPC loop gives one (rpc/loop.h), so that one thread waits for both. */
#pragma once

#include "base/time.h"

struct mr_waiter {
    /* Owner thread: wait until `deadline` (0: only look) or until woken; runs the callbacks of
     * what happened. May return early. */
    void (*wait)(void *ctx, mr_time deadline);
    void (*wake)(void *ctx); /* any thread */
    void *ctx;
};
