#include "account/recent.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/defs.h"
#include "base/id.h"

#include <assert.h>

#define WAYS 4u

static_assert(WAYS * sizeof(struct mr_account_recents_key) == 64, "the keys of a bucket");

void mr_account_recents_init(struct mr_account_recents *r, uint32_t entries_max)
{
    uint32_t buckets = 1;
    while (buckets < entries_max / WAYS)
        buckets *= 2;
    r->mask = buckets - 1;
    r->keys = mr_alloc_array((size_t)buckets * WAYS, sizeof *r->keys);
    r->entries = mr_alloc_array((size_t)buckets * WAYS, sizeof *r->entries);
}

void mr_account_recents_fini(struct mr_account_recents *r)
{
    mr_release(r->keys);
    mr_release(r->entries);
    *r = (struct mr_account_recents){0};
}

/* Returns the number of the bucket's first entry. */
static size_t bucket_of(const struct mr_account_recents *r, uint32_t job, uint32_t index)
{
    uint64_t bucket = mr_hash_u64(job) + index / WAYS;
    return (size_t)(bucket & r->mask) * WAYS;
}

static bool is_of(const struct mr_account_recents_key *k, uint32_t job, uint32_t index)
{
    return k->index == index && k->job == job + 1;
}

const struct mr_account_recent *mr_account_recents_find(
    const struct mr_account_recents *r, uint32_t job, uint32_t index)
{
    size_t b = bucket_of(r, job, index);
    for (uint32_t i = 0; i < WAYS; i++) {
        size_t at = b + (index + i) % WAYS;
        if (is_of(&r->keys[at], job, index)) return &r->entries[at];
    }
    return NULL;
}

void mr_account_recents_put(struct mr_account_recents *r, const struct mr_account_recent *entry)
{
    size_t b = bucket_of(r, entry->job, entry->index), to = SIZE_MAX;
    mr_assert(entry->job < MR_ACCOUNT_NONE);
    for (uint32_t i = 0; i < WAYS; i++) {
        size_t at = b + (entry->index + i) % WAYS;
        const struct mr_account_recents_key *k = &r->keys[at];
        if (is_of(k, entry->job, entry->index)) {
            to = at;
            break;
        }
        bool is_better = to == SIZE_MAX ||
                         (r->keys[to].job && (!k->job || k->accounted < r->keys[to].accounted));
        if (is_better) to = at;
    }
    r->keys[to] = (struct mr_account_recents_key){entry->job + 1, entry->index, entry->accounted};
    r->entries[to] = *entry;
}

void mr_account_recents_prefetch(const struct mr_account_recents *r, uint32_t job, uint32_t index)
{
    size_t b = bucket_of(r, job, index);
    const char *entry = (const char *)&r->entries[b + index % WAYS];
    __builtin_prefetch(&r->keys[b], 1);
    __builtin_prefetch(entry, 1);
    __builtin_prefetch(entry + sizeof *r->entries - 1, 1);
}
