/* The document: its fields, its entries in two passes (keys, then what they mean), its targets.
 *
 *   {"tasks": {"x": {"value": 1},
 *              "part-${i}": {"op": "slice", "args": [{"ref": "x"}, "${i}"], "for": {"i": "${n}"}},
 *              "z": {"op": "sum", "args": {"each": {"ref": "part-${i}"}, "for": {"i": "${n}"}}}},
 *    "params": {"n": 20}, "targets": ["z"]}
 *
 * An entry is a task ({"op", "args", "kwargs", options}), {"value": v}, {"literal": v} (the same,
 * with no `${…}` in it), {"ref": key}, {"object": id} or {"name": name}; with "for" it stands for
 * as many. As arguments, at any depth of lists and objects: {"ref": key}, {"object": id},
 * {"name": name}, {"value": v}, {"literal": v}, {"each": arg, "for": {…}} (a list), and tasks,
 * whose keys are the outer one's with #0, #1 … in the order in which they stand. Any other object
 * is a dict, whose values are arguments again.
 * "dsk" instead of "tasks": besides, a text equal to a key is a reference, and a list that starts
 * with the name of an op is a task. What is neither task nor plain value becomes `identity`. */
#include "graph/json/json.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/unconst.h"
#include "graph/json/entries.h"
#include "graph/json/estimate.h"
#include "graph/json/internal.h"
#include "graph/json/slice.h"
#include "graph/options.h"

enum field {
    F_TASKS,
    F_DSK,
    F_TARGETS,
    F_NAME,
    F_LABELS,
    F_NAMESPACE,
    F_PRIORITY,
    F_DEADLINE_S,
    F_ON_ERROR,
    F_PARAMS,
    F_REQUEST_ID,
    F_REPEAT,
    F_FUSE,
    F_COUNT,
};

static const char *const fields[F_COUNT] = {"tasks", "dsk", "targets", "name", "labels",
    "namespace", "priority", "deadline_s", "on_error", "params", "request_id", "repeat", "fuse"};

static int wrong(struct mr_json *j, enum field f, yyjson_val *v, const char *want)
{
    return mr_fail(
        j->e, MR_EINVAL, "field \"%s\" is %s, but must be %s", fields[f], mr_json_kind(v), want);
}

/* ---- malformed text -------------------------------------------------------------------------- */

static bool starts(struct mr_str text, size_t at, const char *word)
{
    size_t n = strlen(word);
    return at <= text.n && text.n - at >= n && memcmp(text.p + at, word, n) == 0;
}

static int malformed(struct mr_str text, const yyjson_read_err *err, struct mr_error *e)
{
    size_t line = 1, column = 1, pos = MR_MIN(err->pos, text.n);
    for (size_t i = 0; i < pos; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == '\n') {
            line++;
            column = 1;
        } else if ((c & 0xc0) != 0x80) {
            column++;
        }
    }
    if (err->code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return mr_fail(e, MR_ELIMIT, "the job is too large to be read as a whole");
    const char *words = err->msg;
    if (starts(text, pos, "NaN") || starts(text, pos, "Infinity") || starts(text, pos, "nan") ||
        starts(text, pos, "inf") || (pos && text.p[pos - 1] == '-' && starts(text, pos, "I")))
        words = "NaN and Infinity are not JSON, and a graph holds finite numbers only";
    return mr_fail(e, MR_EINVAL, "malformed JSON: line %zu, column %zu: %s", line, column, words);
}

/* ---- the job's own fields -------------------------------------------------------------------- */

static int read_text(struct mr_json *j, enum field f, yyjson_val *v, struct mr_str *out)
{
    int err = MR_OK;
    v = mr_json_resolve_text(j, v, &err);
    if (err) return mr_fail_within(j->e, err, "field", mr_str(fields[f]));
    if (!yyjson_is_str(v)) return wrong(j, f, v, "a text");
    *out = v == &j->text_val ? mr_pool_copy(&j->kept, mr_json_text(v)) : mr_json_text(v);
    return MR_OK;
}

static int read_labels(struct mr_json *j, yyjson_val *v, struct mr_job_options *o)
{
    if (!yyjson_is_obj(v)) return wrong(j, F_LABELS, v, "an object of texts");
    if (yyjson_obj_size(v) > MR_LABELS_MAX)
        return mr_fail(j->e, MR_EINVAL, "field \"labels\" has %zu labels, the limit is %d",
            yyjson_obj_size(v), MR_LABELS_MAX);
    struct mr_graph_label *labels = mr_pool_take(&j->kept, yyjson_obj_size(v) * sizeof *labels);
    o->labels = labels;
    yyjson_obj_iter it = yyjson_obj_iter_with(v);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        labels[o->labels_count].name = mr_json_text(k);
        int err =
            read_text(j, F_LABELS, yyjson_obj_iter_get_val(k), &labels[o->labels_count].value);
        if (err) return err;
        o->labels_count++;
    }
    return MR_OK;
}

static int read_numbers(struct mr_json *j, yyjson_val *const *at, struct mr_job_options *o)
{
    yyjson_val *v = at[F_PRIORITY];
    if (v) {
        if (!yyjson_is_int(v)) return wrong(j, F_PRIORITY, v, "an integer");
        if (yyjson_is_uint(v) ? yyjson_get_uint(v) > MR_PRIORITY_MAX
                              : yyjson_get_sint(v) < -MR_PRIORITY_MAX)
            return mr_fail(j->e, MR_EINVAL, "field \"priority\" must be -%d to %d", MR_PRIORITY_MAX,
                MR_PRIORITY_MAX);
        o->priority = (int32_t)yyjson_get_sint(v);
    }
    v = at[F_DEADLINE_S];
    if (!v) return MR_OK;
    if (!yyjson_is_num(v)) return wrong(j, F_DEADLINE_S, v, "a number of seconds");
    return mr_option_seconds("field \"deadline_s\"", yyjson_get_num(v), &o->deadline, j->e);
}

static int read_on_error(struct mr_json *j, yyjson_val *v, struct mr_job_options *o)
{
    if (!v) return MR_OK;
    if (yyjson_equals_str(v, "continue"))
        o->on_error = MR_ON_ERROR_CONTINUE;
    else if (!yyjson_equals_str(v, "stop"))
        return mr_fail(j->e, MR_EINVAL, "field \"on_error\" must be \"stop\" or \"continue\"");
    return MR_OK;
}

static int read_fuse(struct mr_json *j, yyjson_val *v, struct mr_job_options *o)
{
    if (v && !yyjson_is_bool(v)) return wrong(j, F_FUSE, v, "true or false");
    o->unfused = v && !yyjson_get_bool(v);
    return MR_OK;
}

static int read_job(struct mr_json *j, yyjson_val *const *at)
{
    struct mr_job_options o = {0};
    struct mr_buf params;
    mr_buf_init(&params, MR_LITERAL_BYTES_MAX);
    int err = MR_OK;
    if (!at[F_PARAMS] && j->given && yyjson_obj_size(j->given))
        err = mr_fail(j->e, MR_EINVAL, "\"params\" are given, and the template has none");
    if (!err && at[F_PARAMS]) {
        err = mr_json_params(j, at[F_PARAMS]);
        if (!err) err = mr_json_pack_params(j, &params);
        o.params = mr_buf_str(&params);
    }
    if (!err && at[F_NAME]) err = read_text(j, F_NAME, at[F_NAME], &o.name);
    if (!err && at[F_NAMESPACE]) err = read_text(j, F_NAMESPACE, at[F_NAMESPACE], &o.name_space);
    if (!err && at[F_REQUEST_ID]) err = read_text(j, F_REQUEST_ID, at[F_REQUEST_ID], &o.request_id);
    if (!err && at[F_LABELS]) err = read_labels(j, at[F_LABELS], &o);
    if (!err) err = read_numbers(j, at, &o);
    if (!err) err = read_on_error(j, at[F_ON_ERROR], &o);
    if (!err) err = read_fuse(j, at[F_FUSE], &o);
    if (!err) err = mr_builder_job(j->b, &o, j->e);
    mr_buf_fini(&params);
    mr_pool_fini(&j->kept);
    return err;
}

/* ---- targets --------------------------------------------------------------------------------- */

static int one_target(struct mr_json *j, yyjson_val *given)
{
    int err = MR_OK;
    yyjson_val *v = mr_json_resolve_text(j, given, &err);
    if (err) return mr_fail_within(j->e, err, "field", MR_STR("targets"));
    if (!yyjson_is_str(v)) return wrong(j, F_TARGETS, v, "a list of keys");
    uint32_t node = 0;
    err = mr_builder_node(j->b, mr_json_text(v), &node, j->e);
    if (err) return mr_fail_within(j->e, err, "field", MR_STR("targets"));
    return mr_builder_target(j->b, node, j->e);
}

static int each_target(struct mr_json *j, yyjson_val *v)
{
    if (!yyjson_is_obj(v)) return one_target(j, v);
    yyjson_val *each = yyjson_obj_get(v, "each"), *spec = yyjson_obj_get(v, "for");
    if (yyjson_obj_size(v) != 2 || !each || !spec)
        return mr_fail(j->e, MR_EINVAL,
            "field \"targets\": an object in it must be {\"each\": key, \"for\": {…}}");
    struct mr_json_loop loop;
    int err = mr_json_loop_open(j, spec, &loop);
    if (err) return mr_fail_within(j->e, err, "field", MR_STR("targets"));
    while (!err && mr_json_loop_next(j, &loop))
        err = one_target(j, each);
    mr_json_loop_close(j, &loop);
    return err;
}

static int read_targets(struct mr_json *j, yyjson_val *v)
{
    if (!v) return MR_OK;
    if (!yyjson_is_arr(v)) return wrong(j, F_TARGETS, v, "a list of keys");
    int err = MR_OK;
    yyjson_arr_iter it = yyjson_arr_iter_with(v);
    for (yyjson_val *t = yyjson_arr_iter_next(&it); t && !err; t = yyjson_arr_iter_next(&it))
        err = each_target(j, t);
    if (err) return err;
    if (!j->b->targets_count)
        return mr_fail(j->e, MR_EINVAL,
            "field \"targets\" names no key; leave it out to want all that nothing else needs");
    return MR_OK;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static int read_fields(struct mr_json *j, yyjson_val *root, yyjson_val **at)
{
    if (!yyjson_is_obj(root))
        return mr_fail(j->e, MR_EINVAL, "a job is an object with \"tasks\" or \"dsk\", not %s",
            mr_json_kind(root));
    yyjson_obj_iter it = yyjson_obj_iter_with(root);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        unsigned f = 0;
        while (f < F_COUNT && !mr_str_eq(mr_json_text(k), mr_str(fields[f])))
            f++;
        if (f == F_COUNT) return mr_json_unknown(j, "field", mr_json_text(k), fields, F_COUNT);
        if (at[f]) return mr_fail(j->e, MR_EINVAL, "field \"%s\" appears twice", fields[f]);
        at[f] = yyjson_obj_iter_get_val(k);
    }
    if (!at[F_TASKS] && !at[F_DSK] && !at[F_REPEAT])
        return mr_fail(j->e, MR_EINVAL, "the job has neither \"tasks\" nor \"dsk\"");
    if (at[F_TASKS] && at[F_DSK])
        return mr_fail(j->e, MR_EINVAL, "the job has both \"tasks\" and \"dsk\"");
    return MR_OK;
}

/* ---- how much it asks for -------------------------------------------------------------------- */

/* Few bytes ask for much only with "for", "params" or "repeat"; a template's text is not here. */
static bool may_grow(const struct mr_json *j, const struct mr_json_source *from, yyjson_val *repeat)
{
    struct mr_str t = from->text;
    return j->has_params || repeat || !t.n || memchr(t.p, '\\', t.n) ||
           memmem(t.p, t.n, "\"for\"", 5);
}

static int estimate_bodies(struct mr_json *j, struct mr_json_estimate *x, yyjson_val *repeat)
{
    int err = MR_OK;
    yyjson_obj_iter it = yyjson_obj_iter_with(repeat);
    bool is_dsk = j->dsk;
    j->dsk = false;
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k && !err; k = yyjson_obj_iter_next(&it)) {
        yyjson_val *loop = yyjson_obj_iter_get_val(k), *max = yyjson_obj_get(loop, "max");
        int ignored = MR_OK;
        if (max) max = mr_json_resolve(j, max, NULL, &ignored);
        uint64_t rounds = !ignored && yyjson_is_uint(max) ? yyjson_get_uint(max) : 1;
        err = mr_json_estimate_entries(x, yyjson_obj_get(loop, "tasks"), rounds);
    }
    j->dsk = is_dsk;
    return err;
}

static int estimate(struct mr_json *j, const struct mr_json_source *from, yyjson_val *const *at)
{
    if (from->ahead || !may_grow(j, from, at[F_REPEAT])) return MR_OK;
    struct mr_json_estimate *x = mr_json_estimate_new(j);
    int err = from->split ? mr_json_sliced_estimate(j, x, from->text, from->split)
                          : mr_json_estimate_entries(x, at[j->dsk ? F_DSK : F_TASKS], 1);
    if (!err) err = estimate_bodies(j, x, at[F_REPEAT]);
    if (!err) err = mr_json_estimate_targets(x, at[F_TARGETS]);
    mr_json_estimate_free(&x);
    return err;
}

/* ---- the document ---------------------------------------------------------------------------- */

int mr_json_document(struct mr_json *j, const struct mr_json_source *from)
{
    yyjson_val *at[F_COUNT] = {0};
    int err = read_fields(j, from->root, at);
    if (err) return err;
    if (from->ahead && (at[F_PARAMS] || at[F_REPEAT]))
        return MR_EFORMAT; /* and texts meant something else */
    j->dsk = at[F_DSK] != NULL;
    enum field f = j->dsk ? F_DSK : F_TASKS;
    if (at[f] && !yyjson_is_obj(at[f])) return wrong(j, f, at[f], "an object of keys");
    err = read_job(j, at);
    if (!err) err = estimate(j, from, at);
    if (!err && at[F_REPEAT]) err = mr_json_repeat_declare(j, at[F_REPEAT]);
    if (!err && from->ahead)
        err = mr_json_ahead_finish(from->ahead);
    else if (!err && from->split)
        err = mr_json_sliced_entries(j, from->text, from->split);
    else if (!err && at[f])
        err = mr_json_entries(j, at[f]);
    if (!err && at[F_REPEAT]) err = mr_json_repeat(j, at[F_REPEAT]);
    if (!err) err = read_targets(j, at[F_TARGETS]);
    return err;
}

/* The parsed form of a text may take sixteen times its bytes: no more than this at once. */
#define PARSED_BYTES_MAX ((size_t)2 << 30)

static void *parsed_alloc(void *ctx, size_t bytes)
{
    (void)ctx;
    return bytes > PARSED_BYTES_MAX ? NULL : mr_grow(NULL, bytes, bytes);
}

static void *parsed_realloc(void *ctx, void *p, size_t old_bytes, size_t bytes)
{
    (void)ctx;
    (void)old_bytes;
    return bytes > PARSED_BYTES_MAX ? NULL : mr_grow(p, bytes, bytes);
}

static void parsed_free(void *ctx, void *p)
{
    (void)ctx;
    mr_release(p);
}

static const yyjson_alc parsed = {parsed_alloc, parsed_realloc, parsed_free, NULL};

/* All of the document, or all but what was cut out of it. */
static yyjson_doc *parse(
    struct mr_str text, const struct mr_json_split *split, yyjson_read_err *err)
{
    if (!split)
        return yyjson_read_opts(
            mr_unconst(text.p), text.n, YYJSON_READ_BIGNUM_AS_RAW, &parsed, err);
    size_t tail = text.n - split->to;
    char *rest = mr_alloc(split->from + tail);
    memcpy(rest, text.p, split->from);
    memcpy(rest + split->from, text.p + split->to, tail);
    yyjson_doc *doc =
        yyjson_read_opts(rest, split->from + tail, YYJSON_READ_BIGNUM_AS_RAW, &parsed, err);
    mr_release(rest);
    return doc;
}

struct mr_json *mr_json_new(const struct mr_json_limits *limits,
    const struct mr_graph_catalogue *catalogue, struct mr_error *e)
{
    struct mr_json *j = mr_alloc(sizeof *j);
    j->b = mr_builder_new();
    mr_builder_limit(j->b, limits->nodes_max, limits->args_bytes_max);
    j->b->parallel = limits->parallel;
    j->catalogue = catalogue;
    j->e = e;
    mr_buf_init(&j->text, MR_LITERAL_BYTES_MAX);
    return j;
}

void mr_json_free(struct mr_json **jp)
{
    struct mr_json *j = MR_STEAL(*jp);
    if (!j) return;
    mr_builder_free(&j->b);
    mr_buf_fini(&j->text);
    mr_release(j->frames);
    mr_release(j);
}

static int fill_from(const struct mr_json_source *from, const struct mr_graph_catalogue *catalogue,
    const struct mr_json_limits *limits, struct mr_builder **out, struct mr_error *e)
{
    MR_AUTO(mr_json_free) struct mr_json *j = mr_json_new(limits, catalogue, e);
    j->given = from->given;
    j->is_any_kind = from->is_any_kind;
    int err = mr_json_document(j, from);
    if (!err) *out = MR_STEAL(j->b);
    return err;
}

static int fill(struct mr_str text, const struct mr_json_split *split,
    const struct mr_graph_catalogue *catalogue, const struct mr_json_limits *limits,
    struct mr_builder **out, struct mr_error *e)
{
    yyjson_read_err read_err = {0};
    yyjson_doc *doc = parse(text, split, &read_err);
    if (!doc) return malformed(text, &read_err, e);
    const struct mr_json_source from = {
        .root = yyjson_doc_get_root(doc), .text = text, .split = split};
    int err = fill_from(&from, catalogue, limits, out, e);
    yyjson_doc_free(doc);
    return err;
}

yyjson_doc *mr_json_parse(struct mr_str text, struct mr_error *e)
{
    yyjson_read_err read_err = {0};
    yyjson_doc *doc = parse(text, NULL, &read_err);
    if (!doc) (void)malformed(text, &read_err, e);
    return doc;
}

/* Large texts in slices; what goes wrong there is looked at again as a whole, for the words. */
static int to_builder(struct mr_str text, const struct mr_graph_catalogue *catalogue,
    const struct mr_json_limits *limits, struct mr_builder **out, struct mr_error *e)
{
    struct mr_error own;
    if (!e) e = &own;
    if (text.n > MR_JOB_BODY_BYTES_MAX)
        return mr_fail(e, MR_ETOOBIG, "the job has %zu bytes, the limit is %zu", text.n,
            MR_JOB_BODY_BYTES_MAX);
    struct mr_json_split split;
    if (text.n < (size_t)limits->slice_bytes * 4 ||
        !mr_json_split(text, limits->slice_bytes, &split))
        return fill(text, NULL, catalogue, limits, out, e);
    int err =
        split.keys_count > limits->nodes_max
            ? mr_fail(e, MR_ELIMIT, "more than %u tasks and values in one job", limits->nodes_max)
            : fill(text, &split, catalogue, limits, out, e);
    mr_json_split_fini(&split);
    if (!err || err == MR_ELIMIT) return err;
    return fill(text, NULL, catalogue, limits, out, e);
}

#define SLICE_BYTES 65536 /* the values of a slice stay in a core's cache */

/* A few lines with "for" in them can ask for any amount of keys and arguments, and every byte of
 * them is held several times on its way. Who wants more has to send it. */
struct mr_json_limits mr_json_widest(size_t text_bytes)
{
    size_t bytes = MR_MIN(MR_JOB_EXPAND_BYTES_MAX + 2 * text_bytes, MR_JOB_BODY_BYTES_MAX);
    return (struct mr_json_limits){MR_TASKS_MAX, bytes, SLICE_BYTES, NULL};
}

int mr_graph_from_json_within(struct mr_str text, const struct mr_graph_catalogue *catalogue,
    const struct mr_json_limits *limits, struct mr_graph **out, struct mr_error *e)
{
    struct mr_builder *b = NULL;
    int err = to_builder(text, catalogue, limits, &b, e);
    return err ? err : mr_graph_build(&b, catalogue, out, e);
}

int mr_graph_from_json(struct mr_str text, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e)
{
    const struct mr_json_limits limits = mr_json_widest(text.n);
    return mr_graph_from_json_within(text, catalogue, &limits, out, e);
}

int mr_graph_from_json_buf(struct mr_buf *text, const struct mr_graph_catalogue *catalogue,
    const struct mr_graph_parallel *parallel, struct mr_graph **out, struct mr_error *e)
{
    struct mr_builder *b = NULL;
    struct mr_json_limits limits = mr_json_widest(text->n);
    limits.parallel = parallel;
    int err = to_builder(mr_buf_str(text), catalogue, &limits, &b, e);
    mr_buf_fini(text);
    return err ? err : mr_graph_build(&b, catalogue, out, e);
}

int mr_json_build(const struct mr_json_source *from, const struct mr_graph_catalogue *catalogue,
    struct mr_graph **out, struct mr_error *e)
{
    struct mr_builder *b = NULL;
    const struct mr_json_limits limits = mr_json_widest(from->text_bytes);
    int err = fill_from(from, catalogue, &limits, &b, e);
    return err ? err : mr_graph_build(&b, catalogue, out, e);
}
