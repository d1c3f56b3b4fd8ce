/* A count for each key, with one limit for all counts. The gateway counts the open connections of
 * each client address. The functions may be called on any thread. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

#define MR_QUOTA_KEY_BYTES_MAX 16

struct mr_quota;

/* Makes a table in which each key has the limit `each_max`. 0: no limit. */
struct mr_quota *mr_quota_new(uint32_t each_max);
void mr_quota_free(struct mr_quota **q);

bool mr_quota_has_room(struct mr_quota *q, struct mr_str key);
void mr_quota_add(struct mr_quota *q, struct mr_str key);
/* Undoes one mr_quota_add of the key. */
void mr_quota_remove(struct mr_quota *q, struct mr_str key);
