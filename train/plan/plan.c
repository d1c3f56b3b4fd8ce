/* Reads the document's fields. The trainer has checked the document, so an error here is a bug of
 * the trainer. Its text is still written for the user. */
#include "train/plan/plan.h"

#include "base/alloc.h"
#include "base/unconst.h"

#include <math.h>
#include <stdlib.h>
#include <yyjson.h>

/* limit for the words of a command, the variables of an environment and the object ids of
 * init.checkpoint */
#define WORDS_MAX 1024

static yyjson_val *at(yyjson_val *v, const char *name)
{
    return yyjson_obj_get(v, name);
}

static uint64_t whole(yyjson_val *v, uint64_t fallback)
{
    if (yyjson_is_uint(v)) return yyjson_get_uint(v);
    if (yyjson_is_real(v) && yyjson_get_real(v) >= 0 && yyjson_get_real(v) < 1e15)
        return (uint64_t)yyjson_get_real(v);
    return fallback;
}

static uint32_t small(yyjson_val *v, uint32_t fallback)
{
    return (uint32_t)MR_MIN(whole(v, fallback), (uint64_t)UINT32_MAX);
}

static bool truth(yyjson_val *v, bool fallback)
{
    return yyjson_is_bool(v) ? yyjson_get_bool(v) : fallback;
}

static char *text(yyjson_val *v)
{
    return yyjson_is_str(v) && yyjson_get_len(v) ? mr_copy_text(yyjson_get_str(v)) : NULL;
}

/* Returns the number of members of a role, which is given as a number or as an object with
 * "count". */
static uint32_t role_count(yyjson_val *v)
{
    return yyjson_is_obj(v) ? small(at(v, "count"), 1) : small(v, 0);
}

static int model_read(yyjson_val *root, struct mr_role_plan *p, struct mr_error *e)
{
    size_t n = 0;
    char *json = yyjson_val_write(at(root, "model"), 0, &n);
    if (!json) return mr_fail(e, MR_EFORMAT, "model: it is not there");
    int err = mr_nn_model_new(mr_str_of(json, n), &p->model, e);
    free(json); /* yyjson has allocated the text */
    return err;
}

static int update_read(yyjson_val *root, struct mr_role_plan *p, struct mr_error *e)
{
    static const char *const names[] = {"async", "sync", "allreduce"};
    yyjson_val *update = at(root, "update"), *roles = at(root, "roles");
    yyjson_val *rule = yyjson_is_str(update) ? update : at(update, "rule");
    p->servers = role_count(at(roles, "ps"));
    p->workers = MR_MAX(role_count(at(roles, "worker")), 1u);
    p->scorers = role_count(at(roles, "scorer"));
    p->aggregate = small(at(update, "replicas_to_aggregate"), 0);
    if (!p->aggregate) p->aggregate = p->workers;
    for (uint32_t i = 0; i < MR_ARRAY_LEN(names); i++) {
        if (rule && !yyjson_equals_str(rule, names[i])) continue;
        p->rule = (enum mr_role_rule)i;
        return MR_OK;
    }
    return mr_fail(e, MR_EINVAL, "update.rule: expected async, sync or allreduce");
}

static int init_read(yyjson_val *root, struct mr_role_plan *p, struct mr_error *e)
{
    yyjson_val *init = at(root, "init"), *list = at(init, "checkpoint");
    p->init_seed = whole(at(init, "seed"), 0);
    p->init_model = text(at(init, "model"));
    size_t n = yyjson_arr_size(list);
    if (!n) return MR_OK;
    if (n > WORDS_MAX) return mr_fail(e, MR_ELIMIT, "init.checkpoint: at most %d", WORDS_MAX);
    p->init_checkpoint = mr_alloc_array(n, sizeof *p->init_checkpoint);
    for (size_t i = 0; i < n; i++) {
        char *id = text(yyjson_arr_get(list, i));
        if (!id) return mr_fail(e, MR_EINVAL, "init.checkpoint: expected object ids");
        p->init_checkpoint[p->init_checkpoint_count++] = id;
    }
    return MR_OK;
}

static void data_read(yyjson_val *root, struct mr_role_plan *p)
{
    yyjson_val *data = at(root, "data");
    p->batch = MR_MAX(small(at(data, "batch"), 64), 1u);
    p->shuffle = truth(at(data, "shuffle"), true);
    p->data_seed = whole(at(data, "seed"), 0);
    p->keep_rest = yyjson_equals_str(at(data, "remainder"), "keep");
    p->queue = text(at(data, "queue"));
    p->has_validation = yyjson_is_obj(at(data, "validation"));
    p->has_test = yyjson_is_obj(at(data, "test"));
}

static mr_duration seconds(yyjson_val *v, double fallback)
{
    double s = yyjson_is_num(v) ? yyjson_get_num(v) : fallback;
    if (!(s >= 0)) s = fallback;
    return (mr_duration)llround(MR_MIN(s, 1e9) * 1e9);
}

/* Returns a copy, because the parsed document is freed. */
static struct mr_str own_text(yyjson_val *v)
{
    char *own = text(v);
    return own ? mr_str(own) : (struct mr_str){0};
}

static void rules_read(yyjson_val *stop, struct mr_role_plan *p)
{
    yyjson_val *threshold = at(stop, "threshold"), *patience = at(stop, "patience");
    yyjson_val *above = at(threshold, "above");
    p->threshold.field = own_text(at(threshold, "field"));
    p->threshold.is_above = above != NULL;
    p->threshold.value = yyjson_get_num(above ? above : at(threshold, "below"));
    p->threshold_channel = text(at(threshold, "channel"));
    p->patience.field = own_text(at(patience, "field"));
    p->patience.scores = small(at(patience, "scores"), 10);
    p->patience.min_delta = yyjson_get_num(at(patience, "min_delta"));
    p->patience.is_max = yyjson_equals_str(at(patience, "mode"), "max");
    p->epochs = whole(at(stop, "epochs"), 0);
    p->steps = whole(at(stop, "steps"), 0);
}

static void rest_read(yyjson_val *root, struct mr_role_plan *p)
{
    yyjson_val *score = at(root, "score"), *stop = at(root, "stop"), *cut = at(root, "checkpoint");
    p->name = text(at(root, "name"));
    if (!p->name) p->name = mr_copy_text("training");
    p->save = text(at(root, "save"));
    if (!p->save) p->save = mr_format("%s/model", p->name);
    p->score_steps = whole(at(score, "every_steps"), 0);
    p->score_every = MR_MAX(seconds(at(score, "every_s"), 1), 10 * MR_MS);
    p->score_examples = whole(at(score, "examples"), 0);
    rules_read(stop, p);
    p->checkpoint_steps = whole(at(cut, "every_steps"), 0);
}

static int words_read(yyjson_val *list, const char *what, char ***out, struct mr_error *e)
{
    size_t n = yyjson_arr_size(list);
    if (!n || n > WORDS_MAX)
        return mr_fail(e, MR_EINVAL, "%s: expected 1 to %d texts", what, WORDS_MAX);
    *out = mr_alloc_array(n + 1, sizeof **out);
    for (size_t i = 0; i < n; i++) {
        yyjson_val *v = yyjson_arr_get(list, i);
        if (!yyjson_is_str(v)) return mr_fail(e, MR_EINVAL, "%s: expected texts", what);
        (*out)[i] = mr_copy_text(yyjson_get_str(v));
    }
    return MR_OK;
}

static int exec_read(yyjson_val *root, const char *kind, struct mr_role_plan *p, struct mr_error *e)
{
    yyjson_val *role = at(at(root, "roles"), kind), *env = at(role, "env");
    if (!yyjson_is_obj(role) || !at(role, "exec")) return MR_OK;
    p->exec_restart = yyjson_is_true(at(role, "restart"));
    p->lease = seconds(at(at(root, "limits"), "lease_s"), 3);
    int err = words_read(at(role, "exec"), "roles: exec", &p->exec, e);
    if (err) return err;
    size_t n = MR_MIN(yyjson_obj_size(env), (size_t)WORDS_MAX), i = 0, max = 0, filled = 0;
    p->exec_env = mr_alloc_array(n + 1, sizeof *p->exec_env);
    yyjson_val *key = NULL, *value = NULL;
    yyjson_obj_foreach(env, i, max, key, value)
    {
        if (!yyjson_is_str(value) || filled == n)
            return mr_fail(e, MR_EINVAL, "roles: env: expected texts, at most %d", WORDS_MAX);
        p->exec_env[filled++] = mr_format("%s=%s", yyjson_get_str(key), yyjson_get_str(value));
    }
    return MR_OK;
}

static int plan_read(yyjson_val *root, const char *kind, struct mr_role_plan *p, struct mr_error *e)
{
    if (!yyjson_is_obj(root)) return mr_fail(e, MR_EFORMAT, "the document is no JSON object");
    static const struct mr_str adam = MR_STR_INIT("{\"type\": \"adam\"}");
    rest_read(root, p);
    data_read(root, p);
    int err = exec_read(root, kind, p, e);
    if (!err) err = update_read(root, p, e);
    if (!err) err = init_read(root, p, e);
    if (err || p->exec) return err; /* a foreign program has its own model */
    err = model_read(root, p, e);
    yyjson_val *optim = at(root, "optimizer");
    if (!err && optim) err = mr_nn_optim_read(optim, "optimizer", &p->optim, e);
    if (!err && !optim) err = mr_nn_optim_parse(adam, &p->optim, e);
    const char *loss = yyjson_get_str(at(root, "loss"));
    return err ? err : mr_nn_loss_parse(loss ? loss : "cross_entropy", &p->loss, e);
}

int mr_role_plan_read(
    struct mr_str document, const char *kind, struct mr_role_plan *out, struct mr_error *e)
{
    *out = (struct mr_role_plan){0};
    yyjson_doc *doc = yyjson_read(document.p, document.n, 0);
    struct mr_error why;
    why.text[0] = 0;
    int err = plan_read(yyjson_doc_get_root(doc), kind, out, &why);
    yyjson_doc_free(doc);
    if (!err) return MR_OK;
    mr_role_plan_fini(out);
    return mr_fail(e, err, "the session's document: %s", why.text);
}

static void words_free(char ***words)
{
    for (char **w = *words; w && *w; w++)
        mr_release(*w);
    mr_release(*words);
    *words = NULL;
}

void mr_role_plan_fini(struct mr_role_plan *p)
{
    mr_nn_model_free(&p->model);
    for (uint32_t i = 0; i < p->init_checkpoint_count; i++)
        mr_release(p->init_checkpoint[i]);
    mr_release(p->init_checkpoint);
    words_free(&p->exec);
    words_free(&p->exec_env);
    mr_release(mr_unconst(p->threshold.field.p));
    mr_release(mr_unconst(p->patience.field.p));
    mr_release(p->threshold_channel);
    mr_release(p->name);
    mr_release(p->init_model);
    mr_release(p->queue);
    mr_release(p->save);
    *p = (struct mr_role_plan){0};
}
