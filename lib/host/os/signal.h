/* SIGTERM, SIGINT and SIGHUP as a callback on a thread of their own: no handler ever runs inside
 * other code. The callback pushes to an inbox or wakes a loop. */
#pragma once

#include "base/defs.h"

struct mr_signals;

/* First thing in `main`, before any thread: blocks the signals above in this thread and all it
 * starts, and ignores SIGPIPE. */
void mr_signal_block(void);

/* Calls on_signal(ctx, number) for each signal from now on, on its own thread. on_signal NULL: the
 * program is still starting, and a signal ends the process at once, with exit code 0, whatever it
 * waits for. */
struct mr_signals *mr_signal_open(void (*on_signal)(void *ctx, int number), void *ctx);
/* The program has started: signals go to on_signal from now on. */
void mr_signal_hand(struct mr_signals *s, void (*on_signal)(void *ctx, int number), void *ctx);
void mr_signal_close(struct mr_signals **signals);

/* In a child between fork and exec: all signals as a fresh process has them. Async-signal-safe. */
void mr_signal_reset_child(void);
