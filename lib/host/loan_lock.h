/* The lock of data that belongs to one thread, the owner, which lends the data to other threads
 * while it sleeps. The owner locks and waits for the lock; the other threads only try to lock. A
 * thread that gets the lock acts as the owner's delegate: it applies the work that all threads have
 * queued. This is flat combining (Hendler, Incze, Shavit, Tzafrir: "Flat Combining and the
 * Synchronization-Parallelism Tradeoff", SPAA 2010). */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct mr_loan_lock {
    pthread_mutex_t lock;
};

static inline void mr_loan_lock_init(struct mr_loan_lock *l)
{
    (void)pthread_mutex_init(&l->lock, NULL);
}

/* To be called when no thread holds the lock. */
static inline void mr_loan_lock_fini(struct mr_loan_lock *l)
{
    (void)pthread_mutex_destroy(&l->lock);
}

/* Takes the lock for the owner; waits until no delegate holds it. */
static inline void mr_loan_lock_lock(struct mr_loan_lock *l)
{
    (void)pthread_mutex_lock(&l->lock);
}

static inline bool mr_loan_lock_try(struct mr_loan_lock *l)
{
    return !pthread_mutex_trylock(&l->lock);
}

static inline void mr_loan_lock_unlock(struct mr_loan_lock *l)
{
    (void)pthread_mutex_unlock(&l->lock);
}
