/* Fields of CSV text one after another, and what a field's text may be. For csv.c. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct mr_csv_reader {
    const char *p;
    size_t n;
    size_t at;
    size_t start;  /* of the first line */
    uint64_t line; /* from 1 */
    char delimiter;
    bool ends[256];         /* does this byte end a field without quotes? */
    struct mr_buf unquoted; /* a field whose quotes had to be undone */
};

struct mr_csv_field {
    struct mr_str text; /* until the next field */
    bool quoted;
    bool last; /* of its line */
};

void mr_csv_reader_init(struct mr_csv_reader *r, struct mr_str text, char delimiter);
void mr_csv_reader_fini(struct mr_csv_reader *r);

/* Is there another line? Empty lines are skipped, unless they are a row of one missing field
 * (`single`). */
bool mr_csv_has_line(struct mr_csv_reader *r, bool single);
int mr_csv_next(struct mr_csv_reader *r, struct mr_csv_field *out, struct mr_error *e);
void mr_csv_rewind(struct mr_csv_reader *r); /* to the first line that is not empty */
/* To where a copy of the reader stood. */
void mr_csv_reader_return(struct mr_csv_reader *r, const struct mr_csv_reader *to);

bool mr_csv_is_bool(struct mr_str s, bool *out); /* true, True, TRUE, false … */

enum mr_csv_number {
    MR_CSV_NO_NUMBER,
    MR_CSV_INT,     /* fits i64 */
    MR_CSV_U64,     /* 2^63 to 2^64 - 1 */
    MR_CSV_BIG_INT, /* neither */
    MR_CSV_FLOAT
};
/* Spaces around a number are no part of it. nan, inf and infinity, in any case, are floats. */
enum mr_csv_number mr_csv_number_kind(struct mr_str s);
int64_t mr_csv_i64(struct mr_str s);  /* of a field of kind INT */
uint64_t mr_csv_u64(struct mr_str s); /* of kind U64, or INT and not below 0 */
double mr_csv_f64(struct mr_str s);   /* of a field of any number kind; correctly rounded */
