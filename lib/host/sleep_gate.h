/* An eventcount for one sleeper and one waker that share a queue. The sleeper closes the gate when
 * the queue is empty. The waker queues something, opens the gate, and learns whether the sleeper
 * has to be woken. No wake-up is lost: close fails when the waker has opened since the last look.
 * How the sleeper sleeps and is woken is the callers' matter. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

struct mr_sleep_gate {
    _Atomic int state; /* zero: open */
};

/* Sleeper. True: it must sleep; false: it must look into the queue again. */
bool mr_sleep_gate_close(struct mr_sleep_gate *g);
/* Waker. True, exactly once for each sleep: the sleeper has to be woken. */
bool mr_sleep_gate_open(struct mr_sleep_gate *g);
/* Waker: does the sleeper sleep? If so it sleeps until the waker opens the gate. */
bool mr_sleep_gate_is_closed(const struct mr_sleep_gate *g);
