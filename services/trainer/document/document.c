/* Checks the document of a training session: this file knows every field and its bounds. lib/nn
 * checks model, optimizer and loss. The scheduler checks the graph when it gets the graph as a
 * job. */
#include "services/trainer/document/document.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/unconst.h"
#include "nn/model/model.h"
#include "nn/net/net.h"
#include "services/trainer/document/reader.h"
#include "train/plan/limits.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* limit of the number of texts in a command, an environment or a list of objects */
#define WORDS_MAX 1024
/* Limit of the field data.batch if the roles are foreign programs. The trainer itself does not use
 * the field. */
#define FOREIGN_BATCH_MAX 1048576
#define COUNT_MAX ((uint64_t)1 << 53)
#define SECONDS_MAX 2592000.0 /* 30 days */

static_assert(MR_TRAINING_ROLE_COUNT_MAX <= MR_TRAIN_WORKERS_MAX, "each worker has a mailbox");

struct mr_training_words {
    char *text;
    size_t text_bytes;
    char *json; /* memory that yyjson has allocated */
    size_t json_bytes;
    yyjson_mut_doc *doc; /* NULL: the document was trimmed, and `kept` has the texts */
    char *kept;
};

void mr_training_document_free(struct mr_training_document **dp)
{
    struct mr_training_document *d = MR_STEAL(*dp);
    if (!d) return;
    mr_release(d->words->text);
    free(d->words->json);
    yyjson_mut_doc_free(d->words->doc);
    mr_release(d->words->kept);
    mr_release(d->words);
    mr_release(d);
}

struct mr_str mr_training_document_text(const struct mr_training_document *d)
{
    return mr_str_of(d->words->text, d->words->text_bytes);
}

struct mr_str mr_training_document_json(const struct mr_training_document *d)
{
    return mr_str_of(d->words->json, d->words->json_bytes);
}

void mr_training_document_trim(struct mr_training_document *d)
{
    struct mr_str *const texts[] = {&d->name, &d->save, &d->channel, &d->threshold.field,
        &d->threshold_channel, &d->patience.field};
    size_t n = 0;
    if (!d->words->doc) return;
    for (size_t i = 0; i < MR_ARRAY_LEN(texts); i++)
        n += texts[i]->n;
    char *to = d->words->kept = mr_alloc(n + 1);
    for (size_t i = 0; i < MR_ARRAY_LEN(texts); i++) {
        if (texts[i]->n) memcpy(to, texts[i]->p, texts[i]->n);
        texts[i]->p = to;
        to += texts[i]->n;
    }
    yyjson_mut_doc_free(d->words->doc);
    free(d->words->json);
    d->words->doc = NULL;
    d->words->json = NULL;
    d->words->json_bytes = 0;
}

static void hide_values(yyjson_mut_doc *doc, yyjson_mut_val *role)
{
    yyjson_mut_val *env = yyjson_mut_obj_get(role, "env");
    yyjson_mut_obj_iter it;
    if (!yyjson_mut_is_obj(env)) {
        if (env) (void)yyjson_mut_obj_put(role, yyjson_mut_str(doc, "env"), yyjson_mut_null(doc));
        return;
    }
    (void)yyjson_mut_obj_iter_init(env, &it);
    for (yyjson_mut_val *key; (key = yyjson_mut_obj_iter_next(&it));)
        yyjson_mut_set_str(yyjson_mut_obj_iter_get_val(key), "(hidden)");
}

void mr_training_document_show(const struct mr_training_document *d, struct mr_buf *out)
{
    struct mr_str text = mr_training_document_text(d);
    bool any =
        d->exec[MR_TRAINING_PS] || d->exec[MR_TRAINING_WORKER] || d->exec[MR_TRAINING_SCORER];
    if (!any) {
        mr_buf_add_str(out, text);
        return;
    }
    /* yyjson_read writes to the text only with YYJSON_READ_INSITU. It cannot fail, since it has
     * read this text before. */
    yyjson_doc *read = yyjson_read(text.p, text.n, 0);
    yyjson_mut_doc *doc = yyjson_doc_mut_copy(read, NULL);
    yyjson_doc_free(read);
    yyjson_mut_val *roles = yyjson_mut_obj_get(yyjson_mut_doc_get_root(doc), "roles");
    yyjson_mut_obj_iter it;
    if (yyjson_mut_is_obj(roles) && yyjson_mut_obj_iter_init(roles, &it))
        for (yyjson_mut_val *key; (key = yyjson_mut_obj_iter_next(&it));)
            if (yyjson_mut_is_obj(yyjson_mut_obj_iter_get_val(key)))
                hide_values(doc, yyjson_mut_obj_iter_get_val(key));
    size_t n = 0;
    char *written = yyjson_mut_write(doc, 0, &n);
    if (written) mr_buf_add(out, written, n);
    free(written);
    yyjson_mut_doc_free(doc);
}

/* ---- ${name} --------------------------------------------------------------------------------- */

/* True: the text is nested too deeply. yyjson copies values recursively, so such a document is
 * refused before it is parsed. */
static bool is_too_deep(struct mr_str s)
{
    size_t depth = 0, deepest = 0;
    bool in_text = false;
    for (size_t i = 0; i < s.n; i++) {
        if (in_text) {
            if (s.p[i] == '\\')
                i++;
            else if (s.p[i] == '"')
                in_text = false;
        } else if (s.p[i] == '"') {
            in_text = true;
        } else if (s.p[i] == '{' || s.p[i] == '[') {
            depth++;
            deepest = MR_MAX(deepest, depth);
        } else if ((s.p[i] == '}' || s.p[i] == ']') && depth) {
            depth--;
        }
    }
    return deepest > MR_DEPTH_MAX;
}

static void add_scalar(struct mr_buf *out, yyjson_mut_val *v)
{
    if (yyjson_mut_is_str(v)) {
        mr_buf_add(out, yyjson_mut_get_str(v), yyjson_mut_get_len(v));
        return;
    }
    size_t n = 0;
    char *json = yyjson_mut_val_write(v, 0, &n);
    if (json) mr_buf_add(out, json, n);
    free(json);
}

/* Replaces each `${name}` in a text by the parameter. A text that is nothing but one `${name}`
 * becomes the parameter itself, with its type. */
static void substitute(struct mr_doc_read *r, const struct mr_doc_part *params, yyjson_mut_val *v)
{
    const char *s = yyjson_mut_get_str(v), *end = s + yyjson_mut_get_len(v);
    struct mr_buf out;
    bool found = false;
    mr_buf_init(&out, MR_LITERAL_BYTES_MAX);
    for (const char *p = s; p < end && !r->err;) {
        const char *close =
            end - p > 2 && p[0] == '$' && p[1] == '{' ? memchr(p, '}', (size_t)(end - p)) : NULL;
        if (!close) {
            mr_buf_add_byte(&out, (unsigned char)*p++);
            continue;
        }
        size_t n = (size_t)(close - p) - 2;
        yyjson_mut_val *value = params->at ? yyjson_mut_obj_getn(params->at, p + 2, n) : NULL;
        if (!value)
            mr_doc_refuse(r, params, "", "there is no \"%.*s\", which is referred to as ${…}",
                (int)MR_MIN(n, (size_t)80), p + 2);
        /* the whole text is this one ${name}, so the parameter keeps its type */
        if (value && p == s && close + 1 == end) {
            value = yyjson_mut_val_mut_copy(r->doc, value);
            v->tag = value->tag;
            v->uni = value->uni;
            break;
        }
        if (value) add_scalar(&out, value);
        found = true;
        p = close + 1;
    }
    if (mr_buf_status(&out)) mr_doc_refuse(r, params, "", "a text becomes too long");
    if (found && !r->err) {
        yyjson_mut_val *text = yyjson_mut_strncpy(r->doc, (const char *)out.p, out.n);
        v->tag = text->tag;
        v->uni = text->uni;
    }
    mr_buf_fini(&out);
}

/* Substitutes parameters in all texts below `top`. Uses an explicit stack, because the depth comes
 * from outside. */
static void substitute_all(
    struct mr_doc_read *r, const struct mr_doc_part *params, yyjson_mut_val *top)
{
    struct {
        yyjson_mut_arr_iter list;
        yyjson_mut_obj_iter map;
        bool is_map;
    } stack[MR_DEPTH_MAX + 1];
    uint32_t depth = 0;
    for (yyjson_mut_val *v = top; !r->err;) {
        bool is_map = yyjson_mut_is_obj(v);
        if (yyjson_mut_is_str(v))
            substitute(r, params, v);
        else if ((is_map || yyjson_mut_is_arr(v)) && depth <= MR_DEPTH_MAX) {
            stack[depth].is_map = is_map;
            if (is_map)
                (void)yyjson_mut_obj_iter_init(v, &stack[depth].map);
            else
                (void)yyjson_mut_arr_iter_init(v, &stack[depth].list);
            depth++;
        }
        for (v = NULL; depth && !v;) {
            if (stack[depth - 1].is_map) {
                yyjson_mut_val *key = yyjson_mut_obj_iter_next(&stack[depth - 1].map);
                v = key ? yyjson_mut_obj_iter_get_val(key) : NULL;
            } else {
                v = yyjson_mut_arr_iter_next(&stack[depth - 1].list);
            }
            if (!v) depth--;
        }
        if (!v) return;
    }
}

/* ---- fields ---------------------------------------------------------------------------------- */

static mr_duration seconds(struct mr_doc_read *r, const struct mr_doc_part *p, const char *field,
    double fallback, double least)
{
    return (mr_duration)llround(mr_doc_number(r, p, field, fallback, least, SECONDS_MAX) * 1e9);
}

static uint32_t role(struct mr_training_document *d, struct mr_doc_read *r,
    const struct mr_doc_part *roles, enum mr_training_role which, uint32_t fallback)
{
    static const char *const names[] = {"", "ps", "worker", "scorer"};
    static const char *const paths[] = {"", "roles.ps", "roles.worker", "roles.scorer"};
    if (!yyjson_mut_is_obj(mr_doc_field(roles, names[which])))
        return (uint32_t)mr_doc_uint(
            r, roles, names[which], fallback, 0, MR_TRAINING_ROLE_COUNT_MAX);
    struct mr_doc_part p =
        mr_doc_object(r, roles, names[which], paths[which], "count exec env restart", false);
    mr_doc_texts(r, &p, "exec", WORDS_MAX);
    d->exec[which] = mr_doc_field(&p, "exec") != NULL;
    if (d->exec[which])
        mr_doc_bool(r, &p, "restart", false);
    else if (mr_doc_field(&p, "restart"))
        mr_doc_refuse(r, &p, "restart", "only with \"exec\"");
    yyjson_mut_val *env = mr_doc_field(&p, "env");
    bool good = !env || (yyjson_mut_is_obj(env) && yyjson_mut_obj_size(env) <= WORDS_MAX);
    yyjson_mut_obj_iter it;
    (void)yyjson_mut_obj_iter_init(env, &it);
    for (yyjson_mut_val *key; good && (key = yyjson_mut_obj_iter_next(&it));) {
        yyjson_mut_val *v = yyjson_mut_obj_iter_get_val(key);
        good = yyjson_mut_is_str(v) && !memchr(yyjson_mut_get_str(v), 0, yyjson_mut_get_len(v)) &&
               yyjson_mut_get_len(key) && !strpbrk(yyjson_mut_get_str(key), "=") &&
               !memchr(yyjson_mut_get_str(key), 0, yyjson_mut_get_len(key));
    }
    if (!good) mr_doc_refuse(r, &p, "env", "expected an object of at most %d texts", WORDS_MAX);
    return (uint32_t)mr_doc_uint(r, &p, "count", 1, 0, MR_TRAINING_ROLE_COUNT_MAX);
}

/* Checks the numbers of roles against the sizes of their tables (train/plan/limits.h). The roles
 * would refuse these numbers, too, but only when they start. */
static void check_tables(
    const struct mr_training_document *d, struct mr_doc_read *r, const struct mr_doc_part *roles)
{
    uint32_t servers = d->roles[MR_TRAINING_PS], workers = d->roles[MR_TRAINING_WORKER];
    if (servers > MR_SHARDS_MAX)
        mr_doc_refuse(r, roles, "ps", "expected at most %u parameter servers, got %u",
            MR_SHARDS_MAX, servers);
    if (d->rule == MR_TRAINING_ALLREDUCE && workers > MR_RANKS_MAX)
        mr_doc_refuse(r, roles, "worker", "expected at most %u workers under allreduce, got %u",
            MR_RANKS_MAX, workers);
}

static void read_roles(
    struct mr_training_document *d, struct mr_doc_read *r, const struct mr_doc_part *top)
{
    struct mr_doc_part update =
        mr_doc_object(r, top, "update", "update", "rule replicas_to_aggregate", true);
    d->rule = (enum mr_training_rule)mr_doc_word(r, &update, "rule", "async sync allreduce");
    struct mr_doc_part roles = mr_doc_object(r, top, "roles", "roles", "ps worker scorer", true);
    struct mr_doc_part data = {mr_doc_field(top, "data"), "data"};
    d->roles[MR_TRAINING_WORKER] = role(d, r, &roles, MR_TRAINING_WORKER, 1);
    bool foreign = d->exec[MR_TRAINING_WORKER];
    d->roles[MR_TRAINING_PS] =
        role(d, r, &roles, MR_TRAINING_PS, !foreign && d->rule != MR_TRAINING_ALLREDUCE);
    bool scores = !foreign && yyjson_mut_is_obj(data.at) && mr_doc_field(&data, "validation");
    d->roles[MR_TRAINING_SCORER] = role(d, r, &roles, MR_TRAINING_SCORER, scores);
    d->is_exec = foreign;
    if (!d->roles[MR_TRAINING_WORKER]) mr_doc_refuse(r, &roles, "worker", "must be at least 1");
    for (int i = MR_TRAINING_PS; i <= MR_TRAINING_SCORER; i++)
        if (d->roles[i] && d->exec[i] != foreign)
            mr_doc_refuse(r, &roles, "", "foreign roles (exec) and our own do not mix");
    bool servers = d->rule != MR_TRAINING_ALLREDUCE;
    if (!foreign && servers && !d->roles[MR_TRAINING_PS])
        mr_doc_refuse(
            r, &roles, "ps", "must be at least 1, or \"update\": {\"rule\": \"allreduce\"}");
    if (!foreign && !servers && d->roles[MR_TRAINING_PS])
        mr_doc_refuse(r, &roles, "ps", "must be 0 under allreduce, which has no parameter servers");
    if (!foreign) check_tables(d, r, &roles);
    uint64_t workers = MR_MAX(d->roles[MR_TRAINING_WORKER], 1u);
    if (d->rule == MR_TRAINING_SYNC)
        d->replicas_to_aggregate =
            (uint32_t)mr_doc_uint(r, &update, "replicas_to_aggregate", workers, 1, workers);
    else if (mr_doc_field(&update, "replicas_to_aggregate"))
        mr_doc_refuse(r, &update, "replicas_to_aggregate", "only with \"rule\": \"sync\"");
    if (foreign) d->rule = MR_TRAINING_ASYNC;
}

static void check_ref(const struct mr_training_document *d, struct mr_doc_read *r,
    const struct mr_doc_part *set, const char *field)
{
    yyjson_mut_val *v = mr_doc_field(set, field);
    if (yyjson_mut_is_str(v)) {
        (void)mr_doc_text(r, set, field, NULL, MR_KEY_BYTES_MAX);
        if (!d->has_graph)
            mr_doc_refuse(r, set, field,
                "a key, but there is no graph; a stored value is {\"name\": …} or {\"object\": …}");
        return;
    }
    yyjson_mut_val *name = yyjson_mut_obj_get(v, "name"), *object = yyjson_mut_obj_get(v, "object");
    yyjson_mut_val *text = name ? name : object;
    struct mr_str s = mr_str_of(yyjson_mut_get_str(text), yyjson_mut_get_len(text));
    mr_object_id id;
    bool good = yyjson_mut_is_obj(v) && yyjson_mut_obj_size(v) == 1 && yyjson_mut_is_str(text);
    if (good && object) good = !mr_object_id_parse(s, &id);
    if (!good || !s.n || s.n > MR_KEY_BYTES_MAX)
        mr_doc_refuse(
            r, set, field, "expected a key of the graph, {\"name\": …} or {\"object\": …}");
}

static void read_data(
    struct mr_training_document *d, struct mr_doc_read *r, const struct mr_doc_part *top)
{
    static const char *const sets[] = {"train", "validation", "test"};
    static const char *const paths[] = {"data.train", "data.validation", "data.test"};
    struct mr_doc_part data = mr_doc_object(r, top, "data", "data",
        "train validation test batch shuffle seed remainder queue", !d->is_exec);
    if (!data.at) return;
    for (size_t i = 0; i < MR_ARRAY_LEN(sets) && !r->err; i++) {
        struct mr_doc_part set = mr_doc_object(r, &data, sets[i], paths[i], "x y", false);
        if (!set.at) continue;
        check_ref(d, r, &set, "x");
        check_ref(d, r, &set, "y");
    }
    (void)mr_doc_uint(r, &data, "batch", 64, 1, d->is_exec ? FOREIGN_BATCH_MAX : MR_NN_BATCH_MAX);
    mr_doc_bool(r, &data, "shuffle", true);
    (void)mr_doc_uint(r, &data, "seed", 0, 0, COUNT_MAX);
    (void)mr_doc_word(r, &data, "remainder", "drop keep");
    (void)mr_doc_text(r, &data, "queue", "", MR_TRAINING_CHANNEL_BYTES_MAX);
    bool train = mr_doc_field(&data, "train"), queue = mr_doc_field(&data, "queue");
    d->has_feed = queue && d->has_graph;
    if (!d->is_exec && train == queue)
        mr_doc_refuse(r, &data, "train",
            train ? "there is a \"queue\", too; one of them feeds the workers"
                  : "missing; or \"queue\", one of them feeds the workers");
    if (!d->is_exec && d->roles[MR_TRAINING_SCORER] && !mr_doc_field(&data, "validation"))
        mr_doc_refuse(r, &data, "validation", "a scorer needs it");
}

static void check_json(struct mr_doc_read *r, const struct mr_doc_part *top, const char *field,
    int (*check)(struct mr_str json, struct mr_error *e))
{
    size_t n = 0;
    struct mr_error why = {0};
    char *json = yyjson_mut_val_write(mr_doc_field(top, field), 0, &n);
    int err = json ? check(mr_str_of(json, n), &why) : MR_EINVAL;
    free(json);
    if (err && !strncmp(why.text, field, strlen(field)) && !r->err)
        r->err = mr_fail(r->e, MR_EINVAL, "%s", why.text);
    else if (err)
        mr_doc_refuse(r, top, field, "%s", why.text);
}

static int check_model(struct mr_str json, struct mr_error *e)
{
    struct mr_nn_model *m = NULL;
    int err = mr_nn_model_new(json, &m, e);
    mr_nn_model_free(&m);
    return err;
}

static int check_optimizer(struct mr_str json, struct mr_error *e)
{
    struct mr_nn_optim o;
    return mr_nn_optim_parse(json, &o, e);
}

static void read_model(
    struct mr_training_document *d, struct mr_doc_read *r, const struct mr_doc_part *top)
{
    if (d->is_exec || r->err) return; /* a foreign program has its own model */
    if (!yyjson_mut_is_obj(mr_doc_field(top, "model")))
        mr_doc_refuse(r, top, "model", "expected an object with input and layers");
    else
        check_json(r, top, "model", check_model);
    if (!mr_doc_field(top, "optimizer")) {
        yyjson_mut_val *o = yyjson_mut_obj(r->doc);
        (void)yyjson_mut_obj_add_str(r->doc, o, "type", "adam");
        (void)yyjson_mut_obj_add_val(r->doc, top->at, "optimizer", o);
    }
    if (!yyjson_mut_is_obj(mr_doc_field(top, "optimizer")))
        mr_doc_refuse(r, top, "optimizer", "expected an object with type");
    else if (!r->err)
        check_json(r, top, "optimizer", check_optimizer);
    struct mr_error why = {0};
    struct mr_str loss = mr_doc_text(r, top, "loss", "cross_entropy", 64);
    if (!r->err && mr_nn_loss_parse(loss.p, &d->loss, &why))
        mr_doc_refuse(r, top, "loss", "expected one of cross_entropy, mse, hinge");
    struct mr_doc_part init = mr_doc_object(r, top, "init", "init", "seed model checkpoint", true);
    mr_doc_texts(r, &init, "checkpoint", WORDS_MAX);
    (void)mr_doc_text(r, &init, "model", "", MR_KEY_BYTES_MAX);
    size_t n = yyjson_mut_obj_size(init.at);
    if (n > 1) mr_doc_refuse(r, &init, "", "only one of seed, model and checkpoint can be given");
    if (!n || mr_doc_field(&init, "seed")) (void)mr_doc_uint(r, &init, "seed", 0, 0, COUNT_MAX);
}

/* Refuses a stop rule whose field the scorer does not write: with a misspelt field the session
 * would train for ever. Not called for a rule with a `channel`, because other clients write the
 * fields of that channel. */
static void check_score(
    struct mr_doc_read *r, const char *path, enum mr_nn_loss used, struct mr_str field)
{
    const struct mr_doc_part p = {.path = path};
    const char *loss = mr_nn_loss_name(used);
    static const char *const others[] = {
        "accuracy", "step", "version", "examples_per_s", "seconds", "train_loss"};
    bool known = !field.n || mr_str_eq(field, mr_str(loss));
    for (size_t i = 0; i < MR_ARRAY_LEN(others); i++)
        known |= mr_str_eq(field, mr_str(others[i]));
    if (!known)
        mr_doc_refuse(r, &p, "",
            "scores have no \"%.*s\"; they have %s accuracy step version examples_per_s seconds "
            "train_loss",
            MR_STR_ARG(field), loss);
}

static void read_threshold(
    struct mr_training_document *d, struct mr_doc_read *r, const struct mr_doc_part *stop)
{
    struct mr_doc_part p =
        mr_doc_object(r, stop, "threshold", "stop.threshold", "field below above channel", false);
    struct mr_nn_threshold *t = &d->threshold;
    if (!p.at) return;
    t->field = mr_doc_text(r, &p, "field", NULL, MR_TRAINING_FIELD_BYTES_MAX);
    t->is_above = mr_doc_field(&p, "above");
    if (t->is_above == (mr_doc_field(&p, "below") != NULL))
        mr_doc_refuse(r, &p, "", "expected exactly one of below and above");
    t->value = mr_doc_number(r, &p, t->is_above ? "above" : "below", 0, -1e300, 1e300);
    d->threshold_channel = mr_doc_text(r, &p, "channel", "", MR_TRAINING_CHANNEL_BYTES_MAX);
}

static void read_patience(
    struct mr_training_document *d, struct mr_doc_read *r, const struct mr_doc_part *stop)
{
    struct mr_doc_part p =
        mr_doc_object(r, stop, "patience", "stop.patience", "field scores min_delta mode", false);
    struct mr_nn_patience *t = &d->patience;
    if (!p.at) return;
    t->field = mr_doc_text(r, &p, "field", NULL, MR_TRAINING_FIELD_BYTES_MAX);
    t->scores = (uint32_t)mr_doc_uint(r, &p, "scores", 10, 1, 1000000);
    t->min_delta = mr_doc_number(r, &p, "min_delta", 0, 0, 1e300);
    t->is_max = mr_doc_word(r, &p, "mode", "min max") == 1;
}

static void read_stop(
    struct mr_training_document *d, struct mr_doc_read *r, const struct mr_doc_part *top)
{
    struct mr_doc_part p =
        mr_doc_object(r, top, "stop", "stop", "threshold patience epochs steps time_s", true);
    read_threshold(d, r, &p);
    read_patience(d, r, &p);
    bool own = (d->threshold.field.n && !d->threshold_channel.n) || d->patience.field.n;
    if (own && !d->is_exec && !d->roles[MR_TRAINING_SCORER])
        mr_doc_refuse(r, &p, "", "no role writes scores: roles.scorer is 0");
    if (!d->is_exec && !d->threshold_channel.n)
        check_score(r, "stop.threshold.field", d->loss, d->threshold.field);
    if (!d->is_exec) check_score(r, "stop.patience.field", d->loss, d->patience.field);
    d->steps = mr_doc_uint(r, &p, "steps", 0, 0, COUNT_MAX);
    d->time = seconds(r, &p, "time_s", 0, 0);
    bool any = d->threshold.field.n || d->patience.field.n || d->steps || d->time;
    bool none = !any && yyjson_mut_get_uint(mr_doc_field(&p, "epochs")) == 0 &&
                (!mr_doc_field(&p, "epochs") || yyjson_mut_is_uint(mr_doc_field(&p, "epochs")));
    /* 0 means the same as a missing field */
    if (none && p.at) (void)yyjson_mut_obj_remove_key(p.at, "epochs");
    d->epochs = mr_doc_uint(r, &p, "epochs", none, 0, COUNT_MAX);
}

static void read_rest(
    struct mr_training_document *d, struct mr_doc_read *r, const struct mr_doc_part *top)
{
    struct mr_doc_part score =
        mr_doc_object(r, top, "score", "score", "every_s every_steps examples", true);
    if (mr_doc_field(&score, "every_steps"))
        (void)mr_doc_uint(r, &score, "every_steps", 0, 0, COUNT_MAX);
    if (!yyjson_mut_get_uint(mr_doc_field(&score, "every_steps")) ||
        mr_doc_field(&score, "every_s"))
        (void)mr_doc_number(r, &score, "every_s", 1, 0.01, SECONDS_MAX);
    (void)mr_doc_uint(r, &score, "examples", 0, 0, COUNT_MAX);
    struct mr_doc_part checkpoint =
        mr_doc_object(r, top, "checkpoint", "checkpoint", "every_steps keep", true);
    d->checkpoint_every = mr_doc_uint(r, &checkpoint, "every_steps", 0, 0, COUNT_MAX);
    d->checkpoint_keep = (uint32_t)mr_doc_uint(r, &checkpoint, "keep", 2, 1, MR_TRAINING_KEEP_MAX);
    struct mr_doc_part limits = mr_doc_object(
        r, top, "limits", "limits", "forming_s recovering_s stopping_s lease_s preparing_s", true);
    d->forming = seconds(r, &limits, "forming_s", 60, 0.1);
    d->recovering = seconds(r, &limits, "recovering_s", 60, 0.1);
    d->stopping = seconds(r, &limits, "stopping_s", 60, 0.1);
    d->lease = seconds(r, &limits, "lease_s", 3, 0.1);
    d->preparing = seconds(r, &limits, "preparing_s", 3600, 0.1);
}

static void read_all(struct mr_training_document *d, struct mr_doc_read *r, yyjson_mut_val *root)
{
    struct mr_doc_part top = {root, ""};
    mr_doc_known(r, &top,
        "name params graph model init data roles update optimizer loss score stop checkpoint limits "
        "save channel");
    struct mr_doc_part params = {mr_doc_field(&top, "params"), "params"};
    if (params.at && !yyjson_mut_is_obj(params.at))
        mr_doc_refuse(r, &params, "", "expected an object");
    yyjson_mut_obj_iter it;
    (void)yyjson_mut_obj_iter_init(root, &it);
    for (yyjson_mut_val *key; !r->err && (key = yyjson_mut_obj_iter_next(&it));)
        if (!yyjson_mut_equals_str(key, "graph") && !yyjson_mut_equals_str(key, "params"))
            substitute_all(r, &params, yyjson_mut_obj_iter_get_val(key));
    yyjson_mut_val *graph = mr_doc_field(&top, "graph");
    d->has_graph = graph != NULL;
    if (graph && !yyjson_mut_is_obj(graph)) mr_doc_refuse(r, &top, "graph", "expected a job");
    d->name = mr_doc_text(r, &top, "name", "training", MR_TRAINING_NAME_BYTES_MAX);
    char *save = mr_format("%.*s/model", MR_STR_ARG(d->name));
    d->save = mr_doc_text(r, &top, "save", save, MR_KEY_BYTES_MAX);
    mr_release(save);
    d->channel = mr_doc_text(r, &top, "channel", "", MR_TRAINING_CHANNEL_BYTES_MAX);
    read_roles(d, r, &top);
    read_data(d, r, &top);
    read_model(d, r, &top);
    read_stop(d, r, &top);
    read_rest(d, r, &top);
}

int mr_training_document_parse(
    struct mr_str json, struct mr_training_document **out, struct mr_error *e)
{
    if (json.n > MR_TRAINING_DOCUMENT_BYTES_MAX)
        return mr_fail(
            e, MR_ETOOBIG, "the document is larger than %zu bytes", MR_TRAINING_DOCUMENT_BYTES_MAX);
    if (is_too_deep(json))
        return mr_fail(e, MR_EINVAL, "the document is nested deeper than %d", MR_DEPTH_MAX);
    yyjson_read_err why = {0};
    /* yyjson writes to the text only with YYJSON_READ_INSITU */
    yyjson_doc *doc = yyjson_read_opts(mr_unconst(json.p), json.n, 0, NULL, &why);
    if (!doc)
        return mr_fail(e, MR_EFORMAT, "the document is no JSON: byte %zu: %s", why.pos,
            why.msg ? why.msg : "empty");
    struct mr_training_document *d = mr_alloc(sizeof *d);
    d->words = mr_alloc(sizeof *d->words);
    d->words->doc = yyjson_doc_mut_copy(doc, NULL);
    yyjson_doc_free(doc);
    struct mr_doc_read r = {.doc = d->words->doc, .e = e};
    yyjson_mut_val *root = yyjson_mut_doc_get_root(d->words->doc);
    if (yyjson_mut_is_obj(root))
        read_all(d, &r, root);
    else
        r.err = mr_fail(e, MR_EINVAL, "the document is no JSON object");
    d->words->json = r.err ? NULL : yyjson_mut_write(d->words->doc, 0, &d->words->json_bytes);
    mr_assert(r.err || d->words->json);
    if (r.err) {
        mr_training_document_free(&d);
        return r.err;
    }
    d->words->text = mr_copy(json.p, json.n);
    d->words->text_bytes = json.n;
    *out = d;
    return MR_OK;
}
