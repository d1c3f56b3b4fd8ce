/* Every error sentence below begins with the name of its field. mr_json_to_wire puts the path to
 * the field in front of it. */
#include "gateway/json/json_in.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "base/protowire.h"
#include "base/unconst.h"
#include "gateway/json/field.h"

#include <stdio.h>
#include <stdlib.h>
#include <yyjson.h>

#define FIELDS_MAX 64 /* fields of one message, for which `seen` has one bit each */
#define NOT_OPEN SIZE_MAX

enum frame_kind { FRAME_MESSAGE, FRAME_LIST, FRAME_MAP };

struct frame {
    enum frame_kind kind;
    /* MESSAGE: type of the message. MAP: type of an entry. LIST: type of the message that has the
     * list. */
    const ProtobufCMessageDescriptor *type;
    /* LIST: the repeated field. MAP: the map field. MESSAGE: the field that is being read. */
    const ProtobufCFieldDescriptor *field;
    union {
        yyjson_obj_iter object;
        yyjson_arr_iter array;
    } at;
    size_t began;       /* where the nested message begins in `wire` */
    size_t entry_began; /* where the map entry that has this message begins */
    uint64_t seen;      /* MESSAGE: bits of the fields that the document has */
    size_t index;       /* LIST: number of the current item */
    const char *key;    /* MAP: the current key */
};

struct state {
    struct frame stack[MR_DEPTH_MAX];
    size_t depth;
    const struct mr_path_field *path_fields;
    size_t path_fields_count;
    struct mr_buf *wire;
    struct mr_error *e;
};

static struct mr_str text_of(yyjson_val *v)
{
    return mr_str_of(yyjson_get_str(v), yyjson_get_len(v));
}

static int shown(struct mr_str s)
{
    return (int)MR_MIN(s.n, (size_t)64);
}

static int push(struct state *s, struct frame f)
{
    if (s->depth == MR_DEPTH_MAX)
        return mr_fail(s->e, MR_EINVAL, "the JSON nests deeper than %d levels", MR_DEPTH_MAX);
    s->stack[s->depth++] = f;
    return MR_OK;
}

static int push_message(struct state *s, const ProtobufCMessageDescriptor *type, yyjson_val *v,
    size_t began, size_t entry_began)
{
    mr_assert(type->n_fields <= FIELDS_MAX);
    struct frame f = {.kind = FRAME_MESSAGE, .type = type, .began = began};
    f.entry_began = entry_began;
    (void)yyjson_obj_iter_init(v, &f.at.object);
    return push(s, f);
}

/* Writes a value that is neither a message nor a container. */
static int scalar(struct state *s, const ProtobufCMessageDescriptor *type,
    const ProtobufCFieldDescriptor *f, yyjson_val *v, bool tag)
{
    if (yyjson_is_null(v))
        return mr_fail(
            s->e, MR_EINVAL, "%s: null is not a value here; leave the field out", f->name);
    if (yyjson_is_str(v)) return mr_field_from_quoted(type, f, text_of(v), tag, s->wire, s->e);
    if (yyjson_is_bool(v) && f->type == PROTOBUF_C_TYPE_BOOL) {
        mr_field_bool(f, yyjson_get_bool(v), tag, s->wire);
        return MR_OK;
    }
    if (yyjson_is_num(v) && mr_field_is_number(f)) {
        struct mr_number n = {.kind = MR_NUMBER_REAL, .real = yyjson_get_num(v)};
        if (yyjson_is_sint(v))
            n = (struct mr_number){.kind = MR_NUMBER_INT, .i = yyjson_get_sint(v)};
        if (yyjson_is_uint(v))
            n = (struct mr_number){.kind = MR_NUMBER_UINT, .u = yyjson_get_uint(v)};
        return mr_field_from_number(type, f, n, tag, s->wire, s->e);
    }
    const char *wanted = "a text";
    if (f->type == PROTOBUF_C_TYPE_BOOL) wanted = "true or false";
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) wanted = "an object";
    if (mr_field_is_number(f)) wanted = "a number";
    return mr_fail(s->e, MR_EINVAL, "%s: %s stands where %s is wanted", f->name,
        yyjson_get_type_desc(v), wanted);
}

static bool is_packed(const ProtobufCFieldDescriptor *f)
{
    return mr_field_is_number(f) || f->type == PROTOBUF_C_TYPE_BOOL ||
           f->type == PROTOBUF_C_TYPE_ENUM;
}

/* Writes one item of a list, one value of a map, or the value of a plain field. */
static int single(struct state *s, const ProtobufCMessageDescriptor *type,
    const ProtobufCFieldDescriptor *f, yyjson_val *v, size_t entry_began)
{
    if (f->type != PROTOBUF_C_TYPE_MESSAGE || !yyjson_is_obj(v)) {
        int err = scalar(s, type, f, v, true);
        if (!err && entry_began != NOT_OPEN) mr_protowire_end(s->wire, entry_began);
        return err;
    }
    size_t began = mr_protowire_begin(s->wire, f->id);
    return push_message(s, f->descriptor, v, began, entry_began);
}

static int compare_keys(const void *a, const void *b)
{
    return mr_str_cmp(text_of(*(yyjson_val *const *)a), text_of(*(yyjson_val *const *)b));
}

static int check_map_keys(
    struct state *s, const ProtobufCFieldDescriptor *f, yyjson_val *object, size_t count)
{
    MR_AUTO(mr_free_ptr) yyjson_val **keys = mr_alloc_array(count + 1, sizeof(yyjson_val *));
    yyjson_obj_iter it;
    (void)yyjson_obj_iter_init(object, &it);
    for (size_t i = 0; i < count; i++)
        keys[i] = yyjson_obj_iter_next(&it);
    qsort(keys, count, sizeof(yyjson_val *), compare_keys);
    for (size_t i = 1; i < count; i++) {
        struct mr_str key = text_of(keys[i]);
        if (mr_str_eq(text_of(keys[i - 1]), key))
            return mr_fail(
                s->e, MR_EINVAL, "%s: \"%.*s\" occurs twice", f->name, shown(key), key.p);
    }
    return MR_OK;
}

static int open_map(struct state *s, const ProtobufCFieldDescriptor *f, yyjson_val *v)
{
    if (!yyjson_is_obj(v))
        return mr_fail(s->e, MR_EINVAL, "%s: %s stands where an object is wanted", f->name,
            yyjson_get_type_desc(v));
    int err = check_map_keys(s, f, v, yyjson_obj_size(v));
    if (err) return err;
    struct frame map = {.kind = FRAME_MAP, .type = f->descriptor, .field = f};
    (void)yyjson_obj_iter_init(v, &map.at.object);
    return push(s, map);
}

static int open_list(struct state *s, const ProtobufCMessageDescriptor *type,
    const ProtobufCFieldDescriptor *f, yyjson_val *v)
{
    if (!yyjson_is_arr(v))
        return mr_fail(s->e, MR_EINVAL, "%s: %s stands where an array is wanted", f->name,
            yyjson_get_type_desc(v));
    struct frame list = {.kind = FRAME_LIST, .type = type, .field = f, .began = NOT_OPEN};
    if (is_packed(f)) list.began = mr_protowire_begin(s->wire, f->id);
    (void)yyjson_arr_iter_init(v, &list.at.array);
    return push(s, list);
}

static int check_oneof(struct state *s, const struct frame *m, const ProtobufCFieldDescriptor *f)
{
    if (!(f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) return MR_OK;
    for (unsigned i = 0; i < m->type->n_fields; i++) {
        const ProtobufCFieldDescriptor *o = &m->type->fields[i];
        if (o == f || !(m->seen >> i & 1) || !(o->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)) continue;
        if (o->quantifier_offset == f->quantifier_offset)
            return mr_fail(
                s->e, MR_EINVAL, "%s: \"%s\" is given already; only one may be", f->name, o->name);
    }
    return MR_OK;
}

static int step_message(struct state *s, struct frame *m)
{
    yyjson_val *key = yyjson_obj_iter_next(&m->at.object);
    if (!key) {
        if (m->began != NOT_OPEN) mr_protowire_end(s->wire, m->began);
        if (m->entry_began != NOT_OPEN) mr_protowire_end(s->wire, m->entry_began);
        s->depth--;
        return MR_OK;
    }
    yyjson_val *v = yyjson_obj_iter_get_val(key);
    struct mr_str name = text_of(key);
    const ProtobufCFieldDescriptor *f = mr_field_find(m->type, name);
    if (!f)
        return mr_fail(s->e, MR_EINVAL, "\"%.*s\" is not a field of %s", shown(name), name.p,
            m->type->short_name);
    uint64_t bit = (uint64_t)1 << (f - m->type->fields);
    if (m->seen & bit) return mr_fail(s->e, MR_EINVAL, "%s occurs twice", f->name);
    for (size_t i = 0; s->depth == 1 && i < s->path_fields_count; i++)
        if (!strcmp(s->path_fields[i].field, f->name))
            return mr_fail(s->e, MR_EINVAL, "%s is given in the path already", f->name);
    int err = check_oneof(s, m, f);
    if (err) return err;
    m->seen |= bit;
    m->field = f;
    if (f->label != PROTOBUF_C_LABEL_REPEATED) return single(s, m->type, f, v, NOT_OPEN);
    if (f->type == PROTOBUF_C_TYPE_MESSAGE && mr_proto_is_map_entry(f->descriptor))
        return open_map(s, f, v);
    return open_list(s, m->type, f, v);
}

static int step_list(struct state *s, struct frame *l)
{
    yyjson_val *v = yyjson_arr_iter_next(&l->at.array);
    if (!v) {
        if (l->began != NOT_OPEN) mr_protowire_end(s->wire, l->began);
        s->depth--;
        return MR_OK;
    }
    l->index = l->at.array.idx - 1;
    if (is_packed(l->field)) return scalar(s, l->type, l->field, v, false);
    return single(s, l->type, l->field, v, NOT_OPEN);
}

static int step_map(struct state *s, struct frame *m)
{
    yyjson_val *key = yyjson_obj_iter_next(&m->at.object);
    if (!key) {
        s->depth--;
        return MR_OK;
    }
    m->key = yyjson_get_str(key);
    size_t began = mr_protowire_begin(s->wire, m->field->id);
    int err = mr_field_from_text(m->type, &m->type->fields[0], text_of(key), s->wire, s->e);
    if (err) return err;
    return single(s, m->type, &m->type->fields[1], yyjson_obj_iter_get_val(key), began);
}

static int walk(struct state *s)
{
    while (s->depth) {
        struct frame *top = &s->stack[s->depth - 1];
        int err = MR_OK;
        switch (top->kind) {
        case FRAME_MESSAGE: err = step_message(s, top); break;
        case FRAME_LIST: err = step_list(s, top); break;
        case FRAME_MAP: err = step_map(s, top); break;
        }
        if (err) return err;
        if (mr_buf_status(s->wire))
            return mr_fail(
                s->e, MR_ETOOBIG, "the request is larger than %zu bytes", s->wire->bytes_max);
    }
    return MR_OK;
}

/* Puts the path to the field in front of the sentence: tasks[3].kwargs["x"]. */
static int place(struct state *s, int code)
{
    if (!s->e) return code;
    char path[300];
    size_t n = 0;
    path[0] = 0;
    for (size_t i = 0; i < s->depth && n < sizeof path; i++) {
        const struct frame *f = &s->stack[i];
        int wrote = 0;
        if (f->kind == FRAME_LIST)
            wrote = snprintf(path + n, sizeof path - n, "%s[%zu]%s", f->field->name, f->index,
                i + 1 < s->depth ? "." : ": ");
        if (f->kind == FRAME_MAP)
            wrote = snprintf(path + n, sizeof path - n, "%s[\"%.64s\"]%s", f->field->name,
                f->key ? f->key : "", i + 1 < s->depth ? "." : ": ");
        bool is_open = i + 1 < s->depth && s->stack[i + 1].kind == FRAME_MESSAGE;
        if (f->kind == FRAME_MESSAGE && is_open)
            wrote = snprintf(path + n, sizeof path - n, "%s.", f->field->name);
        n += (size_t)MR_MAX(wrote, 0);
    }
    struct mr_error inner = *s->e;
    return mr_fail(s->e, code, "%s%s", path, inner.text);
}

static int malformed(const yyjson_read_err *err, struct mr_str json, struct mr_error *e)
{
    size_t line = 0, column = 0, chars = 0;
    (void)yyjson_locate_pos(json.p, json.n, err->pos, &line, &column, &chars);
    return mr_fail(
        e, MR_EINVAL, "the body is not JSON: %s at line %zu, column %zu", err->msg, line, column);
}

int mr_json_to_wire(const ProtobufCMessageDescriptor *type, struct mr_str json,
    const struct mr_path_field *path_fields, size_t path_fields_count, struct mr_buf *wire,
    struct mr_error *e)
{
    yyjson_read_err read_err;
    yyjson_doc *doc =
        yyjson_read_opts(mr_unconst(json.p), json.n, YYJSON_READ_NOFLAG, NULL, &read_err);
    if (!doc) return malformed(&read_err, json, e);

    struct mr_error local;
    struct state s = {
        .path_fields = path_fields, .path_fields_count = path_fields_count, .wire = wire};
    s.e = e ? e : &local;
    yyjson_val *root = yyjson_doc_get_root(doc);
    int err = yyjson_is_obj(root)
                  ? push_message(&s, type, root, NOT_OPEN, NOT_OPEN)
                  : mr_fail(s.e, MR_EINVAL, "the body is %s, and an object is wanted",
                        yyjson_get_type_desc(root));
    if (!err) err = walk(&s);
    if (err) err = place(&s, err);
    yyjson_doc_free(doc);
    return err;
}
