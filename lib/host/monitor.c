/* A pthread mutex with a condition variable on the monotonic clock. */
#include "host/monitor.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"

#include <errno.h>
#include <pthread.h>

struct mr_monitor {
    pthread_mutex_t lock;
    pthread_cond_t changed;
};

struct mr_monitor *mr_monitor_new(void)
{
    struct mr_monitor *m = mr_alloc(sizeof *m);
    pthread_condattr_t attr;
    int err = pthread_condattr_init(&attr);
    if (!err) err = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (!err) err = pthread_cond_init(&m->changed, &attr);
    if (!err) err = pthread_mutex_init(&m->lock, NULL);
    mr_assert(!err);
    (void)pthread_condattr_destroy(&attr);
    return m;
}

void mr_monitor_free(struct mr_monitor **m)
{
    if (!*m) return;
    (void)pthread_cond_destroy(&(*m)->changed);
    (void)pthread_mutex_destroy(&(*m)->lock);
    mr_release(*m);
    *m = NULL;
}

void mr_monitor_enter(struct mr_monitor *m)
{
    int err = pthread_mutex_lock(&m->lock);
    mr_assert(!err);
}

void mr_monitor_leave(struct mr_monitor *m)
{
    int err = pthread_mutex_unlock(&m->lock);
    mr_assert(!err);
}

bool mr_monitor_wait(struct mr_monitor *m, mr_time deadline)
{
    if (deadline == MR_NEVER) {
        (void)pthread_cond_wait(&m->changed, &m->lock);
        return true;
    }
    struct timespec at = {
        .tv_sec = (time_t)(deadline / MR_SECOND), .tv_nsec = (long)(deadline % MR_SECOND)};
    return pthread_cond_timedwait(&m->changed, &m->lock, &at) != ETIMEDOUT;
}

void mr_monitor_notify(struct mr_monitor *m)
{
    int err = pthread_cond_broadcast(&m->changed);
    mr_assert(!err);
}
