/* Graphs to columns and back, exactly. */
#include "graph/bytes.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/pack.h"
#include "graph/args.h"
#include "graph/columns.h"
#include "graph/graph_impl.h"
#include "graph/intern.h"
#include "graph/loop.h"
#include "graph/options.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- writing --------------------------------------------------------------------------------- */

/* Starts a section; its size is filled in by `finish`. Returns where it starts. */
static size_t start(struct mr_buf *out, enum mr_column column)
{
    uint32_t head[4] = {column, 0, 0, 0};
    mr_buf_add(out, head, sizeof head);
    return out->n;
}

static void finish(struct mr_buf *out, size_t from)
{
    uint64_t n = out->n - from;
    if (!out->failed) memcpy(out->p + from - 8, &n, sizeof n);
}

static void section(struct mr_buf *out, enum mr_column column, const void *p, size_t n)
{
    size_t at = start(out, column);
    mr_buf_add(out, p, n);
    finish(out, at);
}

static void lengths_u16(struct mr_buf *out, const uint32_t *at, uint32_t count)
{
    unsigned char *p = mr_buf_extend(out, (size_t)count * 2);
    for (uint32_t i = 0; p && i < count; i++) {
        uint16_t n = (uint16_t)(at[i + 1] - at[i]);
        memcpy(p + (size_t)i * 2, &n, 2);
    }
}

static void lengths_u32(
    struct mr_buf *out, enum mr_column column, const uint32_t *at, uint32_t count)
{
    size_t from = start(out, column);
    unsigned char *p = mr_buf_extend(out, (size_t)count * 4);
    for (uint32_t i = 0; p && i < count; i++) {
        uint32_t n = at[i + 1] - at[i];
        memcpy(p + (size_t)i * 4, &n, 4);
    }
    finish(out, from);
}

static void write_keys(const struct mr_graph *g, struct mr_buf *out)
{
    size_t at = start(out, MR_COLUMN_KEY_N);
    lengths_u16(out, g->key_at, g->nodes_count);
    lengths_u16(out, g->culled_key_at, g->culled_count);
    finish(out, at);
    at = start(out, MR_COLUMN_KEYS);
    mr_buf_add(out, g->keys, g->key_at[g->nodes_count]);
    mr_buf_add(out, g->culled_keys, g->culled_key_at[g->culled_count]);
    finish(out, at);
}

static void write_packs(const struct mr_graph *g, struct mr_buf *out)
{
    size_t at = start(out, MR_COLUMN_OPTIONS);
    for (uint32_t i = 0; i < g->options_count; i++)
        mr_task_options_pack(out, &g->options[i]);
    finish(out, at);
    at = start(out, MR_COLUMN_OPS);
    for (uint32_t i = 0; i < g->ops_count; i++)
        mr_pack_text(out, g->ops[i]);
    finish(out, at);
    section(out, MR_COLUMN_TARGETS, g->targets, (size_t)g->targets_count * 4);
    at = start(out, MR_COLUMN_JOB);
    mr_job_options_pack(out, &g->job);
    finish(out, at);
}

int mr_graph_to_bytes(const struct mr_graph *g, struct mr_buf *out, struct mr_error *e)
{
    size_t from = out->n;
    uint32_t n = g->nodes_count;
    uint32_t version = g->slot_of ? MR_COLUMNS_VERSION_LOOPS : MR_COLUMNS_VERSION;
    uint32_t sections = (g->slot_of ? MR_COLUMNS_ALL : MR_COLUMNS_END) - 1;
    mr_buf_add(out, MR_COLUMNS_MAGIC, 8);
    mr_buf_add(out, &version, 4);
    mr_buf_add(out, &sections, 4);
    uint32_t head[] = {
        n, g->culled_count, g->args_count, g->options_count, g->ops_count, g->targets_count};
    section(out, MR_COLUMN_HEAD, head, sizeof head);
    section(out, MR_COLUMN_KIND, g->kind, n);
    section(out, MR_COLUMN_OP, g->op, (size_t)n * 2);
    write_keys(g, out);
    section(out, MR_COLUMN_ARGS_OF, g->args_of, (size_t)n * 4);
    lengths_u32(out, MR_COLUMN_ARGS_N, g->args_at, g->args_count);
    section(out, MR_COLUMN_ARGS, g->args, g->args_at[g->args_count]);
    lengths_u32(out, MR_COLUMN_INPUT_N, g->input_at, n);
    section(out, MR_COLUMN_INPUTS, g->inputs, (size_t)g->input_at[n] * 4);
    section(out, MR_COLUMN_OPTION_OF, g->option_of, g->option_of ? (size_t)n * 4 : 0);
    write_packs(g, out);
    if (g->slot_of) {
        size_t at = start(out, MR_COLUMN_LOOPS);
        mr_graph_loops_write(g, out);
        finish(out, at);
        at = start(out, MR_COLUMN_SLOTS);
        mr_buf_add(out, g->slot_of, (size_t)n * 4);
        mr_buf_add(out, g->round_of, (size_t)n * 4);
        finish(out, at);
    }
    if (mr_buf_status(out))
        return mr_fail(e, MR_ELIMIT, "the graph takes more than %zu bytes", out->bytes_max);
    uint64_t sum = XXH3_64bits(out->p + from, out->n - from);
    if (!sum) sum = 1; /* 0 means none */
    mr_buf_add(out, &sum, sizeof sum);
    return mr_buf_status(out);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void *copy(struct mr_str column)
{
    return mr_copy(column.p, column.n);
}

static uint32_t *offsets_u16(struct mr_str lengths, uint32_t from, uint32_t count)
{
    uint32_t *at = mr_alloc_array((size_t)count + 1, sizeof *at);
    for (uint32_t i = 0; i < count; i++)
        at[i + 1] = at[i] + mr_column_u16(lengths, from + i);
    return at;
}

static uint32_t *offsets_u32(struct mr_str lengths, uint32_t count)
{
    uint32_t *at = mr_alloc_array((size_t)count + 1, sizeof *at);
    for (uint32_t i = 0; i < count; i++)
        at[i + 1] = at[i] + mr_column_u32(lengths, i);
    return at;
}

static int bad(struct mr_error *e, const char *what)
{
    return mr_fail(e, MR_EFORMAT, "bytes of a graph: %s", what);
}

static int read_ops(const struct mr_columns *c, struct mr_graph *g, struct mr_error *e)
{
    struct mr_pack_reader r = mr_pack_read(c->at[MR_COLUMN_OPS]);
    g->ops_count = c->ops_count;
    g->ops = mr_alloc_array((size_t)c->ops_count + 1, sizeof *g->ops);
    for (uint32_t i = 0; i < c->ops_count; i++) {
        struct mr_pack_item item;
        if (mr_pack_next(&r, &item) || item.type != MR_PACK_TEXT ||
            !mr_op_name_is_valid(item.bytes))
            return bad(e, "an op's name is not one");
        g->ops[i] = mr_pool_copy(&g->text, item.bytes);
    }
    return mr_pack_at_end(&r) ? MR_OK : bad(e, "more bytes than ops");
}

static int read_options(const struct mr_columns *c, struct mr_graph *g, struct mr_error *e)
{
    struct mr_pack_reader r = mr_pack_read(c->at[MR_COLUMN_OPTIONS]);
    g->options_count = c->options_count;
    g->options = mr_alloc_array((size_t)c->options_count + 1, sizeof *g->options);
    for (uint32_t i = 0; i < c->options_count; i++) {
        struct mr_str pack;
        if (mr_pack_skip(&r, &pack)) return bad(e, "options are cut short");
        int err = mr_task_options_unpack(pack, &g->text, &g->options[i], e);
        if (!err) err = mr_task_options_check(&g->options[i], e);
        if (err) return err;
    }
    if (c->options_count) g->option_of = copy(c->at[MR_COLUMN_OPTION_OF]);
    return mr_pack_at_end(&r) ? MR_OK : bad(e, "more bytes than options");
}

static int check_order(const struct mr_graph *g, struct mr_error *e)
{
    for (uint32_t v = 0; v < g->nodes_count; v++) {
        for (uint32_t i = g->input_at[v]; i < g->input_at[v + 1]; i++)
            if (g->inputs[i] >= v) return bad(e, "a node stands before its input");
        if (g->kind[v] != MR_NODE_TASK) continue;
        struct mr_args args;
        if (mr_args_open(mr_graph_args(g, v), &args, e)) return bad(e, "arguments of no task");
    }
    return MR_OK;
}

static int check_unique(const struct mr_graph *g, const struct mr_columns *c, struct mr_error *e)
{
    struct mr_intern seen;
    struct mr_str keys = c->at[MR_COLUMN_KEYS];
    mr_intern_init(&seen, g->defined_count);
    int err = MR_OK;
    for (uint32_t i = 0; i < g->defined_count && !err; i++) {
        size_t n = mr_column_u16(c->at[MR_COLUMN_KEY_N], i);
        struct mr_str key = mr_str_of(keys.p, n);
        uint32_t hash = mr_intern_hash(&seen, key);
        if (mr_intern_find(&seen, key, hash) != MR_INTERN_NONE)
            err = bad(e, "a key stands there twice");
        else
            (void)mr_intern_add(&seen, key, hash);
        keys = mr_str_of(keys.p + n, keys.n - n);
    }
    mr_intern_fini(&seen);
    if (err) return err;
    unsigned char *target = mr_alloc(g->nodes_count);
    for (uint32_t i = 0; i < g->targets_count && !err; i++) {
        if (target[g->targets[i]]++) err = bad(e, "a target stands there twice");
    }
    mr_release(target);
    return err;
}

static void read_columns(const struct mr_columns *c, struct mr_graph *g)
{
    uint32_t n = c->nodes_count;
    g->nodes_count = n;
    g->culled_count = c->culled_count;
    g->defined_count = n + c->culled_count;
    g->kind = copy(c->at[MR_COLUMN_KIND]);
    g->op = copy(c->at[MR_COLUMN_OP]);
    g->key_at = offsets_u16(c->at[MR_COLUMN_KEY_N], 0, n);
    g->culled_key_at = offsets_u16(c->at[MR_COLUMN_KEY_N], n, c->culled_count);
    g->keys = mr_copy(c->at[MR_COLUMN_KEYS].p, g->key_at[n]);
    g->culled_keys =
        mr_copy(c->at[MR_COLUMN_KEYS].p + g->key_at[n], g->culled_key_at[c->culled_count]);
    g->args_of = copy(c->at[MR_COLUMN_ARGS_OF]);
    g->args_count = c->args_count;
    g->args_at = offsets_u32(c->at[MR_COLUMN_ARGS_N], c->args_count);
    g->args = copy(c->at[MR_COLUMN_ARGS]);
    g->input_at = offsets_u32(c->at[MR_COLUMN_INPUT_N], n);
    g->inputs = copy(c->at[MR_COLUMN_INPUTS]);
    g->targets = copy(c->at[MR_COLUMN_TARGETS]);
    g->targets_count = c->targets_count;
    for (uint32_t v = 0; v < n; v++)
        g->tasks_count += g->kind[v] == MR_NODE_TASK;
}

int mr_graph_from_bytes(struct mr_str bytes, struct mr_graph **out, struct mr_error *e)
{
    struct mr_columns c;
    int err = mr_columns_read(bytes, true, &c, e);
    if (err) return err;
    if (!c.targets_count) return bad(e, "no target");
    MR_AUTO(mr_graph_free) struct mr_graph *g = mr_alloc(sizeof *g);
    read_columns(&c, g);
    err = read_ops(&c, g, e);
    if (!err) err = read_options(&c, g, e);
    if (!err) err = mr_job_options_unpack(c.at[MR_COLUMN_JOB], &g->text, &g->job, e);
    if (!err) err = mr_job_options_check(&g->job, e);
    if (!err) err = check_order(g, e);
    if (!err) err = check_unique(g, &c, e);
    if (!err && c.at[MR_COLUMN_SLOTS].n)
        err = mr_graph_loops_read(c.at[MR_COLUMN_LOOPS], c.at[MR_COLUMN_SLOTS], g, e);
    if (err) return err;
    mr_graph_link(g);
    if (mr_graph_wants_hashes(g)) mr_graph_rehash(g);
    *out = MR_STEAL(g);
    return MR_OK;
}
