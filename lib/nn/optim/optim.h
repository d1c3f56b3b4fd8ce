/* Optimizers: rules that move a vector of parameters along its gradients. Examples of their JSON:
 *
 *   {"type": "sgd", "learning_rate": 0.1, "momentum": 0.9, "nesterov": true}
 *   {"type": "adam", "learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
 *   {"type": "rmsprop", "learning_rate": 0.01, "rho": 0.99, "momentum": 0, "epsilon": 1e-8}
 *
 * All types have "weight_decay" (added to the gradient; with "decoupled": true subtracted from the
 * parameters, which makes Adam AdamW, Loshchilov and Hutter 2019), "clip_value" and "clip_norm"
 * (clip.h; the process that computes the gradient clips it) and "schedule" (schedule.h). The
 * arithmetic is PyTorch's, in float32.
 *
 * The functions work on ranges of the model's vector (model/model.h), so that each of
 * several processes can own a range. Several threads may update ranges at the same time if the
 * ranges do not overlap. An optimizer knows no layers and keeps no state; the caller passes the
 * number of the update. */
#pragma once

#include "nn/optim/schedule.h"

enum mr_nn_optim_type {
    MR_NN_SGD,
    MR_NN_ADAM,
    MR_NN_RMSPROP,
};

#define MR_NN_SLOTS_MAX 2 /* an optimizer keeps at most this many numbers for each parameter */

struct mr_nn_optim {
    enum mr_nn_optim_type type;
    double learning_rate;
    double momentum; /* for sgd and rmsprop; 0: no momentum */
    bool nesterov;   /* sgd */
    double beta1, beta2, epsilon;
    double rho; /* for rmsprop: the decay of the mean square */
    double weight_decay;
    bool decoupled;
    double clip_value, clip_norm; /* 0: no limit */
    struct mr_nn_schedule schedule;
};

/* Read an optimizer. An error text begins with `where`, such as "optimizer", and names the field
 * and what is allowed. Fields that the type does not have are refused. */
int mr_nn_optim_parse(struct mr_str json, struct mr_nn_optim *out, struct mr_error *e);
int mr_nn_optim_read(
    struct yyjson_val *v, const char *where, struct mr_nn_optim *out, struct mr_error *e);
const char *mr_nn_optim_name(enum mr_nn_optim_type t);

/* Returns the number of slots, 0 to MR_NN_SLOTS_MAX. A slot is a vector with one number of the
 * optimizer for each parameter, such as the momentum. Before the first update these numbers are
 * 0. */
uint32_t mr_nn_optim_slots(const struct mr_nn_optim *o);
/* Returns the learning rate of update t = 1, 2, …: the rate that the schedule gives after t - 1
 * updates. */
double mr_nn_optim_rate(const struct mr_nn_optim *o, uint64_t t);

/* A range of the model's vector. Each pointer points to the first number of the range. `to` may
 * equal `from`; no other memory overlaps. */
struct mr_nn_range {
    const float *from;
    float *to;
    /* The optimizer's slots, mr_nn_optim_slots(o) vectors, changed in place. May be NULL if the
     * optimizer has no slots. */
    float *const *slots;
    uint64_t first; /* start of the range in the vector */
    uint64_t count; /* length of the range */
    /* `trainable_count` of the model: the vector's numbers from this index on are the model's state
     * (model/model.h). An update with the gradient g sets them to to[i] = from[i] - g[i]. */
    uint64_t trainable_count;
};

/* Makes update t = 1, 2, … with the gradient g[i] = grad_scale * grad[i]. */
void mr_nn_optim_apply(const struct mr_nn_optim *o, uint64_t t, const struct mr_nn_range *r,
    const float *grad, float grad_scale);

/* Makes the updates t … t + n - 1, one for each gradient, in one pass over the parameters. The
 * result has the same bits as n calls of mr_nn_optim_apply. n >= 1. */
void mr_nn_optim_apply_each(const struct mr_nn_optim *o, uint64_t t, const struct mr_nn_range *r,
    const float *const *grads, uint32_t n, float grad_scale);

/* Makes one update with the mean of n gradients. n >= 1. */
void mr_nn_optim_apply_mean(const struct mr_nn_optim *o, uint64_t t, const struct mr_nn_range *r,
    const float *const *grads, uint32_t n);

/* Adds n gradients, one after the other, and writes the sum to `out`. Each gradient has `count`
 * numbers. With this sum and the scale 1 / n, the result of mr_nn_optim_apply has the same bits as
 * that of mr_nn_optim_apply_mean. n >= 1. */
void mr_nn_optim_sum(const float *const *grads, uint32_t n, uint64_t count, float *out);
