/* Writes values as MessagePack: literals, references, lists and dicts of them, nested tasks,
 * `each`. A stack with a frame for each open container replaces recursion. */
#include "graph/json/internal.h"
#include "graph/build/unroll.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/pack.h"
#include "base/unconst.h"

#include <stdlib.h>

enum frame_kind { FRAME_LIST, FRAME_MAP, FRAME_EACH, FRAME_TASK };

struct named {
    struct mr_str name;
    yyjson_val *value;
};

struct mr_json_frame {
    enum frame_kind kind;
    unsigned depth;
    struct mr_json_mode mode;
    union {
        yyjson_arr_iter list;
        yyjson_obj_iter map;
    };
    /* Members of a FRAME_EACH. */
    struct mr_json_loop *loop;
    yyjson_val *each;
    /* Members of a FRAME_TASK. */
    uint32_t node;
    bool is_outermost;
    struct named *named;
    uint32_t named_count;
    uint32_t named_at;
};

#define FRAMES_MAX (3 * MR_DEPTH_MAX)

int mr_json_unknown(struct mr_json *j, const char *what, struct mr_str name,
    const char *const *known, size_t known_count)
{
    struct mr_nearest near;
    mr_nearest_init(&near, name);
    for (size_t i = 0; i < known_count; i++)
        mr_nearest_offer(&near, mr_str(known[i]));
    char hint[MR_NEAREST_HINT_MAX];
    return mr_fail(j->e, MR_EINVAL, "unknown %s \"%.*s\"%s", what, MR_SHOWN(name),
        mr_nearest_hint(&near, hint));
}

static int twice(struct mr_json *j, struct mr_str name)
{
    return mr_fail(j->e, MR_EINVAL, "\"%.*s\" appears twice in one object", MR_SHOWN(name));
}

static int no_duplicates_of_many(struct mr_json *j, yyjson_val *object)
{
    struct mr_intern seen;
    mr_intern_init(&seen, (uint32_t)MR_MIN(yyjson_obj_size(object), (size_t)1 << 20));
    yyjson_obj_iter it = yyjson_obj_iter_with(object);
    int err = MR_OK;
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k && !err; k = yyjson_obj_iter_next(&it)) {
        struct mr_str name = mr_json_text(k);
        uint32_t hash = mr_intern_hash(&seen, name);
        if (mr_intern_find(&seen, name, hash) != MR_INTERN_NONE)
            err = twice(j, name);
        else
            (void)mr_intern_add(&seen, name, hash);
    }
    mr_intern_fini(&seen);
    return err;
}

int mr_json_no_duplicates(struct mr_json *j, yyjson_val *object)
{
    struct mr_str few[16];
    size_t n = 0;
    if (yyjson_obj_size(object) > MR_ARRAY_LEN(few)) return no_duplicates_of_many(j, object);
    yyjson_obj_iter it = yyjson_obj_iter_with(object);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        struct mr_str name = mr_json_text(k);
        for (size_t i = 0; i < n; i++)
            if (mr_str_eq(few[i], name)) return twice(j, name);
        few[n++] = name;
    }
    return MR_OK;
}

static int push(struct mr_json *j, struct mr_json_frame frame)
{
    if (frame.depth > MR_DEPTH_MAX || j->frames_count == FRAMES_MAX) {
        mr_release(frame.loop);
        mr_release(frame.named);
        return mr_fail(j->e, MR_ELIMIT, "nested deeper than %d", MR_DEPTH_MAX);
    }
    if (j->frames_count == j->frames_room) {
        uint32_t room = j->frames_room ? j->frames_room * 2 : 16;
        j->frames =
            mr_grow(j->frames, j->frames_room * sizeof *j->frames, room * sizeof *j->frames);
        j->frames_room = room;
    }
    j->frames[j->frames_count++] = frame;
    return MR_OK;
}

bool mr_json_is_op(const struct mr_json *j, struct mr_str name)
{
    if (!j->catalogue) return true;
    uint32_t last = j->b->last_op;
    if (last < j->b->ops.count && mr_str_eq(mr_intern_text(&j->b->ops, last), name)) return true;
    if (mr_intern_find(&j->b->ops, name, mr_intern_hash(&j->b->ops, name)) != MR_INTERN_NONE)
        return true;
    struct mr_graph_op_info info;
    return j->catalogue->find(j->catalogue->ctx, name, &info);
}

static struct mr_buf *out_of(struct mr_json *j)
{
    return j->plain ? j->plain : mr_builder_args(j->b);
}

/* ---- containers ------------------------------------------------------------------------------ */

static int put_list(struct mr_json *j, yyjson_val *v, struct mr_json_mode mode, unsigned depth)
{
    mr_pack_list(out_of(j), (uint32_t)yyjson_arr_size(v));
    return push(j,
        (struct mr_json_frame){
            .kind = FRAME_LIST, .mode = mode, .depth = depth + 1, .list = yyjson_arr_iter_with(v)});
}

static int put_map(struct mr_json *j, yyjson_val *v, struct mr_json_mode mode, unsigned depth)
{
    int err = mr_json_no_duplicates(j, v);
    if (err) return err;
    mr_pack_map(out_of(j), (uint32_t)yyjson_obj_size(v));
    return push(j,
        (struct mr_json_frame){
            .kind = FRAME_MAP, .mode = mode, .depth = depth + 1, .map = yyjson_obj_iter_with(v)});
}

static int put_each(struct mr_json *j, yyjson_val *v, struct mr_json_mode mode, unsigned depth)
{
    struct mr_json_loop *loop = mr_alloc(sizeof *loop);
    int err = mr_json_loop_open(j, yyjson_obj_get(v, "for"), loop);
    if (err) {
        mr_release(loop);
        return err;
    }
    uint64_t rounds = loop->rounds;
    if (rounds > MR_LITERAL_BYTES_MAX) {
        mr_release(loop);
        return mr_fail(j->e, MR_ELIMIT, "\"each\": a list of %llu items is too long",
            (unsigned long long)rounds);
    }
    mr_pack_list(out_of(j), (uint32_t)rounds);
    return push(j, (struct mr_json_frame){.kind = FRAME_EACH,
                       .mode = mode,
                       .depth = depth + 1,
                       .loop = loop,
                       .each = yyjson_obj_get(v, "each")});
}

static bool is_each(yyjson_val *v)
{
    return unsafe_yyjson_is_obj(v) && yyjson_obj_size(v) == 2 && yyjson_obj_get(v, "each") &&
           yyjson_obj_get(v, "for");
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return mr_str_cmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static int sort_named(struct mr_json *j, yyjson_val *kwargs, struct mr_json_frame *frame)
{
    if (!unsafe_yyjson_is_obj(kwargs))
        return mr_fail(
            j->e, MR_EINVAL, "\"kwargs\" is %s, but must be an object", mr_json_kind(kwargs));
    int err = mr_json_no_duplicates(j, kwargs);
    if (err) return err;
    if (!yyjson_obj_size(kwargs)) return MR_OK;
    frame->named = mr_alloc_array(yyjson_obj_size(kwargs), sizeof *frame->named);
    yyjson_obj_iter it = yyjson_obj_iter_with(kwargs);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it))
        frame->named[frame->named_count++] =
            (struct named){mr_json_text(k), yyjson_obj_iter_get_val(k)};
    qsort(frame->named, frame->named_count, sizeof *frame->named, by_name);
    if (frame->named[0].name.n) return MR_OK;
    mr_release(frame->named);
    return mr_fail(j->e, MR_EINVAL, "\"kwargs\" has an empty name");
}

/* Opens a task and pushes two frames: one for the task, and one for its positional arguments. */
static int begin_task(struct mr_json *j, uint32_t node, struct mr_str op, yyjson_val *args,
    yyjson_val *kwargs, bool skip_first, unsigned depth)
{
    struct mr_json_mode mode = {true, true};
    struct mr_json_frame frame = {.kind = FRAME_TASK, .mode = mode, .depth = depth, .node = node};
    int err = kwargs ? sort_named(j, kwargs, &frame) : MR_OK;
    if (err) return err;
    frame.is_outermost = !j->b->open_count;
    err = mr_builder_task(j->b, node, op, j->e);
    if (err) {
        mr_release(frame.named);
        return err;
    }
    struct mr_buf *out = mr_builder_args(j->b);
    if (frame.named_count) {
        mr_pack_map(out, frame.named_count + 1);
        mr_pack_text(out, (struct mr_str){0});
    }
    err = push(j, frame);
    if (err) return err;
    if (!args) {
        mr_pack_list(out, 0);
        return MR_OK;
    }
    if (is_each(args)) return put_each(j, args, mode, depth);
    if (!unsafe_yyjson_is_arr(args))
        return mr_fail(j->e, MR_EINVAL, "\"args\" is %s, but must be a list", mr_json_kind(args));
    struct mr_json_frame list = {
        .kind = FRAME_LIST, .mode = mode, .depth = depth + 1, .list = yyjson_arr_iter_with(args)};
    if (skip_first) (void)yyjson_arr_iter_next(&list.list);
    mr_pack_list(out, (uint32_t)yyjson_arr_size(args) - (skip_first ? 1 : 0));
    return push(j, list);
}

static int put_nested(struct mr_json *j, struct mr_str op, yyjson_val *args, yyjson_val *kwargs,
    bool skip_first, unsigned depth)
{
    mr_assert(j->b->open_count);
    uint32_t node = 0;
    int err = mr_builder_node_under(j->b, j->b->open[j->b->open_count - 1].node, &node, j->e);
    if (err) return err;
    return begin_task(j, node, op, args, kwargs, skip_first, depth + 1);
}

/* Writes a task that is an argument: {"op": …, "args": […], "kwargs": {…}}. Such a task has no
 * options; only an entry has options. */
static int put_nested_object(struct mr_json *j, yyjson_val *v, unsigned depth)
{
    static const char *const known[] = {"op", "args", "kwargs"};
    yyjson_val *fields[3] = {0};
    yyjson_obj_iter it = yyjson_obj_iter_with(v);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        size_t at = 0;
        while (at < 3 && !mr_str_eq(mr_json_text(k), mr_str(known[at])))
            at++;
        if (at == 3) return mr_json_unknown(j, "field of a nested task", mr_json_text(k), known, 3);
        if (fields[at]) return twice(j, mr_json_text(k));
        fields[at] = yyjson_obj_iter_get_val(k);
    }
    int err = MR_OK;
    yyjson_val *op = mr_json_resolve(j, fields[0], NULL, &err);
    if (err) return err;
    if (!yyjson_is_str(op))
        return mr_fail(j->e, MR_EINVAL, "\"op\" is %s, but must be a text", mr_json_kind(op));
    return put_nested(j, mr_json_text(op), fields[1], fields[2], false, depth);
}

static int finish_task(struct mr_json *j, const struct mr_json_frame *frame)
{
    mr_release(frame->named);
    int err = mr_builder_task_end(j->b, j->e);
    if (err || frame->is_outermost) return err;
    return mr_builder_input(j->b, frame->node, j->e);
}

/* ---- references ------------------------------------------------------------------------------ */

static int put_ref(struct mr_json *j, struct mr_str key)
{
    uint32_t node = 0;
    int err = mr_builder_ref(j->b, key, &node, j->e);
    if (err) return err;
    return mr_builder_input(j->b, node, j->e);
}

static int put_object(struct mr_json *j, struct mr_str id_text)
{
    mr_object_id id;
    if (mr_object_id_parse(id_text, &id))
        return mr_fail(j->e, MR_EINVAL,
            "\"%.*s\" is no object id (32 hexadecimal digits); a stored object's name is given "
            "as {\"name\": …}",
            MR_SHOWN(id_text));
    uint32_t node = 0;
    int err = mr_builder_object_node(j->b, id, &node, j->e);
    if (err) return err;
    return mr_builder_input(j->b, node, j->e);
}

static int put_name(struct mr_json *j, struct mr_str name)
{
    uint32_t node = 0;
    int err = mr_builder_name_node(j->b, name, &node, j->e);
    if (err) return err;
    return mr_builder_input(j->b, node, j->e);
}

/* put and put_special call each other. This recursion is one level deep, because inside a literal
 * or a value no object has a special meaning. */
static int put(struct mr_json *j, yyjson_val *v, struct mr_json_mode mode, unsigned depth);

/* Writes an object with one member that has a special meaning, such as {"ref": key}. `*taken`
 * false: the object has no such member. */
static int put_special(struct mr_json *j, yyjson_val *v, unsigned depth, bool *taken)
{
    yyjson_obj_iter it = yyjson_obj_iter_with(v);
    yyjson_val *key = yyjson_obj_iter_next(&it), *value = yyjson_obj_iter_get_val(key);
    struct mr_str name = mr_json_text(key);
    *taken = true;
    if (mr_str_eq(name, MR_STR("literal")))
        return put(j, value, (struct mr_json_mode){false, false}, depth);
    if (mr_str_eq(name, MR_STR("value")))
        return put(j, value, (struct mr_json_mode){false, true}, depth);
    int (*put_it)(struct mr_json *, struct mr_str) = mr_str_eq(name, MR_STR("ref")) ? put_ref
                                                     : mr_str_eq(name, MR_STR("object"))
                                                         ? put_object
                                                     : mr_str_eq(name, MR_STR("name")) ? put_name
                                                                                       : NULL;
    *taken = put_it != NULL;
    if (!put_it) return MR_OK;
    int err = MR_OK;
    value = mr_json_resolve_text(j, value, &err);
    if (err) return err;
    if (!yyjson_is_str(value))
        return mr_fail(j->e, MR_EINVAL,
            "\"%.*s\" is %s, but must be a text; for a plain object write {\"literal\": …}",
            MR_STR_ARG(name), mr_json_kind(value));
    return put_it(j, mr_json_text(value));
}

static int put_dict(struct mr_json *j, yyjson_val *v, struct mr_json_mode mode, unsigned depth)
{
    if (mode.refs) {
        bool taken = false;
        if (yyjson_obj_size(v) == 1) {
            int err = put_special(j, v, depth, &taken);
            if (err || taken) return err;
        }
        if (yyjson_obj_get(v, "op")) return put_nested_object(j, v, depth);
        if (is_each(v)) return put_each(j, v, mode, depth);
    }
    return put_map(j, v, mode, depth);
}

static int put_array(struct mr_json *j, yyjson_val *v, struct mr_json_mode mode, unsigned depth)
{
    if (mode.refs && j->dsk && yyjson_arr_size(v)) {
        yyjson_val *first = yyjson_arr_get_first(v);
        if (unsafe_yyjson_is_str(first) && mr_json_is_op(j, mr_json_text(first)))
            return put_nested(j, mr_json_text(first), v, NULL, true, depth);
    }
    return put_list(j, v, mode, depth);
}

static int put_text(struct mr_json *j, yyjson_val *v, struct mr_json_mode mode)
{
    struct mr_str s = mr_json_text(v);
    if (mode.refs && j->dsk) {
        uint32_t node = mr_builder_find(j->b, s);
        if (node != MR_NODE_NONE) return mr_builder_input(j->b, node, j->e);
    }
    mr_pack_text(out_of(j), s);
    return MR_OK;
}

static int too_big(struct mr_json *j, yyjson_val *v)
{
    struct mr_str digits = mr_str_of(yyjson_get_raw(v), yyjson_get_len(v));
    return mr_fail(j->e, MR_ERANGE,
        "the number %.*s does not fit: integers reach from -2^63 to 2^64-1, others are doubles",
        (int)MR_MIN(digits.n, (size_t)60), digits.p);
}

/* Writes one value, or the head of a container and a frame for its content. */
static int put(struct mr_json *j, yyjson_val *v, struct mr_json_mode mode, unsigned depth)
{
    int err = MR_OK;
    bool from_param = false;
    if (mode.substitute) {
        v = mr_json_resolve(j, v, &from_param, &err);
        if (err) return err;
    }
    struct mr_buf *out = out_of(j);
    switch (yyjson_get_type(v)) {
    case YYJSON_TYPE_NULL: mr_pack_nil(out); return MR_OK;
    case YYJSON_TYPE_BOOL: mr_pack_bool(out, yyjson_get_bool(v)); return MR_OK;
    case YYJSON_TYPE_NUM:
        if (yyjson_is_uint(v))
            mr_pack_uint(out, yyjson_get_uint(v));
        else if (yyjson_is_sint(v))
            mr_pack_int(out, yyjson_get_sint(v));
        else
            mr_pack_float(out, yyjson_get_real(v));
        return MR_OK;
    case YYJSON_TYPE_RAW: return too_big(j, v);
    case YYJSON_TYPE_STR: return put_text(j, v, mode);
    case YYJSON_TYPE_ARR:
    case YYJSON_TYPE_OBJ:
        if (from_param) /* a `${…}` inside a parameter's value is data */
            mode = (struct mr_json_mode){false, false};
        return yyjson_is_arr(v) ? put_array(j, v, mode, depth) : put_dict(j, v, mode, depth);
    default: return mr_fail(j->e, MR_EINTERNAL, "a JSON value of no known type");
    }
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Writes the next value of the innermost frame, or ends the frame. */
static int step(struct mr_json *j)
{
    struct mr_json_frame *f = &j->frames[j->frames_count - 1];
    struct mr_json_mode mode = f->mode;
    unsigned depth = f->depth;
    yyjson_val *v = NULL;
    switch (f->kind) {
    case FRAME_LIST: v = yyjson_arr_iter_next(&f->list); break;
    case FRAME_MAP:
        v = yyjson_obj_iter_next(&f->map);
        if (!v) break;
        mr_pack_text(out_of(j), mr_json_text(v));
        v = yyjson_obj_iter_get_val(v);
        break;
    case FRAME_EACH:
        if (mr_json_loop_next(j, f->loop)) {
            if (mr_buf_status(mr_builder_args(j->b)))
                return mr_fail(
                    j->e, MR_ELIMIT, "\"each\" writes more than %zu bytes", MR_LITERAL_BYTES_MAX);
            v = f->each;
            break;
        }
        mr_json_loop_close(j, f->loop);
        mr_release(f->loop);
        break;
    case FRAME_TASK:
        if (f->named_at == f->named_count) break;
        mr_pack_text(out_of(j), f->named[f->named_at].name);
        v = f->named[f->named_at++].value;
        break;
    }
    if (v) return put(j, v, mode, depth);
    struct mr_json_frame done = *f;
    j->frames_count--;
    return done.kind == FRAME_TASK ? finish_task(j, &done) : MR_OK;
}

static int run(struct mr_json *j, int err)
{
    while (!err && j->frames_count)
        err = step(j);
    while (j->frames_count) { /* only after an error are frames left */
        struct mr_json_frame *f = &j->frames[--j->frames_count];
        mr_release(f->loop);
        mr_release(f->named);
    }
    return err;
}

int mr_json_write(struct mr_json *j, yyjson_val *v, struct mr_json_mode mode, unsigned depth)
{
    mr_assert(!j->frames_count);
    return run(j, put(j, v, mode, depth));
}

/* Writes a task whose positional arguments are a plain list, the most common form. Scalar arguments
 * need no frames. */
static int plain_task(
    struct mr_json *j, uint32_t node, struct mr_str op, yyjson_val *args, bool skip_first)
{
    int err = mr_builder_task(j->b, node, op, j->e);
    if (err) return err;
    mr_pack_list(mr_builder_args(j->b), (uint32_t)yyjson_arr_size(args) - (skip_first ? 1 : 0));
    yyjson_arr_iter it = yyjson_arr_iter_with(args);
    if (skip_first) (void)yyjson_arr_iter_next(&it);
    for (yyjson_val *v = yyjson_arr_iter_next(&it); v && !err; v = yyjson_arr_iter_next(&it)) {
        err = put(j, v, (struct mr_json_mode){true, true}, 2);
        if (j->frames_count) err = run(j, err);
    }
    return err ? err : mr_builder_task_end(j->b, j->e);
}

int mr_json_task(struct mr_json *j, uint32_t node, struct mr_str op, yyjson_val *args,
    yyjson_val *kwargs, bool skip_first)
{
    mr_assert(!j->frames_count);
    if (args && !kwargs && unsafe_yyjson_is_arr(args))
        return plain_task(j, node, op, args, skip_first);
    return run(j, begin_task(j, node, op, args, kwargs, skip_first, 1));
}

int mr_json_pack(struct mr_json *j, yyjson_val *v, struct mr_buf *out)
{
    j->plain = out;
    int err = mr_json_write(j, v, (struct mr_json_mode){false, false}, 0);
    j->plain = NULL;
    return err;
}
