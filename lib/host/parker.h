/* Parks one thread, the sleeper, which shares a queue with another one, the waker (as park and
 * unpark of Java's LockSupport and Rust's std::thread). When the queue is empty, the sleeper parks.
 * After each new item, the waker unparks and learns whether the sleeper has to be woken. No wake-up
 * is lost: park fails if the waker has called unpark since the sleeper's last look into the queue.
 * The callers choose how the sleeper sleeps and is woken. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

struct mr_parker {
    _Atomic int state; /* 0: the sleeper is awake */
};

/* For the sleeper. True: it must sleep. False: it must look into the queue again. */
bool mr_parker_park(struct mr_parker *p);
/* For the waker. True, exactly once for each sleep: the waker has to wake the sleeper. */
bool mr_parker_unpark(struct mr_parker *p);
/* For the waker: does the sleeper sleep? If so, it sleeps until the waker calls unpark. */
bool mr_parker_is_parked(const struct mr_parker *p);
