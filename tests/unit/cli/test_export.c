/* Tests the files for trace viewers, and their parts: rows of slots, edges between tasks, and
 * curves. Also tests the image of a timeline. */
#include "cli/export/export.h"
#include "cli/export/raster.h"
#include "cli/export/series.h"

#include "base/protowire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yyjson.h>

#include <cmocka.h>

#define BEGIN 1700000000000000000u

static struct mr_export_span span_of(
    uint32_t node, const char *worker, uint32_t slot, uint64_t started, uint64_t finished)
{
    return (struct mr_export_span){.key = MR_STR("a \"key\"\n"),
        .op = node % 2 ? MR_STR("odd") : MR_STR("even"),
        .worker = mr_str(worker),
        .outcome = MR_STR("SPAN_OUTCOME_OK"),
        .held = MR_STR("SPAN_HELD_UNSPECIFIED"),
        .node = node,
        .slot = slot,
        .attempt = 1,
        .ready = BEGIN + started - 100,
        .started = BEGIN + started,
        .finished = BEGIN + finished,
        .nbytes = 1000,
        .parts = {[MR_EXPORT_INPUT] = 7}};
}

/* ---- curves ---------------------------------------------------------------------------------- */

struct points {
    uint64_t time[MR_EXPORT_SERIES_POINTS + 1];
    double value[MR_EXPORT_SERIES_POINTS + 1];
    unsigned count;
};

static void take_point(void *ctx, uint64_t time, double value)
{
    struct points *p = ctx;
    assert_true(p->count <= MR_EXPORT_SERIES_POINTS);
    assert_true(!p->count || time > p->time[p->count - 1]);
    p->time[p->count] = time;
    p->value[p->count++] = value;
}

/* Returns the area below the curve: the sum of weight times ns. */
static double area(const struct points *p)
{
    double sum = 0;
    for (unsigned i = 0; i + 1 < p->count; i++)
        sum += p->value[i] * (double)(p->time[i + 1] - p->time[i]);
    return sum;
}

static void a_curve_steps_where_intervals_begin_and_end(void **state)
{
    (void)state;
    struct mr_export_series s;
    struct points p = {0};
    mr_export_series_init(&s);
    mr_export_series_add(&s, BEGIN, BEGIN + 10000, 2);
    mr_export_series_add(&s, BEGIN + 5000, BEGIN + 20000, 1);
    mr_export_series_add(&s, BEGIN + 9000, BEGIN + 9000, 50); /* an empty interval */
    mr_export_series_read(&s, take_point, &p);
    assert_int_equal(p.count, 4);
    const uint64_t times[] = {0, 5000, 10000, 20000};
    const double values[] = {2, 3, 1, 0};
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(p.time[i], BEGIN + times[i]);
        assert_float_equal(p.value[i], values[i], 0);
    }
}

static void a_curve_keeps_its_area_when_it_widens_to_either_side(void **state)
{
    (void)state;
    struct mr_export_series s;
    struct points p = {0};
    double wanted = 0;
    mr_export_series_init(&s);
    for (unsigned i = 0; i < 1000; i++) {
        /* intervals of 1 us to 1 s, alternately after and before all others */
        uint64_t from = i % 2 ? BEGIN + i * 7777777ull : BEGIN - i * 3333333ull;
        uint64_t length = 1000 + (uint64_t)(i % 10) * 100000000;
        mr_export_series_add(&s, from, from + length, 1 + i % 3);
        wanted += (1 + i % 3) * (double)length;
    }
    mr_export_series_read(&s, take_point, &p);
    assert_true(p.count > MR_EXPORT_SERIES_POINTS / 8);
    assert_float_equal(p.value[p.count - 1], 0, 0);
    assert_true(area(&p) > wanted * 0.99 && area(&p) < wanted * 1.01);
}

static void an_interval_to_the_end_of_the_last_point_stays_in_the_series(void **state)
{
    (void)state;
    struct mr_export_series s;
    struct points p = {0};
    mr_export_series_init(&s);
    mr_export_series_add(&s, BEGIN, BEGIN + MR_EXPORT_SERIES_POINTS * 1000ull, 1);
    mr_export_series_read(&s, take_point, &p);
    assert_int_equal(p.count, 2);
    assert_int_equal(p.time[1] - p.time[0], MR_EXPORT_SERIES_POINTS * 1000ull);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void spans_that_overlap_go_to_rows_of_their_own(void **state)
{
    (void)state;
    struct mr_export_lanes l;
    char name[MR_EXPORT_LANE_NAME_MAX];
    mr_export_lanes_init(&l, 2);
    struct mr_export_span a = span_of(0, "w", 1, 1000, 2000), b = span_of(1, "w", 1, 1500, 2500),
                          c = span_of(2, "w", 1, 2000, 3000), d = span_of(3, "v", 0, 1000, 3000);
    uint32_t of_a = mr_export_lanes_take(&l, &a), of_b = mr_export_lanes_take(&l, &b);
    assert_int_equal(l.count, 3); /* rows: slot 0, slot 1, slot 1 again */
    assert_int_equal(mr_export_lanes_take(&l, &c), of_a);
    assert_int_not_equal(of_b, of_a);
    uint32_t of_d = mr_export_lanes_take(&l, &d);
    assert_int_equal(l.names.count, 2);
    mr_export_lane_name(&l.lanes[of_a], name);
    assert_string_equal(name, "slot 1");
    mr_export_lane_name(&l.lanes[of_b], name);
    assert_string_equal(name, "slot 1 (row 2)");
    /* no two pids or tids are equal */
    uint32_t ids[] = {l.workers[0].pid, l.workers[1].pid, l.lanes[of_a].tid, l.lanes[of_b].tid,
        l.lanes[of_d].tid};
    for (unsigned i = 0; i < MR_ARRAY_LEN(ids); i++)
        for (unsigned k = 0; k < i; k++)
            assert_int_not_equal(ids[i], ids[k]);
    mr_export_lanes_fini(&l);
}

/* ---- edges ----------------------------------------------------------------------------------- */

/* Tasks 0 and 1 are inputs of task 2. Task 1 is an input of task 3. Tasks 2 and 3 are targets. */
static const uint32_t input_at[] = {0, 0, 0, 2, 3}, inputs[] = {0, 1, 1};
static const uint32_t dependent_at[] = {0, 1, 3, 3, 3}, dependents[] = {2, 2, 3};
static const unsigned char is_target[] = {0, 0, 1, 1};
static const struct mr_export_edges edges = {
    4, input_at, inputs, dependent_at, dependents, is_target};

struct need {
    uint64_t from, until;
    unsigned count;
};

static void take_need(void *ctx, uint64_t from, uint64_t until, uint64_t bytes)
{
    struct need *n = ctx;
    assert_int_equal(bytes, 1000);
    n[n->count % 4].from = from - BEGIN;
    n[n->count % 4].until = until - BEGIN;
    n->count++;
}

static void a_value_is_needed_until_its_last_consumer_has_ended(void **state)
{
    (void)state;
    struct need needs[4] = {0};
    struct mr_export_step step;
    struct mr_export_flows *f = mr_export_flows_new(&edges, take_need, needs);
    struct mr_export_span spans[] = {span_of(0, "w", 0, 1000, 2000), span_of(1, "w", 0, 2000, 3000),
        span_of(2, "w", 0, 3000, 4000), span_of(3, "w", 0, 4000, 6000)};
    for (unsigned i = 0; i < 3; i++)
        mr_export_flows_take(f, &spans[i], i, &step);
    assert_int_equal(needs->count, 1); /* the value of task 0 */
    assert_int_equal(needs[0].from, 2000);
    assert_int_equal(needs[0].until, 4000);
    mr_export_flows_take(f, &spans[3], 3, &step);
    assert_int_equal(needs->count, 2); /* and that of task 1 */
    assert_int_equal(needs[1].from, 3000);
    assert_int_equal(needs[1].until, 6000);
    mr_export_flows_end(f);
    assert_int_equal(needs->count, 4); /* and the targets, to the end of all spans */
    assert_int_equal(needs[2].from, 4000);
    assert_int_equal(needs[2].until, 6000);
    mr_export_flows_free(&f);
}

static void both_ends_of_an_edge_have_its_number(void **state)
{
    (void)state;
    struct need needs[4] = {0};
    struct mr_export_step step;
    struct mr_export_flows *f = mr_export_flows_new(&edges, take_need, needs);
    struct mr_export_span a = span_of(0, "w", 0, 1000, 2000), b = span_of(1, "w", 0, 2000, 3000),
                          c = span_of(2, "w", 0, 3000, 4000);
    mr_export_flows_take(f, &a, 5, &step);
    assert_int_equal(step.edges_from, 1);
    assert_int_equal(step.edges_until, 2);
    mr_export_flows_take(f, &b, 6, &step);
    assert_int_equal(step.edges_from, 2);
    assert_int_equal(step.edges_until, 4);
    mr_export_flows_take(f, &c, 7, &step);
    assert_int_equal(step.sources_count, 2);
    assert_int_equal(step.sources[0].edge, 1);
    assert_int_equal(step.sources[0].lane, 5);
    assert_int_equal(step.sources[1].edge, 2);
    assert_int_equal(step.sources[1].finished, BEGIN + 3000);
    mr_export_flows_take(f, &c, 7, &step); /* task 2 runs again */
    assert_int_equal(step.sources_count, 0);
    assert_int_equal(step.edges_from, step.edges_until);
    mr_export_flows_free(&f);
}

static void an_attempt_that_failed_has_no_edges(void **state)
{
    (void)state;
    struct need needs[4] = {0};
    struct mr_export_step step;
    struct mr_export_flows *f = mr_export_flows_new(&edges, take_need, needs);
    struct mr_export_span a = span_of(0, "w", 0, 1000, 2000), c = span_of(2, "w", 0, 3000, 4000);
    a.failed = true;
    mr_export_flows_take(f, &a, 0, &step);
    assert_int_equal(step.edges_until, step.edges_from);
    mr_export_flows_take(f, &c, 0, &step);
    assert_int_equal(step.sources_count, 0);
    mr_export_flows_free(&f);
}

/* ---- files ----------------------------------------------------------------------------------- */

struct file {
    struct mr_buf bytes;
    size_t piece_max;
    int err; /* what `write` returns */
};

static int write_piece(void *ctx, struct mr_str bytes)
{
    struct file *f = ctx;
    f->piece_max = MR_MAX(f->piece_max, bytes.n);
    mr_buf_add_str(&f->bytes, bytes);
    return f->err;
}

static struct mr_export *export_open(
    const struct mr_export_format *format, const struct mr_export_edges *e, struct file *f)
{
    *f = (struct file){0};
    mr_buf_init(&f->bytes, (size_t)256 << 20);
    const struct mr_export_config config = {.format = format,
        .about = {MR_STR("j1-1"), BEGIN},
        .edges = e,
        .write = write_piece,
        .ctx = f};
    return mr_export_open(&config);
}

static void export_four(const struct mr_export_format *format, struct file *f)
{
    struct mr_export *x = export_open(format, &edges, f);
    struct mr_export_span spans[] = {span_of(0, "w", 0, 1000, 2000), span_of(1, "v", 0, 1000, 3000),
        span_of(2, "w", 0, 3000, 4000), span_of(3, "v", 0, 4000, 6000)};
    spans[3].outcome = MR_STR("SPAN_OUTCOME_FAILED");
    spans[3].failed = true;
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(mr_export_span(x, &spans[i]), MR_OK);
    assert_int_equal(mr_export_close(&x), MR_OK);
    assert_null(x);
}

static void a_chrome_file_has_slices_flows_and_curves(void **state)
{
    (void)state;
    struct file f;
    export_four(&mr_export_chrome, &f);
    yyjson_doc *doc = yyjson_read((const char *)f.bytes.p, f.bytes.n, 0);
    assert_non_null(doc);
    yyjson_val *root = yyjson_doc_get_root(doc), *event = NULL, *last = NULL;
    size_t at = 0, max = 0, slices = 0, starts = 0, ends = 0, points = 0;
    yyjson_arr_foreach(yyjson_obj_get(root, "traceEvents"), at, max, event)
    {
        char phase = yyjson_get_str(yyjson_obj_get(event, "ph"))[0];
        slices += phase == 'X';
        starts += phase == 's';
        ends += phase == 'f';
        points += phase == 'C';
        if (phase == 'X') last = event;
    }
    assert_int_equal(slices, 4);
    assert_int_equal(starts, 2); /* task 3, the third consumer, failed */
    assert_int_equal(ends, 2);
    assert_true(points > 6);
    assert_string_equal(yyjson_get_str(yyjson_obj_get(last, "name")), "odd");
    assert_float_equal(yyjson_get_num(yyjson_obj_get(last, "ts")), 4.0, 1e-9);
    assert_float_equal(yyjson_get_num(yyjson_obj_get(last, "dur")), 2.0, 1e-9);
    yyjson_val *args = yyjson_obj_get(last, "args");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(args, "key")), "a \"key\"\n");
    assert_string_equal(yyjson_get_str(yyjson_obj_get(args, "outcome")), "FAILED");
    assert_int_equal(yyjson_get_uint(yyjson_obj_get(args, "input_ns")), 7);
    assert_int_equal(yyjson_get_uint(yyjson_obj_get(args, "queued_ns")), 100);
    assert_null(yyjson_obj_get(args, "output_ns"));
    yyjson_doc_free(doc);
    mr_buf_fini(&f.bytes);
}

/* Numbers of what the packets of a trace contain, and sums of the flow ids. */
struct seen {
    unsigned types[5]; /* number of events by TrackEvent.Type */
    unsigned tracks, flows, flow_ends, names;
    uint64_t flow_sum, flow_end_sum;
};

static void see_event(struct seen *s, struct mr_str bytes)
{
    struct mr_protowire_field f;
    struct mr_protowire_reader r = mr_protowire_read(bytes);
    while (!mr_protowire_next(&r, &f)) {
        if (f.number == 9) s->types[f.value]++;
        if (f.number == 47) s->flows++, s->flow_sum += f.value;
        if (f.number == 48) s->flow_ends++, s->flow_end_sum += f.value;
    }
}

static void see_packet(struct seen *s, struct mr_str bytes)
{
    struct mr_protowire_field f;
    struct mr_protowire_reader r = mr_protowire_read(bytes);
    while (!mr_protowire_next(&r, &f)) {
        if (f.number == 60) s->tracks++;
        if (f.number == 11) see_event(s, f.bytes);
        if (f.number != 12) continue;
        struct mr_protowire_field name;
        struct mr_protowire_reader names = mr_protowire_read(f.bytes);
        while (!mr_protowire_next(&names, &name))
            if (name.number == 2) s->names++;
    }
}

static void a_perfetto_file_has_slices_flows_and_curves(void **state)
{
    (void)state;
    struct file f;
    struct seen s = {0};
    struct mr_protowire_field packet;
    export_four(&mr_export_perfetto, &f);
    struct mr_protowire_reader r = mr_protowire_read(mr_buf_str(&f.bytes));
    int err = MR_OK;
    while (!(err = mr_protowire_next(&r, &packet))) {
        assert_int_equal(packet.number, 1);
        see_packet(&s, packet.bytes);
    }
    assert_int_equal(err, MR_ENOENT);
    assert_int_equal(s.types[1], 4);
    assert_int_equal(s.types[2], 4);
    assert_true(s.types[4] > 6);
    assert_int_equal(s.tracks, 1 + 2 + 2 + 3); /* job, workers, slots, curves */
    assert_int_equal(s.names, 2);              /* each operator's name once */
    assert_int_equal(s.flows, 3);
    assert_int_equal(s.flow_sum, 1 + 2 + 3);
    assert_int_equal(s.flow_ends, 2);
    assert_int_equal(s.flow_end_sum, 1 + 2);
    mr_buf_fini(&f.bytes);
}

static void a_long_timeline_is_written_in_small_pieces(void **state)
{
    (void)state;
    const struct mr_export_format *formats[] = {&mr_export_chrome, &mr_export_perfetto};
    for (unsigned k = 0; k < 2; k++) {
        struct file f;
        struct mr_export *x = export_open(formats[k], NULL, &f);
        for (uint32_t i = 0; i < 50000; i++) {
            struct mr_export_span s = span_of(i, "w", i % 4, 1000 + i * 100, 1400 + i * 100);
            assert_int_equal(mr_export_span(x, &s), MR_OK);
        }
        assert_int_equal(mr_export_close(&x), MR_OK);
        assert_true(f.bytes.n > (size_t)3 << 20);
        assert_true(f.piece_max < (size_t)1 << 20);
        mr_buf_fini(&f.bytes);
    }
}

static void an_error_of_the_file_is_returned(void **state)
{
    (void)state;
    struct file f;
    struct mr_export *x = export_open(&mr_export_chrome, NULL, &f);
    f.err = MR_EDISKFULL;
    int err = MR_OK;
    for (uint32_t i = 0; i < 50000 && !err; i++) {
        struct mr_export_span s = span_of(i, "w", 0, 1000 + i * 100, 1100 + i * 100);
        err = mr_export_span(x, &s);
    }
    assert_int_equal(err, MR_EDISKFULL);
    assert_int_equal(mr_export_close(&x), MR_EDISKFULL);
    mr_buf_fini(&f.bytes);
}

/* ---- images ---------------------------------------------------------------------------------- */

static void a_pixel_shows_the_operator_with_the_most_time(void **state)
{
    (void)state;
    struct mr_raster r;
    mr_raster_init(&r, BEGIN, BEGIN + 10000, 10); /* pixels of 1,000 ns */
    struct mr_export_span spans[] = {
        span_of(0, "w", 0, 0, 300),       /* even */
        span_of(1, "w", 0, 300, 2500),    /* odd: 700 ns of pixel 0, all of 1, half of 2 */
        span_of(2, "w", 0, 9000, 20000),  /* even: ends after the window */
        span_of(3, "w", 1, 20000, 30000), /* after the window: a row without pixels */
    };
    for (unsigned i = 0; i < MR_ARRAY_LEN(spans); i++)
        mr_raster_add(&r, &spans[i]);
    assert_int_equal(mr_raster_rows(&r), 2);
    assert_int_equal(r.spans, 4);
    const char *const ops[] = {"odd", "odd", "odd", NULL, NULL, NULL, NULL, NULL, NULL, "even"};
    const double fills[] = {1, 1, 0.5, 0, 0, 0, 0, 0, 0, 1};
    for (unsigned i = 0; i < 10; i++) {
        const struct mr_raster_pixel *p = &r.rows[0][i];
        assert_int_equal(p->op != 0, ops[i] != NULL);
        if (ops[i]) assert_true(mr_str_eq(r.ops.names[p->op - 1], mr_str(ops[i])));
        assert_float_equal(mr_raster_fill(&r, p), fills[i], 1e-6);
    }
    assert_null(r.rows[1]);
    mr_raster_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_curve_steps_where_intervals_begin_and_end),
        cmocka_unit_test(a_curve_keeps_its_area_when_it_widens_to_either_side),
        cmocka_unit_test(an_interval_to_the_end_of_the_last_point_stays_in_the_series),
        cmocka_unit_test(spans_that_overlap_go_to_rows_of_their_own),
        cmocka_unit_test(a_value_is_needed_until_its_last_consumer_has_ended),
        cmocka_unit_test(both_ends_of_an_edge_have_its_number),
        cmocka_unit_test(an_attempt_that_failed_has_no_edges),
        cmocka_unit_test(a_chrome_file_has_slices_flows_and_curves),
        cmocka_unit_test(a_perfetto_file_has_slices_flows_and_curves),
        cmocka_unit_test(a_long_timeline_is_written_in_small_pieces),
        cmocka_unit_test(an_error_of_the_file_is_returned),
        cmocka_unit_test(a_pixel_shows_the_operator_with_the_most_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
