/* Reads and builds tables. The columns of a table lie in one byte string, its extent (value.h).
 * Every access is checked to lie within the extent. */
#include "store/object/table.h"

#include "base/assert.h"
#include "base/utf8.h"
#include "store/object/layout.h"

#include <assert.h>
#include <inttypes.h>

static_assert(sizeof(struct mr_column_layout) == 64, "column layouts are part of the layout");

struct type_row {
    const char *name;
    unsigned char bits;    /* bits of one element */
    unsigned char offsets; /* bytes of one offset; 0: the type has no offsets */
    bool is_text;
};

/* clang-format off */
static const struct type_row types[MR_COLUMN_TYPES_COUNT] = {
    [MR_COLUMN_NONE] = {"none", 0, 0, false},
    [MR_COLUMN_BOOL] = {"bool", 1, 0, false},
    [MR_COLUMN_I8] = {"i8", 8, 0, false},
    [MR_COLUMN_I16] = {"i16", 16, 0, false},
    [MR_COLUMN_I32] = {"i32", 32, 0, false},
    [MR_COLUMN_I64] = {"i64", 64, 0, false},
    [MR_COLUMN_U8] = {"u8", 8, 0, false},
    [MR_COLUMN_U16] = {"u16", 16, 0, false},
    [MR_COLUMN_U32] = {"u32", 32, 0, false},
    [MR_COLUMN_U64] = {"u64", 64, 0, false},
    [MR_COLUMN_F16] = {"f16", 16, 0, false},
    [MR_COLUMN_F32] = {"f32", 32, 0, false},
    [MR_COLUMN_F64] = {"f64", 64, 0, false},
    [MR_COLUMN_UTF8] = {"utf8", 0, 4, true},
    [MR_COLUMN_BINARY] = {"binary", 0, 4, false},
    [MR_COLUMN_LARGE_UTF8] = {"large_utf8", 0, 8, true},
    [MR_COLUMN_LARGE_BINARY] = {"large_binary", 0, 8, false},
    [MR_COLUMN_DATE32] = {"date", 32, 0, false},
    [MR_COLUMN_TIMESTAMP_S] = {"timestamp[s]", 64, 0, false},
    [MR_COLUMN_TIMESTAMP_MS] = {"timestamp[ms]", 64, 0, false},
    [MR_COLUMN_TIMESTAMP_US] = {"timestamp[us]", 64, 0, false},
    [MR_COLUMN_TIMESTAMP_NS] = {"timestamp[ns]", 64, 0, false},
};
/* clang-format on */

static const struct type_row *row_of(enum mr_column_type t)
{
    mr_assert((unsigned)t < MR_COLUMN_TYPES_COUNT);
    return &types[t];
}

const char *mr_column_type_name(enum mr_column_type t)
{
    return row_of(t)->name;
}

bool mr_column_type_is_varied(enum mr_column_type t)
{
    return row_of(t)->offsets != 0;
}

bool mr_column_type_is_text(enum mr_column_type t)
{
    return row_of(t)->is_text;
}

unsigned mr_column_type_bits(enum mr_column_type t)
{
    return row_of(t)->bits;
}

static uint64_t bitmap_bytes(uint64_t rows)
{
    return rows / 8 + (rows % 8 != 0);
}

/* The number of rows is at most MR_OBJECT_BYTES_MAX, so the result does not overflow. */
static uint64_t fixed_bytes(enum mr_column_type t, uint64_t rows)
{
    unsigned bits = row_of(t)->bits;
    return bits == 1 ? bitmap_bytes(rows) : rows * (bits / 8);
}

/* ---- reading --------------------------------------------------------------------------------- */

int mr_table_open(const struct mr_value *v, struct mr_table *out, struct mr_error *e)
{
    if (v->kind != MR_VALUE_TABLE)
        return mr_fail(e, MR_EINVAL, "a %s, not a table", mr_value_kind_name(v->kind));
    if (v->tensor.ndim != 2) return mr_fail(e, MR_EFORMAT, "table without rows and columns");
    uint64_t rows = v->tensor.shape[0];
    uint64_t columns = v->tensor.shape[1];
    if (rows > MR_OBJECT_BYTES_MAX)
        return mr_fail(e, MR_EFORMAT, "table of %" PRIu64 " rows; at most %" PRIu64, rows,
            MR_OBJECT_BYTES_MAX);
    if (columns > MR_TABLE_COLUMNS_MAX)
        return mr_fail(e, MR_EFORMAT, "table of %" PRIu64 " columns; at most %d", columns,
            MR_TABLE_COLUMNS_MAX);
    if (columns * sizeof(struct mr_column_layout) > v->meta_bytes)
        return mr_fail(e, MR_EFORMAT,
            "table of %" PRIu64 " columns with %" PRIu64 " bytes of layout", columns,
            v->meta_bytes);
    *out = (struct mr_table){.rows = rows, .columns_count = (uint32_t)columns, .value = *v};
    return MR_OK;
}

static bool is_inside(const struct mr_value *v, uint64_t offset, uint64_t bytes, uint64_t align)
{
    uint64_t first = (uint64_t)(v->data - v->extent);
    return offset % align == 0 && offset >= first && offset <= v->nbytes &&
           bytes <= v->nbytes - offset;
}

static int column_fail(uint32_t i, const char *what, struct mr_error *e)
{
    return mr_fail(e, MR_EFORMAT, "table's column %" PRIu32 ": %s", i, what);
}

static int check_layout(
    const struct mr_table *t, const struct mr_column_layout *l, uint32_t i, struct mr_error *e)
{
    const struct mr_value *v = &t->value;
    if (l->type == MR_COLUMN_NONE || l->type >= MR_COLUMN_TYPES_COUNT)
        return column_fail(i, "its type is unknown", e);
    const struct type_row *type = row_of((enum mr_column_type)l->type);
    if (l->flags & ~MR_COLUMN_NULLABLE || l->reserved)
        return column_fail(i, "reserved fields are used", e);
    if (l->name_bytes > MR_COLUMN_NAME_BYTES_MAX || !is_inside(v, l->name_offset, l->name_bytes, 1))
        return column_fail(i, "its name lies outside the table", e);
    if (!mr_utf8_is_valid(mr_str_of(v->extent + l->name_offset, l->name_bytes)))
        return column_fail(i, "its name is not UTF-8", e);
    if (l->null_count > t->rows || (l->null_count && !l->validity_offset))
        return column_fail(i, "more is missing than it can say", e);
    if (l->validity_offset &&
        !is_inside(v, l->validity_offset, bitmap_bytes(t->rows), MR_VALUE_ALIGN))
        return column_fail(i, "its validity bitmap lies outside the table", e);
    if (!is_inside(v, l->data_offset, l->data_bytes, MR_VALUE_ALIGN))
        return column_fail(i, "its data lies outside the table", e);
    if (!type->offsets) {
        if (l->offsets_offset) return column_fail(i, "offsets on a type of fixed width", e);
        if (l->data_bytes < fixed_bytes((enum mr_column_type)l->type, t->rows))
            return column_fail(i, "its data is shorter than its rows", e);
        return MR_OK;
    }
    if (!l->offsets_offset ||
        !is_inside(v, l->offsets_offset, (t->rows + 1) * type->offsets, MR_VALUE_ALIGN))
        return column_fail(i, "its offsets lie outside the table", e);
    return MR_OK;
}

int mr_table_column(const struct mr_table *t, uint32_t i, struct mr_column *out, struct mr_error *e)
{
    if (i >= t->columns_count)
        return mr_fail(
            e, MR_ERANGE, "column %" PRIu32 " of a table that has %" PRIu32, i, t->columns_count);
    struct mr_column_layout l;
    memcpy(&l, t->value.meta + i * sizeof l, sizeof l);
    int err = check_layout(t, &l, i, e);
    if (err) return err;
    const unsigned char *extent = t->value.extent;
    *out = (struct mr_column){
        .name = mr_str_of(extent + l.name_offset, l.name_bytes),
        .type = (enum mr_column_type)l.type,
        .nullable = (l.flags & MR_COLUMN_NULLABLE) != 0,
        .rows = t->rows,
        .null_count = l.null_count,
        .validity = l.validity_offset ? extent + l.validity_offset : NULL,
        .offsets = l.offsets_offset ? extent + l.offsets_offset : NULL,
        .data = extent + l.data_offset,
        .data_bytes = l.data_bytes,
    };
    return MR_OK;
}

#define NAMES_BYTES_MAX 600 /* bytes of the column names in an error */

int mr_table_find(const struct mr_table *t, struct mr_str name, uint32_t *out, struct mr_error *e)
{
    struct mr_buf names;
    mr_buf_init(&names, NAMES_BYTES_MAX);
    for (uint32_t i = 0; i < t->columns_count; i++) {
        struct mr_column c;
        int err = mr_table_column(t, i, &c, e);
        if (err || mr_str_eq(c.name, name)) {
            mr_buf_fini(&names);
            if (!err) *out = i;
            return err;
        }
        mr_buf_printf(&names, "%s\"%.*s\"", i ? ", " : "", MR_STR_ARG(c.name));
    }
    int err = mr_fail(e, MR_ENOENT, "no column \"%.*s\"; the table has %.*s%s", MR_STR_ARG(name),
        (int)names.n, names.n ? (const char *)names.p : "", mr_buf_status(&names) ? ", …" : "");
    mr_buf_fini(&names);
    return err;
}

static uint64_t offset_at(const struct mr_column *c, uint64_t i)
{
    if (row_of(c->type)->offsets == 8) {
        uint64_t v = 0;
        memcpy(&v, (const unsigned char *)c->offsets + i * sizeof v, sizeof v);
        return v;
    }
    int32_t v = 0;
    memcpy(&v, (const unsigned char *)c->offsets + i * sizeof v, sizeof v);
    return (uint64_t)(int64_t)v; /* a negative offset becomes greater than any data */
}

struct mr_str mr_column_text(const struct mr_column *c, uint64_t row)
{
    mr_assert(row < c->rows);
    mr_assert(c->offsets);
    uint64_t from = offset_at(c, row);
    uint64_t to = offset_at(c, row + 1);
    if (from > to || to > c->data_bytes) return MR_STR("");
    return mr_str_of((const unsigned char *)c->data + from, to - from);
}

#define AT(type)                                                                                   \
    __extension__({                                                                                \
        type v_;                                                                                   \
        memcpy(&v_, (const unsigned char *)c->data + row * sizeof v_, sizeof v_);                  \
        v_;                                                                                        \
    })

int64_t mr_column_i64(const struct mr_column *c, uint64_t row)
{
    mr_assert(row < c->rows);
    switch (c->type) {
    case MR_COLUMN_BOOL: return mr_bit_get(c->data, row);
    case MR_COLUMN_I8: return AT(int8_t);
    case MR_COLUMN_I16: return AT(int16_t);
    case MR_COLUMN_I32:
    case MR_COLUMN_DATE32: return AT(int32_t);
    case MR_COLUMN_I64:
    case MR_COLUMN_TIMESTAMP_S:
    case MR_COLUMN_TIMESTAMP_MS:
    case MR_COLUMN_TIMESTAMP_US:
    case MR_COLUMN_TIMESTAMP_NS: return AT(int64_t);
    case MR_COLUMN_U8: return AT(uint8_t);
    case MR_COLUMN_U16: return AT(uint16_t);
    case MR_COLUMN_U32: return AT(uint32_t);
    case MR_COLUMN_U64: return (int64_t)AT(uint64_t);
    case MR_COLUMN_F16:
    case MR_COLUMN_F32:
    case MR_COLUMN_F64:
    case MR_COLUMN_UTF8:
    case MR_COLUMN_BINARY:
    case MR_COLUMN_LARGE_UTF8:
    case MR_COLUMN_LARGE_BINARY:
    case MR_COLUMN_NONE: break;
    }
    MR_PANIC("a column of %s has no integers", mr_column_type_name(c->type));
}

double mr_column_f64(const struct mr_column *c, uint64_t row)
{
    mr_assert(row < c->rows);
    if (c->type == MR_COLUMN_F64) return AT(double);
    if (c->type == MR_COLUMN_F32) return (double)AT(float);
    if (c->type == MR_COLUMN_F16) return (double)mr_f16_to_f32(AT(uint16_t));
    if (c->type == MR_COLUMN_U64) return (double)AT(uint64_t);
    return (double)mr_column_i64(c, row);
}

static uint64_t count_missing(const uint8_t *validity, uint64_t rows)
{
    uint64_t there = 0;
    uint64_t i = 0;
    for (; i + 64 <= rows; i += 64) {
        uint64_t word = 0;
        memcpy(&word, validity + i / 8, sizeof word);
        there += (uint64_t)__builtin_popcountll(word);
    }
    for (; i < rows; i++)
        there += mr_bit_get(validity, i);
    return rows - there;
}

int mr_column_check_deep(const struct mr_column *c, struct mr_error *e)
{
    if (c->validity && count_missing(c->validity, c->rows) != c->null_count)
        return mr_fail(e, MR_EFORMAT, "column \"%.*s\": its count of missing rows is wrong",
            MR_STR_ARG(c->name));
    if (!c->offsets) return MR_OK;
    uint64_t last = offset_at(c, 0);
    for (uint64_t i = 0; i < c->rows; i++) {
        uint64_t next = offset_at(c, i + 1);
        if (next < last || next > c->data_bytes)
            return mr_fail(e, MR_EFORMAT,
                "column \"%.*s\": offsets of row %" PRIu64 " lead out of its data",
                MR_STR_ARG(c->name), i);
        last = next;
        if (row_of(c->type)->is_text && !mr_utf8_is_valid(mr_column_text(c, i)))
            return mr_fail(e, MR_EFORMAT, "column \"%.*s\": row %" PRIu64 " is not UTF-8",
                MR_STR_ARG(c->name), i);
    }
    return MR_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The positions of all parts of a table, which plan_table computes. */
struct plan {
    struct mr_column_layout *layouts; /* NULL: only the size is computed */
    uint64_t at;
    uint64_t meta_offset;
    uint64_t names_bytes;
};

static bool take(struct plan *p, uint64_t bytes, uint64_t *offset)
{
    *offset = p->at;
    uint64_t room = MR_OBJECT_BYTES_MAX - p->at;
    if (bytes > room || mr_align_up(bytes, MR_VALUE_ALIGN) > room) return false;
    p->at += mr_align_up(bytes, MR_VALUE_ALIGN);
    return true;
}

static bool plan_column(
    struct plan *p, const struct mr_column_spec *spec, uint64_t rows, struct mr_column_layout *l)
{
    if (spec->type == MR_COLUMN_NONE || (unsigned)spec->type >= MR_COLUMN_TYPES_COUNT) return false;
    if (spec->name.n > MR_COLUMN_NAME_BYTES_MAX || !mr_utf8_is_valid(spec->name)) return false;
    const struct type_row *type = row_of(spec->type);
    if (type->offsets == 4 && spec->data_bytes > INT32_MAX) return false;
    *l = (struct mr_column_layout){.type = (uint16_t)spec->type,
        .flags = spec->nullable ? MR_COLUMN_NULLABLE : 0,
        .name_bytes = (uint32_t)spec->name.n,
        /* At first counted from the start of the names; mr_table_build then adds the offset of the
         * names in the extent. */
        .name_offset = p->names_bytes,
        .data_bytes = type->offsets ? spec->data_bytes : fixed_bytes(spec->type, rows)};
    p->names_bytes += spec->name.n;
    if (spec->nullable && !take(p, bitmap_bytes(rows), &l->validity_offset)) return false;
    if (type->offsets && !take(p, (rows + 1) * type->offsets, &l->offsets_offset)) return false;
    return take(p, l->data_bytes, &l->data_offset);
}

static bool plan_table(
    struct plan *p, const struct mr_column_spec *specs, uint32_t count, uint64_t rows)
{
    if (count > MR_TABLE_COLUMNS_MAX || rows > MR_OBJECT_BYTES_MAX) return false;
    p->at = mr_value_data_offset(MR_VALUE_TABLE, 2);
    for (uint32_t i = 0; i < count; i++) {
        struct mr_column_layout l;
        if (!plan_column(p, &specs[i], rows, &l)) return false;
        if (p->layouts) p->layouts[i] = l;
    }
    p->meta_offset = p->at;
    uint64_t offset = 0;
    return take(p, count * sizeof(struct mr_column_layout) + p->names_bytes, &offset);
}

uint64_t mr_table_bytes(const struct mr_column_spec *specs, uint32_t count, uint64_t rows)
{
    struct plan p = {0};
    if (!plan_table(&p, specs, count, rows)) return 0;
    return p.at;
}

/* Zeroes the padding after a buffer, so that equal tables are equal bytes. */
static void zero_tail(unsigned char *extent, uint64_t offset, uint64_t bytes)
{
    memset(extent + offset + bytes, 0, mr_align_up(bytes, MR_VALUE_ALIGN) - bytes);
}

static struct mr_column_out start_column(
    unsigned char *extent, const struct mr_column_layout *l, uint64_t rows)
{
    const struct type_row *type = row_of((enum mr_column_type)l->type);
    struct mr_column_out out = {.data = extent + l->data_offset};
    zero_tail(extent, l->data_offset, l->data_bytes);
    if (type->bits == 1) memset(out.data, 0, l->data_bytes);
    if (l->validity_offset) {
        uint64_t bytes = bitmap_bytes(rows);
        out.validity = extent + l->validity_offset;
        memset(out.validity, 0xff, bytes);
        if (rows % 8) out.validity[bytes - 1] = (uint8_t)((1u << rows % 8) - 1);
        zero_tail(extent, l->validity_offset, bytes);
    }
    if (l->offsets_offset) {
        out.offsets = extent + l->offsets_offset;
        memset(out.offsets, 0, type->offsets);
        zero_tail(extent, l->offsets_offset, (rows + 1) * type->offsets);
    }
    return out;
}

void mr_table_build(void *extent, const struct mr_column_spec *specs, uint32_t count, uint64_t rows,
    struct mr_column_out *outs)
{
    /* The first run finds the place of the layouts, and the second run writes them there. */
    struct plan p = {0};
    bool fits = plan_table(&p, specs, count, rows);
    mr_assert(fits);
    unsigned char *base = extent;
    struct plan again = {.layouts = (struct mr_column_layout *)(void *)(base + p.meta_offset)};
    (void)plan_table(&again, specs, count, rows);
    struct mr_value_frame f = {.kind = MR_VALUE_TABLE,
        .ndim = 2,
        .shape = (uint64_t[]){rows, count},
        .meta_offset = p.meta_offset,
        .meta_bytes = count * sizeof(struct mr_column_layout) + p.names_bytes};
    f.data_bytes = p.meta_offset - mr_value_data_offset(MR_VALUE_TABLE, 2);
    mr_value_write_header(extent, &f);
    uint64_t names_offset = p.meta_offset + count * sizeof(struct mr_column_layout);
    for (uint32_t i = 0; i < count; i++) {
        struct mr_column_layout *l = &again.layouts[i];
        l->name_offset += names_offset;
        if (l->name_bytes) memcpy(base + l->name_offset, specs[i].name.p, l->name_bytes);
        outs[i] = start_column(base, l, rows);
    }
    zero_tail(base, f.meta_offset, f.meta_bytes);
}

void mr_table_finish(void *extent)
{
    unsigned char *base = extent;
    struct mr_value_header h;
    memcpy(&h, base, sizeof h);
    mr_assert(h.kind == MR_VALUE_TABLE);
    uint64_t dims[2];
    memcpy(dims, base + sizeof h, sizeof dims);
    struct mr_column_layout *layouts = (struct mr_column_layout *)(void *)(base + h.meta_offset);
    for (uint64_t i = 0; i < dims[1]; i++) {
        struct mr_column_layout *l = &layouts[i];
        if (l->validity_offset) l->null_count = count_missing(base + l->validity_offset, dims[0]);
    }
}
