/* Clips gradients before they are applied or sent. The caller passes only the trainable part: the
 * gradient of the state (model/model.h) must not be clipped. */
#pragma once

#include "nn/optim/optim.h"

/* Returns the L2 norm, summed in double precision. The norm is not finite if any number is not
 * finite, so the norm is also a cheap check of a gradient. */
double mr_nn_norm(const float *g, uint64_t count);

/* Clamps every number to the range from -limit to limit. NaN stays NaN. */
void mr_nn_clip_value(float *g, uint64_t count, double limit);

/* Scales the gradient so that its norm is at most `limit`. Returns the norm before the scaling. A
 * gradient whose norm is not finite is not changed. */
double mr_nn_clip_norm(float *g, uint64_t count, double limit);

/* Clips as the optimizer's settings say: first by value, then by norm. */
void mr_nn_optim_clip(const struct mr_nn_optim *o, float *g, uint64_t count);
