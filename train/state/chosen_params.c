/* Judges scores by the same code as the trainer (lib/nn/optim/early_stopping.h). Does not know the
 * session's other stop rules: when one of these ends the session, the newest parameters are
 * saved. */
#include "train/state/chosen_params.h"

#include "base/alloc.h"

#define ALIGN 64

struct copy {
    float *params;
    uint64_t version;
};

struct mr_chosen {
    const struct mr_role_plan *plan;
    bool has_threshold; /* the plan has a threshold for scores of the session's own channel */
    struct mr_nn_patience_state patience;
    /* `best.params` is NULL until a score is an improvement or meets the threshold */
    struct copy scored, best;
    bool is_over; /* a rule has ended the session */
};

struct mr_chosen *mr_chosen_new(const struct mr_role_plan *plan, const char *channel)
{
    bool own = !plan->threshold_channel || !strcmp(plan->threshold_channel, channel);
    bool has_threshold = plan->threshold.field.n && own;
    if (!has_threshold && !plan->patience.field.n) return NULL;
    struct mr_chosen *c = mr_alloc(sizeof *c);
    c->plan = plan;
    c->has_threshold = has_threshold;
    return c;
}

void mr_chosen_free(struct mr_chosen **chosen)
{
    struct mr_chosen *c = *chosen;
    if (!c) return;
    mr_release(c->scored.params);
    mr_release(c->best.params);
    mr_release(c);
    *chosen = NULL;
}

const float *mr_chosen_copy(struct mr_chosen *c, const float *params, uint64_t version)
{
    size_t bytes = c->plan->model->count * sizeof *params;
    if (!c->scored.params) c->scored.params = mr_alloc_aligned(bytes, ALIGN);
    memcpy(c->scored.params, params, bytes);
    c->scored.version = version;
    return c->scored.params;
}

static void choose(struct mr_chosen *c)
{
    struct copy scored = c->scored;
    c->scored = c->best;
    c->best = scored;
}

void mr_chosen_judge(struct mr_chosen *c, struct mr_str score)
{
    yyjson_doc *doc = c->is_over ? NULL : yyjson_read(score.p, score.n, 0);
    yyjson_val *root = yyjson_doc_get_root(doc);
    if (!yyjson_is_obj(root)) {
        yyjson_doc_free(doc);
        return;
    }
    enum mr_nn_patience_says says = mr_nn_patience_judge(&c->plan->patience, &c->patience, root);
    if (c->has_threshold && mr_nn_threshold_is_met(&c->plan->threshold, root, NULL)) {
        c->is_over = true;
        choose(c);
    } else if (says == MR_NN_PATIENCE_BETTER) {
        choose(c);
    } else if (says == MR_NN_PATIENCE_ENDS) {
        c->is_over = true;
    }
    yyjson_doc_free(doc);
}

const float *mr_chosen_params(const struct mr_chosen *c, uint64_t *version)
{
    if (!c->is_over || !c->best.params) return NULL;
    *version = c->best.version;
    return c->best.params;
}
