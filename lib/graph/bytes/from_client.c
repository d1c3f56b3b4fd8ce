/* Reads a client's graph in the journal's format, and passes each node to the builder. The builder
 * checks the node. The nodes may have any order. */
#include "base/alloc.h"
#include "base/assert.h"
#include "base/pack.h"
#include "graph/build/builder_state.h"
#include "graph/bytes/bytes.h"
#include "graph/columns.h"
#include "graph/options.h"
#include "graph/options_pack.h"

struct adder {
    struct mr_builder *b;
    struct mr_columns c;
    uint32_t *node;      /* the builder's node, by number in the columns */
    struct mr_str *args; /* arguments, by their number in the columns */
    struct mr_str *ops;
    struct mr_task_options *options;
    struct mr_text_arena text;
    struct mr_error *e;
};

static int find_keys(struct adder *a)
{
    struct mr_str keys = a->c.at[MR_COLUMN_KEYS];
    if (!a->b->keys.count) mr_builder_reserve(a->b, a->c.nodes_count);
    for (uint32_t v = 0; v < a->c.nodes_count; v++) {
        size_t n = mr_column_u16(a->c.at[MR_COLUMN_KEY_N], v);
        int err = mr_builder_node(a->b, mr_str_of(keys.p, n), &a->node[v], a->e);
        if (err) return err;
        keys = mr_str_of(keys.p + n, keys.n - n);
    }
    return MR_OK;
}

static int find_texts(struct adder *a)
{
    struct mr_str args = a->c.at[MR_COLUMN_ARGS];
    for (uint32_t i = 0; i < a->c.args_count; i++) {
        size_t n = mr_column_u32(a->c.at[MR_COLUMN_ARGS_N], i);
        a->args[i] = mr_str_of(args.p, n);
        args = mr_str_of(args.p + n, args.n - n);
    }
    struct mr_pack_reader r = mr_pack_read(a->c.at[MR_COLUMN_OPS]);
    for (uint32_t i = 0; i < a->c.ops_count; i++) {
        struct mr_pack_item item;
        if (mr_pack_next(&r, &item) || item.type != MR_PACK_TEXT)
            return mr_fail(a->e, MR_EFORMAT, "bytes of a graph: an op's name is not one");
        a->ops[i] = item.bytes;
    }
    r = mr_pack_read(a->c.at[MR_COLUMN_OPTIONS]);
    for (uint32_t i = 0; i < a->c.options_count; i++) {
        struct mr_str pack;
        if (mr_pack_skip(&r, &pack))
            return mr_fail(a->e, MR_EFORMAT, "bytes of a graph: options are cut short");
        int err = mr_task_options_unpack(pack, &a->text, &a->options[i], a->e);
        if (err) return err;
    }
    return MR_OK;
}

/* Adds a task with its inputs in the order of the columns, so that the builder numbers the inputs
 * in the way the arguments refer to them. */
static int add_task(struct adder *a, uint32_t v, uint32_t inputs_at)
{
    struct mr_str op = a->ops[mr_column_u16(a->c.at[MR_COLUMN_OP], v)];
    int err = mr_builder_task(a->b, a->node[v], op, a->e);
    uint32_t count = mr_column_u32(a->c.at[MR_COLUMN_INPUT_N], v);
    for (uint32_t i = 0; i < count && !err; i++) {
        uint32_t slot = 0;
        uint32_t input = mr_column_u32(a->c.at[MR_COLUMN_INPUTS], inputs_at + i);
        err = mr_builder_slot(a->b, a->node[input], &slot, a->e);
        if (!err && slot != i)
            err = mr_fail(a->e, MR_EFORMAT, "bytes of a graph: two inputs of one key");
    }
    if (err) return err;
    mr_buf_add_str(mr_builder_args(a->b), a->args[mr_column_u32(a->c.at[MR_COLUMN_ARGS_OF], v)]);
    return mr_builder_task_end(a->b, a->e);
}

static int add_leaf(struct adder *a, uint32_t v, enum mr_node_kind kind)
{
    struct mr_str pack = a->args[mr_column_u32(a->c.at[MR_COLUMN_ARGS_OF], v)];
    struct mr_pack_reader r = mr_pack_read(pack);
    struct mr_pack_item item;
    mr_object_id id;
    if (kind == MR_NODE_LITERAL) return mr_builder_literal(a->b, a->node[v], pack, a->e);
    /* The node stays undefined: the build makes it an alias. */
    if (kind == MR_NODE_ALIAS) return MR_OK;
    int err = mr_pack_next(&r, &item);
    mr_assert(!err);
    if (kind == MR_NODE_NAME) return mr_builder_name(a->b, a->node[v], item.bytes, a->e);
    err = mr_object_id_from_bytes(item.bytes, &id);
    mr_assert(!err);
    return mr_builder_object(a->b, a->node[v], id, a->e);
}

static int add_nodes(struct adder *a)
{
    uint32_t inputs_at = 0;
    for (uint32_t v = 0; v < a->c.nodes_count; v++) {
        enum mr_node_kind kind = (enum mr_node_kind)a->c.at[MR_COLUMN_KIND].p[v];
        int err = kind == MR_NODE_TASK ? add_task(a, v, inputs_at) : add_leaf(a, v, kind);
        if (err) return err;
        inputs_at += mr_column_u32(a->c.at[MR_COLUMN_INPUT_N], v);
        if (!a->c.options_count) continue;
        uint32_t set = mr_column_u32(a->c.at[MR_COLUMN_OPTION_OF], v);
        if (set == MR_NODE_NONE) continue;
        err = mr_builder_options(a->b, a->node[v], &a->options[set], a->e);
        if (err) return err;
    }
    for (uint32_t i = 0; i < a->c.targets_count; i++) {
        uint32_t target = mr_column_u32(a->c.at[MR_COLUMN_TARGETS], i);
        int err = mr_builder_target(a->b, a->node[target], a->e);
        if (err) return err;
    }
    struct mr_job_options job;
    int err = mr_job_options_unpack(a->c.at[MR_COLUMN_JOB], &a->text, &job, a->e);
    return err ? err : mr_builder_job(a->b, &job, a->e);
}

int mr_builder_add_bytes(struct mr_builder *b, struct mr_str bytes, struct mr_error *e)
{
    struct adder a = {.b = b, .e = e};
    int err = mr_columns_read(bytes, false, &a.c, e);
    if (!err && a.c.at[MR_COLUMN_SLOTS].n)
        err = mr_fail(e, MR_EFORMAT, "bytes of a graph: loops are sent as JSON or as a message");
    if (err) {
        mr_columns_fini(&a.c);
        return err;
    }
    a.node = mr_alloc_array(a.c.nodes_count, sizeof *a.node);
    a.args = mr_alloc_array((size_t)a.c.args_count + 1, sizeof *a.args);
    a.ops = mr_alloc_array((size_t)a.c.ops_count + 1, sizeof *a.ops);
    a.options = mr_alloc_array((size_t)a.c.options_count + 1, sizeof *a.options);
    err = find_keys(&a);
    if (!err) err = find_texts(&a);
    if (!err) err = add_nodes(&a);
    mr_release(a.node);
    mr_release(a.args);
    mr_release(a.ops);
    mr_release(a.options);
    mr_text_arena_fini(&a.text);
    mr_columns_fini(&a.c);
    return err;
}
