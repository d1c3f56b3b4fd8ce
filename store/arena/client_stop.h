/* Calls to the store that can be cancelled. A wait for room, for an object or for an answer ends
 * with MR_ECANCELED soon after `stop` is set. The store may or may not have carried out a delete
 * that is cancelled. */
#pragma once

#include "host/stop.h"
#include "store/arena/client.h"

int mr_store_get_or_stop(struct mr_store *st, mr_object_id id, const char *source,
    mr_duration timeout, struct mr_stop stop, struct mr_store_view *out, struct mr_error *e);
int mr_store_create_or_stop(struct mr_store *st, uint64_t bytes, mr_duration timeout,
    struct mr_stop stop, struct mr_store_draft *out, struct mr_error *e);
int mr_store_delete_or_stop(struct mr_store *st, const mr_object_id *ids, size_t n, bool force,
    struct mr_stop stop, struct mr_error *e);
int mr_store_stats_or_stop(
    struct mr_store *st, struct mr_stop stop, struct mr_store_stats *out, struct mr_error *e);
