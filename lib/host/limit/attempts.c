/* A table of recent failures with a fixed number of entries, under one lock (attempts.h). */
#include "host/limit/attempts.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <pthread.h>

#define SLOTS 4096

struct slot {
    uint64_t hash; /* hash of the key; 0: the entry is free */
    mr_time began;
    uint32_t failures;
};

struct mr_attempts {
    pthread_mutex_t lock;
    uint32_t failures_max;
    mr_duration window;
    struct slot slots[SLOTS];
};

struct mr_attempts *mr_attempts_new(uint32_t failures_max, mr_duration window)
{
    struct mr_attempts *a = mr_alloc(sizeof *a);
    int failed = pthread_mutex_init(&a->lock, NULL);
    mr_assert(!failed);
    a->failures_max = failures_max;
    a->window = window;
    return a;
}

void mr_attempts_free(struct mr_attempts **ap)
{
    struct mr_attempts *a = MR_STEAL(*ap);
    if (!a) return;
    (void)pthread_mutex_destroy(&a->lock);
    mr_release(a);
}

static uint64_t hash_of(struct mr_str key) /* FNV-1a (Fowler, Noll, Vo) */
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < key.n; i++)
        hash = (hash ^ (unsigned char)key.p[i]) * 1099511628211u;
    return hash ? hash : 1;
}

static bool counts(const struct mr_attempts *a, const struct slot *s, uint64_t hash, mr_time now)
{
    return s->hash == hash && now < mr_time_after(s->began, a->window);
}

bool mr_attempts_may(struct mr_attempts *a, struct mr_str key, mr_time now)
{
    if (!key.n) return true;
    uint64_t hash = hash_of(key);
    const struct slot *s = &a->slots[hash % SLOTS];
    (void)pthread_mutex_lock(&a->lock);
    bool may = !counts(a, s, hash, now) || s->failures < a->failures_max;
    (void)pthread_mutex_unlock(&a->lock);
    return may;
}

void mr_attempts_fail(struct mr_attempts *a, struct mr_str key, mr_time now)
{
    if (!key.n) return;
    uint64_t hash = hash_of(key);
    struct slot *s = &a->slots[hash % SLOTS];
    (void)pthread_mutex_lock(&a->lock);
    if (!counts(a, s, hash, now)) *s = (struct slot){.hash = hash, .began = now};
    if (s->failures < UINT32_MAX) s->failures++;
    (void)pthread_mutex_unlock(&a->lock);
}
