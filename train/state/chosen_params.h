/* The parameters that a score chose: those of the score that ended the session by its stop rule,
 * or the best so far. Asynchronous workers go on while the session stops, so the newest parameters
 * may be worse than the scored ones. Belongs to the scorer's thread. */
#pragma once

#include "train/plan/plan.h"

struct mr_chosen;

/* NULL: no rule of the plan looks at the scores of `channel`, the session's own. */
struct mr_chosen *mr_chosen_new(const struct mr_role_plan *plan, const char *channel);
void mr_chosen_free(struct mr_chosen **c);

/* Copies what is about to be scored; a loan until the next copy. */
const float *mr_chosen_copy(struct mr_chosen *c, const float *params, uint64_t version);
/* `score`, an object of JSON as it is appended to the channel: what was copied last got it. Once a
 * rule has ended the session, nothing is chosen any more. */
void mr_chosen_judge(struct mr_chosen *c, struct mr_str score);
/* What is to be kept, and its version; NULL: no rule has ended the session by a score seen here.
 * A loan until `free`. */
const float *mr_chosen_params(const struct mr_chosen *c, uint64_t *version);
