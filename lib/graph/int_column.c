/* Writes and reads columns of numbers in as few bytes as possible (int_column.h). */
#include "graph/int_column.h"

#include "base/assert.h"

/* Copies up to MR_INT_COLUMN_SOME numbers into `out`, from number `from` on, and returns how many.
 * One call copies from only one of the arrays c->p and c->more. At the end of an array it copies
 * fewer numbers. */
static uint32_t some_of(const struct mr_int_column *c, uint32_t from, uint32_t *out)
{
    bool is_more = from >= c->count;
    uint32_t at = is_more ? from - c->count : from;
    uint32_t n = (is_more ? c->more_count : c->count) - at;
    n = MR_MIN(n, (uint32_t)MR_INT_COLUMN_SOME);
    const uint32_t *wide = (is_more ? c->more : (const uint32_t *)c->p) + at;
    const uint16_t *half = (const uint16_t *)c->p + at;
    const unsigned char *byte = (const unsigned char *)c->p + at;
    for (uint32_t i = 0; i < n && c->is_offsets; i++)
        out[i] = wide[i + 1] - wide[i];
    for (uint32_t i = 0; i < n && !c->is_offsets && c->bytes == 4; i++)
        out[i] = wide[i];
    for (uint32_t i = 0; i < n && !c->is_offsets && c->bytes == 2; i++)
        out[i] = half[i];
    for (uint32_t i = 0; i < n && !c->is_offsets && c->bytes == 1; i++)
        out[i] = byte[i];
    return n;
}

struct facts {
    /* bits: all numbers joined by OR; first: the first number; other: the bits in which any number
     * differs from the first. */
    uint32_t bits, first, other;
    bool has_first;
};

static void look(struct facts *f, uint32_t v)
{
    if (!f->has_first) f->first = v;
    f->has_first = true;
    f->bits |= v;
    f->other |= v ^ f->first;
}

static void look_at_offsets(struct facts *f, const uint32_t *at, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        look(f, at[i + 1] - at[i]);
}

void mr_int_column_choose(struct mr_int_column *c)
{
    const uint32_t all = c->count + c->more_count, *wide = c->p;
    const uint16_t *half = c->p;
    const unsigned char *byte = c->p;
    struct facts f = {0};
    mr_assert(!c->more_count || c->is_offsets);
    if (c->is_offsets) {
        look_at_offsets(&f, wide, c->count);
        look_at_offsets(&f, c->more, c->more_count);
    } else {
        for (uint32_t i = 0; i < all; i++)
            look(&f, c->bytes == 4 ? wide[i] : c->bytes == 2 ? half[i] : byte[i]);
    }
    uint32_t need = f.bits < 1u << 8 ? 1 : f.bits < 1u << 16 ? 2 : f.bits < 1u << 24 ? 3 : 4;
    c->form = all > 1 && !f.other      ? MR_INT_COLUMN_SAME
              : need < c->bytes && all ? need
                                       : MR_INT_COLUMN_FULL;
}

uint64_t mr_int_column_bytes(const struct mr_int_column *c)
{
    uint64_t all = (uint64_t)c->count + c->more_count;
    return c->form == MR_INT_COLUMN_SAME ? c->bytes : all * (c->form ? c->form : c->bytes);
}

uint32_t mr_int_column_write(
    const struct mr_int_column *c, uint32_t from, unsigned char *out, size_t *n)
{
    uint32_t some[MR_INT_COLUMN_SOME], count = some_of(c, from, some);
    uint32_t width = c->form && c->form != MR_INT_COLUMN_SAME ? c->form : c->bytes;
    uint32_t write = c->form == MR_INT_COLUMN_SAME ? !from : count;
    for (uint32_t i = 0; i < write; i++)
        /* Copies four bytes; the next number overwrites the bytes beyond `width`. */
        memcpy(out + (size_t)i * width, &some[i], 4);
    *n = (size_t)write * width;
    return count;
}

/* Reads numbers of `width` bytes from a section. The first `fours` numbers are read as four bytes
 * at once, which is possible as long as four bytes are left. */
struct reader {
    const char *p;
    uint64_t step, width, fours;
    uint32_t mask;
};

static inline uint32_t number_at(const struct reader *r, uint64_t i)
{
    uint32_t v = 0;
    if (i < r->fours)
        memcpy(&v, r->p + i * r->step, sizeof v);
    else
        memcpy(&v, r->p + i * r->step, r->width);
    return v & r->mask;
}

bool mr_int_column_read(
    struct mr_str section, uint32_t form, uint64_t count, unsigned bytes, unsigned char *out)
{
    bool is_same = form == MR_INT_COLUMN_SAME;
    if (form > MR_INT_COLUMN_SAME || (form && !is_same && form >= bytes)) return false;
    uint64_t width = form && !is_same ? form : bytes;
    if (is_same ? count < 2 || section.n != width : section.n != count * width) return false;
    const struct reader r = {.p = section.p,
        .step = is_same ? 0 : width,
        .width = width,
        .fours = is_same || section.n < 4 ? 0 : (section.n - 4) / width + 1,
        .mask = width == 4 ? UINT32_MAX : (1u << 8 * width) - 1};
    const uint32_t same = count ? number_at(&r, 0) : 0;
    for (uint64_t i = 0; i < count; i++) {
        uint32_t v = is_same ? same : number_at(&r, i);
        if (bytes == 4) {
            memcpy(out + 4 * i, &v, 4);
        } else if (bytes == 2) {
            memcpy(out + 2 * i, &v, 2);
        } else {
            out[i] = (unsigned char)v;
        }
    }
    return true;
}
