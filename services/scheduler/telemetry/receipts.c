#include "services/scheduler/telemetry/receipts.h"

#include "base/defs.h"

#include <stdbool.h>

void mr_receipts_sent(struct mr_receipts *r, mr_time now)
{
    r->at[r->count % MR_RECEIPTS_MAX].sent = now;
    r->at[r->count % MR_RECEIPTS_MAX].received = 0;
    r->count++;
}

/* Returns the number of the oldest message whose times are kept. */
static uint64_t oldest(const struct mr_receipts *r)
{
    return r->count - MR_MIN(r->count, (uint64_t)MR_RECEIPTS_MAX);
}

void mr_receipts_received(
    struct mr_receipts *r, uint64_t first, const mr_time *times, uint32_t count, int64_t offset)
{
    uint64_t least = oldest(r);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t number = first + i;
        if (number < least || number >= r->count) continue;
        mr_time sent = r->at[number % MR_RECEIPTS_MAX].sent;
        mr_time received = times[i] + (uint64_t)offset;
        r->at[number % MR_RECEIPTS_MAX].received = MR_MAX(received, sent);
    }
}

mr_time mr_receipts_find(const struct mr_receipts *r, mr_time assigned)
{
    uint64_t low = oldest(r), high = r->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (r->at[middle % MR_RECEIPTS_MAX].sent < assigned)
            low = middle + 1;
        else
            high = middle;
    }
    /* the message before the oldest one kept may have been the first after `assigned` */
    bool is_known = low < r->count && (low > oldest(r) || !low);
    return is_known ? r->at[low % MR_RECEIPTS_MAX].received : 0;
}
