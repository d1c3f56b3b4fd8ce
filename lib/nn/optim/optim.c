/* Each optimizer is one loop over blocks that stay in the cache. All gradients are applied to a
 * block before the next one is touched. Parameters are copied to their destination first, so every
 * loop works in place on pointers that do not overlap.
 *
 * Multiplications and additions are never fused (-ffp-contract=off). So the updated parameters have
 * the same bits on every processor and for every division into blocks. */
#include "nn/optim/optim.h"

#include "base/assert.h"
#include "nn/optim/simd.h"

#include <math.h>
#include <string.h>

/* Number of parameters in a block. They stay in the L1 cache together with the optimizer's numbers
 * for them, of which there are at most MR_NN_SLOTS_MAX for each parameter. */
#define BLOCK 1024
#define GROUP 32 /* gradients whose coefficients are computed together */

struct step {       /* the coefficients of one update */
    float scale;    /* scale of the gradient */
    float decay;    /* weight decay, added to the gradient */
    float shrink;   /* decoupled weight decay: factor of the parameter */
    float rate;     /* learning rate; for adam, with the bias correction of the first moment */
    float a, not_a; /* a: momentum or beta1; not_a: 1 - a */
    float b, not_b; /* b: beta2 or rho; not_b: 1 - b */
    float b_scale;  /* for adam: the bias correction of the root of the second moment */
    float epsilon;
};

uint32_t mr_nn_optim_slots(const struct mr_nn_optim *o)
{
    switch (o->type) {
    case MR_NN_SGD: return o->momentum > 0 ? 1 : 0;
    case MR_NN_ADAM: return 2;
    case MR_NN_RMSPROP: return o->momentum > 0 ? 2 : 1;
    }
    return 0;
}

double mr_nn_optim_rate(const struct mr_nn_optim *o, uint64_t t)
{
    mr_assert(t > 0);
    return mr_nn_schedule_rate(&o->schedule, o->learning_rate, t - 1);
}

static struct step step_of(const struct mr_nn_optim *o, uint64_t t, float scale)
{
    double rate = mr_nn_optim_rate(o, t);
    struct step s = {.scale = scale,
        .decay = o->decoupled ? 0 : (float)o->weight_decay,
        .shrink = o->decoupled ? (float)(1 - rate * o->weight_decay) : 1,
        .rate = (float)rate,
        .a = (float)o->momentum,
        .b = (float)o->rho,
        .not_b = (float)(1 - o->rho),
        .b_scale = 1,
        .epsilon = (float)o->epsilon};
    if (o->type != MR_NN_ADAM) return s;
    s.rate = (float)(rate / (1 - pow(o->beta1, (double)t)));
    s.a = (float)o->beta1;
    s.not_a = (float)(1 - o->beta1);
    s.b = (float)o->beta2;
    s.not_b = (float)(1 - o->beta2);
    s.b_scale = (float)(1 / sqrt(1 - pow(o->beta2, (double)t)));
    return s;
}

/* ---- the loops ------------------------------------------------------------------------------- */

MR_NN_CLONES static void sgd(float *restrict p, const float *restrict g, size_t n, struct step s)
{
    for (size_t i = 0; i < n; i++) {
        float d = s.scale * g[i] + s.decay * p[i];
        p[i] = s.shrink * p[i] - s.rate * d;
    }
}

MR_NN_CLONES static void sgd_momentum(
    float *restrict p, float *restrict m, const float *restrict g, size_t n, struct step s)
{
    for (size_t i = 0; i < n; i++) {
        float d = s.scale * g[i] + s.decay * p[i];
        m[i] = s.a * m[i] + d;
        p[i] = s.shrink * p[i] - s.rate * m[i];
    }
}

MR_NN_CLONES static void sgd_nesterov(
    float *restrict p, float *restrict m, const float *restrict g, size_t n, struct step s)
{
    for (size_t i = 0; i < n; i++) {
        float d = s.scale * g[i] + s.decay * p[i];
        m[i] = s.a * m[i] + d;
        p[i] = s.shrink * p[i] - s.rate * (d + s.a * m[i]);
    }
}

MR_NN_CLONES static void adam(float *restrict p, float *restrict m, float *restrict v,
    const float *restrict g, size_t n, struct step s)
{
    for (size_t i = 0; i < n; i++) {
        float d = s.scale * g[i] + s.decay * p[i];
        m[i] = s.a * m[i] + s.not_a * d;
        v[i] = s.b * v[i] + s.not_b * (d * d);
        p[i] = s.shrink * p[i] - s.rate * (m[i] / (sqrtf(v[i]) * s.b_scale + s.epsilon));
    }
}

MR_NN_CLONES static void rmsprop(
    float *restrict p, float *restrict v, const float *restrict g, size_t n, struct step s)
{
    for (size_t i = 0; i < n; i++) {
        float d = s.scale * g[i] + s.decay * p[i];
        v[i] = s.b * v[i] + s.not_b * (d * d);
        p[i] = s.shrink * p[i] - s.rate * (d / (sqrtf(v[i]) + s.epsilon));
    }
}

MR_NN_CLONES static void rmsprop_momentum(float *restrict p, float *restrict v, float *restrict m,
    const float *restrict g, size_t n, struct step s)
{
    for (size_t i = 0; i < n; i++) {
        float d = s.scale * g[i] + s.decay * p[i];
        v[i] = s.b * v[i] + s.not_b * (d * d);
        m[i] = s.a * m[i] + d / (sqrtf(v[i]) + s.epsilon);
        p[i] = s.shrink * p[i] - s.rate * m[i];
    }
}

/* Subtracts a gradient. This updates BatchNorm's moving mean and variance, the model's state
 * (model/model.h), to which no rule of an optimizer applies. */
MR_NN_CLONES static void follow(float *restrict p, const float *restrict g, size_t n, float scale)
{
    for (size_t i = 0; i < n; i++)
        p[i] -= scale * g[i];
}

MR_NN_CLONES static void add(float *restrict sum, const float *restrict g, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] += g[i];
}

/* Sets `sum` to the sum of four gradients, added from left to right in one pass. The result has the
 * same bits as three passes that add one gradient each. */
MR_NN_CLONES static void add_four(float *restrict sum, const float *restrict a,
    const float *restrict b, const float *restrict c, const float *restrict d, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sum[i] = ((a[i] + b[i]) + c[i]) + d[i];
}

/* Sets `sum` to the sum of the blocks of n gradients, which are added in order. */
static void add_all(const float *const *grads, uint32_t n, uint64_t at, size_t count, float *sum)
{
    uint32_t k = 1;
    if (n >= 4) {
        add_four(sum, grads[0] + at, grads[1] + at, grads[2] + at, grads[3] + at, count);
        k = 4;
    } else {
        memcpy(sum, grads[0] + at, count * sizeof *sum);
    }
    for (; k < n; k++)
        add(sum, grads[k] + at, count);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static void move(const struct mr_nn_optim *o, const struct step *s, const struct mr_nn_range *r,
    uint64_t at, size_t n, const float *g)
{
    float *p = r->to + at;
    uint32_t slots = mr_nn_optim_slots(o);
    float *first = slots > 0 ? r->slots[0] + at : NULL;
    float *second = slots > 1 ? r->slots[1] + at : NULL;
    switch (o->type) {
    case MR_NN_SGD:
        if (!first)
            sgd(p, g, n, *s);
        else if (o->nesterov)
            sgd_nesterov(p, first, g, n, *s);
        else
            sgd_momentum(p, first, g, n, *s);
        return;
    case MR_NN_ADAM: adam(p, first, second, g, n, *s); return;
    case MR_NN_RMSPROP:
        if (second)
            rmsprop_momentum(p, first, second, g, n, *s);
        else
            rmsprop(p, first, g, n, *s);
        return;
    }
}

/* Returns the size of the next block, which begins at `at`: at most BLOCK numbers that are all
 * trainable (`*trained`) or all state. */
static size_t block_at(const struct mr_nn_range *r, uint64_t at, bool *trained)
{
    uint64_t place = r->first + at;
    uint64_t n = MR_MIN(r->count - at, (uint64_t)BLOCK);
    *trained = place < r->trainable_count;
    if (*trained) n = MR_MIN(n, r->trainable_count - place);
    return (size_t)n;
}

static void take(const struct mr_nn_range *r, uint64_t at, size_t n)
{
    if (r->to != r->from) memcpy(r->to + at, r->from + at, n * sizeof *r->to);
}

void mr_nn_optim_apply_each(const struct mr_nn_optim *o, uint64_t t, const struct mr_nn_range *r,
    const float *const *grads, uint32_t n, float grad_scale)
{
    mr_assert(n > 0);
    MR_AUTO(mr_nn_flush_end) MR_UNUSED unsigned was = mr_nn_flush_begin();
    struct mr_nn_range range = *r;
    for (uint32_t done = 0; done < n; done += GROUP) {
        struct step steps[GROUP];
        uint32_t group = MR_MIN(n - done, (uint32_t)GROUP);
        for (uint32_t k = 0; k < group; k++)
            steps[k] = step_of(o, t + done + k, grad_scale);
        bool trained = false;
        size_t count = 0;
        for (uint64_t at = 0; at < r->count; at += count) {
            count = block_at(&range, at, &trained);
            take(&range, at, count);
            for (uint32_t k = 0; k < group; k++) {
                const float *g = grads[done + k] + at;
                if (trained)
                    move(o, &steps[k], &range, at, count, g);
                else
                    follow(range.to + at, g, count, grad_scale);
            }
        }
        range.from = range.to;
    }
}

void mr_nn_optim_apply(const struct mr_nn_optim *o, uint64_t t, const struct mr_nn_range *r,
    const float *grad, float grad_scale)
{
    mr_nn_optim_apply_each(o, t, r, &grad, 1, grad_scale);
}

void mr_nn_optim_sum(const float *const *grads, uint32_t n, uint64_t count, float *out)
{
    mr_assert(n > 0);
    MR_AUTO(mr_nn_flush_end) MR_UNUSED unsigned was = mr_nn_flush_begin();
    for (uint64_t at = 0; at < count; at += BLOCK) {
        size_t block = (size_t)MR_MIN(count - at, (uint64_t)BLOCK);
        add_all(grads, n, at, block, out + at);
    }
}

void mr_nn_optim_apply_mean(const struct mr_nn_optim *o, uint64_t t, const struct mr_nn_range *r,
    const float *const *grads, uint32_t n)
{
    mr_assert(n > 0);
    if (n == 1) {
        mr_nn_optim_apply(o, t, r, grads[0], 1);
        return;
    }
    MR_AUTO(mr_nn_flush_end) MR_UNUSED unsigned was = mr_nn_flush_begin();
    float share = 1 / (float)n;
    struct step s = step_of(o, t, share);
    bool trained = false;
    size_t count = 0;
    for (uint64_t at = 0; at < r->count; at += count) {
        float sum[BLOCK];
        count = block_at(r, at, &trained);
        take(r, at, count);
        add_all(grads, n, at, count, sum);
        if (trained)
            move(o, &s, r, at, count, sum);
        else
            follow(r->to + at, sum, count, share);
    }
}
