/* The parameters to save when a score ends the session: those whose score met the threshold, or
 * those with the best score so far (early stopping with patience). Asynchronous workers go on while
 * the session stops, so the newest parameters may be worse than the scored ones. Owned by the
 * scorer's thread. */
#pragma once

#include "train/plan/plan.h"

struct mr_chosen;

/* Makes a struct mr_chosen. `channel`: name of the session's own channel. Returns NULL if no stop
 * rule of the plan depends on scores of this channel. */
struct mr_chosen *mr_chosen_new(const struct mr_role_plan *plan, const char *channel);
void mr_chosen_free(struct mr_chosen **c);

/* Copies parameters that will be scored next. The result is lent until the next copy. */
const float *mr_chosen_copy(struct mr_chosen *c, const float *params, uint64_t version);
/* Judges the score of the latest copy. `score`: the JSON object that is appended to the channel.
 * Does nothing after a rule has ended the session. */
void mr_chosen_judge(struct mr_chosen *c, struct mr_str score);
/* Returns the parameters to save and their version, lent until mr_chosen_free. NULL: none of the
 * judged scores has ended the session. */
const float *mr_chosen_params(const struct mr_chosen *c, uint64_t *version);
