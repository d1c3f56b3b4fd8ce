/* How the owner of an inbox sleeps and is woken, if not by the futex of the inbox. The gRPC loop
 * provides a waiter (rpc/loop.h), so that one thread waits for gRPC events and for messages. */
#pragma once

#include "base/time.h"

struct mr_waiter {
    /* Called on the owner's thread: waits until `deadline` (0: does not wait) or until a wake, and
     * runs the callbacks of events that happen. May return early. */
    void (*wait)(void *ctx, mr_time deadline);
    void (*wake)(void *ctx); /* called on any thread: ends the wait */
    void *ctx;
};
