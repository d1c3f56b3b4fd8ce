/* Formats: values from and to the bytes that the world outside uses, chosen by name or MIME type.
 * Pure functions over memory; what is read is outside bytes, what is written leaves through a sink
 * in pieces, tensors without a copy. */
#pragma once

#include "store/object/value.h"

enum mr_format {
    MR_FORMAT_VALUE, /* the extent itself */
    MR_FORMAT_NPY,
    MR_FORMAT_IDX, /* plain, or gzip by its first bytes */
    MR_FORMAT_JSON,
    MR_FORMAT_CSV,
    MR_FORMAT_RAW,
    MR_FORMAT_TEXT,
    MR_FORMAT_PNG,
};
#define MR_FORMATS_COUNT 8
#define MR_TEXT_UPLOAD_MIME "application/vnd.millrace.text"

const char *mr_format_name(enum mr_format f); /* "npy" */
const char *mr_format_mime(enum mr_format f); /* "application/x-npy" */
/* Of an upload over HTTP: not text/plain, which a form of somebody else's page can send. */
const char *mr_format_upload_mime(enum mr_format f);
const char *mr_format_extension(enum mr_format f); /* ".npy" */
bool mr_format_can_import(enum mr_format f);
bool mr_format_can_export(enum mr_format f, const struct mr_value *v);

/* By name or MIME type, whose parameters (`; charset=utf-8`) are not looked at, in any case.
 * MR_EMEDIA lists what there is. */
int mr_format_find(struct mr_str name, enum mr_format *out, struct mr_error *e);
/* By the end of a path: ".npy", ".json", "idx3-ubyte", "….gz". MR_EMEDIA. */
int mr_format_of_path(struct mr_str path, enum mr_format *out, struct mr_error *e);
/* What a reader gets who does not say: json for packs, npy for tensors, csv for tables, png for the
 * bytes of one, … */
enum mr_format mr_format_default(const struct mr_value *v);
/* The first of an Accept header's types, best q first, that `v` can be exported to. Empty and "*"
 * go to the default. MR_EACCEPT lists what would do. */
int mr_format_accept(
    struct mr_str accept, const struct mr_value *v, enum mr_format *out, struct mr_error *e);

enum mr_csv_header { MR_CSV_HEADER_FIRST_LINE, MR_CSV_HEADER_NONE };

struct mr_format_options {     /* zero: the defaults */
    char csv_delimiter;        /* ',' */
    enum mr_csv_header header; /* without one, columns are called column0, column1 … */
    struct mr_str csv_missing; /* text that stands for a missing value, beside an empty field */
    enum mr_dtype dtype;       /* import of JSON: nested lists become a tensor of this type */
    bool json_columns;         /* export of tables to JSON: {"a": [1, 2]}, not [{"a": 1}, …] */
    bool has_range;            /* export to png: `low` is black, `high` is white */
    double low;
    double high;
};

/* Sets an option from its texts: delimiter, header (true, false), missing, dtype, orient (rows,
 * columns), low, high. `value` must outlive `o`. MR_EINVAL names what there is. */
int mr_format_option(
    struct mr_format_options *o, struct mr_str name, struct mr_str value, struct mr_error *e);

/* Takes bytes as they are made; what it returns other than MR_OK ends the export. */
struct mr_sink {
    int (*write)(void *ctx, const void *p, size_t n);
    void *ctx;
};
struct mr_sink mr_sink_to_buf(struct mr_buf *b); /* MR_ELIMIT past its ceiling */

/* One value from all of `bytes`; `o` may be NULL. MR_EFORMAT says where the bytes are wrong. */
int mr_format_import(enum mr_format f, struct mr_str bytes, const struct mr_format_options *o,
    const struct mr_value_alloc *a, struct mr_error *e);
/* MR_EACCEPT: this format cannot hold that value. */
int mr_format_export(const struct mr_value *v, enum mr_format f, const struct mr_format_options *o,
    struct mr_sink sink, struct mr_error *e);
