/* Computes loss, gradient and correctness one example at a time. */
#include "nn/net/loss.h"

#include "base/assert.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static const char *const names[] = {
    [MR_NN_CROSS_ENTROPY] = "cross_entropy", [MR_NN_MSE] = "mse", [MR_NN_HINGE] = "hinge"};

const char *mr_nn_loss_name(enum mr_nn_loss l)
{
    return names[l];
}

int mr_nn_loss_parse(const char *name, enum mr_nn_loss *out, struct mr_error *e)
{
    for (unsigned i = 0; i < MR_ARRAY_LEN(names); i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out = (enum mr_nn_loss)i;
        return MR_OK;
    }
    return mr_fail(e, MR_EINVAL, "loss \"%.60s\" is unknown: cross_entropy, mse or hinge", name);
}

struct row {
    const float *p; /* k outputs */
    const float *y; /* k expected outputs; NULL: `label` has the class or value */
    int32_t label;
    uint64_t k;
    float scale; /* factor of the gradient: 1 / examples */
    float *grad; /* k derivatives of the loss, one for each output; may be NULL */
};

static uint64_t largest(const float *p, uint64_t k)
{
    uint64_t best = 0;
    for (uint64_t i = 1; i < k; i++)
        if (p[i] > p[best]) best = i;
    return best;
}

static float target(const struct row *r, uint64_t i)
{
    if (r->y) return r->y[i];
    if (r->k == 1) return (float)r->label;
    return (uint64_t)r->label == i ? 1.0f : 0.0f;
}

static double cross_entropy(const struct row *r)
{
    float top = r->p[largest(r->p, r->k)];
    double sum = 0, mass = 0, dot = 0;
    for (uint64_t i = 0; i < r->k; i++) {
        float e = expf(r->p[i] - top);
        if (r->grad) r->grad[i] = e;
        sum += (double)e;
        if (!r->y) continue;
        mass += (double)r->y[i];
        dot += (double)r->y[i] * (double)(r->p[i] - top);
    }
    if (!r->y) {
        mass = 1;
        dot = (double)(r->p[r->label] - top);
    }
    float each = (float)(mass / sum);
    for (uint64_t i = 0; r->grad && i < r->k; i++)
        r->grad[i] = r->scale * (r->grad[i] * each - target(r, i));
    return mass * log(sum) - dot;
}

static double squared(const struct row *r)
{
    double sum = 0;
    for (uint64_t i = 0; i < r->k; i++) {
        float d = r->p[i] - target(r, i);
        sum += (double)d * (double)d;
        if (r->grad) r->grad[i] = 2 * r->scale * d / (float)r->k;
    }
    return sum / (double)r->k;
}

static double hinge(const struct row *r)
{
    if (r->grad) memset(r->grad, 0, r->k * sizeof *r->grad);
    if (r->k == 1) {
        float y = target(r, 0) > 0 ? 1.0f : -1.0f;
        float loss = 1 - y * r->p[0];
        if (!(loss > 0)) return isnan(loss) ? (double)loss : 0;
        if (r->grad) r->grad[0] = -y * r->scale;
        return (double)loss;
    }
    uint64_t right = r->y ? largest(r->y, r->k) : (uint64_t)r->label;
    uint64_t wrong = right == 0 ? 1 : 0;
    for (uint64_t i = 0; i < r->k; i++)
        if (i != right && r->p[i] > r->p[wrong]) wrong = i;
    float loss = 1 + r->p[wrong] - r->p[right];
    if (!(loss > 0)) return isnan(loss) ? (double)loss : 0;
    if (r->grad) {
        r->grad[wrong] = r->scale;
        r->grad[right] = -r->scale;
    }
    return (double)loss;
}

static bool is_right(enum mr_nn_loss loss, const struct row *r)
{
    if (r->k > 1) return largest(r->p, r->k) == (r->y ? largest(r->y, r->k) : (uint64_t)r->label);
    float edge = loss == MR_NN_HINGE ? 0.0f : 0.5f;
    return (r->p[0] > edge) == (target(r, 0) > edge);
}

static int check(
    enum mr_nn_loss loss, struct mr_nn_labels y, uint64_t n, uint64_t k, struct mr_error *e)
{
    mr_assert(!y.index != !y.rows);
    if (loss == MR_NN_CROSS_ENTROPY && k < 2)
        return mr_fail(e, MR_EINVAL, "loss cross_entropy needs 2 outputs or more, the model has 1");
    if (!y.index || k == 1) return MR_OK;
    for (uint64_t i = 0; i < n; i++)
        if (y.index[i] < 0 || (uint64_t)y.index[i] >= k)
            return mr_fail(e, MR_ERANGE,
                "label of example %llu is %d, but the model tells classes 0 to %llu apart",
                (unsigned long long)i, y.index[i], (unsigned long long)(k - 1));
    return MR_OK;
}

int mr_nn_loss_add(enum mr_nn_loss loss, const float *out, struct mr_nn_labels y, uint64_t n,
    uint64_t k, float *grad, struct mr_nn_score *score, struct mr_error *e)
{
    int err = check(loss, y, n, k, e);
    if (err) return err;
    for (uint64_t i = 0; i < n; i++) {
        struct row r = {.p = out + i * k,
            .y = y.rows ? y.rows + i * k : NULL,
            .label = y.index ? y.index[i] : 0,
            .k = k,
            .scale = 1 / (float)n,
            .grad = grad ? grad + i * k : NULL};
        score->correct += is_right(loss, &r);
        switch (loss) {
        case MR_NN_CROSS_ENTROPY: score->loss_sum += cross_entropy(&r); break;
        case MR_NN_MSE: score->loss_sum += squared(&r); break;
        case MR_NN_HINGE: score->loss_sum += hinge(&r); break;
        }
    }
    score->examples += n;
    return MR_OK;
}
