/* Delivers SIGTERM, SIGINT and SIGHUP as a callback on a thread of their own, not in a signal
 * handler. The callback pushes to an inbox or wakes a loop. */
#pragma once

#include "base/defs.h"
#include "base/time.h"

struct mr_signals;

/* Blocks these three signals and SIGCONT in the calling thread and in all threads that it starts,
 * and ignores SIGPIPE. Must be the first call in `main`, before any other thread exists. */
void mr_signal_block(void);

/* Starts a thread that calls on_signal(ctx, number) for each signal. on_signal NULL means that the
 * program is still starting: until mr_signal_hand, a signal ends the process with exit code 0. */
struct mr_signals *mr_signal_open(void (*on_signal)(void *ctx, int number), void *ctx);
/* Ends the starting phase: later signals go to on_signal. */
void mr_signal_hand(struct mr_signals *s, void (*on_signal)(void *ctx, int number), void *ctx);
/* From now on, calls on_continue(ctx, at) on the signal thread when the process goes on after a
 * pause (SIGSTOP). `at`: when the thread noticed that the process goes on. */
void mr_signal_on_continue(
    struct mr_signals *s, void (*on_continue)(void *ctx, mr_time at), void *ctx);
void mr_signal_close(struct mr_signals **signals);

/* Called in a child process between fork and exec: unblocks all signals and restores the default
 * action of SIGPIPE. Async-signal-safe. */
void mr_signal_reset_child(void);
