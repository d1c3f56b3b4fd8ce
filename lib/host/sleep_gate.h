/* A door between one sleeper and one waker that share a queue. The sleeper closes the gate when it
 * finds nothing to do; the waker, after it has queued something, opens it and learns whether there
 * is someone to wake. No wake is lost: closing fails when the waker was there since the last look.
 * How to sleep and to wake is the callers' business. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

struct mr_sleep_gate {
    _Atomic int state; /* zero: open */
};

/* Sleeper: true, and it must sleep; false: look into the queue again. */
bool mr_sleep_gate_close(struct mr_sleep_gate *g);
/* Waker: true, exactly once a sleep: the sleeper is to be woken. */
bool mr_sleep_gate_open(struct mr_sleep_gate *g);
/* Waker: does the sleeper sleep? It goes on doing so until the waker opens the gate. */
bool mr_sleep_gate_is_closed(const struct mr_sleep_gate *g);
