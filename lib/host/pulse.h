/* Times at which a thread was alive, so that after a pause of the process (SIGSTOP) one can tell
 * when the pause began. The last 16 times that are at least a millisecond apart are kept. One
 * thread marks; any thread reads. */
#pragma once

#include "base/time.h"

#include <stdatomic.h>

#define MR_PULSE_TIMES 16u
#define MR_PULSE_STEP MR_MS

struct mr_pulse {
    mr_time last;                          /* owned by the thread that marks */
    _Atomic mr_time times[MR_PULSE_TIMES]; /* a ring; 0: no time yet */
    uint32_t at;                           /* owned by the thread that marks */
};

static inline void mr_pulse_mark(struct mr_pulse *p, mr_time now)
{
    if (now - p->last < MR_PULSE_STEP) return;
    p->last = now;
    atomic_store_explicit(&p->times[p->at++ % MR_PULSE_TIMES], now, memory_order_relaxed);
}

/* A pause lies between `*from` (0: not known) and `*until`. Moves these two times closer to it. The
 * thread was alive at each mark, so the pause is taken to be in the longest time without one. */
static inline void mr_pulse_narrow(const struct mr_pulse *p, mr_time *from, mr_time *until)
{
    mr_time best_from = *from, best_until = *until;
    mr_duration longest = 0;
    /* tries the span after each marked time, and at last the span after `*from` */
    for (uint32_t i = 0; i <= MR_PULSE_TIMES; i++) {
        mr_time begin =
            i < MR_PULSE_TIMES ? atomic_load_explicit(&p->times[i], memory_order_relaxed) : *from;
        if (!begin || begin < *from || begin >= *until) continue;
        mr_time end = *until;
        for (uint32_t k = 0; k < MR_PULSE_TIMES; k++) {
            mr_time t = atomic_load_explicit(&p->times[k], memory_order_relaxed);
            if (t > begin && t < end) end = t;
        }
        if (end - begin <= longest) continue;
        longest = end - begin;
        best_from = begin;
        best_until = end;
    }
    *from = best_from;
    *until = best_until;
}
