/* Where things are: the programs beside this one, and the cluster that `up` last started. */
#pragma once

#include "base/err.h"

#include <stddef.h>

/* The path of a program that is installed beside this one ("mr-worker"); mr_release it. */
char *mr_place_program(const char *name);
/* The path of a program of the system, through PATH; NULL when there is none. */
char *mr_place_in_path(const char *name);

/* The cluster that `up` wrote down last: its URL and the gRPC address of its scheduler. Whoever
 * starts one otherwise may write the file, with a token for the URL. Texts are to be mr_release'd,
 * "" is what the file lacks. MR_EAWAY when `up` was never run by this user. */
struct mr_place_cluster {
    char *url;
    char *token;
    char *ca; /* a file: whose certificates are believed at an https: URL */
    char *scheduler;
    char *directory;
};
int mr_place_read_last(struct mr_place_cluster *out, struct mr_error *e);
int mr_place_write_last(const struct mr_place_cluster *c, struct mr_error *e);
void mr_place_cluster_fini(struct mr_place_cluster *c);

/* Where a user's state goes when no --dir says otherwise: $MILLRACE_HOME, or ~/.millrace. */
char *mr_place_home(void);
