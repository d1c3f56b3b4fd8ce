/* Writes tables and small tensors as CSV. */
#include "store/object/format/csv_write.h"

#include "base/alloc.h"
#include "store/object/format/writer.h"
#include "store/object/table.h"

static void write_text(struct mr_out *o, struct mr_str s, char delimiter)
{
    bool quote = !s.n || s.p[0] == ' ' || s.p[s.n - 1] == ' ';
    for (size_t i = 0; i < s.n && !quote; i++)
        quote = s.p[i] == delimiter || s.p[i] == '"' || s.p[i] == '\n' || s.p[i] == '\r';
    if (!quote) {
        mr_out_add(o, s.p, s.n);
        return;
    }
    mr_out_byte(o, '"');
    for (size_t from = 0; from < s.n;) {
        const char *next = memchr(s.p + from, '"', s.n - from);
        size_t to = next ? (size_t)(next - s.p) + 1 : s.n;
        mr_out_add(o, s.p + from, to - from);
        if (next) mr_out_byte(o, '"');
        from = to;
    }
    mr_out_byte(o, '"');
}

static void write_cell(struct mr_out *o, const struct mr_column *c, uint64_t row, char delimiter)
{
    if (!mr_column_has(c, row)) return;
    if (mr_column_type_is_varied(c->type))
        write_text(o, mr_column_text(c, row), delimiter);
    else
        o->n += mr_number_cell(mr_out_reserve(o, MR_NUMBER_TEXT_MAX), c, row);
}

static int load_columns(const struct mr_table *t, struct mr_column *columns, struct mr_error *e)
{
    for (uint32_t i = 0; i < t->columns_count; i++) {
        struct mr_column *c = &columns[i];
        int err = mr_table_column(t, i, c, e);
        if (err) return err;
        if (mr_column_type_is_varied(c->type) && !mr_column_type_is_text(c->type))
            return mr_fail(e, MR_EACCEPT, "column \"%.*s\" holds bytes, which CSV cannot",
                MR_STR_ARG(c->name));
    }
    return MR_OK;
}

static int write_table(struct mr_out *o, const struct mr_value *v,
    const struct mr_format_options *options, struct mr_error *e)
{
    struct mr_table t;
    int err = mr_table_open(v, &t, e);
    if (err) return err;
    if (!t.columns_count) return mr_fail(e, MR_EACCEPT, "a table without columns has no CSV form");
    MR_AUTO(mr_free_ptr)
    struct mr_column *columns = mr_alloc_array(t.columns_count, sizeof(struct mr_column));
    err = load_columns(&t, columns, e);
    if (err) return err;
    char delimiter = options->csv_delimiter ? options->csv_delimiter : ',';
    for (uint32_t i = 0; i < t.columns_count && options->header != MR_CSV_HEADER_NONE; i++) {
        if (i) mr_out_byte(o, delimiter);
        write_text(o, columns[i].name, delimiter);
        if (i + 1 == t.columns_count) mr_out_text(o, "\r\n");
    }
    for (uint64_t row = 0; row < t.rows && !o->err; row++) {
        for (uint32_t i = 0; i < t.columns_count; i++) {
            if (i) mr_out_byte(o, delimiter);
            write_cell(o, &columns[i], row, delimiter);
        }
        mr_out_text(o, "\r\n");
    }
    return MR_OK;
}

static int write_tensor(struct mr_out *o, const struct mr_tensor *t,
    const struct mr_format_options *options, struct mr_error *e)
{
    if (!t->ndim || t->ndim > 2)
        return mr_fail(e, MR_EACCEPT, "a tensor of %u axes has no CSV form; 1 or 2 have", t->ndim);
    char delimiter = options->csv_delimiter ? options->csv_delimiter : ',';
    uint64_t columns = t->ndim == 2 ? t->shape[1] : 1;
    for (uint64_t row = 0; row < t->shape[0] && columns && !o->err; row++) {
        const unsigned char *at = (const unsigned char *)t->data + (int64_t)row * t->strides[0];
        for (uint64_t i = 0; i < columns && !o->err; i++) {
            if (i) mr_out_byte(o, delimiter);
            char *to = mr_out_reserve(o, MR_NUMBER_TEXT_MAX);
            int64_t offset = t->ndim == 2 ? (int64_t)i * t->strides[1] : 0;
            o->n += mr_number_element(to, t->dtype, at + offset);
        }
        mr_out_text(o, "\r\n");
    }
    return MR_OK;
}

int mr_csv_export(const struct mr_value *v, const struct mr_format_options *o, struct mr_sink sink,
    struct mr_error *e)
{
    static const struct mr_format_options defaults = {0};
    const struct mr_format_options *options = o ? o : &defaults;
    struct mr_out out;
    mr_out_init(&out, sink);
    int err = v->kind == MR_VALUE_TENSOR ? write_tensor(&out, &v->tensor, options, e)
                                         : write_table(&out, v, options, e);
    int sunk = mr_out_finish(&out);
    if (!err && sunk) err = mr_fail(e, sunk, "CSV export: %s", mr_err_words(sunk));
    return err;
}
