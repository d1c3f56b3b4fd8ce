#include "services/scheduler/predict/request.h"

#include "base/limits.h"

#include <stdlib.h>
#include <string.h>

#define OP_SPEED_BYTES_MAX (MR_OP_NAME_BYTES_MAX + 64u) /* a name, "=" and a number */
#define FREE_NAMES                                                                                 \
    "scheduler, decide, report, send, handoff, transfer, journal, input, output or preempted"

const char *mr_predict_free_name(size_t i)
{
    static const char *const names[] = {"scheduler", "decide", "report", "send", "handoff",
        "transfer", "journal", "input", "output", "preempted"};
    return i < MR_ARRAY_LEN(names) ? names[i] : NULL;
}

/* NaN is no factor. */
static bool is_factor(double x)
{
    return x >= MR_PREDICT_FACTOR_MIN && x <= MR_PREDICT_FACTOR_MAX;
}

static int check_free(const char *name, struct mr_error *e)
{
    for (size_t i = 0; mr_predict_free_name(i); i++)
        if (!strcmp(name, mr_predict_free_name(i))) return MR_OK;
    return mr_fail(e, MR_EINVAL, "free: expected " FREE_NAMES ", not \"%.64s\"", name);
}

static int check_op_speed(
    const char *text, const struct mr_str *ops, uint32_t ops_count, struct mr_error *e)
{
    const char *equal = strrchr(text, '=');
    char *end = NULL;
    double factor = equal ? strtod(equal + 1, &end) : 0;
    if (strlen(text) > OP_SPEED_BYTES_MAX || !equal || end == equal + 1 || *end ||
        !is_factor(factor))
        return mr_fail(e, MR_EINVAL,
            "op_speed: expected NAME=F with F from 0.000001 to 1000000, for example "
            "array.matmul=2, not \"%.64s\"",
            text);
    struct mr_str name = mr_str_of(text, (size_t)(equal - text));
    for (uint32_t i = 0; i < ops_count; i++)
        if (mr_str_eq(ops[i], name)) return MR_OK;
    return mr_fail(e, MR_EINVAL, "op_speed: no task of the job has the operator \"%.*s\"",
        (int)MR_MIN(name.n, (size_t)64), name.p);
}

int mr_predict_check(const Millrace__V1__WhatIfRequest *m, const struct mr_str *ops,
    uint32_t ops_count, struct mr_error *e)
{
    if (m->slots > MR_PREDICT_SLOTS_MAX)
        return mr_fail(
            e, MR_EINVAL, "slots: expected 1 to %u, not %u", MR_PREDICT_SLOTS_MAX, m->slots);
    if (m->processors > MR_PREDICT_PROCESSORS_MAX)
        return mr_fail(e, MR_EINVAL, "processors: expected 1 to %u, not %u",
            MR_PREDICT_PROCESSORS_MAX, m->processors);
    if ((m->bandwidth < 0 || m->bandwidth > 0 || m->bandwidth != m->bandwidth) &&
        !is_factor(m->bandwidth))
        return mr_fail(
            e, MR_EINVAL, "bandwidth: expected 0.000001 to 1000000, not %g", m->bandwidth);
    if (m->n_free > MR_PREDICT_FREE_MAX)
        return mr_fail(e, MR_EINVAL, "free: at most %u are allowed", MR_PREDICT_FREE_MAX);
    if (m->n_op_speed > MR_PREDICT_OP_SPEEDS_MAX)
        return mr_fail(e, MR_EINVAL, "op_speed: at most %u are allowed", MR_PREDICT_OP_SPEEDS_MAX);
    int err = MR_OK;
    for (size_t i = 0; i < m->n_free && !err; i++)
        err = check_free(m->free[i], e);
    for (size_t i = 0; i < m->n_op_speed && !err; i++)
        err = check_op_speed(m->op_speed[i], ops, ops_count, e);
    return err;
}
