/* The end of a session: one role, the saver, stores the trained model. The saver is scorer 0, or
 * worker 0 in a session without scorers. */
#pragma once

#include "train/member/role.h"

/* Scores the parameters on the validation and test data, and stores them as a persisted and named
 * model. Reports the scores and the model's id to the trainer. */
int mr_role_save_model(
    struct mr_role *r, const float *params, uint64_t version, struct mr_error *e);
