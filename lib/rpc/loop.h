/* The event loop: one gRPC completion queue and the thread that runs it, which in a service is the
 * core thread. Servers and channels are made on a loop and closed before it. */
#pragma once

#include "base/time.h"
#include "host/waiter.h"

#include <stdbool.h>
#include <stddef.h>

struct mr_rpc_loop;

/* Before the first loop of a process: channels without a call are looked after by nobody, so that
 * one whose peer went away is found out by its next call, which fails with MR_EAWAY, and not by a
 * timer of gRPC's every 5 s. For who repeats such calls, or always has one. */
void mr_rpc_leave_idle_channels(void);

struct mr_rpc_loop *mr_rpc_loop_new(void);
/* No server, channel or open call is left on it, and no thread that may still wake it (see
 * mr_inbox_clear_waiter). */
void mr_rpc_loop_free(struct mr_rpc_loop **loop);

/* One turn: sends what was queued, waits until something happens or `deadline` (0: only looks),
 * runs the callbacks of all that is there (bounded), sends what they queued. Returns how many
 * events it handled: 0 after the deadline. */
size_t mr_rpc_loop_run(struct mr_rpc_loop *loop, mr_time deadline);

/* Sends what was queued, now: for whom the next turn is too late. Not from inside a callback. */
void mr_rpc_loop_flush(struct mr_rpc_loop *loop);

/* From now on a wait that follows short ones looks again and again, up to 0.4 ms, before it sleeps:
 * where nothing else would use the processor that saves a wake-up, which costs tens of microseconds
 * on a virtual machine. It yields between looks, and stops for 20 ms when somebody else wanted the
 * processor. A loop that is idle, or busy, sleeps as before. */
void mr_rpc_loop_be_eager(struct mr_rpc_loop *loop, bool is_eager);

/* Something else that this thread may read while it looks, or lends while it sleeps; what is NULL
 * is left out. `attend(true)` comes before the first
 * `look`, `attend(false)` before the loop sleeps; both may come twice. `look` ends the turn by
 * mr_rpc_loop_wake. */
struct mr_rpc_side {
    void (*attend)(void *ctx, bool on);
    void (*look)(void *ctx);
    void (*sleep)(void *ctx, bool on); /* around each sleep: no callback runs meanwhile */
    void *ctx;
};
void mr_rpc_loop_set_side(struct mr_rpc_loop *loop, struct mr_rpc_side side); /* empty: none */

void mr_rpc_loop_wake(struct mr_rpc_loop *loop); /* any thread: ends a waiting mr_rpc_loop_run */

/* For mr_inbox_set_waiter: then mr_inbox_wait runs this loop. */
struct mr_waiter mr_rpc_loop_waiter(struct mr_rpc_loop *loop);

/* Calls run(ctx) on every turn of the loop, after the callbacks, before queued sends leave. One. */
void mr_rpc_loop_set_turn(struct mr_rpc_loop *loop, void (*run)(void *ctx), void *ctx);
