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
    MR_COLUMN_UTF8 = 13,       /* with offsets of int32_t: at most 2 GiB of text */
    MR_COLUMN_BINARY = 14,     /* the same for bytes */
    MR_COLUMN_LARGE_UTF8 = 15, /* with offsets of int64_t */
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

/* One in meta for each column; offsets count from the start of the extent. */
struct mr_column_layout {
    uint16_t type;
    uint16_t flags; /* MR_COLUMN_NULLABLE or 0 */
    uint32_t name_bytes;
    uint64_t name_offset;
    uint64_t null_count;
    uint64_t validity_offset; /* 0: no row is missing */
    uint64_t offsets_offset;  /* 0: the type has no offsets */
    uint64_t data_offset;
    uint64_t data_bytes;
    uint64_t reserved; /* must be 0 */
};
#define MR_COLUMN_NULLABLE 1u

const char *mr_column_type_name(enum mr_column_type t); /* "i64", "utf8", "timestamp[us]" */
/* Do its elements have different lengths? Such a type has offsets. */
bool mr_column_type_is_varied(enum mr_column_type t);
bool mr_column_type_is_text(enum mr_column_type t); /* utf8 with 32-bit or 64-bit offsets */
/* Bits of one element; 0 for types with offsets. */
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
    const uint8_t *validity; /* NULL: no row is missing */
    /* Rows + 1 offsets of int32_t or int64_t; NULL for types of fixed width. */
    const void *offsets;
    const void *data;
    uint64_t data_bytes;
};

int mr_table_open(const struct mr_value *v, struct mr_table *out, struct mr_error *e);
/* Opens column `i` and checks its layout (MR_EFORMAT), but not its rows. */
int mr_table_column(
    const struct mr_table *t, uint32_t i, struct mr_column *out, struct mr_error *e);
/* Finds a column by name. The sentence of MR_ENOENT lists the columns. */
int mr_table_find(const struct mr_table *t, struct mr_str name, uint32_t *out, struct mr_error *e);

static inline bool mr_bit_get(const uint8_t *bits, uint64_t i)
{
    return bits[i >> 3] >> (i & 7) & 1;
}

static inline bool mr_column_has(const struct mr_column *c, uint64_t row) /* has the row a value? */
{
    return !c->validity || mr_bit_get(c->validity, row);
}

/* The text or bytes of a row. They lie within the column even if its offsets are wrong. */
struct mr_str mr_column_text(const struct mr_column *c, uint64_t row);
/* The row of a column of an integer, date or timestamp type. A u64 above INT64_MAX wraps. */
int64_t mr_column_i64(const struct mr_column *c, uint64_t row);
double mr_column_f64(const struct mr_column *c, uint64_t row); /* the column has any number type */

/* Checks all rows of a column: offsets ascend, texts are UTF-8, null_count is right. */
int mr_column_check_deep(const struct mr_column *c, struct mr_error *e);

/* ---- writing --------------------------------------------------------------------------------- */
struct mr_column_spec {
    struct mr_str name;
    enum mr_column_type type;
    bool nullable;       /* the column gets a validity bitmap */
    uint64_t data_bytes; /* bytes of all texts; ignored for types of fixed width */
};

struct mr_column_out { /* where the caller writes the rows of a column, inside the extent */
    uint8_t *validity; /* all bits are set; NULL if not nullable */
    void *offsets;     /* the first offset is 0 already; NULL for types of fixed width */
    void *data;        /* bitmaps are zeroed */
};

/* Bytes of the table's extent. 0: a table like this is not allowed. */
uint64_t mr_table_bytes(const struct mr_column_spec *specs, uint32_t count, uint64_t rows);
/* Writes the header, the layouts and the names. The outputs say where the caller has to write the
 * rows. */
void mr_table_build(void *extent, const struct mr_column_spec *specs, uint32_t count, uint64_t rows,
    struct mr_column_out *outs);
/* After the rows are written: counts the missing rows of each nullable column. */
void mr_table_finish(void *extent);
