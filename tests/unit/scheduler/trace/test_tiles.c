/* services/scheduler/tiles: pictures of a job's trace. All blocks are in a mr_trace_view, so the
 * tests need no Redis. */
#include "base/alloc.h"
#include "base/rng.h"
#include "services/scheduler/telemetry/trace_sheets.h"
#include "services/scheduler/telemetry/trace_tiles.h"
#include "services/scheduler/tiles/blocks.h"
#include "services/scheduler/tiles/tiles.h"

#include <millrace/v1/jobs.pb-c.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define JOB ((mr_job_id){7})
#define BEGIN UINT64_C(1700000000000000000)
#define SLOTS 4u
#define BLOCK_SPANS 5000u
#define WIDTH 100u

enum sheets { NO_SHEETS, SHEETS, DAMAGED_SHEETS, SHEETS_OF_OTHERS };

static struct mr_trace_encoder *encoder;
static uint64_t next[SLOTS]; /* when the slot's last span ended */
static uint64_t busy;        /* time of all spans */
static uint32_t made;

static struct mr_str op_name(const void *ctx, uint64_t number)
{
    static const struct mr_str names[] = {
        MR_STR_INIT("inc"), MR_STR_INIT("add"), MR_STR_INIT("sum")};
    (void)ctx;
    return names[number];
}

static struct mr_str worker_name(const void *ctx, uint64_t number)
{
    (void)ctx;
    return number ? MR_STR("w10") : MR_STR("w9");
}

static void entry_add(
    struct mr_trace_view *view, uint64_t number, bool is_sheet, struct mr_str bytes)
{
    MR_AUTO(mr_trace_waiting_put)
    struct mr_trace_waiting *w = mr_trace_waiting_new(JOB, number, is_sheet, bytes);
    mr_trace_view_add(view, w);
}

/* Adds a block of spans to the view, and perhaps its sheet. */
static void block_add(struct mr_trace_view *view, uint64_t number, enum sheets kind)
{
    struct mr_trace_collected spans = {0};
    struct mr_trace_sheets sheets;
    struct mr_rng r;
    mr_rng_init(&r, number);
    mr_trace_encoder_begin(encoder, JOB);
    for (uint32_t i = 0; i < BLOCK_SPANS; i++) {
        uint32_t slot = (uint32_t)mr_rng_below(&r, SLOTS);
        uint64_t ran = 100 * (1 + mr_rng_below(&r, 300));
        struct mr_trace_span s = {.index = made,
            .last_input = made,
            .attempt = 1,
            .slot = slot % 2,
            .worker_id = slot / 2,
            .op_id = made / 20000 % 3,
            .started = next[slot] + 1000,
            .finished = next[slot] + 1000 + ran,
            .accounted = next[slot] + 2000 + ran};
        s.op = op_name(NULL, s.op_id);
        s.worker = worker_name(NULL, s.worker_id);
        next[slot] = s.finished;
        busy += ran;
        made++;
        if (i == 0) s.started = 0; /* an attempt that never ran */
        if (i == 0) busy -= ran;
        assert_int_equal(mr_trace_encoder_add(encoder, &s), 0);
        mr_trace_collect(&spans, encoder, &s);
    }
    mr_trace_sheets_init(&sheets);
    entry_add(view, 2 * number, false, mr_trace_encoder_end(encoder));
    const struct mr_trace_sheet_of of = {
        .id = {JOB.v, view->epoch, kind == SHEETS_OF_OTHERS ? 1 : 2 * number, BLOCK_SPANS},
        .encoder = encoder,
        .spans = &spans,
        .worker = worker_name,
        .op = op_name};
    struct mr_buf copy;
    mr_buf_init(&copy, MR_TILE_SHEET_BYTES_MAX);
    mr_buf_add_str(&copy, mr_trace_sheets_make(&sheets, &of));
    assert_true(copy.n > 0);
    if (kind == DAMAGED_SHEETS) copy.p[copy.n / 2] ^= 1;
    if (kind != NO_SHEETS) entry_add(view, 2 * number + 1, true, mr_buf_str(&copy));
    view->spans += BLOCK_SPANS;
    mr_buf_fini(&copy);
    mr_trace_sheets_fini(&sheets);
    mr_trace_collected_fini(&spans);
}

static void view_init(struct mr_trace_view *view)
{
    mr_trace_view_init(view, JOB);
    view->epoch = 3;
    view->number = 1;
    busy = made = 0;
    for (uint32_t i = 0; i < SLOTS; i++)
        next[i] = BEGIN;
}

static void draw(struct mr_job_tiles *t, const struct mr_trace_view *view, uint64_t from,
    uint64_t until, struct mr_job_tiles_picture *out)
{
    const struct mr_trace_source source = {0};
    const struct mr_job_tiles_ask ask = {
        .from_ns = from, .until_ns = until, .width = WIDTH, .rows = 64, .submitted_ns = BEGIN};
    assert_int_equal(mr_job_tiles_draw(t, &source, view, &ask, out), 0);
}

/* Returns the busy time of a picture, in ns. */
static double busy_of(const struct mr_job_tiles_picture *p)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->rows_count; i++) {
        uint32_t width = 0;
        for (uint32_t k = 0; k < p->rows[i].runs_count; k++) {
            const struct mr_tile_run *run = &p->rows[i].runs[k];
            assert_true(run->name == MR_TILE_NONE || run->name < p->names_count);
            width += run->length;
            sum += run->length * (double)run->fill / 255;
        }
        assert_int_equal(width, WIDTH);
    }
    return sum * (double)(p->until_ns - p->from_ns) / WIDTH;
}

static void assert_all_drawn(const struct mr_job_tiles_picture *p)
{
    assert_true(busy_of(p) > 0.97 * (double)busy);
    assert_true(busy_of(p) < 1.03 * (double)busy);
    assert_int_equal(p->rows_all, SLOTS);
    assert_int_equal(p->rows_count, SLOTS);
    assert_true(mr_str_eq(p->rows[1].worker, MR_STR("w9")));
    assert_int_equal(p->rows[1].slot, 1);
    assert_true(mr_str_eq(p->rows[2].worker, MR_STR("w10")));
    assert_int_equal(p->rows[2].slot, 0);
}

/* Reads a job of `blocks` blocks and draws the whole job, and a part of it. */
static void draws(uint32_t blocks, enum sheets kind)
{
    struct mr_trace_view view;
    struct mr_job_tiles_picture p;
    struct mr_job_tiles *t = mr_job_tiles_new(JOB, NULL);
    view_init(&view);
    for (uint32_t i = 1; i <= blocks; i++)
        block_add(&view, i, kind);
    draw(t, &view, 0, 0, &p);
    assert_all_drawn(&p);
    uint64_t whole = p.until_ns - p.from_ns, from = p.from_ns + whole / 3;
    double all = busy_of(&p);
    mr_job_tiles_picture_fini(&p);
    draw(t, &view, from, from + whole / 3, &p);
    assert_true(busy_of(&p) > 0.9 * all / 3);
    assert_true(busy_of(&p) < 1.1 * all / 3);
    mr_job_tiles_picture_fini(&p);
    mr_job_tiles_free(&t);
    mr_trace_view_fini(&view);
}

static void a_small_job_is_drawn_from_its_spans(void **state)
{
    (void)state;
    draws(3, NO_SHEETS);
    draws(3, SHEETS);
}

static void a_large_job_is_drawn_with_and_without_sheets(void **state)
{
    (void)state;
    draws(100, SHEETS);
    draws(100, NO_SHEETS);
}

static void a_damaged_sheet_is_made_again_from_its_block(void **state)
{
    (void)state;
    draws(100, DAMAGED_SHEETS);
    draws(100, SHEETS_OF_OTHERS);
}

/* Returns the mean difference of the shares of two pictures, 0-1, and stores the share of pixels
 * with the same name. */
static double difference(
    const struct mr_job_tiles_picture *a, const struct mr_job_tiles_picture *b, double *same)
{
    double sum = 0;
    assert_int_equal(a->rows_count, b->rows_count);
    *same = 0;
    for (uint32_t i = 0; i < a->rows_count; i++) {
        const struct mr_tile_run *x = a->rows[i].runs, *y = b->rows[i].runs;
        uint32_t in_x = 0, in_y = 0;
        for (uint32_t k = 0; k < WIDTH; k++) {
            sum += x->fill > y->fill ? x->fill - y->fill : y->fill - x->fill;
            *same += x->name == y->name;
            if (++in_x == x->length) in_x = 0, x++;
            if (++in_y == y->length) in_y = 0, y++;
        }
    }
    *same /= a->rows_count * WIDTH;
    return sum / 255 / (a->rows_count * WIDTH);
}

/* The same windows, drawn in each of the ways, give about the same picture. */
static void all_ways_to_draw_agree(void **state)
{
    (void)state;
    static const struct mr_job_tiles_limits limits[] = {
        {.exact_max = UINT64_MAX, .sheets_max = 0, .cells_max = 1000},
        {.exact_max = 0, .sheets_max = UINT64_MAX, .cells_max = 1000},
        {.exact_max = 0, .sheets_max = 0, .cells_max = 1u << 20},
        {.exact_max = 0, .sheets_max = 0, .cells_max = 1000},
    };
    struct mr_trace_view view;
    struct mr_job_tiles_picture p[MR_ARRAY_LEN(limits)];
    struct mr_job_tiles *t[MR_ARRAY_LEN(limits)];
    view_init(&view);
    for (uint32_t i = 1; i <= 20; i++)
        block_add(&view, i, SHEETS);
    for (size_t i = 0; i < MR_ARRAY_LEN(limits); i++)
        t[i] = mr_job_tiles_new(JOB, &limits[i]);
    for (uint64_t scale = 1; scale <= 64; scale *= 4) {
        uint64_t window = (next[0] - BEGIN) / scale, from = BEGIN + window / 3;
        double same = 0, off = 0;
        for (size_t i = 0; i < MR_ARRAY_LEN(limits); i++)
            draw(t[i], &view, from, from + window, &p[i]);
        for (size_t i = 1; i < MR_ARRAY_LEN(limits); i++) {
            off = difference(&p[0], &p[i], &same);
            if (i == 3) break; /* the pyramid's buckets are wider than these pixels */
            assert_true(off < (i == 1 ? 0.06 : 0.03));
            assert_true(same > 0.98);
        }
        assert_true(off < 0.2);
        for (size_t i = 0; i < MR_ARRAY_LEN(limits); i++)
            mr_job_tiles_picture_fini(&p[i]);
    }
    for (size_t i = 0; i < MR_ARRAY_LEN(limits); i++)
        mr_job_tiles_free(&t[i]);
    mr_trace_view_fini(&view);
}

static void a_job_that_runs_grows(void **state)
{
    (void)state;
    struct mr_trace_view view;
    struct mr_job_tiles *t = mr_job_tiles_new(JOB, NULL);
    view_init(&view);
    for (uint32_t i = 1; i <= 90; i++) {
        struct mr_job_tiles_picture p;
        block_add(&view, i, i % 3 ? SHEETS : NO_SHEETS);
        if (i % 10) continue;
        draw(t, &view, 0, 0, &p);
        assert_all_drawn(&p);
        mr_job_tiles_picture_fini(&p);
    }
    mr_job_tiles_free(&t);
    mr_trace_view_fini(&view);
}

static void a_window_has_all_of_its_spans_and_no_others(void **state)
{
    (void)state;
    struct mr_trace_view view;
    struct mr_trace_gather g;
    const struct mr_trace_source source = {0};
    struct mr_job_tiles *t = mr_job_tiles_new(JOB, NULL);
    char *workers[] = {"w9"};
    uint32_t slots[] = {1};
    const struct mr_trace_filter filter = {workers, slots, 1, 1};
    uint64_t not_recorded = 9;
    view_init(&view);
    for (uint32_t i = 1; i <= 20; i++)
        block_add(&view, i, i % 2 ? SHEETS : NO_SHEETS);
    struct mr_trace_want want = {
        .kind = MR_TRACE_TIMELINE, .spans_max = 100000, .from_ns = BEGIN, .until_ns = next[0]};
    uint32_t counts[2] = {0};
    for (uint32_t k = 0; k < 2; k++) {
        want.filter = k ? &filter : NULL;
        mr_trace_gather_init(&g, &want);
        mr_job_tiles_spans(t, &source, &view, &g, &not_recorded);
        counts[k] = g.count;
        assert_int_equal(not_recorded, 0);
        for (uint32_t i = 0; k && i < g.count; i++)
            assert_true(g.spans[i].slot == 1);
        mr_trace_gather_fini(&g);
    }
    assert_in_range(counts[0], 20 * (BLOCK_SPANS - 1) - 400, 20 * (BLOCK_SPANS - 1));
    assert_in_range(counts[1], counts[0] / 4 - 1000, counts[0] / 4 + 1000);
    want.filter = NULL;
    want.from_ns = BEGIN + (next[0] - BEGIN) / 2;
    want.until_ns = want.from_ns + 1;
    mr_trace_gather_init(&g, &want);
    mr_job_tiles_spans(t, &source, &view, &g, &not_recorded);
    assert_in_range(g.count, 1, SLOTS);
    for (uint32_t i = 0; i < g.count; i++) {
        assert_true(g.spans[i].started <= want.from_ns);
        assert_true(g.spans[i].finished > want.from_ns);
    }
    mr_trace_gather_fini(&g);
    mr_job_tiles_free(&t);
    mr_trace_view_fini(&view);
}

static void spans_that_were_used_longest_ago_leave_memory_first(void **state)
{
    (void)state;
    const struct mr_trace_source source = {0};
    const uint32_t blocks = 150;
    struct mr_trace_view view;
    struct mr_tile_blocks b;
    view_init(&view);
    for (uint32_t i = 1; i <= blocks; i++)
        block_add(&view, i, NO_SHEETS);
    mr_tile_blocks_init(&b, JOB);
    mr_tile_blocks_sync(&b, &source, &view, NULL, NULL);
    assert_int_equal(b.count, blocks);
    assert_true(b.decoded <= 600000);
    uint32_t kept = 0;
    while (!b.items[kept].spans)
        kept++;
    assert_in_range(kept, 20, 40);
    for (uint32_t i = kept; i < blocks; i++)
        assert_non_null(b.items[i].spans);
    assert_non_null(mr_tile_blocks_spans(&b, &source, &view, &b.items[kept]));
    assert_non_null(mr_tile_blocks_spans(&b, &source, &view, &b.items[0]));
    assert_non_null(b.items[0].spans);
    assert_non_null(b.items[kept].spans); /* it was used just before */
    assert_null(b.items[kept + 1].spans);
    assert_true(b.decoded <= 600000);
    assert_true(b.looked_at <= blocks); /* its cost does not grow with the number of blocks */
    mr_tile_blocks_fini(&b);
    mr_trace_view_fini(&view);
}

/* The thread that draws a picture also packs it. */
static void a_packed_picture_is_the_answer_of_the_call(void **state)
{
    (void)state;
    struct mr_trace_view view;
    struct mr_job_tiles_picture p;
    struct mr_buf packed;
    struct mr_job_tiles *t = mr_job_tiles_new(JOB, NULL);
    view_init(&view);
    block_add(&view, 1, SHEETS);
    draw(t, &view, 0, 0, &p);
    mr_buf_init(&packed, 1 << 20);
    mr_trace_tiles_pack(&p, &packed);
    Millrace__V1__TilesResponse *m = millrace__v1__tiles_response__unpack(NULL, packed.n, packed.p);
    assert_non_null(m);
    assert_true(m->from_ns == p.from_ns && m->until_ns == p.until_ns);
    assert_true(m->more_spans_ns == p.few_ns);
    assert_int_equal(m->rows_count, SLOTS);
    assert_int_equal(m->n_names, p.names_count);
    assert_string_equal(m->names[0], "inc");
    assert_int_equal(m->n_rows, SLOTS);
    assert_string_equal(m->rows[2]->worker, "w10");
    assert_int_equal(m->rows[1]->slot, 1);
    for (uint32_t i = 0; i < SLOTS; i++) {
        const struct mr_tile_run *run = p.rows[i].runs;
        assert_int_equal(m->rows[i]->n_lengths, p.rows[i].runs_count);
        for (uint32_t k = 0; k < p.rows[i].runs_count; k++) {
            assert_int_equal(m->rows[i]->lengths[k], run[k].length);
            assert_int_equal(m->rows[i]->fill[k], run[k].fill);
            assert_int_equal(m->rows[i]->colors[k], (uint16_t)(run[k].name + 1));
        }
    }
    millrace__v1__tiles_response__free_unpacked(m, NULL);
    mr_buf_fini(&packed);
    mr_job_tiles_picture_fini(&p);
    mr_job_tiles_free(&t);
    mr_trace_view_fini(&view);
}

static void a_job_without_a_trace_has_no_picture(void **state)
{
    (void)state;
    struct mr_trace_view view;
    struct mr_job_tiles_picture p;
    const struct mr_trace_source source = {0};
    struct mr_job_tiles *t = mr_job_tiles_new(JOB, NULL);
    view_init(&view);
    struct mr_job_tiles_ask ask = {.width = WIDTH, .rows = 64};
    assert_int_equal(mr_job_tiles_draw(t, &source, &view, &ask, &p), MR_ENOENT);
    block_add(&view, 1, SHEETS);
    assert_int_equal(mr_job_tiles_draw(t, &source, &view, &ask, &p), 0);
    assert_true(p.until_ns > p.from_ns && p.from_ns >= BEGIN);
    mr_job_tiles_picture_fini(&p);
    ask.from_ns = BEGIN;
    ask.until_ns = BEGIN + WIDTH - 1;
    assert_int_equal(mr_job_tiles_draw(t, &source, &view, &ask, &p), MR_EINVAL);
    mr_job_tiles_picture_fini(&p);
    mr_job_tiles_free(&t);
    mr_trace_view_fini(&view);
}

static int setup(void **state)
{
    (void)state;
    encoder = mr_trace_encoder_new();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mr_trace_encoder_free(&encoder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_job_is_drawn_from_its_spans),
        cmocka_unit_test(a_large_job_is_drawn_with_and_without_sheets),
        cmocka_unit_test(a_damaged_sheet_is_made_again_from_its_block),
        cmocka_unit_test(all_ways_to_draw_agree),
        cmocka_unit_test(a_job_that_runs_grows),
        cmocka_unit_test(a_window_has_all_of_its_spans_and_no_others),
        cmocka_unit_test(spans_that_were_used_longest_ago_leave_memory_first),
        cmocka_unit_test(a_packed_picture_is_the_answer_of_the_call),
        cmocka_unit_test(a_job_without_a_trace_has_no_picture),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
