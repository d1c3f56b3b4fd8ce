/* What belongs to one thread, which lends it to others while it sleeps: who has the baton may touch
 * it. The owner takes it, others only try. */
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

static inline void mr_loan_lock_fini(struct mr_loan_lock *l) /* nobody has it */
{
    (void)pthread_mutex_destroy(&l->lock);
}

static inline void mr_loan_lock_lock(struct mr_loan_lock *l) /* waits for a borrower */
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
