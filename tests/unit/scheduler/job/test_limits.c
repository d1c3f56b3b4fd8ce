/* The scheduler's core: what happens at its limits: of tasks, jobs, operators, answers that wait
 * for the journal, and the cache of small values. A refused request leaves nothing behind. */
#include "tests/support/scheduler_rig.h"

#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define UNANSWERED 1
#define T(key, op, args, more) "\"" key "\":{\"op\":\"" op "\",\"args\":[" args "]" more "}"
#define R(key) "{\"ref\":\"" key "\"}"
#define JOB(tasks, targets) "{\"tasks\":{" tasks "},\"targets\":[" targets "]}"
#define ONE_TASK JOB(T("x", "f", "1", ""), "\"x\"")

/* ---- numbers of tasks ------------------------------------------------------------------------ */

#define PARTS 5 /* number of jobs that fill the scheduler together */

static uint64_t wide(struct rig *r, uint32_t parts)
{
    char json[128];
    (void)snprintf(json, sizeof json,
        "{\"tasks\":{\"x-${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],\"for\":{\"i\":%u}}}}",
        parts * 64);
    return rig_submit(r, json);
}

static void forget(struct rig *r, uint64_t job)
{
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), MR_OK);
    assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
}

/* Fills the scheduler with jobs and forgets them in the given order. After each forgotten job, the
 * test submits the largest job that fits into a gap of the free task numbers, and checks that a
 * larger job is refused. */
static void forget_in_order(const uint32_t order[PARTS])
{
    struct mr_sched_config c;
    rig_config(&c);
    c.tasks_max = PARTS * 64;
    struct rig *r = rig_new_with(&c);
    uint64_t jobs[PARTS];
    bool is_free[PARTS] = {0};
    for (uint32_t i = 0; i < PARTS; i++) {
        jobs[i] = wide(r, 1);
        assert_int_not_equal(jobs[i], 0);
    }
    for (uint32_t i = 0; i < PARTS; i++) {
        forget(r, jobs[order[i]]);
        is_free[order[i]] = true;
        uint32_t most = 0;
        for (uint32_t k = 0, run = 0; k < PARTS; k++) {
            run = is_free[k] ? run + 1 : 0;
            most = MR_MAX(most, run);
        }
        uint64_t job = wide(r, most);
        assert_int_not_equal(job, 0);
        forget(r, job);
        assert_int_equal(wide(r, most + 1), 0);
        assert_int_equal(r->code, MR_ELIMIT);
    }
    assert_null(rig_leftover(r));
    (void)rig_teardown(NULL);
}

static void numbers_of_forgotten_jobs_join_for_a_larger_job(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 120; n++) { /* all 120 orders of five jobs */
        uint32_t order[PARTS] = {0, 1, 2, 3, 4}, code = n;
        for (uint32_t i = 0; i < PARTS - 1; code /= PARTS - i, i++) {
            uint32_t k = i + code % (PARTS - i), first = order[i];
            order[i] = order[k];
            order[k] = first;
        }
        forget_in_order(order);
    }
}

static void a_graph_without_room_is_refused_with_its_size(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.tasks_max = 128;
    struct rig *r = rig_new_with(&c);
    uint64_t one = rig_submit(r, ONE_TASK);
    assert_int_equal(wide(r, 2), 0);
    assert_int_equal(r->code, MR_ELIMIT);
    assert_string_equal(r->text, "the graph has 128 nodes, and there is no room for them now");
    const struct mr_sched_note *n = (const void *)r->notes.p;
    assert_int_equal(n[r->notes_count - 1].type, MR_NOTE_REPLY);
    assert_int_equal(n[r->notes_count - 1].job.v, 0);
    uint64_t two = wide(r, 1);
    assert_int_not_equal(two, 0);
    forget(r, one);
    forget(r, two);
    assert_null(rig_leftover(r));
}

/* ---- jobs and operators ---------------------------------------------------------------------- */

static void one_job_too_many_is_refused_until_another_is_forgotten(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.jobs_max = 3;
    struct rig *r = rig_new_with(&c);
    uint64_t jobs[3];
    for (int i = 0; i < 3; i++) {
        jobs[i] = rig_submit(r, ONE_TASK);
        assert_int_not_equal(jobs[i], 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rig_submit(r, ONE_TASK), 0);
        assert_int_equal(r->code, MR_ELIMIT);
        assert_string_equal(r->text, "the scheduler keeps 3 jobs; forget some");
        forget(r, jobs[i]);
        jobs[i] = rig_submit(r, ONE_TASK);
        assert_int_not_equal(jobs[i], 0);
    }
}

static void a_job_with_one_operator_too_many_is_refused_and_leaves_nothing(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.ops_max = 4;
    struct rig *r = rig_new_with(&c);
    uint64_t jobs[2] = {
        rig_submit(r, JOB(T("x", "a", "1", "") "," T("y", "b", "2", ""), "\"x\",\"y\""))};
    assert_int_not_equal(jobs[0], 0);
    assert_int_equal(
        rig_submit(r, JOB(T("x", "b", "1", "") "," T("y", "c", "2", "") "," T("z", "d", "3", ""),
                          "\"x\",\"y\",\"z\"")),
        0);
    assert_int_equal(r->code, MR_ELIMIT);
    assert_string_equal(r->text, "op \"d\": the scheduler has no room for more names of operators");
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    assert_int_equal(t.jobs_running, 1);
    jobs[1] = rig_submit(r, JOB(T("x", "c", "1", ""), "\"x\""));
    assert_int_not_equal(jobs[1], 0);
    forget(r, jobs[0]);
    forget(r, jobs[1]);
    assert_null(rig_leftover(r));
}

/* Jobs ended while Redis was away. The core does not forget them before it has announced their
 * ends. Then it forgets the oldest ones until `keep_jobs_max` are left. */
static void of_many_ended_jobs_only_the_surplus_is_forgotten(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.jobs_max = 256;
    c.keep_jobs_max = 7;
    struct rig *r = rig_new_with(&c);
    uint64_t jobs[210];
    r->acks = false;
    for (uint32_t i = 0; i < MR_ARRAY_LEN(jobs); i++) {
        jobs[i] = rig_submit(r, ONE_TASK);
        (void)rig_ask(r, MR_SCHED_CANCEL, jobs[i]);
    }
    rig_pass(r, 20 * MR_SECOND);
    assert_int_equal(rig_notes(r, MR_NOTE_JOB_FORGOTTEN, jobs[0]), 0);
    r->acks = true;
    rig_ack(r);
    rig_pass(r, 20 * MR_SECOND);
    for (uint32_t i = 0; i < MR_ARRAY_LEN(jobs); i++)
        assert_int_equal(
            rig_job(r, jobs[i]), i < MR_ARRAY_LEN(jobs) - 7 ? MR_JOB_NONE : MR_JOB_CANCELLED);
}

/* ---- what waits for the journal -------------------------------------------------------------- */

static void acks(struct rig *r, uint64_t sequence)
{
    struct mr_sched_event ev = {.type = MR_SCHED_JOURNAL_ACKED, .sequence = sequence};
    r->acked = sequence;
    rig_step(r, &ev);
    rig_turn(r);
}

/* Answers that wait for the journal may take half of the room for answers. Answers that were given
 * do not count. */
static void answers_that_were_given_make_room_for_others(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.tasks_max = 1024;
    struct rig *r = rig_new_with(&c);
    r->acks = false;
    uint64_t jobs[2] = {rig_submit(r, ONE_TASK)};
    for (uint32_t i = 0; i < 300; i++)
        assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, jobs[0]), UNANSWERED);
    uint64_t first = r->sequence;
    jobs[1] = rig_submit(r, ONE_TASK);
    acks(r, first);
    uint32_t asked = 0;
    while (rig_ask(r, MR_SCHED_CANCEL, jobs[1]) == UNANSWERED)
        asked++;
    assert_int_equal(r->code, MR_EAWAY);
    assert_string_equal(r->text, "too many answers wait for the journal; try again later");
    uint64_t refused = r->ticket;
    /* Besides the replies to CANCEL, two announcements wait: jobs[1] was accepted, and its state
     * became CANCELLED. */
    assert_int_equal(asked, 512 - 2);
    acks(r, r->sequence);
    uint32_t answers = 0;
    const struct mr_sched_note *n = (const void *)r->notes.p;
    for (uint32_t i = 0; i < r->notes_count; i++)
        answers += n[i].type == MR_NOTE_REPLY && n[i].ticket == refused;
    assert_int_equal(answers, 1);
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, jobs[1]), MR_OK);
}

static uint64_t large(struct rig *r)
{
    char json[36100] = "{\"tasks\":{\"x\":{\"op\":\"f\",\"args\":[\"";
    size_t n = strlen(json);
    memset(json + n, 'a', 36000);
    (void)snprintf(json + n + 36000, sizeof json - n - 36000, "\"]}}}");
    return rig_submit(r, json);
}

/* While Redis is away, jobs are taken until half of the room for the journal is full. */
static void jobs_are_refused_while_redis_is_away_and_much_waits_for_it(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.unacked_bytes_max = 100000;
    struct rig *r = rig_new_with(&c);
    struct mr_sched_event away = {.type = MR_SCHED_JOURNAL_AWAY},
                          back = {.type = MR_SCHED_JOURNAL_BACK};
    r->acks = false;
    rig_step(r, &away);
    assert_int_not_equal(large(r), 0);
    assert_int_not_equal(large(r), 0);
    assert_int_equal(large(r), 0);
    assert_int_equal(r->code, MR_EAWAY);
    assert_string_equal(
        r->text, "Redis is away, and too much waits for the journal; try again later");
    rig_step(r, &back);
    assert_int_not_equal(large(r), 0);
    rig_step(r, &away);
    rig_ack(r);
    assert_int_not_equal(large(r), 0);
}

static struct mr_sched_totals totals(struct rig *r)
{
    struct mr_sched_totals t;
    mr_sched_totals(r->s, &t);
    return t;
}

/* The bytes of a large graph do not pass through the core: the core learns only their number,
 * `piece_bytes`. These bytes count as bytes of the journal, too. While too many bytes wait for
 * Redis, no task is sent. */
static void no_task_is_sent_while_a_large_graph_waits_for_the_journal(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.unacked_bytes_max = 1 << 20;
    struct rig *r = rig_new_with(&c);
    const struct rig_spec spec = {.name = "w", .slots = 4};
    struct rig_worker w = rig_join(r, &spec);
    r->acks = false;
    uint64_t small = rig_submit(r, ONE_TASK);
    assert_int_equal(rig_count(r, SAID_TASK, w, small, "x"), 1);
    const struct mr_sched_submit more = {.piece_bytes = 1 << 20};
    uint64_t large_job = rig_submit_with(r, ONE_TASK, &more);
    assert_true(totals(r).is_paused);
    assert_int_equal(rig_count(r, SAID_TASK, w, large_job, "x"), 0);
    rig_ack(r);
    rig_turn(r);
    assert_false(totals(r).is_paused);
    assert_int_equal(rig_count(r, SAID_TASK, w, large_job, "x"), 1);
}

/* For some records, such as those of forgotten jobs, the core announces nothing when Redis
 * acknowledges them. These records, too, stop counting as bytes that wait for Redis. */
static void forgotten_jobs_do_not_keep_the_scheduler_waiting_for_the_journal(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.unacked_bytes_max = 100;
    c.keep_jobs_max = 1;
    struct rig *r = rig_new_with(&c);
    uint64_t jobs[8];
    r->acks = false;
    for (int i = 0; i < 8; i++) {
        jobs[i] = rig_submit(r, ONE_TASK);
        (void)rig_ask(r, MR_SCHED_CANCEL, jobs[i]);
    }
    r->acks = true;
    rig_ack(r);
    rig_turn(r);
    assert_int_equal(rig_job(r, jobs[6]), MR_JOB_NONE);
    assert_int_equal(rig_job(r, jobs[7]), MR_JOB_CANCELLED);
    assert_false(totals(r).is_paused);
}

/* An acknowledgement may come late, twice, or for a record that does not exist. */
static void what_is_acknowledged_never_goes_back_nor_ahead(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    r->acks = false;
    uint64_t job = rig_submit(r, ONE_TASK), sequence = r->sequence;
    struct mr_sched_event ev = {.type = MR_SCHED_JOURNAL_ACKED, .sequence = sequence + 5};
    rig_step(r, &ev);
    assert_int_equal(totals(r).journal_acked, sequence);
    assert_int_equal(totals(r).journal_sequence, sequence);
    ev.sequence = 1;
    rig_step(r, &ev);
    assert_int_equal(totals(r).journal_acked, sequence);
    /* The record of the cancel is not acknowledged yet. */
    assert_int_equal(rig_ask(r, MR_SCHED_CANCEL, job), UNANSWERED);
}

/* ---- texts and values ------------------------------------------------------------------------ */

/* The core keeps the texts of the latest failures, and the first failure of each job. */
static void of_many_failures_the_last_texts_are_kept(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.failures_max = 3;
    struct rig *r = rig_new_with(&c);
    const struct rig_spec spec = {.name = "w", .slots = 8};
    struct rig_worker w = rig_join(r, &spec);
    uint64_t job = rig_submit(r,
        "{\"on_error\":\"continue\",\"tasks\":{\"x-${i}\":{\"op\":\"f\",\"args\":[\"${i}\"],"
        "\"for\":{\"i\":7}}}}");
    for (uint32_t i = 0; i < 7; i++) {
        char key[8];
        (void)snprintf(key, sizeof key, "x-%u", i);
        rig_end(r, w, job, key, MR_OUTCOME_ERROR);
        for (uint32_t k = 0; k < 7; k++) {
            (void)snprintf(key, sizeof key, "x-%u", k);
            assert_int_equal(rig_task(r, job, key).has_error, k <= i && (!k || k + 3 > i));
        }
    }
}

/* A new job that gets the task numbers of a forgotten job does not get the errors of that job. */
static void errors_go_with_their_job(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "w", .slots = 8};
    struct rig_worker w = rig_join(r, &spec);
    static const char json[] = "{\"on_error\":\"continue\",\"tasks\":{" T("x", "f", "1", "") "," T(
        "y", "f", "2", "") "},\"targets\":[\"x\",\"y\"]}";
    for (int i = 0; i < 2; i++) {
        uint64_t job = rig_submit(r, json);
        assert_false(rig_task(r, job, "x").has_error || rig_task(r, job, "y").has_error);
        rig_end(r, w, job, "x", MR_OUTCOME_ERROR);
        rig_end(r, w, job, "y", MR_OUTCOME_ERROR);
        assert_true(rig_task(r, job, "x").has_error && rig_task(r, job, "y").has_error);
        assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    }
}

/* The core keeps the beginning of a message and of the arguments. A NUL would end the text, so it
 * is replaced by another character. */
static void long_texts_of_an_error_are_cut(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    struct rig_worker w = rig_join(r, &(struct rig_spec){.name = "w"});
    uint64_t job = rig_submit(r, ONE_TASK);
    static char message[1500], arguments[1500];
    memset(message, 'm', sizeof message);
    memset(arguments, 'a', sizeof arguments);
    message[0] = arguments[1] = 0;
    message[999] = arguments[1023] = 'z'; /* the last bytes that are kept */
    const uint32_t index = 0, attempt = 1, outcome = MR_OUTCOME_ERROR;
    const struct mr_ws_run run = {.job = {job}, .count = 1};
    const struct mr_ws_failure f = {.code = 2,
        .message = mr_str_of(message, sizeof message),
        .arguments = mr_str_of(arguments, sizeof arguments)};
    struct mr_ws_up m = {.completed = {.tasks = {&run, 1, &index, &attempt, 1},
                             .outcome = &outcome,
                             .failures = &f,
                             .failures_count = 1}};
    rig_message(r, w, &m);
    message[0] = arguments[1] = '?';
    for (int life = 0; life < 2; life++) {
        struct mr_sched_job_info info;
        assert_true(mr_sched_job(r->s, (mr_job_id){job}, &info));
        struct mr_sched_error e[2] = {rig_task(r, job, "x").error, info.error};
        for (int i = 0; i < 2; i++) {
            assert_int_equal(e[i].message.n, 1000);
            assert_memory_equal(e[i].message.p, message, 1000);
            assert_int_equal(e[i].arguments.n, 1024);
            assert_memory_equal(e[i].arguments.p, arguments, 1024);
            assert_int_equal(e[i].worker.n, 1);
            assert_int_equal(e[i].log.n, 0);
        }
        rig_crash(r);
    }
}

static void is_kept(struct rig *r, struct rig_worker w, const char *json, uint32_t bytes, bool is)
{
    for (int i = 0; i < 2; i++) { /* twice: a forgotten job gives its room in the cache back */
        uint64_t job = rig_submit(r, json);
        rig_done_bytes(r, w, job, "x", bytes);
        struct mr_sched_value v = rig_value(r, job, "x", NULL);
        assert_int_equal(v.kind, is ? MR_SCHED_VALUE_INLINE : MR_SCHED_VALUE_AWAY);
        assert_int_equal(v.bytes, bytes);
        (void)rig_ask(r, MR_SCHED_CANCEL, job);
        assert_int_equal(rig_ask(r, MR_SCHED_FORGET, job), MR_OK);
    }
}

/* The cache has blocks of 28 bytes. The value of a target may take all of them; any other value has
 * to leave a quarter free. */
static void a_small_value_may_fill_the_cache_to_the_last_block(void **state)
{
    (void)state;
    static const char inner[] = JOB(T("x", "f", "1", "") "," T("y", "rare", R("x"), ""), "\"y\"");
    struct mr_sched_config c;
    rig_config(&c);
    c.inline_blocks = 16;
    struct rig *r = rig_new_with(&c);
    const struct rig_spec spec = {.name = "w", .slots = 8};
    struct rig_worker w = rig_join(r, &spec);
    is_kept(r, w, ONE_TASK, 16 * 28, true);
    is_kept(r, w, ONE_TASK, 16 * 28 + 1, false);
    is_kept(r, w, inner, 12 * 28, true);
    is_kept(r, w, inner, 12 * 28 + 1, false);
    is_kept(r, w, inner, 16, true);
    assert_null(rig_leftover(r));
}

/* A value of up to 16 bytes stands in the core's row of the value and needs no block of the
 * cache. */
static void a_value_of_16_bytes_is_kept_when_the_cache_is_full(void **state)
{
    (void)state;
    struct mr_sched_config c;
    rig_config(&c);
    c.inline_blocks = 4;
    struct rig *r = rig_new_with(&c);
    const struct rig_spec spec = {.name = "w", .slots = 8};
    struct rig_worker w = rig_join(r, &spec);
    uint64_t full = rig_submit(r, ONE_TASK);
    rig_done_bytes(r, w, full, "x", 4 * 28);
    assert_int_equal(rig_value(r, full, "x", NULL).kind, MR_SCHED_VALUE_INLINE);
    is_kept(r, w, ONE_TASK, 17, false);
    is_kept(r, w, ONE_TASK, 16, true);
}

static void a_value_of_more_than_4_KiB_is_not_cached(void **state)
{
    (void)state;
    struct rig *r = rig_new();
    const struct rig_spec spec = {.name = "w", .slots = 8};
    struct rig_worker w = rig_join(r, &spec);
    is_kept(r, w, ONE_TASK, (uint32_t)MR_INLINE_VALUE_BYTES_MAX, true);
    is_kept(r, w, ONE_TASK, (uint32_t)MR_INLINE_VALUE_BYTES_MAX + 1, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(numbers_of_forgotten_jobs_join_for_a_larger_job),
        RIG_TEST(a_graph_without_room_is_refused_with_its_size),
        RIG_TEST(one_job_too_many_is_refused_until_another_is_forgotten),
        RIG_TEST(a_job_with_one_operator_too_many_is_refused_and_leaves_nothing),
        RIG_TEST(of_many_ended_jobs_only_the_surplus_is_forgotten),
        RIG_TEST(answers_that_were_given_make_room_for_others),
        RIG_TEST(jobs_are_refused_while_redis_is_away_and_much_waits_for_it),
        RIG_TEST(no_task_is_sent_while_a_large_graph_waits_for_the_journal),
        RIG_TEST(forgotten_jobs_do_not_keep_the_scheduler_waiting_for_the_journal),
        RIG_TEST(what_is_acknowledged_never_goes_back_nor_ahead),
        RIG_TEST(of_many_failures_the_last_texts_are_kept),
        RIG_TEST(errors_go_with_their_job),
        RIG_TEST(long_texts_of_an_error_are_cut),
        RIG_TEST(a_small_value_may_fill_the_cache_to_the_last_block),
        RIG_TEST(a_value_of_16_bytes_is_kept_when_the_cache_is_full),
        RIG_TEST(a_value_of_more_than_4_KiB_is_not_cached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
