/* Reads and writes NumPy files: a header, which is a Python literal and is parsed strictly by hand,
 * and the elements. */
#include "store/object/format/npy.h"

#include "base/assert.h"
#include "store/object/format/elements.h"

#include <inttypes.h>
#include <stdio.h>

/* limit of the bytes before the header: magic number, version and the field with the header's
 * length */
#define PREAMBLE_BYTES_MAX 12
#define HEADER_BYTES_MAX 65536

static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/* ---- the header's literal: {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), } ------- */

struct scanner {
    const char *p;
    size_t n;
    size_t at;
};

static void skip_space(struct scanner *s)
{
    while (s->at < s->n && (s->p[s->at] == ' ' || s->p[s->at] == '\n' || s->p[s->at] == '\t'))
        s->at++;
}

static bool take_char(struct scanner *s, char c)
{
    skip_space(s);
    if (s->at >= s->n || s->p[s->at] != c) return false;
    s->at++;
    return true;
}

static bool take_word(struct scanner *s, const char *word)
{
    skip_space(s);
    size_t n = strlen(word);
    if (s->n - s->at < n || memcmp(s->p + s->at, word, n) != 0) return false;
    s->at += n;
    return true;
}

static bool take_string(struct scanner *s, struct mr_str *out)
{
    char quote = take_char(s, '\'') ? '\'' : '"';
    if (quote == '"' && !take_char(s, '"')) return false;
    const char *end = memchr(s->p + s->at, quote, s->n - s->at);
    if (!end) return false;
    *out = mr_str_of(s->p + s->at, (size_t)(end - (s->p + s->at)));
    s->at += out->n + 1;
    return true;
}

static bool take_number(struct scanner *s, uint64_t *out)
{
    skip_space(s);
    size_t start = s->at;
    uint64_t v = 0;
    while (s->at < s->n && s->p[s->at] >= '0' && s->p[s->at] <= '9') {
        if (__builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s->p[s->at] - '0'), &v))
            return false;
        s->at++;
    }
    if (s->at == start) return false;
    (void)take_char(s, 'L'); /* Python 2 wrote an L after some integers */
    *out = v;
    return true;
}

static int take_shape(struct scanner *s, struct mr_npy_header *h, struct mr_error *e)
{
    if (!take_char(s, '(')) return mr_fail(e, MR_EFORMAT, "npy header: shape is not a tuple");
    while (!take_char(s, ')')) {
        if (h->ndim == MR_TENSOR_DIMS_MAX)
            return mr_fail(
                e, MR_EFORMAT, "npy header: shape of more than %d axes", MR_TENSOR_DIMS_MAX);
        if (!take_number(s, &h->shape[h->ndim]))
            return mr_fail(e, MR_EFORMAT, "npy header: axis %u of shape is no number", h->ndim);
        h->ndim++;
        if (take_char(s, ',')) continue;
        if (!take_char(s, ')')) return mr_fail(e, MR_EFORMAT, "npy header: shape does not end");
        break;
    }
    return MR_OK;
}

static int parse_descr(struct mr_str d, struct mr_npy_header *h, struct mr_error *e)
{
    static const struct {
        const char *code;
        enum mr_dtype dtype;
    } codes[] = {{"b1", MR_DTYPE_BOOL}, {"?", MR_DTYPE_BOOL}, {"i1", MR_DTYPE_I8},
        {"i2", MR_DTYPE_I16}, {"i4", MR_DTYPE_I32}, {"i8", MR_DTYPE_I64}, {"u1", MR_DTYPE_U8},
        {"u2", MR_DTYPE_U16}, {"u4", MR_DTYPE_U32}, {"u8", MR_DTYPE_U64}, {"f2", MR_DTYPE_F16},
        {"f4", MR_DTYPE_F32}, {"f8", MR_DTYPE_F64}};
    struct mr_str code = d;
    bool has_order = d.n && strchr("<>|=", d.p[0]);
    if (has_order) code = mr_str_of(d.p + 1, d.n - 1);
    for (size_t i = 0; i < MR_ARRAY_LEN(codes); i++) {
        if (!mr_str_eq(code, mr_str(codes[i].code))) continue;
        h->dtype = codes[i].dtype;
        h->swapped = has_order && d.p[0] == '>';
        return MR_OK;
    }
    return mr_fail(e, MR_EFORMAT,
        "npy header: elements of type \"%.*s\"; bool, integers and floats of up to 8 bytes can be "
        "read",
        MR_STR_ARG(d));
}

enum { SEEN_DESCR = 1, SEEN_ORDER = 2, SEEN_SHAPE = 4 };

static int take_entry(
    struct scanner *s, struct mr_npy_header *h, unsigned *seen, struct mr_error *e)
{
    struct mr_str key;
    if (!take_string(s, &key) || !take_char(s, ':'))
        return mr_fail(e, MR_EFORMAT, "npy header: malformed at byte %zu", s->at);
    unsigned which = mr_str_eq(key, MR_STR("descr"))           ? SEEN_DESCR
                     : mr_str_eq(key, MR_STR("fortran_order")) ? SEEN_ORDER
                     : mr_str_eq(key, MR_STR("shape"))         ? SEEN_SHAPE
                                                               : 0;
    if (!which || *seen & which)
        return mr_fail(e, MR_EFORMAT, "npy header: key \"%.*s\" is %s", MR_STR_ARG(key),
            which ? "there twice" : "unknown");
    *seen |= which;
    if (which == SEEN_SHAPE) return take_shape(s, h, e);
    if (which == SEEN_ORDER) {
        h->fortran = take_word(s, "True");
        if (h->fortran || take_word(s, "False")) return MR_OK;
        return mr_fail(e, MR_EFORMAT, "npy header: fortran_order is not True or False");
    }
    struct mr_str descr;
    if (!take_string(s, &descr))
        return mr_fail(e, MR_EFORMAT, "npy header: structured element types cannot be read");
    return parse_descr(descr, h, e);
}

static int parse_literal(struct mr_str text, struct mr_npy_header *h, struct mr_error *e)
{
    struct scanner s = {text.p, text.n, 0};
    unsigned seen = 0;
    if (!take_char(&s, '{')) return mr_fail(e, MR_EFORMAT, "npy header: no dictionary");
    while (!take_char(&s, '}')) {
        int err = take_entry(&s, h, &seen, e);
        if (err) return err;
        if (take_char(&s, ',')) continue;
        if (!take_char(&s, '}')) return mr_fail(e, MR_EFORMAT, "npy header: it does not end");
        break;
    }
    if (seen != (SEEN_DESCR | SEEN_ORDER | SEEN_SHAPE))
        return mr_fail(e, MR_EFORMAT, "npy header: descr, fortran_order or shape is missing");
    skip_space(&s);
    if (s.at != s.n) return mr_fail(e, MR_EFORMAT, "npy header: text after its end");
    return MR_OK;
}

int mr_npy_header_read(struct mr_str bytes, struct mr_npy_header *out, struct mr_error *e)
{
    const unsigned char *p = (const unsigned char *)bytes.p;
    if (memcmp(p ? p : magic, magic, MR_MIN(bytes.n, sizeof magic)) != 0)
        return mr_fail(e, MR_EFORMAT, "not an npy file: it does not start with \\x93NUMPY");
    out->data_offset = PREAMBLE_BYTES_MAX;
    if (bytes.n < PREAMBLE_BYTES_MAX)
        return mr_fail(e, MR_ERANGE, "npy file cut off after %zu bytes", bytes.n);
    if (p[6] < 1 || p[6] > 3)
        return mr_fail(e, MR_EFORMAT, "npy file of version %u.%u; 1 to 3 can be read", p[6], p[7]);
    uint64_t preamble = p[6] == 1 ? 10 : 12;
    uint64_t n = (uint64_t)p[8] | (uint64_t)p[9] << 8;
    if (p[6] > 1) n |= (uint64_t)p[10] << 16 | (uint64_t)p[11] << 24;
    if (n > HEADER_BYTES_MAX)
        return mr_fail(
            e, MR_EFORMAT, "npy header of %" PRIu64 " bytes; at most %d", n, HEADER_BYTES_MAX);
    out->data_offset = preamble + n;
    if (bytes.n < out->data_offset)
        return mr_fail(e, MR_ERANGE, "npy file cut off after %zu bytes, in its header", bytes.n);
    struct mr_npy_header h = {.data_offset = out->data_offset};
    int err = parse_literal(mr_str_of(p + preamble, n), &h, e);
    if (err) return err;
    err = mr_tensor_shape_check(h.dtype, h.ndim, h.shape, NULL, &h.data_bytes, e);
    if (err) return err;
    *out = h;
    return MR_OK;
}

/* ---- elements -------------------------------------------------------------------------------- */

void mr_npy_convert(const struct mr_npy_header *h, const void *data, void *out)
{
    size_t width = mr_dtype_bytes(h->dtype);
    uint64_t n = h->data_bytes / width;
    if (h->fortran && h->ndim > 1) {
        mr_assert(data != out || !n);
        struct mr_tensor t = {.dtype = h->dtype, .ndim = h->ndim, .data = data};
        int64_t stride = (int64_t)width;
        for (unsigned axis = 0; axis < h->ndim; axis++) {
            t.shape[axis] = h->shape[axis];
            t.strides[axis] = stride;
            stride *= (int64_t)MR_MAX(h->shape[axis], (uint64_t)1);
        }
        mr_tensor_copy(&t, out);
        if (h->swapped) mr_elements_swap(out, out, n, width);
    } else if (h->swapped) {
        mr_elements_swap(out, data, n, width);
    } else if (data != out && n) {
        memcpy(out, data, h->data_bytes);
    }
    if (h->dtype == MR_DTYPE_BOOL) mr_elements_to_bool(out, n);
}

int mr_npy_import(struct mr_str bytes, const struct mr_value_alloc *a, struct mr_error *e)
{
    struct mr_npy_header h;
    int err = mr_npy_header_read(bytes, &h, e);
    if (err)
        return err == MR_ERANGE ? mr_fail(e, MR_EFORMAT, "npy file cut off in its header") : err;
    uint64_t there = bytes.n - h.data_offset;
    if (there != h.data_bytes)
        return mr_fail(e, MR_EFORMAT,
            "npy file with %" PRIu64 " bytes of elements; its header says %" PRIu64, there,
            h.data_bytes);
    void *data = NULL;
    err = mr_tensor_new(a, h.dtype, h.ndim, h.shape, &data, e);
    if (err) return err;
    mr_npy_convert(&h, bytes.p + h.data_offset, data);
    return MR_OK;
}

static const char *descr_of(enum mr_dtype t)
{
    static const char *const descrs[MR_DTYPES_COUNT] = {[MR_DTYPE_BOOL] = "|b1",
        [MR_DTYPE_I8] = "|i1",
        [MR_DTYPE_I16] = "<i2",
        [MR_DTYPE_I32] = "<i4",
        [MR_DTYPE_I64] = "<i8",
        [MR_DTYPE_U8] = "|u1",
        [MR_DTYPE_U16] = "<u2",
        [MR_DTYPE_U32] = "<u4",
        [MR_DTYPE_U64] = "<u8",
        [MR_DTYPE_F16] = "<f2",
        [MR_DTYPE_F32] = "<f4",
        [MR_DTYPE_F64] = "<f8"};
    return descrs[t];
}

/* Writes the preamble and the literal, padded with spaces so that the elements begin at a multiple
 * of 64. */
static size_t write_header(const struct mr_tensor *t, char *out, size_t out_bytes)
{
    size_t n = 10;
    n += (size_t)snprintf(out + n, out_bytes - n,
        "{'descr': '%s', 'fortran_order': False, "
        "'shape': (",
        descr_of(t->dtype));
    for (unsigned axis = 0; axis < t->ndim; axis++)
        n += (size_t)snprintf(out + n, out_bytes - n, "%s%" PRIu64 "%s", axis ? " " : "",
            t->shape[axis], axis + 1 < t->ndim || t->ndim == 1 ? "," : "");
    n += (size_t)snprintf(out + n, out_bytes - n, "), }");
    size_t total = (size_t)mr_align_up(n + 1, 64);
    memset(out + n, ' ', total - n - 1);
    out[total - 1] = '\n';
    memcpy(out, magic, sizeof magic);
    out[6] = 1;
    out[7] = 0;
    out[8] = (char)((total - 10) & 0xff);
    out[9] = (char)((total - 10) >> 8);
    return total;
}

int mr_npy_export(const struct mr_tensor *t, struct mr_sink sink, struct mr_error *e)
{
    char header[640]; /* has room for 16 axes of 20 digits and the keywords */
    size_t n = write_header(t, header, sizeof header);
    int err = sink.write(sink.ctx, header, n);
    if (!err) err = mr_elements_write(t, false, sink);
    if (err) return mr_fail(e, err, "npy export: %s", mr_err_words(err));
    return MR_OK;
}
