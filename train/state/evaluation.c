/* Runs the network over held-out data, in batches of one size and a smaller last one. */
#include "train/state/evaluation.h"

#include "base/alloc.h"
#include "nn/optim/clip.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define EVALUATION_BATCH 512u

struct mr_evaluation {
    struct mr_role *role;
    struct mr_feed *feed;
    uint64_t examples;
    struct mr_nn_net *net;  /* network for batches of EVALUATION_BATCH examples */
    struct mr_nn_net *rest; /* network for the smaller last batch; NULL: there is none */
};

void mr_evaluation_close(struct mr_evaluation **evaluation)
{
    struct mr_evaluation *x = *evaluation;
    if (!x) return;
    mr_feed_close(&x->feed);
    mr_nn_net_free(&x->net);
    mr_nn_net_free(&x->rest);
    mr_release(x);
    *evaluation = NULL;
}

int mr_evaluation_open(struct mr_role *r, const char *set, uint64_t examples_max,
    struct mr_evaluation **out, struct mr_error *e)
{
    const struct mr_nn_model *m = r->plan.model;
    const struct mr_arg *a = mr_role_set(r, set, "x"), *b = mr_role_set(r, set, "y");
    char name[64];
    (void)snprintf(name, sizeof name, "data.%s", set);
    if (!a || !b) return mr_fail(e, MR_EINVAL, "%s: this role was not given x and y of it", name);
    MR_AUTO(mr_evaluation_close) struct mr_evaluation *x = mr_alloc(sizeof *x);
    x->role = r;
    const struct mr_feed_spec spec = {.inputs = mr_nn_shape_count(&m->input),
        .outputs = mr_nn_shape_count(&m->output),
        .batch = EVALUATION_BATCH,
        .workers = 1,
        .keep = true};
    int err = mr_feed_open(&spec, name, a, b, &r->feed_store, &x->feed, e);
    if (err) return err;
    r->is_drawn = r->is_drawn || mr_feed_is_drawn(x->feed);
    x->examples = mr_feed_rows(x->feed);
    if (examples_max) x->examples = MR_MIN(x->examples, examples_max);
    uint32_t rest = (uint32_t)(x->examples % EVALUATION_BATCH);
    if (x->examples >= EVALUATION_BATCH)
        err = mr_nn_net_new_for_use(m, EVALUATION_BATCH, &x->net, e);
    if (!err && rest) err = mr_nn_net_new_for_use(m, rest, &x->rest, e);
    if (err) return err;
    *out = MR_STEAL(x);
    return MR_OK;
}

int mr_evaluation_score(
    struct mr_evaluation *x, const float *params, struct mr_nn_score *out, struct mr_error *e)
{
    *out = (struct mr_nn_score){0};
    for (uint64_t at = 0; at < x->examples;) {
        uint32_t n = (uint32_t)MR_MIN(x->examples - at, (uint64_t)EVALUATION_BATCH);
        struct mr_nn_batch b;
        mr_feed_range(x->feed, at, n, &b);
        int err = mr_nn_net_score(
            n == EVALUATION_BATCH ? x->net : x->rest, x->role->plan.loss, params, &b, out, e);
        if (err) return err;
        if (mr_role_should_stop(x->role)) return mr_fail(e, MR_ECANCELED, "stopped");
        at += n;
    }
    return MR_OK;
}

int mr_evaluation_check_params(
    const struct mr_nn_model *m, const float *params, uint64_t version, struct mr_error *e)
{
    if (isfinite(mr_nn_norm(params, m->count))) return MR_OK;
    return mr_fail(e, MR_ERANGE,
        "the parameters of version %" PRIu64 " are not finite: the data have numbers that are not, "
        "or optimizer.learning_rate is too large",
        version);
}
