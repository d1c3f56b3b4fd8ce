/* The cache of a template's graphs (instance_cache.h). A marker is a text that stands for the value
 * of a parameter in a cached graph. A form is a cached graph with its markers. */
#include "graph/template/instance_cache.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/pack.h"
#include "graph/copy.h"
#include "graph/loop.h"
#include "graph/options.h"
#include "graph/options_pack.h"

#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Limit of the graphs in the cache. The graphs differ in the values of the parameters that have no
 * markers. */
#define FORMS_MAX 4
#define VALUE_BYTES_MAX 256 /* bytes; an instance with a larger value is not cached */
#define ARGS_BYTES_MAX ((uint64_t)256 << 20)
/* Each parameter is tried with a marker on its own only if the template has at most this many. */
#define TRIES_MAX 16
/* Each parameter is tried with a marker on its own only if all trials together make at most this
 * many nodes. */
#define TRIES_NODES_MAX (1u << 20)
#define MARKER_BYTES 12

struct form {
    struct mr_graph *graph; /* the graph with markers; NULL: the entry is free */
    struct mr_graph_placeholder *placeholders;
    uint32_t placeholders_count;
    /* key: a hash of the values of the parameters that have no markers */
    uint64_t key, shape, used;
    size_t bytes;
};

struct mr_instance_cache {
    yyjson_val *root, *params;
    uint32_t count;
    bool is_hopeless;
    bool is_tried; /* true: is_free is known; is_free marks the parameters that can have markers */
    bool is_free[MR_INSTANCE_PARAMS_MAX];
    uint64_t last_key;
    uint64_t clock;
    struct form forms[FORMS_MAX];
};

/* The values of the parameters of one instance, in the order of the template's parameters. */
struct values {
    yyjson_val *at[MR_INSTANCE_PARAMS_MAX];
};

struct mr_instance_cache *mr_instance_cache_new(yyjson_val *root)
{
    yyjson_val *params = yyjson_obj_get(root, "params");
    size_t n = yyjson_is_obj(params) ? yyjson_obj_size(params) : 0;
    if (yyjson_obj_get(root, "dsk"))
        return NULL; /* in dsk a text may be a reference, so no parameter can have a marker */
    if ((params && !yyjson_is_obj(params)) || n > MR_INSTANCE_PARAMS_MAX) return NULL;
    struct mr_instance_cache *k = mr_alloc(sizeof *k);
    k->root = root;
    k->params = params;
    k->count = (uint32_t)n;
    return k;
}

static void form_fini(struct form *f)
{
    mr_graph_free(&f->graph);
    mr_release(f->placeholders);
    *f = (struct form){0};
}

void mr_instance_cache_drop(struct mr_instance_cache *k)
{
    for (uint32_t i = 0; k && i < FORMS_MAX; i++)
        form_fini(&k->forms[i]);
}

void mr_instance_cache_free(struct mr_instance_cache **kp)
{
    struct mr_instance_cache *k = *kp;
    *kp = NULL;
    if (!k) return;
    mr_instance_cache_drop(k);
    mr_release(k);
}

size_t mr_instance_cache_bytes(const struct mr_instance_cache *k)
{
    size_t bytes = 0;
    for (uint32_t i = 0; k && i < FORMS_MAX; i++)
        bytes += k->forms[i].bytes;
    return bytes;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool is_scalar(const yyjson_val *v)
{
    yyjson_val *x = mr_unconst(v);
    return yyjson_is_null(x) || yyjson_is_bool(x) || yyjson_is_num(x) || yyjson_is_str(x);
}

static void pack_scalar(yyjson_val *v, struct mr_buf *out)
{
    if (yyjson_is_null(v))
        mr_pack_nil(out);
    else if (yyjson_is_bool(v))
        mr_pack_bool(out, yyjson_get_bool(v));
    else if (yyjson_is_str(v))
        mr_pack_text(out, mr_json_text(v));
    else if (yyjson_is_uint(v))
        mr_pack_uint(out, yyjson_get_uint(v));
    else if (yyjson_is_sint(v))
        mr_pack_int(out, yyjson_get_sint(v));
    else
        mr_pack_float(out, yyjson_get_real(v));
}

/* Sets `out` to the given values and the defaults, as json/params.c does. False: a value is
 * not a scalar, or the values have an error. The template is then read without the cache
 * (mr_json_build), which reports the error. */
static bool take_values(const struct mr_instance_cache *k, yyjson_val *given, struct values *out)
{
    yyjson_val *names[MR_INSTANCE_PARAMS_MAX];
    uint32_t n = 0;
    yyjson_obj_iter it = yyjson_obj_iter_with(k->params);
    for (yyjson_val *key = k->params ? yyjson_obj_iter_next(&it) : NULL; key;
         key = yyjson_obj_iter_next(&it)) {
        names[n] = key;
        out->at[n++] = yyjson_obj_iter_get_val(key);
    }
    if (given) {
        it = yyjson_obj_iter_with(given);
        for (yyjson_val *key = yyjson_obj_iter_next(&it); key; key = yyjson_obj_iter_next(&it)) {
            yyjson_val *v = yyjson_obj_iter_get_val(key);
            uint32_t i = 0;
            while (i < n && !mr_str_eq(mr_json_text(names[i]), mr_json_text(key)))
                i++;
            if (i == n) return false;
            yyjson_val *first = yyjson_obj_iter_get_val(names[i]);
            if (!yyjson_is_null(first) && yyjson_get_type(first) != yyjson_get_type(v))
                return false;
            out->at[i] = v;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        if (!is_scalar(out->at[i])) return false;
    return true;
}

/* The values of one instance as arguments in MessagePack, and a hash of the values of the
 * parameters that have no markers. */
struct packed {
    struct mr_buf bytes, params;
    struct mr_str at[MR_INSTANCE_PARAMS_MAX];
    uint64_t key;
};

static void packed_fini(struct packed *p)
{
    mr_buf_fini(&p->bytes);
    mr_buf_fini(&p->params);
}

static bool pack_values(
    const struct mr_instance_cache *k, const struct values *v, struct packed *out)
{
    size_t ends[MR_INSTANCE_PARAMS_MAX + 1] = {0};
    bool is_small = true;
    *out = (struct packed){.key = 1};
    mr_buf_init(&out->bytes, MR_LITERAL_BYTES_MAX);
    mr_buf_init(&out->params, MR_LITERAL_BYTES_MAX);
    for (uint32_t i = 0; i < k->count; i++) {
        pack_scalar(v->at[i], &out->bytes);
        ends[i + 1] = out->bytes.n;
        is_small &= !k->is_free[i] || ends[i + 1] - ends[i] <= VALUE_BYTES_MAX;
    }
    yyjson_obj_iter it = yyjson_obj_iter_with(k->params);
    if (k->params) mr_pack_map(&out->params, k->count);
    for (uint32_t i = 0; i < k->count && !mr_buf_status(&out->bytes); i++) {
        out->at[i] = mr_str_of(out->bytes.p + ends[i], ends[i + 1] - ends[i]);
        mr_pack_text(&out->params, mr_json_text(yyjson_obj_iter_next(&it)));
        mr_buf_add_str(&out->params, out->at[i]);
        if (!k->is_free[i]) out->key = XXH3_64bits_withSeed(out->at[i].p, out->at[i].n, out->key);
    }
    return is_small && !mr_buf_status(&out->bytes) && !mr_buf_status(&out->params);
}

/* ---- an instance ----------------------------------------------------------------------------- */

/* Copies the graph with values in place of the markers. NULL: the graph is too large with these
 * values. The template is then read without the cache (mr_json_build), which reports the error. */
static struct mr_graph *fill(struct form *f, const struct packed *p)
{
    const struct mr_graph_fill fill = {.placeholders = f->placeholders,
        .placeholders_count = f->placeholders_count,
        .values = p->at,
        .params = mr_buf_str(&p->params)};
    uint64_t largest = 0, bytes = mr_graph_fill_bytes(f->graph, &fill, &largest);
    bool is_too_large = bytes > ARGS_BYTES_MAX || largest > MR_LITERAL_BYTES_MAX;
    return is_too_large ? NULL : mr_graph_copy(f->graph, &fill);
}

struct mr_graph *mr_instance_cache_get(
    struct mr_instance_cache *k, yyjson_val *given, uint64_t *shape)
{
    struct values v;
    struct packed p;
    struct mr_graph *g = NULL;
    if (!k || !k->is_tried || !take_values(k, given, &v)) return NULL;
    bool is_good = pack_values(k, &v, &p);
    for (uint32_t i = 0; i < FORMS_MAX && is_good && !g; i++) {
        struct form *f = &k->forms[i];
        if (!f->graph || f->key != p.key) continue;
        f->used = ++k->clock;
        *shape = f->shape;
        g = fill(f, &p);
    }
    packed_fini(&p);
    return g;
}

/* ---- trials ---------------------------------------------------------------------------------- */

static void marker_write(uint32_t param, char out[MARKER_BYTES + 1])
{
    (void)snprintf(out, MARKER_BYTES + 1, "\x7fmillrace%03u", param % 1000);
}

static bool marker_read(const struct mr_pack_item *item, uint32_t *param)
{
    char text[MARKER_BYTES + 1];
    if (item->type != MR_PACK_TEXT || item->bytes.n != MARKER_BYTES) return false;
    const char *p = item->bytes.p + MARKER_BYTES - 3;
    *param = (uint32_t)((p[0] - '0') * 100 + (p[1] - '0') * 10 + p[2] - '0');
    if (*param >= MR_INSTANCE_PARAMS_MAX) return false;
    marker_write(*param, text);
    return !memcmp(item->bytes.p, text, MARKER_BYTES);
}

/* Builds the graph with markers for some parameters and values for the others. */
static struct mr_graph *mark(const struct mr_instance_cache *k, const struct values *v,
    const bool *is_free, size_t text_bytes, const struct mr_graph_catalogue *catalogue)
{
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    yyjson_mut_val *root = yyjson_mut_obj(doc);
    yyjson_obj_iter it = yyjson_obj_iter_with(k->params);
    for (uint32_t i = 0; i < k->count; i++) {
        char marker[MARKER_BYTES + 1];
        struct mr_str name = mr_json_text(yyjson_obj_iter_next(&it));
        marker_write(i, marker);
        (void)yyjson_mut_obj_add(root, yyjson_mut_strncpy(doc, name.p, name.n),
            is_free[i] ? yyjson_mut_strncpy(doc, marker, MARKER_BYTES)
                       : yyjson_val_mut_copy(doc, v->at[i]));
    }
    yyjson_mut_doc_set_root(doc, root);
    yyjson_doc *given = yyjson_mut_doc_imut_copy(doc, NULL);
    yyjson_mut_doc_free(doc);
    struct mr_graph *g = NULL;
    struct mr_error e;
    struct mr_json_source from = {.root = k->root, .text_bytes = text_bytes, .is_any_kind = true};
    if (k->count) from.given = yyjson_doc_get_root(given);
    if (given) (void)mr_json_build(&from, catalogue, &g, &e);
    yyjson_doc_free(given);
    return g;
}

static bool find_spots(const struct mr_graph *g, struct form *f)
{
    uint32_t room = 0;
    for (uint32_t a = 0; a < g->args_count; a++) {
        struct mr_pack_reader r =
            mr_pack_read(mr_str_of(g->args + g->args_at[a], g->args_at[a + 1] - g->args_at[a]));
        while (!mr_pack_at_end(&r)) {
            struct mr_pack_item item;
            uint32_t from = (uint32_t)r.at, param = 0;
            if (mr_pack_next(&r, &item)) return false;
            if (!marker_read(&item, &param)) continue;
            if (f->placeholders_count == room) {
                uint32_t more = room ? 2 * room : 64;
                f->placeholders = mr_grow(f->placeholders, room * sizeof *f->placeholders,
                    more * sizeof *f->placeholders);
                room = more;
            }
            f->placeholders[f->placeholders_count++] =
                (struct mr_graph_placeholder){g->args_at[a] + from, (uint32_t)r.at - from, param};
        }
    }
    return true;
}

static bool is_equal(const void *a, const void *b, size_t n)
{
    return (!a && !b) || (a && b && !memcmp(a, b, n));
}

static bool has_equal_texts(const struct mr_graph *a, const struct mr_graph *b)
{
    struct mr_buf x, y;
    mr_buf_init(&x, (size_t)1 << 28);
    mr_buf_init(&y, (size_t)1 << 28);
    const struct mr_graph *of[2] = {a, b};
    struct mr_buf *to[2] = {&x, &y};
    for (int i = 0; i < 2; i++) {
        struct mr_job_options job = of[i]->job;
        job.params = (struct mr_str){0};
        mr_job_options_pack(to[i], &job);
        for (uint32_t k = 0; k < of[i]->options_count; k++)
            mr_task_options_pack(to[i], &of[i]->options[k]);
        for (uint32_t k = 0; k < of[i]->ops_count; k++)
            mr_pack_text(to[i], of[i]->ops[k]);
        if (of[i]->slot_of) mr_graph_loops_write(of[i], to[i]);
    }
    bool is_same =
        !mr_buf_status(&x) && !mr_buf_status(&y) && mr_str_eq(mr_buf_str(&x), mr_buf_str(&y));
    mr_buf_fini(&x);
    mr_buf_fini(&y);
    return is_same;
}

/* True: the graphs are equal, apart from arguments and parameters. */
static bool has_equal_shape(const struct mr_graph *a, const struct mr_graph *b)
{
    size_t n = a->nodes_count;
    if (b->nodes_count != n || a->culled_count != b->culled_count ||
        a->targets_count != b->targets_count || a->slots_count != b->slots_count)
        return false;
    if (!is_equal(a->kind, b->kind, n) || !is_equal(a->op, b->op, n * sizeof *a->op) ||
        !is_equal(a->key_at, b->key_at, (n + 1) * 4) || !is_equal(a->keys, b->keys, a->key_at[n]) ||
        !is_equal(a->input_at, b->input_at, (n + 1) * 4) ||
        !is_equal(a->inputs, b->inputs, (size_t)a->input_at[n] * 4) ||
        !is_equal(a->targets, b->targets, (size_t)a->targets_count * 4) ||
        !is_equal(a->option_of, b->option_of, n * 4) || !is_equal(a->slot_of, b->slot_of, n * 4) ||
        !is_equal(a->round_of, b->round_of, n * 4))
        return false;
    size_t culled = a->culled_count;
    return is_equal(a->culled_key_at, b->culled_key_at, (culled + 1) * 4) &&
           is_equal(a->culled_keys, b->culled_keys, a->culled_key_at[culled]) &&
           has_equal_texts(a, b);
}

/* True: no marker is part of a name, an object's id or another job's key. */
static bool are_values_only(const struct mr_graph *g, const struct form *f)
{
    unsigned char *has_spot = mr_alloc((size_t)g->args_count + 1);
    bool are = true;
    for (uint32_t i = 0, a = 0; i < f->placeholders_count; i++) {
        while (g->args_at[a + 1] <= f->placeholders[i].at)
            a++;
        has_spot[a] = 1;
    }
    for (uint32_t v = 0; v < g->nodes_count; v++)
        are &=
            !has_spot[g->args_of[v]] || g->kind[v] == MR_NODE_TASK || g->kind[v] == MR_NODE_LITERAL;
    mr_release(has_spot);
    return are;
}

static bool has_equal_args(const struct mr_graph *a, const struct mr_graph *b)
{
    for (uint32_t v = 0; v < a->nodes_count; v++)
        if (!mr_str_eq(mr_graph_args(a, v), mr_graph_args(b, v))) return false;
    return true;
}

/* Builds the graph with markers for the parameters in `is_free`. True: with the values filled in,
 * the graph equals `g`, and `*out` is the form. False: the graphs differ, or a marker stands at a
 * place of the graph that is not an argument of a task. */
static bool try_form(const struct mr_instance_cache *k, const struct values *v, const bool *is_free,
    const struct packed *p, const struct mr_graph *g, size_t text_bytes,
    const struct mr_graph_catalogue *catalogue, struct form *out)
{
    struct form f = {.graph = mark(k, v, is_free, text_bytes, catalogue)};
    bool is_good = f.graph && has_equal_shape(f.graph, g) && find_spots(f.graph, &f) &&
                   are_values_only(f.graph, &f);
    struct mr_graph *again = is_good ? fill(&f, p) : NULL;
    is_good = again && has_equal_args(again, g) && mr_str_eq(again->job.params, g->job.params);
    mr_graph_free(&again);
    if (!is_good) {
        form_fini(&f);
        return false;
    }
    f.shape = mr_graph_shape(g);
    f.bytes = mr_graph_bytes_held(f.graph) + f.placeholders_count * sizeof *f.placeholders;
    *out = f;
    return true;
}

struct trial { /* the arguments that all calls of try_form share */
    const struct values *v;
    const struct mr_graph *g;
    size_t text_bytes;
    const struct mr_graph_catalogue *catalogue;
};

static bool try_free(
    struct mr_instance_cache *k, const struct trial *t, const bool *is_free, struct form *out)
{
    struct packed p;
    bool is_good = pack_values(k, t->v, &p) &&
                   try_form(k, t->v, is_free, &p, t->g, t->text_bytes, t->catalogue, out);
    packed_fini(&p);
    return is_good;
}

/* Finds which parameters can be replaced by markers. True: all parameters can, and `*out` is the
 * form with all markers. False: not all of them can. Then each parameter has been tried on its own,
 * unless there are too many trials. */
static bool try_all(struct mr_instance_cache *k, const struct trial *t, struct form *out)
{
    struct form f = {0};
    bool all[MR_INSTANCE_PARAMS_MAX];
    memset(all, 1, sizeof all);
    k->is_tried = true;
    if (try_free(k, t, all, out)) {
        memcpy(k->is_free, all, sizeof all);
        return true;
    }
    if (k->count > TRIES_MAX || (uint64_t)k->count * t->g->nodes_count > TRIES_NODES_MAX)
        return false;
    for (uint32_t i = 0; i < k->count; i++) {
        bool one[MR_INSTANCE_PARAMS_MAX] = {0};
        one[i] = true;
        k->is_free[i] = try_free(k, t, one, &f);
        form_fini(&f);
    }
    return false;
}

static struct form *free_form(struct mr_instance_cache *k)
{
    struct form *f = &k->forms[0];
    for (uint32_t i = 1; i < FORMS_MAX; i++)
        if (k->forms[i].used < f->used) f = &k->forms[i];
    form_fini(f);
    return f;
}

void mr_instance_cache_learn(struct mr_instance_cache *k, yyjson_val *given,
    const struct mr_graph *g, size_t text_bytes, const struct mr_graph_catalogue *catalogue)
{
    struct values v;
    struct packed p;
    struct form f = {0};
    const struct trial t = {&v, g, text_bytes, catalogue};
    if (!k || k->is_hopeless || !take_values(k, given, &v)) return;
    bool is_first = !k->last_key, is_tried = k->is_tried;
    bool has_form = !is_first && !is_tried && try_all(k, &t, &f);
    bool is_small = pack_values(k, &v, &p);
    bool is_second = !is_first && (!is_tried || k->last_key == p.key);
    k->last_key = p.key;
    if (is_small && is_second && !has_form) {
        has_form = try_free(k, &t, k->is_free, &f);
        k->is_hopeless = !has_form;
    }
    if (has_form && is_small) {
        f.key = p.key;
        f.used = ++k->clock;
        *free_form(k) = f;
    } else {
        form_fini(&f);
    }
    packed_fini(&p);
}
