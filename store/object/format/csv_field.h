/* Private to csv.c: reads the fields of CSV text one after another, and converts the text of a
 * field. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

struct mr_csv_reader {
    const char *p;
    size_t n;
    size_t at;
    size_t start;  /* offset at which the first line begins */
    uint64_t line; /* number of the present line, from 1 */
    char delimiter;
    bool ends[256];         /* by byte: true if this byte ends a field without quotes */
    struct mr_buf unquoted; /* the text of a quoted field without its quotes */
};

struct mr_csv_field {
    struct mr_str text; /* the field's text, valid until the next field is read */
    bool quoted;
    bool last; /* true: the field is the last one of its line */
};

void mr_csv_reader_init(struct mr_csv_reader *r, struct mr_str text, char delimiter);
void mr_csv_reader_fini(struct mr_csv_reader *r);

/* Moves over empty lines. True: the reader stands at another line. False: the text has ended. With
 * `single`, for text with one column, an empty line is not skipped, because it is a row with a
 * missing value. */
bool mr_csv_has_line(struct mr_csv_reader *r, bool single);
int mr_csv_next(struct mr_csv_reader *r, struct mr_csv_field *out, struct mr_error *e);
void mr_csv_rewind(struct mr_csv_reader *r); /* moves back to the first line that is not empty */
/* Moves the reader to the position of an earlier copy of it. */
void mr_csv_reader_return(struct mr_csv_reader *r, const struct mr_csv_reader *to);

bool mr_csv_is_bool(struct mr_str s, bool *out); /* accepts true, True, TRUE, false, False, FALSE */

enum mr_csv_number {
    MR_CSV_NO_NUMBER,
    MR_CSV_INT,     /* an integer that fits into int64_t */
    MR_CSV_U64,     /* an integer from 2^63 to 2^64 - 1 */
    MR_CSV_BIG_INT, /* an integer that fits neither int64_t nor uint64_t */
    MR_CSV_FLOAT
};
/* Returns the kind of number in a text. Spaces around the number are ignored. nan, inf and
 * infinity, in upper or lower case, are floats. */
enum mr_csv_number mr_csv_number_kind(struct mr_str s);
int64_t mr_csv_i64(struct mr_str s); /* the text must have the kind INT */
/* The text must have the kind U64, or the kind INT and no minus sign. */
uint64_t mr_csv_u64(struct mr_str s);
double mr_csv_f64(struct mr_str s); /* the text must be a number; the result is correctly rounded */
