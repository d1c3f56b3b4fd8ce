/* What belongs to one thread, which lends it to others while it sleeps: who has the baton may touch
 * it. The owner takes it, others only try. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

struct mr_baton {
    pthread_mutex_t lock;
};

static inline void mr_baton_init(struct mr_baton *b)
{
    (void)pthread_mutex_init(&b->lock, NULL);
}

static inline void mr_baton_fini(struct mr_baton *b) /* nobody has it */
{
    (void)pthread_mutex_destroy(&b->lock);
}

static inline void mr_baton_take(struct mr_baton *b) /* waits for a borrower */
{
    (void)pthread_mutex_lock(&b->lock);
}

static inline bool mr_baton_try(struct mr_baton *b)
{
    return !pthread_mutex_trylock(&b->lock);
}

static inline void mr_baton_give(struct mr_baton *b)
{
    (void)pthread_mutex_unlock(&b->lock);
}
