/*  OPEN ──close──▶ CLOSED        RUNG: the waker came while the sleeper was awake
 *   │ ▲──────open────┘           (open and close from there lead to OPEN's rows) */
#include "host/sleep_gate.h"

enum { OPEN, RUNG, CLOSED };

bool mr_sleep_gate_close(struct mr_sleep_gate *g)
{
    int expected = OPEN;
    if (atomic_compare_exchange_strong(&g->state, &expected, CLOSED)) return true;
    /* The state was RUNG; only the waker sets RUNG, and only the sleeper clears it. */
    atomic_store(&g->state, OPEN);
    return false;
}

bool mr_sleep_gate_open(struct mr_sleep_gate *g)
{
    int state = atomic_load(&g->state);
    for (;;) {
        int next = state == CLOSED ? OPEN : RUNG;
        if (atomic_compare_exchange_weak(&g->state, &state, next)) return state == CLOSED;
    }
}

bool mr_sleep_gate_is_closed(const struct mr_sleep_gate *g)
{
    return atomic_load(&g->state) == CLOSED;
}
