/* Following a job over its event stream, across broken connections. */
#pragma once

#include "cli/client/client.h"

enum mr_follow_style {
    MR_FOLLOW_QUIET,
    MR_FOLLOW_BAR,    /* one live line on stderr */
    MR_FOLLOW_LINES,  /* one line an event on stdout */
    MR_FOLLOW_SCREEN, /* the terminal that stdout is, drawn in place; the key q leaves */
    MR_FOLLOW_JSON,   /* the event's JSON, one a line, on stdout */
};

/* Returns when the job has ended: MR_OK, with the exit code for its end in `*exit_code` and, if
 * `job` is not NULL, the last event's document (yyjson_doc_free it). The stream is resumed by the
 * last event's id when it breaks, for as long as the gateway comes back within a minute. Who leaves
 * the screen gets MR_EXIT_JOB, and a document of a job that is not over. With `job` NULL, how the
 * job's loops ended is said here: on stdout with MR_FOLLOW_LINES, else on stderr. */
int mr_client_follow(const struct mr_client *c, const char *id, enum mr_follow_style style,
    int *exit_code, yyjson_doc **job, struct mr_error *e);
bool mr_job_is_over(yyjson_val *job);
void mr_job_print(yyjson_val *job); /* a few lines for people */
/* A loop of it ended because its rounds were used up. */
bool mr_job_has_exhausted(yyjson_val *job);
