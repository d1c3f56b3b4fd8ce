/* lib/tiles: pictures of random spans agree with a naive count, whether they are drawn from the
 * spans, from sheets or from the pyramid. Damaged sheets are refused. */
#include "base/alloc.h"
#include "base/rng.h"
#include "tiles/pyramid.h"
#include "tiles/sheet_bytes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define LANES 5u
#define NAMES 6u
#define SPANS 20000u
#define BEGIN UINT64_C(1700000000000000000)

static struct mr_tile_span spans[SPANS];
static uint64_t end;

/* Each lane runs one span after the other, with gaps. One span in 500 is 1,000 times as long. */
static void spans_make(uint64_t seed, uint64_t run_max, uint32_t names)
{
    struct mr_rng r;
    uint64_t at[LANES];
    mr_rng_init(&r, seed);
    for (uint32_t i = 0; i < LANES; i++)
        at[i] = BEGIN + mr_rng_below(&r, run_max);
    end = 0;
    for (uint32_t i = 0; i < SPANS; i++) {
        uint32_t lane = (uint32_t)mr_rng_below(&r, LANES);
        uint64_t from = at[lane] + mr_rng_below(&r, run_max / 2 + 1);
        at[lane] = from + 1 + mr_rng_below(&r, run_max) * (mr_rng_below(&r, 500) ? 1 : 1000);
        spans[i] = (struct mr_tile_span){.from = from,
            .until = at[lane],
            .lane = lane,
            .name = (uint16_t)mr_rng_below(&r, names)};
        end = MR_MAX(end, at[lane]);
    }
}

static void draw_spans(struct mr_tile_picture *p)
{
    for (uint32_t i = 0; i < SPANS; i++) {
        const struct mr_tile_time t = {.from = spans[i].from,
            .until = spans[i].until,
            .ns = spans[i].until - spans[i].from,
            .name = spans[i].name};
        mr_tile_picture_add(p, spans[i].lane, &t);
    }
}

/* Counts the ns of each name in a pixel. */
static uint64_t naive(
    const struct mr_tile_picture *p, uint32_t lane, uint32_t pixel, uint64_t names[NAMES])
{
    uint64_t from = p->edges[pixel], until = p->edges[pixel + 1], all = 0;
    memset(names, 0, NAMES * sizeof *names);
    for (uint32_t i = 0; i < SPANS; i++) {
        const struct mr_tile_span *s = &spans[i];
        if (s->lane != lane || s->until <= from || s->from >= until) continue;
        uint64_t ns = MR_MIN(until, s->until) - MR_MAX(from, s->from);
        names[s->name] += ns;
        all += ns;
    }
    return all;
}

/* Compares some pixels with the naive count. `error`: the allowed error of a time, in ns.
 * `is_exact`: the name with the most time must be the true one. */
static void assert_agrees(const struct mr_tile_picture *p, uint64_t error, bool is_exact)
{
    struct mr_rng r;
    mr_rng_init(&r, 77);
    for (uint32_t k = 0; k < 300; k++) {
        uint32_t lane = (uint32_t)mr_rng_below(&r, LANES);
        uint32_t pixel = (uint32_t)mr_rng_below(&r, p->width), time = 0;
        uint64_t names[NAMES], most = 0;
        uint64_t all = naive(p, lane, pixel, names);
        const struct mr_tile_cell *c = &p->cells[(size_t)lane * p->width + pixel];
        uint64_t busy = (uint64_t)c->busy << p->shift;
        assert_true(busy + error >= all);
        assert_true(busy <= all + error);
        for (uint32_t i = 0; i < NAMES; i++)
            most = MR_MAX(most, names[i]);
        uint16_t top = mr_tile_cell_top(c, &time);
        if (all <= error) continue;
        assert_true(top < NAMES);
        uint64_t less = is_exact ? 0 : all / (MR_TILE_NAMES + 1);
        assert_true(names[top] + less + 2 * error >= most);
    }
}

static void assert_adds_up(const struct mr_tile_picture *p)
{
    struct mr_tile_run *runs = mr_alloc_array(p->width, sizeof *runs);
    for (uint32_t row = 0; row < p->rows; row++) {
        uint64_t width = 0;
        uint32_t count = mr_tile_picture_runs(p, row, false, runs);
        for (uint32_t i = 0; i < count; i++) {
            assert_true(runs[i].length > 0);
            assert_int_equal(runs[i].name == MR_TILE_NONE, runs[i].fill == 0);
            if (i)
                assert_false(runs[i].name == runs[i - 1].name && runs[i].fill == runs[i - 1].fill);
            width += runs[i].length;
        }
        assert_int_equal(width, p->width);
    }
    mr_release(runs);
}

static void pictures_of_spans_agree_with_a_naive_count(void **state)
{
    (void)state;
    struct mr_tile_picture p;
    for (uint32_t names = 2; names <= NAMES; names += 4) {
        spans_make(names, 100000, names);
        mr_tile_picture_init(&p, BEGIN, end, 1000, LANES);
        draw_spans(&p);
        assert_agrees(&p, 0, names <= MR_TILE_NAMES);
        assert_adds_up(&p);
        mr_tile_picture_fini(&p);
        mr_tile_picture_init(&p, BEGIN + 1234567, BEGIN + 1234567 + 4097, 4096, LANES);
        draw_spans(&p);
        assert_agrees(&p, 0, names <= MR_TILE_NAMES);
        assert_adds_up(&p);
        mr_tile_picture_fini(&p);
    }
}

static void an_empty_picture_is_one_run(void **state)
{
    (void)state;
    struct mr_tile_picture p;
    struct mr_tile_run runs[7];
    mr_tile_picture_init(&p, 5, 5 + 70, 7, 1);
    assert_int_equal(mr_tile_picture_runs(&p, 0, false, runs), 1);
    assert_int_equal(runs[0].length, 7);
    assert_int_equal(runs[0].name, MR_TILE_NONE);
    mr_tile_picture_fini(&p);
}

static void the_share_is_that_of_all_names_or_of_one(void **state)
{
    (void)state;
    struct mr_tile_picture p;
    struct mr_tile_run runs[2];
    mr_tile_picture_init(&p, 1000, 3000, 2, 1);
    const struct mr_tile_time most = {.from = 1000, .until = 1500, .ns = 500, .name = 4};
    const struct mr_tile_time less = {.from = 1500, .until = 2500, .ns = 1000, .name = 2};
    mr_tile_picture_add(&p, 0, &most);
    mr_tile_picture_add(&p, 0, &less);
    mr_tile_picture_add(&p, 0, &(struct mr_tile_time){1000, 1001, 1, 4});
    assert_int_equal(mr_tile_picture_runs(&p, 0, false, runs), 2);
    assert_int_equal(runs[0].fill, 255);
    assert_int_equal(runs[0].name, 4);
    assert_int_equal(mr_tile_picture_runs(&p, 0, true, runs), 2);
    assert_in_range(runs[0].fill, 120, 135);
    assert_int_equal(runs[1].name, 2);
    assert_in_range(runs[1].fill, 120, 135);
    mr_tile_picture_fini(&p);
}

/* ---- sheets ---------------------------------------------------------------------------------- */

static struct mr_str names[NAMES] = {MR_STR_INIT("a"), MR_STR_INIT("b"), MR_STR_INIT("c"),
    MR_STR_INIT("d"), MR_STR_INIT("e"), MR_STR_INIT("f")};
static struct mr_str workers[2] = {MR_STR_INIT("w0"), MR_STR_INIT("w1")};
static struct mr_tile_lane lanes[LANES] = {{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}};

static uint32_t on_name(void *ctx, struct mr_str name)
{
    (void)ctx;
    return (uint32_t)(name.p[0] - 'a');
}

static uint32_t on_worker(void *ctx, struct mr_str name)
{
    (void)ctx;
    return (uint32_t)(name.p[1] - '0');
}

static uint32_t on_lane(void *ctx, uint32_t worker, uint32_t slot)
{
    (void)ctx;
    return worker * 3 + slot;
}

static void on_piece(void *ctx, uint32_t lane, const struct mr_tile_time *t)
{
    mr_tile_picture_add(ctx, lane, t);
}

static void sheet_bytes(uint32_t from, uint32_t count, struct mr_buf *out)
{
    struct mr_tile_sheet sheet = {0};
    const struct mr_tile_sheet_id id = {.job = 9, .epoch = 2, .number = 77, .spans = count + 1};
    const struct mr_tile_legend legend = {names, workers, lanes, NAMES, 2, LANES};
    mr_tile_sheet_make(&sheet, &spans[from], count);
    mr_buf_init(out, MR_TILE_SHEET_BYTES_MAX);
    assert_int_equal(mr_tile_sheet_write(&sheet, &id, &legend, out), 0);
    mr_tile_sheet_fini(&sheet);
}

static void draw_sheets(struct mr_tile_picture *p, uint32_t block, size_t *bytes)
{
    const struct mr_tile_sheet_fns fns = {
        .name = on_name, .worker = on_worker, .lane = on_lane, .piece = on_piece, .ctx = p};
    for (uint32_t at = 0; at < SPANS; at += block) {
        struct mr_buf b;
        struct mr_tile_sheet_head head;
        sheet_bytes(at, MR_MIN(block, SPANS - at), &b);
        assert_int_equal(mr_tile_sheet_read(mr_buf_str(&b), &head), 0);
        assert_int_equal(head.spans, MR_MIN(block, SPANS - at));
        assert_int_equal(head.id.spans, head.spans + 1);
        assert_int_equal(head.id.number, 77);
        assert_int_equal(mr_tile_sheet_decode(mr_buf_str(&b), &fns), 0);
        *bytes += b.n;
        mr_buf_fini(&b);
    }
}

static void pictures_of_sheets_agree_with_a_naive_count(void **state)
{
    (void)state;
    static const uint64_t runs[] = {30, 5000, 3000000, UINT64_C(4000000000)};
    for (uint32_t i = 0; i < MR_ARRAY_LEN(runs); i++) {
        struct mr_tile_picture p;
        size_t bytes = 0;
        spans_make(i, runs[i], NAMES);
        mr_tile_picture_init(&p, BEGIN, end, 40, LANES);
        draw_sheets(&p, 4000, &bytes);
        /* The median distance of spans is below runs[i] * 3 / 2, and a bucket is at most 16 times
         * as wide. */
        assert_agrees(&p, 16 * runs[i] * 3 / 2 + (end - BEGIN) / 40 / 2000, false);
        assert_adds_up(&p);
        assert_true(bytes < (size_t)SPANS * 3); /* random names are the worst case */
        mr_tile_picture_fini(&p);
    }
}

static void damaged_sheets_are_refused(void **state)
{
    (void)state;
    struct mr_tile_picture p;
    struct mr_tile_sheet_head head;
    struct mr_buf b;
    struct mr_rng r;
    spans_make(3, 5000, NAMES);
    mr_tile_picture_init(&p, BEGIN, end, 40, LANES);
    const struct mr_tile_sheet_fns fns = {
        .name = on_name, .worker = on_worker, .lane = on_lane, .piece = on_piece, .ctx = &p};
    sheet_bytes(0, 3000, &b);
    mr_rng_init(&r, 5);
    for (uint32_t i = 0; i < 2000; i++) {
        size_t at = (size_t)mr_rng_below(&r, b.n);
        unsigned char bit = (unsigned char)(1u << mr_rng_below(&r, 8));
        b.p[at] ^= bit;
        assert_int_equal(mr_tile_sheet_decode(mr_buf_str(&b), &fns), MR_EFORMAT);
        assert_int_equal(mr_tile_sheet_read(mr_buf_str(&b), &head), MR_EFORMAT);
        b.p[at] ^= bit;
    }
    for (size_t n = 0; n < b.n; n += 7)
        assert_int_equal(mr_tile_sheet_decode(mr_str_of(b.p, n), &fns), MR_EFORMAT);
    assert_int_equal(mr_tile_sheet_decode(mr_buf_str(&b), &fns), 0);
    mr_buf_fini(&b);
    mr_tile_picture_fini(&p);
}

/* ---- the pyramid ----------------------------------------------------------------------------- */

static void pyramid_fill(struct mr_tile_pyramid *p, bool from_the_end)
{
    for (uint32_t k = 0; k < SPANS; k++) {
        const struct mr_tile_span *s = &spans[from_the_end ? SPANS - 1 - k : k];
        const struct mr_tile_time t = {
            .from = s->from, .until = s->until, .ns = s->until - s->from, .name = s->name};
        mr_tile_pyramid_cover(p, s->lane + 1, s->from, s->until);
        mr_tile_pyramid_add(p, s->lane, &t);
    }
}

static void pictures_of_the_pyramid_agree_with_a_naive_count(void **state)
{
    (void)state;
    for (uint32_t cells = 2000; cells < 200000; cells *= 10) {
        spans_make(cells, 50000, NAMES);
        struct mr_tile_pyramid *p = mr_tile_pyramid_new(cells);
        pyramid_fill(p, cells == 20000);
        uint64_t bucket = mr_tile_pyramid_bucket_ns(p);
        assert_true(bucket * cells / LANES <= 4 * (end - BEGIN) || bucket == 256);
        for (uint32_t width = 10; width <= 640; width *= 8) {
            struct mr_tile_picture picture;
            uint64_t from = BEGIN + width * 1001, until = end - (end - from) / 3;
            mr_tile_picture_init(&picture, from, until, width, LANES);
            for (uint32_t i = 0; i < LANES; i++)
                mr_tile_pyramid_draw(p, i, &picture, i);
            /* an end of a pixel may lie within a bucket, whose time counts as spread evenly */
            uint64_t pixel = (until - from) / width;
            if (bucket <= pixel) assert_agrees(&picture, MR_MAX(bucket, pixel) + 2, false);
            assert_adds_up(&picture);
            mr_tile_picture_fini(&picture);
        }
        mr_tile_pyramid_free(&p);
    }
}

/* What was drawn before does not change what is drawn after more was added. */
static void a_pyramid_that_grows_draws_all_of_its_time(void **state)
{
    (void)state;
    struct mr_tile_pyramid *p = mr_tile_pyramid_new(4096);
    for (uint64_t i = 0; i < 5000; i++) {
        const struct mr_tile_time t = {
            .from = BEGIN + i * 100000, .until = BEGIN + i * 100000 + 50000, .ns = 50000};
        mr_tile_pyramid_cover(p, 1, t.from, t.until);
        mr_tile_pyramid_add(p, 0, &t);
        if (i % 499 != 0 && i != 4999) continue;
        struct mr_tile_picture picture;
        uint64_t busy = 0;
        mr_tile_picture_init(&picture, BEGIN - 1000000, t.until + 10000000, 64, 1);
        mr_tile_pyramid_draw(p, 0, &picture, 0);
        for (uint32_t k = 0; k < 64; k++)
            busy += (uint64_t)picture.cells[k].busy << picture.shift;
        assert_in_range(busy, (i + 1) * 50000 - 200, (i + 1) * 50000 + 200);
        mr_tile_picture_fini(&picture);
    }
    mr_tile_pyramid_free(&p);
}

/* The number of slots grows while the pyramid is filled, as in a cluster that new workers join. */
static void many_slots_share_the_limit_of_cells(void **state)
{
    (void)state;
    const uint32_t cells = 1 << 17, slots = 10000;
    struct mr_tile_pyramid *p = mr_tile_pyramid_new(cells);
    for (uint32_t i = 0; i < 3 * slots; i++) {
        uint64_t from = BEGIN + i * UINT64_C(100000);
        uint32_t lane = i % slots;
        const struct mr_tile_time t = {.from = from, .until = from + 50000, .ns = 50000};
        mr_tile_pyramid_cover(p, MR_MIN(i + 1, slots), t.from, t.until);
        mr_tile_pyramid_add(p, lane, &t);
        assert_true(mr_tile_pyramid_bytes(p) <= 24 * (cells + cells / 4) + 40 * (size_t)slots);
    }
    for (uint32_t lane = 0; lane < slots; lane += 999) {
        struct mr_tile_picture picture;
        uint64_t busy = 0;
        mr_tile_picture_init(
            &picture, BEGIN - 1000000000, BEGIN + 3 * slots * UINT64_C(100000) + 1000000000, 64, 1);
        mr_tile_pyramid_draw(p, lane, &picture, 0);
        for (uint32_t k = 0; k < 64; k++)
            busy += (uint64_t)picture.cells[k].busy << picture.shift;
        assert_in_range(busy, 150000 - 200, 150000 + 200);
        mr_tile_picture_fini(&picture);
    }
    mr_tile_pyramid_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_of_spans_agree_with_a_naive_count),
        cmocka_unit_test(an_empty_picture_is_one_run),
        cmocka_unit_test(the_share_is_that_of_all_names_or_of_one),
        cmocka_unit_test(pictures_of_sheets_agree_with_a_naive_count),
        cmocka_unit_test(damaged_sheets_are_refused),
        cmocka_unit_test(pictures_of_the_pyramid_agree_with_a_naive_count),
        cmocka_unit_test(a_pyramid_that_grows_draws_all_of_its_time),
        cmocka_unit_test(many_slots_share_the_limit_of_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
