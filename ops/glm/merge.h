/* Sums of partials: what the chunks answered, put together, and the step that it allows. */
#pragma once

#include "ops/glm/partial.h"
#include "ops/glm/state.h"
#include "ops/op.h"

struct mr_glm_parts { /* arguments; null ones are passed over */
    const struct mr_arg *items;
    uint32_t count;
};

/* Opens those that are there into `parts`, which has room for all of them, and fills the head of
 * their sum. They must be of one state and of one number of columns. */
int mr_glm_merge_head(struct mr_op_call *call, const struct mr_glm_parts *all,
    struct mr_glm_partial *parts, uint32_t *count, struct mr_glm_partial_head *h);
/* The sum into `numbers`: mr_glm_partial_numbers(h) of them, zeroed. */
void mr_glm_merge(const struct mr_glm_partial *parts, uint32_t count, double *numbers,
    const struct mr_glm_partial_head *h, struct mr_glm_partial *sum);
/* The state after `g`, in scratch, of *numbers doubles. Where nothing was answered, or the fit is
 * over, `g` stays as it is, and *numbers is 0. */
int mr_glm_merge_step(
    struct mr_op_call *call, struct mr_glm *g, const struct mr_glm_parts *all, uint64_t *numbers);
