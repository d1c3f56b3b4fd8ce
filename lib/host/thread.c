/* Knows how to start and join a thread; refuses to know what it does. */
#include "host/thread.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

struct mr_thread {
    pthread_t id;
    char name[16]; /* what the kernel keeps, with the NUL */
    void (*run)(void *ctx);
    void *ctx;
};

static void *start(void *arg)
{
    struct mr_thread *t = arg;
    (void)pthread_setname_np(pthread_self(), t->name);
    t->run(t->ctx);
    return NULL;
}

struct mr_thread *mr_thread_start(const char *name, void (*run)(void *ctx), void *ctx)
{
    struct mr_thread *t = mr_alloc(sizeof *t);
    t->run = run;
    t->ctx = ctx;
    for (size_t i = 0; i + 1 < sizeof t->name && name[i]; i++)
        t->name[i] = name[i];

    sigset_t all, old;
    (void)sigfillset(&all);
    int err = pthread_sigmask(SIG_SETMASK, &all, &old);
    mr_assert(!err);
    err = pthread_create(&t->id, NULL, start, t);
    if (err) MR_PANIC("cannot start the thread \"%s\": error %d", name, err);
    err = pthread_sigmask(SIG_SETMASK, &old, NULL);
    mr_assert(!err);
    return t;
}

void mr_thread_give_way(void)
{
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), 10); /* Linux: of this thread alone */
}

void mr_thread_join(struct mr_thread **thread)
{
    if (!*thread) return;
    struct mr_thread *t = MR_STEAL(*thread);
    int err = pthread_join(t->id, NULL);
    mr_assert(!err);
    mr_release(t);
}
