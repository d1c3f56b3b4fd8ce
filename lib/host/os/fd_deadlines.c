/* An array with the deadline of each descriptor, under one lock. mr_fd_deadlines_reap holds the
 * lock while it calls shutdown(2). So no shutdown of a descriptor is under way after
 * mr_fd_deadlines_forget has returned for this descriptor. */
#include "host/os/fd_deadlines.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <pthread.h>
#include <sys/socket.h>

struct mr_fd_deadlines {
    pthread_mutex_t lock;
    mr_time *deadlines; /* indexed by descriptor; 0: the descriptor has no deadline */
    size_t count;
};

struct mr_fd_deadlines *mr_fd_deadlines_new(void)
{
    struct mr_fd_deadlines *p = mr_alloc(sizeof *p);
    int failed = pthread_mutex_init(&p->lock, NULL);
    mr_assert(!failed);
    return p;
}

void mr_fd_deadlines_free(struct mr_fd_deadlines **d)
{
    if (!*d) return;
    (void)pthread_mutex_destroy(&(*d)->lock);
    mr_release((*d)->deadlines);
    mr_release(*d);
    *d = NULL;
}

void mr_fd_deadlines_set(struct mr_fd_deadlines *d, int fd, mr_time deadline)
{
    mr_assert(fd >= 0);
    mr_assert(deadline > 0);
    size_t at = (size_t)fd;
    (void)pthread_mutex_lock(&d->lock);
    if (at >= d->count) {
        size_t count = MR_MAX(2 * d->count, at + 1);
        d->deadlines =
            mr_grow(d->deadlines, d->count * sizeof *d->deadlines, count * sizeof *d->deadlines);
        d->count = count;
    }
    d->deadlines[at] = deadline;
    (void)pthread_mutex_unlock(&d->lock);
}

void mr_fd_deadlines_forget(struct mr_fd_deadlines *d, int fd)
{
    (void)pthread_mutex_lock(&d->lock);
    if (fd >= 0 && (size_t)fd < d->count) d->deadlines[fd] = 0;
    (void)pthread_mutex_unlock(&d->lock);
}

size_t mr_fd_deadlines_reap(struct mr_fd_deadlines *d, mr_time now, mr_time *next)
{
    size_t reaped = 0;
    *next = MR_NEVER;
    (void)pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->count; i++) {
        mr_time deadline = d->deadlines[i];
        if (deadline == 0 || deadline == MR_NEVER) continue;
        if (deadline > now) {
            *next = MR_MIN(*next, deadline);
            continue;
        }
        d->deadlines[i] = MR_NEVER; /* a socket is shut down once */
        (void)shutdown((int)i, SHUT_RDWR);
        reaped++;
    }
    (void)pthread_mutex_unlock(&d->lock);
    return reaped;
}
