/* Writes a graph as bytes, and reads it back. columns.h describes the sections of these bytes. */
#include "graph/bytes/bytes.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/pack.h"
#include "graph/args.h"
#include "graph/columns.h"
#include "graph/intern.h"
#include "graph/loop.h"
#include "graph/int_column.h"
#include "graph/options.h"
#include "graph/options_pack.h"

#include <inttypes.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ---- writing --------------------------------------------------------------------------------- */

struct writer {
    const struct mr_graph *g;
    /* The sections that are made in memory before writing begins. */
    struct mr_buf packs[MR_COLUMNS_ALL];
    uint64_t total;
    const struct mr_graph_pieces *pieces;
    unsigned char *at; /* where the next byte of the current piece is written */
    size_t left;       /* bytes that are free in the current piece */
    uint64_t to_come;  /* bytes of the pieces after the current one */
    XXH3_state_t sum;
    struct mr_int_column numbers[MR_COLUMNS_ALL]; /* the sections that are columns of numbers */
};

static void put(struct writer *w, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    if (n) (void)XXH3_64bits_update(&w->sum, p, n);
    while (n) {
        if (!w->left) {
            w->left = (size_t)MR_MIN((uint64_t)w->pieces->bytes, w->to_come);
            w->to_come -= w->left;
            w->at = w->pieces->next(w->pieces->ctx, w->left, w->total);
        }
        size_t some = MR_MIN(n, w->left);
        memcpy(w->at, p, some);
        w->at += some;
        w->left -= some;
        p += some;
        n -= some;
    }
}

static void head(struct writer *w, enum mr_column column, uint32_t form, uint64_t n)
{
    uint32_t numbers[2] = {column, form};
    put(w, numbers, sizeof numbers);
    put(w, &n, sizeof n);
}

static void section(struct writer *w, enum mr_column column, const void *p, size_t n)
{
    head(w, column, MR_INT_COLUMN_FULL, n);
    put(w, p, n);
}

/* Lists the columns of numbers and chooses the form of each. */
static void choose_numbers(struct writer *w)
{
    const struct mr_graph *g = w->g;
    uint32_t n = g->nodes_count;
    struct mr_int_column *to = w->numbers;
    to[MR_COLUMN_KIND] = (struct mr_int_column){.p = g->kind, .count = n, .bytes = 1};
    to[MR_COLUMN_OP] = (struct mr_int_column){.p = g->op, .count = n, .bytes = 2};
    to[MR_COLUMN_KEY_N] = (struct mr_int_column){.p = g->key_at,
        .count = n,
        .more = g->culled_key_at,
        .more_count = g->culled_count,
        .bytes = 2,
        .is_offsets = true};
    to[MR_COLUMN_ARGS_OF] = (struct mr_int_column){.p = g->args_of, .count = n, .bytes = 4};
    to[MR_COLUMN_ARGS_N] = (struct mr_int_column){
        .p = g->args_at, .count = g->args_count, .bytes = 4, .is_offsets = true};
    to[MR_COLUMN_INPUT_N] =
        (struct mr_int_column){.p = g->input_at, .count = n, .bytes = 4, .is_offsets = true};
    to[MR_COLUMN_INPUTS] =
        (struct mr_int_column){.p = g->inputs, .count = g->input_at[n], .bytes = 4};
    to[MR_COLUMN_OPTION_OF] =
        (struct mr_int_column){.p = g->option_of, .count = g->option_of ? n : 0, .bytes = 4};
    to[MR_COLUMN_TARGETS] =
        (struct mr_int_column){.p = g->targets, .count = g->targets_count, .bytes = 4};
    for (unsigned i = 0; i < MR_COLUMNS_ALL; i++)
        if (to[i].bytes) mr_int_column_choose(&to[i]);
    /* The column of inputs never has the form SAME, because the reader learns the number of inputs
     * from the section's size alone. */
    struct mr_int_column *in = &to[MR_COLUMN_INPUTS];
    if (in->form == MR_INT_COLUMN_SAME) in->form = MR_INT_COLUMN_FULL;
}

static void write_numbers(struct writer *w, enum mr_column column)
{
    const struct mr_int_column *c = &w->numbers[column];
    unsigned char some[MR_INT_COLUMN_SOME * 4 + 4];
    head(w, column, c->form, mr_int_column_bytes(c));
    if (!c->form && !c->is_offsets) {
        put(w, c->p, mr_int_column_bytes(c));
        return;
    }
    for (uint32_t from = 0; from < c->count + c->more_count;) {
        size_t n = 0;
        from += mr_int_column_write(c, from, some, &n);
        put(w, some, n);
    }
}

static void write_keys(struct writer *w)
{
    const struct mr_graph *g = w->g;
    uint32_t kept = g->key_at[g->nodes_count], culled = g->culled_key_at[g->culled_count];
    write_numbers(w, MR_COLUMN_KEY_N);
    head(w, MR_COLUMN_KEYS, MR_INT_COLUMN_FULL, (uint64_t)kept + culled);
    put(w, g->keys, kept);
    put(w, g->culled_keys, culled);
}

static void write_pack(struct writer *w, enum mr_column column)
{
    section(w, column, w->packs[column].p, w->packs[column].n);
}

/* Makes in memory the sections that are not columns of numbers. */
static int make_packs(struct writer *w, size_t bytes_max)
{
    const struct mr_graph *g = w->g;
    for (unsigned i = 0; i < MR_ARRAY_LEN(w->packs); i++)
        mr_buf_init(&w->packs[i], bytes_max);
    for (uint32_t i = 0; i < g->options_count; i++)
        mr_task_options_pack(&w->packs[MR_COLUMN_OPTIONS], &g->options[i]);
    for (uint32_t i = 0; i < g->ops_count; i++)
        mr_pack_text(&w->packs[MR_COLUMN_OPS], g->ops[i]);
    mr_job_options_pack(&w->packs[MR_COLUMN_JOB], &g->job);
    if (g->slot_of) {
        struct mr_buf *slots = &w->packs[MR_COLUMN_SLOTS];
        mr_graph_loops_write(g, &w->packs[MR_COLUMN_LOOPS]);
        mr_buf_add(slots, g->slot_of, (size_t)g->nodes_count * 4);
        mr_buf_add(slots, g->round_of, (size_t)g->nodes_count * 4);
    }
    int err = MR_OK;
    for (unsigned i = 0; i < MR_ARRAY_LEN(w->packs); i++)
        if (!err) err = mr_buf_status(&w->packs[i]);
    return err;
}

static uint32_t sections_of(const struct mr_graph *g)
{
    return (g->slot_of ? MR_COLUMNS_ALL : MR_COLUMNS_END) - 1;
}

static void measure(struct writer *w)
{
    const struct mr_graph *g = w->g;
    uint64_t frame = 16 + 8, head_bytes = 24, n = g->nodes_count;
    w->total = frame + 16 * (uint64_t)sections_of(g) + head_bytes;
    w->total += (uint64_t)g->key_at[n] + g->culled_key_at[g->culled_count];
    w->total += g->args_at[g->args_count];
    for (unsigned i = 0; i < MR_COLUMNS_ALL; i++)
        if (w->numbers[i].bytes) w->total += mr_int_column_bytes(&w->numbers[i]);
    for (unsigned i = 0; i < MR_ARRAY_LEN(w->packs); i++)
        w->total += w->packs[i].n;
    w->to_come = w->total;
}

static void write_all(struct writer *w)
{
    const struct mr_graph *g = w->g;
    uint32_t numbers[] = {MR_COLUMNS_VERSION_COMPACT, sections_of(g)};
    uint32_t counts[] = {g->nodes_count, g->culled_count, g->args_count, g->options_count,
        g->ops_count, g->targets_count};
    (void)XXH3_64bits_reset(&w->sum);
    put(w, MR_COLUMNS_MAGIC, 8);
    put(w, numbers, sizeof numbers);
    section(w, MR_COLUMN_HEAD, counts, sizeof counts);
    write_numbers(w, MR_COLUMN_KIND);
    write_numbers(w, MR_COLUMN_OP);
    write_keys(w);
    write_numbers(w, MR_COLUMN_ARGS_OF);
    write_numbers(w, MR_COLUMN_ARGS_N);
    section(w, MR_COLUMN_ARGS, g->args, g->args_at[g->args_count]);
    write_numbers(w, MR_COLUMN_INPUT_N);
    write_numbers(w, MR_COLUMN_INPUTS);
    write_numbers(w, MR_COLUMN_OPTION_OF);
    write_pack(w, MR_COLUMN_OPTIONS);
    write_pack(w, MR_COLUMN_OPS);
    write_numbers(w, MR_COLUMN_TARGETS);
    write_pack(w, MR_COLUMN_JOB);
    if (g->slot_of) {
        write_pack(w, MR_COLUMN_LOOPS);
        write_pack(w, MR_COLUMN_SLOTS);
    }
    uint64_t sum = XXH3_64bits_digest(&w->sum);
    if (!sum) sum = 1; /* in a file, the checksum 0 means that there is none */
    put(w, &sum, sizeof sum);
    mr_assert(!w->left && !w->to_come);
}

int mr_graph_to_pieces(
    const struct mr_graph *g, const struct mr_graph_pieces *to, uint64_t *total, struct mr_error *e)
{
    struct writer w = {.g = g, .pieces = to};
    int err = make_packs(&w, (size_t)to->bytes_max);
    choose_numbers(&w);
    measure(&w);
    if (err || w.total > to->bytes_max)
        err = mr_fail(e, MR_ELIMIT, "the graph takes more than %" PRIu64 " bytes", to->bytes_max);
    if (!err) {
        write_all(&w);
        *total = w.total;
    }
    for (unsigned i = 0; i < MR_ARRAY_LEN(w.packs); i++)
        mr_buf_fini(&w.packs[i]);
    return err;
}

static unsigned char *in_one(void *ctx, size_t n, uint64_t total)
{
    (void)total;
    return mr_buf_extend(ctx, n);
}

int mr_graph_to_bytes(const struct mr_graph *g, struct mr_buf *out, struct mr_error *e)
{
    uint64_t total = 0;
    if (mr_buf_status(out)) return MR_ELIMIT;
    const struct mr_graph_pieces whole = {in_one, out, SIZE_MAX, out->bytes_max - out->n};
    return mr_graph_to_pieces(g, &whole, &total, e);
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
        g->ops[i] = mr_text_arena_copy(&g->text, item.bytes);
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
    MR_AUTO(mr_columns_fini) struct mr_columns c;
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
