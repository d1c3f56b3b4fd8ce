/* Issue 11, A: schedulers whose journals do not know each other, because Redis came back empty or
 * from an older copy. Their epochs may be the same, their ids never are. */
#include "tests/unit/sched_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
/* after those */
#include <cmocka.h>

#define JOB(tasks, targets) "{\"tasks\":{" tasks "},\"targets\":[" targets "]}"
#define ONE JOB("\"x\":{\"op\":\"f\",\"args\":[1]}", "\"x\"")
#define OTHER JOB("\"x\":{\"op\":\"g\",\"args\":[2]}", "\"x\"")

static const uint64_t first = (uint64_t)5000001 << 32 | 17, second = (uint64_t)6000001 << 32 | 18;

static struct rig *rig_of(uint32_t epoch, uint64_t incarnation)
{
    struct mr_sched_config c;
    rig_config(&c);
    c.epoch = epoch;
    c.incarnation = incarnation;
    return rig_new_with(&c);
}

static bool was_said(const struct rig *r, const char *words)
{
    for (uint32_t i = 0; i < r->notes_count; i++)
        if (r->texts[i] && strstr(r->texts[i], words)) return true;
    return false;
}

static void a_value_of_another_life_is_never_taken_for_one_of_ours(void **state)
{
    struct rig *r = rig_of(1, first);
    const struct rig_spec spec = {.name = "a"};
    struct rig_worker a = rig_join(r, &spec);
    uint64_t old = rig_submit(r, ONE);
    rig_done(r, a, old, "x");
    assert_int_equal(rig_job(r, old), MR_JOB_DONE);
    (void)rig_teardown(state);

    r = rig_of(1, second); /* Redis came back empty */
    uint64_t young = rig_submit(r, OTHER);
    assert_true(young != old);
    const struct mr_sched_run run = {.job = old, .count = 1};
    uint32_t x = 0, one = 1;
    struct mr_sched_register more = {.incarnation = a.incarnation, .epoch = 1, .scheduler = first};
    more.holding = (struct mr_sched_completed){
        .tasks = {&run, 1, &x, &one, 1}, .inline_bytes = &one, .inline_data = MR_STR("v")};
    (void)rig_join_as(r, &spec, &more);
    assert_true(r->last.was_refused);
    assert_true(was_said(r, "another life"));
    more.incarnation = 0;
    a = rig_join_as(r, &spec, &more);
    assert_int_equal(rig_count(r, SAID_ADOPT, a, old, NULL), 0);
    assert_int_equal(rig_state(r, young, "x"), MR_TASK_RUNNING);
    rig_done(r, a, young, "x");
    assert_int_equal(rig_job(r, young), MR_JOB_DONE);
}

static void an_epoch_is_above_all_that_others_have_seen(void **state)
{
    (void)state;
    struct rig *r = rig_of(2, second);
    const struct rig_spec a = {.name = "a"}, b = {.name = "b"}, c = {.name = "c"},
                          d = {.name = "d"};
    struct mr_sched_register more = {.epoch = 1, .scheduler = first};
    (void)rig_join_as(r, &a, &more);
    assert_int_equal(mr_sched_epoch(r->s), 2);
    more.epoch = 2;
    uint64_t before = r->sequence;
    (void)rig_join_as(r, &b, &more);
    assert_int_equal(mr_sched_epoch(r->s), 3);
    assert_true(r->sequence > before); /* Redis hears of it */
    more = (struct mr_sched_register){.epoch = 3, .scheduler = second};
    (void)rig_join_as(r, &c, &more); /* that was us */
    assert_int_equal(mr_sched_epoch(r->s), 3);
    struct mr_sched_event ev = {.type = MR_SCHED_STORE_REGISTER};
    ev.store = (struct mr_sched_store){
        .store = 7, .node = MR_STR("n"), .address = MR_STR("n"), .epoch = 9, .scheduler = first};
    rig_step(r, &ev);
    assert_int_equal(mr_sched_epoch(r->s), 10);
    more = (struct mr_sched_register){.epoch = UINT32_MAX, .scheduler = first};
    (void)rig_join_as(r, &d, &more); /* nonsense */
    assert_int_equal(mr_sched_epoch(r->s), 10);
}

static void a_journal_says_who_wrote_it(void **state)
{
    (void)state;
    struct rig *r = rig_of(1, first);
    uint64_t old = rig_submit(r, ONE);
    rig_crash(r);
    uint64_t young = rig_submit(r, OTHER);
    assert_true(mr_job_id_tag((mr_job_id){young}) != mr_job_id_tag((mr_job_id){old}));
    assert_int_equal(rig_job(r, old), MR_JOB_PENDING);
    for (int i = 0; i < 2; i++) {
        assert_false(mr_sched_is_other_life(r->s, mr_job_id_tag((mr_job_id){old})));
        assert_false(mr_sched_is_other_life(r->s, mr_job_id_tag((mr_job_id){young})));
        assert_true(mr_sched_is_other_life(r->s, (uint32_t)(second >> 32)));
        rig_compact(r); /* a snapshot says the same */
        rig_crash(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(a_value_of_another_life_is_never_taken_for_one_of_ours),
        RIG_TEST(an_epoch_is_above_all_that_others_have_seen),
        RIG_TEST(a_journal_says_who_wrote_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
