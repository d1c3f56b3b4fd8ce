/* The event loop: one gRPC completion queue and the thread that runs it, which in a service is the
 * core thread. Servers and channels are made on a loop and closed before it. */
#pragma once

#include "base/time.h"
#include "host/waiter.h"

#include <stdbool.h>
#include <stddef.h>

struct mr_rpc_loop;

/* Turns off gRPC's polling of channels without a call, which wakes the process every 5 s. A channel
 * whose peer went away is then noticed by its next call, which fails with MR_EAWAY. For a program
 * that repeats such calls, or whose channels always have a call. Before the first loop. */
void mr_rpc_leave_idle_channels(void);

struct mr_rpc_loop *mr_rpc_loop_new(void);
/* No server or channel is left on the loop, and no thread may still wake it (see
 * mr_inbox_clear_waiter). Calls of closed channels end first. */
void mr_rpc_loop_free(struct mr_rpc_loop **loop);

/* One turn: sends what is queued, waits for an event or `deadline` (0: does not wait), runs the
 * callbacks of the events that are there (a bounded number), sends what the callbacks queued.
 * Returns the number of events: 0 after the deadline. */
size_t mr_rpc_loop_run(struct mr_rpc_loop *loop, mr_time deadline);

/* Sends what is queued now instead of in the next turn. Not from inside a callback. */
void mr_rpc_loop_flush(struct mr_rpc_loop *loop);

/* An eager loop polls for up to 0.4 ms before it sleeps, once its waits have been short. That saves
 * a wake-up, which costs tens of microseconds on a virtual machine. It yields between polls, and
 * does not poll for 20 ms after another thread wanted the processor. A loop that is idle or busy
 * sleeps at once. */
void mr_rpc_loop_be_eager(struct mr_rpc_loop *loop, bool is_eager);

/* A second source of work, which the loop polls together with gRPC's queue. Each function may be
 * NULL. `attend(true)` comes before the first `look`, and `attend(false)` before the loop sleeps;
 * either may come twice in a row. `look` polls once; if it has found work, it ends the turn with
 * mr_rpc_loop_wake. */
struct mr_rpc_side {
    void (*attend)(void *ctx, bool on);
    void (*look)(void *ctx);
    /* Around each sleep of the loop; no callback runs in between. */
    void (*sleep)(void *ctx, bool on);
    void *ctx;
};
void mr_rpc_loop_set_side(struct mr_rpc_loop *loop, struct mr_rpc_side side); /* all zeros: none */

void mr_rpc_loop_wake(struct mr_rpc_loop *loop); /* any thread: ends a waiting mr_rpc_loop_run */

/* For mr_inbox_set_waiter: then mr_inbox_wait runs this loop. */
struct mr_waiter mr_rpc_loop_waiter(struct mr_rpc_loop *loop);

/* Calls run(ctx) in every turn, after the callbacks and before queued sends leave. A loop has one
 * such function. */
void mr_rpc_loop_set_turn(struct mr_rpc_loop *loop, void (*run)(void *ctx), void *ctx);
