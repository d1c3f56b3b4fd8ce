/* Reads schedules and computes their factors in double precision. */
#include "nn/optim/schedule.h"

#include "base/assert.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <yyjson.h>

static const char *const names[MR_NN_SCHEDULES] = {
    [MR_NN_CONSTANT] = "constant",
    [MR_NN_STEP] = "step",
    [MR_NN_EXPONENTIAL] = "exponential",
    [MR_NN_INVERSE_TIME] = "inverse_time",
    [MR_NN_COSINE] = "cosine",
    [MR_NN_WARMUP] = "warmup",
    [MR_NN_PIECEWISE] = "piecewise",
};

static const char *name_of(enum mr_nn_schedule_type t)
{
    return t < MR_NN_SCHEDULES ? names[t] : "?";
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reader {
    struct mr_nn_schedule *out;
    const char *where;
    struct mr_error *e;
};

static int refuse(const struct reader *r, const char *field, const char *want)
{
    return mr_fail(r->e, MR_EINVAL, "%s: field \"%s\" must be %s", r->where, field, want);
}

static bool positive(yyjson_val *v, uint64_t *out)
{
    if (!yyjson_is_uint(v) || yyjson_get_uint(v) == 0) return false;
    *out = yyjson_get_uint(v);
    return true;
}

static int read_steps(struct reader *r, const char *field, yyjson_val *v)
{
    return positive(v, &r->out->steps) ? MR_OK : refuse(r, field, "a whole number, at least 1");
}

static int read_warmup(struct reader *r, const char *field, yyjson_val *v)
{
    return positive(v, &r->out->warmup) ? MR_OK : refuse(r, field, "a whole number, at least 1");
}

static int read_factor(struct reader *r, const char *field, yyjson_val *v)
{
    double d = yyjson_is_num(v) ? yyjson_get_num(v) : -1;
    if (!(d > 0 && d <= 1e6)) return refuse(r, field, "a number above 0");
    r->out->factor = d;
    return MR_OK;
}

static int read_final(struct reader *r, const char *field, yyjson_val *v)
{
    double d = yyjson_is_num(v) ? yyjson_get_num(v) : -1;
    if (!(d >= 0 && d <= 1)) return refuse(r, field, "a number from 0 to 1");
    r->out->factor = d;
    return MR_OK;
}

static int read_at(struct reader *r, const char *field, yyjson_val *v)
{
    size_t n = yyjson_arr_size(v);
    bool good = n >= 1 && n <= MR_NN_PIECES_MAX;
    for (size_t i = 0; good && i < n; i++) {
        good = positive(yyjson_arr_get(v, i), &r->out->at[i]) &&
               (i == 0 || r->out->at[i] > r->out->at[i - 1]);
    }
    if (!good) return refuse(r, field, "a list of 1 to 32 growing versions, each at least 1");
    r->out->pieces = (uint32_t)n;
    return MR_OK;
}

static int read_rates(struct reader *r, const char *field, yyjson_val *v)
{
    size_t n = yyjson_arr_size(v);
    bool good = n >= 2 && n <= MR_NN_PIECES_MAX + 1;
    for (size_t i = 0; good && i < n; i++) {
        yyjson_val *rate = yyjson_arr_get(v, i);
        r->out->rates[i] = yyjson_is_num(rate) ? yyjson_get_num(rate) : -1;
        good = r->out->rates[i] >= 0 && r->out->rates[i] <= 1e6;
    }
    return good ? MR_OK : refuse(r, field, "a list of 2 to 33 learning rates");
}

#define K(x) (1u << MR_NN_##x)
#define EVERY (K(STEP) | K(EXPONENTIAL) | K(INVERSE_TIME))
static const struct {
    const char *name;
    unsigned types, needed;
    int (*read)(struct reader *r, const char *field, yyjson_val *v);
} fields[] = {
    {"every", EVERY, EVERY, read_steps},
    {"factor", EVERY, EVERY, read_factor},
    {"steps", K(COSINE) | K(WARMUP), K(COSINE) | K(WARMUP), read_steps},
    {"final", K(COSINE), 0, read_final},
    {"at", K(PIECEWISE), K(PIECEWISE), read_at},
    {"rates", K(PIECEWISE), K(PIECEWISE), read_rates},
    {"warmup", ~K(WARMUP), 0, read_warmup},
};

static int read_type(struct reader *r, yyjson_val *v)
{
    yyjson_val *type = yyjson_obj_get(v, "type");
    for (unsigned i = 0; i < MR_NN_SCHEDULES; i++) {
        if (!yyjson_equals_str(type, names[i])) continue;
        r->out->type = (enum mr_nn_schedule_type)i;
        return MR_OK;
    }
    return refuse(
        r, "type", "constant, step, exponential, inverse_time, cosine, warmup or piecewise");
}

static int read_field(struct reader *r, const char *name, yyjson_val *v)
{
    for (size_t i = 0; i < MR_ARRAY_LEN(fields); i++)
        if (strcmp(name, fields[i].name) == 0 && fields[i].types >> r->out->type & 1u)
            return fields[i].read(r, name, v);
    return mr_fail(
        r->e, MR_EINVAL, "%s: %s has no field \"%.60s\"", r->where, name_of(r->out->type), name);
}

int mr_nn_schedule_read(
    struct yyjson_val *v, const char *where, struct mr_nn_schedule *out, struct mr_error *e)
{
    struct mr_nn_schedule s = {0};
    struct reader r = {&s, where, e};
    if (!yyjson_is_obj(v)) return mr_fail(e, MR_EINVAL, "%s must be an object", where);
    int err = read_type(&r, v);
    if (err) return err;
    size_t at = 0, n = 0;
    yyjson_val *key = NULL, *value = NULL;
    yyjson_obj_foreach(v, at, n, key, value)
    {
        if (yyjson_equals_str(key, "type")) continue;
        err = read_field(&r, yyjson_get_str(key), value);
        if (err) return err;
    }
    for (size_t i = 0; i < MR_ARRAY_LEN(fields); i++)
        if (fields[i].needed >> s.type & 1u && !yyjson_obj_get(v, fields[i].name))
            return mr_fail(e, MR_EINVAL, "%s: field \"%s\" is missing", where, fields[i].name);
    if (s.type == MR_NN_PIECEWISE &&
        yyjson_arr_size(yyjson_obj_get(v, "rates")) != (size_t)s.pieces + 1)
        return refuse(&r, "rates", "one longer than \"at\"");
    *out = s;
    return MR_OK;
}

/* ---- the rate -------------------------------------------------------------------------------- */

static double base_rate(const struct mr_nn_schedule *s, double rate, uint64_t version)
{
    double n = (double)s->steps, at = (double)version;
    switch (s->type) {
    case MR_NN_STEP: return rate * pow(s->factor, (double)(version / s->steps));
    case MR_NN_EXPONENTIAL: return rate * pow(s->factor, at / n);
    case MR_NN_INVERSE_TIME: return rate / (1 + s->factor * at / n);
    case MR_NN_COSINE:
        at = MR_MIN(at / n, 1.0);
        return rate * (s->factor + (1 - s->factor) * 0.5 * (1 + cos(3.14159265358979323846 * at)));
    case MR_NN_WARMUP: return version < s->steps ? rate * (at + 1) / n : rate;
    case MR_NN_PIECEWISE: {
        uint32_t i = 0;
        while (i < s->pieces && version >= s->at[i])
            i++;
        return s->rates[i];
    }
    case MR_NN_CONSTANT:
    case MR_NN_SCHEDULES: break;
    }
    return rate;
}

double mr_nn_schedule_rate(const struct mr_nn_schedule *s, double learning_rate, uint64_t version)
{
    double rate = base_rate(s, learning_rate, version);
    return version < s->warmup ? rate * ((double)version + 1) / (double)s->warmup : rate;
}
