/* trainer/link/record_log: writes the records of sessions to Redis in order. When Redis comes back,
 * the log writes again all that Redis had acknowledged, because Redis may have lost it. */
#include "base/alloc.h"
#include "services/trainer/link/record_log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>

#define COMMANDS_MAX 64

/* A model of Redis: keeps commands in their order. The test answers each command when it wants. */
struct world {
    struct mr_records *records;
    bool is_away;
    uint64_t commands[COMMANDS_MAX];
    char what[COMMANDS_MAX][64]; /* the text "id=record+document" of each command */
    uint32_t count;
    uint64_t acked;
    uint32_t away, back, refused;
};

static bool take(void *ctx, uint64_t command, const struct mr_str argv[MR_RECORDS_ARGC])
{
    struct world *w = ctx;
    if (w->is_away) return false;
    assert_true(w->count < COMMANDS_MAX);
    w->commands[w->count] = command;
    (void)snprintf(w->what[w->count], sizeof w->what[0], "%.*s=%.*s+%.*s", MR_STR_ARG(argv[7]),
        MR_STR_ARG(argv[8]), MR_STR_ARG(argv[9]));
    w->count++;
    return true;
}

static void acked(void *ctx, uint64_t sequence)
{
    struct world *w = ctx;
    assert_true(sequence > w->acked);
    w->acked = sequence;
}

static void away(void *ctx)
{
    ((struct world *)ctx)->away++;
}

static void back(void *ctx)
{
    ((struct world *)ctx)->back++;
}

static void refused(void *ctx)
{
    ((struct world *)ctx)->refused++;
}

static int setup(void **state)
{
    struct world *w = mr_alloc(sizeof *w);
    const struct mr_records_link link = {take, acked, away, back, refused, w};
    w->records = mr_records_new(&link, 3, NULL);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    mr_records_free(&w->records);
    mr_release(w);
    return 0;
}

static void put(struct world *w, uint64_t sequence, const char *id, const char *record)
{
    mr_records_write(w->records, sequence, mr_str(id), mr_str(record), (struct mr_str){0});
}

static void answer(struct world *w, uint32_t i, int err)
{
    mr_records_answered(w->records, w->commands[i], err);
}

static void what_is(const struct world *w, uint32_t i, const char *wanted)
{
    assert_true(i < w->count);
    assert_string_equal(w->what[i], wanted);
}

/* Lets the log find that Redis is away, then gives it the time for one probe. */
static void probe(struct world *w, mr_time at)
{
    (void)mr_records_turn(w->records, at);
    (void)mr_records_turn(w->records, at + MR_SECOND);
}

static void each_answer_acknowledges_its_record(void **state)
{
    struct world *w = *state;
    put(w, 1, "t3-1", "a");
    put(w, 2, "t3-2", "b");
    assert_int_equal(w->acked, 0);
    answer(w, 0, MR_OK);
    assert_int_equal(w->acked, 1);
    answer(w, 1, MR_OK);
    assert_int_equal(w->acked, 2);
    what_is(w, 1, "t3-2=b+");
}

static void a_document_travels_with_the_record_that_brings_it(void **state)
{
    struct world *w = *state;
    mr_records_write(w->records, 1, MR_STR("t3-1"), MR_STR("a"), MR_STR("{}"));
    mr_records_delete(w->records, 2, MR_STR("t3-1"));
    what_is(w, 0, "t3-1=a+{}");
    what_is(w, 1, "t3-1=+");
}

static void a_failure_is_told_in_the_next_turn_and_nothing_after_it_counts(void **state)
{
    struct world *w = *state;
    put(w, 1, "t3-1", "a");
    put(w, 2, "t3-2", "b");
    answer(w, 0, MR_EAWAY);
    assert_int_equal(w->away, 0);
    /* Redis has executed this command, but after a failure the owner of the log writes the record
     * again anyway. */
    answer(w, 1, MR_OK);
    assert_int_equal(w->acked, 0);
    (void)mr_records_turn(w->records, 1);
    assert_int_equal(w->away, 1);
    assert_false(mr_records_is_here(w->records));
}

static void nothing_is_taken_while_redis_is_away(void **state)
{
    struct world *w = *state;
    w->is_away = true;
    put(w, 1, "t3-1", "a");
    (void)mr_records_turn(w->records, 1);
    assert_int_equal(w->away, 1);
    w->is_away = false;
    put(w, 2, "t3-1", "b");
    assert_int_equal(w->count, 0);
}

static void it_is_back_when_everything_acknowledged_is_there_again(void **state)
{
    struct world *w = *state;
    mr_records_known(w->records, MR_STR("t2-9"), MR_STR("old"), MR_STR("[9]"));
    mr_records_write(w->records, 1, MR_STR("t3-1"), MR_STR("a"), MR_STR("[1]"));
    answer(w, 0, MR_OK);
    put(w, 2, "t3-1", "b");
    answer(w, 1, MR_OK);
    put(w, 3, "t3-1", "c");
    answer(w, 2, MR_EAWAY);
    probe(w, 1);
    assert_int_equal(w->count, 6);
    what_is(w, 3, "t2-9=old+[9]");
    /* Redis never acknowledged c, so the owner of the log will write c again. The log itself writes
     * b, which Redis had acknowledged. */
    what_is(w, 4, "t3-1=b+[1]");
    what_is(w, 5, "=+");
    answer(w, 3, MR_OK);
    answer(w, 4, MR_OK);
    assert_int_equal(w->back, 0);
    answer(w, 5, MR_OK);
    assert_int_equal(w->back, 1);
    put(w, 4, "t3-1", "c");
    answer(w, 6, MR_OK);
    assert_int_equal(w->acked, 4);
}

static void a_restoring_that_fails_begins_anew(void **state)
{
    struct world *w = *state;
    put(w, 1, "t3-1", "a");
    answer(w, 0, MR_OK);
    put(w, 2, "t3-1", "b");
    answer(w, 1, MR_EAWAY);
    probe(w, 1);
    answer(w, 2, MR_OK);
    answer(w, 3, MR_EAWAY);
    assert_int_equal(w->back, 0);
    (void)mr_records_turn(w->records, 3 * MR_SECOND);
    assert_int_equal(w->count, 6);
    answer(w, 3, MR_OK); /* this late answer belongs to the probe before this one */
    answer(w, 4, MR_OK);
    assert_int_equal(w->back, 0);
    answer(w, 5, MR_OK);
    assert_int_equal(w->back, 1);
    assert_int_equal(w->away, 1);
}

static void what_was_deleted_does_not_come_back(void **state)
{
    struct world *w = *state;
    put(w, 1, "t3-1", "a");
    answer(w, 0, MR_OK);
    mr_records_delete(w->records, 2, MR_STR("t3-1"));
    answer(w, 1, MR_OK);
    put(w, 3, "t3-2", "b");
    answer(w, 2, MR_EAWAY);
    probe(w, 1);
    assert_int_equal(w->count, 4);
    what_is(w, 3, "=+");
}

static void a_trainer_that_was_replaced_hears_so(void **state)
{
    struct world *w = *state;
    put(w, 1, "t3-1", "a");
    answer(w, 0, MR_EABORTED);
    assert_int_equal(w->refused, 1);
    assert_int_equal(w->acked, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_answer_acknowledges_its_record),
        TEST(a_document_travels_with_the_record_that_brings_it),
        TEST(a_failure_is_told_in_the_next_turn_and_nothing_after_it_counts),
        TEST(nothing_is_taken_while_redis_is_away),
        TEST(it_is_back_when_everything_acknowledged_is_there_again),
        TEST(a_restoring_that_fails_begins_anew),
        TEST(what_was_deleted_does_not_come_back),
        TEST(a_trainer_that_was_replaced_hears_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
