/* The scheduler's core: a worker says that an input of a task is missing, or that it does not know
 * a value that the scheduler asked for. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define T(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"
#define R(key) "{\"ref\":\"" key "\"}"
#define JOB(tasks, targets) "{\"tasks\":{" tasks "},\"targets\":[" targets "]}"
#define AT_A ",\"workers\":[\"a\"]"
#define AT_B ",\"workers\":[\"b\"]"
#define AT_C ",\"workers\":[\"c\"]"
#define LARGE 900 /* bytes of a small value for which a cache of 8 blocks has no room */

static struct rig_worker join(struct rig *r, const char *name, uint32_t slots, uint64_t store)
{
    const struct rig_spec spec = {.name = name, .node = name, .slots = slots, .store = store};
    return rig_join(r, &spec);
}

/* Makes a rig whose cache of small values has room for `blocks` blocks. */
static struct rig *with_cache(uint32_t blocks)
{
    struct mr_sched_config c;
    rig_config(&c);
    c.inline_blocks = blocks;
    struct rig *r = rig_new_with(&c);
    /* This job takes the first task numbers, so that in the jobs of the tests a task's number
     * differs from its index. */
    (void)rig_submit(r, "{\"dsk\":{\"first\":1},\"targets\":[\"first\"]}");
    return r;
}

/* ---- messages of several rows ---------------------------------------------------------------- */

struct rows {
    struct mr_ws_run run;
    uint32_t index[8], attempt[8];
};

static struct mr_ws_refs refs_of(const struct rows *x)
{
    return (struct mr_ws_refs){&x->run, 1, x->index, x->attempt, x->run.count};
}

static void add(struct rig *r, struct rows *x, uint64_t job, const char *key, uint32_t attempt)
{
    x->run.job.v = job;
    x->index[x->run.count] = rig_index(r, job, key);
    x->attempt[x->run.count++] = attempt;
}

struct ends { /* rows of one Completed */
    struct rows rows;
    uint32_t outcome[8], bytes[8], failures;
    uint64_t started[8], took[8];
    struct mr_ws_failure failure[8];
    char text[2048];
    size_t text_bytes;
};

/* Adds a row. If the outcome is OK, `text` is the value; otherwise `text` is the reason. */
static void add_end(struct rig *r, struct ends *x, uint64_t job, const char *key,
    enum mr_outcome outcome, const char *text)
{
    uint32_t at = x->rows.run.count;
    add(r, &x->rows, job, key, 1);
    x->outcome[at] = outcome;
    x->took[at] = (at + 1) * MR_MS;
    x->started[at] = (at + 1) * MR_US;
    if (outcome == MR_OUTCOME_OK) {
        x->bytes[at] = (uint32_t)strlen(text);
        memcpy(x->text + x->text_bytes, text, x->bytes[at]);
        x->text_bytes += x->bytes[at];
    } else if (text) {
        x->failure[x->failures++] =
            (struct mr_ws_failure){.row = at, .code = 3, .message = mr_str(text)};
    }
}

static void tell_ends(struct rig *r, struct rig_worker w, struct ends *x)
{
    struct mr_ws_up m = {0};
    m.completed = (struct mr_ws_completed){.tasks = refs_of(&x->rows),
        .outcome = x->outcome,
        .inline_bytes = x->bytes,
        .inlined = mr_str_of(x->text, x->text_bytes),
        .base_ns = r->now,
        .started_ns = x->started,
        .duration_ns = x->took,
        .failures = x->failure,
        .failures_count = x->failures};
    rig_message(r, w, &m);
}

/* ---- missing inputs -------------------------------------------------------------------------- */

static void miss(struct rig *r, struct rig_worker w, uint64_t job, const char *key,
    uint32_t attempt, uint32_t input)
{
    const struct mr_ws_missing gone = {
        {job}, rig_index(r, job, key), attempt, input, MR_STR("it is not there")};
    struct mr_ws_up m = {.missing = &gone, .missing_count = 1};
    rig_message(r, w, &m);
}

static void an_object_that_a_task_misses_is_made_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "a");
    rig_store(r, 0x52, "b");
    struct rig_worker a = join(r, "a", 2, 0x51), b = join(r, "b", 2, 0x52);
    uint64_t job = rig_submit(r, JOB(T("p", "f", "1", AT_A) "," T("q", "f", "2", AT_A) "," T("x",
                                         "f", "3", AT_A) "," T("y", "g", R("p") "," R("x"), AT_B),
                                     "\"y\",\"q\""));
    (void)rig_done_object(r, a, job, "p");
    (void)rig_done_object(r, a, job, "x");
    uint32_t x = rig_index(r, job, "x");
    assert_true(x > 0 && rig_attempt(r, b, job, "y") == 1);
    miss(r, b, job, "y", 7, x);                      /* ignored: attempt 7 was never sent */
    miss(r, b, job, "y", 1, 99);                     /* ignored: there is no input 99 */
    miss(r, b, job, "y", 1, rig_index(r, job, "q")); /* ignored: "q" has no value */
    const struct mr_ws_missing other = {{job + 100}, 0, 1, 0, MR_STR("")};
    struct mr_ws_up m = {.missing = &other, .missing_count = 1};
    rig_message(r, b, &m);
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
    miss(r, b, job, "y", 1, x);
    assert_int_equal(rig_attempt(r, a, job, "x"), 2);
    assert_int_equal(rig_state(r, job, "p"), MR_TASK_DONE);
    (void)rig_done_object(r, a, job, "x");
    assert_int_equal(rig_count(r, SAID_VALUE, b, job, "x"), 2);
    rig_done(r, b, job, "y");
    assert_int_equal(rig_state(r, job, "y"), MR_TASK_DONE);
}

/* The worker made a value and then lost the value. One message reports that the value is made and
 * that the value is missing. */
static void a_value_that_is_reported_and_missed_in_one_message_is_made_again(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    rig_store(r, 0x51, "a");
    struct rig_worker a = join(r, "a", 8, 0x51);
    uint64_t job =
        rig_submit(r, JOB(T("p", "f", "1", "") "," T("x", "f", "2", "") "," T("y", "f", R("x"), ""),
                          "\"p\",\"y\""));
    for (uint32_t attempt = 5; attempt; attempt = attempt == 5) { /* attempt 5 was never sent */
        struct rows x = {0};
        add(r, &x, job, attempt == 5 ? "p" : "x", 1);
        const struct mr_ws_missing gone = {{job}, rig_index(r, job, "y"), attempt,
            rig_index(r, job, attempt == 5 ? "p" : "x"), MR_STR("it is gone")};
        const uint64_t maker = 7, number = attempt, size = 1000;
        struct mr_ws_up m = {.missing = &gone, .missing_count = 1};
        m.completed = (struct mr_ws_completed){.tasks = refs_of(&x),
            .object_maker = &maker,
            .object_number = &number,
            .object_bytes = &size,
            .objects_count = 1};
        rig_message(r, a, &m);
        if (attempt == 5) assert_int_equal(rig_state(r, job, "p"), MR_TASK_DONE);
    }
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_RUNNING);
    assert_int_equal(rig_attempt(r, a, job, "x"), 2);
    struct mr_sched_job_info info;
    assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
    assert_int_equal(info.recomputed, 1);
}

static void a_small_value_that_its_worker_misses_is_sent_to_it(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker a = join(r, "a", 1, 0);
    uint64_t job = rig_submit(
        r, JOB(T("o", "f", "0", "") "," T("x", "f", "1", "") "," T("y", "g", R("o") "," R("x"), ""),
               "\"y\""));
    rig_done(r, a, job, "o");
    rig_done(r, a, job, "x");
    assert_int_equal(rig_attempt(r, a, job, "y"), 1);
    assert_int_equal(rig_value(r, job, "x", NULL).worker, a.slot);
    miss(r, a, job, "y", 1, rig_index(r, job, "x"));
    assert_int_equal(rig_value(r, job, "x", NULL).worker, UINT32_MAX);
    assert_int_equal(rig_value(r, job, "o", NULL).worker, a.slot);
    rig_end(r, a, job, "y", MR_OUTCOME_RETURNED);
    rig_heartbeat(r, a);
    assert_int_equal(rig_attempt(r, a, job, "y"), 2);
    assert_int_equal(rig_count(r, SAID_VALUE, a, job, "x"), 1);
    assert_int_equal(rig_count(r, SAID_VALUE, a, job, "o"), 0);
    assert_int_equal(rig_task(r, job, "x").attempt, 1); /* x did not run again */
}

static void a_value_that_is_at_another_worker_is_not_gone_because_it_is_missed(void **state)
{
    (void)state;
    struct rig *r = with_cache(8);
    struct rig_worker a = join(r, "a", 2, 0), b = join(r, "b", 2, 0);
    uint64_t job = rig_submit(r,
        JOB(T("x", "f", "1", AT_A) "," T("y", "g", R("x"), AT_B) "," T("z", "g", R("x") ",1", AT_A),
            "\"y\",\"z\""));
    rig_done_bytes(r, a, job, "x", LARGE);
    assert_int_equal(rig_count(r, SAID_FETCH, a, job, "x"), 1);
    miss(r, b, job, "y", 1, rig_index(r, job, "x"));
    assert_int_equal(rig_state(r, job, "x"), MR_TASK_DONE);
    miss(r, a, job, "z", 1, rig_index(r, job, "x")); /* worker a alone had x */
    assert_int_equal(rig_attempt(r, a, job, "x"), 2);
}

/* ---- values that were asked for -------------------------------------------------------------- */

static void bytes_that_were_asked_for_go_to_each_task_that_waits_for_them(void **state)
{
    (void)state;
    for (int has_room = 0; has_room < 2; has_room++) {
        struct rig *r = with_cache(40);
        struct rig_worker a = join(r, "a", 2, 0), b = join(r, "b", 2, 0), c = join(r, "c", 2, 0);
        uint64_t filler =
            rig_submit(r, JOB(T("z", "f", "1", AT_A) "," T("w", "rare", R("z"), ""), "\"w\""));
        rig_done_bytes(r, a, filler, "z", 600);
        uint64_t job = rig_submit(
            r, JOB(T("p", "f", "0", AT_B) "," T("x", "f", "1", AT_A) "," T("u", "rare", R("x"),
                       "") "," T("v", "g", R("x") ",1", AT_B) "," T("y", "g", R("x") ",2", AT_C),
                   "\"p\",\"u\",\"v\",\"y\""));
        rig_done_bytes(r, a, job, "x", 400);
        assert_int_equal(rig_value(r, job, "x", NULL).kind, MR_SCHED_VALUE_AWAY);
        assert_int_equal(rig_count(r, SAID_FETCH, a, job, "x"), 1);
        assert_int_equal(rig_attempt(r, b, job, "v") + rig_attempt(r, c, job, "y"), 2);
        if (has_room) assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, filler), MR_OK);
        if (has_room) assert_int_equal(rig_ask(r, MR_SCHED_FORGET, filler), MR_OK);
        rig_done_bytes(r, a, job, "x", 400);
        assert_int_equal(rig_count(r, SAID_VALUE, b, job, "x"), 1);
        assert_int_equal(rig_count(r, SAID_VALUE, c, job, "x"), 1);
        assert_int_equal(rig_count(r, SAID_VALUE, a, job, "x"), 0);
        assert_int_equal(rig_count(r, SAID_FETCH, a, job, "x"), 1);
        assert_int_equal(rig_value(r, job, "x", NULL).kind,
            has_room ? MR_SCHED_VALUE_INLINE : MR_SCHED_VALUE_AWAY);
        (void)rig_teardown(state);
    }
}

static void each_client_gets_the_bytes_that_it_asked_for(void **state)
{
    (void)state;
    struct rig *r = with_cache(8);
    struct rig_worker w = join(r, "w", 4, 0);
    uint64_t job = rig_submit(r, JOB(T("x", "f", "1", "") "," T("y", "f", "2", ""), "\"x\",\"y\""));
    char text[1001];
    struct ends m = {0};
    memset(text, 'x', 1000);
    text[1000] = 0;
    add_end(r, &m, job, "x", MR_OUTCOME_OK, text);
    memset(text, 'y', 1000);
    add_end(r, &m, job, "y", MR_OUTCOME_OK, text);
    tell_ends(r, w, &m);
    rig_want(r, job, "x");
    rig_want(r, job, "y");
    uint32_t before = r->notes_count, seen = 0;
    tell_ends(r, w, &m); /* the worker's message answers both questions */
    const struct mr_sched_note *n = (const void *)r->notes.p;
    for (uint32_t i = before; i < r->notes_count; i++) {
        if (n[i].type != MR_NOTE_TARGET_BYTES) continue;
        assert_true(n[i].job.v == job && n[i].text_bytes == 1000);
        char expected = n[i].index == rig_index(r, job, "x") ? 'x' : 'y';
        assert_true(r->texts[i][0] == expected && r->texts[i][999] == expected);
        seen++;
    }
    assert_int_equal(seen, 2);
}

static void values_that_their_worker_does_not_know_are_made_again(void **state)
{
    (void)state;
    struct rig *r = with_cache(8);
    struct rig_worker a = join(r, "a", 4, 0);
    (void)join(r, "b", 4, 0);
    uint64_t job = rig_submit(
        r, JOB(T("o", "f", "0", AT_A) "," T("x", "f", "1", AT_A) "," T("y", "f", "2", AT_A) "," T(
                   "z", "g", R("x") "," R("y"), AT_B) "," T("u", "rare", R("o"), ""),
               "\"z\",\"u\""));
    const char *const keys[] = {"o", "x", "y"};
    for (int i = 0; i < 3; i++)
        rig_done_bytes(r, a, job, keys[i], LARGE);
    /* No task that was sent needs "o". */
    assert_int_equal(rig_count(r, SAID_FETCH, a, job, NULL), 2);
    /* The worker names attempt 9, which was never sent, and then attempt 1. */
    for (uint32_t attempt = 9; attempt; attempt = attempt == 9) {
        struct rows x = {0};
        for (int i = 0; i < 3; i++)
            add(r, &x, job, keys[i], attempt);
        struct mr_ws_up m = {.unknown = refs_of(&x)};
        rig_message(r, a, &m);
        assert_int_equal(rig_attempt(r, a, job, "x"), attempt == 1 ? 2 : 1);
        assert_int_equal(rig_attempt(r, a, job, "y"), attempt == 1 ? 2 : 1);
        assert_int_equal(rig_state(r, job, "o"), MR_TASK_DONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(an_object_that_a_task_misses_is_made_again),
        RIG_TEST(a_value_that_is_reported_and_missed_in_one_message_is_made_again),
        RIG_TEST(a_small_value_that_its_worker_misses_is_sent_to_it),
        RIG_TEST(a_value_that_is_at_another_worker_is_not_gone_because_it_is_missed),
        RIG_TEST(bytes_that_were_asked_for_go_to_each_task_that_waits_for_them),
        RIG_TEST(each_client_gets_the_bytes_that_it_asked_for),
        RIG_TEST(values_that_their_worker_does_not_know_are_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
