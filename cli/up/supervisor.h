/* Starts child processes in order, restarts them when they end, and stops them in the reverse
 * order. Restarts have a back-off and a bound of 5 a minute. Children are in this process's group
 * and are killed when it dies. Each writes its output to a log file.
 *
 * A child that runs user code may crash because of that code, so it is restarted without a bound.
 */
#pragma once

#include "base/err.h"
#include "base/time.h"

#include <stdbool.h>
#include <sys/types.h>

struct mr_supervisor;

struct mr_child_spec {       /* texts are copied */
    const char *name;        /* name for messages, such as "worker-0-1" */
    const char *const *argv; /* argv[0] is the program; NULL at the end */
    const char *log_path;    /* stdout and stderr are appended to this file */
    mr_duration stop_grace;  /* time between SIGTERM and SIGKILL */
    bool runs_user_code;     /* true: the child is restarted without a bound */
    /* A socket that the child inherits, as sd_listen_fds(3) describes; 0: none. */
    int listen_fd;
};

struct mr_supervisor *mr_supervisor_new(void);
void mr_supervisor_free(struct mr_supervisor **s); /* kills the children that still run */

/* Starts a child. MR_ENOENT: the program does not exist. */
int mr_supervisor_start(
    struct mr_supervisor *s, const struct mr_child_spec *spec, struct mr_error *e);

/* Tells the supervisor that the cluster is ready. From now on a child with `runs_user_code` is
 * restarted however often it ends, with a back-off of up to 5 s. Before this call the bound holds
 * for this child, too, because a child that ends often during startup cannot start at all. */
void mr_supervisor_end_startup(struct mr_supervisor *s);

enum mr_supervisor_event {
    MR_SUPERVISOR_TIMEOUT, /* `deadline` is over */
    MR_SUPERVISOR_STOP,    /* SIGINT, SIGTERM or SIGHUP came */
    /* A child has ended too often or cannot be started again; `e` says which child and why. */
    MR_SUPERVISOR_GAVE_UP,
};

/* Reaps and restarts children, until one of the events occurs, which is returned. */
enum mr_supervisor_event mr_supervisor_run(
    struct mr_supervisor *s, mr_time deadline, struct mr_error *e);

/* Stops the children in the reverse order of their start. Sends SIGTERM to a child and waits for
 * its end before the next child gets SIGTERM. Consecutive children with `runs_user_code` are
 * stopped together. If SIGINT, SIGTERM or SIGHUP comes two seconds or more after the call began,
 * the child that is waited for is killed at once. Each child after it then has half a second
 * between SIGTERM and SIGKILL. */
void mr_supervisor_stop(struct mr_supervisor *s);
