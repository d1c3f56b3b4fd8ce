/* Operators on text: text.read, text.split, text.count_words, text.merge_counts, text.top. Text is
 * UTF-8; words are separated by ASCII white space. */
#include "ops/data/data.h"

#include "base/index.h"
#include "base/pack.h"
#include "base/utf8.h"
#include "ops/arg.h"
#include "ops/array/array.h"
#include "ops/file.h"
#include "store/object/value.h"

#include <stdlib.h>
#include <xxhash.h>

#define TEXT_BYTES_MAX ((uint64_t)1 << 30)

/* ---- reading ---- */

/* Sets `*out` to the first start of a part at or after `from`. A part starts at the start of the
 * file and right after each delimiter. If no part starts there, `*out` is the end of the file. */
static int next_start(struct mr_op_call *call, const struct mr_op_file *f, uint64_t from,
    char delimiter, uint64_t *out)
{
    char block[4096];
    if (from == 0) {
        *out = 0;
        return MR_OK;
    }
    for (uint64_t at = from - 1; at < f->bytes; at += sizeof block) {
        uint64_t n = MR_MIN(f->bytes - at, (uint64_t)sizeof block);
        int err = mr_op_file_read(call, f, at, block, n);
        if (err) return err;
        const char *found = memchr(block, delimiter, n);
        if (found) {
            *out = at + (uint64_t)(found - block) + 1;
            return MR_OK;
        }
    }
    *out = f->bytes;
    return MR_OK;
}

/* Allocates the result, a value (store/object/value.h) that is a text of `n` bytes, and writes all
 * but the text. Returns the place of the text, so that the file is read into its final place. */
static char *return_text_extent(struct mr_op_call *call, uint64_t n)
{
    void *extent = call->does->return_extent(call, mr_value_pack_size(5 + n));
    if (!extent) return NULL;
    unsigned char *p = mr_value_pack_build(extent, 5 + n);
    p[0] = 0xdb; /* the tag of MessagePack's str 32, whose length has four bytes */
    for (int i = 0; i < 4; i++)
        p[1 + i] = (unsigned char)(n >> (24 - 8 * i));
    return (char *)p + 5;
}

static int read_range(
    struct mr_op_call *call, const struct mr_op_file *f, uint64_t start, uint64_t end)
{
    uint64_t n = end - start;
    if (n > TEXT_BYTES_MAX)
        return call->does->fail(call, MR_ELIMIT,
            "%llu bytes of text at once, at most %llu are allowed; give \"length\"",
            (unsigned long long)n, (unsigned long long)TEXT_BYTES_MAX);
    /* A pack uses the shortest length field that fits. The field that return_text_extent writes
     * (str 32) is the shortest only for texts of 64 KiB or more. */
    bool small = n <= UINT16_MAX;
    char *p = small ? call->does->scratch(call, n + 1) : return_text_extent(call, n);
    if (!p) return MR_ELIMIT;
    int err = mr_op_file_read(call, f, start, p, n);
    if (err) return err;
    struct mr_str text = mr_str_of(p, (size_t)n);
    if (!mr_utf8_is_valid(text))
        return call->does->fail(call, MR_EFORMAT, "\"%.*s\": bytes %llu to %llu are not UTF-8",
            MR_STR_ARG(f->path), (unsigned long long)start, (unsigned long long)end);
    return small ? call->does->return_text(call, text) : MR_OK;
}

static int run_read(struct mr_op_call *call)
{
    struct mr_str delimiter = call->args[3].bytes;
    int64_t offset = 0;
    int64_t length = INT64_MAX;
    int err = mr_arg_int(call, &call->args[1], "offset", 0, INT64_MAX, &offset);
    if (!err && call->args[2].type != MR_ARG_NIL)
        err = mr_arg_int(call, &call->args[2], "length", 0, INT64_MAX, &length);
    if (err) return err;
    if (call->args[3].type != MR_ARG_NIL && delimiter.n != 1)
        return call->does->fail(
            call, MR_EINVAL, "argument \"delimiter\": expected one character of ASCII or null");
    struct mr_op_file f;
    err = mr_op_file_open(call, call->args[0].bytes, &f);
    if (err) return err;
    uint64_t start = MR_MIN((uint64_t)offset, f.bytes);
    uint64_t end = f.bytes - start < (uint64_t)length ? f.bytes : start + (uint64_t)length;
    if (delimiter.n) {
        uint64_t wanted = end;
        err = next_start(call, &f, start, delimiter.p[0], &start);
        if (!err && wanted < f.bytes) err = next_start(call, &f, wanted, delimiter.p[0], &end);
    }
    if (!err) err = read_range(call, &f, start, MR_MAX(start, end));
    mr_op_file_close(&f);
    return err;
}

/* ---- splitting ---- */

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Finds the next word of `s` from `*at` on, and sets `*at` behind it. False: there is no further
 * word. */
static bool next_word(struct mr_str s, size_t *at, struct mr_str *word)
{
    size_t i = *at;
    while (i < s.n && is_space(s.p[i]))
        i++;
    size_t start = i;
    while (i < s.n && !is_space(s.p[i]))
        i++;
    *word = mr_str_of(s.p + start, i - start);
    *at = i;
    return i > start;
}

/* Finds the next piece up to `separator`; the last piece ends with the text. False: there is no
 * further piece. */
static bool next_piece(struct mr_str s, struct mr_str separator, size_t *at, struct mr_str *piece)
{
    if (*at > s.n) return false;
    const char *found = memmem(s.p + *at, s.n - *at, separator.p, separator.n);
    size_t end = found ? (size_t)(found - s.p) : s.n;
    *piece = mr_str_of(s.p + *at, end - *at);
    *at = found ? end + separator.n : s.n + 1;
    return true;
}

static int run_split(struct mr_op_call *call)
{
    struct mr_str s = call->args[0].bytes;
    struct mr_str separator = call->args[1].bytes;
    bool words = call->args[1].type == MR_ARG_NIL;
    if (!words && !separator.n)
        return call->does->fail(call, MR_EINVAL, "argument \"separator\" is empty");
    size_t at = 0;
    size_t count = 0;
    struct mr_str piece;
    while (words ? next_word(s, &at, &piece) : next_piece(s, separator, &at, &piece))
        count++;
    if (count > UINT32_MAX) return call->does->fail(call, MR_ELIMIT, "too many pieces");
    struct mr_arg *items = call->does->scratch(call, MR_MAX(count, 1u) * sizeof *items);
    if (!items) return MR_ELIMIT;
    at = 0;
    for (size_t i = 0; i < count; i++) {
        (void)(words ? next_word(s, &at, &piece) : next_piece(s, separator, &at, &piece));
        items[i] =
            (struct mr_arg){.type = call->args[0].type, .input = MR_ARG_NO_INPUT, .bytes = piece};
    }
    struct mr_arg list = {
        .type = MR_ARG_LIST, .input = MR_ARG_NO_INPUT, .items = items, .count = (uint32_t)count};
    return call->does->return_arg(call, &list);
}

/* ---- counting ---- */

struct count {
    struct mr_str word;
    int64_t n;
};

/* A hash table of words and their counts. The array `items` is in scratch memory. When it is full,
 * it is copied to an array of twice the size. */
struct counts {
    struct mr_op_call *call;
    struct mr_index index;
    struct count *items;
    uint32_t count;
    uint32_t room;
};

static bool same_word(const void *ctx, uint32_t item, const void *key)
{
    const struct counts *c = ctx;
    return mr_str_eq(c->items[item].word, *(const struct mr_str *)key);
}

static uint64_t hash_word(struct mr_str word)
{
    return XXH3_64bits(word.p, word.n);
}

static uint64_t rehash_word(const void *ctx, uint32_t item)
{
    return hash_word(((const struct counts *)ctx)->items[item].word);
}

static int add_count(struct counts *c, struct mr_str word, int64_t n)
{
    uint64_t hash = hash_word(word);
    uint32_t at = mr_index_find(&c->index, hash, same_word, c, &word);
    if (at != MR_INDEX_NONE) {
        if (__builtin_add_overflow(c->items[at].n, n, &c->items[at].n))
            return c->call->does->fail(c->call, MR_ERANGE, "a count does not fit 64 bits");
        return MR_OK;
    }
    if (c->count == c->room) {
        uint32_t room = MR_MAX(2 * c->room, 1024u);
        struct count *more = c->call->does->scratch(c->call, room * sizeof *more);
        if (!more) return MR_ELIMIT;
        if (c->count) memcpy(more, c->items, c->count * sizeof *more);
        c->items = more;
        c->room = room;
    }
    c->items[c->count] = (struct count){word, n};
    mr_index_add(&c->index, hash, c->count, rehash_word, c);
    c->count++;
    return MR_OK;
}

static int by_word(const void *a, const void *b)
{
    return mr_str_cmp(((const struct count *)a)->word, ((const struct count *)b)->word);
}

static int by_count(const void *a, const void *b)
{
    const struct count *x = a;
    const struct count *y = b;
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    return by_word(a, b);
}

/* The result is a dict of the counts, sorted by word, so that equal counts give equal bytes. */
static int return_counts(struct mr_op_call *call, struct counts *c)
{
    if (c->count) qsort(c->items, c->count, sizeof *c->items, by_word);
    struct mr_arg *items = call->does->scratch(call, MR_MAX(c->count, 1u) * sizeof *items);
    if (!items) return MR_ELIMIT;
    for (uint32_t i = 0; i < c->count; i++)
        items[i] = (struct mr_arg){.type = MR_ARG_INT,
            .input = MR_ARG_NO_INPUT,
            .name = c->items[i].word,
            .i = c->items[i].n};
    struct mr_arg dict = {
        .type = MR_ARG_DICT, .input = MR_ARG_NO_INPUT, .items = items, .count = c->count};
    return call->does->return_arg(call, &dict);
}

static int lower_case(struct mr_op_call *call, struct mr_str *s)
{
    char *p = call->does->scratch(call, s->n + 1);
    if (!p) return MR_ELIMIT;
    for (size_t i = 0; i < s->n; i++)
        p[i] = s->p[i] >= 'A' && s->p[i] <= 'Z' ? (char)(s->p[i] + 32) : s->p[i];
    s->p = p;
    return MR_OK;
}

static int count_text(struct counts *c, struct mr_str s, bool lower)
{
    if (lower) {
        int err = lower_case(c->call, &s);
        if (err) return err;
    }
    size_t at = 0;
    struct mr_str word;
    for (uint32_t i = 1; next_word(s, &at, &word); i++) {
        int err = add_count(c, word, 1);
        if (err) return err;
        if (i % 65536 == 0 && c->call->does->is_cancelled(c->call))
            return c->call->does->fail(c->call, MR_ECANCELED, "cancelled");
    }
    return MR_OK;
}

static int run_count_words(struct mr_op_call *call)
{
    const struct mr_arg *x = &call->args[0];
    const struct mr_arg *items = x->type == MR_ARG_LIST ? x->items : x;
    uint32_t n = x->type == MR_ARG_LIST ? x->count : 1;
    struct counts c = {.call = call};
    mr_index_init(&c.index, 1024);
    int err = MR_OK;
    for (uint32_t i = 0; i < n && !err; i++) {
        if (items[i].type != MR_ARG_TEXT)
            err = call->does->fail(call, MR_EINVAL, "argument \"text\": expected texts, got %s",
                mr_arg_type_name(items[i].type));
        else
            err = count_text(&c, items[i].bytes, call->args[1].boolean);
    }
    if (!err) err = return_counts(call, &c);
    mr_index_fini(&c.index);
    return err;
}

static int add_counts(struct counts *c, const struct mr_arg *x)
{
    if (x->type != MR_ARG_DICT)
        return c->call->does->fail(c->call, MR_EINVAL,
            "argument \"counts\": expected dicts, got %s", mr_arg_type_name(x->type));
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->items[i].type != MR_ARG_INT)
            return c->call->does->fail(c->call, MR_EINVAL,
                "argument \"counts\": \"%.*s\": expected int, got %s",
                (int)MR_MIN(x->items[i].name.n, 80u), x->items[i].name.p,
                mr_arg_type_name(x->items[i].type));
        int err = add_count(c, x->items[i].name, x->items[i].i);
        if (err) return err;
    }
    return MR_OK;
}

static int run_merge_counts(struct mr_op_call *call)
{
    const struct mr_arg *items = call->rest;
    uint32_t n = call->rest_count;
    if (n == 1 && items[0].type == MR_ARG_LIST) {
        n = items[0].count;
        items = items[0].items;
    }
    struct counts c = {.call = call};
    mr_index_init(&c.index, 1024);
    int err = MR_OK;
    for (uint32_t i = 0; i < n && !err; i++)
        err = add_counts(&c, &items[i]);
    if (!err) err = return_counts(call, &c);
    mr_index_fini(&c.index);
    return err;
}

static int run_top(struct mr_op_call *call)
{
    const struct mr_arg *x = &call->args[0];
    int64_t n = 0;
    int err = mr_arg_int(call, &call->args[1], "n", 0, UINT32_MAX, &n);
    if (err) return err;
    struct counts c = {.call = call};
    mr_index_init(&c.index, MR_MAX(x->count, 16u));
    err = add_counts(&c, x);
    mr_index_fini(&c.index);
    if (err) return err;
    if (c.count) qsort(c.items, c.count, sizeof *c.items, by_count);
    uint32_t kept = (uint32_t)MR_MIN((int64_t)c.count, n);
    struct mr_arg *pairs =
        call->does->scratch(call, 3 * (uint64_t)MR_MAX(kept, 1u) * sizeof *pairs);
    if (!pairs) return MR_ELIMIT;
    for (uint32_t i = 0; i < kept; i++) {
        struct mr_arg *pair = pairs + kept + 2 * (uint64_t)i;
        pair[0] = (struct mr_arg){
            .type = MR_ARG_TEXT, .input = MR_ARG_NO_INPUT, .bytes = c.items[i].word};
        pair[1] = (struct mr_arg){.type = MR_ARG_INT, .input = MR_ARG_NO_INPUT, .i = c.items[i].n};
        pairs[i] = (struct mr_arg){
            .type = MR_ARG_LIST, .input = MR_ARG_NO_INPUT, .items = pair, .count = 2};
    }
    struct mr_arg list = {
        .type = MR_ARG_LIST, .input = MR_ARG_NO_INPUT, .items = pairs, .count = kept};
    return call->does->return_arg(call, &list);
}

#define D MR_OP_DETERMINISTIC

static const struct mr_op_param read_params[] = {
    {"path", MR_TAKES_TEXT, NULL, "The path of a file below a data root."},
    {"offset", MR_TAKES_INT, "0", "First byte."},
    {"length", MR_TAKES_INT, "null", "Number of bytes; null: up to the end."},
    {"delimiter", MR_TAKES_TEXT | MR_TAKES_NIL, "null",
        "Move both ends of the range behind the next such character, so that no line is in two "
        "ranges."},
};
static const struct mr_op_param split[] = {
    {"text", MR_TAKES_TEXT | MR_TAKES_BYTES, NULL, "The text or bytes to split."},
    {"separator", MR_TAKES_TEXT | MR_TAKES_NIL, "null",
        "Separator between pieces; null: white space."},
};
static const struct mr_op_param counted[] = {
    {"text", MR_TAKES_TEXT | MR_TAKES_LIST, NULL, "A text or a list of texts."},
    {"lower", MR_TAKES_BOOL, "false", "Counts A-Z as a-z."},
};
static const struct mr_op_param merged[] = {
    {"counts", MR_TAKES_DICT | MR_TAKES_LIST, "null",
        "Dicts of counts, or one list of such dicts."},
};
static const struct mr_op_param top[] = {
    {"counts", MR_TAKES_DICT, NULL, "A dict of counts."},
    {"n", MR_TAKES_INT, "10", "Number of words."},
};

const struct mr_op_desc *mr_text_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("text.read", MR_OP_MAY_BLOCK, read_params, 1000000, run_read, "text",
            "Reads a text file, or a range of its bytes."),
        MR_OP_ROW("text.split", D, split, 2000, run_split, "list of texts",
            "Splits a text at a separator or at white space."),
        MR_OP_ROW("text.count_words", D, counted, 5000, run_count_words, "dict of ints",
            "Counts how often each word occurs."),
        MR_OP_ROW("text.merge_counts", D | MR_OP_VARIADIC, merged, 5000, run_merge_counts,
            "dict of ints", "Adds the counts of several texts."),
        MR_OP_ROW("text.top", D, top, 5000, run_top, "list of [word, count]",
            "Returns the most frequent words; words with equal counts are sorted."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
