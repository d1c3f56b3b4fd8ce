/* Paths of programs and of the user's state, and the cluster that `up` last started. */
#pragma once

#include "base/err.h"

#include <stddef.h>

/* Returns the path of a program that is found by PATH, to be freed with mr_release. NULL: there is
 * none. */
char *mr_paths_command(const char *name);

/* Returns the directory with the pages of the dashboard, ../share/millrace/dashboard as seen from
 * this program, to be freed with mr_release. NULL: this installation has no dashboard. */
char *mr_paths_dashboard(void);

/* The cluster that `up` has recorded last, in last.json of the user's state. `up` writes no token
 * into the file. A script that starts a cluster may write the file instead, and may put a token in.
 * Texts are "" where the file has none. mr_last_cluster_read returns MR_EAWAY if there is no file,
 * or if the file is not JSON. */
struct mr_last_cluster {
    char *url;
    char *token;
    char *ca;        /* path of a file with the CA to trust at an https: URL */
    char *scheduler; /* gRPC address of the scheduler */
    char *directory;
};
int mr_last_cluster_read(struct mr_last_cluster *out, struct mr_error *e);
int mr_last_cluster_write(const struct mr_last_cluster *c, struct mr_error *e);
void mr_last_cluster_fini(struct mr_last_cluster *c);

/* Returns the directory of the user's state, $MILLRACE_HOME or ~/.millrace, to be freed with
 * mr_release. */
char *mr_paths_home(void);
