/* Reads CSV into tables in two passes over the text. The first pass finds the type of each column
 * and counts the bytes of its texts; the second writes the values to their final places. */
#include "store/object/format/csv.h"

#include "base/alloc.h"
#include "base/index.h"
#include "base/utf8.h"
#include "store/object/format/csv_field.h"
#include "store/object/layout.h"
#include "store/object/table.h"

#include <inttypes.h>
#include <xxhash.h>

enum {
    SAW_BOOL = 1,
    SAW_INT = 2,
    SAW_NEGATIVE = 4, /* a negative integer */
    SAW_U64 = 8,      /* an integer from 2^63 to 2^64 - 1 */
    SAW_BIG = 16,     /* an integer that fits neither int64_t nor uint64_t */
    SAW_FLOAT = 32,
    SAW_TEXT = 64,
    SAW_MISSING = 128
};

struct column {
    unsigned saw;
    uint64_t text_bytes;
    enum mr_column_type type;
    /* In the second pass: bytes of the column's text written so far. */
    uint64_t at;
    struct mr_column_out out;
};

struct import {
    struct mr_csv_reader r;
    const struct mr_format_options *o;
    struct mr_column_spec *specs;
    struct column *columns;
    uint32_t count;
    uint64_t rows;
    struct mr_buf names;
    /* The end of each column's name in `names`. */
    size_t *name_ends;
    struct mr_error *e;
};

static void import_fini(struct import *m)
{
    mr_release(m->specs);
    mr_release(m->columns);
    mr_release(m->name_ends);
    mr_buf_fini(&m->names);
    mr_csv_reader_fini(&m->r);
}

static bool is_missing(const struct import *m, const struct mr_csv_field *f)
{
    if (f->quoted) return false;
    return !f->text.n || (m->o->csv_missing.n && mr_str_eq(f->text, m->o->csv_missing));
}

/* ---- the first line -------------------------------------------------------------------------- */

/* Sets m->count to the number of fields of the first line, and moves the reader past that line. */
static int count_columns(struct import *m)
{
    struct mr_csv_field f;
    uint64_t n = 0;
    do {
        int err = mr_csv_next(&m->r, &f, m->e);
        if (err) return err;
        n++;
    } while (!f.last);
    if (n > MR_TABLE_COLUMNS_MAX)
        return mr_fail(
            m->e, MR_ELIMIT, "CSV with %" PRIu64 " columns; at most %d", n, MR_TABLE_COLUMNS_MAX);
    m->count = (uint32_t)n;
    return MR_OK;
}

static struct mr_str name_of(const struct import *m, uint32_t i)
{
    size_t start = i ? m->name_ends[i - 1] : 0;
    size_t n = m->name_ends[i] - start;
    return n ? mr_str_of(m->names.p + start, n) : MR_STR("");
}

static bool is_named(const void *ctx, uint32_t item, const void *key)
{
    const struct mr_str *name = key;
    return mr_str_eq(name_of(ctx, item), *name);
}

/* Makes the name of column `i`, the last one in m->names, unique: appends "_" and the column's
 * number until no other column has the name. Readers find columns by name. */
static int settle_name(struct import *m, uint32_t i, struct mr_index *taken)
{
    for (;;) {
        m->name_ends[i] = m->names.n;
        struct mr_str name = name_of(m, i);
        if (name.n > MR_COLUMN_NAME_BYTES_MAX)
            return mr_fail(m->e, MR_ELIMIT, "CSV column %" PRIu32 " has a name of over %d bytes", i,
                MR_COLUMN_NAME_BYTES_MAX);
        uint64_t hash = XXH3_64bits(name.p, name.n);
        if (mr_index_find(taken, hash, is_named, m, &name) == MR_INDEX_NONE) {
            mr_index_add(taken, hash, i, NULL, NULL);
            return MR_OK;
        }
        mr_buf_printf(&m->names, "_%" PRIu32, i);
    }
}

/* Reads the names from the first line. Without a header, makes names and leaves the first line to
 * the rows. */
static int read_names(struct import *m)
{
    int err = MR_OK;
    MR_AUTO(mr_index_fini) struct mr_index taken;
    mr_index_init(&taken, m->count);
    mr_csv_rewind(&m->r);
    for (uint32_t i = 0; i < m->count && !err; i++) {
        struct mr_csv_field f;
        if (m->o->header == MR_CSV_HEADER_NONE)
            mr_buf_printf(&m->names, "column%" PRIu32, i);
        else if (!(err = mr_csv_next(&m->r, &f, m->e)))
            mr_buf_add_str(&m->names, f.text);
        if (!err) err = settle_name(m, i, &taken);
    }
    for (uint32_t i = 0; i < m->count && !err; i++)
        m->specs[i].name = name_of(m, i);
    return err;
}

/* ---- the first pass -------------------------------------------------------------------------- */

static unsigned classify(const struct mr_csv_field *f)
{
    if (!f->text.n) return SAW_TEXT;
    bool b = false;
    if (mr_csv_is_bool(f->text, &b)) return SAW_BOOL;
    switch (mr_csv_number_kind(f->text)) {
    case MR_CSV_INT: return memchr(f->text.p, '-', f->text.n) ? SAW_INT | SAW_NEGATIVE : SAW_INT;
    case MR_CSV_U64: return SAW_U64;
    case MR_CSV_BIG_INT: return SAW_BIG;
    case MR_CSV_FLOAT: return SAW_FLOAT;
    case MR_CSV_NO_NUMBER: break;
    }
    return SAW_TEXT;
}

/* Reads one line and calls `take` for each field. MR_EFORMAT: the number of fields differs from
 * that of the first line. */
static int each_field(struct import *m, uint64_t row,
    int (*take)(struct import *m, uint32_t column, uint64_t row, const struct mr_csv_field *f))
{
    uint32_t i = 0;
    struct mr_csv_field f;
    uint64_t line = m->r.line;
    do {
        int err = mr_csv_next(&m->r, &f, m->e);
        if (err) return err;
        if (i < m->count) err = take(m, i, row, &f);
        if (err) return err;
        i++;
    } while (!f.last);
    if (i == m->count) return MR_OK;
    return mr_fail(m->e, MR_EFORMAT,
        "CSV line %" PRIu64 " has %" PRIu32 " fields; the first line has %" PRIu32, line, i,
        m->count);
}

static int look(struct import *m, uint32_t column, uint64_t row, const struct mr_csv_field *f)
{
    (void)row;
    struct column *c = &m->columns[column];
    if (is_missing(m, f)) {
        c->saw |= SAW_MISSING;
        return MR_OK;
    }
    c->text_bytes += f->text.n;
    if (!(c->saw & SAW_TEXT)) c->saw |= classify(f);
    return MR_OK;
}

static enum mr_column_type type_of(const struct column *c)
{
    unsigned saw = c->saw & ~(unsigned)SAW_MISSING;
    if (saw == SAW_BOOL) return MR_COLUMN_BOOL;
    if (saw & SAW_INT && !(saw & ~(unsigned)(SAW_INT | SAW_NEGATIVE))) return MR_COLUMN_I64;
    if (saw & SAW_U64 && !(saw & ~(unsigned)(SAW_INT | SAW_U64))) return MR_COLUMN_U64;
    /* Integers that fit no 64-bit type become floats if the column has floats. Otherwise they are
     * probably ids, whose digits a double would lose, and the column becomes text. */
    if (saw & SAW_FLOAT && !(saw & (SAW_BOOL | SAW_TEXT))) return MR_COLUMN_F64;
    return c->text_bytes > INT32_MAX ? MR_COLUMN_LARGE_UTF8 : MR_COLUMN_UTF8;
}

/* ---- the second pass ------------------------------------------------------------------------- */

static void put_offset(struct column *c, uint64_t row)
{
    int64_t wide = (int64_t)c->at;
    int32_t narrow = (int32_t)c->at;
    if (c->type == MR_COLUMN_LARGE_UTF8)
        memcpy((unsigned char *)c->out.offsets + (row + 1) * sizeof wide, &wide, sizeof wide);
    else
        memcpy((unsigned char *)c->out.offsets + (row + 1) * sizeof narrow, &narrow, sizeof narrow);
}

static int put(struct import *m, uint32_t column, uint64_t row, const struct mr_csv_field *f)
{
    struct column *c = &m->columns[column];
    bool missing = is_missing(m, f);
    if (missing) c->out.validity[row / 8] &= (uint8_t) ~(1u << row % 8);
    unsigned char *data = c->out.data;
    if (c->type == MR_COLUMN_BOOL) {
        bool b = false;
        if (!missing && mr_csv_is_bool(f->text, &b) && b) data[row / 8] |= (uint8_t)(1u << row % 8);
    } else if (c->type == MR_COLUMN_I64) {
        int64_t v = missing ? 0 : mr_csv_i64(f->text);
        memcpy(data + row * sizeof v, &v, sizeof v);
    } else if (c->type == MR_COLUMN_U64) {
        uint64_t v = missing ? 0 : mr_csv_u64(f->text);
        memcpy(data + row * sizeof v, &v, sizeof v);
    } else if (c->type == MR_COLUMN_F64) {
        double v = missing ? 0 : mr_csv_f64(f->text);
        memcpy(data + row * sizeof v, &v, sizeof v);
    } else {
        if (!missing && f->text.n) memcpy(data + c->at, f->text.p, f->text.n);
        if (!missing) c->at += f->text.n;
        put_offset(c, row);
    }
    return MR_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int first_pass(struct import *m)
{
    struct mr_csv_reader rows = m->r;
    while (mr_csv_has_line(&m->r, m->count == 1)) {
        int err = each_field(m, m->rows, look);
        if (err) return err;
        m->rows++;
    }
    mr_csv_reader_return(&m->r, &rows);
    for (uint32_t i = 0; i < m->count; i++) {
        struct column *c = &m->columns[i];
        c->type = type_of(c);
        m->specs[i].type = c->type;
        m->specs[i].nullable = (c->saw & SAW_MISSING) != 0;
        m->specs[i].data_bytes = c->text_bytes;
    }
    return MR_OK;
}

static int second_pass(struct import *m, const struct mr_value_alloc *a)
{
    void *extent = NULL;
    int err = mr_value_take(a, mr_table_bytes(m->specs, m->count, m->rows), &extent, m->e);
    if (err) return err;
    struct mr_column_out *outs = mr_alloc_array(m->count, sizeof *outs);
    mr_table_build(extent, m->specs, m->count, m->rows, outs);
    for (uint32_t i = 0; i < m->count; i++)
        m->columns[i].out = outs[i];
    mr_release(outs);
    for (uint64_t row = 0; row < m->rows && !err; row++) {
        /* The second pass skips the empty lines that the first pass skipped. */
        (void)mr_csv_has_line(&m->r, m->count == 1);
        err = each_field(m, row, put);
    }
    mr_table_finish(extent);
    return err;
}

static int import_table(struct import *m, const struct mr_value_alloc *a)
{
    if (!mr_csv_has_line(&m->r, false))
        return mr_fail(m->e, MR_EFORMAT, "CSV without a line: a table has at least column names");
    int err = count_columns(m);
    if (err) return err;
    m->specs = mr_alloc_array(m->count, sizeof *m->specs);
    m->columns = mr_alloc_array(m->count, sizeof *m->columns);
    m->name_ends = mr_alloc_array(m->count, sizeof *m->name_ends);
    err = read_names(m);
    if (!err) err = first_pass(m);
    if (!err) err = second_pass(m, a);
    return err;
}

int mr_csv_import(struct mr_str text, const struct mr_format_options *o,
    const struct mr_value_alloc *a, struct mr_error *e)
{
    static const struct mr_format_options defaults = {0};
    if (!mr_utf8_is_valid(text)) return mr_fail(e, MR_EFORMAT, "CSV is not UTF-8");
    struct import m = {.o = o ? o : &defaults, .e = e};
    mr_buf_init(&m.names, text.n + (size_t)MR_TABLE_COLUMNS_MAX * MR_COLUMN_NAME_BYTES_MAX);
    mr_csv_reader_init(&m.r, text, m.o->csv_delimiter ? m.o->csv_delimiter : ',');
    int err = import_table(&m, a);
    import_fini(&m);
    return err;
}
