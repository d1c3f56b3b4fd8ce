/* Reads fields of CSV text and the numbers in them. */
#include "store/object/format/csv_field.h"

#include "base/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* ---- fields ---------------------------------------------------------------------------------- */

void mr_csv_reader_init(struct mr_csv_reader *r, struct mr_str text, char delimiter)
{
    *r = (struct mr_csv_reader){
        .p = text.n ? text.p : "", .n = text.n, .line = 1, .delimiter = delimiter};
    if (text.n >= 3 && memcmp(text.p, "\xef\xbb\xbf", 3) == 0) r->at = 3; /* a byte order mark */
    r->start = r->at;
    r->ends['\n'] = r->ends['\r'] = r->ends[(unsigned char)delimiter] = true;
    mr_buf_init(&r->unquoted, MR_MAX(text.n, (size_t)1));
}

void mr_csv_reader_fini(struct mr_csv_reader *r)
{
    mr_buf_fini(&r->unquoted);
}

static bool is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

/* Moves past the line break at which the reader stands. */
static void take_line_end(struct mr_csv_reader *r)
{
    if (r->p[r->at] == '\r' && r->at + 1 < r->n && r->p[r->at + 1] == '\n') r->at++;
    r->at++;
    r->line++;
}

bool mr_csv_has_line(struct mr_csv_reader *r, bool single)
{
    while (!single && r->at < r->n && is_line_end(r->p[r->at]))
        take_line_end(r);
    return r->at < r->n;
}

void mr_csv_rewind(struct mr_csv_reader *r)
{
    r->at = r->start;
    r->line = 1;
    (void)mr_csv_has_line(r, false);
}

void mr_csv_reader_return(struct mr_csv_reader *r, const struct mr_csv_reader *to)
{
    r->at = to->at;
    r->line = to->line;
}

/* Moves past a field's delimiter or its line break. Sets out->last to true unless a delimiter
 * follows the field. MR_EFORMAT: other text follows a quoted field. */
static int end_field(struct mr_csv_reader *r, struct mr_csv_field *out, struct mr_error *e)
{
    out->last = r->at >= r->n || r->p[r->at] != r->delimiter;
    if (r->at >= r->n) return MR_OK;
    if (!out->last) {
        r->at++;
        return MR_OK;
    }
    if (!is_line_end(r->p[r->at]))
        return mr_fail(e, MR_EFORMAT,
            "CSV line %" PRIu64 ": text after a closing quote; a quote inside is written twice",
            r->line);
    take_line_end(r);
    return MR_OK;
}

static int next_quoted(struct mr_csv_reader *r, struct mr_csv_field *out, struct mr_error *e)
{
    uint64_t line = r->line;
    size_t from = ++r->at;
    bool doubled = false;
    mr_buf_clear(&r->unquoted);
    for (;;) {
        const char *quote = memchr(r->p + r->at, '"', r->n - r->at);
        if (!quote)
            return mr_fail(
                e, MR_EFORMAT, "CSV line %" PRIu64 ": a quoted field does not end", line);
        size_t end = (size_t)(quote - r->p);
        for (size_t i = r->at; i < end; i++)
            r->line += r->p[i] == '\n';
        r->at = end + 1;
        if (r->at >= r->n || r->p[r->at] != '"') {
            struct mr_str tail = mr_str_of(r->p + from, end - from);
            if (doubled) mr_buf_add_str(&r->unquoted, tail);
            out->text = doubled ? mr_buf_str(&r->unquoted) : tail;
            break;
        }
        r->at++; /* the text so far and one of the two quotes are kept */
        doubled = true;
        mr_buf_add(&r->unquoted, r->p + from, end + 1 - from);
        from = r->at;
    }
    out->quoted = true;
    return end_field(r, out, e);
}

int mr_csv_next(struct mr_csv_reader *r, struct mr_csv_field *out, struct mr_error *e)
{
    *out = (struct mr_csv_field){0};
    if (r->at < r->n && r->p[r->at] == '"') return next_quoted(r, out, e);
    size_t at = r->at;
    while (at < r->n && !r->ends[(unsigned char)r->p[at]])
        at++;
    out->text = mr_str_of(r->p + r->at, at - r->at);
    r->at = at;
    return end_field(r, out, e);
}

/* ---- bools and numbers in a text ------------------------------------------------------------- */

/* Compares without regard to case; `word` is in lower case. */
static bool is_word(struct mr_str s, const char *word)
{
    if (s.n != strlen(word)) return false;
    for (size_t i = 0; i < s.n; i++)
        if ((s.p[i] | 0x20) != word[i]) return false;
    return true;
}

bool mr_csv_is_bool(struct mr_str s, bool *out)
{
    *out = false;
    if (s.n != 4 && s.n != 5) return false;
    *out = mr_str_eq(s, MR_STR("true")) || mr_str_eq(s, MR_STR("True")) ||
           mr_str_eq(s, MR_STR("TRUE"));
    return *out || mr_str_eq(s, MR_STR("false")) || mr_str_eq(s, MR_STR("False")) ||
           mr_str_eq(s, MR_STR("FALSE"));
}

static struct mr_str trim(struct mr_str s)
{
    while (s.n && s.p[0] == ' ') {
        s.p++;
        s.n--;
    }
    while (s.n && s.p[s.n - 1] == ' ')
        s.n--;
    return s;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A parsed number: mantissa × 10^power, where `mantissa` has the first 19 significant digits. */
struct number {
    bool negative;
    bool is_integer; /* the text has neither a decimal point nor an exponent */
    bool is_word;
    double word; /* the value of a text such as nan or inf */
    uint64_t mantissa;
    unsigned digits; /* number of significant digits */
    int64_t power;
};

#define DIGITS_KEPT 19 /* every decimal number of 19 digits fits into uint64_t */

static size_t take_digits(struct mr_str s, size_t at, bool fraction, struct number *out)
{
    for (; at < s.n && is_digit(s.p[at]); at++) {
        bool kept = out->digits < DIGITS_KEPT;
        if (kept) out->mantissa = out->mantissa * 10 + (uint64_t)(s.p[at] - '0');
        if (out->mantissa) out->digits++;
        if (fraction == kept) out->power += fraction ? -1 : 1;
    }
    return at;
}

static bool take_exponent(struct mr_str s, size_t at, struct number *out)
{
    bool negative = at < s.n && s.p[at] == '-';
    if (negative || (at < s.n && s.p[at] == '+')) at++;
    if (at == s.n) return false;
    int64_t v = 0;
    for (; at < s.n && is_digit(s.p[at]); at++)
        if (v < 100000) v = v * 10 + (s.p[at] - '0');
    out->power += negative ? -v : v;
    return at == s.n;
}

static bool take_word(struct mr_str s, struct number *out)
{
    bool nan = is_word(s, "nan");
    if (!nan && !is_word(s, "inf") && !is_word(s, "infinity")) return false;
    out->is_word = true;
    out->word = nan ? (double)NAN : (double)INFINITY;
    return true;
}

static bool parse_number(struct mr_str s, struct number *out)
{
    *out = (struct number){.is_integer = true};
    if (!s.n) return false;
    out->negative = s.p[0] == '-';
    size_t at = out->negative || s.p[0] == '+' ? 1 : 0;
    size_t start = at;
    at = take_digits(s, at, false, out);
    size_t count = at - start;
    if (at == s.n) return count != 0;
    if (!count && s.p[at] != '.') return take_word(mr_str_of(s.p + at, s.n - at), out);
    out->is_integer = false;
    if (s.p[at] == '.') {
        size_t point = ++at;
        at = take_digits(s, at, true, out);
        count += at - point;
    }
    if (!count) return false;
    if (at == s.n) return true;
    return (s.p[at] == 'e' || s.p[at] == 'E') && take_exponent(s, at + 1, out);
}

#define PLAIN_DIGITS_MAX 18 /* every decimal number of 18 digits fits into int64_t */

/* Reads an integer of a few digits, perhaps after a minus sign: the fast path for most integers.
 * False: the text has another form. */
static bool plain_i64(struct mr_str s, int64_t *out)
{
    bool negative = s.n && s.p[0] == '-';
    size_t at = negative ? 1 : 0;
    if (s.n == at || s.n - at > PLAIN_DIGITS_MAX) return false;
    int64_t v = 0;
    for (; at < s.n; at++) {
        if (!is_digit(s.p[at])) return false;
        v = v * 10 + (s.p[at] - '0');
    }
    *out = negative ? -v : v;
    return true;
}

static bool fits_i64(const struct number *v)
{
    return v->power == 0 && v->mantissa <= (uint64_t)INT64_MAX + (v->negative ? 1 : 0);
}

/* Reads an integer, perhaps after a plus sign. False: the text has another form, or the integer
 * does not fit into uint64_t. */
static bool read_u64(struct mr_str s, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t at = s.n && s.p[0] == '+' ? 1 : 0; at < s.n; at++)
        if (!is_digit(s.p[at]) || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.p[at] - '0'), &v))
            return false;
    *out = v;
    return true;
}

enum mr_csv_number mr_csv_number_kind(struct mr_str s)
{
    struct number v;
    int64_t plain = 0;
    if (plain_i64(s, &plain)) return MR_CSV_INT;
    if (!parse_number(trim(s), &v)) return MR_CSV_NO_NUMBER;
    if (!v.is_integer || v.is_word) return MR_CSV_FLOAT;
    uint64_t u = 0;
    if (fits_i64(&v)) return MR_CSV_INT;
    return read_u64(trim(s), &u) ? MR_CSV_U64 : MR_CSV_BIG_INT;
}

uint64_t mr_csv_u64(struct mr_str s)
{
    uint64_t v = 0;
    (void)read_u64(trim(s), &v);
    return v;
}

int64_t mr_csv_i64(struct mr_str s)
{
    struct number v;
    int64_t plain = 0;
    if (plain_i64(s, &plain)) return plain;
    (void)parse_number(trim(s), &v);
    return (int64_t)(v.negative ? -v.mantissa : v.mantissa);
}

/* Converts a number with strtod, which is correctly rounded but slow. The fast path below cannot
 * convert all numbers with correct rounding. */
static double slow_f64(struct mr_str s)
{
    char text[64];
    if (s.n < sizeof text) {
        memcpy(text, s.p, s.n);
        text[s.n] = 0;
        return strtod(text, NULL);
    }
    char *copy = mr_alloc(s.n + 1);
    memcpy(copy, s.p, s.n);
    double v = strtod(copy, NULL);
    mr_release(copy);
    return v;
}

double mr_csv_f64(struct mr_str s)
{
    static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    struct number v;
    s = trim(s);
    if (!parse_number(s, &v)) return 0;
    if (v.is_word) return v.negative ? -v.word : v.word;
    if (v.mantissa > (uint64_t)1 << 53 || v.power < -22 || v.power > 22) return slow_f64(s);
    /* The mantissa and the power of ten in `tens` are exact doubles. So only the multiplication or
     * division rounds, and the result is correctly rounded (Clinger, PLDI 1990). */
    double d = (double)v.mantissa;
    d = v.power < 0 ? d / tens[-v.power] : d * tens[v.power];
    return v.negative ? -d : d;
}
