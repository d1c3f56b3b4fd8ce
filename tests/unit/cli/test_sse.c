/* cli/client/sse: events in pieces, and limits. */
#include "cli/client/sse.h"

#include "base/alloc.h"
#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define LIMIT ((size_t)1 << 24)

struct seen {
    struct mr_sse sse;
    uint32_t events;
    char type[32], data[64];
};

static void on_event(void *ctx, const char *type, struct mr_str data)
{
    struct seen *s = ctx;
    s->events++;
    (void)snprintf(s->type, sizeof s->type, "%s", type);
    (void)snprintf(s->data, sizeof s->data, "%.*s", MR_STR_ARG(data));
}

static int setup(void **state)
{
    struct seen *s = mr_alloc(sizeof *s);
    mr_sse_init(&s->sse, on_event, s);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct seen *s = *state;
    mr_sse_fini(&s->sse);
    mr_release(s);
    return 0;
}

static int take(struct seen *s, const char *text)
{
    return mr_sse_take(&s->sse, text, strlen(text));
}

static void an_event_may_come_in_pieces(void **state)
{
    struct seen *s = *state;
    static const char text[] = "event: state\r\nid: 7\r\ndata: one\ndata:two\n: a comment\n\n";
    for (size_t i = 0; i + 1 < sizeof text; i++) {
        assert_int_equal(s->events, 0);
        assert_int_equal(mr_sse_take(&s->sse, text + i, 1), MR_OK);
    }
    assert_int_equal(s->events, 1);
    assert_string_equal(s->type, "state");
    assert_string_equal(s->data, "one\ntwo");
    assert_string_equal(s->sse.id, "7");
    assert_int_equal(take(s, "\ndata: 3\n\n"), MR_OK);
    assert_int_equal(s->events, 2);
    assert_string_equal(s->type, "");
    assert_string_equal(s->sse.id, "7"); /* the second event has no id, so the last id stays */
}

static void a_new_connection_drops_half_an_event(void **state)
{
    struct seen *s = *state;
    assert_int_equal(take(s, "event: x\nid: 1\ndata: half\nda"), MR_OK);
    mr_sse_restart(&s->sse);
    assert_int_equal(take(s, "data: whole\n\n"), MR_OK);
    assert_int_equal(s->events, 1);
    assert_string_equal(s->data, "whole");
    assert_string_equal(s->type, "");
    assert_string_equal(s->sse.id, "1");
}

static void what_is_too_long_is_refused_and_never_cut(void **state)
{
    struct seen *s = *state;
    char *line = mr_alloc(LIMIT + 16);
    memset(line, 'x', LIMIT + 16);
    memcpy(line, "data: ", 6);
    /* A line that is too long is refused, whether it has an end or not. */
    assert_int_equal(mr_sse_take(&s->sse, line, LIMIT + 1), MR_ELIMIT);
    mr_sse_restart(&s->sse);
    memcpy(line + LIMIT + 8, "\n\n", 2);
    assert_int_equal(mr_sse_take(&s->sse, line, LIMIT + 10), MR_ELIMIT);
    mr_sse_restart(&s->sse);
    /* Two lines, each of which is short enough, make an event that is too long. */
    memcpy(line + LIMIT / 2 + 8, "\n", 1);
    assert_int_equal(mr_sse_take(&s->sse, line, LIMIT / 2 + 9), MR_OK);
    assert_int_equal(mr_sse_take(&s->sse, line, LIMIT / 2 + 9), MR_ELIMIT);
    assert_int_equal(s->events, 0);
    mr_release(line);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(an_event_may_come_in_pieces),
        T(a_new_connection_drops_half_an_event),
        T(what_is_too_long_is_refused_and_never_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
