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

static bool is_of(const struct mr_account_recent *e, uint32_t job, uint32_t index)
{
    return e->started && e->index == index && e->job == job;
}

const struct mr_account_recent *mr_account_recents_find(
    const struct mr_account_recents *r, uint32_t job, uint32_t index)
{
    const struct mr_account_recent *b = bucket_of(r, job, index);
    for (uint32_t i = 0; i < WAYS; i++)
        if (is_of(&b[(index + i) % WAYS], job, index)) return &b[(index + i) % WAYS];
    return NULL;
}

void mr_account_recents_put(struct mr_account_recents *r, const struct mr_account_recent *entry)
{
    struct mr_account_recent *b = bucket_of(r, entry->job, entry->index), *to = NULL;
    mr_assert(entry->started);
    for (uint32_t i = 0; i < WAYS; i++) {
        struct mr_account_recent *e = &b[(entry->index + i) % WAYS];
        if (is_of(e, entry->job, entry->index)) {
            to = e;
            break;
        }
        if (!to || (to->started && (!e->started || e->accounted < to->accounted))) to = e;
    }
    *to = *entry;
}
