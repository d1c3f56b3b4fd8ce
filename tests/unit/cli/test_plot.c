/* Tests plots of curves: the axes contain all values, the plot as text has the shape of the curve,
 * and the PNG file is valid. */
#include "cli/plot/plot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N 100

static struct mr_plot_point points[N];
static struct mr_plot_point accuracy[N];

static struct mr_plot falling(void)
{
    for (int i = 0; i < N; i++) {
        points[i] = (struct mr_plot_point){i * 100.0, 2.3 * exp(-i / 15.0) + 0.08};
        accuracy[i] = (struct mr_plot_point){i * 100.0, 0.98 - 0.88 * exp(-i / 10.0)};
    }
    return (struct mr_plot){.x_name = "step",
        .left = {"cross_entropy", points, N},
        .right = {"accuracy", accuracy, N},
        .has_mark = true,
        .mark = 0.12};
}

static void an_axis_holds_all_values_and_the_mark(void **state)
{
    (void)state;
    struct mr_plot_axis a;
    struct mr_plot p = falling();
    const double mark = 0.01;
    mr_plot_axis_of(&p.left, false, &mark, false, &a);
    assert_true(a.low <= 0.01);
    assert_true(a.high >= 2.37);
    assert_true(a.ticks_count >= 3 && a.ticks_count <= 8);
    for (unsigned i = 0; i < a.ticks_count; i++) {
        double at = mr_plot_axis_position(&a, a.ticks[i]);
        assert_true(at >= -1e-6 && at <= 1 + 1e-6);
    }
}

static void values_over_decades_get_an_axis_of_powers(void **state)
{
    (void)state;
    struct mr_plot_axis a;
    struct mr_plot p = falling();
    mr_plot_axis_of(&p.left, false, NULL, true, &a);
    assert_true(a.by_powers);
    assert_true(fabs(mr_plot_axis_position(&a, sqrt(a.low * a.high)) - 0.5) < 1e-9);
    assert_true(a.ticks_count >= 3);
}

static void an_axis_of_nothing_or_of_one_value_has_a_width(void **state)
{
    (void)state;
    struct mr_plot_axis a;
    struct mr_plot_point one[] = {{3, 7}, {4, (double)NAN}};
    mr_plot_axis_of(&(struct mr_plot_line){"x", NULL, 0}, false, NULL, true, &a);
    assert_true(a.high > a.low);
    mr_plot_axis_of(&(struct mr_plot_line){"x", one, 2}, false, NULL, true, &a);
    assert_true(a.low < 7 && a.high > 7);
    struct mr_plot_point zero[] = {{0, 0}};
    mr_plot_axis_of(&(struct mr_plot_line){"x", zero, 1}, true, NULL, false, &a);
    assert_true(a.high > a.low);
}

static void numbers_are_short(void **state)
{
    (void)state;
    static const struct {
        double v;
        const char *text;
    } cases[] = {
        {0, "0"}, {0.05, "0.05"}, {1234, "1234"}, {12345, "12.3k"}, {2e6, "2M"}, {-3e-15, "0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[16];
        mr_plot_number(cases[i].v, text);
        assert_string_equal(text, cases[i].text);
    }
}

/* Returns the first row of `text` in which column `at` of the curve has a mark, or -1 if no row has
 * one. */
static int row_with(const char *text, int at, int rows)
{
    const char *line = strchr(text, '\n') + 1;
    for (int row = 0; row < rows; row++) {
        const char *end = strchr(line, '\n');
        if (end - line > 9 + at && line[9 + at] == '*') return row;
        line = end + 1;
    }
    return -1;
}

static void a_falling_curve_falls_in_ascii(void **state)
{
    (void)state;
    struct mr_plot p = falling();
    struct mr_buf out;
    mr_buf_init(&out, 1 << 20);
    mr_plot_text(&p, 60, 12, true, &out);
    mr_buf_add_byte(&out, 0);
    const char *text = (const char *)out.p;
    for (unsigned i = 0; i + 1 < out.n; i++)
        assert_true(text[i] == '\n' || (text[i] >= ' ' && text[i] < 127));
    int before = row_with(text, 1, 12);
    assert_true(before >= 0 && before <= 1);
    for (int column = 8; column < 60; column += 7) {
        int row = row_with(text, column, 12);
        assert_true(row >= before);
        before = row;
    }
    assert_true(before >= 10);
    assert_non_null(strstr(text, "-- --"));
    assert_non_null(strstr(text, "step"));
    assert_non_null(strstr(text, "cross_entropy"));
    mr_buf_fini(&out);
}

static void gaps_and_no_points_are_drawn_as_nothing(void **state)
{
    (void)state;
    struct mr_plot_point gap[] = {{0, 1}, {1, (double)NAN}, {2, (double)INFINITY}, {3, 2}};
    struct mr_plot p = {.left = {"loss", gap, 4}};
    struct mr_buf out;
    mr_buf_init(&out, 1 << 20);
    mr_plot_text(&p, 40, 8, true, &out);
    unsigned stars = 0;
    for (size_t i = 0; i < out.n; i++)
        stars += out.p[i] == '*';
    assert_int_equal(stars, 2);
    p.left.count = 0;
    mr_plot_text(&p, 40, 8, false, &out);
    assert_int_equal(mr_buf_status(&out), MR_OK);
    mr_buf_fini(&out);
}

static void a_picture_is_a_png_of_its_size(void **state)
{
    (void)state;
    struct mr_plot p = falling();
    struct mr_error e = {0};
    struct mr_buf out;
    mr_buf_init(&out, 1 << 24);
    assert_int_equal(mr_plot_png(&p, 800, 400, &out, &e), MR_OK);
    assert_memory_equal(out.p, "\x89PNG\r\n\x1a\n", 8);
    assert_memory_equal(out.p + 16, "\0\0\x03\x20\0\0\x01\x90", 8);
    /* Writes the plot to a file, for a person to look at. */
    const char *path = getenv("MILLRACE_TEST_PLOT");
    if (path) {
        FILE *f = fopen(path, "wbe");
        assert_non_null(f);
        assert_int_equal(fwrite(out.p, 1, out.n, f), out.n);
        assert_int_equal(fclose(f), 0);
        mr_buf_clear(&out);
        mr_plot_text(&p, 60, 12, false, &out);
        mr_plot_text(&p, 60, 12, true, &out);
        (void)fwrite(out.p, 1, out.n, stdout);
    }
    assert_int_equal(mr_plot_png(&p, 20, 20, &out, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "20 by 20"));
    p.left.count = 0;
    p.right.count = 0;
    mr_buf_clear(&out);
    assert_int_equal(mr_plot_png(&p, 400, 300, &out, &e), MR_OK);
    mr_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_axis_holds_all_values_and_the_mark),
        cmocka_unit_test(values_over_decades_get_an_axis_of_powers),
        cmocka_unit_test(an_axis_of_nothing_or_of_one_value_has_a_width),
        cmocka_unit_test(numbers_are_short),
        cmocka_unit_test(a_falling_curve_falls_in_ascii),
        cmocka_unit_test(gaps_and_no_points_are_drawn_as_nothing),
        cmocka_unit_test(a_picture_is_a_png_of_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
