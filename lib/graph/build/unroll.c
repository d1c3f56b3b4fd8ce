/* Unrolls loops (unroll.h). The body of a loop is the tasks that are copied for each round. A
 * carried name stands for a value that each round computes for the next one. A slot is the number
 * of a task in the body. A loop may have a condition (`until`), which ends it early. */
#include "graph/build/unroll.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/pack.h"
#include "graph/build/builder_state.h"

#include <stdio.h>

enum from { FROM_OUTSIDE, FROM_BODY, FROM_CARRY };

struct input { /* an input of a task of a loop's body */
    enum from from;
    /* The number of a node, of a slot, or of a carried name, as `from` tells. */
    uint32_t of;
};

/* The state while the body of one loop is copied for the later rounds. */
struct body {
    struct mr_builder *b;
    const struct mr_repeat *r;
    struct mr_builder_loop *l;
    struct mr_error *e;
    uint32_t *slot_of; /* by node, counted from r->from: the slot, or MR_NODE_NONE */
    /* By number of the carried name: the slot of the task that makes the next round's value. */
    uint32_t *next;
    struct input *inputs;
    uint32_t *input_at; /* by slot: the slot's first input; slots + 1 entries */
    bool *is_gated;
};

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_name(struct mr_str name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    bool ok = name.n && name.n <= MR_LOOP_NAME_BYTES_MAX;
    for (size_t i = 0; i < name.n && ok; i++)
        ok = name.p[i] && strchr(allowed, name.p[i]);
    return ok;
}

static int within(const struct mr_repeat *r, int err, struct mr_error *e)
{
    return mr_fail_within(e, err, "repeat", r->name);
}

static int exit_node(struct mr_builder *b, struct mr_str loop, struct mr_str what, uint32_t *node,
    struct mr_error *e)
{
    char text[2 * MR_LOOP_NAME_BYTES_MAX + 2];
    int n = snprintf(text, sizeof text, "%.*s.%.*s", MR_STR_ARG(loop), MR_STR_ARG(what));
    return mr_builder_node(b, mr_str_of(text, (size_t)n), node, e);
}

static int check_names(const struct mr_repeat *r, struct mr_error *e)
{
    if (!is_name(r->name))
        return mr_fail(e, MR_EINVAL,
            "repeat \"%.*s\" is no name of a loop: 1 to %d letters, digits, '_', '.', '-'",
            MR_SHOWN(r->name), MR_LOOP_NAME_BYTES_MAX);
    if (!r->rounds || r->rounds > MR_LOOP_ROUNDS_MAX)
        return mr_fail(e, MR_EINVAL, "\"max\" is %u, but must be 1 to %d rounds", r->rounds,
            MR_LOOP_ROUNDS_MAX);
    if (!r->carry_count || r->carry_count > MR_LOOP_CARRY_MAX)
        return mr_fail(e, MR_EINVAL, "\"carry\" has %u names, but must have 1 to %d",
            r->carry_count, MR_LOOP_CARRY_MAX);
    for (uint32_t i = 0; i < r->carry_count; i++) {
        struct mr_str name = r->carry[i].name;
        if (!is_name(name) || mr_str_eq(name, MR_STR("count")))
            return mr_fail(e, MR_EINVAL,
                "\"%.*s\" cannot be carried under this name: 1 to %d letters, digits, '_', '.', "
                "'-', and not \"count\"",
                MR_SHOWN(name), MR_LOOP_NAME_BYTES_MAX);
        for (uint32_t k = 0; k < i; k++)
            if (mr_str_eq(name, r->carry[k].name))
                return mr_fail(e, MR_EINVAL, "\"%.*s\" is carried twice", MR_SHOWN(name));
    }
    return MR_OK;
}

int mr_repeat_declare(struct mr_builder *b, const struct mr_repeat *r, struct mr_error *e)
{
    uint32_t node = 0;
    int err = check_names(r, e);
    for (uint32_t i = 0; i < r->carry_count && !err; i++)
        err = exit_node(b, r->name, r->carry[i].name, &node, e);
    if (!err) err = exit_node(b, r->name, MR_STR("count"), &node, e);
    return err ? within(r, err, e) : MR_OK;
}

/* ---- keys in a body -------------------------------------------------------------------------- */

uint32_t mr_builder_nodes(const struct mr_builder *b)
{
    return b->keys.count;
}

void mr_builder_scope(struct mr_builder *b, const struct mr_repeat *r)
{
    b->scope = r;
}

/* Writes "name[0].key" into `text`, and sets `*out` to it. False: the key is empty or too long. */
static bool local_key(const struct mr_repeat *r, struct mr_str key, char text[MR_KEY_BYTES_MAX + 8],
    struct mr_str *out)
{
    if (!key.n || r->name.n + key.n + 8 > MR_KEY_BYTES_MAX)
        return false; /* the sum leaves room for the digits of later rounds */
    int n = snprintf(text, MR_KEY_BYTES_MAX + 8, "%.*s[0].", MR_STR_ARG(r->name));
    memcpy(text + n, key.p, key.n);
    *out = mr_str_of(text, (size_t)n + key.n);
    return true;
}

int mr_builder_own(struct mr_builder *b, struct mr_str key, uint32_t *node, struct mr_error *e)
{
    char text[MR_KEY_BYTES_MAX + 8];
    if (b->scope && !local_key(b->scope, key, text, &key))
        return mr_fail(e, MR_EINVAL, "a key of its body is empty or longer than %zu bytes",
            MR_KEY_BYTES_MAX - 8 - b->scope->name.n);
    return mr_builder_node(b, key, node, e);
}

int mr_builder_ref(struct mr_builder *b, struct mr_str key, uint32_t *node, struct mr_error *e)
{
    char text[MR_KEY_BYTES_MAX + 8];
    struct mr_str inside;
    const struct mr_repeat *r = b->scope;
    if (r && local_key(r, key, text, &inside)) {
        *node = mr_builder_find(b, inside);
        if (*node >= r->from && *node != MR_NODE_NONE) return MR_OK;
        for (uint32_t i = 0; i < r->carry_count; i++) {
            *node = r->carry[i].first;
            if (mr_str_eq(key, r->carry[i].name)) return MR_OK;
        }
    }
    return mr_builder_node(b, key, node, e);
}

/* ---- the body -------------------------------------------------------------------------------- */

static bool is_inside(const struct mr_builder *b, const struct mr_repeat *r, uint32_t node)
{
    struct mr_str key = mr_builder_key(b, node);
    size_t n = r->name.n;
    return node >= r->from && key.n > n + 4 && !memcmp(key.p, r->name.p, n) &&
           !memcmp(key.p + n, "[0].", 4);
}

static bool is_body_task(const struct mr_builder *b, const struct mr_repeat *r, uint32_t node)
{
    return is_inside(b, r, node) && b->kind[node] == MR_NODE_TASK + 1;
}

/* Makes a task `identity` of the value of `*node`, and sets `*node` to the task. The loop needs
 * such a task for each carried value that no task of the body makes, and likewise for the
 * condition. If one task makes two carried values, the loop needs one for the second value. */
static int make_task(struct mr_builder *b, const struct mr_repeat *r, uint32_t under,
    uint32_t *node, struct mr_error *e)
{
    uint32_t made = 0;
    int err = mr_builder_node_under(b, under, &made, e);
    if (!err) err = mr_builder_value(b, made, e);
    if (!err) err = mr_builder_input(b, *node, e);
    if (!err) err = mr_builder_value_end(b, e);
    mr_assert(err || is_body_task(b, r, made));
    *node = made;
    return err;
}

static int make_tasks(
    struct mr_builder *b, const struct mr_repeat *r, uint32_t *until, struct mr_error *e)
{
    int err = MR_OK;
    for (uint32_t i = 0; i < r->carry_count && !err; i++) {
        bool is_good = is_body_task(b, r, r->carry[i].next);
        for (uint32_t k = 0; k < i && is_good; k++)
            is_good = r->carry[k].next != r->carry[i].next;
        if (!is_good) err = make_task(b, r, r->carry[i].first, &r->carry[i].next, e);
    }
    *until = r->rounds > 1 ? r->until : MR_NODE_NONE;
    if (!err && *until != MR_NODE_NONE && !is_body_task(b, r, *until))
        err = make_task(b, r, r->carry[0].first, until, e);
    return err;
}

static int check_task(const struct body *w, uint32_t node)
{
    const struct mr_builder *b = w->b;
    const struct mr_task_options *o =
        b->option_of && b->option_of[node] != MR_NODE_NONE ? &b->options[b->option_of[node]] : NULL;
    if (!o || !o->persist_name.n) return MR_OK;
    return mr_fail(w->e, MR_EINVAL,
        "key \"%.*s\": each round would persist under the same name; persist what comes out of the "
        "loop",
        MR_SHOWN(mr_builder_key(b, node)));
}

static int find_slots(struct body *w)
{
    struct mr_builder *b = w->b;
    struct mr_builder_loop *l = w->l;
    uint32_t from = w->r->from, n = b->keys.count - from;
    w->slot_of = mr_alloc_array((size_t)n + 1, sizeof *w->slot_of);
    l->body = mr_text_arena_take(&b->text, ((size_t)n + 1) * sizeof *l->body);
    l->inside = mr_text_arena_take(&b->text, ((size_t)n + 1) * sizeof *l->inside);
    for (uint32_t v = from; v < from + n; v++) {
        w->slot_of[v - from] = MR_NODE_NONE;
        if (!is_inside(b, w->r, v)) continue;
        l->inside[l->inside_count++] = v;
        if (b->kind[v] != MR_NODE_TASK + 1) continue;
        int err = check_task(w, v);
        if (err) return err;
        w->slot_of[v - from] = l->slots;
        l->body[l->slots++] = v;
    }
    if ((uint64_t)l->slots * l->rounds <= MR_LOOP_TASKS_MAX) return MR_OK;
    return mr_fail(w->e, MR_EINVAL, "%u rounds of %u tasks are more than the %u of one loop",
        l->rounds, l->slots, MR_LOOP_TASKS_MAX);
}

static struct input input_of(const struct body *w, uint32_t node)
{
    if (node >= w->r->from && w->slot_of[node - w->r->from] != MR_NODE_NONE)
        return (struct input){FROM_BODY, w->slot_of[node - w->r->from]};
    for (uint32_t i = 0; i < w->r->carry_count; i++)
        if (w->r->carry[i].first == node) return (struct input){FROM_CARRY, i};
    return (struct input){FROM_OUTSIDE, node};
}

/* Lists the inputs of the body's tasks. A task is gated if it has to wait for the condition of the
 * previous round: a task without inputs from its own round, and an impure task, which must not run
 * in vain. A task that has this condition as an input anyway is not gated. */
static void find_inputs(struct body *w)
{
    const struct mr_builder *b = w->b;
    uint32_t total = 0, at = 0;
    for (uint32_t k = 0; k < w->l->slots; k++)
        total += b->input_count[w->l->body[k]];
    w->inputs = mr_alloc_array((size_t)total + 1, sizeof *w->inputs);
    w->input_at = mr_alloc_array((size_t)w->l->slots + 1, sizeof *w->input_at);
    w->is_gated = mr_alloc_array((size_t)w->l->slots + 1, sizeof *w->is_gated);
    for (uint32_t k = 0; k < w->l->slots; k++) {
        uint32_t node = w->l->body[k];
        const struct mr_task_options *o = b->option_of && b->option_of[node] != MR_NODE_NONE
                                              ? &b->options[b->option_of[node]]
                                              : NULL;
        bool is_first = true, has_gate = false;
        w->input_at[k] = at;
        for (uint32_t i = 0; i < b->input_count[node]; i++) {
            struct input in = input_of(w, b->inputs[b->input_at[node] + i]);
            is_first = is_first && in.from != FROM_BODY;
            has_gate |= in.from == FROM_CARRY && w->next[in.of] == w->l->until;
            w->inputs[at++] = in;
        }
        bool is_impure = o && o->given & MR_OPTION_PURE && !o->pure;
        w->is_gated[k] = (is_first || is_impure) && !has_gate && w->l->until != MR_NODE_NONE;
    }
    w->input_at[w->l->slots] = at;
}

/* ---- the copies ------------------------------------------------------------------------------ */

static int copy_key(struct body *w, uint32_t slot, uint32_t round, uint32_t *node)
{
    struct mr_str name = w->r->name, key = mr_builder_key(w->b, w->l->body[slot]);
    char text[MR_KEY_BYTES_MAX + 16];
    uint32_t expected = w->b->keys.count;
    int n = snprintf(text, sizeof text, "%.*s[%u]", MR_STR_ARG(name), round);
    size_t rest = key.n - name.n - 3;
    mr_assert((size_t)n + rest <= sizeof text);
    memcpy(text + n, key.p + name.n + 3, rest);
    struct mr_str copy = mr_str_of(text, (size_t)n + rest);
    int err = mr_builder_node(w->b, copy, node, w->e);
    if (err || *node == expected) return err;
    return mr_fail(w->e, MR_EINVAL, "key \"%.*s\" is used outside of it, and belongs to a round",
        MR_SHOWN(copy));
}

static uint32_t copied_input(const struct body *w, struct input in, uint32_t round)
{
    if (in.from == FROM_BODY) return mr_builder_loop_node(w->l, in.of, round);
    if (in.from == FROM_CARRY) return mr_builder_loop_node(w->l, w->next[in.of], round - 1);
    return in.of;
}

static void copy_task(struct body *w, uint32_t slot, uint32_t round, uint32_t node)
{
    struct mr_builder *b = w->b;
    uint32_t from = w->l->body[slot];
    b->kind[node] = b->kind[from];
    b->op[node] = b->op[from];
    b->args_of[node] = b->args_of[from];
    if (b->option_of) b->option_of[node] = b->option_of[from];
    b->input_at[node] = b->inputs_count;
    for (uint32_t i = w->input_at[slot]; i < w->input_at[slot + 1]; i++)
        b->inputs[b->inputs_count++] = copied_input(w, w->inputs[i], round);
    if (w->is_gated[slot])
        b->inputs[b->inputs_count++] = mr_builder_loop_node(w->l, w->l->until, round - 1);
    b->input_count[node] = b->inputs_count - b->input_at[node];
}

static int copy_rounds(struct body *w)
{
    struct mr_builder *b = w->b;
    uint64_t most = (uint64_t)(w->l->rounds - 1) * (w->input_at[w->l->slots] + w->l->slots);
    if (most > MR_BUILDER_INPUTS_MAX - b->inputs_count)
        return mr_fail(
            w->e, MR_ELIMIT, "more than %u references in one job", MR_BUILDER_INPUTS_MAX);
    uint32_t room = b->inputs_count + (uint32_t)most;
    if (b->inputs_room < room) {
        b->inputs = mr_grow(b->inputs, room * sizeof *b->inputs, room * sizeof *b->inputs);
        b->inputs_room = room;
    }
    w->l->clones = b->keys.count;
    int err = MR_OK;
    for (uint32_t round = 1; round < w->l->rounds; round++)
        for (uint32_t k = 0; k < w->l->slots && !err; k++) {
            uint32_t node = 0;
            err = copy_key(w, k, round, &node);
            if (!err) copy_task(w, k, round, node);
        }
    return err;
}

/* ---- the exits ------------------------------------------------------------------------------- */

static int make_exit(
    struct body *w, struct mr_str what, uint32_t slot, uint32_t first, uint32_t rounds)
{
    struct mr_builder *b = w->b;
    uint32_t node = 0, at = 0;
    bool has_until = w->l->until != MR_NODE_NONE && w->l->until != slot;
    int err = exit_node(b, w->r->name, what, &node, w->e);
    if (!err) err = mr_builder_task(b, node, MR_STR("identity"), w->e);
    if (err) return err;
    mr_pack_list(mr_builder_args(b), 1);
    err = mr_builder_input(b, mr_builder_loop_node(w->l, slot, first), w->e);
    for (uint32_t r = first + 1; r < rounds && !err; r++)
        err = mr_builder_slot(b, mr_builder_loop_node(w->l, slot, r), &at, w->e);
    for (uint32_t r = 0; r + 1 < rounds && has_until && !err; r++)
        err = mr_builder_slot(b, mr_builder_loop_node(w->l, w->l->until, r), &at, w->e);
    if (!err) err = mr_builder_task_end(b, w->e);
    w->l->exits[w->l->exits_count++] = node;
    return err;
}

static int make_count(struct body *w)
{
    uint32_t node = 0, rounds = w->l->rounds;
    if (w->l->until != MR_NODE_NONE)
        return make_exit(w, MR_STR("count"), w->l->until, 0, rounds - 1);
    int err = exit_node(w->b, w->r->name, MR_STR("count"), &node, w->e);
    struct mr_buf pack;
    mr_buf_init(&pack, 16);
    mr_pack_uint(&pack, rounds);
    if (!err) err = mr_builder_literal(w->b, node, mr_buf_str(&pack), w->e);
    mr_buf_fini(&pack);
    return err;
}

static int make_exits(struct body *w)
{
    uint32_t rounds = w->l->rounds;
    uint32_t first = w->l->until == MR_NODE_NONE ? rounds - 1 : 0;
    w->l->exits =
        mr_text_arena_take(&w->b->text, ((size_t)w->r->carry_count + 1) * sizeof *w->l->exits);
    int err = MR_OK;
    for (uint32_t i = 0; i < w->r->carry_count && !err; i++)
        err = make_exit(w, w->r->carry[i].name, w->next[i], first, rounds);
    return err ? err : make_count(w);
}

static int repeat(struct body *w)
{
    uint32_t next[MR_LOOP_CARRY_MAX];
    uint32_t until = MR_NODE_NONE;
    int err = make_tasks(w->b, w->r, &until, w->e);
    if (!err) err = find_slots(w);
    if (err) return err;
    for (uint32_t i = 0; i < w->r->carry_count; i++)
        next[i] = w->slot_of[w->r->carry[i].next - w->r->from];
    w->l->until = until == MR_NODE_NONE ? MR_NODE_NONE : w->slot_of[until - w->r->from];
    w->next = next;
    find_inputs(w);
    err = copy_rounds(w);
    return err ? err : make_exits(w);
}

int mr_builder_repeat(struct mr_builder *b, const struct mr_repeat *r, struct mr_error *e)
{
    if (b->loops_count == MR_LOOPS_MAX)
        return mr_fail(e, MR_ELIMIT, "\"repeat\" has more than %d loops", MR_LOOPS_MAX);
    if (!b->loops) b->loops = mr_alloc_array(MR_LOOPS_MAX, sizeof *b->loops);
    struct mr_builder_loop *l = &b->loops[b->loops_count++];
    l->name = mr_text_arena_copy(&b->text, r->name);
    l->rounds = r->rounds;
    struct body w = {.b = b, .r = r, .l = l, .e = e};
    int err = repeat(&w);
    mr_release(w.slot_of);
    mr_release(w.inputs);
    mr_release(w.input_at);
    mr_release(w.is_gated);
    return err && e && strncmp(e->text, "key \"", 5) != 0 ? within(r, err, e) : err;
}

/* ---- for build.c ----------------------------------------------------------------------------- */

static void each_inside(
    const struct mr_builder_loop *l, void (*fn)(void *ctx, uint32_t node), void *ctx)
{
    for (uint32_t i = 0; i < l->inside_count; i++)
        fn(ctx, l->inside[i]);
    for (uint32_t i = 0; i < (l->rounds - 1) * l->slots; i++)
        fn(ctx, l->clones + i);
}

static void mark(void *marks, uint32_t node)
{
    ((unsigned char *)marks)[node] = 1;
}

void mr_builder_mark_bodies(const struct mr_builder *b, unsigned char *marks)
{
    for (uint32_t i = 0; i < b->loops_count; i++)
        each_inside(&b->loops[i], mark, marks);
}

struct owner {
    unsigned char *loop_of;
    unsigned char number;
};

static void own(void *ctx, uint32_t node)
{
    const struct owner *o = ctx;
    o->loop_of[node] = o->number;
}

static int looked_into(const struct mr_builder *b, const char *who, uint32_t node,
    const struct mr_builder_loop *l, struct mr_error *e)
{
    return mr_fail(e, MR_EINVAL,
        "%s \"%.*s\", which is inside of loop \"%.*s\"; what comes out of it are \"%.*s.count\" "
        "and what it carries, such as \"%.*s\"",
        who, MR_SHOWN(mr_builder_key(b, node)), MR_STR_ARG(l->name), MR_STR_ARG(l->name),
        MR_SHOWN(mr_builder_key(b, l->exits[0])));
}

static int check_insides(
    const struct mr_builder *b, const unsigned char *loop_of, struct mr_error *e)
{
    for (uint32_t v = 0; v < b->keys.count; v++) {
        for (uint32_t i = 0; i < b->input_count[v]; i++) {
            uint32_t in = b->inputs[b->input_at[v] + i], l = loop_of[in];
            if (!l || l == loop_of[v]) continue;
            bool is_exit = false;
            for (uint32_t k = 0; k < b->loops[l - 1].exits_count; k++)
                is_exit |= b->loops[l - 1].exits[k] == v;
            if (is_exit) continue;
            char who[MR_ERROR_TEXT_MAX / 2];
            (void)snprintf(
                who, sizeof who, "key \"%.*s\" refers to", MR_SHOWN(mr_builder_key(b, v)));
            return looked_into(b, who, in, &b->loops[l - 1], e);
        }
    }
    for (uint32_t i = 0; i < b->targets_count; i++)
        if (loop_of[b->targets[i]])
            return looked_into(
                b, "a target is", b->targets[i], &b->loops[loop_of[b->targets[i]] - 1], e);
    return MR_OK;
}

int mr_builder_check_loops(const struct mr_builder *b, struct mr_error *e)
{
    if (!b->loops_count) return MR_OK;
    unsigned char *loop_of = mr_alloc(b->keys.count);
    for (uint32_t i = 0; i < b->loops_count; i++) {
        struct owner o = {loop_of, (unsigned char)(i + 1)};
        each_inside(&b->loops[i], own, &o);
    }
    int err = check_insides(b, loop_of, e);
    mr_release(loop_of);
    return err;
}

static void gather_slots(
    const struct mr_builder_loop *l, const uint32_t *rank, uint32_t first_slot, struct mr_graph *g)
{
    for (uint32_t round = 0; round < l->rounds; round++)
        for (uint32_t k = 0; k < l->slots; k++) {
            uint32_t at = rank[mr_builder_loop_node(l, k, round)];
            if (at == MR_NODE_NONE) continue;
            g->slot_of[at] = first_slot + k;
            g->round_of[at] = round;
        }
}

void mr_builder_gather_loops(struct mr_builder *b, const uint32_t *rank, struct mr_graph *g)
{
    if (!b->loops_count) return;
    g->slot_of = mr_alloc_array(g->nodes_count, sizeof *g->slot_of);
    g->round_of = mr_alloc_array(g->nodes_count, sizeof *g->round_of);
    memset(g->slot_of, 0xff, g->nodes_count * sizeof *g->slot_of);
    g->loops = mr_text_arena_take(&b->text, b->loops_count * sizeof *g->loops);
    for (uint32_t i = 0; i < b->loops_count; i++) {
        const struct mr_builder_loop *from = &b->loops[i];
        gather_slots(from, rank, g->slots_count, g);
        g->slots_count += from->slots;
        if (from->until == MR_NODE_NONE) continue;
        if (rank[mr_builder_loop_node(from, from->until, 0)] == MR_NODE_NONE) continue;
        struct mr_graph_loop *l = &g->loops[g->loops_count++];
        *l = (struct mr_graph_loop){.name = from->name, .rounds = from->rounds};
        uint32_t *until = mr_text_arena_take(&b->text, (l->rounds - 1) * sizeof *until);
        uint32_t *exits = mr_text_arena_take(&b->text, from->exits_count * sizeof *exits);
        for (uint32_t r = 0; r + 1 < l->rounds; r++)
            until[r] = rank[mr_builder_loop_node(from, from->until, r)];
        for (uint32_t k = 0; k < from->exits_count; k++)
            if (rank[from->exits[k]] != MR_NODE_NONE)
                exits[l->exits_count++] = rank[from->exits[k]];
        l->until = until;
        l->exits = exits;
    }
}
