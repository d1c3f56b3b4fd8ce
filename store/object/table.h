/* Tables: columns of equal length in one value extent, each laid out as Arrow lays it out: a
 * validity bitmap (bit set: a value is there; none when nothing is missing), offsets for texts and
 * bytes, and the data. Every buffer starts at a multiple of 64, so another library can take it as
 * it lies. Knows nothing of where tables come from. */
#pragma once

#include "store/object/value.h"

/* The numbers are part of the layout: never change one. */
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
    MR_COLUMN_UTF8 = 13,       /* i32 offsets: at most 2 GiB of text */
    MR_COLUMN_BINARY = 14,     /* the same for bytes */
    MR_COLUMN_LARGE_UTF8 = 15, /* i64 offsets */
    MR_COLUMN_LARGE_BINARY = 16,
    MR_COLUMN_DATE32 = 17,      /* i32: days since 1970-01-01 */
    MR_COLUMN_TIMESTAMP_S = 18, /* i64 since 1970-01-01T00:00, no zone */
    MR_COLUMN_TIMESTAMP_MS = 19,
    MR_COLUMN_TIMESTAMP_US = 20,
    MR_COLUMN_TIMESTAMP_NS = 21,
};
#define MR_COLUMN_TYPES_COUNT 22
#define MR_TABLE_COLUMNS_MAX 16384
#define MR_COLUMN_NAME_BYTES_MAX 4096

struct mr_column_layout { /* one in meta for each column; offsets count from the extent's start */
    uint16_t type;
    uint16_t flags; /* MR_COLUMN_NULLABLE */
    uint32_t name_bytes;
    uint64_t name_offset;
    uint64_t null_count;
    uint64_t validity_offset; /* 0: nothing is missing */
    uint64_t offsets_offset;  /* 0: the type has none */
    uint64_t data_offset;
    uint64_t data_bytes;
    uint64_t reserved; /* 0 */
};
#define MR_COLUMN_NULLABLE 1u

const char *mr_column_type_name(enum mr_column_type t); /* "i64", "utf8", "timestamp[us]" */
bool mr_column_type_is_varied(enum mr_column_type t);   /* has offsets */
bool mr_column_type_is_text(enum mr_column_type t);     /* utf8 of either width */
unsigned mr_column_type_bits(enum mr_column_type t);    /* of one element; 0 for varied types */

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
    const uint8_t *validity; /* NULL: all rows are there */
    const void *offsets;     /* rows + 1 of int32_t or int64_t; NULL for fixed widths */
    const void *data;
    uint64_t data_bytes;
};

int mr_table_open(const struct mr_value *v, struct mr_table *out, struct mr_error *e);
/* Column `i`, its layout checked (MR_EFORMAT), its rows not. */
int mr_table_column(
    const struct mr_table *t, uint32_t i, struct mr_column *out, struct mr_error *e);
/* MR_ENOENT names the columns there are. */
int mr_table_find(const struct mr_table *t, struct mr_str name, uint32_t *out, struct mr_error *e);

static inline bool mr_bit_get(const uint8_t *bits, uint64_t i)
{
    return bits[i >> 3] >> (i & 7) & 1;
}

static inline bool mr_column_has(const struct mr_column *c, uint64_t row) /* is it not missing? */
{
    return !c->validity || mr_bit_get(c->validity, row);
}

/* The text or bytes of a row, never outside the column whatever its offsets say. */
struct mr_str mr_column_text(const struct mr_column *c, uint64_t row);
/* The row of any integer, date or timestamp type; u64 above INT64_MAX wraps. */
int64_t mr_column_i64(const struct mr_column *c, uint64_t row);
double mr_column_f64(const struct mr_column *c, uint64_t row); /* of any number type */

/* Offsets ascend, texts are UTF-8, null_count is right: a pass over the column. */
int mr_column_check_deep(const struct mr_column *c, struct mr_error *e);

/* ---- writing --------------------------------------------------------------------------------- */
struct mr_column_spec {
    struct mr_str name;
    enum mr_column_type type;
    bool nullable;       /* gets a validity bitmap */
    uint64_t data_bytes; /* of varied types; ignored for the others */
};

struct mr_column_out { /* where the rows go, all in the extent */
    uint8_t *validity; /* all set; NULL when not nullable */
    void *offsets;     /* the first is 0; NULL for fixed widths */
    void *data;        /* bitmaps are zeroed */
};

/* 0: the specs make no table an object can hold. */
uint64_t mr_table_bytes(const struct mr_column_spec *specs, uint32_t count, uint64_t rows);
/* Writes header, layouts and names, and says where the rows go. */
void mr_table_build(void *extent, const struct mr_column_spec *specs, uint32_t count, uint64_t rows,
    struct mr_column_out *outs);
/* Counts what is missing in every nullable column. After the rows are written. */
void mr_table_finish(void *extent);
