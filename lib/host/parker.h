/* Parks one thread, the sleeper, which shares a queue with another thread, the waker (as park and
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

/* For the sleeper. True: the sleeper must sleep. False: the sleeper must look into the queue
 * again. */
bool mr_parker_park(struct mr_parker *p);
/* For the waker. True: the waker has to wake the sleeper. Returns true once for each sleep. */
bool mr_parker_unpark(struct mr_parker *p);
/* For the waker. True: the sleeper sleeps, and goes on sleeping until the waker calls unpark. */
bool mr_parker_is_parked(const struct mr_parker *p);
