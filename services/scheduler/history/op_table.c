#include "services/scheduler/history/op_table.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/defs.h"

/* Buckets of wall times: 16 for each power of two. */
#define BUCKETS (64u * 16u)

void mr_op_table_fini(struct mr_op_table *t)
{
    for (uint32_t i = 0; i < t->room; i++)
        mr_release(t->items[i].buckets);
    mr_release(t->items);
    *t = (struct mr_op_table){0};
}

static uint32_t bucket_of(uint64_t ns)
{
    if (ns < 16) return (uint32_t)ns;
    uint32_t high = 63u - (uint32_t)__builtin_clzll(ns);
    return (high - 3) * 16 + (uint32_t)(ns >> (high - 4) & 15);
}

/* Returns the middle of a bucket. */
static uint64_t bucket_ns(uint32_t bucket)
{
    if (bucket < 16) return bucket;
    uint32_t shift = bucket / 16 - 1;
    return ((uint64_t)(16 + bucket % 16) << shift) + ((uint64_t)1 << shift) / 2;
}

/* Returns the time of the attempt that `rank` attempts were faster than. */
static uint64_t quantile(const struct mr_op_sums *o, uint64_t rank)
{
    for (uint32_t i = 0; i < BUCKETS; i++) {
        if (rank < o->buckets[i]) return bucket_ns(i);
        rank -= o->buckets[i];
    }
    return 0;
}

static struct mr_op_sums *sums_add(struct mr_op_table *t, uint32_t op)
{
    mr_assert(op < MR_OP_TABLE_MAX);
    if (op >= t->room) {
        uint32_t more = MR_MAX(op + 1, MR_MAX(16u, t->room * 2));
        t->items = mr_grow(t->items, t->room * sizeof *t->items, more * sizeof *t->items);
        t->room = more;
    }
    struct mr_op_sums *o = &t->items[op];
    if (!o->buckets) o->buckets = mr_alloc_array(BUCKETS, sizeof *o->buckets);
    return o;
}

void mr_op_table_add(struct mr_op_table *t, uint32_t op, const struct mr_trace_span *s)
{
    bool is_known = op < t->room && t->items[op].buckets;
    struct mr_op_sums *o = is_known ? &t->items[op] : sums_add(t, op);
    uint64_t wall = s->finished > s->started ? s->finished - s->started : 0;
    o->buckets[bucket_of(wall)]++;
    o->op.attempts++;
    o->op.wall_ns += wall;
    o->op.cpu_ns += s->cpu_ns;
    o->op.bytes += s->bytes;
    if (s->ready && s->started > s->ready) o->op.queue_ns += s->started - s->ready;
}

bool mr_op_table_get(const struct mr_op_table *t, uint32_t op, struct mr_job_account_op *out)
{
    *out = (struct mr_job_account_op){0};
    if (op >= t->room || !t->items[op].buckets) return false;
    const struct mr_op_sums *o = &t->items[op];
    *out = o->op;
    out->median_ns = quantile(o, o->op.attempts / 2);
    out->p99_ns = quantile(o, o->op.attempts - 1 - o->op.attempts / 100);
    return true;
}
