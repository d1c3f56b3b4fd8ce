/* Judges fields of a score; does not know where scores come from or how a training ends. */
#include "nn/optim/early_stopping.h"

static yyjson_val *field_of(yyjson_val *score, struct mr_str field)
{
    return field.n ? yyjson_obj_getn(score, field.p, field.n) : NULL;
}

bool mr_nn_threshold_is_met(const struct mr_nn_threshold *rule, yyjson_val *score, double *out)
{
    yyjson_val *v = field_of(score, rule->field);
    if (!yyjson_is_num(v)) return false;
    double x = yyjson_get_num(v);
    if (out) *out = x;
    return rule->is_above ? x > rule->value : x < rule->value;
}

enum mr_nn_patience_says mr_nn_patience_judge(
    const struct mr_nn_patience *rule, struct mr_nn_patience_state *state, yyjson_val *score)
{
    yyjson_val *v = field_of(score, rule->field);
    bool is_number = yyjson_is_num(v);
    if (!is_number && !yyjson_is_str(v)) return MR_NN_PATIENCE_SAME;
    double x = is_number ? yyjson_get_num(v) : 0;
    double gain = rule->is_max ? x - state->best : state->best - x;
    if (is_number && (!state->has_best || gain > rule->min_delta)) {
        *state = (struct mr_nn_patience_state){.has_best = true, .best = x};
        return MR_NN_PATIENCE_BETTER;
    }
    return ++state->bad_scores >= rule->scores ? MR_NN_PATIENCE_ENDS : MR_NN_PATIENCE_SAME;
}
