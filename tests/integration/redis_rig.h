/* A redis-server for a test, with a private socket in a directory of its own. At the end the server
 * is killed and the directory is removed. */
#pragma once

#include "base/alloc.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct redis_rig {
    char dir[64];
    char address[128]; /* "unix:PATH" */
    bool keeps;        /* acknowledged writes survive a kill of the server */
    pid_t pid;
};

static inline void nap(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

/* Runs a program, waits for its end, and asserts that its exit status is 0. */
static inline void run(const char *program, const char *a, const char *b, const char *c)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)execlp(program, program, a, b, c, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    (void)waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

static inline void redis_start(struct redis_rig *r)
{
    r->pid = fork();
    assert_true(r->pid >= 0);
    if (r->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        (void)dup2(null, 1);
        (void)execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", r->address + 5,
            "--dir", r->dir, "--save", "", "--appendonly", r->keeps ? "yes" : "no", "--appendfsync",
            "always", (char *)NULL);
        _exit(127);
    }
}

static inline void redis_stop(struct redis_rig *r)
{
    (void)kill(r->pid, SIGKILL);
    (void)waitpid(r->pid, NULL, 0);
}

static inline void redis_open(struct redis_rig *r, bool keeps)
{
    (void)snprintf(r->dir, sizeof r->dir, "/tmp/mr-redis-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    (void)snprintf(r->address, sizeof r->address, "unix:%s/redis.sock", r->dir);
    r->keeps = keeps;
    redis_start(r);
}

static inline void redis_close(struct redis_rig *r)
{
    redis_stop(r);
    run("rm", "-rf", "--", r->dir);
}
