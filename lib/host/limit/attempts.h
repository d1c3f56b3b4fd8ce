/* How often each of many has failed lately: wrong tokens by the address of a client. A table of
 * fixed size; two whose hashes meet in it count for the one that failed last. Any thread. */
#pragma once

#include "base/str.h"
#include "host/clock.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_attempts;

/* At most `failures_max` failures in a `window`, which begins with the first one. */
struct mr_attempts *mr_attempts_new(uint32_t failures_max, mr_duration window);
void mr_attempts_free(struct mr_attempts **a);

/* May it try? An empty key may always. */
bool mr_attempts_may(struct mr_attempts *a, struct mr_str key, mr_time now);
void mr_attempts_fail(struct mr_attempts *a, struct mr_str key, mr_time now);
