/* Writes texts, bytes, tensors and tables as JSON. */
#include "store/object/format/json_leaf.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <math.h>

static bool needs_escape(unsigned char c)
{
    return c < 0x20 || c == '"' || c == '\\';
}

static void write_escape(struct mr_out *o, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    static const char letters[0x20] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
    mr_out_byte(o, '\\');
    if (c >= 0x20) {
        mr_out_byte(o, (char)c);
    } else if (letters[c]) {
        mr_out_byte(o, letters[c]);
    } else {
        mr_out_text(o, "u00");
        mr_out_byte(o, digits[c >> 4]);
        mr_out_byte(o, digits[c & 15]);
    }
}

int mr_json_write_text(struct mr_out *o, struct mr_str s, struct mr_error *e)
{
    if (!mr_utf8_is_valid(s)) return mr_fail(e, MR_EFORMAT, "a text is not UTF-8");
    mr_out_byte(o, '"');
    size_t from = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (!needs_escape((unsigned char)s.p[i])) continue;
        mr_out_add(o, s.p + from, i - from);
        write_escape(o, (unsigned char)s.p[i]);
        from = i + 1;
    }
    mr_out_add(o, s.p + from, s.n - from);
    mr_out_byte(o, '"');
    return MR_OK;
}

void mr_json_write_base64(struct mr_out *o, struct mr_str bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *p = (const unsigned char *)bytes.p;
    mr_out_byte(o, '"');
    for (size_t i = 0; i < bytes.n; i += 3) {
        size_t n = MR_MIN(bytes.n - i, (size_t)3);
        uint32_t v = (uint32_t)p[i] << 16;
        if (n > 1) v |= (uint32_t)p[i + 1] << 8;
        if (n > 2) v |= p[i + 2];
        char *to = mr_out_reserve(o, 4);
        to[0] = digits[v >> 18];
        to[1] = digits[v >> 12 & 63];
        to[2] = n > 1 ? digits[v >> 6 & 63] : '=';
        to[3] = n > 2 ? digits[v & 63] : '=';
        o->n += 4;
    }
    mr_out_byte(o, '"');
}

static void write_element(struct mr_out *o, enum mr_dtype t, const void *element)
{
    char *to = mr_out_reserve(o, MR_NUMBER_TEXT_MAX + 2);
    size_t n = mr_number_element(to, t, element);
    char last = to[n - 1];
    /* NaN and Infinity stand in quotes, because JSON has no such numbers. */
    if (mr_dtype_is_float(t) && (last == 'N' || last == 'y')) {
        memmove(to + 1, to, n);
        to[0] = to[n + 1] = '"';
        n += 2;
    }
    o->n += n;
}

void mr_json_write_f64(struct mr_out *o, double v)
{
    write_element(o, MR_DTYPE_F64, &v);
}

void mr_json_write_u64s(struct mr_out *o, const uint64_t *v, unsigned n)
{
    mr_out_byte(o, '[');
    for (unsigned i = 0; i < n; i++) {
        if (i) mr_out_byte(o, ',');
        mr_out_u64(o, v[i]);
    }
    mr_out_byte(o, ']');
}

/* ---- tensors --------------------------------------------------------------------------------- */

static void write_line(struct mr_out *o, const struct mr_tensor *t, const unsigned char *at)
{
    unsigned last = t->ndim - 1;
    for (uint64_t i = 0; i < t->shape[last] && !o->err; i++) {
        if (i) mr_out_byte(o, ',');
        write_element(o, t->dtype, at + (int64_t)i * t->strides[last]);
    }
}

#define EMPTY_LISTS_MAX ((uint64_t)1 << 16)

/* Bounds the number of lists in a tensor without elements, which may still consist of very many
 * empty lists. */
static int check_empty(const struct mr_tensor *t, struct mr_error *e)
{
    uint64_t lists = 1;
    for (unsigned axis = 0; axis < t->ndim && t->shape[axis]; axis++)
        lists *= t->shape[axis];
    if (mr_tensor_elements(t) || lists <= EMPTY_LISTS_MAX) return MR_OK;
    return mr_fail(e, MR_ELIMIT, "an empty tensor of more than 65,536 lists has no JSON form here");
}

int mr_json_write_tensor(struct mr_out *o, const struct mr_tensor *t, struct mr_error *e)
{
    int err = check_empty(t, e);
    if (err) return err;
    const unsigned char *at = t->data;
    if (!t->ndim) {
        write_element(o, t->dtype, at);
        return MR_OK;
    }
    uint64_t index[MR_TENSOR_DIMS_MAX] = {0};
    unsigned axis = 0;
    mr_out_byte(o, '[');
    while (!o->err) {
        if (axis + 1 == t->ndim) {
            write_line(o, t, at);
            index[axis] = t->shape[axis];
        }
        if (index[axis] == t->shape[axis]) { /* the list along this axis is complete */
            mr_out_byte(o, ']');
            if (!axis) break;
            if (axis + 1 < t->ndim) at -= (int64_t)t->shape[axis] * t->strides[axis];
            axis--;
            at += t->strides[axis];
            index[axis]++;
            continue;
        }
        if (index[axis]) mr_out_byte(o, ',');
        index[++axis] = 0;
        mr_out_byte(o, '[');
    }
    return MR_OK;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int write_cell(struct mr_out *o, const struct mr_column *c, uint64_t row, struct mr_error *e)
{
    if (!mr_column_has(c, row)) {
        mr_out_text(o, "null");
        return MR_OK;
    }
    if (mr_column_type_is_text(c->type)) return mr_json_write_text(o, mr_column_text(c, row), e);
    if (mr_column_type_is_varied(c->type)) {
        mr_json_write_base64(o, mr_column_text(c, row));
        return MR_OK;
    }
    char *to = mr_out_reserve(o, MR_NUMBER_TEXT_MAX + 2);
    size_t n = mr_number_cell(to + 1, c, row);
    bool plain = to[n] != 'N' && to[n] != 'y' && c->type < MR_COLUMN_DATE32;
    if (plain) {
        memmove(to, to + 1, n);
    } else {
        to[0] = to[n + 1] = '"';
        n += 2;
    }
    o->n += n;
    return MR_OK;
}

static int write_rows(
    struct mr_out *o, const struct mr_table *t, const struct mr_column *columns, struct mr_error *e)
{
    mr_out_byte(o, '[');
    for (uint64_t row = 0; row < t->rows && !o->err; row++) {
        mr_out_text(o, row ? ",{" : "{");
        for (uint32_t i = 0; i < t->columns_count; i++) {
            if (i) mr_out_byte(o, ',');
            int err = mr_json_write_text(o, columns[i].name, e);
            mr_out_byte(o, ':');
            if (!err) err = write_cell(o, &columns[i], row, e);
            if (err) return err;
        }
        mr_out_byte(o, '}');
    }
    mr_out_byte(o, ']');
    return MR_OK;
}

static int write_columns(
    struct mr_out *o, const struct mr_table *t, const struct mr_column *columns, struct mr_error *e)
{
    mr_out_byte(o, '{');
    for (uint32_t i = 0; i < t->columns_count; i++) {
        if (i) mr_out_byte(o, ',');
        int err = mr_json_write_text(o, columns[i].name, e);
        mr_out_text(o, ":[");
        for (uint64_t row = 0; !err && row < t->rows && !o->err; row++) {
            if (row) mr_out_byte(o, ',');
            err = write_cell(o, &columns[i], row, e);
        }
        if (err) return err;
        mr_out_byte(o, ']');
    }
    mr_out_byte(o, '}');
    return MR_OK;
}

int mr_json_write_table(
    struct mr_out *o, const struct mr_value *v, bool columns, struct mr_error *e)
{
    struct mr_table t;
    int err = mr_table_open(v, &t, e);
    if (err) return err;
    MR_AUTO(mr_free_ptr)
    struct mr_column *all = mr_alloc_array(t.columns_count, sizeof(struct mr_column));
    for (uint32_t i = 0; i < t.columns_count; i++) {
        err = mr_table_column(&t, i, &all[i], e);
        if (err) return err;
    }
    if (!t.columns_count && t.rows > EMPTY_LISTS_MAX)
        return mr_fail(e, MR_ELIMIT, "a table of rows without columns has no JSON form");
    return columns ? write_columns(o, &t, all, e) : write_rows(o, &t, all, e);
}
