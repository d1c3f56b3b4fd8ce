/* Times in which a process did not run (SIGSTOP): a worker's, or the scheduler's. */
#pragma once

#include "account/class.h"
#include "base/time.h"

#include <stdint.h>

struct mr_account_pause {
    uint32_t lane; /* MR_ACCOUNT_NONE: the scheduler */
    mr_time from, until;
};

struct mr_account_pauses {
    struct mr_account_pause *items;
    uint32_t count, room;
};

void mr_account_pauses_fini(struct mr_account_pauses *p);
void mr_account_pauses_add(struct mr_account_pauses *p, uint32_t lane, mr_time from, mr_time until);
/* Returns the class of an idle time that ends at `*until` and has `class` if no process was paused,
 * and moves `*from` up, so that the answer holds between the two. `lane`: the slot of the worker
 * that had to act, whose pause makes the time STOPPED. A pause of the scheduler makes reports and
 * sendings a matter of the scheduler: DECIDE. */
enum mr_account_class mr_account_pauses_class(const struct mr_account_pauses *p, uint32_t lane,
    enum mr_account_class class, mr_time *from, mr_time until);
/* Returns the time between `from` and `until` in which the slot's worker was paused. */
mr_duration mr_account_pauses_ns(
    const struct mr_account_pauses *p, uint32_t lane, mr_time from, mr_time until);
