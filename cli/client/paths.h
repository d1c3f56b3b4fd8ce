/* Paths of programs and of the user's state, and the cluster that `up` last started. */
#pragma once

#include "base/err.h"

#include <stddef.h>

/* The path of a program in the directory of this one ("mr-worker"); mr_release it. */
char *mr_paths_program(const char *name);
/* The path of a program that PATH finds; NULL: none. mr_release it. */
char *mr_paths_command(const char *name);

/* The cluster that `up` has recorded last, in last.json of the user's state. A script that starts a
 * cluster may write this file, too, with a token. Texts are "" where the file has none. MR_EAWAY:
 * there is no file. */
struct mr_last_cluster {
    char *url;
    char *token;
    char *ca;        /* a file: the CA to trust at an https: URL */
    char *scheduler; /* its gRPC address */
    char *directory;
};
int mr_last_cluster_read(struct mr_last_cluster *out, struct mr_error *e);
int mr_last_cluster_write(const struct mr_last_cluster *c, struct mr_error *e);
void mr_last_cluster_fini(struct mr_last_cluster *c);

/* The directory of the user's state: $MILLRACE_HOME, or ~/.millrace. mr_release it. */
char *mr_paths_home(void);
