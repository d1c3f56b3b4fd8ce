/* A table of the users who have large requests, under one lock. allowance.h describes the bound. */
#include "host/limit/allowance.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/id.h"

#include <pthread.h>

struct user { /* a user who has a request with more than `free_bytes` */
    uint64_t id;
    uint64_t bytes;
    uint32_t holds;
};

struct mr_allowance {
    pthread_mutex_t lock;
    uint64_t bytes_max, free_bytes;
    uint64_t bytes;
    struct user *users;
    size_t count, room;
};

struct mr_allowance *mr_allowance_new(uint64_t bytes_max, uint64_t free_bytes)
{
    struct mr_allowance *q = mr_alloc(sizeof *q);
    int failed = pthread_mutex_init(&q->lock, NULL);
    mr_assert(!failed);
    q->bytes_max = bytes_max;
    q->free_bytes = free_bytes;
    return q;
}

void mr_allowance_free(struct mr_allowance **qp)
{
    struct mr_allowance *q = *qp;
    *qp = NULL;
    if (!q) return;
    (void)pthread_mutex_destroy(&q->lock);
    mr_release(q->users);
    mr_release(q);
}

static uint64_t id_of(struct mr_str user)
{
    uint64_t h = user.n;
    for (size_t i = 0; i < user.n; i++)
        h = mr_hash_u64(h ^ (unsigned char)user.p[i]);
    return h;
}

static struct user *find(struct mr_allowance *q, uint64_t id)
{
    for (size_t i = 0; i < q->count; i++)
        if (q->users[i].id == id) return &q->users[i];
    return NULL;
}

static struct user *find_or_add(struct mr_allowance *q, uint64_t id)
{
    struct user *u = find(q, id);
    if (u) return u;
    if (q->count == q->room) {
        size_t room = q->room ? 2 * q->room : 16;
        q->users = mr_grow(q->users, q->room * sizeof *u, room * sizeof *u);
        q->room = room;
    }
    q->users[q->count] = (struct user){.id = id};
    return &q->users[q->count++];
}

static void put(struct mr_allowance *q, struct user *u)
{
    if (!u->holds) *u = q->users[--q->count];
}

/* Checks the bytes of all requests, and the bytes of this user's requests. A request that is the
 * only one of its user may use the whole allowance. */
static int check(const struct mr_allowance *q, const struct user *u,
    const struct mr_allowance_hold *hold, uint64_t more, struct mr_error *e)
{
    bool is_alone = u->holds == (hold->counted > 0);
    if (more > q->bytes_max - MR_MIN(q->bytes, q->bytes_max))
        return mr_fail(e, MR_ELIMIT,
            "too much is being read at once: %llu bytes of incomplete bodies, the limit "
            "is %llu; try again later",
            (unsigned long long)q->bytes, (unsigned long long)q->bytes_max);
    if (is_alone || u->bytes + more <= q->bytes_max / 2) return MR_OK;
    return mr_fail(e, MR_ELIMIT,
        "%u of your requests are being read at once and have %llu bytes, the limit for one user "
        "is %llu; try again later",
        u->holds, (unsigned long long)u->bytes, (unsigned long long)(q->bytes_max / 2));
}

int mr_allowance_add(struct mr_allowance *q, struct mr_allowance_hold *hold, struct mr_str user,
    uint64_t bytes, struct mr_error *e)
{
    hold->bytes += bytes;
    uint64_t counted = hold->bytes > q->free_bytes ? hold->bytes - q->free_bytes : 0;
    if (counted == hold->counted) return MR_OK;
    uint64_t more = counted - hold->counted;
    if (!hold->counted) hold->user = id_of(user);
    (void)pthread_mutex_lock(&q->lock);
    struct user *u = find_or_add(q, hold->user);
    int err = check(q, u, hold, more, e);
    if (err) {
        hold->bytes -= bytes;
    } else {
        u->holds += !hold->counted;
        u->bytes += more;
        q->bytes += more;
        hold->counted = counted;
    }
    put(q, u);
    (void)pthread_mutex_unlock(&q->lock);
    return err;
}

void mr_allowance_drop(struct mr_allowance *q, struct mr_allowance_hold *hold)
{
    if (hold->counted) {
        (void)pthread_mutex_lock(&q->lock);
        struct user *u = find(q, hold->user);
        mr_assert(u && u->bytes >= hold->counted && u->holds);
        u->bytes -= hold->counted;
        q->bytes -= hold->counted;
        u->holds--;
        put(q, u);
        (void)pthread_mutex_unlock(&q->lock);
    }
    *hold = (struct mr_allowance_hold){0};
}

uint64_t mr_allowance_bytes(struct mr_allowance *q)
{
    (void)pthread_mutex_lock(&q->lock);
    uint64_t bytes = q->bytes;
    (void)pthread_mutex_unlock(&q->lock);
    return bytes;
}
