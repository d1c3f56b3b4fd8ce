/* Makes many graphs of one JSON document (template.h). */
#include "graph/template/template.h"

#include "base/alloc.h"
#include "graph/copy.h"
#include "graph/template/instance_cache.h"

struct mr_json_template {
    yyjson_doc *doc;
    size_t bytes;
    struct mr_instance_cache *kept;
};

int mr_json_template_new(struct mr_str text, struct mr_json_template **out, struct mr_error *e)
{
    yyjson_doc *doc = mr_json_parse(text, e);
    if (!doc) return MR_EINVAL;
    struct mr_json_template *t = mr_alloc(sizeof *t);
    *t = (struct mr_json_template){doc, text.n, mr_instance_cache_new(yyjson_doc_get_root(doc))};
    *out = t;
    return MR_OK;
}

void mr_json_template_free(struct mr_json_template **tp)
{
    struct mr_json_template *t = *tp;
    *tp = NULL;
    if (!t) return;
    mr_instance_cache_free(&t->kept);
    yyjson_doc_free(t->doc);
    mr_release(t);
}

/* Finds the parameters in {"params": {…}}. */
static int find_params(yyjson_val *root, yyjson_val **out, struct mr_error *e)
{
    if (!yyjson_is_obj(root))
        return mr_fail(e, MR_EINVAL, "the body is %s, but must be {\"params\": {…}}, or empty",
            mr_json_kind(root));
    *out = yyjson_obj_get(root, "params");
    if (yyjson_obj_size(root) != (*out ? 1u : 0u))
        return mr_fail(e, MR_EINVAL, "the body has more in it than \"params\", or has that twice");
    if (*out && !yyjson_is_obj(*out))
        return mr_fail(e, MR_EINVAL, "\"params\" is %s, but must be an object", mr_json_kind(*out));
    return MR_OK;
}

size_t mr_json_template_cached_bytes(const struct mr_json_template *t)
{
    return mr_instance_cache_bytes(t->kept);
}

void mr_json_template_drop(struct mr_json_template *t)
{
    mr_instance_cache_drop(t->kept);
}

static int make(struct mr_json_template *t, yyjson_val *params, size_t given_bytes,
    const struct mr_graph_catalogue *catalogue, struct mr_graph **out, uint64_t *shape,
    struct mr_error *e)
{
    struct mr_graph *g = mr_instance_cache_get(t->kept, params, shape);
    if (g) {
        *out = g;
        return MR_OK;
    }
    const struct mr_json_source from = {
        .root = yyjson_doc_get_root(t->doc), .given = params, .text_bytes = t->bytes + given_bytes};
    int err = mr_json_build(&from, catalogue, out, e);
    if (err) return err;
    *shape = mr_graph_shape(*out);
    mr_instance_cache_learn(t->kept, params, *out, from.text_bytes, catalogue);
    return MR_OK;
}

int mr_json_template_graph(struct mr_json_template *t, struct mr_str given,
    const struct mr_graph_catalogue *catalogue, struct mr_graph **out, uint64_t *shape,
    struct mr_error *e)
{
    yyjson_doc *doc = NULL;
    yyjson_val *params = NULL;
    uint64_t own;
    int err = MR_OK;
    if (given.n) {
        doc = mr_json_parse(given, e);
        if (!doc) return MR_EINVAL;
        err = find_params(yyjson_doc_get_root(doc), &params, e);
    }
    if (!err) err = make(t, params, given.n, catalogue, out, shape ? shape : &own, e);
    yyjson_doc_free(doc);
    return err;
}

void mr_json_template_params(const struct mr_json_template *t, struct mr_buf *out)
{
    yyjson_val *params = yyjson_obj_get(yyjson_doc_get_root(t->doc), "params");
    yyjson_obj_iter it = yyjson_obj_iter_with(params);
    if (!yyjson_is_obj(params)) return;
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        mr_buf_add_str(out, mr_json_text(k));
        mr_buf_add_text(out, "\n");
    }
}
