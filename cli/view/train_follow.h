/* Following a training: its state and its scores, two streams at once, across broken connections.
 */
#pragma once

#include "cli/client/client.h"
#include "cli/view/train_view.h"

struct mr_train_follow_options {
    bool quiet; /* no live line */
};

/* Returns when the session has ended (MR_OK, the view holds all its scores), when a second Ctrl-C
 * left it (MR_ECANCELED), or when nothing was heard of it for two minutes. A first Ctrl-C asks the
 * session to stop and keep its model. Signals have to be blocked: mr_signal_block. */
int mr_train_follow(const struct mr_client *c, const char *id,
    const struct mr_train_follow_options *o, struct mr_train_view *view, struct mr_error *e);
/* What the session is now, into the view. */
int mr_train_get(
    const struct mr_client *c, const char *id, struct mr_train_view *view, struct mr_error *e);
int mr_train_stop(const struct mr_client *c, const char *id, const char *reason, bool abandon,
    yyjson_doc **doc, struct mr_error *e);
