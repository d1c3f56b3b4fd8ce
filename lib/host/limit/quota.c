/* A hash table of chains under one lock. Threads hold the lock only for a look-up, and the table
 * has few entries. */
#include "host/limit/quota.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <pthread.h>

#define BUCKETS 1024

struct entry {
    struct entry *next;
    unsigned char key[MR_QUOTA_KEY_BYTES_MAX];
    size_t key_n;
    uint32_t count;
};

struct mr_quota {
    pthread_mutex_t lock;
    uint32_t each_max;
    struct entry *buckets[BUCKETS];
};

struct mr_quota *mr_quota_new(uint32_t each_max)
{
    struct mr_quota *q = mr_alloc(sizeof *q);
    int failed = pthread_mutex_init(&q->lock, NULL);
    mr_assert(!failed);
    q->each_max = each_max;
    return q;
}

void mr_quota_free(struct mr_quota **qp)
{
    struct mr_quota *q = MR_STEAL(*qp);
    if (!q) return;
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct entry *e = q->buckets[i], *next; e; e = next) {
            next = e->next;
            mr_release(e);
        }
    (void)pthread_mutex_destroy(&q->lock);
    mr_release(q);
}

/* Returns the link that points to the key's entry, or the link where a new entry belongs. The hash
 * is FNV-1a (Fowler, Noll, Vo). */
static struct entry **find(struct mr_quota *q, struct mr_str key)
{
    mr_assert(key.n <= MR_QUOTA_KEY_BYTES_MAX);
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < key.n; i++)
        hash = (hash ^ (unsigned char)key.p[i]) * 16777619u;
    struct entry **at = &q->buckets[hash % BUCKETS];
    while (*at && !((*at)->key_n == key.n && memcmp((*at)->key, key.p, key.n) == 0))
        at = &(*at)->next;
    return at;
}

bool mr_quota_has_room(struct mr_quota *q, struct mr_str key)
{
    if (!q->each_max) return true;
    (void)pthread_mutex_lock(&q->lock);
    const struct entry *e = *find(q, key);
    bool has_room = !e || e->count < q->each_max;
    (void)pthread_mutex_unlock(&q->lock);
    return has_room;
}

void mr_quota_add(struct mr_quota *q, struct mr_str key)
{
    (void)pthread_mutex_lock(&q->lock);
    struct entry **at = find(q, key);
    if (!*at) {
        *at = mr_alloc(sizeof **at);
        memcpy((*at)->key, key.p, key.n);
        (*at)->key_n = key.n;
    }
    (*at)->count++;
    (void)pthread_mutex_unlock(&q->lock);
}

void mr_quota_remove(struct mr_quota *q, struct mr_str key)
{
    (void)pthread_mutex_lock(&q->lock);
    struct entry **at = find(q, key);
    mr_assert(*at && (*at)->count > 0);
    if (--(*at)->count == 0) {
        struct entry *gone = *at;
        *at = gone->next;
        mr_release(gone);
    }
    (void)pthread_mutex_unlock(&q->lock);
}
