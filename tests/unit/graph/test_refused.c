/* Jobs in JSON that are refused: the error names what is wrong, and limits are checked before
 * memory is used. The same priorities are allowed in every form in which a graph arrives. */
#include "tests/unit/graph/fixture.h"

#include "base/limits.h"
#include "graph/json/internal.h"
#include "graph/options.h"
#include "graph/options_pack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <time.h>

static const struct {
    const char *json;
    const char *says;
} refused[] = {
    {"", "malformed JSON: line 1, column 1"},
    {"{\"dsk\": {\"x\": 1,\n  \"é\": ?}}", "malformed JSON: line 2, column 8"},
    {"{\"dsk\": {\"x\": 1}} x", "malformed JSON: line 1, column 19"},
    {"{\"dsk\": {\"x\": NaN}}", "NaN and Infinity are not JSON"},
    {"{\"dsk\": {\"x\": -Infinity}}", "NaN and Infinity are not JSON"},
    {"{\"dsk\": {\"x\": \"\xff\"}}", "malformed JSON: line 1, column 16"},
    {"{\"dsk\": {\"x\": 1e999}}", "key \"x\": the number 1e999 does not fit"},
    {"{\"dsk\": {\"x\": 18446744073709551616}}", "key \"x\": the number 18446744073709551616"},
    {"{\"dsk\": {\"x\": -9223372036854775809}}", "key \"x\": the number -9223372036854775809"},
    {"[]", "a job is an object with \"tasks\" or \"dsk\", not a list"},
    {"{}", "neither \"tasks\" nor \"dsk\""},
    {"{\"dsk\": {}, \"tasks\": {}}", "both \"tasks\" and \"dsk\""},
    {"{\"dsk\": {}}", "the graph is empty"},
    {"{\"dsk\": []}", "field \"dsk\" is a list, but must be an object of keys"},
    {"{\"taks\": {}}", "unknown field \"taks\" (did you mean \"tasks\"?)"},
    {"{\"dsk\": {\"x\": 1}, \"dsk\": {}}", "field \"dsk\" appears twice"},
    {"{\"dsk\": {\"x\": 1, \"x\": 2}}", "key \"x\" is defined twice"},
    {"{\"dsk\": {\"x\": {\"a\": 1, \"b\": 2, \"a\": 3}}}",
        "key \"x\": \"a\" appears twice in one object"},
    {"{\"dsk\": {\"\": 1}}", "a key is empty"},
    {"{\"dsk\": {\"a\\u0000b\": 1}}", "key \"a\\x00b\" is not UTF-8 without control characters"},
    {"{\"dsk\": {\"a\\nb\": 1}}", "is not UTF-8 without control characters"},
    {"{\"dsk\": {\"x\": 1}, \"targets\": [\"y\"]}", "target \"y\" is no key of this graph"},
    {"{\"dsk\": {\"x\": 1}, \"targets\": \"x\"}", "field \"targets\" is a text"},
    {"{\"dsk\": {\"x\": 1}, \"targets\": [1]}", "field \"targets\" is an integer"},
    {"{\"dsk\": {\"x\": 1}, \"targets\": []}", "field \"targets\" names no key"},
    {"{\"tasks\": {\"x\": 1}}", "key \"x\": is an integer, but must be an object with \"op\""},
    {"{\"tasks\": {\"x\": {}}}", "key \"x\": has none of \"op\", \"value\""},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"value\": 1}}}", "has both \"op\" and \"value\""},
    {"{\"tasks\": {\"x\": {\"value\": 1, \"retries\": 1}}}", "has \"retries\", which belongs"},
    {"{\"tasks\": {\"x\": {\"value\": 1, \"value\": 1}}}", "\"value\" appears twice"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"retrys\": 1}}}",
        "key \"x\": unknown field or option \"retrys\" (did you mean \"retries\"?)"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": 1}}}", "\"args\" is an integer"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"kwargs\": []}}}",
        "\"kwargs\" is a list"},
    {"{\"tasks\": {\"x\": {\"op\": 3}}}", "\"op\" is an integer, but must be a text"},
    {"{\"tasks\": {\"x\": {\"op\": \"incc\", \"args\": [1]}}}",
        "key \"x\": unknown op \"incc\" (did you mean \"inc\"?)"},
    {"{\"dsk\": {\"x\": [\"icn\", 1]}}", "key \"x\": unknown op \"icn\" (did you mean \"inc\"?)"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\"}}}", "key \"x\": op \"inc\" takes 1 argument, got 0"},
    {"{\"dsk\": {\"x\": [\"inc\", 1, 2]}}", "key \"x\": op \"inc\" takes 1 argument, got 2"},
    {"{\"dsk\": {\"x\": [\"add\", 1]}}", "key \"x\": op \"add\" takes 2 arguments, got 1"},
    {"{\"dsk\": {\"x\": [\"round\"]}}", "op \"round\" takes 1 to 2 arguments, got 0"},
    {"{\"dsk\": {\"x\": [\"add\", 1, [\"inc\"]]}}", "key \"x#0\": op \"inc\" takes 1 argument"},
    {"{\"tasks\": {\"x\": {\"op\": \"round\", \"args\": [1], \"kwargs\": {\"digit\": 1}}}}",
        "key \"x\": op \"round\" has no parameter \"digit\" (did you mean \"digits\"?)"},
    {"{\"tasks\": {\"x\": {\"op\": \"round\", \"args\": [1], \"kwargs\": {\"x\": 1}}}}",
        "parameter \"x\" is given by position and by name"},
    {"{\"tasks\": {\"x\": {\"op\": \"round\", \"kwargs\": {\"digits\": 1}}}}",
        "op \"round\" takes 1 to 2 arguments, got 1"},
    {"{\"tasks\": {\"x\": {\"op\": \"any\", \"kwargs\": {\"a\": 1, \"a\": 1}}}}",
        "key \"x\": \"a\" appears twice"},
    {"{\"tasks\": {\"y\": {\"op\": \"inc\", \"args\": [{\"ref\": \"xx\"}]}, \"xy\": {\"value\": "
     "1}}}",
        "key \"y\" refers to \"xx\", which is no key of this graph (did you mean \"xy\"?)"},
    {"{\"tasks\": {\"y\": {\"op\": \"inc\", \"args\": [{\"ref\": 1}]}}}",
        "key \"y\": \"ref\" is an integer, but must be a text"},
    {"{\"tasks\": {\"y\": {\"op\": \"inc\", \"args\": [{\"object\": \"zz\"}]}}}",
        "key \"y\": \"zz\" is no object id"},
    {"{\"tasks\": {\"y\": {\"op\": \"inc\", \"args\": [{\"op\": \"inc\", \"retries\": 1}]}}}",
        "key \"y\": unknown field of a nested task \"retries\""},
    {"{\"dsk\": {\"a\": [\"inc\", \"b\"], \"b\": [\"inc\", \"a\"]}}",
        "the graph has a cycle: a -> b -> a"},
    {"{\"dsk\": {\"a\": [\"inc\", \"a\"], \"b\": 1}, \"targets\": [\"b\"]}",
        "the graph has a cycle: a -> a"},
    {"{\"dsk\": {\"q\": [\"inc\", \"b\"], \"c\": [\"inc\", \"a\"], \"b\": [\"inc\", \"c\"], "
     "\"a\": [\"inc\", \"b\"]}}",
        "the graph has a cycle: c -> a -> b -> c"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"retries\": -1}}}",
        "key \"x\": option \"retries\" must be 0 to 1000"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"retries\": 1.0}}}",
        "option \"retries\" is a number with a fraction, but must be an integer"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"timeout_s\": 0}}}",
        "option \"timeout_s\" is 0, but must be above 0"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"pure\": 1}}}",
        "option \"pure\" is an integer, but must be true or false"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"workers\": [1]}}}",
        "option \"workers\" is an integer, but must be a worker's name"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"resources\": {\"gpu\": -1}}}}",
        "resources: \"gpu\" is -1"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"resources\": {\"a\": 1, \"a\": 1}}}}",
        "resources: \"a\" is given twice"},
    {"{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"persist\": \"\"}}}",
        "option \"persist\" is an empty name"},
    {"{\"dsk\": {\"x\": 1}, \"on_error\": \"halt\"}", "must be \"stop\" or \"continue\""},
    {"{\"dsk\": {\"x\": 1}, \"fuse\": 0}", "field \"fuse\" is an integer"},
    {"{\"dsk\": {\"x\": 1}, \"priority\": 1e3}", "field \"priority\" is a number with a fraction"},
    {"{\"dsk\": {\"x\": 1}, \"deadline_s\": -1}", "field \"deadline_s\" is -1"},
    {"{\"dsk\": {\"x\": 1}, \"name\": 1}", "field \"name\" is an integer"},
    {"{\"dsk\": {\"x\": 1}, \"labels\": {\"a\": 1}}", "field \"labels\" is an integer"},
    {"{\"dsk\": {\"x\": 1}, \"labels\": {\"a\": \"1\", \"a\": \"2\"}}", "\"a\" is given twice"},
    {"{\"params\": {}, \"dsk\": {\"x\": \"${n}\"}}", "key \"x\": ${n} is neither in \"params\""},
    {"{\"params\": {\"copies\": 1}, \"dsk\": {\"x\": \"${copie}-\"}}",
        "(did you mean \"copies\"?)"},
    {"{\"params\": {\"n\": 1}, \"dsk\": {\"x\": \"a${n\"}}", "a ${ is not closed by }"},
    {"{\"params\": {\"n\": [1]}, \"dsk\": {\"x\": \"a${n}\"}}", "${n} is a list and cannot stand"},
    {"{\"params\": {\"n\": 1, \"n\": 2}, \"dsk\": {\"x\": 1}}", "\"n\" is already a parameter"},
    {"{\"params\": {\"a b\": 1}, \"dsk\": {\"x\": 1}}", "cannot name a parameter"},
    {"{\"tasks\": {\"x\": {\"value\": 1, \"for\": {\"i\": 2}}}}",
        "key \"x\" is defined twice: it does not use its \"for\" variable"},
    {"{\"tasks\": {\"x${i}\": {\"value\": 1, \"for\": {\"i\": -2}}}}",
        "key \"x${i}\": \"for\": \"i\" is an integer, but must be a count"},
    {"{\"tasks\": {\"x${i}\": {\"value\": 1, \"for\": {\"i\": 99999999}}}}", "the limit is"},
    {"{\"tasks\": {\"x${i}\": {\"value\": 1, \"for\": {}}}}", "\"for\" must be an object of 1"},
    {"{\"tasks\": {\"x${i}\": {\"for\": {\"i\": 1}, \"value\": {\"value\": \"${j}\"}}}}",
        "key \"x0\": ${j} is neither"},
    {"{\"tasks\": {\"t\": {\"op\": \"sum\", \"args\": [{\"each\": {\"each\": [1], \"for\": {\"a\": "
     "1000}}, \"for\": {\"b\": 1000}}]}}}",
        "key \"t\": \"each\" writes more than 1048576 bytes"},
};

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    for (size_t i = 0; i < MR_ARRAY_LEN(refused); i++) {
        struct mr_graph *g = NULL;
        struct mr_error e = {0};
        int err = mr_graph_from_json(mr_str(refused[i].json), &fixture_catalogue, &g, &e);
        if (!err) fail_msg("accepted: %s", refused[i].json);
        if (!strstr(e.text, refused[i].says))
            fail_msg("%s\n  says  %s\n  not   %s", refused[i].json, e.text, refused[i].says);
        assert_int_equal(err, e.code);
        assert_null(g);
        for (int many = 0; many < 2; many++) {
            const struct mr_json_limits slices = {
                MR_TASKS_MAX, MR_JOB_BODY_BYTES_MAX, 4, many ? &fixture_parallel : NULL};
            struct mr_error again = {0};
            assert_int_equal(mr_graph_from_json_within(
                                 mr_str(refused[i].json), &fixture_catalogue, &slices, &g, &again),
                err);
            assert_string_equal(e.text, again.text);
        }
    }
}

/* Priorities go from -100 to 100, in every form in which a graph arrives. */
static void priorities_have_one_range(void **state)
{
    (void)state;
    for (int32_t p = -102; p <= 102; p++) {
        bool is_good = p >= -100 && p <= 100;
        struct mr_error e = {0};
        const struct mr_job_options job = {.priority = p};
        const struct mr_task_options task = {.given = MR_OPTION_PRIORITY, .priority = p};
        assert_int_equal(mr_job_options_check(&job, &e), is_good ? MR_OK : MR_EINVAL);
        assert_int_equal(mr_task_options_check(&task, &e), is_good ? MR_OK : MR_EINVAL);
        if (!is_good) assert_non_null(strstr(e.text, "-100 to 100"));
        for (int is_of_task = 0; is_of_task < 2; is_of_task++) {
            char json[128];
            (void)snprintf(json, sizeof json,
                is_of_task
                    ? "{\"tasks\": {\"x\": {\"op\": \"inc\", \"args\": [1], \"priority\": %d}}}"
                    : "{\"dsk\": {\"x\": 1}, \"priority\": %d}",
                p);
            struct mr_graph *g = NULL;
            int err = mr_graph_from_json(mr_str(json), &fixture_catalogue, &g, &e);
            assert_int_equal(err, is_good ? MR_OK : MR_EINVAL);
            if (!is_good) assert_non_null(strstr(e.text, "priority"));
            if (!is_good) assert_non_null(strstr(e.text, "-100 to 100"));
            mr_graph_free(&g);
        }
    }
}

/* A journal may have priorities of an earlier, wider range. They are read as the nearest allowed
 * priority. */
static void a_journal_from_before_the_range_is_read(void **state)
{
    (void)state;
    struct mr_text_arena p = {0};
    struct mr_buf b;
    mr_buf_init(&b, 1000);
    const struct mr_task_options task = {.given = MR_OPTION_PRIORITY, .priority = 1000000};
    struct mr_task_options read;
    mr_task_options_pack(&b, &task);
    assert_int_equal(mr_task_options_unpack(mr_buf_str(&b), &p, &read, NULL), 0);
    assert_int_equal(read.priority, 100);
    mr_buf_fini(&b);
    mr_text_arena_fini(&p);
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    for (int tasks = 0; tasks < 2; tasks++) {
        struct mr_buf b;
        mr_buf_init(&b, 1 << 20);
        mr_buf_add_text(&b, "{\"dsk\": {\"x\": ");
        for (int i = 0; i < 70; i++)
            mr_buf_add_text(&b, tasks ? "[\"inc\", " : "[");
        mr_buf_add_text(&b, "1");
        for (int i = 0; i < 70; i++)
            mr_buf_add_text(&b, "]");
        mr_buf_add_text(&b, "}}");
        struct mr_graph *g = NULL;
        struct mr_error e = {0};
        assert_int_not_equal(mr_graph_from_json(mr_buf_str(&b), &fixture_catalogue, &g, &e), 0);
        assert_non_null(strstr(e.text, "key \"x"));
        assert_non_null(strstr(e.text, "nested deeper than 64"));
        mr_buf_fini(&b);
    }
}

static void a_long_key_is_refused_with_its_length(void **state)
{
    (void)state;
    struct mr_buf b;
    mr_buf_init(&b, 1 << 20);
    mr_buf_add_text(&b, "{\"dsk\": {\"");
    for (int i = 0; i < MR_KEY_BYTES_MAX + 1; i++)
        mr_buf_add_byte(&b, 'k');
    mr_buf_add_text(&b, "\": 1}}");
    struct mr_graph *g = NULL;
    struct mr_error e = {0};
    assert_int_equal(mr_graph_from_json(mr_buf_str(&b), &fixture_catalogue, &g, &e), MR_EINVAL);
    assert_non_null(strstr(e.text, "has 1025 bytes, the limit is 1024"));
    mr_buf_fini(&b);
}

static void a_few_lines_cannot_ask_for_too_much(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        const char *says;
    } rows[] = {
        {"{\"tasks\": {\"k-${i}\": {\"value\": 1, \"for\": {\"i\": 1001}}}}",
            "more than 1000 tasks and values in one job"},
        {"{\"tasks\": {\"a\": {\"op\": \"sum\", \"args\": {\"each\": {\"op\": \"inc\", \"args\": "
         "[1]}, \"for\": {\"i\": 1001}}}}}",
            "more than 1000 tasks and values in one job"},
        {"{\"params\": {\"x\": \"0123456789012345678901234567890123456789\"}, \"tasks\": "
         "{\"k-${i}\": {\"value\": \"${i}${x}${x}${x}\", \"for\": {\"i\": 900}}}}",
            "all arguments together exceed 65536 bytes"},
        {"{\"params\": {\"x\": \"0123456789012345678901234567890123456789\"}, \"tasks\": "
         "{\"k-${i}${x}${x}${x}\": {\"value\": 1, \"for\": {\"i\": 900}}}}",
            "all keys together exceed 65536 bytes"},
        {"{\"params\": {\"x\": \"0123456789012345678901234567890123456789\"}, \"tasks\": "
         "{\"k-${i}\": {\"op\": \"inc\", \"args\": [1], \"workers\": "
         "{\"each\": 1}, \"for\": {\"i\": 2}}}}",
            "key \"k-0\": option \"workers\" is an object"},
        {"{\"tasks\": {\"k-${i}\": {\"op\": \"sum\", \"args\": [{\"each\": \"${j}\", \"for\": {\"j\": "
         "1000}}], \"for\": {\"i\": 900}}}}",
            "the arguments and options of all tasks exceed 131072 bytes"},
        {"{\"tasks\": {\"t\": {\"op\": \"sum\", \"args\": [{\"each\": {\"each\": {\"each\": [1], "
         "\"for\": {\"a\": 1000}}, \"for\": {\"b\": 1000}}, \"for\": {\"c\": 1000}}]}}}",
            "ask for arguments of 2001001002 bytes so far"},
    };
    const struct mr_json_limits limits = {1000, 65536, 1 << 20, NULL};
    for (size_t i = 0; i < MR_ARRAY_LEN(rows); i++) {
        struct mr_graph *g = NULL;
        struct mr_error e = {0};
        int err =
            mr_graph_from_json_within(mr_str(rows[i].json), &fixture_catalogue, &limits, &g, &e);
        assert_int_not_equal(err, 0);
        if (!strstr(e.text, rows[i].says)) fail_msg("%s\n  says %s", rows[i].json, e.text);
    }
}

static void a_short_job_cannot_ask_for_a_gigabyte(void **state)
{
    (void)state;
    enum { PARAM = 100000 };
    struct mr_buf json;
    mr_buf_init(&json, 1 << 20);
    mr_buf_add_str(&json, MR_STR("{\"params\": {\"x\": \""));
    for (size_t i = 0; i < PARAM; i++)
        mr_buf_add(&json, "x", 1);
    mr_buf_add_str(&json, MR_STR("\"}, \"tasks\": {\"k-${i}\": {\"value\": \"${x}${i}\", \"for\": "
                                 "{\"i\": 5000}}}}"));
    struct mr_graph *g = NULL;
    struct mr_error e = {0};
    assert_int_equal(mr_graph_from_json(mr_buf_str(&json), &fixture_catalogue, &g, &e), MR_ELIMIT);
    if (!strstr(e.text, "all arguments together exceed")) fail_msg("it says %s", e.text);
    mr_buf_fini(&json);
}

/* Small bodies that ask for huge loops. The reader counts nodes and bytes of arguments before it
 * makes them, so the refusal takes less than two seconds of processor time. */
static const char *const long_loops[][2] = {
    {"{\"params\": {\"x\": \"%s\"}, \"tasks\": {\"k-${i}\": {\"value\": \"${x}\", \"for\": "
     "{\"i\": 16000000}}}}",
        "key \"k-${i}\": \"for\", \"each\" and \"params\" ask for arguments of 16000"},
    {"{\"params\": {\"x\": \"%s\"}, \"tasks\": {\"a-${i}\": {\"value\": 1, \"for\": {\"i\": "
     "8000000}}, \"k-${i}\": {\"op\": \"any\", \"args\": [1, {\"each\": \"a${x}\", \"for\": "
     "{\"j\": 8}}], \"for\": {\"i\": 8000000}}}}",
        "key \"k-${i}\": \"for\", \"each\" and \"params\" ask for arguments of"},
    {"{\"params\": {\"x\": \"%s\"}, \"dsk\": {\"k-${i}\": {\"op\": \"any\", \"kwargs\": {\"a\": "
     "[\"any\", \"${x}\"]}, \"for\": {\"i\": 16000000}}}}",
        "key \"k-${i}\": \"for\", \"each\" and \"params\" ask for arguments of"},
    {"{\"params\": {\"x\": [\"%s\", \"\"]}, \"tasks\": {\"k-${i}\": {\"value\": \"${s}\", "
     "\"for\": {\"i\": 8000000, \"s\": \"${x}\"}}}}",
        "key \"k-${i}\": \"for\", \"each\" and \"params\" ask for arguments of"},
    {"{\"params\": {\"x\": \"%s\"}, \"tasks\": {\"a-${i}\": {\"value\": 1, \"for\": {\"i\": "
     "9000000}}, \"b-${i}\": {\"value\": 1, \"for\": {\"i\": 9000000}}}}",
        "key \"b-${i}\": \"for\" and \"each\" ask for 18000000 tasks"},
    {"{\"params\": {\"x\": \"%s\"}, \"tasks\": {\"a-${i}\": {\"value\": 1, \"for\": {\"i\": "
     "16000000}}, \"b-${i}\": {\"value\": 1, \"for\": {\"i\": 9000000, \"j\": 9}}}}",
        "key \"b-${i}\": \"for\": more than 16777216 combinations"},
    {"{\"params\": {\"x\": \"%s\"}, \"tasks\": {\"${x}-${i}\": {\"value\": 1, \"for\": {\"i\": "
     "9000000}}}}",
        "\"for\" asks for keys of"},
    {"{\"params\": {\"x\": \"%s\"}, \"tasks\": {\"a-${i}\": {\"value\": 1, \"for\": {\"i\": "
     "16000000}}}, \"targets\": [{\"each\": \"${x}\", \"for\": {\"i\": 16000000}}]}",
        "field \"targets\": with what \"for\" asks for"},
    {"{\"params\": {\"x\": \"%s\"}, \"tasks\": {\"a-${i}\": {\"value\": 1, \"for\": {\"i\": "
     "8000000}}}, \"repeat\": {\"fit\": {\"max\": 1000, \"carry\": {\"s\": 1}, \"tasks\": "
     "{\"b-${i}\": {\"op\": \"inc\", \"args\": [1], \"for\": {\"i\": 16000}}}, \"next\": {\"s\": "
     "1}}}}",
        "key \"b-${i}\": \"for\" and \"each\" ask for 24000000 tasks"},
};

static struct mr_str with_text(const char *form, size_t bytes, struct mr_buf *out)
{
    const char *at = strstr(form, "%s");
    mr_buf_init(out, 1 << 20);
    mr_buf_add(out, form, (size_t)(at - form));
    for (size_t i = 0; i < bytes; i++)
        mr_buf_add(out, "x", 1);
    mr_buf_add_text(out, at + 2);
    return mr_buf_str(out);
}

static void what_a_loop_asks_for_is_counted_before_it_is_made(void **state)
{
    (void)state;
    struct timespec from, to;
    for (size_t i = 0; i < MR_ARRAY_LEN(long_loops); i++) {
        for (size_t slice = 0; slice < 2; slice++) {
            struct mr_buf text;
            struct mr_str json = with_text(long_loops[i][0], 100000, &text);
            struct mr_json_limits limits = mr_json_widest(json.n);
            if (slice) limits.slice_bytes = 4;
            struct mr_graph *g = NULL;
            struct mr_error e = {0};
            assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from), 0);
            int err = mr_graph_from_json_within(json, &fixture_catalogue, &limits, &g, &e);
            assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to), 0);
            if (err != MR_ELIMIT || !strstr(e.text, long_loops[i][1]))
                fail_msg("row %zu: %d, it says %s", i, err, e.text);
            if (to.tv_sec - from.tv_sec > 1) fail_msg("row %zu: it was made first", i);
            mr_buf_fini(&text);
        }
    }
}

/* Before a job is read, its size is estimated. The estimate must not exceed the real size. So a job
 * of exactly as many nodes and bytes as the limits allow is read. */
static void what_just_fits_is_not_refused(void **state)
{
    (void)state;
    static const char *const jobs[] = {
        "{\"params\": {\"n\": 30, \"t\": \"abc\", \"l\": [1, 22, [3, \"four\"]]}, \"tasks\": "
        "{\"a-${i}\": {\"op\": \"any\", \"args\": [\"${t}-${i}\", \"${l}\", \"$${x}\", \"$\"], "
        "\"for\": {\"i\": \"${n}\"}}, \"b\": {\"op\": \"any\", \"args\": {\"each\": {\"ref\": "
        "\"a-${i}\"}, \"for\": {\"i\": \"${n}\"}}, \"kwargs\": {\"value\": {\"ref\": \"a-1\"}}}}}",
        "{\"tasks\": {\"a-${i}-${s}\": {\"op\": \"any\", \"args\": [{\"op\": \"any\", \"args\": "
        "[\"${s}\"], \"kwargs\": {\"k\": {\"literal\": \"${none}\"}}}, {\"value\": {\"ref\": 1}}, "
        "{\"each\": {\"each\": \"${s}\", \"for\": {\"k\": \"${j}\"}}, \"for\": {\"j\": 3}}], "
        "\"for\": {\"i\": 3, \"s\": [\"\", \"a\", \"a long one\"]}}, \"z-${i}\": {\"value\": 1, "
        "\"for\": {\"i\": 0}}}}",
        "{\"dsk\": {\"x\": 1, \"y\": [\"any\", \"x\", [\"any\", \"x\"], {\"literal\": \"x\"}], "
        "\"z-${i}\": {\"op\": \"any\", \"args\": [\"y\", [\"any\", \"x\", \"${i}\"]], \"for\": "
        "{\"i\": 5}}}}",
    };
    for (size_t i = 0; i < MR_ARRAY_LEN(jobs); i++) {
        struct mr_graph *g = NULL;
        struct mr_error e = {0};
        struct mr_json_limits limits = {MR_TASKS_MAX, 1 << 20, 1 << 20, NULL};
        int err = mr_graph_from_json_within(mr_str(jobs[i]), &fixture_catalogue, &limits, &g, &e);
        if (err) fail_msg("job %zu: %s", i, e.text);
        size_t bytes = 0;
        for (uint32_t v = 0; v < g->nodes_count; v++)
            bytes += mr_graph_args(g, v).n;
        limits.nodes_max = g->nodes_count;
        limits.args_bytes_max =
            MR_MAX(g->args_at[g->args_count], MR_MAX(bytes / 2 + 1, g->key_at[g->nodes_count]));
        mr_graph_free(&g);
        err = mr_graph_from_json_within(mr_str(jobs[i]), &fixture_catalogue, &limits, &g, &e);
        if (err) fail_msg("job %zu, within its bounds: %s", i, e.text);
        mr_graph_free(&g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wrong_is_named),
        cmocka_unit_test(a_few_lines_cannot_ask_for_too_much),
        cmocka_unit_test(a_short_job_cannot_ask_for_a_gigabyte),
        cmocka_unit_test(what_a_loop_asks_for_is_counted_before_it_is_made),
        cmocka_unit_test(what_just_fits_is_not_refused),
        cmocka_unit_test(priorities_have_one_range),
        cmocka_unit_test(a_journal_from_before_the_range_is_read),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(a_long_key_is_refused_with_its_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
