/* Parses the JSON of a job, and finds line and column of an error (parsed.h). */
#include "graph/json/parsed.h"

#include "base/alloc.h"
#include "base/limits.h"
#include "base/unconst.h"
#include "graph/json/internal.h"
#include "graph/json/slice.h"

/* ---- malformed text -------------------------------------------------------------------------- */

static bool starts(struct mr_str text, size_t at, const char *word)
{
    size_t n = strlen(word);
    return at <= text.n && text.n - at >= n && memcmp(text.p + at, word, n) == 0;
}

static int malformed(struct mr_str text, const yyjson_read_err *err, struct mr_error *e)
{
    size_t line = 1, column = 1, pos = MR_MIN(err->pos, text.n);
    for (size_t i = 0; i < pos; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == '\n') {
            line++;
            column = 1;
        } else if ((c & 0xc0) != 0x80) {
            column++;
        }
    }
    if (err->code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
        return mr_fail(e, MR_ELIMIT, "the job is too large to be read as a whole");
    const char *words = err->msg;
    if (starts(text, pos, "NaN") || starts(text, pos, "Infinity") || starts(text, pos, "nan") ||
        starts(text, pos, "inf") || (pos && text.p[pos - 1] == '-' && starts(text, pos, "I")))
        words = "NaN and Infinity are not JSON, and a graph holds finite numbers only";
    return mr_fail(e, MR_EINVAL, "malformed JSON: line %zu, column %zu: %s", line, column, words);
}

/* ---- parsing --------------------------------------------------------------------------------- */

/* Bounds the memory of one call of the parser. The parsed form of a text may take sixteen times the
 * bytes of the text. */
#define PARSED_BYTES_MAX ((size_t)2 << 30)

static void *parsed_alloc(void *ctx, size_t bytes)
{
    (void)ctx;
    return bytes > PARSED_BYTES_MAX ? NULL : mr_grow(NULL, bytes, bytes);
}

static void *parsed_realloc(void *ctx, void *p, size_t old_bytes, size_t bytes)
{
    (void)ctx;
    (void)old_bytes;
    return bytes > PARSED_BYTES_MAX ? NULL : mr_grow(p, bytes, bytes);
}

static void parsed_free(void *ctx, void *p)
{
    (void)ctx;
    mr_release(p);
}

static const yyjson_alc parsed = {parsed_alloc, parsed_realloc, parsed_free, NULL};

/* Parses the text of a job. If `slices` is not NULL, leaves out the entries of "tasks" or "dsk",
 * whose places are in `slices`. */
static yyjson_doc *parse(
    struct mr_str text, const struct mr_json_slices *slices, yyjson_read_err *err)
{
    if (!slices)
        return yyjson_read_opts(
            mr_unconst(text.p), text.n, YYJSON_READ_BIGNUM_AS_RAW, &parsed, err);
    size_t tail = text.n - slices->to;
    char *rest = mr_alloc(slices->from + tail);
    memcpy(rest, text.p, slices->from);
    memcpy(rest + slices->from, text.p + slices->to, tail);
    yyjson_doc *doc =
        yyjson_read_opts(rest, slices->from + tail, YYJSON_READ_BIGNUM_AS_RAW, &parsed, err);
    mr_release(rest);
    return doc;
}

yyjson_doc *mr_json_parse_rest(
    struct mr_str text, const struct mr_json_slices *slices, struct mr_error *e)
{
    yyjson_read_err read_err = {0};
    yyjson_doc *doc = parse(text, slices, &read_err);
    if (!doc) (void)malformed(text, &read_err, e);
    return doc;
}

yyjson_doc *mr_json_parse(struct mr_str text, struct mr_error *e)
{
    return mr_json_parse_rest(text, NULL, e);
}

const char *mr_json_kind(const yyjson_val *value)
{
    yyjson_val *v = mr_unconst(value);
    if (yyjson_is_null(v)) return "null";
    if (yyjson_is_bool(v)) return "true or false";
    if (yyjson_is_real(v)) return "a number with a fraction";
    if (yyjson_is_num(v)) return "an integer";
    if (yyjson_is_str(v)) return "a text";
    if (yyjson_is_arr(v)) return "a list";
    return "an object";
}
