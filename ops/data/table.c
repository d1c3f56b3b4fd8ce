/* Basic operators on tables: table.from_csv, table.columns, table.head, table.column,
 * table.to_tensor. There are no queries on tables. */
#include "ops/data/data.h"

#include "ops/arg.h"
#include "ops/array/array.h"
#include "ops/file.h"
#include "store/object/format/csv.h"
#include "store/object/table.h"

#include <math.h>

#define CSV_BYTES_MAX ((uint64_t)4 << 30)

/* ---- reading ---- */

static void *result_alloc(void *ctx, uint64_t bytes)
{
    struct mr_op_call *call = ctx;
    return call->does->return_extent(call, bytes);
}

static int csv_options(struct mr_op_call *call, struct mr_format_options *o)
{
    struct mr_str delimiter = call->args[1].bytes;
    if (delimiter.n != 1)
        return call->does->fail(call, MR_EINVAL, "argument \"delimiter\": expected one character");
    o->csv_delimiter = delimiter.p[0];
    o->header = call->args[2].boolean ? MR_CSV_HEADER_FIRST_LINE : MR_CSV_HEADER_NONE;
    o->csv_missing = call->args[3].bytes;
    return MR_OK;
}

static int import_csv(struct mr_op_call *call, struct mr_str text, struct mr_str path,
    const struct mr_format_options *o)
{
    struct mr_value_alloc a = {.alloc = result_alloc, .ctx = call};
    struct mr_error why = {0};
    if (!mr_csv_import(text, o, &a, &why)) return MR_OK;
    return path.n ? call->does->fail(call, why.code, "\"%.*s\": %s", MR_STR_ARG(path), why.text)
                  : call->does->fail(call, why.code, "%s", why.text);
}

static int run_from_csv(struct mr_op_call *call)
{
    const struct mr_arg *source = &call->args[0];
    struct mr_format_options o = {0};
    int err = csv_options(call, &o);
    if (err) return err;
    struct mr_buf room;
    struct mr_str text = {0}, path = {0};
    struct mr_op_file f = {.fd = -1};
    mr_buf_init(&room, CSV_BYTES_MAX);
    if (source->type == MR_ARG_BYTES) {
        err = mr_op_unpack(call, source->bytes, path, &room, &text);
    } else {
        path = source->bytes;
        err = mr_op_file_open(call, path, &f);
        if (!err) err = mr_op_file_take_all(call, &f, &room, &text);
    }
    if (!err) err = import_csv(call, text, path, &o);
    mr_op_file_close(&f);
    mr_buf_fini(&room);
    return err;
}

static int open_table(struct mr_op_call *call, struct mr_table *out)
{
    struct mr_value v;
    struct mr_error why = {0};
    int err = mr_value_check(call->args[0].extent, &v, &why);
    if (!err) err = mr_table_open(&v, out, &why);
    return err ? call->does->fail(call, err, "argument \"table\": %s", why.text) : MR_OK;
}

static int get_column(
    struct mr_op_call *call, const struct mr_table *t, uint32_t i, struct mr_column *out)
{
    struct mr_error why = {0};
    int err = mr_table_column(t, i, out, &why);
    return err ? call->does->fail(call, err, "argument \"table\": %s", why.text) : MR_OK;
}

static int find_column(
    struct mr_op_call *call, const struct mr_table *t, struct mr_str name, struct mr_column *out)
{
    struct mr_error why = {0};
    uint32_t i = 0;
    int err = mr_table_find(t, name, &i, &why);
    return err ? call->does->fail(call, err, "%s", why.text) : get_column(call, t, i, out);
}

/* ---- columns, head ---- */

static struct mr_arg text_arg(struct mr_str s)
{
    return (struct mr_arg){.type = MR_ARG_TEXT, .input = MR_ARG_NO_INPUT, .bytes = s};
}

static int run_columns(struct mr_op_call *call)
{
    struct mr_table t;
    int err = open_table(call, &t);
    if (err) return err;
    struct mr_arg *pairs =
        call->does->scratch(call, 3 * (uint64_t)MR_MAX(t.columns_count, 1u) * sizeof *pairs);
    if (!pairs) return MR_ELIMIT;
    for (uint32_t i = 0; i < t.columns_count; i++) {
        struct mr_column c;
        err = get_column(call, &t, i, &c);
        if (err) return err;
        struct mr_arg *pair = pairs + t.columns_count + 2 * (uint64_t)i;
        pair[0] = text_arg(c.name);
        pair[1] = text_arg(mr_str(mr_column_type_name(c.type)));
        pairs[i] = (struct mr_arg){
            .type = MR_ARG_LIST, .input = MR_ARG_NO_INPUT, .items = pair, .count = 2};
    }
    struct mr_arg list = {
        .type = MR_ARG_LIST, .input = MR_ARG_NO_INPUT, .items = pairs, .count = t.columns_count};
    return call->does->return_arg(call, &list);
}

/* Returns the number of bytes of text in the first `rows` rows. */
static uint64_t text_bytes(const struct mr_column *c, uint64_t rows)
{
    uint64_t n = 0;
    for (uint64_t i = 0; mr_column_type_is_varied(c->type) && i < rows; i++)
        n += mr_column_text(c, i).n;
    return n;
}

static void copy_texts(const struct mr_column *c, uint64_t rows, const struct mr_column_out *out)
{
    bool wide = c->type == MR_COLUMN_LARGE_UTF8 || c->type == MR_COLUMN_LARGE_BINARY;
    uint64_t at = 0;
    for (uint64_t i = 0; i < rows; i++) {
        struct mr_str s = mr_column_text(c, i);
        if (s.n) memcpy((char *)out->data + at, s.p, s.n);
        at += s.n;
        if (wide)
            ((int64_t *)out->offsets)[i + 1] = (int64_t)at;
        else
            ((int32_t *)out->offsets)[i + 1] = (int32_t)at;
    }
}

static void copy_rows(const struct mr_column *c, uint64_t rows, const struct mr_column_out *out)
{
    unsigned bits = mr_column_type_bits(c->type);
    if (mr_column_type_is_varied(c->type)) {
        copy_texts(c, rows, out);
    } else if (bits == 1) {
        for (uint64_t i = 0; i < rows; i++)
            if (mr_bit_get(c->data, i)) ((uint8_t *)out->data)[i >> 3] |= (uint8_t)(1u << (i & 7));
    } else {
        memcpy(out->data, c->data, rows * (bits / 8));
    }
    for (uint64_t i = 0; out->validity && i < rows; i++)
        if (!mr_column_has(c, i)) out->validity[i >> 3] &= (uint8_t) ~(1u << (i & 7));
}

static int run_head(struct mr_op_call *call)
{
    struct mr_table t;
    int64_t wanted = 0;
    int err = mr_arg_int(call, &call->args[1], "rows", 0, INT64_MAX, &wanted);
    if (!err) err = open_table(call, &t);
    if (err) return err;
    uint64_t rows = MR_MIN((uint64_t)wanted, t.rows);
    uint64_t n = MR_MAX(t.columns_count, 1u);
    struct mr_column *columns = call->does->scratch(call, n * sizeof *columns);
    struct mr_column_spec *specs = call->does->scratch(call, n * sizeof *specs);
    struct mr_column_out *outs = call->does->scratch(call, n * sizeof *outs);
    if (!columns || !specs || !outs) return MR_ELIMIT;
    for (uint32_t i = 0; i < t.columns_count; i++) {
        err = get_column(call, &t, i, &columns[i]);
        if (err) return err;
        specs[i] = (struct mr_column_spec){.name = columns[i].name,
            .type = columns[i].type,
            .nullable = columns[i].nullable,
            .data_bytes = text_bytes(&columns[i], rows)};
    }
    void *extent = call->does->return_extent(call, mr_table_bytes(specs, t.columns_count, rows));
    if (!extent) return MR_ELIMIT;
    mr_table_build(extent, specs, t.columns_count, rows, outs);
    for (uint32_t i = 0; i < t.columns_count; i++)
        copy_rows(&columns[i], rows, &outs[i]);
    mr_table_finish(extent);
    return MR_OK;
}

/* ---- columns as arrays ---- */

/* Returns the dtype of a column of numbers. NONE: the column has no numbers. */
static enum mr_dtype dtype_of(enum mr_column_type t)
{
    /* In this range the two enums have equal values. */
    if (t >= MR_COLUMN_BOOL && t <= MR_COLUMN_F64) return (enum mr_dtype)t;
    if (t == MR_COLUMN_DATE32) return MR_DTYPE_I32;
    return t >= MR_COLUMN_TIMESTAMP_S && t <= MR_COLUMN_TIMESTAMP_NS ? MR_DTYPE_I64 : MR_DTYPE_NONE;
}

/* Converts a column without missing values. Bools are stored as bits and become bytes. */
static int plain_rows(
    struct mr_op_call *call, const struct mr_column *c, const struct mr_tensor *out)
{
    struct mr_tensor from;
    mr_tensor_init(&from, dtype_of(c->type), 1, &c->rows, c->data);
    if (c->type == MR_COLUMN_BOOL) {
        unsigned char *bytes = call->does->scratch(call, c->rows + 1);
        if (!bytes) return MR_ELIMIT;
        for (uint64_t i = 0; i < c->rows; i++)
            bytes[i] = mr_bit_get(c->data, i);
        from.data = bytes;
    }
    return mr_array_cast(call, &from, out);
}

/* Converts a column to `out`; a missing value becomes NaN. */
static int column_rows(
    struct mr_op_call *call, const struct mr_column *c, const struct mr_tensor *out)
{
    if (!c->null_count) return plain_rows(call, c, out);
    double *wide = call->does->scratch(call, c->rows * sizeof *wide + 8);
    if (!wide) return MR_ELIMIT;
    for (uint64_t i = 0; i < c->rows; i++) {
        double v = c->type == MR_COLUMN_BOOL     ? mr_bit_get(c->data, i)
                   : c->type >= MR_COLUMN_DATE32 ? (double)mr_column_i64(c, i)
                                                 : mr_column_f64(c, i);
        wide[i] = mr_column_has(c, i) ? v : (double)NAN;
    }
    struct mr_tensor from;
    mr_tensor_init(&from, MR_DTYPE_F64, 1, &c->rows, wide);
    return mr_array_cast(call, &from, out);
}

static int no_numbers(struct mr_op_call *call, const struct mr_column *c)
{
    return call->does->fail(call, MR_EINVAL, "column \"%.*s\" is %s, not numbers",
        (int)MR_MIN(c->name.n, 100u), c->name.p, mr_column_type_name(c->type));
}

static int return_texts(struct mr_op_call *call, const struct mr_column *c)
{
    if (c->rows > UINT32_MAX) return call->does->fail(call, MR_ELIMIT, "too many rows for a list");
    struct mr_arg *items = call->does->scratch(call, MR_MAX(c->rows, 1u) * sizeof *items);
    if (!items) return MR_ELIMIT;
    for (uint64_t i = 0; i < c->rows; i++) {
        items[i] = text_arg(mr_column_text(c, i));
        if (!mr_column_type_is_text(c->type)) items[i].type = MR_ARG_BYTES;
        if (!mr_column_has(c, i)) items[i].type = MR_ARG_NIL;
    }
    struct mr_arg list = {
        .type = MR_ARG_LIST, .input = MR_ARG_NO_INPUT, .items = items, .count = (uint32_t)c->rows};
    return call->does->return_arg(call, &list);
}

static int run_column(struct mr_op_call *call)
{
    struct mr_table t;
    struct mr_column c;
    int err = open_table(call, &t);
    if (!err) err = find_column(call, &t, call->args[1].bytes, &c);
    if (err) return err;
    enum mr_dtype own = dtype_of(c.type);
    if (own == MR_DTYPE_NONE) return return_texts(call, &c);
    enum mr_dtype dtype = c.null_count && !mr_dtype_is_float(own) ? MR_DTYPE_F64 : own;
    void *data = call->does->return_tensor(call, dtype, 1, &t.rows);
    if (!data) return MR_ELIMIT;
    struct mr_tensor out;
    mr_tensor_init(&out, dtype, 1, &t.rows, data);
    return column_rows(call, &c, &out);
}

/* Finds the columns that the argument "columns" names; if the argument is null, all columns of
 * numbers. */
static int choose(
    struct mr_op_call *call, const struct mr_table *t, struct mr_column *columns, uint32_t *count)
{
    const struct mr_arg *names = &call->args[1];
    *count = 0;
    if (names->type == MR_ARG_NIL) {
        for (uint32_t i = 0; i < t->columns_count; i++) {
            int err = get_column(call, t, i, &columns[*count]);
            if (err) return err;
            if (dtype_of(columns[*count].type) != MR_DTYPE_NONE) (*count)++;
        }
        return MR_OK;
    }
    for (uint32_t i = 0; i < names->count; i++) {
        if (names->items[i].type != MR_ARG_TEXT)
            return call->does->fail(call, MR_EINVAL, "argument \"columns\": expected texts, got %s",
                mr_arg_type_name(names->items[i].type));
        int err = find_column(call, t, names->items[i].bytes, &columns[i]);
        if (err) return err;
        if (dtype_of(columns[i].type) == MR_DTYPE_NONE) return no_numbers(call, &columns[i]);
    }
    *count = names->count;
    return MR_OK;
}

static int run_to_tensor(struct mr_op_call *call)
{
    struct mr_table t;
    enum mr_dtype dtype = MR_DTYPE_NONE;
    int err = open_table(call, &t);
    if (!err) err = mr_array_dtype(call, &call->args[2], "dtype", &dtype);
    if (err) return err;
    if (!mr_dtype_is_float(dtype))
        return call->does->fail(call, MR_EINVAL, "argument \"dtype\": expected f16, f32 or f64");
    uint32_t room = MR_MAX(t.columns_count, MR_MAX(call->args[1].count, 1u));
    struct mr_column *columns = call->does->scratch(call, room * sizeof *columns);
    if (!columns) return MR_ELIMIT;
    uint32_t count = 0;
    err = choose(call, &t, columns, &count);
    if (err) return err;
    const uint64_t shape[2] = {t.rows, count};
    void *data = call->does->return_tensor(call, dtype, 2, shape);
    if (!data) return MR_ELIMIT;
    struct mr_tensor whole;
    mr_tensor_init(&whole, dtype, 2, shape, data);
    for (uint32_t i = 0; i < count && !err; i++) {
        struct mr_tensor out = whole;
        out.ndim = 1;
        out.data = (char *)data + i * mr_dtype_bytes(dtype);
        err = column_rows(call, &columns[i], &out);
    }
    return err;
}

#define D MR_OP_DETERMINISTIC
#define TABLE_PARAM                                                                                \
    {                                                                                              \
        "table", MR_TAKES_VALUE, NULL, "A table."                                                  \
    }

static const struct mr_op_param csv[] = {
    {"source", MR_TAKES_TEXT | MR_TAKES_BYTES, NULL,
        "The path of a file below a data root, or the bytes of the file; may be gzipped."},
    {"delimiter", MR_TAKES_TEXT, "\",\"", "Character between fields."},
    {"header", MR_TAKES_BOOL, "true", "The first line has the names of the columns."},
    {"missing", MR_TAKES_TEXT, "\"\"",
        "Text that means a missing value; an empty field always does."},
};
static const struct mr_op_param asked[] = {TABLE_PARAM};
static const struct mr_op_param head[] = {
    TABLE_PARAM,
    {"rows", MR_TAKES_INT, "10", "Number of rows."},
};
static const struct mr_op_param column[] = {
    TABLE_PARAM,
    {"name", MR_TAKES_TEXT, NULL, "Name of the column."},
};
static const struct mr_op_param matrix[] = {
    TABLE_PARAM,
    {"columns", MR_TAKES_LIST | MR_TAKES_NIL, "null",
        "Names of columns in order; null: all columns of numbers."},
    {"dtype", MR_TAKES_TEXT, "\"f64\"", "Element type: f16, f32 or f64."},
};

const struct mr_op_desc *mr_table_ops(uint32_t *count)
{
    static const struct mr_op_desc ops[] = {
        MR_OP_ROW("table.from_csv", MR_OP_MAY_BLOCK, csv, 1000000, run_from_csv, "table",
            "Reads a CSV file; column types follow from all rows: bool, i64, u64, f64, else text "
            "(also integers from 2^64 on)."),
        MR_OP_ROW("table.columns", D, asked, 2000, run_columns, "list of [name, type]",
            "Lists the columns of a table and their types."),
        MR_OP_ROW(
            "table.head", D, head, 5000, run_head, "table", "Returns the first rows of a table."),
        MR_OP_ROW("table.column", D, column, 5000, run_column, "tensor, or list of texts",
            "Returns one column; a column with missing numbers becomes f64 with NaN."),
        MR_OP_ROW("table.to_tensor", D, matrix, 10000, run_to_tensor, "tensor of two axes",
            "Makes a matrix from columns of numbers; a missing number is NaN."),
    };
    *count = MR_ARRAY_LEN(ops);
    return ops;
}
