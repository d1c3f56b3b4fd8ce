/* Counts recent failures by key. The gateway counts requests with a wrong token, by the client's
 * address. The table has a fixed size; when two keys fall on one entry, the entry belongs to the
 * key that failed last. The functions may be called on any thread. */
#pragma once

#include "base/str.h"
#include "host/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_attempts;

/* Makes a table. A key may fail `failures_max` times within `window`, which begins with the key's
 * first failure. */
struct mr_attempts *mr_attempts_new(uint32_t failures_max, mr_duration window);
void mr_attempts_free(struct mr_attempts **a);

/* True: the key may try again; the empty key always may. False: the key has failed `failures_max`
 * times within its window. */
bool mr_attempts_may(struct mr_attempts *a, struct mr_str key, mr_time now);
void mr_attempts_fail(struct mr_attempts *a, struct mr_str key, mr_time now);
