/* Scans a slice (slice.h) in two passes. The first pass writes the arguments with a gap for each
 * reference, and collects the references. The second pass looks the references up together, so that
 * the cache misses in the table of keys overlap. */
#include "graph/json/scan.h"

#include "base/alloc.h"
#include "base/pack.h"

/* Every decimal integer of 18 digits fits into 64 bits. */
#define DIGITS_MAX 18
/* The most items of a list whose head in MessagePack is one byte. */
#define LIST_MAX 15

struct reader {
    const char *p, *end, *text;
    const struct mr_json *j;
    struct mr_json_columns *c;
    struct mr_str last_op;
    uint32_t last_op_1;
    bool misses;
};

bool mr_json_columns_op(
    const struct mr_json *j, struct mr_json_columns *c, struct mr_str name, uint32_t *op)
{
    uint32_t found = mr_intern_find(&j->b->ops, name, mr_intern_hash(&j->b->ops, name));
    *op = found + 1;
    if (found != MR_INTERN_NONE) return true;
    c->misses_op = name.n <= sizeof c->op_text;
    c->op_bytes = name.n;
    if (c->misses_op && name.n) memcpy(c->op_text, name.p, name.n);
    return false;
}

bool mr_json_columns_input(struct mr_json_columns *c, uint32_t from, uint32_t node, uint32_t *slot)
{
    uint32_t at = from;
    while (at < c->inputs_all && c->inputs[at] != node)
        at++;
    *slot = at - from;
    if (at < c->inputs_all) return true;
    if (*slot == MR_JSON_FAST_INPUTS_MAX) return false;
    if (at == c->inputs_room) {
        c->inputs_room = c->inputs_room * 2 + 1024;
        size_t bytes = c->inputs_room * sizeof *c->inputs;
        c->inputs = mr_grow(c->inputs, bytes, bytes);
    }
    c->inputs[c->inputs_all++] = node;
    return true;
}

/* ---- the first pass: each function advances past what it has read, or returns false ---------- */

static void skip_space(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\r' || *r->p == '\t'))
        r->p++;
}

static bool take(struct reader *r, char want)
{
    skip_space(r);
    if (r->p == r->end || *r->p != want) return false;
    r->p++;
    return true;
}

/* Reads a text of printable ASCII without escapes. */
static bool take_text(struct reader *r, struct mr_str *out)
{
    if (!take(r, '"')) return false;
    const char *from = r->p;
    while (r->p < r->end && *r->p >= 0x20 && *r->p < 0x7f && *r->p != '"' && *r->p != '\\')
        r->p++;
    *out = mr_str_of(from, (size_t)(r->p - from));
    if (r->p == r->end || *r->p != '"') return false;
    r->p++;
    return true;
}

static bool take_word(struct reader *r, const char *word, size_t n)
{
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0) return false;
    r->p += n;
    return true;
}

/* True: a number or a word ends here. */
static bool is_ended(const struct reader *r)
{
    return r->p == r->end || strchr(" \n\r\t,]}", *r->p);
}

static bool take_integer(struct reader *r)
{
    bool is_negative = *r->p == '-';
    const char *from = r->p + is_negative;
    uint64_t v = 0;
    for (r->p = from; r->p < r->end && *r->p >= '0' && *r->p <= '9'; r->p++)
        /* An overflow does no harm: too many digits are refused below. */
        v = v * 10 + (uint64_t)(*r->p - '0');
    size_t digits = (size_t)(r->p - from);
    if (!digits || digits > DIGITS_MAX || (*from == '0' && (digits > 1 || is_negative)))
        return false;
    if (is_negative)
        mr_pack_int(&r->c->args, -(int64_t)v);
    else
        mr_pack_uint(&r->c->args, v);
    return is_ended(r);
}

static bool take_constant(struct reader *r)
{
    struct mr_buf *to = &r->c->args;
    switch (*r->p) {
    case 'n': mr_pack_nil(to); return take_word(r, "null", 4) && is_ended(r);
    case 't': mr_pack_bool(to, true); return take_word(r, "true", 4) && is_ended(r);
    case 'f': mr_pack_bool(to, false); return take_word(r, "false", 5) && is_ended(r);
    default: return take_integer(r);
    }
}

static void add_ref(struct reader *r, struct mr_str key)
{
    struct mr_json_columns *c = r->c;
    const struct mr_intern *keys = &r->j->b->keys;
    if (c->refs_count == c->refs_room) {
        c->refs_room = c->refs_room * 2 + 1024;
        c->refs = mr_grow(c->refs, c->refs_room * sizeof *c->refs, c->refs_room * sizeof *c->refs);
    }
    uint32_t hash = mr_intern_hash(keys, key);
    mr_intern_prefetch(keys, hash);
    c->refs[c->refs_count++] = (struct mr_json_ref){.hash = hash,
        .at = (uint32_t)(key.p - r->text),
        .n = (uint32_t)key.n,
        .pack_at = (uint32_t)c->args.n,
        .entry = c->count};
    mr_pack_input(&c->args, 0);
}

/* Reads a number, a text or {"ref": key}. */
static bool take_one(struct reader *r)
{
    struct mr_str text;
    skip_space(r);
    if (r->p == r->end) return false;
    if (*r->p == '"') {
        if (!take_text(r, &text)) return false;
        if (r->j->dsk)
            add_ref(r, text);
        else
            mr_pack_text(&r->c->args, text);
        return true;
    }
    if (*r->p != '{') return take_constant(r);
    r->p++;
    if (!take_text(r, &text) || !mr_str_eq(text, MR_STR("ref")) || !take(r, ':')) return false;
    if (!take_text(r, &text) || !take(r, '}')) return false;
    add_ref(r, text);
    return true;
}

/* Reads the rest of a list. `is_begun`: the list's first item, the operator, has been read
 * already. */
static bool take_items(struct reader *r, bool is_begun)
{
    struct {
        size_t head;
        uint32_t count;
    } lists[MR_JSON_FAST_LISTS_MAX];
    struct mr_buf *to = &r->c->args;
    uint32_t depth = 0;
    do {
        /* The number of items is added to the head when the list ends. */
        if (!depth || *r->p == '[') {
            if (depth && (r->j->dsk || depth == MR_JSON_FAST_LISTS_MAX)) return false;
            r->p += depth > 0;
            lists[depth].head = to->n;
            lists[depth++].count = 0;
            mr_pack_list(to, 0);
        } else if (!take_one(r)) {
            return false;
        }
        while (depth && take(r, ']')) {
            depth--;
            to->p[lists[depth].head] |= (unsigned char)lists[depth].count;
        }
        if (!depth) return true;
        bool is_first = !lists[depth - 1].count && !(depth == 1 && is_begun);
        if (!is_first && !take(r, ',')) return false;
        skip_space(r);
    } while (r->p < r->end && ++lists[depth - 1].count <= LIST_MAX);
    return false;
}

static bool take_op(struct reader *r, uint32_t *op)
{
    struct mr_str name;
    if (!take_text(r, &name)) return false;
    if (!r->last_op_1 || !mr_str_eq(name, r->last_op)) {
        r->misses = !mr_json_columns_op(r->j, r->c, name, &r->last_op_1);
        if (r->misses) return false;
        r->last_op = name;
    }
    *op = r->last_op_1;
    return true;
}

static bool take_object(struct reader *r, uint32_t *op)
{
    struct mr_str field;
    bool has_args = false, has_value = false;
    do {
        if (!take_text(r, &field) || !take(r, ':')) return false;
        if (mr_str_eq(field, MR_STR("op"))) {
            if (*op || !take_op(r, op)) return false;
        } else if (mr_str_eq(field, MR_STR("args"))) {
            if (has_args || has_value || !take(r, '[') || !take_items(r, false)) return false;
            has_args = true;
        } else {
            if (has_args || has_value || !mr_str_eq(field, MR_STR("value"))) return false;
            skip_space(r);
            if (r->p == r->end || !take_constant(r)) return false;
            has_value = true;
        }
    } while (take(r, ','));
    return take(r, '}') && (*op != 0) == has_args && has_args != has_value;
}

static bool take_entry(struct reader *r, uint32_t *op)
{
    *op = 0;
    if (!take(r, '"')) return false;
    /* Keys with escapes do not come here: slice.c has checked this. */
    r->p = memchr(r->p, '"', (size_t)(r->end - r->p));
    if (!r->p++ || !take(r, ':')) return false;
    skip_space(r);
    if (r->p == r->end) return false;
    if (*r->p == '{') {
        r->p++;
        return !r->j->dsk && take_object(r, op);
    }
    if (!r->j->dsk) return false;
    if (*r->p != '[') return take_constant(r);
    r->p++;
    return take_op(r, op) && take_items(r, true);
}

static bool take_entries(struct reader *r, uint32_t keys_count)
{
    struct mr_json_columns *c = r->c;
    do {
        size_t args = c->args.n;
        if (c->count == keys_count || !take_entry(r, &c->op[c->count])) return false;
        if (c->args.n - args > MR_LITERAL_BYTES_MAX) return false;
        c->args_bytes[c->count++] = (uint32_t)(c->args.n - args);
    } while (take(r, ','));
    skip_space(r);
    return r->p == r->end && c->count == keys_count;
}

/* ---- the second pass ------------------------------------------------------------------------- */

/* Prefetches the slots of the references, and then the keys that the slots point to. */
static void prefetch(const struct mr_intern *t, const struct mr_json_ref *refs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t slot = t->slots[refs[i].hash & t->mask];
        if (slot) __builtin_prefetch(&t->at[(uint32_t)slot - 1]);
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t slot = t->slots[refs[i].hash & t->mask];
        if (slot) __builtin_prefetch(t->text + t->at[(uint32_t)slot - 1]);
    }
}

#define AT_ONCE 32

static bool find_all(const struct reader *r)
{
    struct mr_json_columns *c = r->c;
    const struct mr_intern *keys = &r->j->b->keys;
    for (uint32_t i = 0; i < c->refs_count; i++) {
        struct mr_json_ref *ref = &c->refs[i];
        if (i % AT_ONCE == 0) prefetch(keys, ref, MR_MIN(c->refs_count - i, (uint32_t)AT_ONCE));
        ref->node = mr_intern_find(keys, mr_str_of(r->text + ref->at, ref->n), ref->hash);
        if (ref->node == MR_INTERN_NONE) return false;
    }
    return true;
}

static bool put_inputs(struct mr_json_columns *c)
{
    uint32_t done = 0;
    for (uint32_t i = 0; i < c->count; i++) {
        uint32_t from = c->inputs_all;
        for (; done < c->refs_count && c->refs[done].entry == i; done++) {
            const struct mr_json_ref *ref = &c->refs[done];
            uint32_t slot = 0;
            if (!mr_json_columns_input(c, from, ref->node, &slot)) return false;
            c->args.p[ref->pack_at + 5] =
                (unsigned char)slot; /* one byte, because slots are below MR_JSON_FAST_INPUTS_MAX */
        }
        c->inputs_count[i] = c->inputs_all - from;
    }
    return true;
}

enum mr_json_scan_result mr_json_scan(const struct mr_json *j, const struct mr_json_piece *piece,
    bool has_all, struct mr_json_columns *c)
{
    const char *from = piece->text.p + piece->slice.at;
    struct reader r = {
        .p = from, .end = from + piece->slice.n, .text = piece->text.p, .j = j, .c = c};
    if (!take_entries(&r, piece->slice.keys_count) || mr_buf_status(&c->args))
        return r.misses ? MR_JSON_MISSES : MR_JSON_UNUSUAL;
    if (!find_all(&r)) return j->dsk && has_all ? MR_JSON_UNUSUAL : MR_JSON_MISSES;
    return put_inputs(c) ? MR_JSON_SCANNED : MR_JSON_UNUSUAL;
}
