/* Tests tables, which fit the terminal. Keys that are too long are cut in their middle; numbers,
 * and all text that goes to a file, are not cut. Widths are counted in columns of a terminal. */
#include "cli/term/table.h"
#include "cli/term/text.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct mr_column columns[] = {{"KEY", MR_COLUMN_KEY, false},
    {"BYTES", MR_COLUMN_NUMBER, false}, {"STATE", MR_COLUMN_WORD, false},
    {"WHERE", MR_COLUMN_WORD, true}};

#define KEY "a-namespace/of-a-team/fold-07/the-fit-of-the-model"

static const char *write_table(unsigned width, const char *key)
{
    static char text[4096];
    struct mr_buf out;
    struct mr_table *t = mr_table_new(columns, 4);
    mr_buf_init(&out, sizeof text);
    mr_table_add(t, "%s", key);
    mr_table_add(t, "%d", 123456789);
    mr_table_add(t, "done");
    mr_table_add(t, "node-0");
    mr_table_write(t, width, &out);
    (void)snprintf(text, sizeof text, "%.*s", MR_STR_ARG(mr_buf_str(&out)));
    mr_buf_fini(&out);
    mr_table_free(&t);
    return text;
}

static unsigned widest(const char *text)
{
    unsigned most = 0;
    while (*text) {
        size_t n = strcspn(text, "\n");
        unsigned width = mr_text_width(mr_str_of(text, n));
        if (width > most) most = width;
        text += n + (text[n] == '\n');
    }
    return most;
}

static void nothing_is_cut_where_there_is_no_terminal(void **state)
{
    (void)state;
    const char *text = write_table(0, KEY);
    assert_non_null(strstr(text, KEY "  123456789  done   node-0\n"));
    assert_null(strstr(text, "…"));
}

static void keys_lose_their_middle_and_numbers_nothing(void **state)
{
    (void)state;
    for (unsigned width = 40; width < 90; width++) {
        const char *text = write_table(width, KEY);
        assert_true(widest(text) <= width);
        assert_non_null(strstr(text, "123456789"));
        assert_non_null(strstr(text, "done"));
        assert_non_null(strstr(text, "a-na"));
        assert_non_null(strstr(text, "model"));
        assert_true((strstr(text, "…") != NULL) == (strstr(text, KEY) == NULL));
    }
}

static void a_column_that_may_miss_goes_before_keys_are_stumps(void **state)
{
    (void)state;
    assert_non_null(strstr(write_table(42, KEY), "node-0"));
    assert_null(strstr(write_table(36, KEY), "node-0"));
    assert_true(widest(write_table(36, KEY)) <= 36);
}

static void a_character_has_the_width_that_a_terminal_gives_it(void **state)
{
    (void)state;
    assert_int_equal(mr_text_width(mr_str("ünïcode")), 7);
    assert_int_equal(mr_text_width(mr_str("漢字")), 4);
    assert_int_equal(mr_text_width(mr_str("e\xcc\x81")), 1); /* e with a combining accent */
    assert_int_equal(mr_text_width(mr_str("\x1b[2J")), 4);   /* the terminal gets "?[2J" */
    assert_int_equal(mr_text_width(mr_str("\xff\xc3")), 2);
    for (unsigned width = 30; width < 60; width++)
        assert_true(
            widest(write_table(width, "漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字漢字")) <= width);
    assert_non_null(strstr(write_table(0, "a\x1b[31mb"), "a?[31mb"));
}

static void what_comes_later_is_lined_up_and_has_no_second_heading(void **state)
{
    (void)state;
    struct mr_buf out;
    struct mr_table *t = mr_table_new(columns, 2);
    mr_buf_init(&out, 4096);
    mr_table_add(t, "a");
    mr_table_add(t, "1000000");
    mr_table_write(t, 0, &out);
    mr_table_add(t, "b");
    mr_table_add(t, "1");
    mr_table_write(t, 0, &out);
    mr_buf_add_byte(&out, 0);
    assert_string_equal((char *)out.p, "KEY    BYTES\na    1000000\nb          1\n");
    mr_buf_fini(&out);
    mr_table_free(&t);
}

static void sentences_are_wrapped_beneath_themselves(void **state)
{
    (void)state;
    static const struct mr_column two[] = {
        {NULL, MR_COLUMN_WORD, false}, {NULL, MR_COLUMN_SENTENCE, false}};
    struct mr_buf out;
    struct mr_table *t = mr_table_new(two, 2);
    mr_buf_init(&out, 4096);
    mr_table_add(t, "op");
    mr_table_add(t, "one two three four five six seven eight nine ten");
    mr_table_write(t, 30, &out);
    mr_buf_add_byte(&out, 0);
    assert_string_equal(
        (char *)out.p, "op  one two three four five\n    six seven eight nine ten\n");
    mr_buf_fini(&out);
    mr_table_free(&t);
}

static void a_line_loses_its_end_and_a_key_its_middle(void **state)
{
    (void)state;
    struct mr_buf out;
    mr_buf_init(&out, 4096);
    mr_text_add_truncated(mr_str("0123456789"), 6, &out);
    mr_text_add_elided(mr_str("0123456789"), 6, &out);
    mr_text_add_elided(mr_str("0123456789"), 10, &out);
    mr_text_add_elided(mr_str("漢字漢字"), 4, &out); /* a wide character is not cut in half */
    mr_buf_add_byte(&out, 0);
    assert_string_equal((char *)out.p, "01234…012…890123456789漢…");
    mr_buf_fini(&out);
}

/* Width of the table with the shortest key that does not drop the column WHERE: a key of 12
 * columns, numbers of 9, and words of 5 and 6. */
#define STUMP_WIDTH (12 + 2 + 9 + 2 + 5 + 2 + 6)

static void a_key_gets_the_room_of_a_column_that_was_left_out(void **state)
{
    (void)state;
    const char *text = write_table(STUMP_WIDTH - 1, KEY);
    assert_null(strstr(text, "WHERE"));
    assert_int_equal(widest(text), STUMP_WIDTH - 1);
}

int main(void)
{
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_cut_where_there_is_no_terminal),
        cmocka_unit_test(a_key_gets_the_room_of_a_column_that_was_left_out),
        cmocka_unit_test(keys_lose_their_middle_and_numbers_nothing),
        cmocka_unit_test(a_column_that_may_miss_goes_before_keys_are_stumps),
        cmocka_unit_test(a_character_has_the_width_that_a_terminal_gives_it),
        cmocka_unit_test(what_comes_later_is_lined_up_and_has_no_second_heading),
        cmocka_unit_test(sentences_are_wrapped_beneath_themselves),
        cmocka_unit_test(a_line_loses_its_end_and_a_key_its_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
