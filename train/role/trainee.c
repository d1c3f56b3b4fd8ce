/* The steps of a training worker that do not depend on how gradients are combined: batches, the
 * gradient of one batch, reports, and the wait for the end of the session. */
#include "train/role/trainee.h"

#include "host/clock.h"
#include "host/thread.h"
#include "nn/optim/clip.h"

#include <inttypes.h>
#include <math.h>

#define CHECK_STEPS 64 /* steps between two checks of all gradients for infinities and NaN */

int mr_trainee_batch(struct mr_trainee *t, uint64_t step, mr_time deadline, struct mr_error *e)
{
    if (t->has_batch) return MR_OK;
    int err = MR_OK;
    (void)mr_role_lap(&t->lap);
    if (t->queue)
        err = mr_queue_feed_batch(t->queue, deadline, &t->batch, e);
    else
        mr_feed_batch(t->feed, step, &t->batch);
    /* the step seeds Dropout, so no two workers use the same step number */
    if (!err) t->batch.step = t->batch.step * t->r.plan.workers + t->r.index;
    t->r.post.counters.feed_s += mr_role_lap(&t->lap);
    t->has_batch = !err;
    return err;
}

/* Makes the error for gradients that are infinite or not a number. Such a gradient would spoil all
 * later parameters. */
static int refuse_gradients(const struct mr_trainee *t, const float *params, struct mr_error *e)
{
    const struct mr_role_plan *p = &t->r.plan;
    uint64_t inputs = mr_nn_shape_count(&p->model->input) * p->batch;
    uint64_t outputs = mr_nn_shape_count(&p->model->output) * p->batch;
    const char *set = t->queue ? "data.queue" : "data.train";
    const char *why = "a smaller optimizer.learning_rate, or optimizer.clip_norm, would hold them";
    bool x = !isfinite(mr_nn_norm(t->batch.x, inputs));
    if (x || (t->batch.y.rows && !isfinite(mr_nn_norm(t->batch.y.rows, outputs))))
        return mr_fail(e, MR_ERANGE, "step %" PRIu64 ": %s: %s of the batch is not finite",
            t->steps, set, x ? "x" : "y");
    bool params_too = !isfinite(mr_nn_norm(params, p->model->count));
    return mr_fail(e, MR_ERANGE, "step %" PRIu64 ": the %s are not finite: %s", t->steps,
        params_too ? "parameters" : "gradients", why);
}

int mr_trainee_learn(struct mr_trainee *t, const float *params, float *grads, struct mr_error *e)
{
    const struct mr_role_plan *p = &t->r.plan;
    struct mr_agent_counters *c = &t->r.post.counters;
    struct mr_nn_score score = {0};
    mr_thread_cpu_return();
    (void)mr_role_lap(&t->lap);
    int err = mr_nn_net_learn(t->net, p->loss, params, &t->batch, grads, &score, e);
    if (err) return err;
    /* The loss does not show every NaN: activations such as ReLU turn NaN into 0. */
    if ((!isfinite(score.loss_sum) || t->steps % CHECK_STEPS == 0) &&
        !isfinite(mr_nn_norm(grads, p->model->trainable_count)))
        return refuse_gradients(t, params, e);
    mr_nn_optim_clip(&p->optim, grads, p->model->trainable_count);
    c->compute_s += mr_role_lap(&t->lap);
    mr_agent_count_scored(c, score.loss_sum, score.correct, score.examples);
    c->examples += score.examples;
    c->steps++;
    t->steps++;
    return MR_OK;
}

uint64_t mr_trainee_used(struct mr_trainee *t)
{
    t->has_batch = false;
    return t->queue ? mr_queue_feed_done(t->queue) : 0;
}

void mr_trainee_follow(struct mr_trainee *t, mr_nn_ready ready, void *ctx)
{
    const struct mr_nn_optim *o = &t->r.plan.optim;
    if (o->clip_value <= 0 && o->clip_norm <= 0) mr_nn_net_follow(t->net, ready, ctx);
}

void mr_trainee_report(struct mr_trainee *t, uint64_t version)
{
    struct mr_agent_post *p = &t->r.post;
    p->version = version;
    p->exhausted = t->is_exhausted;
    if (t->feed) p->counters.epoch = t->steps / mr_feed_steps(t->feed);
    mr_agent_report(t->r.agent, p);
}

int mr_trainee_linger(struct mr_trainee *t,
    int (*keep)(struct mr_trainee *t, void *ctx, struct mr_error *e), void *ctx, struct mr_error *e)
{
    bool is_saver = !t->r.plan.scorers && t->r.index == 0;
    bool kept = false;
    for (;;) {
        int err = mr_role_look(&t->r, NULL);
        if (err) return err;
        if (t->r.view.phase == MR_ROLE_RUN) return MR_OK;
        if (t->r.view.phase == MR_ROLE_HALT)
            mr_agent_report_finished(t->r.agent, MR_ROLE_HALT, NULL, NULL);
        if (t->r.view.phase == MR_ROLE_KEEP && is_saver && !kept) {
            err = keep(t, ctx, e);
            if (err) return err;
            kept = true;
        }
        mr_role_wait(&t->r, mr_time_after(mr_clock_now(), MR_ROLE_TURN));
    }
}
