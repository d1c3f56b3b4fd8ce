/* Finds a format by name, media type, path or Accept header, and sets options by name. */
#include "store/object/format/format.h"

#include "base/buf.h"

#include <stdlib.h>

#define LIST_BYTES_MAX 500 /* bytes of the text that lists the formats in an error */
#define ACCEPT_TYPES_MAX 64

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Compares without regard to case; `word` is in lower case. */
static bool same_word(struct mr_str s, const char *word)
{
    if (s.n != strlen(word)) return false;
    for (size_t i = 0; i < s.n; i++)
        if (lower(s.p[i]) != word[i]) return false;
    return true;
}

static struct mr_str trim(struct mr_str s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t')) {
        s.p++;
        s.n--;
    }
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* Splits `*rest` at the first `c`: returns the part before `c`, and `*rest` becomes the part after
 * `c`. */
static struct mr_str cut(struct mr_str *rest, char c)
{
    const char *at = rest->n ? memchr(rest->p, c, rest->n) : NULL;
    struct mr_str head = *rest;
    if (at) head.n = (size_t)(at - rest->p);
    size_t taken = head.n + (at ? 1 : 0);
    rest->p += taken;
    rest->n -= taken;
    return head;
}

static bool find_name(struct mr_str name, enum mr_format *out)
{
    static const struct {
        const char *word;
        enum mr_format format;
    } others[] = {{"application/x-numpy", MR_FORMAT_NPY}, {"bytes", MR_FORMAT_RAW},
        {"application/csv", MR_FORMAT_CSV}, {"binary/octet-stream", MR_FORMAT_RAW},
        {"text/json", MR_FORMAT_JSON}, {MR_TEXT_UPLOAD_MIME, MR_FORMAT_TEXT}};
    struct mr_str type = trim(cut(&name, ';'));
    for (unsigned f = 0; f < MR_FORMATS_COUNT; f++) {
        *out = (enum mr_format)f;
        if (same_word(type, mr_format_name(*out)) || same_word(type, mr_format_mime(*out)))
            return true;
    }
    for (size_t i = 0; i < MR_ARRAY_LEN(others); i++) {
        *out = others[i].format;
        if (same_word(type, others[i].word)) return true;
    }
    return false;
}

/* Writes "npy (application/x-npy), …": the formats that can hold `v`, or all formats if `v` is
 * NULL. */
static void list_formats(const struct mr_value *v, char out[LIST_BYTES_MAX])
{
    struct mr_buf b;
    mr_buf_init(&b, LIST_BYTES_MAX - 1);
    for (unsigned i = 0; i < MR_FORMATS_COUNT; i++) {
        enum mr_format f = (enum mr_format)i;
        if (v && !mr_format_can_export(f, v)) continue;
        const char *mime = v ? mr_format_mime(f) : mr_format_upload_mime(f);
        mr_buf_printf(&b, "%s%s (%s)", b.n ? ", " : "", mr_format_name(f), mime);
    }
    memcpy(out, b.n ? (const char *)b.p : "", b.n);
    out[b.n] = 0;
    mr_buf_fini(&b);
}

int mr_format_find(struct mr_str name, enum mr_format *out, struct mr_error *e)
{
    enum mr_format f;
    if (find_name(name, &f)) {
        *out = f;
        return MR_OK;
    }
    char list[LIST_BYTES_MAX];
    list_formats(NULL, list);
    return mr_fail(e, MR_EMEDIA, "unknown format \"%.*s\"; there are %s",
        (int)MR_MIN(name.n, (size_t)100), name.n ? name.p : "", list);
}

static bool ends_with(struct mr_str s, const char *end)
{
    size_t n = strlen(end);
    return s.n > n && same_word(mr_str_of(s.p + s.n - n, n), end);
}

int mr_format_of_path(struct mr_str path, enum mr_format *out, struct mr_error *e)
{
    static const struct {
        const char *end;
        enum mr_format format;
    } others[] = {{"-ubyte", MR_FORMAT_IDX}, {"-ubyte.gz", MR_FORMAT_IDX},
        {".idx.gz", MR_FORMAT_IDX}, {".tsv", MR_FORMAT_CSV}};
    for (unsigned i = 0; i < MR_FORMATS_COUNT; i++) {
        enum mr_format f = (enum mr_format)i;
        if (!ends_with(path, mr_format_extension(f))) continue;
        *out = f;
        return MR_OK;
    }
    for (size_t i = 0; i < MR_ARRAY_LEN(others); i++) {
        if (!ends_with(path, others[i].end)) continue;
        *out = others[i].format;
        return MR_OK;
    }
    return mr_fail(e, MR_EMEDIA,
        "\"%.*s\" does not end like a known format: .npy, .json, .csv, .idx, .png, .txt, .bin, .mrv",
        (int)MR_MIN(path.n, (size_t)200), path.n ? path.p : "");
}

/* ---- Accept ---------------------------------------------------------------------------------- */

/* Returns the q of "…;q=0.8" in thousandths. 1000: there is no q. 0: q is not a number. */
static unsigned quality(struct mr_str parameters)
{
    while (parameters.n) {
        struct mr_str value = cut(&parameters, ';');
        struct mr_str name = trim(cut(&value, '='));
        if (!same_word(name, "q")) continue;
        value = trim(value);
        unsigned q = 0;
        unsigned unit = 1000;
        for (size_t i = 0; i < value.n && unit; i++) {
            if (value.p[i] == '.' && i == 1) continue;
            if (value.p[i] < '0' || value.p[i] > '9') return 0;
            q += (unsigned)(value.p[i] - '0') * unit;
            unit /= 10;
        }
        return MR_MIN(q, 1000u);
    }
    return 1000;
}

/* Sets `*out` to a format for a media type or a range of types. False: no such format can hold
 * `v`. */
static bool accept_one(struct mr_str type, const struct mr_value *v, enum mr_format *out)
{
    if (same_word(type, "*/*") || same_word(type, "*")) {
        *out = mr_format_default(v);
        return true;
    }
    if (type.n > 2 && type.p[type.n - 1] == '*') {
        struct mr_str family = mr_str_of(type.p, type.n - 1); /* e.g. "text/" */
        for (unsigned i = 0; i <= MR_FORMATS_COUNT; i++) {
            /* The default format comes first, then the formats in the order of the table. */
            enum mr_format f = i ? (enum mr_format)(i - 1) : mr_format_default(v);
            const char *mime = mr_format_mime(f);
            if (strncmp(mime, family.p, family.n) != 0 || !mr_format_can_export(f, v)) continue;
            *out = f;
            return true;
        }
        return false;
    }
    return find_name(type, out) && mr_format_can_export(*out, v);
}

int mr_format_accept(
    struct mr_str accept, const struct mr_value *v, enum mr_format *out, struct mr_error *e)
{
    struct mr_str rest = accept;
    unsigned best = 0;
    unsigned seen = 0;
    while (rest.n && seen++ < ACCEPT_TYPES_MAX) {
        struct mr_str parameters = cut(&rest, ',');
        struct mr_str type = trim(cut(&parameters, ';'));
        enum mr_format f;
        unsigned q = quality(parameters);
        if (!type.n || q <= best || !accept_one(type, v, &f)) continue;
        best = q;
        *out = f;
    }
    if (best) return MR_OK;
    if (!trim(accept).n) {
        *out = mr_format_default(v);
        return MR_OK;
    }
    char list[LIST_BYTES_MAX];
    list_formats(v, list);
    return mr_fail(e, MR_EACCEPT, "no format of \"%.*s\" can hold this value; these can: %s",
        (int)MR_MIN(accept.n, (size_t)200), accept.p, list);
}

/* ---- options --------------------------------------------------------------------------------- */

static int bad_option(
    struct mr_str name, struct mr_str value, const char *right, struct mr_error *e)
{
    return mr_fail(e, MR_EINVAL, "format option \"%.*s\" is \"%.*s\"; it can be %s",
        MR_STR_ARG(name), MR_STR_ARG(value), right);
}

static int set_number(struct mr_format_options *o, struct mr_str name, struct mr_str value,
    double *out, struct mr_error *e)
{
    char text[64];
    if (!value.n || value.n >= sizeof text) return bad_option(name, value, "a number", e);
    memcpy(text, value.p, value.n);
    text[value.n] = 0;
    char *end = NULL;
    double v = strtod(text, &end);
    if (*end || !(v - v == 0)) return bad_option(name, value, "a finite number", e);
    *out = v;
    o->has_range = true;
    return MR_OK;
}

int mr_format_option(
    struct mr_format_options *o, struct mr_str name, struct mr_str value, struct mr_error *e)
{
    if (same_word(name, "delimiter")) {
        if (same_word(value, "tab") || same_word(value, "\\t")) value = MR_STR("\t");
        bool bad = value.n != 1 || strchr("\"\r\n", value.p[0]) || (unsigned char)value.p[0] > 126;
        if (bad) return bad_option(name, value, "one ASCII character, no quote or line end", e);
        o->csv_delimiter = value.p[0];
    } else if (same_word(name, "header")) {
        bool yes = same_word(value, "true");
        if (!yes && !same_word(value, "false")) return bad_option(name, value, "true or false", e);
        o->header = yes ? MR_CSV_HEADER_FIRST_LINE : MR_CSV_HEADER_NONE;
    } else if (same_word(name, "missing")) {
        o->csv_missing = value;
    } else if (same_word(name, "dtype")) {
        if (mr_dtype_parse(value, &o->dtype))
            return bad_option(name, value, "bool, i8 to i64, u8 to u64, f16, f32, f64", e);
    } else if (same_word(name, "orient")) {
        o->json_columns = same_word(value, "columns");
        if (!o->json_columns && !same_word(value, "rows"))
            return bad_option(name, value, "rows or columns", e);
    } else if (same_word(name, "low")) {
        if (!o->has_range) o->high = 1;
        return set_number(o, name, value, &o->low, e);
    } else if (same_word(name, "high")) {
        return set_number(o, name, value, &o->high, e);
    } else {
        return mr_fail(e, MR_EINVAL,
            "unknown format option \"%.*s\"; there are delimiter, header, missing, dtype, orient, "
            "low, high",
            MR_STR_ARG(name));
    }
    return MR_OK;
}
