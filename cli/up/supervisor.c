/* The supervisor of `up`. Signals come through a signalfd, so no code runs in a signal handler. */
#include "cli/up/supervisor.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/os/signal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN_MAX 4200
#define INHERITED_FD 3 /* the first socket of sd_listen_fds(3) */
#define RESTARTS_MAX 5
#define RESTARTS_WINDOW (60 * MR_SECOND)
#define BACKOFF_MIN (100 * MR_MS)
#define BACKOFF_MAX (5 * MR_SECOND)
#define TAIL_BYTES 600
#define HURRIED_GRACE (MR_SECOND / 2)
/* Signals that are closer together than this count as one, because some tools send several signals
 * in order to stop a process. */
#define SAME_REQUEST (2 * MR_SECOND)

struct child {
    char *name;
    char **argv;
    char *log_path;
    mr_duration grace;
    bool runs_user_code;
    int listen_fd; /* 0: none */
    pid_t pid;
    mr_time ends[RESTARTS_MAX]; /* times at which the child last ended, as a ring */
    uint32_t ends_count;
    mr_time again; /* when the child will be restarted; 0: no restart is planned */
    int status;
};

struct mr_supervisor {
    struct child *children[CHILDREN_MAX];
    size_t count;
    int signal_fd;
    mr_time stopping; /* when the stopping began; 0: the supervisor is not stopping */
    bool is_hurried;  /* true: a second signal has asked to stop */
    bool is_started;  /* true: mr_supervisor_end_startup was called */
};

struct mr_supervisor *mr_supervisor_new(void)
{
    struct mr_supervisor *s = mr_alloc(sizeof *s);
    sigset_t set;
    /* Blocks SIGPIPE, too, because the reader of our output may end first. */
    mr_signal_block();
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    mr_assert(s->signal_fd >= 0);
    return s;
}

static void child_free(struct child *c)
{
    for (size_t i = 0; c->argv[i]; i++)
        mr_release(c->argv[i]);
    mr_release(c->argv);
    mr_release(c->name);
    mr_release(c->log_path);
    mr_release(c);
}

void mr_supervisor_free(struct mr_supervisor **sp)
{
    struct mr_supervisor *s = *sp;
    *sp = NULL;
    if (!s) return;
    for (size_t i = 0; i < s->count; i++) {
        if (s->children[i]->pid) {
            (void)kill(s->children[i]->pid, SIGKILL);
            (void)waitpid(s->children[i]->pid, NULL, 0);
        }
        child_free(s->children[i]);
    }
    (void)close(s->signal_fd);
    mr_release(s);
}

/* Runs in the child: passes a listening socket as sd_listen_fds(3) wants it. setenv is allowed
 * after this fork, because the parent has one thread. */
static void pass_socket(int fd)
{
    char pid[16];
    (void)snprintf(pid, sizeof pid, "%d", (int)getpid());
    if (fd == INHERITED_FD)
        (void)fcntl(fd, F_SETFD, 0);
    else
        (void)dup2(fd, INHERITED_FD);
    (void)setenv("LISTEN_FDS", "1", 1);
    (void)setenv("LISTEN_PID", pid, 1);
}

/* Runs in the child, and executes the program. SIGINT stays blocked, because a terminal's Ctrl-C
 * reaches the whole process group, but the supervisor stops the children in order. */
static void become(const struct child *c, pid_t parent, int log_fd, int null_fd)
{
    mr_signal_reset_child();
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_SETMASK, &set, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    /* The parent died before the call of prctl. */
    if (getppid() != parent) _exit(1);
    (void)dup2(null_fd, 0);
    (void)dup2(log_fd, 1);
    (void)dup2(log_fd, 2);
    if (c->listen_fd) pass_socket(c->listen_fd);
    (void)execv(c->argv[0], c->argv);
    _exit(127);
}

static int spawn(struct child *c, struct mr_error *e)
{
    if (access(c->argv[0], X_OK))
        return mr_fail(e, MR_ENOENT, "%s: no program at %s", c->name, c->argv[0]);
    int log_fd = open(c->log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (log_fd < 0 || null_fd < 0)
        return mr_fail(e, MR_EIO, "%s: cannot write %s: %s", c->name, c->log_path, strerror(errno));
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) become(c, parent, log_fd, null_fd);
    (void)close(log_fd);
    (void)close(null_fd);
    if (pid < 0) return mr_fail(e, MR_EIO, "%s: cannot start: %s", c->name, strerror(errno));
    c->pid = pid;
    c->again = 0;
    return MR_OK;
}

int mr_supervisor_start(
    struct mr_supervisor *s, const struct mr_child_spec *spec, struct mr_error *e)
{
    if (s->count == CHILDREN_MAX)
        return mr_fail(e, MR_ELIMIT, "more than %d processes", CHILDREN_MAX);
    size_t argc = 0;
    while (spec->argv[argc])
        argc++;
    struct child *c = mr_alloc(sizeof *c);
    c->name = mr_copy_text(spec->name);
    c->log_path = mr_copy_text(spec->log_path);
    c->argv = mr_alloc_array(argc + 1, sizeof *c->argv);
    for (size_t i = 0; i < argc; i++)
        c->argv[i] = mr_copy_text(spec->argv[i]);
    c->grace = spec->stop_grace;
    c->runs_user_code = spec->runs_user_code;
    c->listen_fd = spec->listen_fd;
    int err = spawn(c, e);
    if (err) {
        child_free(c);
        return err;
    }
    s->children[s->count++] = c;
    return MR_OK;
}

/* Reads the last bytes of a log, for the message that tells why the child ended. */
static void tail(const char *path, char out[TAIL_BYTES])
{
    out[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    off_t end = lseek(fd, 0, SEEK_END);
    off_t from = end > TAIL_BYTES - 1 ? end - (TAIL_BYTES - 1) : 0;
    ssize_t n = pread(fd, out, TAIL_BYTES - 1, from);
    (void)close(fd);
    out[n > 0 ? n : 0] = 0;
}

static const char *how(int status)
{
    return WIFSIGNALED(status) ? "was killed by signal" : "ended with code";
}

static int number(int status)
{
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

static int give_up(const struct child *c, struct mr_error *e)
{
    char log[TAIL_BYTES];
    tail(c->log_path, log);
    return mr_fail(e, MR_EABORTED, "%s %s %d, %d times within a minute; the end of %s: %s", c->name,
        how(c->status), number(c->status), RESTARTS_MAX, c->log_path, log);
}

/* Handles the end of a child: sets the time of its restart. An error means that the child has ended
 * too often. */
static int ended(struct mr_supervisor *s, struct child *c, int status, struct mr_error *e)
{
    mr_time now = mr_clock_now();
    c->pid = 0;
    c->status = status;
    mr_time oldest = c->ends[c->ends_count % RESTARTS_MAX];
    bool often = c->ends_count >= RESTARTS_MAX && now - oldest < RESTARTS_WINDOW;
    if (often && !(c->runs_user_code && s->is_started)) return give_up(c, e);
    uint32_t recent = 0;
    for (uint32_t i = 0; i < RESTARTS_MAX; i++)
        recent += c->ends[i] && now - c->ends[i] < RESTARTS_WINDOW;
    c->ends[c->ends_count++ % RESTARTS_MAX] = now;
    mr_duration pause = often ? BACKOFF_MAX : recent ? BACKOFF_MIN << recent : 0;
    c->again = now + MR_MAX(pause, 1);
    (void)fprintf(stderr, "millrace up: %s %s %d and is started again in %.1f s; see %s\n", c->name,
        how(status), number(status), (double)pause / (double)MR_SECOND, c->log_path);
    return MR_OK;
}

static int reap(struct mr_supervisor *s, struct mr_error *e)
{
    for (size_t i = 0; i < s->count; i++) {
        struct child *c = s->children[i];
        int status = 0;
        if (!c->pid || waitpid(c->pid, &status, WNOHANG) != c->pid) continue;
        int err = ended(s, c, status, e);
        if (err) return err;
    }
    return MR_OK;
}

/* Restarts the children that are due, and sets `*next` to the time of the next restart. */
static int restart(struct mr_supervisor *s, mr_time *next, struct mr_error *e)
{
    mr_time now = mr_clock_now();
    for (size_t i = 0; i < s->count; i++) {
        struct child *c = s->children[i];
        if (c->pid || !c->again) continue;
        int err = c->again <= now ? spawn(c, e) : MR_OK;
        if (err) return err;
        if (!c->pid) *next = MR_MIN(*next, c->again);
    }
    return MR_OK;
}

static int wait_ms(mr_time until)
{
    mr_time now = mr_clock_now();
    if (until == MR_NEVER) return -1;
    if (until <= now) return 0;
    uint64_t ms = (until - now) / MR_MS + 1;
    return ms > 60000 ? 60000 : (int)ms;
}

void mr_supervisor_end_startup(struct mr_supervisor *s)
{
    s->is_started = true;
}

enum mr_supervisor_event mr_supervisor_run(
    struct mr_supervisor *s, mr_time deadline, struct mr_error *e)
{
    for (;;) {
        mr_time next = deadline;
        if (reap(s, e) || restart(s, &next, e)) return MR_SUPERVISOR_GAVE_UP;
        if (mr_clock_now() >= deadline) return MR_SUPERVISOR_TIMEOUT;
        struct pollfd fd = {.fd = s->signal_fd, .events = POLLIN};
        if (poll(&fd, 1, wait_ms(next)) <= 0) continue;
        struct signalfd_siginfo info;
        while (read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info)
            if (info.ssi_signo != SIGCHLD) return MR_SUPERVISOR_STOP;
    }
}

/* Waits until `until` for the end of a child. False: the child still runs. */
static bool wait_end(struct mr_supervisor *s, struct child *c, mr_time until)
{
    while (c->pid) {
        int status = 0;
        if (waitpid(c->pid, &status, WNOHANG) == c->pid) {
            c->pid = 0;
            return true;
        }
        if (mr_clock_now() >= until) return false;
        struct pollfd fd = {.fd = s->signal_fd, .events = POLLIN};
        (void)poll(&fd, 1, MR_MIN(wait_ms(until), 50));
        struct signalfd_siginfo info;
        bool asked = read(s->signal_fd, &info, sizeof info) == (ssize_t)sizeof info &&
                     info.ssi_signo != SIGCHLD;
        if (!asked || s->is_hurried || mr_clock_now() < s->stopping + SAME_REQUEST) continue;
        s->is_hurried = true;
        until = mr_clock_now();
    }
    return true;
}

static void ask_to_end(struct child *c)
{
    c->again = 0;
    if (c->pid) (void)kill(c->pid, SIGTERM);
}

static void await_end(struct mr_supervisor *s, struct child *c, mr_time asked)
{
    if (wait_end(s, c, asked + (s->is_hurried ? HURRIED_GRACE : c->grace))) return;
    (void)fprintf(stderr, "millrace up: %s %s and is killed\n", c->name,
        s->is_hurried ? "is not waited for" : "did not end in time");
    (void)kill(c->pid, SIGKILL);
    (void)wait_end(s, c, MR_NEVER);
}

/* Returns the first child that is stopped together with child end - 1. Workers are stopped
 * together. If they were stopped one after the other, each worker would get the tasks that the
 * worker before it returned, and use its whole grace. */
static size_t group_of(const struct mr_supervisor *s, size_t end)
{
    size_t first = end - 1;
    while (first && s->children[first]->runs_user_code && s->children[first - 1]->runs_user_code)
        first--;
    return first;
}

void mr_supervisor_stop(struct mr_supervisor *s)
{
    s->stopping = mr_clock_now();
    for (size_t end = s->count; end > 0;) {
        size_t first = group_of(s, end);
        for (size_t i = end; i > first; i--)
            ask_to_end(s->children[i - 1]);
        mr_time asked = mr_clock_now();
        for (size_t i = end; i > first; i--)
            await_end(s, s->children[i - 1], asked);
        end = first;
    }
}
