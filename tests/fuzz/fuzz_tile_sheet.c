/* Decodes sheets of blocks, as from Redis or a file. Each piece lies within the sheet, and can be
 * drawn. If bit 0 of the input's first byte is 1, the other bytes are a whole sheet. If the bit is
 * 0, this fuzz target puts magic number and check sum before them, so that mutations get past these
 * checks. */
#include "base/alloc.h"
#include "base/assert.h"
#include "tiles/sheet_bytes.h"

#define WIDTH 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct drawing {
    struct mr_tile_sheet_head head;
    struct mr_tile_picture picture;
    uint32_t names;
};

static uint32_t on_name(void *ctx, struct mr_str name)
{
    struct drawing *d = ctx;
    (void)name;
    return d->names++;
}

static uint32_t on_lane(void *ctx, uint32_t worker, uint32_t slot)
{
    (void)ctx;
    (void)worker;
    return slot % 2;
}

static void on_piece(void *ctx, uint32_t lane, const struct mr_tile_time *t)
{
    struct drawing *d = ctx;
    uint64_t width = UINT64_C(1) << d->head.bits;
    mr_assert(t->from < t->until);
    mr_assert(t->ns <= t->until - t->from);
    mr_assert(t->from + width > d->head.from);
    mr_assert(t->until <= d->head.until + width);
    mr_tile_picture_add(&d->picture, lane, t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const unsigned char magic[] = {'m', 't', 'i', '1'};
    struct drawing d = {.names = 0};
    struct mr_tile_run runs[WIDTH];
    const struct mr_tile_sheet_fns fns = {
        .name = on_name, .worker = on_name, .lane = on_lane, .piece = on_piece, .ctx = &d};
    if (!n) return 0;
    bool is_whole = data[0] & 1;
    size_t skip = is_whole ? 0 : MR_TILE_SHEET_SUMMED_AT;
    unsigned char *bytes = mr_alloc(n + skip);
    memcpy(bytes + skip, data + 1, n - 1);
    if (!is_whole) {
        uint64_t sum = mr_tile_sheet_sum(bytes + skip, n - 1);
        memcpy(bytes, magic, sizeof magic);
        memcpy(bytes + sizeof magic, &sum, sizeof sum);
    }
    struct mr_str sheet = mr_str_of(bytes, n - 1 + skip);
    if (!mr_tile_sheet_read(sheet, &d.head)) {
        uint64_t until = MR_MAX(d.head.until, d.head.from + WIDTH);
        mr_tile_picture_init(&d.picture, d.head.from, until, WIDTH, 2);
        (void)mr_tile_sheet_decode(sheet, &fns);
        for (uint32_t row = 0; row < 2; row++) {
            uint32_t width = 0, count = mr_tile_picture_runs(&d.picture, row, false, runs);
            for (uint32_t i = 0; i < count; i++)
                width += runs[i].length;
            mr_assert(width == WIDTH);
        }
        mr_tile_picture_fini(&d.picture);
    }
    mr_release(bytes);
    return 0;
}
