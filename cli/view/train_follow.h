/* Follows a training: one stream with its state and one with its scores, across broken connections.
 */
#pragma once

#include "cli/client/client.h"
#include "cli/view/train_view.h"

struct mr_train_follow_options {
    bool quiet; /* true: no progress line */
};

/* Returns MR_OK when the session has ended; the view then has all its scores. MR_ECANCELED: the
 * user pressed Ctrl-C twice. MR_EAWAY: the gateway did not answer the first or the last
 * request, or did not answer for two minutes while the session ran. The first Ctrl-C asks the
 * session to stop and keep its model. Signals have to be blocked (mr_signal_block). */
int mr_train_follow(const struct mr_client *c, const char *id,
    const struct mr_train_follow_options *o, struct mr_train_view *view, struct mr_error *e);
/* Reads the state of the session into the view. */
int mr_train_get(
    const struct mr_client *c, const char *id, struct mr_train_view *view, struct mr_error *e);
int mr_train_stop(const struct mr_client *c, const char *id, const char *reason, bool abandon,
    yyjson_doc **doc, struct mr_error *e);
