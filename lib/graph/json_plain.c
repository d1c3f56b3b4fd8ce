#include "graph/json_plain.h"

#include "base/alloc.h"
#include "base/pack.h"
#include "graph/bulk.h"
#include "graph/crew.h"
#include "graph/json_split.h"

#define LOOK_AHEAD 8
#define SLICES_A_HAND 8
#define INPUTS_MAX 64              /* of one entry; who has more is not plain */
#define SLICE_BYTES_MAX (1u << 20) /* an entry may be as long as it likes */
#define LISTS_MAX 8                /* in each other */

struct part { /* a slice as columns */
    struct mr_json_piece of;
    uint32_t count, inputs_all, room, inputs_room;
    uint32_t *op; /* the builder's number and 1; 0: a literal */
    uint32_t *args_bytes, *inputs_count, *inputs;
    struct mr_buf args;
    bool is_plain;
    bool misses_op;
    char op_text[MR_OP_NAME_BYTES_MAX];
    size_t op_bytes;
};

struct hand { /* what it reads in */
    char *copy;
    size_t copy_room;
    void *pool;
    size_t pool_room;
};

struct mr_json_plain {
    const struct mr_json *j;
    bool has_all; /* keys */
    uint32_t hands_count, parts_room;
    struct part *parts;
    struct hand *hands;
};

struct mr_json_plain *mr_json_plain_new(const struct mr_json *j)
{
    struct mr_json_plain *p = mr_alloc(sizeof *p);
    p->j = j;
    p->hands_count = j->b->crew->hands;
    p->parts_room = p->hands_count * SLICES_A_HAND;
    p->parts = mr_alloc_array(p->parts_room, sizeof *p->parts);
    p->hands = mr_alloc_array(p->hands_count, sizeof *p->hands);
    for (uint32_t i = 0; i < p->parts_room; i++)
        mr_buf_init(&p->parts[i].args, (size_t)SLICE_BYTES_MAX * 8);
    return p;
}

void mr_json_plain_free(struct mr_json_plain **pp)
{
    struct mr_json_plain *p = MR_STEAL(*pp);
    if (!p) return;
    for (uint32_t i = 0; i < p->parts_room; i++) {
        mr_release(p->parts[i].op);
        mr_release(p->parts[i].args_bytes);
        mr_release(p->parts[i].inputs_count);
        mr_release(p->parts[i].inputs);
        mr_buf_fini(&p->parts[i].args);
    }
    for (uint32_t i = 0; i < p->hands_count; i++) {
        mr_release(p->hands[i].copy);
        mr_release(p->hands[i].pool);
    }
    mr_release(p->parts);
    mr_release(p->hands);
    mr_release(p);
}

uint32_t mr_json_plain_room(const struct mr_json_plain *p)
{
    return p->parts_room;
}

/* ---- reading: the builder is only looked into --------------------------------------------------
 */

static uint32_t key_node(const struct mr_json *j, struct mr_str key)
{
    return mr_intern_find(&j->b->keys, key, mr_intern_hash(&j->b->keys, key));
}

/* An op that tasks before had; the first one to have it is not plain. */
static bool op_of(const struct mr_json *j, struct part *p, yyjson_val *v, uint32_t *op)
{
    if (!yyjson_is_str(v)) return false;
    struct mr_str name = mr_json_text(v);
    uint32_t found = mr_intern_find(&j->b->ops, name, mr_intern_hash(&j->b->ops, name));
    *op = found + 1;
    if (found != MR_INTERN_NONE) return true;
    p->misses_op = name.n <= sizeof p->op_text;
    p->op_bytes = name.n;
    if (p->misses_op && name.n) memcpy(p->op_text, name.p, name.n);
    return false;
}

static bool put_input(struct part *p, uint32_t from, uint32_t node)
{
    if (node == MR_NODE_NONE) return false;
    uint32_t slot = from;
    while (slot < p->inputs_all && p->inputs[slot] != node)
        slot++;
    if (slot == p->inputs_all) {
        if (slot - from == INPUTS_MAX) return false;
        if (slot == p->inputs_room) {
            p->inputs_room = p->inputs_room * 2 + 1024;
            size_t bytes = p->inputs_room * sizeof *p->inputs;
            p->inputs = mr_grow(p->inputs, bytes, bytes);
        }
        p->inputs[p->inputs_all++] = node;
    }
    mr_pack_input(&p->args, slot - from);
    return true;
}

static bool put_number(struct part *p, yyjson_val *v)
{
    switch (yyjson_get_type(v)) {
    case YYJSON_TYPE_NULL: mr_pack_nil(&p->args); return true;
    case YYJSON_TYPE_BOOL: mr_pack_bool(&p->args, yyjson_get_bool(v)); return true;
    case YYJSON_TYPE_NUM:
        if (yyjson_is_uint(v))
            mr_pack_uint(&p->args, yyjson_get_uint(v));
        else if (yyjson_is_sint(v))
            mr_pack_int(&p->args, yyjson_get_sint(v));
        else
            mr_pack_float(&p->args, yyjson_get_real(v));
        return true;
    default: return false;
    }
}

/* A number, a text, {"ref": key}; not a list. `from`: where the task's inputs begin. */
static bool put_one(const struct mr_json_plain *all, struct part *p, uint32_t from, yyjson_val *v)
{
    const struct mr_json *j = all->j;
    if (yyjson_is_str(v)) {
        struct mr_str text = mr_json_text(v);
        uint32_t node = j->dsk ? key_node(j, text) : MR_NODE_NONE;
        if (node != MR_NODE_NONE) return put_input(p, from, node);
        if (j->dsk && !all->has_all) return false; /* it may be a key that is still to come */
        mr_pack_text(&p->args, text);
        return true;
    }
    if (!yyjson_is_obj(v)) return put_number(p, v);
    if (yyjson_obj_size(v) != 1) return false;
    yyjson_val *ref = yyjson_obj_get(v, "ref");
    return yyjson_is_str(ref) && put_input(p, from, key_node(j, mr_json_text(ref)));
}

/* The positional arguments; in dsk a list in them may be a task. */
static bool put_args(
    const struct mr_json_plain *all, struct part *p, yyjson_val *args, bool skip_first)
{
    yyjson_arr_iter lists[LISTS_MAX];
    uint32_t depth = 1, from = p->inputs_all;
    mr_pack_list(&p->args, (uint32_t)yyjson_arr_size(args) - skip_first);
    lists[0] = yyjson_arr_iter_with(args);
    if (skip_first) (void)yyjson_arr_iter_next(&lists[0]);
    while (depth) {
        yyjson_val *v = yyjson_arr_iter_next(&lists[depth - 1]);
        if (!v) {
            depth--;
        } else if (!yyjson_is_arr(v)) {
            if (!put_one(all, p, from, v)) return false;
        } else {
            if (all->j->dsk || depth == LISTS_MAX) return false;
            mr_pack_list(&p->args, (uint32_t)yyjson_arr_size(v));
            lists[depth++] = yyjson_arr_iter_with(v);
        }
    }
    return true;
}

static bool read_object(
    const struct mr_json_plain *all, struct part *p, yyjson_val *entry, uint32_t *op)
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
    if (value) return !name && !args && put_number(p, value);
    return name && op_of(all->j, p, name, op) && yyjson_is_arr(args) &&
           put_args(all, p, args, false);
}

static bool read_entry(
    const struct mr_json_plain *all, struct part *p, yyjson_val *entry, uint32_t *op)
{
    *op = 0;
    if (!all->j->dsk) return yyjson_is_obj(entry) && read_object(all, p, entry, op);
    if (!yyjson_is_arr(entry)) return put_number(p, entry);
    return op_of(all->j, p, yyjson_arr_get_first(entry), op) && put_args(all, p, entry, true);
}

static bool read_entries(const struct mr_json_plain *all, struct part *p, yyjson_val *object)
{
    const struct mr_json *j = all->j;
    yyjson_obj_iter it = yyjson_obj_iter_with(object), ahead = it;
    for (int i = 0; i < LOOK_AHEAD; i++) {
        yyjson_val *k = yyjson_obj_iter_next(&ahead);
        if (k) mr_json_look_ahead(j, yyjson_obj_iter_get_val(k));
    }
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k; k = yyjson_obj_iter_next(&it)) {
        yyjson_val *next = yyjson_obj_iter_next(&ahead);
        if (next) mr_json_look_ahead(j, yyjson_obj_iter_get_val(next));
        size_t args = p->args.n;
        uint32_t inputs = p->inputs_all, i = p->count++;
        if (!read_entry(all, p, yyjson_obj_iter_get_val(k), &p->op[i])) return false;
        if (p->args.n - args > MR_LITERAL_BYTES_MAX) return false; /* the reader has words for it */
        p->args_bytes[i] = (uint32_t)(p->args.n - args);
        p->inputs_count[i] = p->inputs_all - inputs;
    }
    return !mr_buf_status(&p->args);
}

static void make_room(struct part *p, uint32_t count)
{
    if (count <= p->room) return;
    p->room = count + count / 2;
    size_t bytes = p->room * sizeof(uint32_t);
    p->op = mr_grow(p->op, bytes, bytes);
    p->args_bytes = mr_grow(p->args_bytes, bytes, bytes);
    p->inputs_count = mr_grow(p->inputs_count, bytes, bytes);
}

static void read_one(void *arg, uint32_t item, uint32_t hand)
{
    struct mr_json_plain *all = arg;
    struct part *p = &all->parts[item];
    struct hand *h = &all->hands[hand];
    p->count = p->inputs_all = 0;
    p->is_plain = p->misses_op = false;
    mr_buf_clear(&p->args);
    const struct mr_json_slice *slice = &p->of.slice;
    if (!slice->is_plain || slice->n > SLICE_BYTES_MAX) return;
    yyjson_val *object =
        mr_json_parse_slice(p->of.text, slice, &h->copy, &h->copy_room, &h->pool, &h->pool_room);
    if (!object || yyjson_obj_size(object) != slice->keys_count) return;
    make_room(p, slice->keys_count);
    p->is_plain = read_entries(all, p, object);
}

void mr_json_plain_read(
    struct mr_json_plain *p, const struct mr_json_piece *pieces, uint32_t count, bool has_all)
{
    const struct mr_graph_crew *crew = p->j->b->crew;
    p->has_all = has_all;
    for (uint32_t i = 0; i < count; i++)
        p->parts[i].of = pieces[i];
    crew->run(crew->ctx, read_one, p, count);
}

bool mr_json_plain_misses(const struct mr_json_plain *p, uint32_t slice, struct mr_str *op)
{
    const struct part *part = &p->parts[slice];
    *op = mr_str_of(part->op_text, part->op_bytes);
    return part->misses_op;
}

/* ---- adding ------------------------------------------------------------------------------------
 */

int mr_json_plain_add(struct mr_json_plain *all, uint32_t slice, bool *taken)
{
    const struct part *p = &all->parts[slice];
    *taken = p->is_plain;
    if (!p->is_plain) return MR_OK;
    const struct mr_bulk c = {.count = p->count,
        .args = mr_buf_str(&p->args),
        .op = p->op,
        .args_bytes = p->args_bytes,
        .inputs_count = p->inputs_count,
        .inputs = p->inputs,
        .inputs_all = p->inputs_all};
    return mr_builder_define_bulk(all->j->b, &c, p->of.first, all->j->e);
}
