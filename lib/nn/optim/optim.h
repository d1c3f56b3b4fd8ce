/* Optimizers: how a vector of parameters moves along its gradients. Read from JSON:
 *
 *   {"type": "sgd", "learning_rate": 0.1, "momentum": 0.9, "nesterov": true}
 *   {"type": "adam", "learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
 *   {"type": "rmsprop", "learning_rate": 0.01, "rho": 0.99, "momentum": 0, "epsilon": 1e-8}
 *
 * each also with "weight_decay" (added to the gradient; with "decoupled": true taken off the
 * parameters themselves, which makes adam AdamW), "clip_value", "clip_norm" (clip.h: whoever makes
 * the gradient clips it) and "schedule" (schedule.h). The arithmetic is PyTorch's, in float32.
 *
 * Works on ranges of the model's vector (model/model.h), so that each server of a shard and each
 * rank has one of its own. Ranges that do not overlap may be updated by several threads at once.
 * Knows nothing of layers, memory or versions but the number it is told. */
#pragma once

#include "nn/optim/schedule.h"

enum mr_nn_optim_type {
    MR_NN_SGD,
    MR_NN_ADAM,
    MR_NN_RMSPROP,
};

#define MR_NN_SLOTS_MAX 2 /* numbers that an optimizer remembers of each parameter */

struct mr_nn_optim {
    enum mr_nn_optim_type type;
    double learning_rate;
    double momentum; /* sgd, rmsprop; 0: none */
    bool nesterov;   /* sgd */
    double beta1, beta2, epsilon;
    double rho; /* rmsprop: what stays of the mean square */
    double weight_decay;
    bool decoupled;
    double clip_value, clip_norm; /* 0: no limit */
    struct mr_nn_schedule schedule;
};

/* Names the field and what would be right. Fields that a type does not have are refused. `where`
 * opens the sentence, as "optimizer". */
int mr_nn_optim_parse(struct mr_str json, struct mr_nn_optim *out, struct mr_error *e);
int mr_nn_optim_read(
    struct yyjson_val *v, const char *where, struct mr_nn_optim *out, struct mr_error *e);
const char *mr_nn_optim_name(enum mr_nn_optim_type t);

uint32_t mr_nn_optim_slots(const struct mr_nn_optim *o); /* 0 to MR_NN_SLOTS_MAX; all start at 0 */
/* Of update t, which is 1 for the first: the schedule at version t - 1. */
double mr_nn_optim_rate(const struct mr_nn_optim *o, uint64_t t);

/* A range of the model's vector. All pointers are to its first number; `to` may be `from`, and no
 * others overlap. */
struct mr_nn_range {
    const float *from;
    float *to;
    float *const *slots; /* mr_nn_optim_slots of them, changed in place; may be NULL if none */
    uint64_t first;      /* of the range in the vector */
    uint64_t count;      /* of the range */
    uint64_t
        trainable_count; /* of the model: what stands behind is state, to[i] = from[i] - g[i] */
};

/* Update number t (1, 2, …) with the gradient g[i] = grad_scale * grad[i]. */
void mr_nn_optim_apply(const struct mr_nn_optim *o, uint64_t t, const struct mr_nn_range *r,
    const float *grad, float grad_scale);

/* Updates t, t + 1, … t + n - 1, one for each gradient, bit for bit as so many calls of apply
 * would; passes over the parameters once. n >= 1. */
void mr_nn_optim_apply_each(const struct mr_nn_optim *o, uint64_t t, const struct mr_nn_range *r,
    const float *const *grads, uint32_t n, float grad_scale);

/* One update with the mean of n gradients. n >= 1. */
void mr_nn_optim_apply_mean(const struct mr_nn_optim *o, uint64_t t, const struct mr_nn_range *r,
    const float *const *grads, uint32_t n);

/* The sum, in their order, of `count` numbers of each of n gradients: apply with it and a scale of
 * 1 / n does bit for bit what apply_mean does. n >= 1. */
void mr_nn_optim_sum(const float *const *grads, uint32_t n, uint64_t count, float *out);
