/* Follows a job by its stream of events, across broken connections. */
#pragma once

#include "cli/client/client.h"

enum mr_follow_style {
    MR_FOLLOW_QUIET,
    MR_FOLLOW_BAR,   /* one line on stderr that is updated in place */
    MR_FOLLOW_LINES, /* one line for each event on stdout */
    /* Drawn in place on the terminal of stdout; the key q leaves. */
    MR_FOLLOW_SCREEN,
    MR_FOLLOW_JSON, /* each event as a line of JSON on stdout */
};

/* Follows the job until it has ended or the user leaves the screen. Sets `*exit_code` to MR_EXIT_OK
 * if the job has succeeded, otherwise to MR_EXIT_JOB. On MR_OK, `*job` is the document of the last
 * event (to be freed with yyjson_doc_free). After the user has left the screen, the job in this
 * document is not over. A broken stream is resumed if the gateway comes back within a minute.
 *
 * If `job` is NULL and the style is not MR_FOLLOW_JSON, the function prints how the loops of the
 * ended job ended: on stdout for the style MR_FOLLOW_LINES, otherwise on stderr. */
int mr_client_follow(const struct mr_client *c, const char *id, enum mr_follow_style style,
    int *exit_code, yyjson_doc **job, struct mr_error *e);
bool mr_job_is_over(yyjson_val *job);
void mr_job_print(yyjson_val *job); /* prints a few lines about the job */
/* True: a loop of the job ended because it reached its `max` rounds. */
bool mr_job_is_unconverged(yyjson_val *job);
