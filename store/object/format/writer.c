/* Collects small writes for a sink, and formats numbers as text. */
#include "store/object/format/writer.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <yyjson.h>

void mr_out_init(struct mr_out *o, struct mr_sink sink)
{
    *o = (struct mr_out){.sink = sink, .stage = mr_alloc(MR_OUT_STAGE_BYTES)};
}

static void flush(struct mr_out *o)
{
    if (o->n && !o->err) o->err = o->sink.write(o->sink.ctx, o->stage, o->n);
    o->n = 0;
}

int mr_out_finish(struct mr_out *o)
{
    flush(o);
    mr_release(o->stage);
    o->stage = NULL;
    return o->err;
}

void mr_out_add(struct mr_out *o, const void *p, size_t n)
{
    if (!n || o->err) return;
    if (n > MR_OUT_STAGE_BYTES - o->n) flush(o);
    if (n >= MR_OUT_STAGE_BYTES) {
        if (!o->err) o->err = o->sink.write(o->sink.ctx, p, n);
        return;
    }
    memcpy(o->stage + o->n, p, n);
    o->n += n;
}

void mr_out_text(struct mr_out *o, const char *text)
{
    mr_out_add(o, text, strlen(text));
}

void mr_out_byte(struct mr_out *o, char c)
{
    if (o->n == MR_OUT_STAGE_BYTES) flush(o);
    o->stage[o->n++] = (unsigned char)c;
}

char *mr_out_reserve(struct mr_out *o, size_t n)
{
    mr_assert(n <= MR_OUT_RESERVE_MAX);
    if (n > MR_OUT_STAGE_BYTES - o->n) flush(o);
    return (char *)o->stage + o->n;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static size_t u64_text(char *out, uint64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v);
    memcpy(out, digits + at, sizeof digits - at);
    return sizeof digits - at;
}

void mr_out_u64(struct mr_out *o, uint64_t v)
{
    o->n += u64_text(mr_out_reserve(o, MR_NUMBER_TEXT_MAX), v);
}

size_t mr_number_i64(char *out, int64_t v)
{
    if (v >= 0) return u64_text(out, (uint64_t)v);
    *out = '-';
    return 1 + u64_text(out + 1, -(uint64_t)v);
}

static size_t put_word(char *out, const char *word)
{
    size_t n = strlen(word);
    memcpy(out, word, n);
    return n;
}

static size_t number_special(char *out, double v)
{
    if (isnan(v)) return put_word(out, "NaN");
    return put_word(out, v > 0 ? "Infinity" : "-Infinity");
}

static size_t f64_text(char *out, double v)
{
    if (!isfinite(v)) return number_special(out, v);
    if (fabs(v) < 0x1p53 && v == (double)(int64_t)v && !(v == 0 && signbit(v))) {
        size_t n = mr_number_i64(out, (int64_t)v);
        if (n <= 16) return n + put_word(out + n, ".0");
    }
    /* yyjson finds the shortest decimal, but writes a number only as the value of a node. The node
     * and the memory pool of yyjson are on the stack. */
    char pool[512];
    yyjson_alc alc;
    bool ok = yyjson_alc_pool_init(&alc, pool, sizeof pool);
    mr_assert(ok);
    yyjson_mut_val node = {0};
    ok = yyjson_mut_set_real(&node, v);
    mr_assert(ok);
    size_t n = 0;
    char *text = yyjson_mut_val_write_opts(&node, YYJSON_WRITE_NOFLAG, &alc, &n, NULL);
    mr_assert(text);
    mr_assert(n <= MR_NUMBER_TEXT_MAX);
    memcpy(out, text, n);
    return n;
}

/* clang-format off */
static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12,
    1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28,
    1e29, 1e30, 1e31, 1e32, 1e33, 1e34, 1e35, 1e36, 1e37, 1e38, 1e39, 1e40, 1e41, 1e42, 1e43, 1e44,
    1e45, 1e46, 1e47, 1e48, 1e49, 1e50, 1e51, 1e52, 1e53, 1e54};
/* clang-format on */

/* Returns v × 10^power, with a relative error of at most 2^-52 (two roundings of a double). */
static double scale10(double v, int power)
{
    return power >= 0 ? v * tens[power] : v / tens[-power];
}

/* True: the decimal m × 10^power certainly reads back as the float `v`. False: it perhaps does not.
 * Checks numbers a little below and above the computed double. So the answer holds despite the
 * error of scale10, and for readers that parse a double first as well as for readers that do
 * not. */
static bool reads_as(uint64_t m, int power, float v)
{
    double d = scale10((double)m, power);
    return (float)(d * (1 - 0x1p-50)) == v && (float)(d * (1 + 0x1p-50)) == v;
}

static size_t put_decimal(char *out, uint64_t m, int power)
{
    while (m % 10 == 0) {
        m /= 10;
        power++;
    }
    char digits[20];
    int n = (int)u64_text(digits, m);
    int point = n + power; /* number of digits before the decimal point */
    size_t at = 0;
    if (point > 0 && power >= 0) {
        memcpy(out, digits, (size_t)n);
        memset(out + n, '0', (size_t)power);
        at = (size_t)point;
        return at + put_word(out + at, ".0");
    }
    if (point > 0) {
        memcpy(out, digits, (size_t)point);
        out[point] = '.';
        memcpy(out + point + 1, digits + point, (size_t)(n - point));
        return (size_t)n + 1;
    }
    at = put_word(out, "0.");
    memset(out + at, '0', (size_t)-point);
    at += (size_t)-point;
    memcpy(out + at, digits, (size_t)n);
    return at + (size_t)n;
}

static size_t put_scientific(char *out, uint64_t m, int power)
{
    while (m % 10 == 0) {
        m /= 10;
        power++;
    }
    char digits[20];
    size_t n = u64_text(digits, m);
    size_t at = 0;
    out[at++] = digits[0];
    if (n > 1) {
        out[at++] = '.';
        memcpy(out + at, digits + 1, n - 1);
        at += n - 1;
    }
    out[at++] = 'e';
    return at + mr_number_i64(out + at, power + (int)n - 1);
}

/* Returns the digits of the decimal that is nearest to `a` among those with `digits` digits, and
 * sets `*power` to its power of ten. */
static uint64_t nearest_decimal(float a, int digits, int exponent, int *power)
{
    *power = exponent - digits + 1;
    return (uint64_t)(scale10((double)a, -*power) + 0.5);
}

/* This many digits distinguish all floats. */
#define F32_DIGITS_MAX 9

static size_t f32_text(char *out, float v)
{
    if (!isfinite(v)) return number_special(out, (double)v);
    float a = fabsf(v);
    size_t sign = signbit(v) ? 1 : 0;
    if (sign) *out = '-';
    if (a == 0) return sign + put_word(out + sign, "0.0");
    int exponent2 = 0;
    (void)frexp((double)a, &exponent2);
    /* This is log10(a) rounded down, or one less. In the second case the next line adds the one. */
    int exponent = (exponent2 - 1) * 1233 >> 12;
    if (scale10(1, exponent + 1) <= (double)a) exponent++;
    int low = 1;
    int high = F32_DIGITS_MAX;
    int power = 0;
    while (low < high) {
        int middle = (low + high) / 2;
        uint64_t m = nearest_decimal(a, middle, exponent, &power);
        if (m && reads_as(m, power, a))
            high = middle;
        else
            low = middle + 1;
    }
    uint64_t m = nearest_decimal(a, high, exponent, &power);
    bool plain = a >= 1e-5F && a < 1e15F;
    return sign +
           (plain ? put_decimal(out + sign, m, power) : put_scientific(out + sign, m, power));
}

size_t mr_number_element(char *out, enum mr_dtype t, const void *element)
{
    uint64_t bits = 0;
    memcpy(&bits, element, mr_dtype_bytes(t));
    float f = 0;
    double d = 0;
    switch (t) {
    case MR_DTYPE_NONE: break;
    case MR_DTYPE_BOOL: return put_word(out, bits ? "true" : "false");
    case MR_DTYPE_I8: return mr_number_i64(out, (int8_t)bits);
    case MR_DTYPE_I16: return mr_number_i64(out, (int16_t)bits);
    case MR_DTYPE_I32: return mr_number_i64(out, (int32_t)bits);
    case MR_DTYPE_I64: return mr_number_i64(out, (int64_t)bits);
    case MR_DTYPE_U8:
    case MR_DTYPE_U16:
    case MR_DTYPE_U32:
    case MR_DTYPE_U64: return u64_text(out, bits);
    case MR_DTYPE_F16: return f32_text(out, mr_f16_to_f32((uint16_t)bits));
    case MR_DTYPE_F32: memcpy(&f, &bits, sizeof f); return f32_text(out, f);
    case MR_DTYPE_F64: memcpy(&d, &bits, sizeof d); return f64_text(out, d);
    }
    return 0;
}

/* ---- days and times -------------------------------------------------------------------------- */

/* Writes days since 1970-01-01 as "2024-02-29", in the proleptic Gregorian calendar. Years are
 * counted from March, so that the leap day is the last day of a year; 400 years have 146097 days.
 */
static size_t date(char *out, int64_t days)
{
    int64_t z = days + 719468; /* days since 0000-03-01 */
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t day = z - era * 146097;
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    int64_t march = (5 * day + 2) / 153;
    int64_t month = march < 10 ? march + 3 : march - 9;
    year += era * 400 + (month <= 2 ? 1 : 0);
    char text[MR_NUMBER_TEXT_MAX];
    int n = snprintf(text, sizeof text, "%s%04lld-%02lld-%02lld", year < 0 ? "-" : "",
        llabs((long long)year), (long long)month, (long long)(day - (153 * march + 2) / 5 + 1));
    memcpy(out, text, (size_t)n);
    return (size_t)n;
}

/* Writes "2024-02-29T12:00:00.123456" with as many digits as the type of the column has. */
static size_t timestamp(char *out, enum mr_column_type type, int64_t v)
{
    int digits = type == MR_COLUMN_TIMESTAMP_MS   ? 3
                 : type == MR_COLUMN_TIMESTAMP_US ? 6
                 : type == MR_COLUMN_TIMESTAMP_NS ? 9
                                                  : 0;
    int64_t per_second = (int64_t)tens[digits];
    int64_t fraction = v % per_second;
    int64_t seconds = v / per_second;
    if (fraction < 0) {
        fraction += per_second;
        seconds--;
    }
    int64_t clock = seconds % 86400;
    int64_t days = seconds / 86400;
    if (clock < 0) {
        clock += 86400;
        days--;
    }
    size_t n = date(out, days);
    char text[MR_NUMBER_TEXT_MAX];
    int m = snprintf(text, sizeof text, "T%02d:%02d:%02d", (int)(clock / 3600),
        (int)(clock / 60 % 60), (int)(clock % 60));
    if (digits)
        m += snprintf(text + m, sizeof text - (size_t)m, ".%0*lld", digits, (long long)fraction);
    memcpy(out + n, text, (size_t)m);
    return n + (size_t)m;
}

size_t mr_number_cell(char *out, const struct mr_column *c, uint64_t row)
{
    if (c->type == MR_COLUMN_BOOL) return put_word(out, mr_column_i64(c, row) ? "true" : "false");
    if (c->type == MR_COLUMN_F64) return f64_text(out, mr_column_f64(c, row));
    if (c->type == MR_COLUMN_F32 || c->type == MR_COLUMN_F16)
        return f32_text(out, (float)mr_column_f64(c, row));
    int64_t v = mr_column_i64(c, row);
    if (c->type == MR_COLUMN_U64) return u64_text(out, (uint64_t)v);
    if (c->type == MR_COLUMN_DATE32) return date(out, v);
    if (c->type > MR_COLUMN_DATE32) return timestamp(out, c->type, v);
    return mr_number_i64(out, v);
}
