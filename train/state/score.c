/* Writes fields of a score's JSON object. */
#include "train/state/score.h"

#include <math.h>

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
