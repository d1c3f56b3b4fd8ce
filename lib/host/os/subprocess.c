/* Runs a child process (subprocess.h). With on_err, the lines of the process's stderr go to this
 * callback. Without on_err, mr_process.err keeps the end of stderr. */
#include "lib/host/os/subprocess.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "host/os/signal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_MS 10
#define ERR_BYTES_MAX ((size_t)262144)
#define FILES_MAX 1024
#define LINE_BYTES_MAX ((size_t)900) /* bytes; a longer line is passed on in several pieces */
#define READ_BYTES 65536
/* The largest number of reads from each pipe after the process has ended. This many reads take more
 * bytes than a pipe can hold. */
#define REST_READS_MAX 32

/* The user that all child processes run as; set once, before other threads start. uid 0: the user
 * of this process. */
static struct mr_user run_as;

void mr_process_run_as(const struct mr_user *user)
{
    run_as = user ? *user : (struct mr_user){0};
}

void mr_process_files_begin(void)
{
    if (run_as.uid) mr_user_enter(&run_as);
}

void mr_process_files_end(void)
{
    if (run_as.uid) mr_user_leave();
}

struct pipes {
    int in[2], out[2], err[2];
};

static void close_one(int *fd)
{
    if (*fd >= 0) (void)close(*fd);
    *fd = -1;
}

static void pipes_close(struct pipes *p)
{
    close_one(&p->in[0]);
    close_one(&p->in[1]);
    close_one(&p->out[0]);
    close_one(&p->out[1]);
    close_one(&p->err[0]);
    close_one(&p->err[1]);
}

static void limit(int what, uint64_t n)
{
    struct rlimit r = {n, n};
    if (n) (void)setrlimit((__rlimit_resource_t)what, &r);
}

/* The child process after fork: makes only async-signal-safe calls. If the program cannot be
 * started, writes a sentence to stderr and exits with status 127. */
static void child(const struct mr_process *p, const struct pipes *fds)
{
    (void)setpgid(0, 0);
    bool is_user = !run_as.uid || mr_user_become(&run_as);
    /* Must come after the change of user, which clears the parent-death signal. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    bool ready = is_user && dup2(fds->in[0], 0) >= 0 && dup2(fds->out[1], 1) >= 0 &&
                 dup2(fds->err[1], 2) >= 0;
    (void)close_range(3, ~0u, 0);
    limit(RLIMIT_AS, p->memory_bytes_max);
    limit(RLIMIT_CPU, p->cpu_s_max);
    limit(RLIMIT_NOFILE, FILES_MAX);
    struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    mr_signal_reset_child();
    if (ready && !chdir(p->dir)) (void)execvpe(p->argv[0], p->argv, p->env);
    static const char words[] = "cannot start the program\n";
    (void)!write(2, words, sizeof words - 1);
    _exit(127);
}

/* Appends to the kept output. When the buffer is full, drops the older half of it, because the end
 * says most about a failure. */
static void keep_end(struct mr_buf *b, const char *p, size_t n)
{
    if (b->n + n > ERR_BYTES_MAX) {
        size_t from = MR_MIN(b->n, ERR_BYTES_MAX / 2);
        memmove(b->p, b->p + from, b->n - from);
        b->n -= from;
    }
    mr_buf_add(b, p, MR_MIN(n, ERR_BYTES_MAX / 2));
}

/* Reads once from the pipe into `b`. True: bytes were read, or none are there yet. False: the other
 * end is closed or the read failed; `*fd` is then closed. */
static bool drain(int *fd, struct mr_buf *b, bool is_err)
{
    char bytes[READ_BYTES];
    ssize_t n = read(*fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n <= 0) {
        close_one(fd);
        return false;
    }
    if (is_err) {
        keep_end(b, bytes, (size_t)n);
    } else {
        mr_buf_add(b, bytes, (size_t)n);
    }
    return true;
}

/* Passes the complete lines of stderr to on_err; at the end (`is_end`) also a line without a
 * newline. */
static void tell_err(struct mr_process *p, bool is_end)
{
    size_t at = 0;
    if (!p->on_err) return;
    while (at < p->err.n) {
        const char *from = (const char *)p->err.p + at;
        const char *end = memchr(from, '\n', p->err.n - at);
        size_t n = end ? (size_t)(end - from) : p->err.n - at;
        if (!end && !is_end && n < LINE_BYTES_MAX) break;
        bool is_whole = n <= LINE_BYTES_MAX;
        n = MR_MIN(n, LINE_BYTES_MAX);
        p->on_err(p->ctx, mr_str_of(from, n));
        at += n + (end && is_whole);
    }
    if (!at) return;
    memmove(p->err.p, p->err.p + at, p->err.n - at);
    p->err.n -= at;
}

static void feed(struct pipes *fds, struct mr_str *input)
{
    ssize_t n = input->n ? write(fds->in[1], input->p, input->n) : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) *input = mr_str_of(input->p + n, input->n - (size_t)n);
    if (n < 0 || !input->n) close_one(&fds->in[1]);
}

static bool has_ended(pid_t pid)
{
    siginfo_t info = {0};
    return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == pid;
}

/* Writes the input and reads the output until the process has ended. Returns MR_OK, or the reason
 * why the process has to be killed. */
static int attend(struct mr_process *p, struct pipes *fds, pid_t pid, struct mr_error *e)
{
    struct mr_str input = p->input;
    while (!has_ended(pid)) {
        struct pollfd polled[3] = {{.fd = fds->out[0], .events = POLLIN},
            {.fd = fds->err[0], .events = POLLIN}, {.fd = fds->in[1], .events = POLLOUT}};
        (void)poll(polled, 3, POLL_MS);
        if (polled[0].revents) (void)drain(&fds->out[0], &p->out, false);
        if (polled[1].revents) (void)drain(&fds->err[0], &p->err, true);
        if (polled[1].revents) tell_err(p, false);
        if (polled[2].revents) feed(fds, &input);
        if (p->is_cancelled(p->ctx)) return mr_fail(e, MR_ECANCELED, "it was stopped");
        if (mr_buf_status(&p->out))
            return mr_fail(e, MR_ELIMIT, "it wrote more than %zu bytes", MR_PROCESS_OUTPUT_MAX);
    }
    return MR_OK;
}

static int start(struct mr_process *p, struct pipes *fds, pid_t *pid, struct mr_error *e)
{
    *fds = (struct pipes){{-1, -1}, {-1, -1}, {-1, -1}};
    if (pipe2(fds->in, O_CLOEXEC) || pipe2(fds->out, O_CLOEXEC) || pipe2(fds->err, O_CLOEXEC)) {
        pipes_close(fds);
        return mr_fail(e, MR_EIO, "cannot make pipes: %s", strerror(errno));
    }
    *pid = fork();
    if (*pid == 0) child(p, fds);
    if (*pid < 0) {
        pipes_close(fds);
        return mr_fail(e, MR_EIO, "cannot fork: %s", strerror(errno));
    }
    /* Both parent and child call setpgid, because either may run first. */
    (void)setpgid(*pid, *pid);
    close_one(&fds->in[0]);
    close_one(&fds->out[1]);
    close_one(&fds->err[1]);
    (void)fcntl(fds->in[1], F_SETFL, O_NONBLOCK);
    (void)fcntl(fds->out[0], F_SETFL, O_NONBLOCK);
    (void)fcntl(fds->err[0], F_SETFL, O_NONBLOCK);
    return MR_OK;
}

static int outcome(const struct mr_process *p, int status, struct mr_error *e)
{
    if (WIFSIGNALED(status))
        return mr_fail(e, MR_EUNKNOWN, "%s was ended by signal %d (%s)", p->argv[0],
            WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (WEXITSTATUS(status))
        return mr_fail(e, MR_EUNKNOWN, "%s ended with status %d", p->argv[0], WEXITSTATUS(status));
    return MR_OK;
}

/* Reads the bytes that the pipes still hold. A descendant that has left the process group may keep
 * a pipe open and write for ever, so the number of reads is bounded. */
static void drain_rest(struct mr_process *p, struct pipes *fds)
{
    for (int i = 0; i < REST_READS_MAX && fds->out[0] >= 0 && !mr_buf_status(&p->out); i++)
        if (!drain(&fds->out[0], &p->out, false)) break;
    for (int i = 0; i < REST_READS_MAX && fds->err[0] >= 0; i++) {
        if (!drain(&fds->err[0], &p->err, true)) break;
        tell_err(p, false);
    }
}

int mr_process_run(struct mr_process *p, struct mr_error *e)
{
    struct pipes fds;
    pid_t pid = 0;
    mr_buf_init(&p->out, MR_PROCESS_OUTPUT_MAX);
    mr_buf_init(&p->err, ERR_BYTES_MAX * 2);
    int err = start(p, &fds, &pid, e);
    if (err) return err;
    err = attend(p, &fds, pid, e);
    /* Kills the process group before waitpid: until waitpid has returned, no other group can have
     * this number. */
    (void)kill(-pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    drain_rest(p, &fds);
    tell_err(p, true);
    pipes_close(&fds);
    if (!err && mr_buf_status(&p->out))
        err = mr_fail(e, MR_ELIMIT, "it wrote more than %zu bytes", MR_PROCESS_OUTPUT_MAX);
    return err ? err : outcome(p, status, e);
}

void mr_process_fini(struct mr_process *p)
{
    mr_buf_fini(&p->out);
    mr_buf_fini(&p->err);
}
