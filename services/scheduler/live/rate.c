#include "services/scheduler/live/rate.h"

#include "base/defs.h"

static uint64_t per_second(uint64_t from, uint64_t to, mr_duration time)
{
    return (uint64_t)((double)(to - from) * (double)MR_SECOND / (double)time + 0.5);
}

bool mr_rates_next(struct mr_counters *last, const struct mr_counters *now, struct mr_rates *out)
{
    const struct mr_counters from = *last;
    bool is_other = now->cpu_ns < from.cpu_ns || now->received_bytes < from.received_bytes ||
                    now->sent_bytes < from.sent_bytes || now->written_bytes < from.written_bytes;
    *out = (struct mr_rates){0};
    if (from.at && now->at <= from.at) return false;
    *last = *now;
    if (!from.at || is_other) return false;
    mr_duration time = now->at - from.at;
    uint64_t cpu = per_second(from.cpu_ns, now->cpu_ns, time) / (MR_SECOND / 1000);
    out->cpu_milli = (uint32_t)MR_MIN(cpu, (uint64_t)UINT32_MAX);
    out->received_per_s = per_second(from.received_bytes, now->received_bytes, time);
    out->sent_per_s = per_second(from.sent_bytes, now->sent_bytes, time);
    out->written_per_s = per_second(from.written_bytes, now->written_bytes, time);
    return true;
}
