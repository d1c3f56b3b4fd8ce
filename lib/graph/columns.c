/* Splits the bytes of a graph into sections and checks the sections (columns.h). */
#include "graph/columns.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/pack.h"
#include "base/utf8.h"
#include "graph/graph.h"
#include "graph/int_column.h"

#include <assert.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "columns are copied as they are");

static int bad(struct mr_error *e, const char *what)
{
    return mr_fail(e, MR_EFORMAT, "bytes of a graph: %s", what);
}

static bool take(struct mr_str *rest, void *out, size_t n)
{
    if (rest->n < n) return false;
    memcpy(out, rest->p, n);
    *rest = mr_str_of(rest->p + n, rest->n - n);
    return true;
}

static int read_frame(
    struct mr_str *rest, bool needs_checksum, struct mr_columns *c, struct mr_error *e)
{
    char magic[8];
    uint32_t version = 0, sections = 0;
    uint64_t sum = 0;
    if (rest->n < 24) return bad(e, "too short");
    struct mr_str all = *rest;
    memcpy(&sum, all.p + all.n - 8, 8);
    rest->n -= 8;
    if (!take(rest, magic, 8) || memcmp(magic, MR_COLUMNS_MAGIC, 8) != 0)
        return bad(e, "they do not start as such");
    if (!take(rest, &version, 4) || !version || version > MR_COLUMNS_VERSION_COMPACT)
        return mr_fail(e, MR_EFORMAT, "bytes of a graph: version %u, this program reads %d to %d",
            version, MR_COLUMNS_VERSION, MR_COLUMNS_VERSION_COMPACT);
    bool is_narrow = version == MR_COLUMNS_VERSION_COMPACT;
    if ((sum || needs_checksum) && XXH3_64bits(all.p, all.n - 8) != sum)
        return bad(e, "the checksum does not agree");
    if (!take(rest, &sections, 4)) return bad(e, "cut short");
    uint32_t end = version == MR_COLUMNS_VERSION || (is_narrow && sections < MR_COLUMNS_ALL - 1)
                       ? MR_COLUMNS_END
                       : MR_COLUMNS_ALL;
    if (sections != end - 1) return bad(e, "a wrong number of sections");
    for (uint32_t i = 1; i < end; i++) {
        uint32_t number = 0;
        uint64_t n = 0;
        if (!take(rest, &number, 4) || !take(rest, &c->form[i], 4) || !take(rest, &n, 8))
            return bad(e, "cut short");
        if (number != i || (c->form[i] && !is_narrow) || n > rest->n)
            return bad(e, "a section is not where it belongs");
        c->at[i] = mr_str_of(rest->p, (size_t)n);
        *rest = mr_str_of(rest->p + n, rest->n - (size_t)n);
    }
    return rest->n ? bad(e, "more bytes than sections") : MR_OK;
}

/* Expands the columns that have a compact form (int_column.h) to full width. Columns of form 0 stay
 * as they are. In versions 1 and 2 of the format all columns have form 0. */
static int read_numbers(struct mr_columns *c, struct mr_error *e)
{
    uint64_t n = c->nodes_count, keys = n + c->culled_count, inputs = c->at[MR_COLUMN_INPUTS].n;
    inputs /= c->form[MR_COLUMN_INPUTS] % MR_INT_COLUMN_SAME
                  ? c->form[MR_COLUMN_INPUTS] % MR_INT_COLUMN_SAME
                  : 4;
    const struct {
        enum mr_column column;
        unsigned bytes;
        uint64_t count;
    } all[] = {{MR_COLUMN_KIND, 1, n}, {MR_COLUMN_OP, 2, n}, {MR_COLUMN_KEY_N, 2, keys},
        {MR_COLUMN_ARGS_OF, 4, n}, {MR_COLUMN_ARGS_N, 4, c->args_count}, {MR_COLUMN_INPUT_N, 4, n},
        {MR_COLUMN_INPUTS, 4, inputs}, {MR_COLUMN_OPTION_OF, 4, c->options_count ? n : 0},
        {MR_COLUMN_TARGETS, 4, c->targets_count}};
    uint64_t widened = 0;
    uint32_t known = 1u << MR_COLUMN_INPUTS;
    /* Each key has at least one byte, so the bytes received bound the memory that is allocated
     * below. */
    if (c->at[MR_COLUMN_KEYS].n < keys) return bad(e, "the keys are cut short");
    for (size_t i = 0; i < MR_ARRAY_LEN(all); i++) {
        known |= 1u << all[i].column;
        if (c->form[all[i].column]) widened += all[i].count * all[i].bytes;
        if (!c->form[all[i].column] && c->at[all[i].column].n != all[i].count * all[i].bytes)
            return bad(e, "a column of the wrong size");
    }
    for (uint32_t i = 0; i < MR_COLUMNS_ALL; i++)
        if (c->form[i] && !(known & 1u << i)) return bad(e, "a section of an unknown form");
    if (widened) c->widened = mr_alloc(widened);
    unsigned char *to = c->widened;
    for (size_t i = 0; i < MR_ARRAY_LEN(all); i++) {
        enum mr_column column = all[i].column;
        if (!c->form[column]) continue;
        if (!mr_int_column_read(c->at[column], c->form[column], all[i].count, all[i].bytes, to))
            return bad(e, "a narrow column of the wrong size");
        c->at[column] = mr_str_of((const char *)to, all[i].count * all[i].bytes);
        to += all[i].count * all[i].bytes;
    }
    return MR_OK;
}

static int read_head(struct mr_columns *c, struct mr_error *e)
{
    if (c->at[MR_COLUMN_HEAD].n != 24) return bad(e, "a head of the wrong size");
    uint32_t *counts[] = {&c->nodes_count, &c->culled_count, &c->args_count, &c->options_count,
        &c->ops_count, &c->targets_count};
    for (uint32_t i = 0; i < MR_ARRAY_LEN(counts); i++)
        *counts[i] = mr_column_u32(c->at[MR_COLUMN_HEAD], i);
    if (!c->nodes_count) return bad(e, "no nodes");
    if (c->nodes_count > MR_TASKS_MAX || c->culled_count > MR_TASKS_MAX - c->nodes_count)
        return mr_fail(e, MR_ELIMIT, "bytes of a graph: more than %d nodes", MR_TASKS_MAX);
    if (c->args_count > c->nodes_count || c->options_count > c->nodes_count ||
        c->ops_count > UINT16_MAX + 1 || c->targets_count > c->nodes_count)
        return bad(e, "more arguments, options, ops or targets than there can be");
    return read_numbers(c, e);
}

static int check_keys(const struct mr_columns *c, struct mr_error *e)
{
    struct mr_str rest = c->at[MR_COLUMN_KEYS];
    if (rest.n > UINT32_MAX) return bad(e, "more than 4 GiB of keys");
    for (uint32_t i = 0; i < c->nodes_count + c->culled_count; i++) {
        size_t n = mr_column_u16(c->at[MR_COLUMN_KEY_N], i);
        if (n > rest.n) return bad(e, "the keys are cut short");
        if (!mr_utf8_is_key(mr_str_of(rest.p, n), MR_KEY_BYTES_MAX))
            return bad(e, "a key is empty, too long, or not UTF-8 without control characters");
        rest = mr_str_of(rest.p + n, rest.n - n);
    }
    return rest.n ? bad(e, "more bytes than keys") : MR_OK;
}

static int check_inputs(struct mr_columns *c, struct mr_error *e)
{
    struct mr_str inputs = c->at[MR_COLUMN_INPUTS];
    if (inputs.n % 4 || inputs.n / 4 >= UINT32_MAX) return bad(e, "inputs of the wrong size");
    c->inputs_count = (uint32_t)(inputs.n / 4);
    uint64_t at = 0;
    int err = MR_OK;
    uint32_t *last_user = mr_alloc_array(c->nodes_count, sizeof *last_user); /* node + 1 */
    for (uint32_t v = 0; v < c->nodes_count && !err; v++) {
        uint32_t n = mr_column_u32(c->at[MR_COLUMN_INPUT_N], v);
        bool is_task = c->at[MR_COLUMN_KIND].p[v] == MR_NODE_TASK;
        if (n > MR_TASK_INPUTS_MAX || (n && !is_task)) err = bad(e, "a node with too many inputs");
        if (at + n > c->inputs_count) err = bad(e, "fewer inputs than the nodes have");
        for (uint32_t i = 0; i < n && !err; i++) {
            uint32_t input = mr_column_u32(inputs, (uint32_t)at + i);
            if (input >= c->nodes_count || last_user[input] == v + 1)
                err = bad(e, "an input that does not exist or is listed twice");
            else
                last_user[input] = v + 1;
        }
        at += n;
    }
    mr_release(last_user);
    if (!err && at != c->inputs_count) err = bad(e, "more inputs than the nodes have");
    return err;
}

/* What the check of one node's arguments has found. */
struct args_facts {
    uint32_t slots; /* the highest input slot, plus 1 */
    uint8_t type;
    int8_t ext;
    bool is_key; /* the first item is a text that is valid as a key or a name */
};

static int check_args_pack(struct mr_str pack, struct args_facts *f, struct mr_error *e)
{
    if (pack.n > MR_LITERAL_BYTES_MAX) return bad(e, "arguments over their limit");
    int err = mr_pack_check(pack, MR_TASK_INPUTS_MAX, e);
    if (err) return err;
    struct mr_pack_reader r = mr_pack_read(pack);
    for (bool first = true; !mr_pack_at_end(&r); first = false) {
        struct mr_pack_item item;
        err = mr_pack_next(&r, &item);
        if (err) return err;
        uint32_t slot = mr_pack_input_slot(&item);
        if (slot != UINT32_MAX) f->slots = MR_MAX(f->slots, slot + 1);
        if (!first) continue;
        f->type = (uint8_t)item.type;
        f->ext = item.ext;
        f->is_key = item.type == MR_PACK_TEXT && mr_utf8_is_key(item.bytes, MR_KEY_BYTES_MAX);
    }
    return MR_OK;
}

static bool args_fit(const struct args_facts *f, enum mr_node_kind kind, uint32_t inputs)
{
    switch (kind) {
    case MR_NODE_TASK:
        return (f->type == MR_PACK_LIST || f->type == MR_PACK_MAP) && f->slots <= inputs;
    case MR_NODE_LITERAL: return !f->slots;
    case MR_NODE_OBJECT: return f->type == MR_PACK_EXT && f->ext == MR_PACK_EXT_OBJECT;
    case MR_NODE_NAME:
    case MR_NODE_ALIAS: return f->is_key;
    }
    return false;
}

static int check_users(
    const struct mr_columns *c, const struct args_facts *facts, struct mr_error *e)
{
    for (uint32_t v = 0; v < c->nodes_count; v++) {
        unsigned char kind = (unsigned char)c->at[MR_COLUMN_KIND].p[v];
        uint32_t args = mr_column_u32(c->at[MR_COLUMN_ARGS_OF], v);
        uint16_t op = mr_column_u16(c->at[MR_COLUMN_OP], v);
        if (kind > MR_NODE_ALIAS || args >= c->args_count) return bad(e, "a node of no kind");
        if (kind == MR_NODE_TASK ? op >= c->ops_count : op != 0) return bad(e, "an op of no name");
        if (!args_fit(
                &facts[args], (enum mr_node_kind)kind, mr_column_u32(c->at[MR_COLUMN_INPUT_N], v)))
            return bad(e, "arguments that do not fit their node");
        if (!c->options_count) continue;
        uint32_t set = mr_column_u32(c->at[MR_COLUMN_OPTION_OF], v);
        if (set != MR_NODE_NONE && (set >= c->options_count || kind != MR_NODE_TASK))
            return bad(e, "an option set that does not exist");
    }
    for (uint32_t i = 0; i < c->targets_count; i++)
        if (mr_column_u32(c->at[MR_COLUMN_TARGETS], i) >= c->nodes_count)
            return bad(e, "a target that does not exist");
    return MR_OK;
}

static int check_args(const struct mr_columns *c, struct mr_error *e)
{
    struct mr_str rest = c->at[MR_COLUMN_ARGS];
    if (rest.n > MR_JOB_BODY_BYTES_MAX) return bad(e, "arguments over their limit");
    struct args_facts *facts = mr_alloc_array((size_t)c->args_count + 1, sizeof *facts);
    int err = MR_OK;
    for (uint32_t i = 0; i < c->args_count && !err; i++) {
        size_t n = mr_column_u32(c->at[MR_COLUMN_ARGS_N], i);
        if (n > rest.n)
            err = bad(e, "the arguments are cut short");
        else
            err = check_args_pack(mr_str_of(rest.p, n), &facts[i], e);
        if (!err) rest = mr_str_of(rest.p + n, rest.n - n);
    }
    if (!err && rest.n) err = bad(e, "more bytes than arguments");
    if (!err) err = check_users(c, facts, e);
    mr_release(facts);
    return err;
}

int mr_columns_read(
    struct mr_str bytes, bool needs_checksum, struct mr_columns *out, struct mr_error *e)
{
    *out = (struct mr_columns){0};
    int err = read_frame(&bytes, needs_checksum, out, e);
    if (!err) err = read_head(out, e);
    if (!err) err = check_keys(out, e);
    if (!err) err = check_inputs(out, e);
    if (!err) err = check_args(out, e);
    return err;
}

void mr_columns_fini(struct mr_columns *c)
{
    mr_release(c->widened);
    c->widened = NULL;
}
