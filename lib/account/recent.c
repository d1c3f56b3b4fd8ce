#include "account/recent.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/defs.h"
#include "base/id.h"

#define WAYS 4u

void mr_account_recents_init(struct mr_account_recents *r, uint32_t entries_max)
{
    uint32_t buckets = 1;
    while (buckets < entries_max / WAYS)
        buckets *= 2;
    r->mask = buckets - 1;
    r->entries = mr_alloc_array((size_t)buckets * WAYS, sizeof *r->entries);
    for (uint32_t i = 0; i < buckets * WAYS; i++)
        r->entries[i].job = MR_ACCOUNT_NONE;
}

void mr_account_recents_fini(struct mr_account_recents *r)
{
    mr_release(r->entries);
    r->entries = NULL;
}

static struct mr_account_recent *bucket_of(
    const struct mr_account_recents *r, uint32_t job, uint32_t index)
{
    uint64_t bucket = mr_hash_u64(job) + index / WAYS;
    return &r->entries[(size_t)(bucket & r->mask) * WAYS];
}

const struct mr_account_recent *mr_account_recents_find(
    const struct mr_account_recents *r, uint32_t job, uint32_t index)
{
    const struct mr_account_recent *b = bucket_of(r, job, index);
    for (uint32_t i = 0; i < WAYS; i++)
        if (b[i].index == index && b[i].job == job) return &b[i];
    return NULL;
}

void mr_account_recents_put(struct mr_account_recents *r, const struct mr_account_recent *entry)
{
    struct mr_account_recent *b = bucket_of(r, entry->job, entry->index), *to = NULL;
    mr_assert(entry->job != MR_ACCOUNT_NONE);
    for (uint32_t i = 0; i < WAYS; i++) {
        if (b[i].index == entry->index && b[i].job == entry->job) {
            to = &b[i];
            break;
        }
        if (!to || (to->job != MR_ACCOUNT_NONE &&
                       (b[i].job == MR_ACCOUNT_NONE || b[i].accounted < to->accounted)))
            to = &b[i];
    }
    *to = *entry;
}
