/* The scheduler's core: collections. An operator "by reference" puts the ids of its inputs into its
 * result instead of their bytes. Here such a result is called a collection, and such an input a
 * part. The parts live as long as the collection, however the collection ends. */
#include "tests/support/scheduler_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#define STORE 0x51

static const char parts_and_whole[] =
    "{\"tasks\":{\"p0\":{\"op\":\"f\",\"args\":[0]},\"p1\":{\"op\":\"f\",\"args\":[1]},"
    "\"c\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p0\"},{\"ref\":\"p1\"}]}},\"targets\":[\"c\"]}";

struct made { /* a job with two parts and a collection of them, all done */
    struct rig *r;
    struct rig_worker w;
    uint64_t job;
    mr_object_id p0, p1, c;
};

static struct rig_worker worker(struct rig *r, const char *name)
{
    const struct rig_spec spec = {.name = name, .slots = 4, .store = STORE};
    return rig_join(r, &spec);
}

static struct made begin(const char *json)
{
    struct made m = {.r = rig_new()};
    rig_store(m.r, STORE, "n");
    m.w = worker(m.r, "w");
    m.job = rig_submit(m.r, json);
    assert_int_not_equal(m.job, 0);
    return m;
}

static struct made make(void)
{
    struct made m = begin(parts_and_whole);
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    m.p1 = rig_done_object(m.r, m.w, m.job, "p1");
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    return m;
}

static void assert_kept(struct made *m)
{
    assert_int_equal(rig_state(m->r, m->job, "p0"), MR_TASK_DONE);
    assert_int_equal(rig_state(m->r, m->job, "p1"), MR_TASK_DONE);
    assert_true(rig_is_held(m->r, m->p0));
    assert_true(rig_is_held(m->r, m->p1));
    assert_int_equal(rig_count(m->r, SAID_RELEASE, m->w, m->job, NULL), 0);
}

static void the_parts_of_a_target_live_as_long_as_it(void **state)
{
    (void)state;
    struct made m = make();
    assert_int_equal(rig_job(m.r, m.job), MR_JOB_DONE);
    assert_kept(&m);
    rig_pass(m.r, 5 * MR_SECOND);
    rig_heartbeat(m.r, m.w);
    assert_kept(&m);
}

static void forgetting_the_job_lets_the_parts_go_and_nothing_is_left(void **state)
{
    (void)state;
    struct made m = make();
    assert_int_equal(rig_ask(m.r, MR_SCHED_FORGET, m.job), MR_OK);
    assert_int_equal(rig_held(m.r), 0);
    struct mr_sched_worker_info info;
    assert_true(mr_sched_worker(m.r->s, m.w.slot, &info));
    assert_int_equal(info.held_bytes, 0);
    assert_int_equal(rig_job(m.r, m.job), MR_JOB_NONE);
}

static void what_passes_a_collection_on_keeps_its_parts(void **state)
{
    (void)state;
    struct made m =
        begin("{\"tasks\":{\"p0\":{\"op\":\"f\",\"args\":[0]},\"p1\":{\"op\":\"f\",\"args\":[1]},"
              "\"c\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p0\"},{\"ref\":\"p1\"}]},"
              "\"i\":{\"op\":\"identity\",\"args\":[{\"ref\":\"c\"}]},"
              "\"n\":{\"op\":\"identity\",\"args\":[{\"ref\":\"i\"}]}},\"targets\":[\"n\"]}");
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    m.p1 = rig_done_object(m.r, m.w, m.job, "p1");
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    rig_done(m.r, m.w, m.job, "i");
    rig_done(m.r, m.w, m.job, "n");
    assert_int_equal(rig_job(m.r, m.job), MR_JOB_DONE);
    assert_kept(&m);
    assert_int_equal(rig_ask(m.r, MR_SCHED_FORGET, m.job), MR_OK);
    assert_int_equal(rig_held(m.r), 0);
}

static void a_part_that_is_lost_takes_along_what_passed_it_on(void **state)
{
    (void)state;
    struct made m =
        begin("{\"tasks\":{\"p0\":{\"op\":\"f\",\"args\":[0]},\"p1\":{\"op\":\"f\",\"args\":[1]},"
              "\"c\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p0\"},{\"ref\":\"p1\"}]},"
              "\"i\":{\"op\":\"identity\",\"args\":[{\"ref\":\"c\"}]},"
              "\"n\":{\"op\":\"g\",\"args\":[{\"ref\":\"i\"}]}},\"targets\":[\"n\"]}");
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    m.p1 = rig_done_object(m.r, m.w, m.job, "p1");
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    rig_done(m.r, m.w, m.job, "i");
    rig_object_lost(m.r, STORE, m.p0);
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    assert_int_equal(rig_state(m.r, m.job, "i"), MR_TASK_RUNNING);
    rig_done(m.r, m.w, m.job, "i");
    rig_done(m.r, m.w, m.job, "n");
    assert_int_equal(rig_job(m.r, m.job), MR_JOB_DONE);
}

static void a_collection_that_is_used_up_takes_its_parts_along(void **state)
{
    (void)state;
    struct made m =
        begin("{\"tasks\":{\"p0\":{\"op\":\"f\",\"args\":[0]},\"p1\":{\"op\":\"f\",\"args\":[1]},"
              "\"c\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p0\"},{\"ref\":\"p1\"}]},"
              "\"n\":{\"op\":\"g\",\"args\":[{\"ref\":\"c\"}]}},\"targets\":[\"n\"]}");
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    m.p1 = rig_done_object(m.r, m.w, m.job, "p1");
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    assert_kept(&m); /* n reads the parts through the value of c */
    rig_done(m.r, m.w, m.job, "n");
    assert_int_equal(rig_state(m.r, m.job, "c"), MR_TASK_RELEASED);
    assert_int_equal(rig_state(m.r, m.job, "p0"), MR_TASK_RELEASED);
    assert_int_equal(rig_held(m.r), 0);
}

static void a_collection_of_collections_holds_the_innermost_parts(void **state)
{
    (void)state;
    struct made m =
        begin("{\"tasks\":{\"p0\":{\"op\":\"f\",\"args\":[0]},\"p1\":{\"op\":\"f\",\"args\":[1]},"
              "\"c0\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p0\"}]},"
              "\"c1\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p1\"}]},"
              "\"c\":{\"op\":\"ref\",\"args\":[{\"ref\":\"c0\"},{\"ref\":\"c1\"}]},"
              "\"n\":{\"op\":\"g\",\"args\":[{\"ref\":\"c\"}]}},\"targets\":[\"n\"]}");
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    (void)rig_done_object(m.r, m.w, m.job, "c0");
    m.p1 = rig_done_object(m.r, m.w, m.job, "p1");
    (void)rig_done_object(m.r, m.w, m.job, "c1");
    (void)rig_done_object(m.r, m.w, m.job, "c");
    assert_kept(&m);
    rig_done(m.r, m.w, m.job, "n");
    assert_int_equal(rig_held(m.r), 0);
}

static void a_small_part_stays_too(void **state)
{
    (void)state;
    struct made m = begin(parts_and_whole);
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    rig_done_bytes(m.r, m.w, m.job, "p1", 100);
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    assert_int_equal(rig_state(m.r, m.job, "p1"), MR_TASK_DONE);
    assert_true(rig_is_held(m.r, m.p0));
    assert_int_equal(rig_ask(m.r, MR_SCHED_FORGET, m.job), MR_OK);
    assert_int_equal(rig_held(m.r), 0);
}

static void a_part_is_never_sent_as_dropped_after_the_collection(void **state)
{
    (void)state;
    struct made m = begin(parts_and_whole);
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    m.p1 = rig_done_object(m.r, m.w, m.job, "p1");
    uint32_t attempt = rig_attempt(m.r, m.w, m.job, "c");
    /* Task c was sent only when it was ready, after its parts were done. */
    assert_int_equal(attempt, 1);
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    assert_kept(&m);
}

static void a_lost_part_makes_the_collection_anew(void **state)
{
    (void)state;
    struct made m =
        begin("{\"tasks\":{\"p0\":{\"op\":\"f\",\"args\":[0]},\"p1\":{\"op\":\"f\",\"args\":[1]},"
              "\"c\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p0\"},{\"ref\":\"p1\"}]},"
              "\"x\":{\"op\":\"f\",\"args\":[2]},"
              "\"n\":{\"op\":\"g\",\"args\":[{\"ref\":\"c\"},{\"ref\":\"x\"}]}},"
              "\"targets\":[\"n\"]}");
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    m.p1 = rig_done_object(m.r, m.w, m.job, "p1");
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    rig_object_lost(m.r, STORE, m.p0);
    assert_int_equal(rig_state(m.r, m.job, "p0"), MR_TASK_RUNNING);
    assert_int_equal(rig_state(m.r, m.job, "p1"), MR_TASK_DONE);
    assert_int_equal(rig_state(m.r, m.job, "c"), MR_TASK_WAITING);
    assert_false(rig_is_held(m.r, m.c));
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    assert_true(rig_is_held(m.r, m.p0) && rig_is_held(m.r, m.p1) && rig_is_held(m.r, m.c));
    rig_done(m.r, m.w, m.job, "x");
    rig_done(m.r, m.w, m.job, "n");
    assert_int_equal(rig_job(m.r, m.job), MR_JOB_DONE);
    assert_int_equal(rig_held(m.r), 0);
}

static void a_collection_from_before_a_loss_does_not_count(void **state)
{
    (void)state;
    struct made m = begin(parts_and_whole);
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    m.p1 = rig_done_object(m.r, m.w, m.job, "p1");
    uint32_t attempt = rig_attempt(m.r, m.w, m.job, "c");
    rig_object_lost(m.r, STORE, m.p0);
    assert_int_equal(rig_count(m.r, SAID_CANCEL, m.w, m.job, "c"), 1);
    rig_done_as(m.r, m.w, m.job, "c", attempt, MR_OUTCOME_OK, (mr_object_id){9, 9}, 0, MR_MS);
    assert_int_equal(rig_state(m.r, m.job, "c"), MR_TASK_WAITING);
    assert_int_equal(rig_count(m.r, SAID_RELEASE, m.w, m.job, "c"), 1);
}

static void a_lost_part_of_a_done_jobs_target_is_made_with_it_when_asked_for(void **state)
{
    (void)state;
    struct made m = make();
    rig_object_lost(m.r, STORE, m.p1);
    assert_int_equal(rig_state(m.r, m.job, "c"), MR_TASK_RELEASED);
    assert_int_equal(rig_held(m.r), 0); /* no task needs the other part any more */
    rig_forget_rows(m.r);
    rig_want(m.r, m.job, "c");
    (void)rig_done_object(m.r, m.w, m.job, "p0");
    (void)rig_done_object(m.r, m.w, m.job, "p1");
    (void)rig_done_object(m.r, m.w, m.job, "c");
    assert_int_equal(rig_held(m.r), 3);
    assert_int_equal(rig_ask(m.r, MR_SCHED_FORGET, m.job), MR_OK);
    assert_int_equal(rig_held(m.r), 0);
}

static void the_failure_of_another_task_leaves_a_target_its_parts(void **state)
{
    (void)state;
    struct made m =
        begin("{\"tasks\":{\"p0\":{\"op\":\"f\",\"args\":[0]},\"p1\":{\"op\":\"f\",\"args\":[1]},"
              "\"c\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p0\"},{\"ref\":\"p1\"}]},"
              "\"x\":{\"op\":\"f\",\"args\":[{\"ref\":\"p0\"},2]},"
              "\"y\":{\"op\":\"f\",\"args\":[3]}},\"targets\":[\"c\",\"x\",\"y\"]}");
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    m.p1 = rig_done_object(m.r, m.w, m.job, "p1");
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    rig_end(m.r, m.w, m.job, "y", MR_OUTCOME_ERROR);
    assert_int_equal(rig_job(m.r, m.job), MR_JOB_FAILED);
    assert_kept(&m);
    assert_int_equal(rig_ask(m.r, MR_SCHED_RETRY, m.job), MR_OK);
    assert_kept(&m);
    rig_done(m.r, m.w, m.job, "x");
    rig_done(m.r, m.w, m.job, "y");
    assert_int_equal(rig_job(m.r, m.job), MR_JOB_DONE);
    assert_kept(&m);
    assert_int_equal(rig_ask(m.r, MR_SCHED_FORGET, m.job), MR_OK);
    assert_int_equal(rig_held(m.r), 0);
}

static void come_back(struct made *m, bool brings_all)
{
    mr_object_id ids[3] = {m->p0, m->p1, m->c};
    const char *keys[3] = {"p0", "p1", "c"};
    uint32_t n = brings_all ? 3 : 0, index[3], attempt[3] = {1, 1, 1}, none[3] = {0};
    uint64_t maker[3], number[3], bytes[3];
    for (uint32_t i = 0; i < n; i++) {
        index[i] = rig_index(m->r, m->job, keys[i]);
        maker[i] = ids[i].maker;
        number[i] = ids[i].number;
        bytes[i] = 100000;
    }
    const struct mr_ws_run run = {.job = {m->job}, .count = n};
    struct mr_ws_register more = {.incarnation = m->w.incarnation, .epoch = 1};
    more.holding = (struct mr_ws_completed){.tasks = {&run, n > 0, index, attempt, n},
        .inline_bytes = none,
        .object_maker = maker,
        .object_number = number,
        .object_bytes = bytes,
        .objects_count = n};
    const struct rig_spec spec = {.name = "w", .slots = 4, .store = STORE};
    m->w = rig_join_as(m->r, &spec, &more);
}

static void a_restart_finds_the_parts_of_a_done_jobs_target(void **state)
{
    (void)state;
    struct made m = make();
    rig_crash(m.r);
    rig_store(m.r, STORE, "n");
    come_back(&m, true);
    assert_int_equal(rig_count(m.r, SAID_ADOPT, m.w, m.job, NULL), 3);
    assert_kept(&m);
    assert_int_equal(rig_ask(m.r, MR_SCHED_FORGET, m.job), MR_OK);
    assert_int_equal(rig_held(m.r), 0);
}

static void a_restart_finds_the_parts_in_their_store_when_their_worker_is_gone(void **state)
{
    (void)state;
    struct made m = make();
    rig_compact(m.r); /* the next restart reads a snapshot */
    rig_crash(m.r);
    rig_store(m.r, STORE, "n");
    for (int i = 0; i < 30; i++) {
        struct mr_sched_event ev = {.type = MR_SCHED_STORE_HEARD, .store = {.store = STORE}};
        rig_step(m.r, &ev);
        rig_pass(m.r, MR_SECOND);
    }
    assert_kept(&m);
}

static void a_restart_with_the_collection_alone_makes_the_parts_and_it_again(void **state)
{
    (void)state;
    struct made m =
        begin("{\"tasks\":{\"p0\":{\"op\":\"f\",\"args\":[0]},\"p1\":{\"op\":\"f\",\"args\":[1]},"
              "\"c\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p0\"},{\"ref\":\"p1\"}]},"
              "\"n\":{\"op\":\"g\",\"args\":[{\"ref\":\"c\"}]}},\"targets\":[\"n\"]}");
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    m.p1 = rig_done_object(m.r, m.w, m.job, "p1");
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    /* The journal has none of these values, because no target is done. */
    rig_crash(m.r);
    rig_store(m.r, STORE, "n");
    const struct mr_ws_run run = {.job = {m.job}, .count = 1};
    uint32_t index = rig_index(m.r, m.job, "c"), attempt = 1, none = 0;
    uint64_t bytes = 100000;
    struct mr_ws_register more = {.incarnation = m.w.incarnation, .epoch = 1};
    more.holding = (struct mr_ws_completed){.tasks = {&run, 1, &index, &attempt, 1},
        .inline_bytes = &none,
        .object_maker = &m.c.maker,
        .object_number = &m.c.number,
        .object_bytes = &bytes,
        .objects_count = 1};
    const struct rig_spec spec = {.name = "w", .slots = 4, .store = STORE};
    m.w = rig_join_as(m.r, &spec, &more);
    assert_int_equal(rig_state(m.r, m.job, "c"), MR_TASK_WAITING);
    (void)rig_done_object(m.r, m.w, m.job, "p0");
    (void)rig_done_object(m.r, m.w, m.job, "p1");
    (void)rig_done_object(m.r, m.w, m.job, "c");
    rig_done(m.r, m.w, m.job, "n");
    assert_int_equal(rig_job(m.r, m.job), MR_JOB_DONE);
    assert_int_equal(rig_held(m.r), 0);
}

static void a_restart_adopts_collection_and_parts_of_a_running_job_in_any_order(void **state)
{
    (void)state;
    struct made m =
        begin("{\"tasks\":{\"p0\":{\"op\":\"f\",\"args\":[0]},\"p1\":{\"op\":\"f\",\"args\":[1]},"
              "\"c\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p0\"},{\"ref\":\"p1\"}]},"
              "\"n\":{\"op\":\"g\",\"args\":[{\"ref\":\"c\"}]}},\"targets\":[\"n\"]}");
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    m.p1 = rig_done_object(m.r, m.w, m.job, "p1");
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    rig_crash(m.r);
    rig_store(m.r, STORE, "n");
    come_back(&m, true);
    assert_int_equal(rig_count(m.r, SAID_ADOPT, m.w, m.job, NULL), 3);
    assert_kept(&m);
    assert_int_equal(rig_count(m.r, SAID_TASK, m.w, m.job, NULL), 1); /* only task n is sent */
    rig_done(m.r, m.w, m.job, "n");
    assert_int_equal(rig_held(m.r), 0);
}

static void a_restart_keeps_a_small_part_that_its_worker_has(void **state)
{
    (void)state;
    struct made m = begin(parts_and_whole);
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    rig_done_bytes(m.r, m.w, m.job, "p1", 10);
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    rig_crash(m.r); /* the journal has the values of c and p0, not of p1 */
    rig_store(m.r, STORE, "n");
    assert_int_equal(rig_state(m.r, m.job, "p1"), MR_TASK_RELEASED);
    const struct mr_ws_run run = {.job = {m.job}, .count = 1};
    uint32_t index = rig_index(m.r, m.job, "p1"), attempt = 1, bytes = 10;
    struct mr_ws_register more = {.incarnation = m.w.incarnation, .epoch = 1};
    more.holding = (struct mr_ws_completed){.tasks = {&run, 1, &index, &attempt, 1},
        .inline_bytes = &bytes,
        .inlined = MR_STR("0123456789")};
    const struct rig_spec spec = {.name = "w", .slots = 4, .store = STORE};
    m.w = rig_join_as(m.r, &spec, &more);
    assert_int_equal(rig_count(m.r, SAID_ADOPT, m.w, m.job, "p1"), 1);
    assert_int_equal(rig_state(m.r, m.job, "p1"), MR_TASK_DONE);
    assert_int_equal(rig_ask(m.r, MR_SCHED_FORGET, m.job), MR_OK);
    assert_null(rig_leftover(m.r));
}

static void another_jobs_join_holds_the_parts_through_the_source(void **state)
{
    (void)state;
    static const char one[] =
        "{\"namespace\":\"s\",\"tasks\":{\"p0\":{\"op\":\"f\",\"args\":[0]},"
        "\"p1\":{\"op\":\"f\",\"args\":[1]},"
        "\"c\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p0\"},{\"ref\":\"p1\"}]},"
        "\"n\":{\"op\":\"g\",\"args\":[{\"ref\":\"c\"}]}},\"targets\":[\"n\"]}";
    static const char two[] =
        "{\"namespace\":\"s\",\"tasks\":{\"p0\":{\"op\":\"f\",\"args\":[0]},"
        "\"p1\":{\"op\":\"f\",\"args\":[1]},"
        "\"c\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p0\"},{\"ref\":\"p1\"}]}},"
        "\"targets\":[\"c\"]}";
    struct made m = begin(one);
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    m.p1 = rig_done_object(m.r, m.w, m.job, "p1");
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    uint64_t other = rig_submit(m.r, two);
    assert_int_equal(rig_job(m.r, other), MR_JOB_DONE);
    assert_int_equal(rig_count(m.r, SAID_TASK, m.w, other, NULL), 0);
    rig_done(m.r, m.w, m.job, "n"); /* the first job does not need c any more */
    assert_kept(&m);
    assert_int_equal(rig_ask(m.r, MR_SCHED_FORGET, m.job), MR_ESTATE);
    assert_int_equal(rig_ask(m.r, MR_SCHED_FORGET, other), MR_OK);
    assert_int_equal(rig_held(m.r), 0);
    assert_int_equal(rig_ask(m.r, MR_SCHED_FORGET, m.job), MR_OK);
}

static void cancelling_the_source_leaves_a_join_its_parts(void **state)
{
    (void)state;
    static const char one[] =
        "{\"namespace\":\"s\",\"tasks\":{\"p0\":{\"op\":\"f\",\"args\":[0]},"
        "\"c\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p0\"}]},"
        "\"n\":{\"op\":\"g\",\"args\":[{\"ref\":\"c\"}]}},\"targets\":[\"n\"]}";
    static const char two[] =
        "{\"namespace\":\"s\",\"tasks\":{\"m\":{\"op\":\"h\",\"args\":[{\"ref\":\"c\"}]}},"
        "\"targets\":[\"m\"]}";
    struct made m = begin(one);
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    uint64_t other = rig_submit(m.r, two);
    assert_int_equal(rig_ask(m.r, MR_SCHED_CANCEL, m.job), MR_OK);
    assert_int_equal(rig_job(m.r, m.job), MR_JOB_CANCELLED);
    assert_true(rig_is_held(m.r, m.p0) && rig_is_held(m.r, m.c));
    rig_done(m.r, m.w, other, "m");
    assert_int_equal(rig_job(m.r, other), MR_JOB_DONE);
    assert_int_equal(rig_ask(m.r, MR_SCHED_FORGET, other), MR_OK);
    assert_int_equal(rig_held(m.r), 0);
}

/* Restarts the scheduler. Only the store comes back. */
static void crash_with_the_store(struct made *m)
{
    rig_crash(m->r);
    rig_store(m->r, STORE, "n");
    for (int i = 0; i < 30; i++) {
        struct mr_sched_event ev = {.type = MR_SCHED_STORE_HEARD, .store = {.store = STORE}};
        rig_step(m->r, &ev);
        rig_pass(m->r, MR_SECOND);
    }
}

static void the_innermost_parts_of_a_target_outlive_a_restart(void **state)
{
    (void)state;
    for (int compact = 0; compact < 2; compact++) {
        struct made m = begin(
            "{\"tasks\":{\"p0\":{\"op\":\"f\",\"args\":[0]},\"p1\":{\"op\":\"f\",\"args\":[1]},"
            "\"c0\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p0\"},{\"ref\":\"p1\"}]},"
            "\"c1\":{\"op\":\"ref\",\"args\":[{\"ref\":\"c0\"}]},"
            "\"c\":{\"op\":\"ref\",\"args\":[{\"ref\":\"c1\"}]}},\"targets\":[\"c\"]}");
        m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
        m.p1 = rig_done_object(m.r, m.w, m.job, "p1");
        (void)rig_done_object(m.r, m.w, m.job, "c0");
        (void)rig_done_object(m.r, m.w, m.job, "c1");
        m.c = rig_done_object(m.r, m.w, m.job, "c");
        assert_int_equal(rig_job(m.r, m.job), MR_JOB_DONE);
        if (compact) rig_compact(m.r);
        crash_with_the_store(&m);
        assert_kept(&m);
        assert_true(rig_is_held(m.r, m.c));
        assert_int_equal(rig_state(m.r, m.job, "c"), MR_TASK_DONE);
        if (!compact) rig_teardown(state);
    }
}

/* A returning worker still has a target and the parts of the target. The core writes them to the
 * journal when it knows all of them. */
static void what_was_adopted_outlives_the_next_restart(void **state)
{
    (void)state;
    struct made m =
        begin("{\"tasks\":{\"p0\":{\"op\":\"f\",\"args\":[0]},\"p1\":{\"op\":\"f\",\"args\":[1]},"
              "\"c\":{\"op\":\"ref\",\"args\":[{\"ref\":\"p0\"},{\"ref\":\"p1\"}]},"
              "\"x\":{\"op\":\"g\",\"args\":[3]}},\"targets\":[\"c\",\"x\"]}");
    m.p0 = rig_done_object(m.r, m.w, m.job, "p0");
    m.p1 = rig_done_object(m.r, m.w, m.job, "p1");
    m.r->acks = false; /* the journal does not acknowledge the record of "c" */
    m.c = rig_done_object(m.r, m.w, m.job, "c");
    m.r->acks = true;
    rig_crash(m.r);
    rig_store(m.r, STORE, "n");
    come_back(&m, true);
    assert_int_equal(rig_count(m.r, SAID_ADOPT, m.w, m.job, NULL), 3);
    rig_ack(m.r);
    crash_with_the_store(&m);
    assert_kept(&m);
    assert_int_equal(rig_state(m.r, m.job, "c"), MR_TASK_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(the_parts_of_a_target_live_as_long_as_it),
        RIG_TEST(forgetting_the_job_lets_the_parts_go_and_nothing_is_left),
        RIG_TEST(what_passes_a_collection_on_keeps_its_parts),
        RIG_TEST(a_part_that_is_lost_takes_along_what_passed_it_on),
        RIG_TEST(a_collection_that_is_used_up_takes_its_parts_along),
        RIG_TEST(a_collection_of_collections_holds_the_innermost_parts),
        RIG_TEST(a_small_part_stays_too),
        RIG_TEST(a_part_is_never_sent_as_dropped_after_the_collection),
        RIG_TEST(a_lost_part_makes_the_collection_anew),
        RIG_TEST(a_collection_from_before_a_loss_does_not_count),
        RIG_TEST(a_lost_part_of_a_done_jobs_target_is_made_with_it_when_asked_for),
        RIG_TEST(the_failure_of_another_task_leaves_a_target_its_parts),
        RIG_TEST(a_restart_finds_the_parts_of_a_done_jobs_target),
        RIG_TEST(a_restart_finds_the_parts_in_their_store_when_their_worker_is_gone),
        RIG_TEST(a_restart_with_the_collection_alone_makes_the_parts_and_it_again),
        RIG_TEST(a_restart_adopts_collection_and_parts_of_a_running_job_in_any_order),
        RIG_TEST(a_restart_keeps_a_small_part_that_its_worker_has),
        RIG_TEST(another_jobs_join_holds_the_parts_through_the_source),
        RIG_TEST(cancelling_the_source_leaves_a_join_its_parts),
        RIG_TEST(the_innermost_parts_of_a_target_outlive_a_restart),
        RIG_TEST(what_was_adopted_outlives_the_next_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
