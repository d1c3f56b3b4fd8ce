/* Child processes that live and die with this one: started in order, restarted when they fall (with
 * a back-off, at most 5 times a minute), stopped in the reverse order. Children are in this
 * process's own group, die with it however it dies, and write their errors to a file each.
 * A child that runs what others wrote falls by no fault of its own: it is kept for ever. */
#pragma once

#include "base/err.h"
#include "base/time.h"

#include <stdbool.h>
#include <sys/types.h>

struct mr_supervisor;

struct mr_child_spec {       /* texts are copied */
    const char *name;        /* for people and the log file: "worker-0" */
    const char *const *argv; /* argv[0]: the program; a NULL ends */
    const char *log_path;    /* its stdout and stderr are appended there */
    mr_duration stop_grace;  /* after SIGTERM, before SIGKILL */
    bool runs_foreign;       /* code of others, which may crash it: never given up, see below */
    int listen_fd;           /* lent to it as sd_listen_fds(3) tells; 0: none */
};

struct mr_supervisor *mr_supervisor_new(void);
void mr_supervisor_free(struct mr_supervisor **s); /* kills what still lives */

/* Starts a child. MR_ENOENT when there is no such program. */
int mr_supervisor_start(
    struct mr_supervisor *s, const struct mr_child_spec *spec, struct mr_error *e);

/* From now on a child with `runs_foreign` is started again however often it falls, after pauses
 * that grow to 5 s. Before, falling often means that it cannot start at all. */
void mr_supervisor_settle(struct mr_supervisor *s);

enum mr_supervisor_event {
    MR_SUPERVISOR_TIMEOUT,
    MR_SUPERVISOR_STOP,    /* SIGINT or SIGTERM */
    MR_SUPERVISOR_GAVE_UP, /* a child fell too often; `e` says which and why */
};

/* Reaps and restarts until `deadline`, a signal, or a child that cannot be kept. */
enum mr_supervisor_event mr_supervisor_run(
    struct mr_supervisor *s, mr_time deadline, struct mr_error *e);

/* SIGTERM to each, the last started first, waiting for its end before the next; neighbours that run
 * what others wrote end together. Another signal, two seconds later or more, ends the waiting: what
 * still runs is killed. */
void mr_supervisor_stop(struct mr_supervisor *s);
