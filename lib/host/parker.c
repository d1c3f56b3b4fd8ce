/*          AWAKE ──park──▶ PARKED ──unpark──▶ AWAKE
 *           │ ▲
 *    unpark │ └──park, which fails──┐
 *           └──▶ NOTIFIED ──────────┘     unpark changes nothing in NOTIFIED */
#include "host/parker.h"

enum { AWAKE, NOTIFIED, PARKED };

bool mr_parker_park(struct mr_parker *p)
{
    int expected = AWAKE;
    if (atomic_compare_exchange_strong(&p->state, &expected, PARKED)) return true;
    /* Park fails: the state was NOTIFIED, which only the waker sets and only the sleeper clears. */
    atomic_store(&p->state, AWAKE);
    return false;
}

bool mr_parker_unpark(struct mr_parker *p)
{
    int state = atomic_load(&p->state);
    for (;;) {
        int next = state == PARKED ? AWAKE : NOTIFIED;
        if (atomic_compare_exchange_weak(&p->state, &state, next)) return state == PARKED;
    }
}

bool mr_parker_is_parked(const struct mr_parker *p)
{
    return atomic_load(&p->state) == PARKED;
}
