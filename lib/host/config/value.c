/* Parses numbers, sizes, durations and booleans of option values. Uses integer arithmetic only, so
 * that "0.1s" is exactly 100 ms. */
#include "host/config/value.h"

#include "base/err.h"

#define FRACTION_DIGITS_MAX 12

struct unit {
    struct mr_str name;
    uint64_t worth;
};

/* Parses a decimal number and multiplies it by the unit that follows. */
static int parse_with_unit(
    struct mr_str text, const struct unit *units, size_t units_count, uint64_t *out)
{
    size_t i = 0;
    uint64_t whole = 0, fraction = 0, scale = 1;
    size_t digits = 0;
    for (; i < text.n && ((text.p[i] >= '0' && text.p[i] <= '9') || text.p[i] == '_'); i++) {
        if (text.p[i] == '_') continue;
        digits++;
        if (__builtin_mul_overflow(whole, 10u, &whole) ||
            __builtin_add_overflow(whole, (uint64_t)(text.p[i] - '0'), &whole))
            return MR_EINVAL;
    }
    if (!digits) return MR_EINVAL;
    if (i < text.n && text.p[i] == '.') {
        size_t start = ++i;
        for (; i < text.n && text.p[i] >= '0' && text.p[i] <= '9'; i++) {
            if (i - start >= FRACTION_DIGITS_MAX) return MR_EINVAL;
            fraction = fraction * 10 + (uint64_t)(text.p[i] - '0');
            scale *= 10;
        }
        if (i == start) return MR_EINVAL;
    }
    struct mr_str unit = mr_str_of(text.p + i, text.n - i);
    for (size_t u = 0; u < units_count; u++) {
        if (!mr_str_eq(unit, units[u].name)) continue;
        uint64_t v = 0;
        if (__builtin_mul_overflow(whole, units[u].worth, &v)) return MR_EINVAL;
        __extension__ unsigned __int128 part = (unsigned __int128)fraction * units[u].worth;
        /* Refuses a value that is not a whole number of bytes or nanoseconds. */
        if (part % scale) return MR_EINVAL;
        if (__builtin_add_overflow(v, (uint64_t)(part / scale), &v)) return MR_EINVAL;
        *out = v;
        return MR_OK;
    }
    return MR_EINVAL;
}

int mr_config_parse_u64(struct mr_str text, uint64_t *out)
{
    static const struct unit units[] = {{MR_STR_INIT(""), 1}};
    return parse_with_unit(text, units, MR_ARRAY_LEN(units), out);
}

int mr_config_parse_bytes(struct mr_str text, uint64_t *out)
{
    static const struct unit units[] = {
        {MR_STR_INIT(""), 1},
        {MR_STR_INIT("B"), 1},
        {MR_STR_INIT("KiB"), (uint64_t)1 << 10},
        {MR_STR_INIT("MiB"), (uint64_t)1 << 20},
        {MR_STR_INIT("GiB"), (uint64_t)1 << 30},
        {MR_STR_INIT("TiB"), (uint64_t)1 << 40},
        {MR_STR_INIT("K"), (uint64_t)1 << 10},
        {MR_STR_INIT("M"), (uint64_t)1 << 20},
        {MR_STR_INIT("G"), (uint64_t)1 << 30},
        {MR_STR_INIT("T"), (uint64_t)1 << 40},
        {MR_STR_INIT("kB"), 1000},
        {MR_STR_INIT("KB"), 1000},
        {MR_STR_INIT("MB"), 1000000},
        {MR_STR_INIT("GB"), 1000000000},
        {MR_STR_INIT("TB"), 1000000000000},
    };
    return parse_with_unit(text, units, MR_ARRAY_LEN(units), out);
}

int mr_config_parse_duration(struct mr_str text, mr_duration *out)
{
    static const struct unit units[] = {
        {MR_STR_INIT(""), 1000000000},
        {MR_STR_INIT("ns"), 1},
        {MR_STR_INIT("us"), 1000},
        {MR_STR_INIT("ms"), 1000000},
        {MR_STR_INIT("s"), 1000000000},
        {MR_STR_INIT("m"), 60000000000},
        {MR_STR_INIT("min"), 60000000000},
        {MR_STR_INIT("h"), 3600000000000},
        {MR_STR_INIT("d"), 86400000000000},
    };
    return parse_with_unit(text, units, MR_ARRAY_LEN(units), out);
}

int mr_config_parse_bool(struct mr_str text, bool *out)
{
    static const struct mr_str yes[] = {
        MR_STR_INIT("yes"), MR_STR_INIT("true"), MR_STR_INIT("1"), MR_STR_INIT("on")};
    static const struct mr_str no[] = {
        MR_STR_INIT("no"), MR_STR_INIT("false"), MR_STR_INIT("0"), MR_STR_INIT("off")};
    for (size_t i = 0; i < MR_ARRAY_LEN(yes); i++) {
        bool is_yes = mr_str_eq(text, yes[i]);
        if (!is_yes && !mr_str_eq(text, no[i])) continue;
        *out = is_yes;
        return MR_OK;
    }
    return MR_EINVAL;
}
