/* Copies a graph with new values in place of its placeholders (copy.h). */
#include "graph/copy.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "graph/loop.h"
#include "graph/options.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint32_t *copy_u32(const uint32_t *from, size_t count)
{
    return from ? mr_copy(from, count * sizeof *from) : NULL;
}

uint64_t mr_graph_fill_bytes(
    const struct mr_graph *g, const struct mr_graph_fill *f, uint64_t *largest)
{
    uint64_t bytes = 0;
    *largest = 0;
    for (uint32_t entry = 0, i = 0; entry < g->args_count; entry++) {
        uint64_t own = g->args_at[entry + 1] - g->args_at[entry];
        for (; i < f->placeholders_count && f->placeholders[i].at < g->args_at[entry + 1]; i++)
            own += f->values[f->placeholders[i].value].n - f->placeholders[i].bytes;
        *largest = MR_MAX(*largest, own);
        bytes += own;
    }
    return bytes;
}

/* Copies the arguments from offset `*from` up to `to`, and moves `*from` to `to`. Returns the
 * address after the copied bytes. */
static unsigned char *copy_until(
    const struct mr_graph *g, uint32_t *from, uint32_t to, unsigned char *out)
{
    memcpy(out, g->args + *from, to - *from);
    out += to - *from;
    *from = to;
    return out;
}

static void copy_args(const struct mr_graph *g, const struct mr_graph_fill *f, struct mr_graph *to)
{
    uint64_t largest = 0, bytes = mr_graph_fill_bytes(g, f, &largest);
    mr_assert(bytes <= UINT32_MAX);
    to->args_count = g->args_count;
    to->args_of = copy_u32(g->args_of, g->nodes_count);
    to->args_at = copy_u32(g->args_at, (size_t)g->args_count + 1);
    to->args = mr_alloc(bytes);
    unsigned char *out = to->args;
    /* `more` is the growth of the copy so far, modulo 2^32, because values may be shorter than
     * their placeholders. */
    uint32_t from = 0, entry = 0, more = 0;
    for (uint32_t i = 0; i < f->placeholders_count; i++) {
        const struct mr_graph_placeholder *spot = &f->placeholders[i];
        struct mr_str value = f->values[spot->value];
        mr_assert(spot->at >= from);
        for (; g->args_at[entry] <= spot->at; entry++)
            to->args_at[entry] += more;
        out = copy_until(g, &from, spot->at, out);
        memcpy(out, value.p, value.n);
        out += value.n;
        from = spot->at + spot->bytes;
        more += (uint32_t)value.n - spot->bytes;
    }
    for (; entry <= g->args_count; entry++)
        to->args_at[entry] += more;
    out = copy_until(g, &from, g->args_at[g->args_count], out);
    mr_assert((uint64_t)(out - to->args) == bytes);
}

static void copy_loops(const struct mr_graph *g, struct mr_graph *to)
{
    to->slots_count = g->slots_count;
    to->slot_of = copy_u32(g->slot_of, g->nodes_count);
    to->round_of = copy_u32(g->round_of, g->nodes_count);
    if (!g->loops) return;
    to->loops = mr_text_arena_take(&to->text, MR_MAX(g->loops_count, 1u) * sizeof *to->loops);
    to->loops_count = g->loops_count;
    for (uint32_t i = 0; i < g->loops_count; i++) {
        const struct mr_graph_loop *from = &g->loops[i];
        uint32_t *until = mr_text_arena_take(&to->text, (from->rounds - 1) * sizeof *until);
        uint32_t *exits = mr_text_arena_take(&to->text, from->exits_count * sizeof *exits);
        memcpy(until, from->until, (from->rounds - 1) * sizeof *until);
        memcpy(exits, from->exits, from->exits_count * sizeof *exits);
        to->loops[i] = *from;
        to->loops[i].name = mr_text_arena_copy(&to->text, from->name);
        to->loops[i].until = until;
        to->loops[i].exits = exits;
    }
}

static void copy_texts(const struct mr_graph *g, const struct mr_graph_fill *f, struct mr_graph *to)
{
    to->option_of = copy_u32(g->option_of, g->nodes_count);
    to->options_count = g->options_count;
    to->options = mr_alloc_array((size_t)g->options_count + 1, sizeof *to->options);
    for (uint32_t i = 0; i < g->options_count; i++)
        mr_task_options_copy(&to->text, &g->options[i], &to->options[i]);
    to->ops_count = g->ops_count;
    to->ops = mr_alloc_array((size_t)g->ops_count + 1, sizeof *to->ops);
    for (uint32_t i = 0; i < g->ops_count; i++)
        to->ops[i] = mr_text_arena_copy(&to->text, g->ops[i]);
    struct mr_job_options job = g->job;
    job.params = f->params;
    mr_job_options_copy(&to->text, &job, &to->job);
}

struct mr_graph *mr_graph_copy(const struct mr_graph *g, const struct mr_graph_fill *f)
{
    struct mr_graph *to = mr_alloc(sizeof *to);
    uint32_t n = g->nodes_count;
    to->nodes_count = n;
    to->tasks_count = g->tasks_count;
    to->defined_count = g->defined_count;
    to->culled_count = g->culled_count;
    to->kind = mr_copy(g->kind, n);
    to->op = mr_copy(g->op, n * sizeof *g->op);
    to->key_at = copy_u32(g->key_at, (size_t)n + 1);
    to->keys = mr_copy(g->keys, g->key_at[n]);
    to->culled_key_at = copy_u32(g->culled_key_at, (size_t)g->culled_count + 1);
    to->culled_keys = mr_copy(g->culled_keys, g->culled_key_at[g->culled_count]);
    copy_args(g, f, to);
    to->input_at = copy_u32(g->input_at, (size_t)n + 1);
    to->inputs = copy_u32(g->inputs, g->input_at[n]);
    to->dependent_at = copy_u32(g->dependent_at, (size_t)n + 1);
    to->dependents = copy_u32(g->dependents, g->dependent_at[n]);
    to->targets = copy_u32(g->targets, g->targets_count);
    to->targets_count = g->targets_count;
    copy_texts(g, f, to);
    copy_loops(g, to);
    if (mr_graph_wants_hashes(to)) mr_graph_rehash(to);
    return to;
}

static uint64_t mix(uint64_t h, const void *p, size_t n)
{
    return XXH3_64bits_withSeed(p, n, h);
}

uint64_t mr_graph_shape(const struct mr_graph *g)
{
    uint32_t n = g->nodes_count;
    uint64_t h = mix(n, g->kind, n);
    h = mix(h, g->op, n * sizeof *g->op);
    for (uint32_t i = 0; i < g->ops_count; i++)
        h = mix(h, g->ops[i].p, g->ops[i].n);
    h = mix(h, g->input_at, ((size_t)n + 1) * sizeof *g->input_at);
    h = mix(h, g->inputs, g->input_at[n] * sizeof *g->inputs);
    if (g->slot_of) h = mix(h, g->slot_of, n * sizeof *g->slot_of);
    return h;
}
