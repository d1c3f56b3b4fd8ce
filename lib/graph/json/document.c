/* Reads a job's document: its fields, its targets, and its entries in two passes (first the keys,
 * then the rest).
 *
 *   {"tasks": {"x": {"value": 1},
 *              "part-${i}": {"op": "slice", "args": [{"ref": "x"}, "${i}"], "for": {"i": "${n}"}},
 *              "z": {"op": "sum", "args": {"each": {"ref": "part-${i}"}, "for": {"i": "${n}"}}}},
 *    "params": {"n": 20}, "targets": ["z"]}
 *
 * An entry is a task ({"op", "args", "kwargs", options}), {"value": v}, {"literal": v} (a value in
 * which `${…}` is plain text), {"ref": key}, {"object": id} or {"name": name}. An entry with "for"
 * becomes one entry for each round. Arguments, at any depth of lists and objects, are {"ref": key},
 * {"object": id}, {"name": name}, {"value": v}, {"literal": v}, {"each": arg, "for": {…}} (a list),
 * and tasks. A task inside an argument gets the key of the outer task with #0, #1 … in the order of
 * the text. Any other object is a dict whose values are arguments.
 *
 * "dsk" instead of "tasks" is Dask's notation: in it a text that equals a key is a reference, too,
 * and a list that begins with the name of an operator is a task.
 *
 * An entry {"ref": key} becomes the task `identity`. A "dsk" entry that is no task, but contains
 * references or tasks, becomes the task `identity` with these references and tasks as inputs. */
#include "base/limits.h"
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

/* ---- the job's own fields -------------------------------------------------------------------- */

static int read_text(struct mr_json *j, enum field f, yyjson_val *v, struct mr_str *out)
{
    int err = MR_OK;
    v = mr_json_resolve_text(j, v, &err);
    if (err) return mr_fail_within(j->e, err, "field", mr_str(fields[f]));
    if (!yyjson_is_str(v)) return wrong(j, f, v, "a text");
    *out = v == &j->text_val ? mr_text_arena_copy(&j->kept, mr_json_text(v)) : mr_json_text(v);
    return MR_OK;
}

static int read_labels(struct mr_json *j, yyjson_val *v, struct mr_job_options *o)
{
    if (!yyjson_is_obj(v)) return wrong(j, F_LABELS, v, "an object of texts");
    if (yyjson_obj_size(v) > MR_LABELS_MAX)
        return mr_fail(j->e, MR_EINVAL, "field \"labels\" has %zu labels, the limit is %d",
            yyjson_obj_size(v), MR_LABELS_MAX);
    struct mr_graph_label *labels =
        mr_text_arena_take(&j->kept, yyjson_obj_size(v) * sizeof *labels);
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
    mr_text_arena_fini(&j->kept);
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

/* ---- the size of the graph ------------------------------------------------------------------- */

/* True: the graph may be much larger than the text, because the job has "for", "params" or
 * "repeat". Always true for a template, whose text is unknown. False: the size of the text bounds
 * the graph. */
static bool may_grow(
    const struct mr_json *j, const struct mr_json_entries_source *entries, yyjson_val *repeat)
{
    struct mr_str t = entries->text;
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

static int estimate(
    struct mr_json *j, const struct mr_json_entries_source *entries, yyjson_val *const *at)
{
    if (entries->stream || !may_grow(j, entries, at[F_REPEAT])) return MR_OK;
    struct mr_json_estimate *x = mr_json_estimate_new(j);
    int err = entries->slices ? mr_json_sliced_estimate(j, x, entries->text, entries->slices)
                              : mr_json_estimate_entries(x, at[j->dsk ? F_DSK : F_TASKS], 1);
    if (!err) err = estimate_bodies(j, x, at[F_REPEAT]);
    if (!err) err = mr_json_estimate_targets(x, at[F_TARGETS]);
    mr_json_estimate_free(&x);
    return err;
}

/* ---- the document ---------------------------------------------------------------------------- */

int mr_json_document(
    struct mr_json *j, yyjson_val *root, const struct mr_json_entries_source *entries)
{
    yyjson_val *at[F_COUNT] = {0};
    int err = read_fields(j, root, at);
    if (err) return err;
    if (entries->stream && (at[F_PARAMS] || at[F_REPEAT]))
        return MR_EFORMAT; /* the stream has read the entries without replacing their `${…}` */
    j->dsk = at[F_DSK] != NULL;
    enum field f = j->dsk ? F_DSK : F_TASKS;
    if (at[f] && !yyjson_is_obj(at[f])) return wrong(j, f, at[f], "an object of keys");
    err = read_job(j, at);
    if (!err) err = estimate(j, entries, at);
    if (!err && at[F_REPEAT]) err = mr_json_repeat_declare(j, at[F_REPEAT]);
    if (!err && entries->stream)
        err = mr_json_stream_finish(entries->stream);
    else if (!err && entries->slices)
        err = mr_json_sliced_entries(j, entries->text, entries->slices);
    else if (!err && at[f])
        err = mr_json_entries(j, at[f]);
    if (!err && at[F_REPEAT]) err = mr_json_repeat(j, at[F_REPEAT]);
    if (!err) err = read_targets(j, at[F_TARGETS]);
    return err;
}
