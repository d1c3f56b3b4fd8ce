/* The event loop: one gRPC completion queue and the thread that runs it. Servers and channels are
 * made on a loop and closed before the loop is freed. */
#pragma once

#include "base/time.h"
#include "host/waiter.h"

#include <stdbool.h>
#include <stddef.h>

struct mr_rpc_loop;

/* Turns off gRPC's polling of channels without a call, which wakes the process every 5 s. Without
 * this polling, the next call on a channel notices that the peer went away, and fails with
 * MR_EAWAY. Suits a program that repeats such calls, or whose channels always have a call. To be
 * called before the first loop is made. */
void mr_rpc_leave_idle_channels(void);

struct mr_rpc_loop *mr_rpc_loop_new(void);
/* Frees the loop, after the calls of closed channels have ended. No server or channel may be left
 * on the loop, and no thread may still wake it (see mr_inbox_clear_waiter). */
void mr_rpc_loop_free(struct mr_rpc_loop **loop);

/* Runs one turn: sends what is queued, waits for an event or `deadline` (0: does not wait), runs
 * the callbacks of the events that are there (a bounded number), and sends what the callbacks
 * queued. Returns the number of events. 0: no event came before the deadline, or a function of the
 * second source of work (mr_rpc_loop_set_side) has called mr_rpc_loop_wake. */
size_t mr_rpc_loop_run(struct mr_rpc_loop *loop, mr_time deadline);

/* Sends the queued messages at once instead of in the next turn. Must not be called from inside a
 * callback. */
void mr_rpc_loop_flush(struct mr_rpc_loop *loop);

/* Makes the loop eager: when its last waits were short, the loop polls for up to 0.4 ms before it
 * sleeps. Polling saves a wake-up, which costs tens of microseconds on a virtual machine. An eager
 * loop yields between polls, and does not poll for 20 ms after another thread wanted the processor.
 * A loop whose last waits were long sleeps without polling. So does a loop that found its last
 * events without a wait. */
void mr_rpc_loop_be_eager(struct mr_rpc_loop *loop, bool is_eager);

/* A second source of work, which the loop polls together with gRPC's queue. Each function may be
 * NULL. `attend(true)` comes before the first `look`, and `attend(false)` before the loop sleeps.
 * Each of the two calls may come twice in a row. `look` polls once; if it finds work, it ends the
 * turn with mr_rpc_loop_wake. */
struct mr_rpc_side {
    void (*attend)(void *ctx, bool on);
    void (*look)(void *ctx);
    /* Called with true before each sleep of the loop and with false after it; no callback runs in
     * between. */
    void (*sleep)(void *ctx, bool on);
    void *ctx;
};
/* Sets the second source of work. If all members of `side` are NULL, the loop has none. */
void mr_rpc_loop_set_side(struct mr_rpc_loop *loop, struct mr_rpc_side side);

void mr_rpc_loop_wake(struct mr_rpc_loop *loop); /* on any thread: ends a waiting mr_rpc_loop_run */

/* Returns a waiter for an inbox (mr_inbox_set_waiter). With this waiter, mr_inbox_wait runs this
 * loop. */
struct mr_waiter mr_rpc_loop_waiter(struct mr_rpc_loop *loop);

/* Calls run(ctx) in every turn, after the callbacks and before queued sends leave. A loop has one
 * such function. */
void mr_rpc_loop_set_turn(struct mr_rpc_loop *loop, void (*run)(void *ctx), void *ctx);
