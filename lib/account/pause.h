/* Pauses (SIGSTOP): times in which the process of a worker or of the scheduler did not run. */
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
/* Takes an idle time from `*from` to `until`. `class` would be its class without pauses. Returns
 * the class of the last part of this time, and moves `*from` up to where that part begins. `lane`:
 * the slot of the worker that had to act; a pause of that worker gives STOPPED. A pause of the
 * scheduler turns REPORT and SEND into DECIDE. */
enum mr_account_class mr_account_pauses_class(const struct mr_account_pauses *p, uint32_t lane,
    enum mr_account_class class, mr_time *from, mr_time until);
/* Returns the time between `from` and `until` in which the slot's worker was paused. */
mr_duration mr_account_pauses_ns(
    const struct mr_account_pauses *p, uint32_t lane, mr_time from, mr_time until);
