/* Gradients made shorter, before they are applied or handed over. Give the trainable part only:
 * state (model/model.h) is no gradient. */
#pragma once

#include "nn/optim/optim.h"

/* sqrt of the sum of squares, added up in double precision. Not finite as soon as one number is
 * not: a cheap question whether a gradient is any good. */
double mr_nn_norm(const float *g, uint64_t count);

/* Every number into -limit … limit. NaN stays. */
void mr_nn_clip_value(float *g, uint64_t count, double limit);

/* Scales so that the norm is at most `limit`; the norm before. One that is not finite is returned
 * and nothing changed. */
double mr_nn_clip_norm(float *g, uint64_t count, double limit);

/* What the optimizer asks for: first by value, then by norm; nothing when it asks for neither. */
void mr_nn_optim_clip(const struct mr_nn_optim *o, float *g, uint64_t count);
