/* Making and reading objects from a thread that may be told to give up: what waits for room, or for
 * an object, ends with MR_ECANCELED soon after `stop` is set. */
#pragma once

#include "host/stop.h"
#include "store/arena/client.h"

int mr_store_get_or_stop(struct mr_store *st, mr_object_id id, const char *source,
    mr_duration timeout, struct mr_stop stop, struct mr_store_view *out, struct mr_error *e);
int mr_store_create_or_stop(struct mr_store *st, uint64_t bytes, mr_duration timeout,
    struct mr_stop stop, struct mr_store_draft *out, struct mr_error *e);
