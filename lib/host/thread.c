/* Starts threads, and moves them to the processors that they prefer (thread.h). */
#include "host/thread.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHORT_SLICE_NS 300000
#define RETURN_PAUSE (50 * MR_MS)
#define RETURN_PAUSE_MAX (2 * MR_SECOND)
#define CPU_IS_BUSY (MR_MS) /* if moving to the processor took longer, the processor is busy */

struct mr_thread {
    pthread_t id;
    char name[16]; /* the kernel keeps 16 bytes, including the NUL */
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

uint64_t mr_thread_self(void)
{
    return (uint64_t)pthread_self();
}

void mr_thread_set_background(void)
{
    /* On Linux this changes the calling thread alone. */
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), 10);
}

struct sched_attributes { /* struct sched_attr, which the C library does not declare */
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

void mr_thread_set_short_slice(bool on)
{
    struct sched_attributes t = {0};
    if (syscall(SYS_sched_getattr, 0, &t, sizeof t, 0) || t.policy != SCHED_OTHER) return;
    t.size = sizeof t;
    t.flags = 0;
    t.runtime = on ? SHORT_SLICE_NS : 0; /* 0 means the kernel's default */
    (void)syscall(SYS_sched_setattr, 0, &t, 0);
}

static _Thread_local struct {
    bool is_set;
    int cpu;
    mr_time again;     /* the thread does not return to the processor before this time */
    mr_duration pause; /* the pause between two returns */
} preferred;

/* Moves the thread to its preferred processor. Binding a thread to a processor makes the kernel
 * move the thread there at once; the thread then undoes the binding. A thread that stayed bound
 * would wait for its processor while others are idle, and would delay the kernel's own threads
 * there. The thread can undo the binding only when it runs on that processor. If the thread had to
 * wait for the processor, the next return comes later. */
static void go_to_cpu(const cpu_set_t *allowed)
{
    mr_time begun = mr_clock_now();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)preferred.cpu, &one);
    if (!sched_setaffinity(0, sizeof one, &one))
        (void)sched_setaffinity(0, sizeof *allowed, allowed);
    mr_time now = mr_clock_now();
    bool was_busy = now - begun > CPU_IS_BUSY;
    preferred.pause = was_busy ? MR_MIN(2 * preferred.pause, RETURN_PAUSE_MAX) : RETURN_PAUSE;
    preferred.again = mr_time_after(now, preferred.pause);
}

void mr_thread_cpu_prefer(uint32_t n)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) || CPU_COUNT(&set) == 0) return;
    uint32_t skip = n % (uint32_t)CPU_COUNT(&set);
    int cpu = 0;
    while (!CPU_ISSET((size_t)cpu, &set) || skip-- > 0)
        cpu++;
    preferred.is_set = true;
    preferred.cpu = cpu;
    preferred.pause = RETURN_PAUSE;
    go_to_cpu(&set);
}

void mr_thread_cpu_return(void)
{
    cpu_set_t set;
    if (!preferred.is_set || sched_getcpu() == preferred.cpu || mr_clock_now() < preferred.again)
        return;
    if (sched_getaffinity(0, sizeof set, &set)) return;
    if (CPU_ISSET((size_t)preferred.cpu, &set))
        go_to_cpu(&set);
    else
        preferred.is_set = false; /* this process may no longer use the processor */
}

void mr_thread_cpu_clear(void)
{
    preferred.is_set = false;
}

void mr_thread_join(struct mr_thread **thread)
{
    if (!*thread) return;
    struct mr_thread *t = MR_STEAL(*thread);
    int err = pthread_join(t->id, NULL);
    mr_assert(!err);
    mr_release(t);
}
