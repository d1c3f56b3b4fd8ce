/* Collects the nodes of a graph as columns (builder_state.h), and shares equal arguments. */
#include "graph/build/builder.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/pack.h"
#include "base/utf8.h"
#include "graph/build/builder_state.h"

#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define FEW_INPUTS 16

#define GROW(p, room, more)                                                                        \
    ((p) = mr_grow((p), (size_t)(room) * sizeof *(p), (size_t)(more) * sizeof *(p)))
/* Grows an array without zeroing the new part, for memory that is written before it is read. Pages
 * that are never touched are then not committed. */
#define GROW_RAW(p, more)                                                                          \
    ((p) = mr_grow((p), (size_t)(more) * sizeof *(p), (size_t)(more) * sizeof *(p)))

struct mr_builder *mr_builder_new(void)
{
    struct mr_builder *b = mr_alloc(sizeof *b);
    mr_intern_init(&b->keys, 64);
    mr_intern_init(&b->ops, 16);
    mr_intern_init(&b->shared, 16);
    mr_buf_init(&b->options_scratch, MR_LITERAL_BYTES_MAX);
    mr_builder_limit(b, MR_TASKS_MAX, MR_JOB_BODY_BYTES_MAX);
    b->args_at = mr_alloc(sizeof *b->args_at);
    for (uint32_t i = 0; i < MR_DEPTH_MAX; i++)
        mr_buf_init(&b->open[i].args, MR_LITERAL_BYTES_MAX);
    return b;
}

void mr_builder_limit(struct mr_builder *b, uint32_t nodes_max, size_t bytes_max)
{
    mr_assert(nodes_max <= MR_TASKS_MAX);
    mr_assert(bytes_max < UINT32_MAX);
    b->nodes_max = nodes_max;
    mr_buf_init(&b->args, bytes_max);
}

void mr_builder_set_parallel(struct mr_builder *b, const struct mr_graph_parallel *parallel)
{
    b->parallel = parallel;
}

void mr_builder_free(struct mr_builder **bp)
{
    struct mr_builder *b = MR_STEAL(*bp);
    if (!b) return;
    mr_intern_fini(&b->keys);
    mr_intern_fini(&b->ops);
    mr_intern_fini(&b->shared);
    mr_buf_fini(&b->args);
    mr_buf_fini(&b->options_scratch);
    mr_text_arena_fini(&b->text);
    void *columns[] = {b->kind, b->op, b->args_of, b->input_at, b->input_count, b->option_of,
        b->inputs, b->args_at, b->options, b->options_pack, b->targets, b->shared_node, b->loops};
    for (size_t i = 0; i < MR_ARRAY_LEN(columns); i++)
        mr_release(columns[i]);
    for (uint32_t i = 0; i < MR_DEPTH_MAX; i++) {
        mr_buf_fini(&b->open[i].args);
        mr_release(b->open[i].inputs);
        mr_release(b->open[i].seen);
    }
    mr_release(b);
}

static void grow_nodes(struct mr_builder *b, uint32_t room)
{
    uint32_t old = b->nodes_room;
    GROW_RAW(b->kind, room);
    GROW_RAW(b->input_count, room);
    GROW_RAW(b->op, room);
    GROW_RAW(b->args_of, room);
    GROW_RAW(b->input_at, room);
    if (b->option_of) {
        GROW(b->option_of, old, room);
        memset(b->option_of + old, 0xff, (size_t)(room - old) * sizeof *b->option_of);
    }
    b->nodes_room = room;
}

void mr_builder_reserve(struct mr_builder *b, uint32_t nodes)
{
    mr_assert(!b->keys.count);
    if (nodes > b->nodes_max || nodes <= b->nodes_room) return;
    mr_intern_fini(&b->keys);
    mr_intern_init(&b->keys, nodes);
    grow_nodes(b, nodes);
}

void mr_builder_nodes_room(struct mr_builder *b, uint32_t nodes)
{
    if (nodes > b->nodes_room) grow_nodes(b, MR_MAX(b->nodes_room * 2, MR_MAX(nodes, 64u)));
    if (nodes <= b->nodes_clear) return;
    uint32_t from = b->nodes_clear, more = nodes - from;
    memset(b->kind + from, 0, more);
    memset(b->input_count + from, 0, more * sizeof *b->input_count);
    b->nodes_clear = nodes;
}

uint32_t *mr_builder_inputs_room(struct mr_builder *b, uint32_t more)
{
    if (!b->inputs || b->inputs_room - b->inputs_count < more) {
        b->inputs_room = b->inputs_room * 2 + more + 64;
        GROW_RAW(b->inputs, b->inputs_room);
    }
    return b->inputs + b->inputs_count;
}

uint32_t *mr_builder_targets_room(struct mr_builder *b, uint32_t more)
{
    if (!b->targets || b->targets_room - b->targets_count < more) {
        b->targets_room = b->targets_room * 2 + more + 16;
        GROW_RAW(b->targets, b->targets_room);
    }
    return b->targets + b->targets_count;
}

/* Adds a node with a valid key that no node has yet. `hash` is the key's hash. */
static int node_add(
    struct mr_builder *b, struct mr_str key, uint32_t hash, uint32_t *node, struct mr_error *e)
{
    if (b->keys.count >= b->nodes_max)
        return mr_fail(e, MR_ELIMIT, "more than %u tasks and values in one job", b->nodes_max);
    if (b->keys.text_bytes + key.n > b->args.bytes_max)
        return mr_fail(e, MR_ELIMIT, "all keys together exceed %zu bytes", b->args.bytes_max);
    *node = mr_intern_add(&b->keys, key, hash);
    mr_builder_nodes_room(b, *node + 1);
    return MR_OK;
}

static int check_key(struct mr_str key, const char *what, struct mr_error *e)
{
    if (mr_utf8_is_key(key, MR_KEY_BYTES_MAX)) return MR_OK;
    if (!key.n) return mr_fail(e, MR_EINVAL, "a %s is empty", what);
    char shown[400]; /* the key in printable form, since it may contain a NUL */
    mr_utf8_printable(key.p, MR_MIN(key.n, (size_t)120), shown, sizeof shown);
    if (key.n > MR_KEY_BYTES_MAX)
        return mr_fail(e, MR_EINVAL, "%s \"%s…\" has %zu bytes, the limit is %d", what, shown,
            key.n, MR_KEY_BYTES_MAX);
    return mr_fail(e, MR_EINVAL, "%s \"%s\" is not UTF-8 without control characters", what, shown);
}

int mr_builder_node(struct mr_builder *b, struct mr_str key, uint32_t *node, struct mr_error *e)
{
    uint32_t hash = mr_intern_hash(&b->keys, key);
    uint32_t found = mr_intern_find(&b->keys, key, hash);
    if (found != MR_INTERN_NONE) {
        *node = found;
        return MR_OK;
    }
    int err = check_key(key, "key", e);
    if (err) return err;
    return node_add(b, key, hash, node, e);
}

uint32_t mr_builder_find(const struct mr_builder *b, struct mr_str key)
{
    return mr_intern_find(&b->keys, key, mr_intern_hash(&b->keys, key));
}

bool mr_builder_is_defined(const struct mr_builder *b, uint32_t node)
{
    return b->kind[node] != MR_NODE_UNDEFINED;
}

struct mr_str mr_builder_key(const struct mr_builder *b, uint32_t node)
{
    return mr_intern_text(&b->keys, node);
}

/* Adds a node with the key `stem`, '#', and the first free number from `from` on. Sets `*number` to
 * this number. */
static int node_numbered(struct mr_builder *b, struct mr_str stem, uint32_t from, uint32_t *node,
    uint32_t *number, struct mr_error *e)
{
    char text[MR_KEY_BYTES_MAX + 16];
    mr_assert(stem.n <= MR_KEY_BYTES_MAX);
    memcpy(text, stem.p, stem.n);
    for (uint32_t i = from;; i++) {
        int digits = snprintf(text + stem.n, sizeof text - stem.n, "#%u", i);
        struct mr_str key = mr_str_of(text, stem.n + (size_t)digits);
        if (key.n > MR_KEY_BYTES_MAX)
            return mr_fail(e, MR_EINVAL,
                "key \"%.*s…\" is too long for the tasks nested in it: theirs is the same with "
                "#%u, and %d bytes are the limit",
                MR_SHOWN(stem), i, MR_KEY_BYTES_MAX);
        uint32_t hash = mr_intern_hash(&b->keys, key);
        if (mr_intern_find(&b->keys, key, hash) != MR_INTERN_NONE) continue;
        *number = i;
        return node_add(b, key, hash, node, e);
    }
}

int mr_builder_node_under(struct mr_builder *b, uint32_t parent, uint32_t *node, struct mr_error *e)
{
    uint32_t none = 0, number = 0, at = b->open_count;
    while (at && b->open[at - 1].node != parent)
        at--;
    uint32_t *next = at ? &b->open[at - 1].under_next : &none;
    int err = node_numbered(b, mr_builder_key(b, parent), *next, node, &number, e);
    if (!err) *next = number + 1;
    return err;
}

static int define(struct mr_builder *b, uint32_t node, enum mr_node_kind kind, struct mr_error *e)
{
    if (b->kind[node] != MR_NODE_UNDEFINED)
        return mr_fail(
            e, MR_EINVAL, "key \"%.*s\" is defined twice", MR_SHOWN(mr_builder_key(b, node)));
    b->kind[node] = (unsigned char)(kind + 1);
    return MR_OK;
}

int mr_builder_wrote(struct mr_builder *b, uint32_t node, size_t bytes, struct mr_error *e)
{
    b->written += bytes;
    if (b->written <= 2 * b->args.bytes_max) return MR_OK;
    return mr_fail(e, MR_ELIMIT,
        "key \"%.*s\": the arguments and options of all tasks exceed %zu bytes",
        MR_SHOWN(mr_builder_key(b, node)), 2 * b->args.bytes_max);
}

int mr_builder_args_add(
    struct mr_builder *b, uint32_t node, struct mr_str bytes, struct mr_error *e)
{
    int err = mr_builder_wrote(b, node, bytes.n, e);
    if (err) return err;
    uint64_t hash = XXH3_64bits(bytes.p, bytes.n);
    uint32_t slot = hash & (MR_BUILDER_CACHE - 1);
    uint32_t known = b->args_cache[slot].index_1;
    if (known && b->args_cache[slot].hash == hash &&
        mr_str_eq(mr_builder_args_text(b, known - 1), bytes)) {
        b->args_of[node] = known - 1;
        return MR_OK;
    }
    mr_buf_add_str(&b->args, bytes);
    if (mr_buf_status(&b->args))
        return mr_fail(e, MR_ELIMIT, "key \"%.*s\": all arguments together exceed %zu bytes",
            MR_SHOWN(mr_builder_key(b, node)), b->args.bytes_max);
    if (b->args_count + 1 >= b->args_room) {
        uint32_t room = b->args_room ? b->args_room * 2 : 64;
        GROW_RAW(b->args_at, room);
        b->args_room = room;
    }
    b->args_of[node] = b->args_count++;
    b->args_at[b->args_count] = (uint32_t)b->args.n;
    b->args_cache[slot].hash = hash;
    b->args_cache[slot].index_1 = b->args_count;
    return MR_OK;
}

static int define_with(struct mr_builder *b, uint32_t node, enum mr_node_kind kind,
    struct mr_str args, struct mr_error *e)
{
    if (args.n > MR_LITERAL_BYTES_MAX)
        return mr_fail(e, MR_ELIMIT, "key \"%.*s\": a value of %zu bytes, the limit is %zu",
            MR_SHOWN(mr_builder_key(b, node)), args.n, MR_LITERAL_BYTES_MAX);
    int err = define(b, node, kind, e);
    if (err) return err;
    return mr_builder_args_add(b, node, args, e);
}

int mr_builder_literal(struct mr_builder *b, uint32_t node, struct mr_str pack, struct mr_error *e)
{
    return define_with(b, node, MR_NODE_LITERAL, pack, e);
}

int mr_builder_object(struct mr_builder *b, uint32_t node, mr_object_id id, struct mr_error *e)
{
    if (mr_object_id_is_none(id))
        return mr_fail(
            e, MR_EINVAL, "key \"%.*s\": the object id is zero", MR_SHOWN(mr_builder_key(b, node)));
    mr_buf_clear(&b->options_scratch);
    mr_pack_object(&b->options_scratch, id);
    return define_with(b, node, MR_NODE_OBJECT, mr_buf_str(&b->options_scratch), e);
}

static int define_text(struct mr_builder *b, uint32_t node, enum mr_node_kind kind,
    struct mr_str text, struct mr_error *e)
{
    mr_buf_clear(&b->options_scratch);
    mr_pack_text(&b->options_scratch, text);
    return define_with(b, node, kind, mr_buf_str(&b->options_scratch), e);
}

int mr_builder_name(struct mr_builder *b, uint32_t node, struct mr_str name, struct mr_error *e)
{
    int err = check_key(name, "name", e);
    if (err) return err;
    return define_text(b, node, MR_NODE_NAME, name, e);
}

int mr_builder_alias(struct mr_builder *b, uint32_t node, struct mr_error *e)
{
    /* The key is copied, because the builder's memory of keys moves when it grows. */
    char text[MR_KEY_BYTES_MAX];
    struct mr_str key = mr_builder_key(b, node);
    mr_assert(key.n <= sizeof text);
    memcpy(text, key.p, key.n);
    return define_text(b, node, MR_NODE_ALIAS, mr_str_of(text, key.n), e);
}

/* Sets `*node` to the node that all references to one stored object or name share; the first call
 * makes the node. The key of a new node is `stem`, or "stem#0", "stem#1" … if the user has a node
 * of this key. `args` is the definition. */
static int node_shared(struct mr_builder *b, struct mr_str stem, enum mr_node_kind kind,
    struct mr_str args, uint32_t *node, struct mr_error *e)
{
    uint32_t hash = mr_intern_hash(&b->shared, args);
    uint32_t known = mr_intern_find(&b->shared, args, hash);
    if (known != MR_INTERN_NONE) {
        *node = b->shared_node[known];
        return MR_OK;
    }
    uint32_t number = 0;
    int err = mr_builder_find(b, stem) == MR_NODE_NONE
                  ? mr_builder_node(b, stem, node, e)
                  : node_numbered(b, stem, 0, node, &number, e);
    if (!err) err = define_with(b, *node, kind, args, e);
    if (err) return err;
    if (b->shared.count == b->shared_room) {
        b->shared_room = b->shared_room ? b->shared_room * 2 : 16;
        GROW_RAW(b->shared_node, b->shared_room);
    }
    b->shared_node[mr_intern_add(&b->shared, args, hash)] = *node;
    return MR_OK;
}

int mr_builder_object_node(
    struct mr_builder *b, mr_object_id id, uint32_t *node, struct mr_error *e)
{
    char hex[MR_OBJECT_ID_TEXT_MAX], stem[MR_OBJECT_ID_TEXT_MAX + 8];
    if (mr_object_id_is_none(id)) return mr_fail(e, MR_EINVAL, "the object id is zero");
    mr_object_id_format(id, hex);
    (void)snprintf(stem, sizeof stem, "object:%s", hex);
    mr_buf_clear(&b->options_scratch);
    mr_pack_object(&b->options_scratch, id);
    return node_shared(b, mr_str(stem), MR_NODE_OBJECT, mr_buf_str(&b->options_scratch), node, e);
}

int mr_builder_name_node(
    struct mr_builder *b, struct mr_str name, uint32_t *node, struct mr_error *e)
{
    char stem[MR_KEY_BYTES_MAX + 8];
    int err = check_key(name, "name", e);
    if (err) return err;
    int n = snprintf(stem, sizeof stem, "name:%.*s", MR_STR_ARG(name));
    mr_buf_clear(&b->options_scratch);
    mr_pack_text(&b->options_scratch, name);
    struct mr_str key = mr_str_of(stem, MR_MIN((size_t)n, (size_t)MR_KEY_BYTES_MAX));
    while (key.n && !mr_utf8_is_valid(key))
        /* "name:" and the name together may exceed the limit of a key. The key then ends before the
         * character that does not fit. */
        key.n--;
    return node_shared(b, key, MR_NODE_NAME, mr_buf_str(&b->options_scratch), node, e);
}

bool mr_op_name_is_valid(struct mr_str op)
{
    return mr_utf8_is_key(op, MR_OP_NAME_BYTES_MAX);
}

int mr_builder_op(struct mr_builder *b, struct mr_str op, uint16_t *number, struct mr_error *e)
{
    uint32_t last = b->last_op; /* consecutive tasks often have the same operator */
    if (last < b->ops.count && mr_str_eq(mr_intern_text(&b->ops, last), op)) {
        *number = (uint16_t)last;
        return MR_OK;
    }
    uint32_t hash = mr_intern_hash(&b->ops, op);
    uint32_t found = mr_intern_find(&b->ops, op, hash);
    if (found == MR_INTERN_NONE) {
        if (!mr_op_name_is_valid(op))
            return mr_fail(e, MR_EINVAL,
                "op \"%.*s\" is not 1 to %d bytes of UTF-8 without control characters",
                MR_SHOWN(op), MR_OP_NAME_BYTES_MAX);
        if (b->ops.count > UINT16_MAX)
            return mr_fail(e, MR_ELIMIT, "more than %d different ops in one job", UINT16_MAX + 1);
        found = mr_intern_add(&b->ops, op, hash);
    }
    *number = (uint16_t)found;
    b->last_op = found;
    return MR_OK;
}

static int open_push(struct mr_builder *b, uint32_t node, bool is_value, struct mr_error *e)
{
    if (b->open_count == MR_DEPTH_MAX)
        return mr_fail(e, MR_ELIMIT, "key \"%.*s\": tasks nested deeper than %d",
            MR_SHOWN(mr_builder_key(b, node)), MR_DEPTH_MAX);
    struct mr_open_task *t = &b->open[b->open_count++];
    t->node = node;
    t->is_value = is_value;
    t->count = 0;
    t->under_next = 0;
    mr_buf_clear(&t->args);
    if (t->seen_slots) {
        mr_release(t->seen);
        t->seen = NULL;
        t->seen_slots = 0;
    }
    return MR_OK;
}

int mr_builder_task(struct mr_builder *b, uint32_t node, struct mr_str op, struct mr_error *e)
{
    uint16_t number = 0;
    int err = mr_builder_op(b, op, &number, e);
    if (err) return err;
    err = define(b, node, MR_NODE_TASK, e);
    if (err) return err;
    b->op[node] = number;
    return open_push(b, node, false, e);
}

int mr_builder_value(struct mr_builder *b, uint32_t node, struct mr_error *e)
{
    int err = define(b, node, MR_NODE_LITERAL, e);
    if (err) return err;
    err = open_push(b, node, true, e);
    if (err) return err;
    /* Begins the arguments of the operator `identity`: a list with one item, the value. */
    mr_pack_list(mr_builder_args(b), 1);
    return MR_OK;
}

struct mr_buf *mr_builder_args(struct mr_builder *b)
{
    mr_assert(b->open_count);
    return &b->open[b->open_count - 1].args;
}

static void seen_place(struct mr_open_task *t, uint32_t node, uint32_t slot)
{
    uint32_t i = (uint32_t)mr_hash_u64(node) & (t->seen_slots - 1);
    while (t->seen[i])
        i = (i + 1) & (t->seen_slots - 1);
    t->seen[i] = (uint64_t)(node + 1) << 32 | slot;
}

static void seen_grow(struct mr_open_task *t)
{
    mr_release(t->seen);
    t->seen_slots = t->seen_slots ? t->seen_slots * 4 : 128;
    t->seen = mr_alloc_array(t->seen_slots, sizeof *t->seen);
    for (uint32_t i = 0; i < t->count; i++)
        seen_place(t, t->inputs[i], i);
}

static uint32_t slot_find(const struct mr_open_task *t, uint32_t node)
{
    if (!t->seen_slots) {
        for (uint32_t i = 0; i < t->count; i++)
            if (t->inputs[i] == node) return i;
        return MR_NODE_NONE;
    }
    uint32_t mask = t->seen_slots - 1;
    for (uint32_t i = (uint32_t)mr_hash_u64(node) & mask; t->seen[i]; i = (i + 1) & mask)
        if (t->seen[i] >> 32 == (uint64_t)node + 1) return (uint32_t)t->seen[i];
    return MR_NODE_NONE;
}

int mr_builder_slot(struct mr_builder *b, uint32_t node, uint32_t *slot, struct mr_error *e)
{
    mr_assert(b->open_count);
    mr_assert(node < b->keys.count);
    struct mr_open_task *t = &b->open[b->open_count - 1];
    *slot = slot_find(t, node);
    if (*slot != MR_NODE_NONE) return MR_OK;
    if (t->count >= MR_TASK_INPUTS_MAX)
        return mr_fail(e, MR_ELIMIT, "key \"%.*s\": more than %d inputs",
            MR_SHOWN(mr_builder_key(b, t->node)), MR_TASK_INPUTS_MAX);
    if (t->count == t->room) {
        uint32_t room = t->room ? t->room * 2 : FEW_INPUTS;
        GROW_RAW(t->inputs, room);
        t->room = room;
    }
    *slot = t->count++;
    t->inputs[*slot] = node;
    if (t->count > FEW_INPUTS && t->count * 2 > t->seen_slots)
        seen_grow(t);
    else if (t->seen_slots)
        seen_place(t, node, *slot);
    return MR_OK;
}

int mr_builder_input(struct mr_builder *b, uint32_t node, struct mr_error *e)
{
    uint32_t slot = 0;
    int err = mr_builder_slot(b, node, &slot, e);
    if (err) return err;
    mr_pack_input(mr_builder_args(b), slot);
    return MR_OK;
}

static int inputs_add(struct mr_builder *b, const struct mr_open_task *t, struct mr_error *e)
{
    if (t->count > MR_BUILDER_INPUTS_MAX - b->inputs_count)
        return mr_fail(e, MR_ELIMIT, "more than %u references in one job", MR_BUILDER_INPUTS_MAX);
    uint32_t *to = mr_builder_inputs_room(b, t->count);
    b->input_at[t->node] = b->inputs_count;
    b->input_count[t->node] = t->count;
    for (uint32_t i = 0; i < t->count; i++)
        to[i] = t->inputs[i];
    b->inputs_count += t->count;
    return MR_OK;
}

static int open_pop(struct mr_builder *b, bool is_value, struct mr_error *e)
{
    mr_assert(b->open_count);
    struct mr_open_task *t = &b->open[--b->open_count];
    mr_assert(t->is_value == is_value);
    struct mr_str args = mr_buf_str(&t->args);
    if (mr_buf_status(&t->args))
        return mr_fail(e, MR_ELIMIT, "key \"%.*s\": arguments of more than %zu bytes",
            MR_SHOWN(mr_builder_key(b, t->node)), t->args.bytes_max);
    if (is_value && !t->count)
        return mr_builder_args_add(b, t->node, mr_str_of(args.p + 1, args.n - 1), e);
    if (is_value) {
        b->kind[t->node] = MR_NODE_TASK + 1;
        int err = mr_builder_op(b, MR_STR("identity"), &b->op[t->node], e);
        if (err) return err;
    }
    int err = inputs_add(b, t, e);
    if (err) return err;
    return mr_builder_args_add(b, t->node, args, e);
}

int mr_builder_task_end(struct mr_builder *b, struct mr_error *e)
{
    return open_pop(b, false, e);
}

int mr_builder_value_end(struct mr_builder *b, struct mr_error *e)
{
    return open_pop(b, true, e);
}

int mr_builder_target(struct mr_builder *b, uint32_t node, struct mr_error *e)
{
    mr_assert(node < b->keys.count);
    if (b->targets_count >= b->nodes_max)
        return mr_fail(e, MR_ELIMIT, "more than %u targets", b->nodes_max);
    *mr_builder_targets_room(b, 1) = node;
    b->targets_count++;
    return MR_OK;
}
