/* Rates from counters that processes send now and then. No I/O and no clock. */
#pragma once

#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_counters { /* of a process since its start */
    mr_time at;      /* when the process told them, by the scheduler's clock */
    mr_duration cpu_ns;
    uint64_t received_bytes, sent_bytes, written_bytes;
};

struct mr_rates {
    uint32_t cpu_milli; /* processors kept busy, in thousandths */
    uint64_t received_per_s, sent_per_s, written_per_s;
};

/* Computes the rates between `*last` and `now`, and copies `now` into `*last`. False: there are no
 * rates, because `*last` is all 0, no time has passed, or a counter is smaller than before since
 * the process is another one. */
bool mr_rates_next(struct mr_counters *last, const struct mr_counters *now, struct mr_rates *out);
