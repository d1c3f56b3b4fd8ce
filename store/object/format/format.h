/* Formats: import values from, and export values to, formats of other programs, chosen by name or
 * media type. The functions are pure functions over memory. Imported bytes are untrusted. Exported
 * bytes go to a sink in pieces; the elements of contiguous tensors are not copied. */
#pragma once

#include "store/object/value.h"

enum mr_format {
    MR_FORMAT_VALUE, /* the value's own bytes (store/object/value.h), not converted */
    MR_FORMAT_NPY,
    MR_FORMAT_IDX, /* exported plain; an imported file may be gzipped, which its first bytes tell */
    MR_FORMAT_JSON,
    MR_FORMAT_CSV,
    MR_FORMAT_RAW,
    MR_FORMAT_TEXT,
    MR_FORMAT_PNG,
};
#define MR_FORMATS_COUNT 8
#define MR_TEXT_UPLOAD_MIME "application/vnd.millrace.text"

const char *mr_format_name(enum mr_format f); /* for example "npy" */
const char *mr_format_mime(enum mr_format f); /* for example "application/x-npy" */
/* Returns the media type of an upload over HTTP. This type is never text/plain, which a form on a
 * page of another origin can send. */
const char *mr_format_upload_mime(enum mr_format f);
const char *mr_format_extension(enum mr_format f); /* for example ".npy" */
bool mr_format_can_import(enum mr_format f);
bool mr_format_can_export(enum mr_format f, const struct mr_value *v);

/* Sets `*out` to the format with this name or media type, in upper or lower case. Parameters such
 * as `; charset=utf-8` are ignored. The error text of MR_EMEDIA lists all formats. */
int mr_format_find(struct mr_str name, enum mr_format *out, struct mr_error *e);
/* Sets `*out` to the format for the end of a path: ".npy", ".json", "idx3-ubyte", "….gz".
 * MR_EMEDIA: no format has this end. */
int mr_format_of_path(struct mr_str path, enum mr_format *out, struct mr_error *e);
/* Returns the format for a client that names none: json for packs, npy for tensors, csv for tables,
 * png for the bytes of a PNG picture, … */
enum mr_format mr_format_default(const struct mr_value *v);
/* Sets `*out` to the format that an Accept header prefers by its q, among the formats to which `v`
 * can be exported. Of several formats with the same q, the first one counts. "" and "*" mean the
 * default format. The error text of MR_EACCEPT lists the possible formats. */
int mr_format_accept(
    struct mr_str accept, const struct mr_value *v, enum mr_format *out, struct mr_error *e);

enum mr_csv_header { MR_CSV_HEADER_FIRST_LINE, MR_CSV_HEADER_NONE };

struct mr_format_options {     /* all zeros: the defaults are used */
    char csv_delimiter;        /* 0: ',' */
    enum mr_csv_header header; /* without a header, the columns are named column0, column1, … */
    /* A text that means a missing value, in addition to an empty field. */
    struct mr_str csv_missing;
    enum mr_dtype dtype; /* import of JSON: nested lists become a tensor of this element type */
    /* Export of a table to JSON. True: {"a": [1, 2]}. False: [{"a": 1}, {"a": 2}]. */
    bool json_columns;
    /* Export to png: true if `low` becomes black and `high` white. */
    bool has_range;
    double low;
    double high;
};

/* Sets an option by name: delimiter, header (true, false), missing, dtype, orient (rows, columns),
 * low, high. `value` must outlive `o`. The error text of MR_EINVAL lists what is allowed. */
int mr_format_option(
    struct mr_format_options *o, struct mr_str name, struct mr_str value, struct mr_error *e);

/* Receives exported bytes as they are made. Any result of `write` but MR_OK ends the export. */
struct mr_sink {
    int (*write)(void *ctx, const void *p, size_t n);
    void *ctx;
};
/* Returns a sink that appends to the buffer. Its `write` returns MR_ELIMIT when the bytes exceed
 * the buffer's ceiling. */
struct mr_sink mr_sink_to_buf(struct mr_buf *b);

/* Imports one value from all of `bytes`; `o` may be NULL. The error text of MR_EFORMAT says where
 * the bytes are wrong. MR_EMEDIA: the format can only be written. */
int mr_format_import(enum mr_format f, struct mr_str bytes, const struct mr_format_options *o,
    const struct mr_value_alloc *a, struct mr_error *e);
/* Exports a value. MR_EACCEPT: the format cannot hold this value. */
int mr_format_export(const struct mr_value *v, enum mr_format f, const struct mr_format_options *o,
    struct mr_sink sink, struct mr_error *e);
