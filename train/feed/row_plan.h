/* Which rows of the training data each worker of a session has. Under the even split, worker w of
 * W has rows n w / W to n (w + 1) / W - 1 of all n, wherever they lie. On more than one node that
 * moves partitions between the nodes' object stores. So a plan gives each worker as many rows as
 * the even split does, but of the partitions of its own node, as far as they suffice.
 *
 * A partition moves as a whole, and once to a node, however many workers there read it. The rows
 * that a node lacks come from the nodes that have more than they need: exactly the rows that are
 * missing, in partitions that together exceed them by less than one.
 *
 * Pure: the same facts give the same plan on any machine. Knows no store and no session. */
#pragma once

#include "base/str.h"

#define MR_ROW_PLAN_NODES_MAX 64u /* with more, the cut is even */
#define MR_ROW_PLAN_RANGES_MAX                                                                     \
    65536u /* of all workers together; a plan with more is an even one                             \
            */

/* One behind the other, from row 0 on. Bit k of `nodes`: node k has it; 0: none of the workers'
 * nodes, or nobody knows. */
struct mr_row_part {
    uint64_t rows, bytes, nodes;
};

struct mr_row_range {
    uint64_t first, count;
};

struct mr_row_plan {
    bool is_even; /* the even split moves no more, or there is too little to choose: no ranges */
    uint32_t workers;
    struct mr_row_range *ranges; /* worker by worker; ascending and apart within one */
    uint32_t *ends;              /* behind worker w's ranges, which begin where those before end */
    uint64_t moved_bytes;        /* that nodes get from other stores, if nothing else is there */
    uint32_t moved_parts;        /* counted once a node */
};

/* How many rows worker `worker` of `workers` has of `rows`; `*first` (may be NULL): from which on,
 * if the cut is even. */
uint64_t mr_row_plan_quota(uint64_t rows, uint32_t worker, uint32_t workers, uint64_t *first);
/* `node_of[w]`: number of the node of worker w, from 0 on, below MR_ROW_PLAN_NODES_MAX (else: an
 * even plan). Rows are what a collection says of itself: where rows times workers exceed 2^64 - 1,
 * which no data do, the plan is an even one. */
void mr_row_plan_make(const struct mr_row_part *parts, uint32_t parts_count,
    const uint32_t *node_of, uint32_t workers, struct mr_row_plan *out);
void mr_row_plan_fini(struct mr_row_plan *p);
