/* Tests cli/view/progress: the progress line of `millrace run` says what the job waits for and fits
 * the terminal's width. */
#include "cli/view/progress.h"
#include "cli/term/text.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNTS                                                                                     \
    "\"state\": \"JOB_RUNNING\", \"counts\": {\"submitted\": \"48\", \"done\": \"47\", "           \
    "\"running\": \"1\"}"
#define KEY "a/key/that/is/too/long/for/a/line/of/eighty/columns/with/a/bar/in/it"

/* Returns the progress line of a job whose state and counts last changed `quiet` ago. */
static const char *line_of(const char *json, mr_duration quiet, unsigned columns)
{
    static char text[4096];
    const mr_time begun = 1000 * MR_SECOND;
    struct mr_progress p;
    struct mr_buf out;
    yyjson_doc *doc = yyjson_read(json, strlen(json), 0);
    assert_non_null(doc);
    mr_progress_init(&p, begun);
    mr_progress_take(&p, yyjson_doc_get_root(doc), begun);
    mr_buf_init(&out, sizeof text);
    mr_progress_line(&p, yyjson_doc_get_root(doc), begun + quiet, 100 * MR_SECOND, columns, &out);
    (void)snprintf(text, sizeof text, "%.*s", MR_STR_ARG(mr_buf_str(&out)));
    if (columns) assert_true(mr_text_width(mr_str(text)) <= columns);
    mr_buf_fini(&out);
    yyjson_doc_free(doc);
    return text;
}

static void a_job_that_moves_shows_its_tasks(void **state)
{
    (void)state;
    assert_string_equal(line_of("{" COUNTS "}", MR_SECOND, 80),
        "running   [#############################.] 47/48 tasks, 1 running, 1.0 s");
}

static void what_is_being_persisted_is_said_at_once(void **state)
{
    (void)state;
    const char *json = "{" COUNTS ", \"persisting_bytes\": \"3758096384\"}";
    assert_non_null(strstr(line_of(json, MR_SECOND, 77), "; persisting 3.5 GiB"));
    assert_non_null(strstr(line_of(json, MR_SECOND, 0), "; persisting 3.5 GiB"));
}

static void a_task_that_keeps_all_waiting_is_named_after_some_seconds(void **state)
{
    (void)state;
    const char *json = "{" COUNTS ", \"longest_running\": {\"key\": \"" KEY
                       "\", \"worker\": \"worker-0-1\", \"since_ns\": \"88000000000\"}}";
    assert_null(strstr(line_of(json, 2 * MR_SECOND, 80), "runs for"));
    assert_non_null(strstr(line_of(json, 5 * MR_SECOND, 80), " runs for 12.0 s"));
    assert_non_null(strstr(line_of(json, 5 * MR_SECOND, 80), "…"));
    assert_non_null(strstr(line_of(json, 5 * MR_SECOND, 0), KEY " runs for 12.0 s on worker-0-1"));
    for (unsigned columns = 20; columns < 160; columns++)
        (void)line_of(json, 5 * MR_SECOND, columns);
}

static void what_is_not_known_is_not_said(void **state)
{
    (void)state;
    assert_non_null(strstr(
        line_of("{" COUNTS "}", 200 * MR_SECOND, 120), "; nothing has ended for 3 min 20 s"));
}

int main(void)
{
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_that_moves_shows_its_tasks),
        cmocka_unit_test(what_is_being_persisted_is_said_at_once),
        cmocka_unit_test(a_task_that_keeps_all_waiting_is_named_after_some_seconds),
        cmocka_unit_test(what_is_not_known_is_not_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
