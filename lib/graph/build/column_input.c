/* Adds many nodes to a builder at once, from columns (column_input.h). */
#include "graph/build/column_input.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/pack.h"
#include "base/utf8.h"
#include "graph/build/builder_state.h"

#include <stdlib.h>

#define FEW_INPUTS 16

/* True: all bytes are printable ASCII. Tests eight bytes at once: a byte that is not printable
 * ASCII sets its highest bit in `bad`. */
static bool is_plain_ascii(struct mr_str s)
{
    uint64_t bad = 0;
    size_t i = 0;
    for (; s.n - i >= 8; i += 8) {
        uint64_t x = 0;
        memcpy(&x, s.p + i, sizeof x);
        bad |= (x - 0x2020202020202020u) | (x + 0x0101010101010101u) | x;
    }
    for (; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c < 0x20 || c > 0x7e) return false;
    }
    return !(bad & 0x8080808080808080u);
}

int mr_builder_add_keys(struct mr_builder *b, struct mr_str keys, const uint32_t *key_bytes,
    uint32_t count, struct mr_error *e)
{
    if (count > b->nodes_max - b->keys.count)
        return mr_fail(e, MR_ELIMIT, "more than %u tasks and values in one job", b->nodes_max);
    if (b->keys.text_bytes + keys.n > b->args.bytes_max)
        return mr_fail(e, MR_ELIMIT, "all keys together exceed %zu bytes", b->args.bytes_max);
    bool is_plain = is_plain_ascii(keys);
    uint64_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t n = key_bytes[i];
        if (!n || n > MR_KEY_BYTES_MAX || n > keys.n - at) return MR_EFORMAT;
        if (!is_plain && !mr_utf8_is_key(mr_str_of(keys.p + at, n), MR_KEY_BYTES_MAX))
            return MR_EFORMAT;
        at += n;
    }
    mr_builder_nodes_room(b, b->keys.count + count);
    if (at != keys.n || !mr_intern_add_all(&b->keys, keys.p, key_bytes, count)) return MR_EFORMAT;
    return MR_OK;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static bool has_twins(const uint32_t *inputs, uint32_t n)
{
    for (uint32_t i = 1; i < n && n <= FEW_INPUTS; i++)
        for (uint32_t k = 0; k < i; k++)
            if (inputs[i] == inputs[k]) return true;
    if (n <= FEW_INPUTS) return false;
    uint32_t *sorted = mr_copy(inputs, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_number);
    bool found = false;
    for (uint32_t i = 1; i < n; i++)
        found |= sorted[i] == sorted[i - 1];
    mr_release(sorted);
    return found;
}

static bool add_inputs(struct mr_builder *b, const struct mr_node_columns *c, uint32_t first)
{
    if (c->inputs_all > MR_BUILDER_INPUTS_MAX - b->inputs_count) return false;
    uint32_t *to = mr_builder_inputs_room(b, (uint32_t)c->inputs_all);
    static const uint32_t none;
    const uint32_t *from = c->inputs_all ? c->inputs : &none;
    size_t left = c->inputs_all;
    uint32_t most = b->input_most;
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t n = c->inputs_count[i];
        if (n > left || n > MR_TASK_INPUTS_MAX || (n && !c->op[i]) || has_twins(from, n))
            return false;
        b->input_at[first + i] = b->inputs_count;
        b->input_count[first + i] = n;
        for (uint32_t k = 0; k < n; k++) {
            to[k] = from[k];
            most = MR_MAX(most, from[k]);
        }
        b->inputs_count += n;
        to += n;
        from += n;
        left -= n;
    }
    b->input_most = most;
    return !left;
}

static bool add_ops(struct mr_builder *b, const struct mr_node_columns *c, struct mr_node_op *ops,
    uint32_t ops_count, uint32_t first)
{
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t op = c->op[i];
        b->kind[first + i] = op ? MR_NODE_TASK + 1 : MR_NODE_LITERAL + 1;
        if (!op) continue;
        if (op > ops_count) return false;
        struct mr_node_op *o = &ops[op - 1];
        uint16_t number = 0;
        if (!o->number_1) {
            if (!o->name.n || mr_builder_op(b, o->name, &number, NULL)) return false;
            o->number_1 = number + 1u;
        }
        b->op[first + i] = (uint16_t)(o->number_1 - 1);
    }
    return true;
}

static bool add_args(struct mr_builder *b, const struct mr_node_columns *c, uint32_t first)
{
    struct mr_str rest = c->args;
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t n = c->args_bytes[i];
        if (n > rest.n || n > MR_LITERAL_BYTES_MAX) return false;
        struct mr_str pack = mr_str_of(rest.p, n);
        if (mr_pack_check(pack, c->inputs_count[i], NULL)) return false;
        if (mr_builder_args_add(b, first + i, pack, NULL)) return false;
        rest = mr_str_of(rest.p + n, rest.n - n);
    }
    return !rest.n;
}

bool mr_builder_add_columns(struct mr_builder *b, const struct mr_node_columns *c,
    struct mr_node_op *ops, uint32_t ops_count)
{
    uint32_t first = b->keys.count;
    mr_assert(!b->open_count);
    if (mr_builder_add_keys(b, c->keys, c->key_bytes, c->count, NULL)) return false;
    return add_inputs(b, c, first) && add_ops(b, c, ops, ops_count, first) && add_args(b, c, first);
}

bool mr_builder_columns_are_complete(const struct mr_builder *b)
{
    return !b->inputs_count || b->input_most < b->keys.count;
}

bool mr_builder_target_all(struct mr_builder *b, uint32_t first, uint32_t count)
{
    mr_assert(first + count <= b->keys.count);
    if (count > b->nodes_max - b->targets_count) return false;
    uint32_t *to = mr_builder_targets_room(b, count);
    for (uint32_t i = 0; i < count; i++)
        to[i] = first + i;
    b->targets_count += count;
    return true;
}

int mr_builder_define_columns(
    struct mr_builder *b, const struct mr_node_columns *c, uint32_t first, struct mr_error *e)
{
    struct mr_str rest = c->args;
    mr_assert(first + c->count <= b->keys.count);
    if (c->inputs_all > MR_BUILDER_INPUTS_MAX - b->inputs_count)
        return mr_fail(e, MR_ELIMIT, "more than %u references in one job", MR_BUILDER_INPUTS_MAX);
    if (c->inputs_all)
        memcpy(mr_builder_inputs_room(b, (uint32_t)c->inputs_all), c->inputs,
            c->inputs_all * sizeof *c->inputs);
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t v = first + i, op = c->op[i];
        b->kind[v] = op ? MR_NODE_TASK + 1 : MR_NODE_LITERAL + 1;
        if (op) b->op[v] = (uint16_t)(op - 1);
        b->input_at[v] = b->inputs_count;
        b->input_count[v] = c->inputs_count[i];
        b->inputs_count += c->inputs_count[i];
        struct mr_str pack = mr_str_of(rest.p, c->args_bytes[i]);
        int err = mr_builder_args_add(b, v, pack, e);
        if (err) return err;
        rest = mr_str_of(rest.p + pack.n, rest.n - pack.n);
    }
    return MR_OK;
}
