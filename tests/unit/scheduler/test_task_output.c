/* The text that tasks print is kept within bounds, and text that is dropped is counted. */
#include "services/scheduler/history/task_output.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define ANY UINT32_MAX

static struct mr_tasklog l;
static const mr_job_id one = {1}, two = {2};

static int setup(void **state)
{
    (void)state;
    const struct mr_tasklog_bounds bounds = {.task_bytes = 100, .job_bytes = 4000, .bytes = 6000};
    mr_tasklog_init(&l, &bounds);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mr_tasklog_fini(&l);
    return 0;
}

static void add(mr_job_id job, uint32_t index, const char *text)
{
    mr_tasklog_add(&l, job, index, 1, MR_STR("w"), mr_str(text), 0);
}

static const char *tail(mr_job_id job, uint32_t index, uint64_t *lost)
{
    static char text[256];
    struct mr_tasklog_tail t;
    if (!mr_tasklog_tail(&l, job, index, &t)) return NULL;
    assert_true(t.bytes < sizeof text);
    mr_tasklog_copy(&l, job, index, &t, text);
    text[t.bytes] = 0;
    if (lost) *lost = t.lost;
    return text;
}

static void the_end_of_a_task_is_kept(void **state)
{
    (void)state;
    char line[64];
    uint64_t lost = 0;
    for (int i = 0; i < 50; i++) {
        (void)snprintf(line, sizeof line, "line %02d\n", i);
        add(one, 3, line);
    }
    add(one, 4, "other\n");
    const char *text = tail(one, 3, &lost);
    assert_int_equal(strlen(text), 100);
    assert_int_equal(lost, 300);
    assert_string_equal(text + 92, "line 49\n");
    assert_int_equal(mr_tasklog_dropped(&l, one), 300);
    assert_string_equal(tail(one, 4, &lost), "other\n");
    assert_int_equal(lost, 0);
    assert_null(tail(one, 5, NULL));
    assert_null(tail(two, 3, NULL));
}

static void a_reader_goes_on_where_it_was_and_hears_what_it_missed(void **state)
{
    (void)state;
    struct mr_tasklog_piece p;
    uint64_t next = 0;
    add(one, 3, "a\n");
    add(one, 4, "b\n");
    add(one, 3, "c\n");
    char got[64] = "";
    while (mr_tasklog_next(&l, one, ANY, next, &p)) {
        (void)snprintf(got + strlen(got), 32, "%u%.*s", p.index, MR_STR_ARG(p.text));
        assert_int_equal(p.lost, 0);
        next = p.at + p.text.n;
    }
    assert_string_equal(got, "3a\n4b\n3c\n");
    assert_int_equal(next, mr_tasklog_position(&l, one));
    assert_true(mr_tasklog_next(&l, one, 4, 0, &p));
    assert_int_equal(p.index, 4);
    assert_false(mr_tasklog_next(&l, one, 4, p.at + p.text.n, &p));
    char much[81] = {0};
    memset(much, 'x', 80);
    /* After the first of these pieces "a" and "c" are still kept; the second piece makes the log
     * drop them. */
    add(one, 3, much);
    add(one, 3, much);
    assert_true(mr_tasklog_next(&l, one, 3, next, &p));
    /* The reader has seen "a" and "c". Of the first long piece it has lost 60 of 80 bytes. */
    assert_int_equal(p.lost, 60);
    assert_int_equal(p.text.n, 20);
    assert_true(mr_tasklog_next(&l, one, 3, 0, &p));
    assert_int_equal(p.lost + p.text.n, 4 + 80);
}

static void what_a_worker_did_not_keep_is_told_once(void **state)
{
    (void)state;
    struct mr_tasklog_piece p;
    uint64_t lost = 0;
    add(one, 3, "a\n");
    mr_tasklog_add(&l, one, 3, 1, MR_STR("w"), MR_STR("b\n"), 1000);
    assert_true(mr_tasklog_next(&l, one, 3, 2, &p));
    assert_int_equal(p.lost, 1000);
    (void)tail(one, 3, &lost);
    assert_int_equal(lost, 1000);
}

static void another_attempt_begins_anew(void **state)
{
    (void)state;
    struct mr_tasklog_tail t;
    add(one, 3, "first\n");
    mr_tasklog_add(&l, one, 3, 2, MR_STR("v"), MR_STR("second\n"), 0);
    assert_string_equal(tail(one, 3, NULL), "second\n");
    assert_true(mr_tasklog_tail(&l, one, 3, &t));
    assert_int_equal(t.attempt, 2);
    assert_memory_equal(t.worker.p, "v", 1);
    assert_true(mr_tasklog_has(&l, one, 3, 2));
    assert_false(mr_tasklog_has(&l, one, 3, 1));
}

static void a_cut_does_not_split_a_character(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++)
        add(one, 3, "\xe2\x82\xac\xe2\x82\xac\n"); /* a line of two euro signs, 7 bytes */
    const char *text = tail(one, 3, NULL);
    assert_true((text[0] & 0xc0) != 0x80);
    assert_true(strlen(text) <= 100 && strlen(text) > 90);
}

static void the_oldest_make_room_in_a_job_and_in_all(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 1000; i++)
        add(one, i, "some words of a task\n");
    assert_true(l.bytes <= 4000);
    assert_null(tail(one, 0, NULL));
    assert_string_equal(tail(one, 999, NULL), "some words of a task\n");
    for (uint32_t i = 0; i < 1000; i++)
        add(two, i, "some words of a task\n");
    assert_true(l.bytes <= 6000);
    assert_non_null(tail(two, 999, NULL));
    assert_true(mr_tasklog_dropped(&l, one) > 900 * 21);
    mr_tasklog_forget(&l, one);
    assert_null(tail(one, 999, NULL));
    assert_int_equal(mr_tasklog_position(&l, one), 0);
    assert_non_null(tail(two, 999, NULL));
    mr_tasklog_forget(&l, two);
    assert_int_equal(l.bytes, 0);
}

/* Reading must not take time that grows with the square of the number of pieces, because the
 * scheduler's core thread reads. */
static void reading_all_of_a_job_looks_at_each_piece_once(void **state)
{
    (void)state;
    static const struct mr_tasklog_bounds much = {
        .task_bytes = 1 << 20, .job_bytes = (size_t)128 << 20, .bytes = (size_t)128 << 20};
    struct mr_tasklog_piece p;
    uint32_t pieces = 0, of_one = 0;
    mr_tasklog_fini(&l);
    mr_tasklog_init(&l, &much);
    /* Ends the test if the cost is quadratic, which would take hours. */
    (void)alarm(120);
    for (uint32_t i = 0; i < 500000; i++)
        add(one, i % 4, "x\n");
    for (uint64_t next = 0; mr_tasklog_next(&l, one, ANY, next, &p); next = p.at + p.text.n)
        pieces++;
    for (uint64_t next = 0; mr_tasklog_next(&l, one, 1, next, &p); next = p.at + p.text.n)
        of_one++;
    (void)alarm(0);
    assert_int_equal(pieces, 500000);
    assert_int_equal(of_one, 125000);
}

static void what_is_no_text_is_cut_anywhere(void **state)
{
    (void)state;
    struct mr_tasklog_piece p;
    char bytes[151] = {0};
    memset(bytes, 0x80, 150);
    add(one, 3, bytes);
    assert_true(mr_tasklog_next(&l, one, 3, 0, &p));
    assert_int_equal(p.text.n, 100);
    assert_int_equal(p.lost, 50);
    assert_int_equal(strlen(tail(one, 3, NULL)), 100);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_end_of_a_task_is_kept),
        T(a_reader_goes_on_where_it_was_and_hears_what_it_missed),
        T(what_a_worker_did_not_keep_is_told_once),
        T(another_attempt_begins_anew),
        T(a_cut_does_not_split_a_character),
        T(the_oldest_make_room_in_a_job_and_in_all),
        T(reading_all_of_a_job_looks_at_each_piece_once),
        T(what_is_no_text_is_cut_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
