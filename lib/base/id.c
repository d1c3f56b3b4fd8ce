#include "base/id.h"

#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TAG_DIGITS 7 /* digits of 5 bits; 7 of them hold the 32 bits of a tag */

/* The digits of Crockford's base 32. */
static const char tag_digits[] = "0123456789abcdefghjkmnpqrstvwxyz";

void mr_job_id_format(mr_job_id id, char out[MR_JOB_ID_TEXT_MAX])
{
    uint32_t tag = mr_job_id_tag(id);
    char text[TAG_DIGITS + 1] = "";
    if (tag < MR_TAG_DRAWN_MIN) (void)snprintf(text, sizeof text, "%" PRIu32, tag);
    for (size_t i = TAG_DIGITS; tag >= MR_TAG_DRAWN_MIN && i-- > 0;)
        text[i] = tag_digits[tag >> (5 * (TAG_DIGITS - 1 - i)) & 31];
    (void)snprintf(out, MR_JOB_ID_TEXT_MAX, "j%s-%" PRIu32, text, (uint32_t)id.v);
}

/* Reads a decimal uint32_t without leading zeros and moves `*at` past it. */
static bool read_u32(struct mr_str s, size_t *at, uint32_t *out)
{
    size_t start = *at;
    uint64_t v = 0;
    while (*at < s.n && s.p[*at] >= '0' && s.p[*at] <= '9') {
        v = v * 10 + (uint64_t)(s.p[(*at)++] - '0');
        if (v > UINT32_MAX) return false;
    }
    if (*at == start || (s.p[start] == '0' && *at - start > 1)) return false;
    *out = (uint32_t)v;
    return true;
}

/* Accepts only the text that mr_job_id_format writes, so that each id has exactly one text. */
static bool read_tag(struct mr_str s, uint32_t *out)
{
    size_t at = 0;
    if (s.n != TAG_DIGITS) return read_u32(s, &at, out) && at == s.n && *out < MR_TAG_DRAWN_MIN;
    uint64_t v = 0;
    for (size_t i = 0; i < TAG_DIGITS; i++) {
        const char *digit = memchr(tag_digits, s.p[i], sizeof tag_digits - 1);
        if (!digit) return false;
        v = v << 5 | (uint64_t)(digit - tag_digits);
    }
    *out = (uint32_t)v;
    return v >= MR_TAG_DRAWN_MIN && v <= UINT32_MAX;
}

int mr_job_id_parse(struct mr_str text, mr_job_id *out)
{
    uint32_t tag = 0;
    uint32_t number = 0;
    if (text.n < 4 || text.p[0] != 'j') return MR_EINVAL;
    const char *dash = memchr(text.p, '-', text.n);
    if (!dash) return MR_EINVAL;
    size_t at = (size_t)(dash - text.p) + 1;
    if (!read_tag(mr_str_of(text.p + 1, at - 2), &tag)) return MR_EINVAL;
    if (!read_u32(text, &at, &number) || at != text.n) return MR_EINVAL;
    *out = mr_job_id_make(tag, number);
    return MR_OK;
}

void mr_object_id_format(mr_object_id id, char out[MR_OBJECT_ID_TEXT_MAX])
{
    (void)snprintf(out, MR_OBJECT_ID_TEXT_MAX, "%016" PRIx64 "%016" PRIx64, id.maker, id.number);
}

int mr_object_id_parse(struct mr_str text, mr_object_id *out)
{
    if (text.n != 32) return MR_EINVAL;
    uint64_t half[2] = {0, 0};
    for (size_t i = 0; i < 32; i++) {
        char c = text.p[i];
        uint64_t digit = 0;
        if (c >= '0' && c <= '9')
            digit = (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            digit = (uint64_t)(c - 'a' + 10);
        else
            return MR_EINVAL;
        half[i / 16] = half[i / 16] << 4 | digit;
    }
    *out = (mr_object_id){half[0], half[1]};
    return MR_OK;
}

void mr_object_id_to_bytes(mr_object_id id, unsigned char out[16])
{
    for (size_t i = 0; i < 8; i++) {
        out[i] = (unsigned char)(id.maker >> (56 - 8 * i));
        out[8 + i] = (unsigned char)(id.number >> (56 - 8 * i));
    }
}

int mr_object_id_from_bytes(struct mr_str bytes, mr_object_id *out)
{
    if (bytes.n != 16) return MR_EINVAL;
    mr_object_id id = {0, 0};
    for (size_t i = 0; i < 8; i++) {
        id.maker = id.maker << 8 | (unsigned char)bytes.p[i];
        id.number = id.number << 8 | (unsigned char)bytes.p[8 + i];
    }
    *out = id;
    return MR_OK;
}
