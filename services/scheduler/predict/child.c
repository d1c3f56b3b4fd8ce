#include "services/scheduler/predict/child.h"

#include "base/alloc.h"
#include "host/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_MS 10
#define READ_BYTES 65536
#define MEMORY_LOOK (100 * MR_MS)

struct running {
    pid_t pid;
    int fd;              /* the read end of the pipe; -1: the program has closed its end */
    mr_time until, look; /* `look`: when the memory is looked at next */
};

/* Starts the program in a process group of its own, with default signals. Its stdout is `fd`, and
 * it inherits stderr and no other descriptor. */
static int spawn(char *const *argv, int fd, pid_t *pid)
{
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t files;
    sigset_t none, all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    (void)posix_spawnattr_init(&attr);
    (void)posix_spawn_file_actions_init(&files);
    (void)posix_spawnattr_setflags(
        &attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    (void)posix_spawnattr_setpgroup(&attr, 0);
    (void)posix_spawnattr_setsigmask(&attr, &none);
    (void)posix_spawnattr_setsigdefault(&attr, &all);
    int failed = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    if (!failed) failed = posix_spawn_file_actions_adddup2(&files, fd, 1);
    if (!failed) failed = posix_spawn_file_actions_addclosefrom_np(&files, 3);
    if (!failed) failed = posix_spawn(pid, argv[0], &files, &attr, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attr);
    return failed;
}

/* The second number of the file is the resident memory in pages. */
static uint64_t resident_bytes(pid_t pid)
{
    char path[64], text[128];
    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *space = strchr(text, ' ');
    return space ? strtoull(space, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* Waits a moment for output, and reads it. */
static void read_some(struct running *r, struct mr_buf *out)
{
    struct pollfd p = {.fd = r->fd, .events = POLLIN};
    char bytes[READ_BYTES];
    if (poll(&p, r->fd < 0 ? 0 : 1, POLL_MS) <= 0) return;
    ssize_t n = read(r->fd, bytes, sizeof bytes);
    if (n > 0) mr_buf_add(out, bytes, (size_t)n);
    if (n > 0 || (n < 0 && errno == EINTR)) return;
    (void)close(r->fd);
    r->fd = -1;
}

/* MR_OK: the program may go on. Otherwise: why it has to be killed. */
static int look(const struct mr_predict_child *c, struct running *r, const struct mr_buf *out,
    struct mr_error *e)
{
    mr_time now = mr_clock_now();
    if (mr_flag_is_set(c->stop)) return mr_fail(e, MR_ECANCELED, "the prediction was stopped");
    if (now >= r->until)
        return mr_fail(e, MR_ETIMEOUT,
            "the prediction took more than %" PRIu64 " s: use `millrace whatif --offline`",
            c->time_max / MR_SECOND);
    if (mr_buf_status(out)) return mr_fail(e, MR_EINTERNAL, "mr-predictor writes too much");
    if (now < r->look) return MR_OK;
    r->look = now + MEMORY_LOOK;
    if (resident_bytes(r->pid) <= c->memory_bytes_max) return MR_OK;
    return mr_fail(e, MR_ETOOBIG,
        "the prediction needs more than %" PRIu64 " MiB: use `millrace whatif --offline`",
        c->memory_bytes_max >> 20);
}

static int ended(int status, struct mr_error *e)
{
    if (WIFSIGNALED(status))
        return mr_fail(e, MR_EINTERNAL, "mr-predictor was ended by signal %d", WTERMSIG(status));
    if (WEXITSTATUS(status))
        return mr_fail(e, MR_EINTERNAL, "mr-predictor ended with status %d", WEXITSTATUS(status));
    return MR_OK;
}

int mr_predict_child_run(const struct mr_predict_child *c, struct mr_buf *out, struct mr_error *e)
{
    int fds[2], status = 0, err = MR_OK;
    struct running r = {.until = mr_time_after(mr_clock_now(), c->time_max)};
    if (pipe2(fds, O_CLOEXEC)) return mr_fail(e, MR_EIO, "cannot make a pipe: %s", strerror(errno));
    int failed = spawn(c->argv, fds[1], &r.pid);
    (void)close(fds[1]);
    r.fd = fds[0];
    if (failed) {
        (void)close(fds[0]);
        return mr_fail(e, MR_EIO, "cannot start mr-predictor: %s", strerror(failed));
    }
    bool has_ended = false;
    while (!err && !has_ended) {
        read_some(&r, out);
        has_ended = r.fd < 0 && waitpid(r.pid, &status, WNOHANG) == r.pid;
        if (!has_ended) err = look(c, &r, out, e);
    }
    if (!has_ended) {
        (void)kill(-r.pid, SIGKILL);
        while (waitpid(r.pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    if (r.fd >= 0) (void)close(r.fd);
    if (!err) err = ended(status, e);
    if (!err && mr_buf_status(out)) err = mr_fail(e, MR_EINTERNAL, "mr-predictor wrote too much");
    return err;
}
