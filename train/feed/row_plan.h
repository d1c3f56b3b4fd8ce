/* The row plan tells which rows of the training data each worker of a session trains on. In the
 * even split, worker w of W has rows n w / W to n (w + 1) / W - 1 of n, wherever they are stored.
 * With several nodes this moves partitions between the nodes' object stores. A plan gives each
 * worker as many rows as the even split, but from partitions of its own node, as far as they
 * suffice.
 *
 * A partition moves as a whole. A node fetches it at most once, however many of the node's workers
 * read it. A node that lacks rows trains on exactly the missing number of rows from other nodes. As
 * partitions move as a whole, the node may fetch more rows than it trains on.
 *
 * Pure: the same input gives the same plan on any machine. Knows no store and no session. */
#pragma once

#include "base/str.h"

#define MR_ROW_PLAN_NODES_MAX 64u /* with more nodes, the plan is the even split */
/* Limit of the ranges of all workers together. A plan with more ranges becomes the even split. */
#define MR_ROW_PLAN_RANGES_MAX 65536u

/* A partition. Partitions are contiguous from row 0 on. Bit k of `nodes`: node k has a copy.
 * `nodes` is 0 if no worker's node has a copy, or if the places are unknown. */
struct mr_row_part {
    uint64_t rows, bytes, nodes;
};

struct mr_row_range {
    uint64_t first, count;
};

struct mr_row_plan {
    /* the workers use the even split, because the plan would move no fewer bytes, or because
     * nothing can be planned; then there are no ranges */
    bool is_even;
    uint32_t workers;
    /* The ranges of worker 0, then those of worker 1, and so on. The ranges of each worker ascend
     * and are disjoint. */
    struct mr_row_range *ranges;
    /* For each worker, how many ranges it and the workers before it have together. */
    uint32_t *ends;
    uint64_t moved_bytes; /* bytes that nodes fetch from other stores */
    /* number of these fetches; a partition counts once for each node that fetches it */
    uint32_t moved_parts;
};

/* Returns how many rows a worker has if `rows` rows are split over `workers` workers. `worker` is
 * the number of this worker. `*first` (may be NULL) becomes the worker's first row in the even
 * split. */
uint64_t mr_row_plan_quota(uint64_t rows, uint32_t worker, uint32_t workers, uint64_t *first);
/* Makes the plan. `node_of[w]`: number of worker w's node; if any of these numbers is not below
 * MR_ROW_PLAN_NODES_MAX, the plan is the even split. The numbers of rows come from the header of a
 * collection. If rows times workers exceed 2^64 - 1, which no real data do, the plan is the even
 * split, too. */
void mr_row_plan_make(const struct mr_row_part *parts, uint32_t parts_count,
    const uint32_t *node_of, uint32_t workers, struct mr_row_plan *out);
void mr_row_plan_fini(struct mr_row_plan *p);
