/* Follows a job by its stream of events, across broken connections. */
#pragma once

#include "cli/client/client.h"

enum mr_follow_style {
    MR_FOLLOW_QUIET,
    MR_FOLLOW_BAR,    /* one live line on stderr */
    MR_FOLLOW_LINES,  /* one line an event on stdout */
    MR_FOLLOW_SCREEN, /* drawn in place on the terminal of stdout; the key q leaves */
    MR_FOLLOW_JSON,   /* the JSON of each event as a line on stdout */
};

/* Returns when the job has ended. `*exit_code` is the exit code for its end, and `*job` the
 * document of the last event (yyjson_doc_free it). A broken stream is resumed if the gateway comes
 * back within a minute. If the user leaves the screen, the exit code is MR_EXIT_JOB, and the job in
 * the document is not over. With `job` NULL, the function prints how the job's loops ended: on
 * stdout with MR_FOLLOW_LINES, else on stderr. */
int mr_client_follow(const struct mr_client *c, const char *id, enum mr_follow_style style,
    int *exit_code, yyjson_doc **job, struct mr_error *e);
bool mr_job_is_over(yyjson_val *job);
void mr_job_print(yyjson_val *job); /* a few lines of text */
/* Did a loop of the job end because it reached its `max` rounds? */
bool mr_job_is_unconverged(yyjson_val *job);
