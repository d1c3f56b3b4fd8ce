/* The trainer's core: the row plan, which says which worker trains on which rows. The plan is
 * decided once in a session, and outlives every process. */
#include "tests/unit/trainer/rig.h"

#define TWO ",\"roles\":{\"ps\":1,\"worker\":2,\"scorer\":1}"

static uint64_t join_at(
    struct rig *r, enum mr_training_role role, uint32_t index, const char *task, const char *node)
{
    struct mr_trainer_event ev = {.type = MR_TE_JOIN,
        .ticket = ++r->ticket,
        .session = r->id,
        .role = role,
        .index = index,
        .wait = MR_SECOND,
        .join = {mr_str(task), MR_STR("h:1"), mr_str(node), MR_STR("")}};
    step(r, ev);
    struct mr_training_member_info m;
    mr_trainer_member(r->t, r->id, role == MR_TRAINING_WORKER ? 1 + index : 0, &m);
    return m.incarnation;
}

/* Runs a session with two workers on nodes `a` and `b`. */
static void run_two(struct rig *r, const char *a, const char *b, uint64_t workers[2])
{
    assert_int_equal(start(r, "", "{" MODEL TWO "}"), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    (void)join_at(r, MR_TRAINING_PS, 0, "j1-2/0/1", "p");
    workers[0] = join_at(r, MR_TRAINING_WORKER, 0, "j1-2/1/1", a);
    workers[1] = join_at(r, MR_TRAINING_WORKER, 1, "j1-2/2/1", b);
    (void)join(r, MR_TRAINING_SCORER, 0, "j1-2/3/1");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
}

static int ask(
    struct rig *r, uint32_t index, uint64_t incarnation, const struct mr_training_rows *x)
{
    struct mr_trainer_event ev = {.type = MR_TE_ROWS,
        .ticket = ++r->ticket,
        .session = r->id,
        .role = MR_TRAINING_WORKER,
        .index = index,
        .incarnation = incarnation,
        .wait = MR_SECOND};
    if (x) ev.rows = *x;
    step(r, ev);
    return r->last[MR_TX_ROWS].err;
}

/* Checks that worker `index` has `count` ranges and that the first range begins at row `first`. */
static void has(const struct rig *r, uint32_t index, uint32_t count, uint64_t first)
{
    const uint64_t *ranges = &first;
    uint32_t n = 99;
    assert_true(mr_trainer_rows(r->t, r->id, index, &ranges, &n));
    assert_int_equal(n, count);
    if (count)
        assert_int_equal(ranges[0], first);
    else
        assert_null(ranges);
}

static bool is_decided(const struct rig *r)
{
    const uint64_t *ranges = NULL;
    uint32_t n = 0;
    return mr_trainer_rows(r->t, r->id, 0, &ranges, &n);
}

static const uint64_t some[] = {10, 5, 30, 5, 0, 10};
static const uint32_t ends[] = {2, 3};
static const struct mr_training_rows plan = {true, some, ends, 2};
static const uint64_t other[] = {0, 20, 20, 20};
static const uint32_t other_ends[] = {1, 2};
static const struct mr_training_rows other_plan = {true, other, other_ends, 2};

static void one_node_has_nothing_to_decide(void **state)
{
    struct rig *r = *state;
    uint64_t w[2];
    run_two(r, "n", "n", w);
    has(r, 0, 0, 0);
    /* The plan of worker 0 is ignored, because workers of one node need no plan. */
    assert_int_equal(ask(r, 0, w[0], &plan), MR_OK);
    has(r, 0, 0, 0);
    has(r, 1, 0, 0);
}

static void the_first_word_of_worker_0_stands(void **state)
{
    struct rig *r = *state;
    uint64_t w[2];
    run_two(r, "n", "m", w);
    assert_false(is_decided(r));
    /* Worker 1 waits for the plan of worker 0; its own plan is not used. */
    assert_int_equal(ask(r, 1, w[1], &plan), MR_OK);
    assert_int_equal(r->seen[MR_TX_ROWS], 0);
    /* The incarnation of this request is not the current one. */
    assert_int_equal(ask(r, 0, w[0] + 7, &plan), MR_ESTATE);
    const struct mr_training_rows wrong = {true, some, ends, 1};
    assert_int_equal(ask(r, 0, w[0], &wrong), MR_EINVAL);
    assert_false(is_decided(r));
    r->holds = true;
    uint32_t seen = r->seen[MR_TX_ROWS];
    (void)ask(r, 0, w[0], &plan);
    /* Redis has not acknowledged the plan, so nothing is answered. */
    assert_int_equal(r->seen[MR_TX_ROWS], seen);
    assert_false(is_decided(r));
    r->holds = false;
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_ACKED, .sequence = r->sequence});
    assert_int_equal(r->seen[MR_TX_ROWS], seen + 2);
    has(r, 0, 2, 10);
    has(r, 1, 1, 0);
    assert_int_equal(ask(r, 0, w[0], &other_plan), MR_OK);
    has(r, 0, 2, 10);
}

static void who_waits_in_vain_is_answered(void **state)
{
    struct rig *r = *state;
    uint64_t w[2];
    run_two(r, "n", "m", w);
    (void)ask(r, 1, w[1], NULL);
    assert_int_equal(r->seen[MR_TX_ROWS], 0);
    tick(r, MR_SECOND);
    assert_int_equal(r->seen[MR_TX_ROWS], 1);
    assert_int_equal(r->last[MR_TX_ROWS].err, MR_OK);
    assert_int_equal(r->last[MR_TX_ROWS].role, MR_TRAINING_WORKER);
    assert_int_equal(r->last[MR_TX_ROWS].index, 1);
    assert_int_equal(r->last[MR_TX_ROWS].ticket, r->ticket);
    assert_true(r->last[MR_TX_ROWS].session.v == r->id.v);
    assert_false(is_decided(r));
    (void)ask(r, 1, w[1], NULL);
    stop_it(r, true);
    /* The end of the session answers the waiting worker. */
    assert_int_equal(r->seen[MR_TX_ROWS], 2);
}

/* Neither a replacement on another node nor a restart of the trainer changes the plan. */
static void a_plan_outlives_workers_and_trainers(void **state)
{
    struct rig *r = *state;
    uint64_t w[2];
    run_two(r, "n", "m", w);
    (void)ask(r, 0, w[0], &plan);
    w[1] = join_at(r, MR_TRAINING_WORKER, 1, "j1-2/2/2", "n");
    has(r, 1, 1, 0);
    struct mr_training_report p = {.counters = {.steps = 1, .moved_parts = 2, .moved_bytes = 99}};
    assert_int_equal(report(r, MR_TRAINING_WORKER, 1, w[1], p), MR_OK);
    assert_int_equal(look(r).counters.moved_bytes, 99);
    w[1] = join_at(r, MR_TRAINING_WORKER, 1, "j1-2/2/3", "n");
    assert_int_equal(report(r, MR_TRAINING_WORKER, 1, w[1], p), MR_OK);
    assert_int_equal(look(r).counters.moved_parts, 4);
    /* The join makes the trainer write the session's record, which has the counters. */
    (void)join_at(r, MR_TRAINING_WORKER, 1, "j1-2/2/4", "m");
    struct rig next;
    memset(&next, 0, sizeof next);
    struct mr_trainer_config config;
    mr_trainer_config_default(&config);
    config.epoch = 2;
    next.t = mr_trainer_new(&config);
    mr_trainer_effects_init(&next.fx);
    next.id = r->id;
    next.ticket = 1000;
    struct mr_trainer_event ev = {
        .type = MR_TE_RECORD, .session = r->id, .text = mr_str_of(r->record, r->record_bytes)};
    assert_int_equal(
        mr_training_document_parse(MR_STR("{" MODEL TWO "}"), &ev.document, NULL), MR_OK);
    step(&next, ev);
    step(&next, (struct mr_trainer_event){.type = MR_TE_RECOVERED});
    has(&next, 0, 2, 10);
    has(&next, 1, 1, 0);
    assert_int_equal(look(&next).counters.moved_parts, 4);
    assert_int_equal(look(&next).counters.moved_bytes, 198);
    assert_int_equal(ask(&next, 0, w[0], &other_plan), MR_OK);
    has(&next, 0, 2, 10);
    rig_end(&next);
}

static void a_plan_that_comes_before_all_are_there_stands(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL TWO "}"), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    uint64_t w = join_at(r, MR_TRAINING_WORKER, 0, "j1-2/1/1", "n");
    assert_int_equal(ask(r, 0, w, &plan), MR_OK);
    (void)join_at(r, MR_TRAINING_PS, 0, "j1-2/0/1", "n");
    (void)join_at(r, MR_TRAINING_WORKER, 1, "j1-2/2/1", "n");
    (void)join(r, MR_TRAINING_SCORER, 0, "j1-2/3/1");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    has(r, 0, 2, 10);
    has(r, 1, 1, 0);
    has(r, 2, 0, 0); /* the session has no worker 2 */
}

static void a_request_for_rows_wakes_the_trainer_when_it_ends(void **state)
{
    struct rig *r = *state;
    uint64_t w[2];
    run_two(r, "n", "m", w);
    for (uint32_t i = 0; i < 2; i++)
        step(r, (struct mr_trainer_event){.type = MR_TE_ROWS,
                    .ticket = ++r->ticket,
                    .session = r->id,
                    .role = MR_TRAINING_WORKER,
                    .index = i,
                    .incarnation = w[i],
                    .wait = (300 + i) * MR_MS});
    assert_int_equal(mr_trainer_deadline(r->t), r->now + 300 * MR_MS);
    step(r, (struct mr_trainer_event){.type = MR_TE_GONE, .ticket = r->ticket - 1});
    tick(r, 301 * MR_MS);
    assert_int_equal(r->seen[MR_TX_ROWS], 1);
    assert_int_equal(r->last[MR_TX_ROWS].index, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_node_has_nothing_to_decide),
        TEST(the_first_word_of_worker_0_stands),
        TEST(who_waits_in_vain_is_answered),
        TEST(a_plan_outlives_workers_and_trainers),
        TEST(a_plan_that_comes_before_all_are_there_stands),
        TEST(a_request_for_rows_wakes_the_trainer_when_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
