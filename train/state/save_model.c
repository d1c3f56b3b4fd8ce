/* Scores the trained model, writes its value straight into memory of the object store, and gives
 * the object its name. */
#include "train/state/save_model.h"

#include "host/os/log.h"
#include "nn/model/model_value.h"
#include "store/object/value.h"
#include "train/state/evaluation.h"
#include "train/state/score.h"

#include <inttypes.h>

#define ROOM_TIMEOUT (60 * MR_SECOND) /* limit of the wait until the object store has made room */

struct room { /* where the memory for the model's value comes from */
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

/* Scores the model on the data set `set`, if the session has this set. Adds the scores to `nested`,
 * as an object under the set's name. If no scores are in `flat` yet, adds them there, too. */
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

int mr_role_save_model(struct mr_role *r, const float *params, uint64_t version, struct mr_error *e)
{
    char id[MR_OBJECT_ID_TEXT_MAX];
    struct mr_buf flat, nested;
    mr_buf_init(&flat, 65536);
    mr_buf_init(&nested, 65536);
    mr_buf_add_byte(&flat, '{');
    int err = mr_evaluation_check_params(r->plan.model, params, version, e);
    if (!err) err = score_set(r, "validation", params, &flat, &nested, e);
    if (!err) err = score_set(r, "test", params, &flat, &nested, e);
    if (!err) err = model_store(r, params, version, id, e);
    if (!err) {
        mr_score_number(&flat, "version", (double)version);
        mr_score_data(&flat, r);
        mr_buf_printf(&flat, "%s%.*s}", nested.n ? ", " : "", MR_STR_ARG(mr_buf_str(&nested)));
        mr_buf_add_byte(&flat, 0);
        mr_log(MR_INFO, "model.saved", "session=%s version=%" PRIu64 " object=%s name=\"%s\"",
            r->session, version, id, r->plan.save);
        mr_agent_report_finished(r->agent, MR_ROLE_KEEP, id, (const char *)flat.p);
    }
    mr_buf_fini(&flat);
    mr_buf_fini(&nested);
    return err;
}
