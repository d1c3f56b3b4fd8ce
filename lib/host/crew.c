/* Items are handed out under a lock: they take tens of microseconds, and the lock some tens of
 * nanoseconds. */
#include "host/crew.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/machine.h"
#include "host/thread.h"

#include <pthread.h>
#include <stdbool.h>

struct helper {
    struct mr_crew *crew;
    struct mr_thread *thread;
    uint32_t hand;
};

struct mr_crew {
    pthread_mutex_t lock;
    pthread_cond_t more; /* items, or the end */
    pthread_cond_t done; /* nobody has an item in hand, and none is left */
    void (*work)(void *ctx, uint32_t item, uint32_t hand);
    void *ctx;
    uint32_t next, count; /* items */
    uint32_t busy;        /* hands with an item */
    bool is_over;
    uint32_t hands;
    struct helper helpers[]; /* hands - 1 */
};

/* Takes items while there are any. The lock is held before and after. */
static void take_items(struct mr_crew *c, uint32_t hand)
{
    while (c->next < c->count) {
        uint32_t item = c->next++;
        c->busy++;
        (void)pthread_mutex_unlock(&c->lock);
        c->work(c->ctx, item, hand);
        (void)pthread_mutex_lock(&c->lock);
        if (!--c->busy && c->next >= c->count) (void)pthread_cond_signal(&c->done);
    }
}

static void help(void *ctx)
{
    const struct helper *h = ctx;
    struct mr_crew *c = h->crew;
    (void)pthread_mutex_lock(&c->lock);
    while (!c->is_over) {
        take_items(c, h->hand);
        if (!c->is_over) (void)pthread_cond_wait(&c->more, &c->lock);
    }
    (void)pthread_mutex_unlock(&c->lock);
}

uint32_t mr_crew_hands_here(uint32_t most)
{
    struct mr_machine machine;
    mr_machine_read(&machine);
    return MR_MIN(machine.cpus, most);
}

struct mr_crew *mr_crew_new(uint32_t hands)
{
    mr_assert(hands);
    struct mr_crew *c = mr_alloc(sizeof *c + (hands - 1) * sizeof *c->helpers);
    c->hands = hands;
    (void)pthread_mutex_init(&c->lock, NULL);
    (void)pthread_cond_init(&c->more, NULL);
    (void)pthread_cond_init(&c->done, NULL);
    for (uint32_t i = 0; i + 1 < hands; i++) {
        c->helpers[i] = (struct helper){.crew = c, .hand = i + 1};
        c->helpers[i].thread = mr_thread_start("crew", help, &c->helpers[i]);
    }
    return c;
}

void mr_crew_free(struct mr_crew **cp)
{
    struct mr_crew *c = *cp;
    *cp = NULL;
    if (!c) return;
    (void)pthread_mutex_lock(&c->lock);
    c->is_over = true;
    (void)pthread_cond_broadcast(&c->more);
    (void)pthread_mutex_unlock(&c->lock);
    for (uint32_t i = 0; i + 1 < c->hands; i++)
        mr_thread_join(&c->helpers[i].thread);
    (void)pthread_mutex_destroy(&c->lock);
    (void)pthread_cond_destroy(&c->more);
    (void)pthread_cond_destroy(&c->done);
    mr_release(c);
}

uint32_t mr_crew_hands(const struct mr_crew *c)
{
    return c->hands;
}

void mr_crew_run(struct mr_crew *c, void (*work)(void *ctx, uint32_t item, uint32_t hand),
    void *ctx, uint32_t count)
{
    (void)pthread_mutex_lock(&c->lock);
    c->work = work;
    c->ctx = ctx;
    c->next = 0;
    c->count = count;
    if (count > 1) (void)pthread_cond_broadcast(&c->more);
    take_items(c, 0);
    while (c->busy)
        (void)pthread_cond_wait(&c->done, &c->lock);
    c->count = 0;
    (void)pthread_mutex_unlock(&c->lock);
}
