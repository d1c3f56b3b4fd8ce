/* An eventcount for one sleeper and one waker that share a queue. When the queue is empty, the
 * sleeper closes the gate. After each new item, the waker opens the gate and learns whether the
 * sleeper has to be woken. No wake-up is lost: closing fails if the waker has opened the gate since
 * the sleeper's last look. The callers choose how the sleeper sleeps and is woken. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

struct mr_sleep_gate {
    _Atomic int state; /* 0: open */
};

/* For the sleeper. True: it must sleep. False: it must look into the queue again. */
bool mr_sleep_gate_close(struct mr_sleep_gate *g);
/* For the waker. True, exactly once for each sleep: the waker has to wake the sleeper. */
bool mr_sleep_gate_open(struct mr_sleep_gate *g);
/* For the waker: does the sleeper sleep? If so, it sleeps until the waker opens the gate. */
bool mr_sleep_gate_is_closed(const struct mr_sleep_gate *g);
