/* Reads one entry of "tasks" or "dsk": its form and its options. */
#include "graph/json/internal.h"
#include "graph/build/unroll.h"
#include "graph/options.h"

#include <assert.h>

static const char *const fields[] = {"op", "args", "kwargs", "for", "value", "literal", "ref",
    "object", "name", "retries", "priority", "timeout_s", "workers", "allow_other_workers",
    "resources", "pure", "persist", "long_running"};

enum field {
    F_OP,
    F_ARGS,
    F_KWARGS,
    F_FOR,
    F_VALUE,
    F_LITERAL,
    F_REF,
    F_OBJECT,
    F_NAME,
    F_RETRIES, /* this field and all later ones are in the order of the MR_OPTION_ bits */
    F_PRIORITY,
    F_TIMEOUT_S,
    F_WORKERS,
    F_ALLOW_OTHER_WORKERS,
    F_RESOURCES,
    F_PURE,
    F_PERSIST,
    F_LONG_RUNNING,
    F_COUNT,
};
static_assert(MR_ARRAY_LEN(fields) == F_COUNT, "a field has no name");

#define FORMS                                                                                      \
    (1u << F_OP | 1u << F_VALUE | 1u << F_LITERAL | 1u << F_REF | 1u << F_OBJECT | 1u << F_NAME)
#define OPTIONS (~0u << F_RETRIES)

struct entry {
    yyjson_val *at[F_COUNT];
    uint32_t given;
};

static enum field field_of(struct mr_str name)
{
    /* "op" and "args" are the most frequent names */
    if (name.n == 2 && memcmp(name.p, "op", 2) == 0) return F_OP;
    if (name.n == 4 && memcmp(name.p, "args", 4) == 0) return F_ARGS;
    for (unsigned i = 0; i < F_COUNT; i++)
        if (mr_str_eq(name, mr_str(fields[i]))) return (enum field)i;
    return F_COUNT;
}

static int read_fields(struct mr_json *j, yyjson_val *object, struct entry *out)
{
    out->given = 0;
    yyjson_obj_iter it = yyjson_obj_iter_with(object);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        struct mr_str name = mr_json_text(k);
        enum field f = field_of(name);
        if (f == F_COUNT) return mr_json_unknown(j, "field or option", name, fields, F_COUNT);
        if (out->given & 1u << f)
            return mr_fail(j->e, MR_EINVAL, "\"%s\" appears twice in one object", fields[f]);
        out->given |= 1u << f;
        out->at[f] = yyjson_obj_iter_get_val(k);
    }
    return MR_OK;
}

/* ---- options --------------------------------------------------------------------------------- */

static int wrong(struct mr_json *j, enum field f, yyjson_val *v, const char *want)
{
    return mr_fail(
        j->e, MR_EINVAL, "option \"%s\" is %s, but must be %s", fields[f], mr_json_kind(v), want);
}

static int read_bool(struct mr_json *j, enum field f, yyjson_val *v, bool *out)
{
    if (!yyjson_is_bool(v)) return wrong(j, f, v, "true or false");
    *out = yyjson_get_bool(v);
    return MR_OK;
}

static int read_integer(
    struct mr_json *j, enum field f, yyjson_val *v, int64_t least, int64_t most, int64_t *out)
{
    if (!yyjson_is_int(v)) return wrong(j, f, v, "an integer");
    bool fits = yyjson_is_uint(v) ? yyjson_get_uint(v) <= (uint64_t)most
                                  : yyjson_get_sint(v) >= least && yyjson_get_sint(v) <= most;
    if (!fits)
        return mr_fail(j->e, MR_EINVAL, "option \"%s\" must be %lld to %lld", fields[f],
            (long long)least, (long long)most);
    *out = yyjson_get_sint(v);
    return MR_OK;
}

/* Returns the text of a value. If `${…}` was replaced in the text, returns a copy, because the next
 * replacement reuses the memory. */
static struct mr_str keep(struct mr_json *j, yyjson_val *v)
{
    struct mr_str s = mr_json_text(v);
    return v == &j->text_val ? mr_text_arena_copy(&j->kept, s) : s;
}

static int read_workers(struct mr_json *j, yyjson_val *v, struct mr_task_options *o)
{
    size_t n = yyjson_is_arr(v) ? yyjson_arr_size(v) : 1;
    if (n > MR_OPTION_WORKERS_MAX)
        return mr_fail(j->e, MR_EINVAL, "option \"workers\" lists %zu, the limit is %d", n,
            MR_OPTION_WORKERS_MAX);
    struct mr_str *workers = mr_text_arena_take(&j->kept, n * sizeof *workers);
    yyjson_arr_iter it = {0};
    if (yyjson_is_arr(v)) it = yyjson_arr_iter_with(v);
    for (size_t i = 0; i < n; i++) {
        yyjson_val *one = yyjson_is_arr(v) ? yyjson_arr_iter_next(&it) : v;
        int err = MR_OK;
        if (one != &j->text_val) one = mr_json_resolve(j, one, NULL, &err);
        if (err) return err;
        if (!yyjson_is_str(one))
            return wrong(j, F_WORKERS, one, "a worker's name or a list of them");
        workers[i] = keep(j, one);
    }
    o->workers = workers;
    o->workers_count = (uint32_t)n;
    return MR_OK;
}

static int read_resources(struct mr_json *j, yyjson_val *v, struct mr_task_options *o)
{
    if (!yyjson_is_obj(v)) return wrong(j, F_RESOURCES, v, "an object of amounts, as {\"gpu\": 1}");
    if (yyjson_obj_size(v) > MR_RESOURCES_MAX)
        return mr_fail(j->e, MR_EINVAL, "option \"resources\" has %zu kinds, the limit is %d",
            yyjson_obj_size(v), MR_RESOURCES_MAX);
    struct mr_graph_resource *r = mr_text_arena_take(&j->kept, yyjson_obj_size(v) * sizeof *r);
    o->resources = r;
    yyjson_obj_iter it = yyjson_obj_iter_with(v);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        int err = MR_OK;
        yyjson_val *amount = mr_json_resolve(j, yyjson_obj_iter_get_val(k), NULL, &err);
        if (err) return err;
        if (!yyjson_is_num(amount))
            return mr_fail(j->e, MR_EINVAL,
                "option \"resources\": \"%.*s\" is %s, but must be a number",
                MR_SHOWN(mr_json_text(k)), mr_json_kind(amount));
        r[o->resources_count].name = mr_json_text(k);
        err = mr_option_amount(
            mr_json_text(k), yyjson_get_num(amount), &r[o->resources_count].amount_micro, j->e);
        if (err) return err;
        o->resources_count++;
    }
    return MR_OK;
}

static int read_persist(struct mr_json *j, yyjson_val *v, struct mr_task_options *o)
{
    if (yyjson_is_bool(v)) return read_bool(j, F_PERSIST, v, &o->persist);
    if (!yyjson_is_str(v)) return wrong(j, F_PERSIST, v, "a name, true or false");
    if (!yyjson_get_len(v)) return mr_fail(j->e, MR_EINVAL, "option \"persist\" is an empty name");
    o->persist = true;
    o->persist_name = keep(j, v);
    return MR_OK;
}

static int read_option(
    struct mr_json *j, enum field f, yyjson_val *given, struct mr_task_options *o)
{
    int err = MR_OK;
    int64_t n = 0;
    yyjson_val *v = mr_json_resolve(j, given, NULL, &err);
    if (err) return err;
    o->given |= 1u << (f - F_RETRIES);
    switch ((int)f) {
    case F_RETRIES:
        err = read_integer(j, f, v, 0, MR_RETRIES_MAX, &n);
        o->retries = (uint32_t)n;
        return err;
    case F_PRIORITY:
        err = read_integer(j, f, v, -MR_PRIORITY_MAX, MR_PRIORITY_MAX, &n);
        o->priority = (int32_t)n;
        return err;
    case F_TIMEOUT_S:
        if (!yyjson_is_num(v)) return wrong(j, f, v, "a number of seconds");
        return mr_option_seconds("option \"timeout_s\"", yyjson_get_num(v), &o->timeout, j->e);
    case F_WORKERS: return read_workers(j, v, o);
    case F_ALLOW_OTHER_WORKERS: return read_bool(j, f, v, &o->allow_other_workers);
    case F_RESOURCES: return read_resources(j, v, o);
    case F_PURE: return read_bool(j, f, v, &o->pure);
    case F_PERSIST: return read_persist(j, v, o);
    default: return read_bool(j, f, v, &o->long_running);
    }
}

static int read_options(struct mr_json *j, uint32_t node, const struct entry *entry)
{
    struct mr_task_options o = {0};
    int err = MR_OK;
    for (unsigned f = F_RETRIES; f < F_COUNT && !err; f++)
        if (entry->given & 1u << f) err = read_option(j, (enum field)f, entry->at[f], &o);
    if (!err) err = mr_builder_options(j->b, node, &o, j->e);
    mr_text_arena_fini(&j->kept);
    return err;
}

/* ---- forms of entries ------------------------------------------------------------------------ */

static int check_form(struct mr_json *j, const struct entry *entry)
{
    uint32_t forms = entry->given & FORMS;
    if (!forms)
        return mr_fail(j->e, MR_EINVAL,
            "has none of \"op\", \"value\", \"literal\", \"ref\", \"object\", \"name\"");
    unsigned first = (unsigned)__builtin_ctz(forms);
    if (forms & (forms - 1))
        return mr_fail(j->e, MR_EINVAL, "has both \"%s\" and \"%s\"", fields[first],
            fields[__builtin_ctz(forms & (forms - 1))]);
    uint32_t others = entry->given & ~(FORMS | 1u << F_FOR);
    if (first != F_OP && others)
        return mr_fail(j->e, MR_EINVAL, "has \"%s\", which belongs to a task, beside \"%s\"",
            fields[__builtin_ctz(others)], fields[first]);
    return MR_OK;
}

/* Sets `out` to the value `v` of the field `f` ("ref", "object", "name" or "op"), which must be a
 * text. Each `${…}` in the text is replaced. */
static int form_text(struct mr_json *j, enum field f, yyjson_val *v, struct mr_str *out)
{
    int err = MR_OK;
    v = mr_json_resolve_text(j, v, &err);
    if (err) return err;
    if (!yyjson_is_str(v))
        return mr_fail(
            j->e, MR_EINVAL, "\"%s\" is %s, but must be a text", fields[f], mr_json_kind(v));
    *out = mr_json_text(v);
    return MR_OK;
}

static int write_value(struct mr_json *j, uint32_t node, yyjson_val *v, struct mr_json_mode mode)
{
    int err = mr_builder_value(j->b, node, j->e);
    if (!err) err = mr_json_write(j, v, mode, 0);
    return err ? err : mr_builder_value_end(j->b, j->e);
}

static int write_alias(struct mr_json *j, uint32_t node, struct mr_str key)
{
    uint32_t of = 0;
    int err = mr_builder_ref(j->b, key, &of, j->e);
    if (!err) err = mr_builder_value(j->b, node, j->e);
    if (!err) err = mr_builder_input(j->b, of, j->e);
    return err ? err : mr_builder_value_end(j->b, j->e);
}

static int write_object(struct mr_json *j, uint32_t node, struct mr_str text)
{
    mr_object_id id;
    if (mr_object_id_parse(text, &id))
        return mr_fail(j->e, MR_EINVAL,
            "\"%.*s\" is no object id (32 hexadecimal digits); a stored object's name is given "
            "as {\"name\": …}",
            MR_SHOWN(text));
    return mr_builder_object(j->b, node, id, j->e);
}

static int write_form(struct mr_json *j, uint32_t node, const struct entry *entry)
{
    enum field f = (enum field)__builtin_ctz(entry->given & FORMS);
    if (f == F_VALUE) return write_value(j, node, entry->at[f], (struct mr_json_mode){false, true});
    if (f == F_LITERAL)
        return write_value(j, node, entry->at[f], (struct mr_json_mode){false, false});
    struct mr_str text;
    int err = form_text(j, f, entry->at[f], &text);
    if (err) return err;
    if (f == F_REF) return write_alias(j, node, text);
    if (f == F_OBJECT) return write_object(j, node, text);
    if (f == F_NAME) return mr_builder_name(j->b, node, text, j->e);
    return mr_json_task(j, node, text, entry->given & 1u << F_ARGS ? entry->at[F_ARGS] : NULL,
        entry->given & 1u << F_KWARGS ? entry->at[F_KWARGS] : NULL, false);
}

static int write_object_entry(struct mr_json *j, uint32_t node, yyjson_val *object)
{
    struct entry entry;
    int err = read_fields(j, object, &entry);
    if (!err) err = check_form(j, &entry);
    if (!err) err = write_form(j, node, &entry);
    if (!err && entry.given & OPTIONS) err = read_options(j, node, &entry);
    return err;
}

/* True: the object is an entry of one form: it has "op", or only one of "value", "literal", "ref",
 * "object" and "name". False: it has no form; in "dsk" it is then a dict. */
static bool has_form(yyjson_val *object)
{
    if (yyjson_obj_get(object, "op")) return true;
    size_t n = yyjson_obj_size(object) - (yyjson_obj_get(object, "for") ? 1 : 0);
    if (n != 1) return false;
    for (unsigned f = F_VALUE; f <= F_NAME; f++)
        if (yyjson_obj_get(object, fields[f])) return true;
    return false;
}

/* Refuses a list that begins with an unknown text and looks like a task with a mistyped
 * operator. */
static int check_dsk_list(struct mr_json *j, yyjson_val *list)
{
    yyjson_val *first = yyjson_arr_get_first(list);
    if (!yyjson_is_str(first)) return MR_OK;
    struct mr_str name = mr_json_text(first);
    if (mr_builder_find(j->b, name) != MR_NODE_NONE) return MR_OK;
    struct mr_nearest near;
    mr_nearest_init(&near, name);
    for (uint32_t i = 0; j->catalogue->name_at; i++) {
        struct mr_str op = j->catalogue->name_at(j->catalogue->ctx, i);
        if (!op.n) break;
        mr_nearest_offer(&near, op);
    }
    char hint[MR_NEAREST_HINT_MAX];
    return mr_fail(j->e, MR_EINVAL,
        "unknown op \"%.*s\"%s; a list that starts with this text is written {\"literal\": […]}",
        MR_SHOWN(name), mr_nearest_hint(&near, hint));
}

static int write_dsk_entry(struct mr_json *j, uint32_t node, yyjson_val *v)
{
    if (yyjson_is_obj(v) && has_form(v)) return write_object_entry(j, node, v);
    if (yyjson_is_arr(v) && yyjson_arr_size(v)) {
        yyjson_val *first = yyjson_arr_get_first(v);
        if (yyjson_is_str(first) && mr_json_is_op(j, mr_json_text(first)))
            return mr_json_task(j, node, mr_json_text(first), v, NULL, true);
        int err = check_dsk_list(j, v);
        if (err) return err;
    }
    return write_value(j, node, v, (struct mr_json_mode){true, true});
}

int mr_json_entry(struct mr_json *j, uint32_t node, yyjson_val *entry)
{
    if (j->dsk) return write_dsk_entry(j, node, entry);
    if (yyjson_is_obj(entry)) return write_object_entry(j, node, entry);
    return mr_fail(j->e, MR_EINVAL,
        "is %s, but must be an object with \"op\" or \"value\" (or send the graph as \"dsk\")",
        mr_json_kind(entry));
}

yyjson_val *mr_json_entry_loop(const struct mr_json *j, yyjson_val *entry)
{
    if (!yyjson_is_obj(entry) || yyjson_obj_size(entry) < 2) return NULL;
    if (j->dsk && !has_form(entry)) return NULL;
    return yyjson_obj_get(entry, "for");
}

void mr_json_prefetch(const struct mr_json *j, yyjson_val *entry)
{
    yyjson_val *args = unsafe_yyjson_is_obj(entry) ? yyjson_obj_get(entry, "args") : entry;
    if (!yyjson_is_arr(args) || yyjson_arr_size(args) > 8) return;
    yyjson_arr_iter it = yyjson_arr_iter_with(args);
    for (yyjson_val *v = yyjson_arr_iter_next(&it); v; v = yyjson_arr_iter_next(&it)) {
        if (unsafe_yyjson_is_obj(v) && yyjson_obj_size(v) == 1)
            v = yyjson_obj_iter_get_val(unsafe_yyjson_get_first(v));
        else if (!j->dsk)
            continue;
        if (!unsafe_yyjson_is_str(v)) continue;
        mr_intern_prefetch(&j->b->keys, mr_intern_hash(&j->b->keys, mr_json_text(v)));
    }
}
