/* Reads the fields of an optimizer from JSON and refuses fields that its type does not have. */
#include "nn/optim/optim.h"

#include <stdio.h>
#include <yyjson.h>

#define OPTIM_BYTES_MAX 65536 /* limit of the bytes of the JSON text */

static const char *const names[] = {
    [MR_NN_SGD] = "sgd", [MR_NN_ADAM] = "adam", [MR_NN_RMSPROP] = "rmsprop"};

const char *mr_nn_optim_name(enum mr_nn_optim_type t)
{
    return names[t];
}

enum { ABOVE_ZERO = 1, BELOW_ONE = 2 }; /* which ends of a range do not belong to it */

#define K(x) (1u << MR_NN_##x)
#define ALL (K(SGD) | K(ADAM) | K(RMSPROP))
static const struct {
    const char *name;
    unsigned types;
    size_t offset;
    double most;
    unsigned open;
    const char *want;
} numbers[] = {
#define FIELD(name) offsetof(struct mr_nn_optim, name)
    {"learning_rate", ALL, FIELD(learning_rate), 1e6, ABOVE_ZERO, "above 0 and at most 1e6"},
    {"momentum", K(SGD) | K(RMSPROP), FIELD(momentum), 1, BELOW_ONE, "from 0 to less than 1"},
    {"beta1", K(ADAM), FIELD(beta1), 1, BELOW_ONE, "from 0 to less than 1"},
    {"beta2", K(ADAM), FIELD(beta2), 1, BELOW_ONE, "from 0 to less than 1"},
    {"rho", K(RMSPROP), FIELD(rho), 1, BELOW_ONE, "from 0 to less than 1"},
    {"epsilon", K(ADAM) | K(RMSPROP), FIELD(epsilon), 1, ABOVE_ZERO, "above 0 and at most 1"},
    {"weight_decay", ALL, FIELD(weight_decay), 1, 0, "from 0 to 1"},
    {"clip_value", ALL, FIELD(clip_value), 1e30, 0, "a number from 0 (no limit) on"},
    {"clip_norm", ALL, FIELD(clip_norm), 1e30, 0, "a number from 0 (no limit) on"},
};

static const struct {
    const char *name;
    unsigned types;
    size_t offset;
} flags[] = {
    {"nesterov", K(SGD), FIELD(nesterov)},
    {"decoupled", ALL, FIELD(decoupled)},
};

static int refuse(const char *where, const char *field, const char *want, struct mr_error *e)
{
    return mr_fail(e, MR_EINVAL, "%s: field \"%s\" must be %s", where, field, want);
}

static int read_type(yyjson_val *v, const char *where, struct mr_nn_optim *out, struct mr_error *e)
{
    if (!yyjson_is_obj(v)) return mr_fail(e, MR_EINVAL, "%s must be an object", where);
    yyjson_val *type = yyjson_obj_get(v, "type");
    for (unsigned i = 0; i < MR_ARRAY_LEN(names); i++) {
        if (!yyjson_equals_str(type, names[i])) continue;
        out->type = (enum mr_nn_optim_type)i;
        return MR_OK;
    }
    return refuse(where, "type", "sgd, adam or rmsprop", e);
}

static int read_number(
    size_t i, yyjson_val *v, const char *where, struct mr_nn_optim *out, struct mr_error *e)
{
    double d = yyjson_is_num(v) ? yyjson_get_num(v) : -1;
    bool good = d >= 0 && d <= numbers[i].most && !(numbers[i].open & ABOVE_ZERO && d == 0) &&
                !(numbers[i].open & BELOW_ONE && d == numbers[i].most);
    if (!good) return refuse(where, numbers[i].name, numbers[i].want, e);
    memcpy((char *)out + numbers[i].offset, &d, sizeof d);
    return MR_OK;
}

static int read_field(
    const char *name, yyjson_val *v, const char *where, struct mr_nn_optim *out, struct mr_error *e)
{
    for (size_t i = 0; i < MR_ARRAY_LEN(numbers); i++)
        if (numbers[i].types >> out->type & 1u && strcmp(name, numbers[i].name) == 0)
            return read_number(i, v, where, out, e);
    for (size_t i = 0; i < MR_ARRAY_LEN(flags); i++) {
        if (!(flags[i].types >> out->type & 1u) || strcmp(name, flags[i].name) != 0) continue;
        if (!yyjson_is_bool(v)) return refuse(where, name, "true or false", e);
        bool b = yyjson_get_bool(v);
        memcpy((char *)out + flags[i].offset, &b, sizeof b);
        return MR_OK;
    }
    if (strcmp(name, "schedule") == 0) {
        char place[160];
        (void)snprintf(place, sizeof place, "%.100s: field \"schedule\"", where);
        return mr_nn_schedule_read(v, place, &out->schedule, e);
    }
    return mr_fail(e, MR_EINVAL, "%s: %s has no field \"%.60s\"", where, names[out->type], name);
}

int mr_nn_optim_read(
    struct yyjson_val *v, const char *where, struct mr_nn_optim *out, struct mr_error *e)
{
    struct mr_nn_optim o = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .rho = 0.99};
    int err = read_type(v, where, &o, e);
    if (err) return err;
    o.learning_rate = o.type == MR_NN_ADAM ? 0.001 : 0.01;
    size_t at = 0, n = 0;
    yyjson_val *key = NULL, *value = NULL;
    yyjson_obj_foreach(v, at, n, key, value)
    {
        if (yyjson_equals_str(key, "type")) continue;
        err = read_field(yyjson_get_str(key), value, where, &o, e);
        if (err) return err;
    }
    if (o.nesterov && o.momentum == 0)
        return refuse(where, "momentum", "above 0 when \"nesterov\" is true", e);
    if (o.decoupled && o.weight_decay == 0)
        return refuse(where, "weight_decay", "above 0 when \"decoupled\" is true", e);
    *out = o;
    return MR_OK;
}

static void doc_free(yyjson_doc **d)
{
    yyjson_doc_free(*d);
    *d = NULL;
}

int mr_nn_optim_parse(struct mr_str json, struct mr_nn_optim *out, struct mr_error *e)
{
    if (json.n > OPTIM_BYTES_MAX)
        return mr_fail(
            e, MR_ELIMIT, "optimizer: %zu bytes of JSON, at most %d", json.n, OPTIM_BYTES_MAX);
    MR_AUTO(doc_free) yyjson_doc *doc = json.n ? yyjson_read(json.p, json.n, 0) : NULL;
    if (!doc) return mr_fail(e, MR_EINVAL, "optimizer: malformed JSON");
    return mr_nn_optim_read(yyjson_doc_get_root(doc), "optimizer", out, e);
}
