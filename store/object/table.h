/* Tables: columns of equal length in one extent. Each column has the memory layout of Apache Arrow:
 * a validity bitmap (bit set: the row has a value; no bitmap: no row is missing), offsets for texts
 * and bytes, and the data. Every buffer begins at a multiple of 64, so Arrow libraries can use it
 * without a copy. */
#pragma once

#include "store/object/value.h"

/* The numbers are part of the format of tables and must never change. */
enum mr_column_type {
    MR_COLUMN_NONE = 0,
    MR_COLUMN_BOOL = 1, /* a bitmap, lowest bit first */
    MR_COLUMN_I8 = 2,
    MR_COLUMN_I16 = 3,
    MR_COLUMN_I32 = 4,
    MR_COLUMN_I64 = 5,
    MR_COLUMN_U8 = 6,
    MR_COLUMN_U16 = 7,
    MR_COLUMN_U32 = 8,
    MR_COLUMN_U64 = 9,
    MR_COLUMN_F16 = 10,
    MR_COLUMN_F32 = 11,
    MR_COLUMN_F64 = 12,
    MR_COLUMN_UTF8 = 13,       /* texts with offsets of int32_t, so at most 2 GiB in all */
    MR_COLUMN_BINARY = 14,     /* bytes with offsets of int32_t */
    MR_COLUMN_LARGE_UTF8 = 15, /* texts with offsets of int64_t */
    MR_COLUMN_LARGE_BINARY = 16,
    MR_COLUMN_DATE32 = 17,      /* int32_t: days since 1970-01-01 */
    MR_COLUMN_TIMESTAMP_S = 18, /* int64_t: seconds since 1970-01-01T00:00, without a time zone */
    MR_COLUMN_TIMESTAMP_MS = 19,
    MR_COLUMN_TIMESTAMP_US = 20,
    MR_COLUMN_TIMESTAMP_NS = 21,
};
#define MR_COLUMN_TYPES_COUNT 22
#define MR_TABLE_COLUMNS_MAX 16384
#define MR_COLUMN_NAME_BYTES_MAX 4096

/* The description of one column. Descriptions are in the part `meta` of a table's extent (value.h).
 * Offsets count from the start of the extent. */
struct mr_column_layout {
    uint16_t type;
    uint16_t flags; /* MR_COLUMN_NULLABLE or 0 */
    uint32_t name_bytes;
    uint64_t name_offset;
    uint64_t null_count;
    uint64_t validity_offset; /* 0: no row is missing, so there is no bitmap */
    uint64_t offsets_offset;  /* 0: the type has no offsets */
    uint64_t data_offset;
    uint64_t data_bytes;
    uint64_t reserved; /* must be 0 */
};
#define MR_COLUMN_NULLABLE 1u

/* Returns for example "i64", "utf8", "timestamp[us]". */
const char *mr_column_type_name(enum mr_column_type t);
/* True: elements of this type have different lengths. Such a type has offsets. */
bool mr_column_type_is_varied(enum mr_column_type t);
bool mr_column_type_is_text(enum mr_column_type t); /* true: utf8 with 32-bit or 64-bit offsets */
/* Returns the bits of one element; 0 for types with offsets. */
unsigned mr_column_type_bits(enum mr_column_type t);

/* ---- reading --------------------------------------------------------------------------------- */
struct mr_table {
    uint64_t rows;
    uint32_t columns_count;
    struct mr_value value;
};

struct mr_column {
    struct mr_str name;
    enum mr_column_type type;
    bool nullable;
    uint64_t rows;
    uint64_t null_count;
    const uint8_t *validity; /* NULL: no row is missing, so there is no bitmap */
    /* `rows` + 1 offsets of type int32_t or int64_t. NULL for types of fixed width. */
    const void *offsets;
    const void *data;
    uint64_t data_bytes;
};

int mr_table_open(const struct mr_value *v, struct mr_table *out, struct mr_error *e);
/* Opens column `i` and checks its layout, but not its rows. MR_ERANGE: there is no such column.
 * MR_EFORMAT: the layout is damaged. */
int mr_table_column(
    const struct mr_table *t, uint32_t i, struct mr_column *out, struct mr_error *e);
/* Sets `*out` to the index of the column with this name. MR_ENOENT: there is no such column, and
 * the text of the error lists the columns. */
int mr_table_find(const struct mr_table *t, struct mr_str name, uint32_t *out, struct mr_error *e);

static inline bool mr_bit_get(const uint8_t *bits, uint64_t i)
{
    return bits[i >> 3] >> (i & 7) & 1;
}

/* True: the row has a value. */
static inline bool mr_column_has(const struct mr_column *c, uint64_t row)
{
    return !c->validity || mr_bit_get(c->validity, row);
}

/* Returns the text or bytes of a row. Empty: the row is empty, or the column's offsets are
 * wrong. */
struct mr_str mr_column_text(const struct mr_column *c, uint64_t row);
/* Returns the value of a row of a column with an integer, date or timestamp type. A u64 above
 * INT64_MAX wraps. */
int64_t mr_column_i64(const struct mr_column *c, uint64_t row);
double mr_column_f64(const struct mr_column *c, uint64_t row); /* for a column of any number type */

/* Checks all rows of a column: offsets ascend, texts are UTF-8, null_count is right. MR_EFORMAT: a
 * row is wrong. */
int mr_column_check_deep(const struct mr_column *c, struct mr_error *e);

/* ---- writing --------------------------------------------------------------------------------- */
struct mr_column_spec {
    struct mr_str name;
    enum mr_column_type type;
    bool nullable;       /* true: the column gets a validity bitmap */
    uint64_t data_bytes; /* bytes of all texts; ignored for types of fixed width */
};

struct mr_column_out { /* where the caller writes the rows of a column, inside the extent */
    uint8_t *validity; /* all bits are set at first; NULL if the column is not nullable */
    /* The first offset is 0 already. NULL for types of fixed width. */
    void *offsets;
    void *data; /* zeroed if the data is a bitmap */
};

/* Returns the bytes of the table's extent. 0: a table like this is not allowed. */
uint64_t mr_table_bytes(const struct mr_column_spec *specs, uint32_t count, uint64_t rows);
/* Writes the header, the layouts and the names. The outputs tell the caller where to write the
 * rows. */
void mr_table_build(void *extent, const struct mr_column_spec *specs, uint32_t count, uint64_t rows,
    struct mr_column_out *outs);
/* Counts the missing rows of each nullable column. To be called after the rows have been
 * written. */
void mr_table_finish(void *extent);
