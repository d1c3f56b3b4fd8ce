/* Counts tasks, bytes of keys and bytes of arguments before the reader (entries.c) makes them. One
 * walk over the parsed text; each loop multiplies the counts of its content. The counts are lower
 * bounds of what the reader writes, so no job is refused that would fit. A number or a reference
 * counts as one byte. A loop variable that takes the items of a list counts as the mean size of
 * these items. Operators are not known here: in "dsk" a list that begins with a text counts as
 * arguments of a task. */
#include "graph/json/estimate.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/unconst.h"

#define FRAMES_MAX (2 * MR_DEPTH_MAX) /* the reader refuses values that are nested more deeply */

enum frame_kind { FRAME_LIST, FRAME_MAP, FRAME_TASK, FRAME_ONE };

/* How the content of a value is counted. `times` is the number of its copies. */
struct mode {
    uint64_t times;
    bool refs, substitute; /* the same meaning as in mr_json_mode */
};

struct frame { /* a container whose values are being counted */
    enum frame_kind kind;
    struct mode mode;
    uint32_t bindings; /* bindings_count before the frame; restored at its end */
    union {
        yyjson_arr_iter list;
        yyjson_obj_iter map;
        yyjson_val *one;
    };
};

struct mr_json_estimate {
    struct mr_json *j;
    /* the error of the last loop that mr_json_loop_open refused with MR_ELIMIT; code 0: none */
    struct mr_error limit;
    uint64_t size[MR_JSON_BINDINGS_MAX]; /* bytes of each binding's value */
    const yyjson_val *measured;          /* the last list whose size was computed */
    uint64_t measured_size;
    uint64_t nodes, key_bytes, bytes;
    struct frame frames[FRAMES_MAX];
    uint32_t frames_count;
};

static uint64_t add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t times(uint64_t a, uint64_t b)
{
    return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static bool is_text(const yyjson_val *v)
{
    return yyjson_is_str(mr_unconst(v));
}

/* Returns the size of a value in which no `${…}` is replaced. */
static uint64_t plain_size(const yyjson_val *v)
{
    uint64_t bytes = 0;
    const yyjson_val *end =
        unsafe_yyjson_get_next(mr_unconst(v)); /* yyjson stores the values consecutively */
    for (; v < end; v++)
        bytes += is_text(v) ? 1 + mr_json_text(v).n : 1;
    return bytes;
}

static uint64_t size_named(const struct mr_json_estimate *x, struct mr_str name)
{
    for (uint32_t i = x->j->bindings_count; i-- > 0;)
        if (mr_str_eq(x->j->bindings[i].name, name)) return x->size[i];
    return 0;
}

/* Returns the size of a text after its `${…}` are replaced. */
static uint64_t text_size(const struct mr_json_estimate *x, struct mr_str s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < s.n;) {
        const char *dollar = memchr(s.p + i, '$', s.n - i);
        size_t at = dollar ? (size_t)(dollar - s.p) : s.n;
        bytes += at - i;
        i = at;
        if (i == s.n) break;
        bool is_escaped = s.n - i >= 3 && !memcmp(s.p + i, "$${", 3);
        const char *close =
            s.n - i >= 2 && s.p[i + 1] == '{' && !is_escaped ? memchr(s.p + i, '}', s.n - i) : NULL;
        if (!close) {
            bytes++;
            i += is_escaped ? 3 : 1;
            continue;
        }
        size_t end = (size_t)(close - s.p);
        bytes = add(bytes, size_named(x, mr_str_of(s.p + i + 2, end - i - 2)));
        i = end + 1;
    }
    return bytes;
}

/* ---- loops ----------------------------------------------------------------------------------- */

static uint64_t list_size(struct mr_json_estimate *x, const yyjson_val *list)
{
    if (x->measured != list) {
        x->measured = list;
        x->measured_size = plain_size(list) - 1;
    }
    return x->measured_size;
}

/* Sets the size of a loop variable, and the value that inner loops see. If the variable counts, the
 * value is the mean of its numbers. If it takes the items of a list, the value is the first
 * item. */
static void give_size(struct mr_json_estimate *x, const struct mr_json_loop *loop, uint32_t var)
{
    struct mr_json_binding *b = &x->j->bindings[loop->bindings_at + var];
    uint64_t n = loop->vars[var].n, size = 1;
    if (loop->vars[var].list) {
        size = list_size(x, loop->vars[var].list) / n;
        b->value = yyjson_arr_get_first(loop->vars[var].list);
        if (is_text(b->value)) /* inserted without its MessagePack head, counted as one byte */
            size -= MR_MIN(size, (uint64_t)1);
    } else {
        b->own.tag = YYJSON_TYPE_NUM | YYJSON_SUBTYPE_UINT;
        b->own.uni.u64 = (n - 1) / 2;
        b->value = &b->own;
    }
    x->size[loop->bindings_at + var] = size;
}

/* Binds the variables of a loop and returns the number of its rounds. 0: nothing is bound, because
 * the loop has no rounds or has an error. The reader reports the error. */
static uint64_t open_loop(struct mr_json_estimate *x, yyjson_val *spec)
{
    struct mr_json *j = x->j;
    struct mr_error *e = j->e, own;
    struct mr_json_loop loop;
    j->e = &own;
    int err = mr_json_loop_open(j, spec, &loop);
    j->e = e;
    if (err == MR_ELIMIT) x->limit = own;
    if (err) return 0;
    for (uint32_t i = 0; i < loop.vars_count && loop.rounds; i++)
        give_size(x, &loop, i);
    if (!loop.rounds) mr_json_loop_close(j, &loop);
    return loop.rounds;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void push(struct mr_json_estimate *x, enum frame_kind kind, struct mode mode, yyjson_val *v)
{
    if (x->frames_count == FRAMES_MAX) return;
    struct frame *f = &x->frames[x->frames_count++];
    *f = (struct frame){.kind = kind, .mode = mode, .bindings = x->j->bindings_count};
    if (kind == FRAME_LIST)
        f->list = yyjson_arr_iter_with(v);
    else if (kind == FRAME_ONE)
        f->one = v;
    else
        f->map = yyjson_obj_iter_with(v);
}

static void count(struct mr_json_estimate *x, uint64_t bytes, struct mode mode)
{
    x->bytes = add(x->bytes, times(bytes, mode.times));
}

/* Counts a list. In "dsk" the list may be a task whose first item is the operator, which is then
 * not counted. */
static void list(struct mr_json_estimate *x, yyjson_val *v, struct mode mode)
{
    count(x, 1, mode);
    push(x, FRAME_LIST, mode, v);
    bool may_be_task = mode.refs && x->j->dsk && yyjson_is_str(yyjson_arr_get_first(v));
    if (may_be_task) (void)yyjson_arr_iter_next(&x->frames[x->frames_count - 1].list);
}

static void text(struct mr_json_estimate *x, yyjson_val *v, struct mode mode)
{
    struct mr_str s = mr_json_text(v);
    uint64_t size = mode.substitute ? text_size(x, s) : s.n;
    bool may_be_key = mode.refs && x->j->dsk && size <= MR_KEY_BYTES_MAX;
    count(x, may_be_key ? 1 : 1 + size, mode);
}

static bool is_reference(struct mr_str key)
{
    return mr_str_eq(key, MR_STR("ref")) || mr_str_eq(key, MR_STR("object")) ||
           mr_str_eq(key, MR_STR("name"));
}

/* Counts a JSON object that is not inside a literal. The object may be a literal itself, an `each`,
 * a reference, a task, or a dict. */
static void object(struct mr_json_estimate *x, yyjson_val *v, struct mode mode)
{
    struct mode plain = {mode.times, false, true};
    yyjson_val *key = yyjson_obj_size(v) == 1 ? unsafe_yyjson_get_first(v) : NULL;
    count(x, 1, mode);
    if (key && is_reference(mr_json_text(key))) return;
    if (key && yyjson_equals_str(key, "value")) {
        push(x, FRAME_ONE, plain, yyjson_obj_iter_get_val(key));
    } else if (key && yyjson_equals_str(key, "literal")) {
        plain.substitute = false;
        push(x, FRAME_ONE, plain, yyjson_obj_iter_get_val(key));
    } else if (yyjson_obj_get(v, "op")) {
        x->nodes = add(x->nodes, mode.times);
        push(x, FRAME_TASK, mode, v);
    } else if (yyjson_obj_size(v) == 2 && yyjson_obj_get(v, "each") && yyjson_obj_get(v, "for")) {
        uint32_t bindings = x->j->bindings_count;
        mode.times = times(mode.times, open_loop(x, yyjson_obj_get(v, "for")));
        push(x, FRAME_ONE, mode, yyjson_obj_get(v, "each"));
        x->frames[x->frames_count - 1].bindings = bindings;
    } else {
        push(x, FRAME_MAP, mode, v);
    }
}

static void value(struct mr_json_estimate *x, yyjson_val *v, struct mode mode)
{
    if (x->frames_count == FRAMES_MAX) return;
    if (yyjson_is_str(v))
        text(x, v, mode);
    else if (yyjson_is_arr(v))
        list(x, v, mode);
    else if (yyjson_is_obj(v) && mode.refs)
        object(x, v, mode);
    else if (yyjson_is_obj(v))
        push(x, FRAME_MAP, mode, v);
    else
        count(x, 1, mode);
}

/* Counts the next value of the innermost frame, or ends the frame. */
static void step(struct mr_json_estimate *x)
{
    struct frame *f = &x->frames[x->frames_count - 1];
    struct mode mode = f->mode;
    yyjson_val *v = NULL, *key = NULL;
    switch (f->kind) {
    case FRAME_LIST: v = yyjson_arr_iter_next(&f->list); break;
    case FRAME_ONE: v = MR_STEAL(f->one); break;
    case FRAME_MAP:
    case FRAME_TASK:
        key = yyjson_obj_iter_next(&f->map);
        if (key) v = yyjson_obj_iter_get_val(key);
        break;
    }
    if (!v) {
        x->j->bindings_count = f->bindings;
        x->frames_count--;
    } else if (f->kind == FRAME_TASK) {
        if (yyjson_equals_str(key, "args")) value(x, v, mode);
        if (yyjson_equals_str(key, "kwargs") && yyjson_is_obj(v)) push(x, FRAME_MAP, mode, v);
    } else {
        if (key) count(x, 1 + mr_json_text(key).n, mode);
        value(x, v, mode);
    }
}

static void walk(struct mr_json_estimate *x)
{
    while (x->frames_count)
        step(x);
}

/* ---- entries --------------------------------------------------------------------------------- */

static int too_many(struct mr_json_estimate *x, struct mr_str key)
{
    const struct mr_builder *b = x->j->b;
    size_t bytes_max = b->args.bytes_max;
    if (x->limit.code) {
        *x->j->e = x->limit;
        return mr_fail_within(x->j->e, MR_ELIMIT, "key", key);
    }
    if (x->nodes > b->nodes_max)
        return mr_fail(x->j->e, MR_ELIMIT,
            "key \"%.*s\": \"for\" and \"each\" ask for %llu tasks and values so far, more than %u "
            "tasks and values in one job",
            MR_SHOWN(key), (unsigned long long)x->nodes, b->nodes_max);
    if (x->key_bytes > bytes_max)
        return mr_fail(x->j->e, MR_ELIMIT,
            "key \"%.*s\": \"for\" asks for keys of %llu bytes so far: all keys together exceed %zu "
            "bytes",
            MR_SHOWN(key), (unsigned long long)x->key_bytes, bytes_max);
    if (x->bytes > 2 * (uint64_t)bytes_max)
        return mr_fail(x->j->e, MR_ELIMIT,
            "key \"%.*s\": \"for\", \"each\" and \"params\" ask for arguments of %llu bytes so "
            "far: the arguments and options of all tasks exceed %zu bytes",
            MR_SHOWN(key), (unsigned long long)x->bytes, 2 * bytes_max);
    return MR_OK;
}

static void arguments(struct mr_json_estimate *x, yyjson_val *v, struct mode mode)
{
    yyjson_val *args = yyjson_obj_get(v, "args"), *kwargs = yyjson_obj_get(v, "kwargs");
    yyjson_val *plain = yyjson_obj_get(v, "value"), *literal = yyjson_obj_get(v, "literal");
    if (args) value(x, args, mode);
    walk(x);
    if (kwargs && yyjson_is_obj(kwargs)) push(x, FRAME_MAP, mode, kwargs);
    walk(x);
    mode.refs = false;
    if (plain) value(x, plain, mode);
    walk(x);
    mode.substitute = false;
    if (literal) value(x, literal, mode);
    walk(x);
}

static int entry(struct mr_json_estimate *x, yyjson_val *key, uint64_t rounds)
{
    struct mode mode = {1, true, true};
    yyjson_val *v = yyjson_obj_iter_get_val(key);
    yyjson_val *spec = mr_json_entry_loop(x->j, v);
    uint32_t bindings = x->j->bindings_count;
    if (spec) mode.times = open_loop(x, spec);
    /* `all` is the number of tasks that "repeat" and "for" make of this entry. Arguments are
     * counted once for all rounds of a "repeat", because these rounds share the arguments. */
    uint64_t all = times(rounds, mode.times);
    x->nodes = add(x->nodes, all);
    x->key_bytes = add(x->key_bytes, times(text_size(x, mr_json_text(key)), all));
    if (yyjson_is_obj(v)) {
        arguments(x, v, mode);
    } else {
        value(x, v, mode);
        walk(x);
    }
    x->j->bindings_count = bindings;
    return too_many(x, mr_json_text(key));
}

/* ---- the whole ------------------------------------------------------------------------------- */

struct mr_json_estimate *mr_json_estimate_new(struct mr_json *j)
{
    struct mr_json_estimate *x = mr_alloc(sizeof *x);
    x->j = j;
    for (uint32_t i = 0; i < j->bindings_count; i++) {
        yyjson_val *v = j->bindings[i].value;
        x->size[i] = is_text(v) ? mr_json_text(v).n : plain_size(v);
    }
    return x;
}

void mr_json_estimate_free(struct mr_json_estimate **x)
{
    mr_release(*x);
    *x = NULL;
}

int mr_json_estimate_entries(struct mr_json_estimate *x, yyjson_val *entries, uint64_t rounds)
{
    int err = MR_OK;
    x->measured = NULL; /* the memory of the measured list may now hold another list */
    yyjson_obj_iter it = yyjson_obj_iter_with(entries);
    for (yyjson_val *k = yyjson_obj_iter_next(&it); k && !err; k = yyjson_obj_iter_next(&it))
        err = entry(x, k, rounds);
    return err;
}

int mr_json_estimate_targets(struct mr_json_estimate *x, yyjson_val *targets)
{
    uint64_t count = 0, bytes = 0;
    yyjson_arr_iter it = yyjson_arr_iter_with(targets);
    if (!yyjson_is_arr(targets)) return MR_OK;
    for (yyjson_val *v = yyjson_arr_iter_next(&it); v; v = yyjson_arr_iter_next(&it)) {
        uint32_t bindings = x->j->bindings_count;
        yyjson_val *spec = yyjson_is_obj(v) ? yyjson_obj_get(v, "for") : NULL;
        yyjson_val *each = yyjson_is_obj(v) ? yyjson_obj_get(v, "each") : NULL;
        uint64_t rounds = spec ? open_loop(x, spec) : 1;
        count = add(count, rounds);
        if (each && is_text(each))
            bytes = add(bytes, times(text_size(x, mr_json_text(each)), rounds));
        x->j->bindings_count = bindings;
    }
    const struct mr_builder *b = x->j->b;
    if (count > b->nodes_max)
        return mr_fail(x->j->e, MR_ELIMIT, "field \"targets\": more than %u targets: %llu",
            b->nodes_max, (unsigned long long)count);
    if (bytes > 2 * (uint64_t)b->args.bytes_max)
        return mr_fail(x->j->e, MR_ELIMIT,
            "field \"targets\": with what \"for\" asks for, they exceed %zu bytes: %llu",
            2 * b->args.bytes_max, (unsigned long long)bytes);
    return MR_OK;
}
