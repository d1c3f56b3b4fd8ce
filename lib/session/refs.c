/* Checks that the runs of a message cover its rows (refs.h explains runs and rows). */
#include "session/refs.h"

int mr_ws_refs_check(const char *what, const struct mr_ws_refs *r, struct mr_error *e)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < r->runs_count; i++)
        sum += r->runs[i].count;
    if (sum == r->count) return MR_OK;
    return mr_fail(e, MR_EFORMAT, "%s: the runs cover %llu rows, the columns have %u", what,
        (unsigned long long)sum, r->count);
}
