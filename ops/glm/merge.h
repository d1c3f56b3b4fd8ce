/* Adds partials, and takes the step of the solver that follows from the sum. */
#pragma once

#include "ops/glm/partial.h"
#include "ops/glm/state.h"
#include "ops/op.h"

struct mr_glm_parts { /* partials as arguments; an argument that is null is skipped */
    const struct mr_arg *items;
    uint32_t count;
};

/* Reads the partials that are not null into `parts`, which has room for all->count, and sets
 * `*count` to their number. Fills in the head of their sum. MR_EINVAL: an argument is no partial,
 * or the partials belong to different fits or have different numbers of columns. MR_ELIMIT: the
 * partials have too many chunks. */
int mr_glm_merge_head(struct mr_op_call *call, const struct mr_glm_parts *all,
    struct mr_glm_partial *parts, uint32_t *count, struct mr_glm_partial_head *h);
/* Writes the sum into `numbers`, which has mr_glm_partial_numbers(h) zeroed numbers. */
void mr_glm_merge(const struct mr_glm_partial *parts, uint32_t count, double *numbers,
    const struct mr_glm_partial_head *h, struct mr_glm_partial *sum);
/* Replaces `g` by the next state in scratch memory, and sets *numbers to its number of doubles. If
 * there is no partial, or the fit is over, `g` stays and *numbers is 0. */
int mr_glm_merge_step(
    struct mr_op_call *call, struct mr_glm *g, const struct mr_glm_parts *all, uint64_t *numbers);
