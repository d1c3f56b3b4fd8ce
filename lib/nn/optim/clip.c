#include "nn/optim/clip.h"

#include "base/assert.h"
#include "nn/optim/simd.h"

#include <math.h>

/* Number of partial sums that are computed in parallel. It is fixed, so that every processor
 * computes the same bits. */
enum { LANES = 16 };

MR_NN_CLONES static double norm_of(const float *g, uint64_t count)
{
    double sums[LANES] = {0};
    uint64_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (int k = 0; k < LANES; k++)
            sums[k] += (double)g[i + (uint64_t)k] * (double)g[i + (uint64_t)k];
    for (int k = 0; i < count; i++, k++)
        sums[k] += (double)g[i] * (double)g[i];
    double sum = 0;
    for (int k = 0; k < LANES; k++)
        sum += sums[k];
    return sqrt(sum);
}

double mr_nn_norm(const float *g, uint64_t count)
{
    return norm_of(g, count);
}

MR_NN_CLONES static void clamp(float *g, uint64_t count, float limit)
{
    for (uint64_t i = 0; i < count; i++) {
        float v = g[i];
        v = v > limit ? limit : v;
        g[i] = v < -limit ? -limit : v;
    }
}

MR_NN_CLONES static void scale(float *g, uint64_t count, float by)
{
    for (uint64_t i = 0; i < count; i++)
        g[i] *= by;
}

void mr_nn_clip_value(float *g, uint64_t count, double limit)
{
    mr_assert(limit > 0);
    clamp(g, count, (float)limit);
}

double mr_nn_clip_norm(float *g, uint64_t count, double limit)
{
    mr_assert(limit > 0);
    double norm = mr_nn_norm(g, count);
    if (isfinite(norm) && norm > limit) scale(g, count, (float)(limit / norm));
    return norm;
}

void mr_nn_optim_clip(const struct mr_nn_optim *o, float *g, uint64_t count)
{
    if (o->clip_value > 0) mr_nn_clip_value(g, count, o->clip_value);
    if (o->clip_norm > 0) (void)mr_nn_clip_norm(g, count, o->clip_norm);
}
