/* Tests the comparison of two jobs, which is made from two answers of the API's method Profile. */
#include "cli/trace/compare.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OP(name, tasks, wall)                                                                      \
    "{\"op\":\"" name "\",\"tasks\":\"" tasks "\",\"wall_ns\":\"" wall                             \
    "\",\"cpu_ns\":\"5\",\"queue_ns\":\"6\",\"nbytes\":\"7\",\"median_ns\":\"8\",\"p99_ns\":\"9\"}"
#define STEP(class, op, from, to)                                                                  \
    "{\"class\":\"" class "\",\"op\":\"" op "\",\"key\":\"k\",\"from_ns\":\"" from                 \
                          "\",\"to_ns\":\"" to "\"}"

/* A job of 10 s. Its critical path: 6 s of matmul, 1 s of sum, 3 s of a transfer. */
static const char slow[] =
    "{\"wall_ns\":\"10000000000\",\"slots\":\"2\",\"slot_ns\":\"20000000000\","
    "\"classes\":{\"compute\":\"14000000000\",\"transfer\":\"6000000000\"},"
    "\"ops\":[" OP("matmul", "3", "12000000000") "," OP("sum", "1",
        "1000000000") "],"
                      "\"critical_path\":{\"classes\":{\"dependency\":\"7000000000\","
                      "\"transfer\":\"3000000000\"},\"steps\":[" STEP(
                          "dependency", "matmul", "1000000000", "7000000000") "," STEP("transfer",
                          "sum", "7000000000", "10000000000") "," STEP("dependency", "sum",
                          "10000000000", "11000000000") "]}}";
/* A job of 5 s. Its critical path: 2 s of matmul, 1 s of sum, 2 s of a transfer. */
static const char fast[] =
    "{\"wall_ns\":\"5000000000\",\"slots\":\"2\",\"slot_ns\":\"10000000000\","
    "\"classes\":{\"compute\":\"6000000000\",\"transfer\":\"4000000000\"},"
    "\"ops\":[" OP("matmul", "3", "4000000000") "," OP("sum", "1",
        "1000000000") "],"
                      "\"critical_path\":{\"classes\":{\"dependency\":\"3000000000\","
                      "\"transfer\":\"2000000000\"},\"steps\":[" STEP(
                          "dependency", "matmul", "1000000000", "3000000000") "," STEP("transfer",
                          "sum", "3000000000", "5000000000") "," STEP("dependency", "sum",
                          "5000000000", "6000000000") "]}}";
/* A job that is not over. */
static const char unfinished[] =
    "{\"wall_ns\":\"6000000000\",\"slots\":\"2\",\"slot_ns\":\"12000000000\","
    "\"classes\":{\"compute\":\"2000000000\",\"memory\":\"10000000000\"},\"ops\":[]}";

static yyjson_doc *docs[2];

static void compare(const char *before, const char *after, struct mr_compare *out)
{
    docs[0] = yyjson_read(before, strlen(before), 0);
    docs[1] = yyjson_read(after, strlen(after), 0);
    assert_non_null(docs[0]);
    assert_non_null(docs[1]);
    mr_compare_profiles(yyjson_doc_get_root(docs[0]), yyjson_doc_get_root(docs[1]), out);
}

static void fini(struct mr_compare *c)
{
    mr_compare_fini(c);
    yyjson_doc_free(docs[0]);
    yyjson_doc_free(docs[1]);
}

static const char *sentence_of(const struct mr_compare *c)
{
    static char text[512];
    struct mr_buf b;
    mr_buf_init(&b, sizeof text - 1);
    mr_compare_sum_up(c, "a", "b", &b);
    (void)snprintf(text, sizeof text, "%.*s", MR_STR_ARG(mr_buf_str(&b)));
    mr_buf_fini(&b);
    return text;
}

static void the_causes_add_up_and_the_largest_change_comes_first(void **state)
{
    (void)state;
    struct mr_compare c;
    compare(slow, fast, &c);
    int64_t before = 0, after = 0;
    for (uint32_t i = 0; i < c.causes_count; i++) {
        before += c.causes[i].before;
        after += c.causes[i].after;
    }
    assert_true(c.has_path);
    assert_int_equal(before, c.before.wall_ns);
    assert_int_equal(after, c.after.wall_ns);
    assert_int_equal(c.causes_count, 3);
    assert_string_equal(c.causes[0].class, "dependency");
    assert_string_equal(c.causes[0].op, "matmul");
    assert_int_equal(c.causes[0].after - c.causes[0].before, -4000000000);
    assert_string_equal(c.causes[1].class, "transfer");
    assert_string_equal(c.causes[2].op, "sum");
    fini(&c);
}

static void operators_and_classes_have_both_jobs_numbers(void **state)
{
    (void)state;
    struct mr_compare c;
    compare(slow, fast, &c);
    assert_int_equal(c.ops_count, 2);
    assert_string_equal(c.ops[0].op, "matmul");
    assert_int_equal(c.ops[0].before[MR_COMPARE_WALL], 12000000000);
    assert_int_equal(c.ops[0].after[MR_COMPARE_WALL], 4000000000);
    assert_int_equal(c.ops[0].after[MR_COMPARE_TASKS], 3);
    assert_int_equal(c.ops[0].after[MR_COMPARE_P99], 9);
    assert_int_equal(c.classes_count, 2);
    assert_string_equal(c.classes[0].class, "compute");
    assert_int_equal(c.classes[0].before, 14000000000);
    fini(&c);
}

static void a_sentence_names_the_causes_of_most_of_the_change(void **state)
{
    (void)state;
    struct mr_compare c;
    compare(slow, fast, &c);
    assert_string_equal(sentence_of(&c), "job b took 5.000 s (50.0 %) less than job a: dependency "
                                         "(matmul) -4.000 s, transfer -1.000 s");
    fini(&c);
    compare(fast, slow, &c);
    assert_string_equal(sentence_of(&c), "job b took 5.000 s (100.0 %) more than job a: dependency "
                                         "(matmul) +4.000 s, transfer +1.000 s");
    fini(&c);
    compare(fast, fast, &c);
    assert_string_equal(sentence_of(&c), "job b took as long as job a, within 1 %");
    fini(&c);
}

static void without_a_critical_path_the_time_of_a_slot_explains(void **state)
{
    (void)state;
    struct mr_compare c;
    compare(fast, unfinished, &c);
    assert_false(c.has_path);
    assert_string_equal(c.causes[0].class, "memory");
    assert_int_equal(c.causes[0].after, 5000000000);
    assert_string_equal(sentence_of(&c), "job b took 1.000 s (20.0 %) more than job a: memory "
                                         "+5.000 s");
    assert_int_equal(c.ops[0].after[MR_COMPARE_TASKS], 0);
    fini(&c);
}

static void a_path_that_is_cut_keeps_its_time_in_the_class(void **state)
{
    (void)state;
    static const char cut[] =
        "{\"wall_ns\":\"5000000000\",\"slots\":\"1\",\"slot_ns\":\"5000000000\",\"classes\":{},"
        "\"ops\":[],\"critical_path\":{\"is_cut\":true,\"classes\":{\"dependency\":\"5000000000\"},"
        "\"steps\":[" STEP("dependency", "sum", "4000000000", "5000000000") "]}}";
    struct mr_compare c;
    compare(cut, cut, &c);
    assert_int_equal(c.causes_count, 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(c.causes[i].before, c.causes[i].op[0] ? 1000000000 : 4000000000);
    fini(&c);
}

static void the_document_has_what_the_tables_have(void **state)
{
    (void)state;
    struct mr_compare c;
    compare(slow, fast, &c);
    yyjson_mut_doc *made = mr_compare_document(&c, "a", "b");
    char *text = yyjson_mut_write(made, 0, NULL);
    assert_non_null(strstr(text, "{\"before\":{\"job\":\"a\",\"wall_ns\":\"10000000000\""));
    assert_non_null(strstr(text, "{\"class\":\"dependency\",\"op\":\"matmul\",\"before_ns\":"
                                 "\"6000000000\",\"after_ns\":\"2000000000\",\"change_ns\":"
                                 "\"-4000000000\"}"));
    assert_non_null(strstr(text, "\"wall_ns\":{\"before\":\"12000000000\",\"after\":\"4000000000\","
                                 "\"change\":\"-8000000000\"}"));
    free(text);
    yyjson_mut_doc_free(made);
    fini(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_causes_add_up_and_the_largest_change_comes_first),
        cmocka_unit_test(operators_and_classes_have_both_jobs_numbers),
        cmocka_unit_test(a_sentence_names_the_causes_of_most_of_the_change),
        cmocka_unit_test(without_a_critical_path_the_time_of_a_slot_explains),
        cmocka_unit_test(a_path_that_is_cut_keeps_its_time_in_the_class),
        cmocka_unit_test(the_document_has_what_the_tables_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
