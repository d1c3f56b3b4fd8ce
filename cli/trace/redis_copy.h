/* Access to the records of a cluster whose Redis does not run any more. A Redis that this process
 * starts serves a copy of the records, so nothing in the cluster's directory is changed. */
#pragma once

#include "base/err.h"

#include <stdbool.h>

/* True: a Redis listens at DIR/run/redis.sock. */
bool mr_redis_copy_is_alive(const char *dir);

/* Starts redis-server with a copy of DIR/redis, and waits until it has read the copy. Sets
 * `*address` to a text that is lent until the end of the process. The end of the process also ends
 * the server and removes the copy.
 * MR_ENOENT: the directory has no records, or redis-server is not installed. */
int mr_redis_copy_start(const char *dir, const char **address, struct mr_error *e);
