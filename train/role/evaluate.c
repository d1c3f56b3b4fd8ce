/* Scores on held-out data, and the saving of the model when a session has stopped. */
#include "train/role/internal.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "nn/optim/clip.h"
#include "nn/model/model_value.h"
#include "train/role/score.h"
#include "store/object/value.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define EXAM_BATCH 512u
#define ROOM_TIMEOUT (60 * MR_SECOND)

struct mr_evaluation {
    struct mr_role *role;
    struct mr_feed *feed;
    uint64_t examples;
    struct mr_nn_net *net;  /* of EXAM_BATCH */
    struct mr_nn_net *rest; /* of what is left at the end; NULL: nothing is */
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
        .batch = EXAM_BATCH,
        .workers = 1,
        .keep = true};
    int err = mr_feed_open(&spec, name, a, b, &r->feed_store, &x->feed, e);
    if (err) return err;
    r->is_drawn = r->is_drawn || mr_feed_is_drawn(x->feed);
    x->examples = mr_feed_rows(x->feed);
    if (examples_max) x->examples = MR_MIN(x->examples, examples_max);
    uint32_t rest = (uint32_t)(x->examples % EXAM_BATCH);
    if (x->examples >= EXAM_BATCH) err = mr_nn_net_new_for_use(m, EXAM_BATCH, &x->net, e);
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
        uint32_t n = (uint32_t)MR_MIN(x->examples - at, (uint64_t)EXAM_BATCH);
        struct mr_nn_batch b;
        mr_feed_range(x->feed, at, n, &b);
        int err = mr_nn_net_score(
            n == EXAM_BATCH ? x->net : x->rest, x->role->plan.loss, params, &b, out, e);
        if (err) return err;
        if (mr_role_should_stop(x->role)) return mr_fail(e, MR_ECANCELED, "stopped");
        at += n;
    }
    return MR_OK;
}

/* ---- scores as JSON -------------------------------------------------------------------------- */

void mr_score_number(struct mr_buf *out, const char *name, double v)
{
    mr_buf_printf(out, "%s\"%s\": ", out->n && out->p[out->n - 1] != '{' ? ", " : "", name);
    if (isfinite(v))
        mr_buf_printf(out, "%.9g", v);
    else
        mr_buf_add_text(out, isnan(v) ? "\"NaN\"" : v > 0 ? "\"Infinity\"" : "\"-Infinity\"");
}

void mr_score_fields(struct mr_buf *out, const struct mr_role_plan *p, const struct mr_nn_score *s)
{
    double n = s->examples ? (double)s->examples : NAN;
    mr_score_number(out, mr_nn_loss_name(p->loss), s->loss_sum / n);
    mr_score_number(out, "accuracy", (double)s->correct / n);
}

void mr_score_data(struct mr_buf *out, const struct mr_role *r)
{
    if (r->is_drawn)
        mr_buf_printf(
            out, "%s\"data\": \"drawn\"", out->n && out->p[out->n - 1] != '{' ? ", " : "");
}

/* ---- the saver ------------------------------------------------------------------------------- */

struct room { /* for the model's value */
    struct mr_store *store;
    struct mr_stop stop;
    struct mr_store_draft draft;
    struct mr_error *e;
};

static void *draft_alloc(void *ctx, uint64_t bytes)
{
    struct room *to = ctx;
    int err = mr_store_create_or_stop(to->store, bytes, ROOM_TIMEOUT, to->stop, &to->draft, to->e);
    return err ? NULL : to->draft.p;
}

static int model_store(struct mr_role *r, const float *params, uint64_t version,
    char id[MR_OBJECT_ID_TEXT_MAX], struct mr_error *e)
{
    struct room to = {.store = r->env->store, .stop = r->store.stop, .e = e};
    if (!to.store) return mr_fail(e, MR_ELOST, "this worker has no object store (--store)");
    const struct mr_value_alloc alloc = {draft_alloc, &to};
    float *at = NULL;
    int err = mr_nn_model_value_new(&alloc, r->plan.model, version, &at, e);
    if (err) return err;
    memcpy(at, params, r->plan.model->count * sizeof *at);
    if (r->is_drawn) mr_value_mark_drawn(to.draft.p);
    mr_object_id object;
    err = mr_role_save(&r->store, &to.draft, r->plan.save, true, &object, e);
    if (!err) mr_object_id_format(object, id);
    return err;
}

/* Adds `"set": {…}`, and for the first set that there is its fields beside it. */
static int score_set(struct mr_role *r, const char *set, const float *params, struct mr_buf *flat,
    struct mr_buf *nested, struct mr_error *e)
{
    if (!mr_role_set(r, set, "x")) return MR_OK;
    MR_AUTO(mr_evaluation_close) struct mr_evaluation *x = NULL;
    struct mr_nn_score s;
    int err = mr_evaluation_open(r, set, 0, &x, e);
    if (!err) err = mr_evaluation_score(x, params, &s, e);
    if (err) return err;
    if (flat->n == 1) mr_score_fields(flat, &r->plan, &s);
    mr_buf_printf(nested, "%s\"%s\": {", nested->n ? ", " : "", set);
    mr_score_fields(nested, &r->plan, &s);
    mr_buf_printf(nested, ", \"examples\": %" PRIu64 "}", s.examples);
    return MR_OK;
}

int mr_role_check_params(
    const struct mr_nn_model *m, const float *params, uint64_t version, struct mr_error *e)
{
    if (isfinite(mr_nn_norm(params, m->count))) return MR_OK;
    return mr_fail(e, MR_ERANGE,
        "the parameters of version %" PRIu64 " are not finite: the data have numbers that are not, "
        "or optimizer.learning_rate is too large",
        version);
}

int mr_role_save_model(struct mr_role *r, const float *params, uint64_t version, struct mr_error *e)
{
    char id[MR_OBJECT_ID_TEXT_MAX];
    struct mr_buf flat, nested;
    mr_buf_init(&flat, 65536);
    mr_buf_init(&nested, 65536);
    mr_buf_add_byte(&flat, '{');
    int err = mr_role_check_params(r->plan.model, params, version, e);
    if (!err) err = score_set(r, "validation", params, &flat, &nested, e);
    if (!err) err = score_set(r, "test", params, &flat, &nested, e);
    if (!err) err = model_store(r, params, version, id, e);
    if (!err) {
        mr_score_number(&flat, "version", (double)version);
        mr_score_data(&flat, r);
        mr_buf_printf(&flat, "%s%.*s}", nested.n ? ", " : "", MR_STR_ARG(mr_buf_str(&nested)));
        mr_buf_add_byte(&flat, 0);
        mr_log(MR_INFO, "model.kept", "session=%s version=%" PRIu64 " object=%s name=\"%s\"",
            r->session, version, id, r->plan.save);
        mr_agent_report_finished(r->agent, MR_ROLE_KEEP, id, (const char *)flat.p);
    }
    mr_buf_fini(&flat);
    mr_buf_fini(&nested);
    return err;
}
