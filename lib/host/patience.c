/* A table by descriptor under one lock. The lock is held around shutdown(2), so that forgetting
 * means that it is over. */
#include "host/patience.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <pthread.h>
#include <sys/socket.h>

struct mr_patience {
    pthread_mutex_t lock;
    mr_time *deadlines; /* by descriptor; 0: not ours */
    size_t count;
};

struct mr_patience *mr_patience_new(void)
{
    struct mr_patience *p = mr_alloc(sizeof *p);
    int failed = pthread_mutex_init(&p->lock, NULL);
    mr_assert(!failed);
    return p;
}

void mr_patience_free(struct mr_patience **p)
{
    if (!*p) return;
    (void)pthread_mutex_destroy(&(*p)->lock);
    mr_release((*p)->deadlines);
    mr_release(*p);
    *p = NULL;
}

void mr_patience_set(struct mr_patience *p, int fd, mr_time deadline)
{
    mr_assert(fd >= 0);
    mr_assert(deadline > 0);
    size_t at = (size_t)fd;
    (void)pthread_mutex_lock(&p->lock);
    if (at >= p->count) {
        size_t count = MR_MAX(2 * p->count, at + 1);
        p->deadlines =
            mr_grow(p->deadlines, p->count * sizeof *p->deadlines, count * sizeof *p->deadlines);
        p->count = count;
    }
    p->deadlines[at] = deadline;
    (void)pthread_mutex_unlock(&p->lock);
}

void mr_patience_forget(struct mr_patience *p, int fd)
{
    (void)pthread_mutex_lock(&p->lock);
    if (fd >= 0 && (size_t)fd < p->count) p->deadlines[fd] = 0;
    (void)pthread_mutex_unlock(&p->lock);
}

size_t mr_patience_reap(struct mr_patience *p, mr_time now, mr_time *next)
{
    size_t reaped = 0;
    *next = MR_NEVER;
    (void)pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->count; i++) {
        mr_time deadline = p->deadlines[i];
        if (deadline == 0 || deadline == MR_NEVER) continue;
        if (deadline > now) {
            *next = MR_MIN(*next, deadline);
            continue;
        }
        p->deadlines[i] = MR_NEVER; /* once is enough */
        (void)shutdown((int)i, SHUT_RDWR);
        reaped++;
    }
    (void)pthread_mutex_unlock(&p->lock);
    return reaped;
}
