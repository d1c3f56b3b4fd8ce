/* Reads slices of simple entries on several threads (fast_path.h). A slice with any other entry is
 * not simple, and is left to the caller. */
#include "graph/json/fast_path.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/pack.h"
#include "graph/build/column_input.h"
#include "graph/json/scan.h"
#include "graph/parallel.h"

#define LOOK_AHEAD 8
#define SLICES_A_WORKER 8
/* A longer slice is not simple. Only a long entry makes a slice this long. */
#define SLICE_BYTES_MAX (1u << 20)

struct part { /* what has been read of one slice */
    struct mr_json_piece of;
    struct mr_json_columns c;
    bool is_plain;
};

struct worker { /* the memory of one thread */
    char *copy;
    size_t copy_room;
    void *pool;
    size_t pool_room;
};

struct mr_json_fast_path {
    const struct mr_json *j;
    bool has_all; /* true: every key of the job has a node */
    void (*other)(void *ctx);
    void *other_ctx;
    uint32_t workers_count, parts_room;
    struct part *parts;
    struct worker *workers;
};

struct mr_json_fast_path *mr_json_fast_path_new(const struct mr_json *j)
{
    struct mr_json_fast_path *p = mr_alloc(sizeof *p);
    p->j = j;
    p->workers_count = j->b->parallel->workers;
    p->parts_room = p->workers_count * SLICES_A_WORKER;
    p->parts = mr_alloc_array(p->parts_room, sizeof *p->parts);
    p->workers = mr_alloc_array(p->workers_count, sizeof *p->workers);
    for (uint32_t i = 0; i < p->parts_room; i++)
        mr_buf_init(&p->parts[i].c.args, (size_t)SLICE_BYTES_MAX * 8);
    return p;
}

void mr_json_fast_path_free(struct mr_json_fast_path **pp)
{
    struct mr_json_fast_path *p = MR_STEAL(*pp);
    if (!p) return;
    for (uint32_t i = 0; i < p->parts_room; i++) {
        struct mr_json_columns *c = &p->parts[i].c;
        mr_release(c->op);
        mr_release(c->args_bytes);
        mr_release(c->inputs_count);
        mr_release(c->inputs);
        mr_release(c->refs);
        mr_buf_fini(&c->args);
    }
    for (uint32_t i = 0; i < p->workers_count; i++) {
        mr_release(p->workers[i].copy);
        mr_release(p->workers[i].pool);
    }
    mr_release(p->parts);
    mr_release(p->workers);
    mr_release(p);
}

uint32_t mr_json_fast_path_room(const struct mr_json_fast_path *p)
{
    return p->parts_room;
}

/* ---- reading slices, which does not change the builder --------------------------------------- */

static uint32_t key_node(const struct mr_json *j, struct mr_str key)
{
    return mr_intern_find(&j->b->keys, key, mr_intern_hash(&j->b->keys, key));
}

static bool op_of(const struct mr_json *j, struct mr_json_columns *c, yyjson_val *v, uint32_t *op)
{
    return yyjson_is_str(v) && mr_json_columns_op(j, c, mr_json_text(v), op);
}

static bool put_input(struct mr_json_columns *c, uint32_t from, uint32_t node)
{
    uint32_t slot = 0;
    if (node == MR_NODE_NONE || !mr_json_columns_input(c, from, node, &slot)) return false;
    mr_pack_input(&c->args, slot);
    return true;
}

static bool put_number(struct mr_json_columns *c, yyjson_val *v)
{
    switch (yyjson_get_type(v)) {
    case YYJSON_TYPE_NULL: mr_pack_nil(&c->args); return true;
    case YYJSON_TYPE_BOOL: mr_pack_bool(&c->args, yyjson_get_bool(v)); return true;
    case YYJSON_TYPE_NUM:
        if (yyjson_is_uint(v))
            mr_pack_uint(&c->args, yyjson_get_uint(v));
        else if (yyjson_is_sint(v))
            mr_pack_int(&c->args, yyjson_get_sint(v));
        else
            mr_pack_float(&c->args, yyjson_get_real(v));
        return true;
    default: return false;
    }
}

/* Writes a number, a text or {"ref": key} as an argument. `from` is the index of the task's first
 * input. False: the slice is not simple. */
static bool put_one(
    const struct mr_json_fast_path *all, struct mr_json_columns *c, uint32_t from, yyjson_val *v)
{
    const struct mr_json *j = all->j;
    if (yyjson_is_str(v)) {
        struct mr_str text = mr_json_text(v);
        uint32_t node = j->dsk ? key_node(j, text) : MR_NODE_NONE;
        if (node != MR_NODE_NONE) return put_input(c, from, node);
        if (j->dsk && !all->has_all) return false; /* the text may be a key that comes later */
        mr_pack_text(&c->args, text);
        return true;
    }
    if (!yyjson_is_obj(v)) return put_number(c, v);
    if (yyjson_obj_size(v) != 1) return false;
    yyjson_val *ref = yyjson_obj_get(v, "ref");
    return yyjson_is_str(ref) && put_input(c, from, key_node(j, mr_json_text(ref)));
}

/* Writes the positional arguments. False: the slice is not simple. In dsk a list among the
 * arguments may be a task, so it is not simple either. */
static bool put_args(const struct mr_json_fast_path *all, struct mr_json_columns *c,
    yyjson_val *args, bool skip_first)
{
    yyjson_arr_iter lists[MR_JSON_FAST_LISTS_MAX];
    uint32_t depth = 1, from = c->inputs_all;
    mr_pack_list(&c->args, (uint32_t)yyjson_arr_size(args) - skip_first);
    lists[0] = yyjson_arr_iter_with(args);
    if (skip_first) (void)yyjson_arr_iter_next(&lists[0]);
    while (depth) {
        yyjson_val *v = yyjson_arr_iter_next(&lists[depth - 1]);
        if (!v) {
            depth--;
        } else if (!yyjson_is_arr(v)) {
            if (!put_one(all, c, from, v)) return false;
        } else {
            if (all->j->dsk || depth == MR_JSON_FAST_LISTS_MAX) return false;
            mr_pack_list(&c->args, (uint32_t)yyjson_arr_size(v));
            lists[depth++] = yyjson_arr_iter_with(v);
        }
    }
    return true;
}

static bool read_object(
    const struct mr_json_fast_path *all, struct mr_json_columns *c, yyjson_val *entry, uint32_t *op)
{
    yyjson_val *name = NULL, *args = NULL, *value = NULL;
    yyjson_obj_iter it = yyjson_obj_iter_with(entry);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        struct mr_str field = mr_json_text(k);
        yyjson_val **at = mr_str_eq(field, MR_STR("op"))      ? &name
                          : mr_str_eq(field, MR_STR("args"))  ? &args
                          : mr_str_eq(field, MR_STR("value")) ? &value
                                                              : NULL;
        if (!at || *at) return false;
        *at = yyjson_obj_iter_get_val(k);
    }
    *op = 0;
    if (value) return !name && !args && put_number(c, value);
    return name && op_of(all->j, c, name, op) && yyjson_is_arr(args) &&
           put_args(all, c, args, false);
}

static bool read_entry(
    const struct mr_json_fast_path *all, struct mr_json_columns *c, yyjson_val *entry, uint32_t *op)
{
    *op = 0;
    if (!all->j->dsk) return yyjson_is_obj(entry) && read_object(all, c, entry, op);
    if (!yyjson_is_arr(entry)) return put_number(c, entry);
    return op_of(all->j, c, yyjson_arr_get_first(entry), op) && put_args(all, c, entry, true);
}

static bool read_entries(
    const struct mr_json_fast_path *all, struct mr_json_columns *c, yyjson_val *object)
{
    const struct mr_json *j = all->j;
    yyjson_obj_iter it = yyjson_obj_iter_with(object), ahead = it;
    for (int i = 0; i < LOOK_AHEAD; i++) {
        yyjson_val *k = yyjson_obj_iter_next(&ahead);
        if (k) mr_json_prefetch(j, yyjson_obj_iter_get_val(k));
    }
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        yyjson_val *next = yyjson_obj_iter_next(&ahead);
        if (next) mr_json_prefetch(j, yyjson_obj_iter_get_val(next));
        size_t args = c->args.n;
        uint32_t inputs = c->inputs_all, i = c->count++;
        if (!read_entry(all, c, yyjson_obj_iter_get_val(k), &c->op[i])) return false;
        if (c->args.n - args > MR_LITERAL_BYTES_MAX)
            return false; /* the reader of the whole text reports the error */
        c->args_bytes[i] = (uint32_t)(c->args.n - args);
        c->inputs_count[i] = c->inputs_all - inputs;
    }
    return !mr_buf_status(&c->args);
}

static void make_room(struct mr_json_columns *c, uint32_t count)
{
    if (count <= c->room) return;
    c->room = count + count / 2;
    size_t bytes = c->room * sizeof(uint32_t);
    c->op = mr_grow(c->op, bytes, bytes);
    c->args_bytes = mr_grow(c->args_bytes, bytes, bytes);
    c->inputs_count = mr_grow(c->inputs_count, bytes, bytes);
}

static void clear(struct mr_json_columns *c)
{
    c->count = c->inputs_all = c->refs_count = 0;
    c->misses_op = false;
    mr_buf_clear(&c->args);
}

static void read_one(void *arg, uint32_t item, uint32_t worker)
{
    struct mr_json_fast_path *all = arg;
    struct part *p = &all->parts[item];
    struct worker *w = &all->workers[worker];
    const struct mr_json_slice *slice = &p->of.slice;
    p->is_plain = false;
    clear(&p->c);
    if (!slice->is_plain || slice->n > SLICE_BYTES_MAX) return;
    make_room(&p->c, slice->keys_count);
    enum mr_json_scan_result direct = mr_json_scan(all->j, &p->of, all->has_all, &p->c);
    p->is_plain = direct == MR_JSON_SCANNED;
    if (direct != MR_JSON_UNUSUAL) return;
    clear(&p->c);
    yyjson_val *object =
        mr_json_parse_slice(p->of.text, slice, &w->copy, &w->copy_room, &w->pool, &w->pool_room);
    if (!object || yyjson_obj_size(object) != slice->keys_count) return;
    p->is_plain = read_entries(all, &p->c, object);
}

static void read_or_other(void *arg, uint32_t item, uint32_t worker)
{
    struct mr_json_fast_path *p = arg;
    if (item)
        read_one(arg, item - 1, worker);
    else
        p->other(p->other_ctx);
}

static void take_pieces(
    struct mr_json_fast_path *p, const struct mr_json_piece *pieces, uint32_t count, bool has_all)
{
    mr_assert(count <= p->parts_room);
    p->has_all = has_all;
    for (uint32_t i = 0; i < count; i++)
        p->parts[i].of = pieces[i];
}

void mr_json_fast_path_read(
    struct mr_json_fast_path *p, const struct mr_json_piece *pieces, uint32_t count, bool has_all)
{
    const struct mr_graph_parallel *parallel = p->j->b->parallel;
    take_pieces(p, pieces, count, has_all);
    parallel->run(parallel->ctx, read_one, p, count);
}

void mr_json_fast_path_read_beside(struct mr_json_fast_path *p, const struct mr_json_piece *pieces,
    uint32_t count, void (*other)(void *ctx), void *ctx)
{
    const struct mr_graph_parallel *parallel = p->j->b->parallel;
    take_pieces(p, pieces, count, false);
    p->other = other;
    p->other_ctx = ctx;
    parallel->run(parallel->ctx, read_or_other, p, count + 1);
}

bool mr_json_fast_path_misses(const struct mr_json_fast_path *p, uint32_t slice, struct mr_str *op)
{
    const struct mr_json_columns *c = &p->parts[slice].c;
    *op = mr_str_of(c->op_text, c->op_bytes);
    return c->misses_op;
}

/* ---- adding ---------------------------------------------------------------------------------- */

int mr_json_fast_path_add(struct mr_json_fast_path *all, uint32_t slice, bool *taken)
{
    const struct part *p = &all->parts[slice];
    *taken = p->is_plain;
    if (!p->is_plain) return MR_OK;
    const struct mr_node_columns c = {.count = p->c.count,
        .args = mr_buf_str(&p->c.args),
        .op = p->c.op,
        .args_bytes = p->c.args_bytes,
        .inputs_count = p->c.inputs_count,
        .inputs = p->c.inputs,
        .inputs_all = p->c.inputs_all};
    return mr_builder_define_columns(all->j->b, &c, p->of.first, all->j->e);
}
