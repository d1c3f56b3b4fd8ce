/* Rates from counters that processes send now and then. No I/O and no clock. */
#pragma once

#include "base/time.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_counters { /* of a process since its start */
    mr_time at;      /* when the scheduler got them, by its own clock */
    mr_duration cpu_ns;
    uint64_t received_bytes, sent_bytes, written_bytes;
};

struct mr_rates {
    uint32_t cpu_milli; /* processors kept busy, in thousandths */
    uint64_t received_per_s, sent_per_s, written_per_s;
};

/* Computes the rates between `*last` and `now`, and copies `now` into `*last`. False: there are no
 * rates. Either `*last` was all 0, or a counter is smaller than before because the process is
 * another one, or no time has passed. In the last case `*last` stays. */
bool mr_rates_next(struct mr_counters *last, const struct mr_counters *now, struct mr_rates *out);
