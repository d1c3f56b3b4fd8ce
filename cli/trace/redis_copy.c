#include "cli/trace/redis_copy.h"

#include "base/alloc.h"
#include "base/defs.h"
#include "base/time.h"
#include "cli/client/paths.h"
#include "host/clock.h"
#include "host/os/file.h"
#include "host/os/process_dir.h"
#include "host/os/signal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DIR_KIND "millrace-past"
#define LOADING_MAX (10 * 60 * MR_SECOND)
#define LOOK_EVERY (10 * MR_MS)

static struct redis_copy {
    char *of; /* the cluster's directory */
    struct mr_process_dir dir;
    pid_t pid;
    char *address;
} the_copy;

static void copy_end(void)
{
    struct redis_copy *c = &the_copy;
    if (c->pid > 0 && !kill(c->pid, SIGKILL)) (void)waitpid(c->pid, NULL, 0);
    mr_process_dir_close(&c->dir);
    mr_release(c->of);
    mr_release(c->address);
    *c = (struct redis_copy){0};
}

/* Returns a connection to the socket; -1: no process listens there. */
static int connect_to(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path) return -1;
    memcpy(at.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&at, sizeof at)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

bool mr_redis_copy_is_alive(const char *dir)
{
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s/run/redis.sock", dir);
    int fd = connect_to(path);
    if (fd >= 0) (void)close(fd);
    return fd >= 0;
}

/* Returns whether Redis has read its records. Until then, Redis answers PING with an error. */
static bool has_loaded(const char *path)
{
    static const char ping[] = "PING\r\n", pong[] = "+PONG";
    char answer[sizeof pong - 1];
    int fd = connect_to(path);
    if (fd < 0) return false;
    bool ok = write(fd, ping, sizeof ping - 1) == (ssize_t)sizeof ping - 1 &&
              recv(fd, answer, sizeof answer, MSG_WAITALL) == (ssize_t)sizeof answer &&
              !memcmp(answer, pong, sizeof answer);
    (void)close(fd);
    return ok;
}

/* Runs in the child process: executes redis-server. */
static void become(const char *program, const char *dir, pid_t parent)
{
    MR_AUTO(mr_free_ptr) char *log = mr_format("%s/log", dir);
    MR_AUTO(mr_free_ptr) char *records = mr_format("%s/redis", dir);
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s/redis.sock", dir);
    mr_signal_reset_child();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1); /* the parent died before the call of prctl */
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    (void)dup2(fd, 1);
    (void)dup2(fd, 2);
    (void)execl(program, program, "--port", "0", "--save", "", "--appendonly", "yes",
        "--appendfsync", "no", "--aof-load-truncated", "yes", "--daemonize", "no",
        "--unixsocketperm", "700", "--unixsocket", path, "--dir", records, (char *)NULL);
    _exit(127);
}

static int await(struct redis_copy *c, const char *path, struct mr_error *e)
{
    mr_time until = mr_time_after(mr_clock_now(), LOADING_MAX);
    while (!has_loaded(path)) {
        if (waitpid(c->pid, NULL, WNOHANG)) {
            c->pid = 0;
            return mr_fail(e, MR_EIO, "redis-server cannot read the records in %s/redis", c->of);
        }
        if (mr_clock_now() > until)
            return mr_fail(e, MR_ETIMEOUT, "redis-server still reads %s/redis after %llu minutes",
                c->of, (unsigned long long)(LOADING_MAX / (60 * MR_SECOND)));
        struct timespec nap = {.tv_nsec = (long)LOOK_EVERY};
        (void)nanosleep(&nap, NULL);
    }
    return MR_OK;
}

static int start(struct redis_copy *c, struct mr_error *e)
{
    MR_AUTO(mr_free_ptr) char *program = mr_paths_command("redis-server");
    MR_AUTO(mr_free_ptr) char *from = mr_format("%s/redis", c->of);
    if (!program)
        return mr_fail(
            e, MR_ENOENT, "redis-server is not installed (apt-get install redis-server)");
    (void)mr_process_dir_sweep("/tmp", DIR_KIND);
    int err = mr_process_dir_open(&c->dir, "/tmp", DIR_KIND, e);
    MR_AUTO(mr_free_ptr) char *to = mr_format("%s/redis", c->dir.path);
    MR_AUTO(mr_free_ptr) char *path = mr_format("%s/redis.sock", c->dir.path);
    if (!err) err = mr_file_copy_tree(from, to, e);
    if (err) return err;
    pid_t parent = getpid();
    c->pid = fork();
    if (c->pid == 0) become(program, c->dir.path, parent);
    if (c->pid < 0) return mr_fail(e, MR_EIO, "redis-server: %s", strerror(errno));
    c->address = mr_format("unix:%s", path);
    return await(c, path, e);
}

int mr_redis_copy_start(const char *dir, const char **address, struct mr_error *e)
{
    struct redis_copy *c = &the_copy;
    if (c->of && strcmp(c->of, dir) != 0)
        return mr_fail(e, MR_ELIMIT, "the records of %s and of %s at once", c->of, dir);
    if (!c->of) {
        c->of = mr_copy_text(dir);
        int err = start(c, e);
        if (err) {
            copy_end();
            return err;
        }
        (void)atexit(copy_end);
    }
    *address = c->address;
    return MR_OK;
}
