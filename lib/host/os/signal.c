/* Reads signals from a signalfd on a thread of its own, so none of this program's code runs in a
 * signal handler. */
#include "host/os/signal.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "host/thread.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

struct mr_signals {
    int signal_fd;
    int stop_fd;
    pthread_mutex_t lock; /* protects the four members below */
    void (*on_signal)(void *ctx, int number);
    void *ctx;
    void (*on_continue)(void *ctx, mr_time at); /* NULL: nobody asks */
    void *continue_ctx;
    struct mr_thread *thread;
};

static sigset_t ours(void)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGCONT);
    return set;
}

void mr_signal_block(void)
{
    sigset_t set = ours();
    int err = pthread_sigmask(SIG_BLOCK, &set, NULL);
    mr_assert(!err);
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    err = sigaction(SIGPIPE, &ignore, NULL);
    mr_assert(!err);
}

/* Passes a signal to the callback. Without a callback the program is still starting and has
 * accepted no work yet. Ending the process here is no worse than a crash, after which every service
 * recovers. */
static void tell(struct mr_signals *s, int number)
{
    (void)pthread_mutex_lock(&s->lock);
    void (*on_signal)(void *ctx, int number) = s->on_signal;
    void *ctx = s->ctx;
    if (!on_signal) {
        mr_log(MR_INFO, "start.stopped", "signal=%d", number);
        _exit(0);
    }
    (void)pthread_mutex_unlock(&s->lock);
    on_signal(ctx, number);
}

static void continued(struct mr_signals *s, mr_time at)
{
    (void)pthread_mutex_lock(&s->lock);
    void (*on_continue)(void *ctx, mr_time at) = s->on_continue;
    void *ctx = s->continue_ctx;
    (void)pthread_mutex_unlock(&s->lock);
    if (on_continue) on_continue(ctx, at);
}

static void run(void *arg)
{
    struct mr_signals *s = arg;
    struct pollfd fds[] = {{s->signal_fd, POLLIN, 0}, {s->stop_fd, POLLIN, 0}};
    for (;;) {
        int n = poll(fds, MR_ARRAY_LEN(fds), -1);
        if (n < 0 && errno == EINTR) continue;
        mr_assert(n > 0);
        if (fds[1].revents) return;
        struct signalfd_siginfo info;
        if (read(s->signal_fd, &info, sizeof info) != (ssize_t)sizeof info) continue;
        if (info.ssi_signo == SIGCONT)
            continued(s, mr_clock_now());
        else
            tell(s, (int)info.ssi_signo);
    }
}

struct mr_signals *mr_signal_open(void (*on_signal)(void *ctx, int number), void *ctx)
{
    struct mr_signals *s = mr_alloc(sizeof *s);
    (void)pthread_mutex_init(&s->lock, NULL);
    s->on_signal = on_signal;
    s->ctx = ctx;
    sigset_t set = ours();
    /* A parent that stops its children in order sets MILLRACE_SUPERVISED. Ctrl-C sends SIGINT to
     * the whole process group; the child ignores SIGINT and waits for the parent's SIGTERM. */
    if (getenv("MILLRACE_SUPERVISED")) (void)sigdelset(&set, SIGINT);
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    mr_assert(s->signal_fd >= 0);
    s->stop_fd = eventfd(0, EFD_CLOEXEC);
    mr_assert(s->stop_fd >= 0);
    s->thread = mr_thread_start("signals", run, s);
    return s;
}

void mr_signal_hand(struct mr_signals *s, void (*on_signal)(void *ctx, int number), void *ctx)
{
    mr_assert(on_signal);
    (void)pthread_mutex_lock(&s->lock);
    s->on_signal = on_signal;
    s->ctx = ctx;
    (void)pthread_mutex_unlock(&s->lock);
}

void mr_signal_on_continue(
    struct mr_signals *s, void (*on_continue)(void *ctx, mr_time at), void *ctx)
{
    (void)pthread_mutex_lock(&s->lock);
    s->on_continue = on_continue;
    s->continue_ctx = ctx;
    (void)pthread_mutex_unlock(&s->lock);
}

void mr_signal_close(struct mr_signals **signals)
{
    if (!*signals) return;
    struct mr_signals *s = MR_STEAL(*signals);
    uint64_t one = 1;
    ssize_t n = write(s->stop_fd, &one, sizeof one);
    mr_assert(n == (ssize_t)sizeof one);
    mr_thread_join(&s->thread);
    (void)close(s->signal_fd);
    (void)close(s->stop_fd);
    (void)pthread_mutex_destroy(&s->lock);
    mr_release(s);
}

void mr_signal_reset_child(void)
{
    struct sigaction normal = {.sa_handler = SIG_DFL};
    (void)sigaction(SIGPIPE, &normal, NULL);
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}
