/* The trainer's core: the counters of a session over incarnations and restarts, and the requests
 * that the trainer repeats to the scheduler and to Redis. */
#include "tests/unit/trainer/rig.h"

/* Returns counters that all differ, so that a mix-up of two fields shows. */
static struct mr_training_counters counters(uint32_t from)
{
    return (struct mr_training_counters){.steps = from + 1,
        .examples = from + 2,
        .epoch = from + 3,
        .loss = from + 4,
        .accuracy = from + 5,
        .pull_s = from + 6,
        .push_s = from + 7,
        .wait_s = from + 8,
        .compute_s = from + 9,
        .feed_s = from + 10,
        .gradients_stale = from + 11,
        .gradients_lost = from + 12,
        .steps_lost = from + 13,
        .gradients_applied = from + 14,
        .moved_parts = from + 15,
        .moved_bytes = from + 16};
}

static void assert_counters(const struct mr_training_counters *c, uint32_t sum, uint32_t last)
{
    assert_int_equal(c->steps, sum + 1);
    assert_int_equal(c->examples, sum + 2);
    assert_int_equal(c->epoch, last + 3);
    assert_true(c->loss == last + 4 && c->accuracy == last + 5);
    assert_true(c->pull_s == sum + 6 && c->push_s == sum + 7 && c->wait_s == sum + 8);
    assert_true(c->compute_s == sum + 9 && c->feed_s == sum + 10);
    assert_int_equal(c->gradients_stale, sum + 11);
    assert_int_equal(c->gradients_lost, sum + 12);
    assert_int_equal(c->gradients_applied, sum + 14);
    assert_int_equal(c->moved_parts, sum + 15);
    assert_int_equal(c->moved_bytes, sum + 16);
}

static struct mr_training_member_info member(struct rig *r, uint32_t i)
{
    struct mr_training_member_info m;
    mr_trainer_member(r->t, r->id, i, &m);
    return m;
}

static void count(struct rig *r, uint64_t worker, uint32_t from)
{
    const struct mr_training_report what = {.counters = counters(from)};
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, worker, what), MR_OK);
}

static void a_report_that_comes_late_takes_nothing_back(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    count(r, c.worker, 100);
    count(r, c.worker, 50);
    struct mr_training_member_info m = member(r, 1);
    assert_counters(&m.counters, 100, 100);
    assert_int_equal(m.counters.steps_lost, 113);
    struct mr_training_counters all = look(r).counters;
    assert_counters(&all, 100, 100);
    count(r, c.worker, 200);
    m = member(r, 1);
    assert_counters(&m.counters, 200, 200);
    struct mr_training_report same = {.counters = counters(200)};
    same.counters.loss = 1;
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, c.worker, same), MR_OK);
    assert_true(member(r, 1).counters.loss == 1); /* a report of the same step replaces the loss */
}

static void workers(struct rig *r, uint64_t incarnation, uint64_t examples, mr_duration after)
{
    r->now += after;
    const struct mr_training_report p = {.counters = {.examples = examples}};
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, incarnation, p), MR_OK);
}

/* The speed is computed from the last ten samples, which are half a second apart. */
static void the_speed_is_that_of_the_last_seconds(void **state)
{
    struct rig *r = *state;
    (void)start(r, "", "{\"roles\":{\"worker\":{\"exec\":[\"x\"]}}}");
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    uint64_t w = join(r, MR_TRAINING_WORKER, 0, "j1-2/0/1");
    assert_true(look(r).counters.loss == 0 && look(r).counters.accuracy == 0);
    workers(r, w, 100, 0);
    assert_true(look(r).examples_per_s == 0);
    workers(r, w, 150, 499 * MR_MS);
    assert_true(look(r).examples_per_s == 0);
    workers(r, w, 200, MR_MS);
    assert_true(look(r).examples_per_s == 200);
    for (uint64_t i = 1; i <= 10; i++) {
        workers(r, w, 200 + 10 * i * i, 500 * MR_MS);
        if (i == 8) assert_true(look(r).examples_per_s == (200 + 640 - 100) / 4.5);
    }
    /* The first two samples no longer count. */
    assert_true(look(r).examples_per_s == (10 * 10 * 10 - 10) / 4.5);
}

/* The counters of a replacement start at 0. The counters of its index go on. */
static void an_index_counts_over_its_incarnations(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    count(r, c.worker, 100);
    uint64_t second = join(r, MR_TRAINING_WORKER, 0, "j1-2/1/2");
    struct mr_training_member_info m = member(r, 1);
    assert_counters(&m.counters, 100, 100); /* the replacement has not reported yet */
    assert_true(second > c.worker);
    struct mr_training_report what = {.counters = counters(30)};
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, second, what), MR_OK);
    m = member(r, 1);
    assert_int_equal(m.counters.steps, 101 + 31);
    assert_int_equal(m.counters.examples, 102 + 32);
    assert_int_equal(m.counters.epoch, 103);
    assert_true(m.counters.loss == 34 && m.counters.accuracy == 35);
    assert_true(m.counters.pull_s == 106 + 36 && m.counters.push_s == 107 + 37);
    assert_true(m.counters.wait_s == 108 + 38 && m.counters.compute_s == 109 + 39);
    assert_true(m.counters.feed_s == 110 + 40);
    assert_int_equal(m.counters.gradients_stale, 111 + 41);
    assert_int_equal(m.counters.gradients_lost, 112 + 42);
    assert_int_equal(m.counters.steps_lost, 113 + 43);
    assert_int_equal(m.counters.gradients_applied, 114 + 44);
    assert_int_equal(m.counters.moved_parts, 115 + 45);
    assert_int_equal(m.counters.moved_bytes, 116 + 46);
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, c.worker, what), MR_ESTATE);
}

static void a_session_shows_the_sum_of_workers_and_their_mean(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL ",\"roles\":{\"worker\":2}}"), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    uint64_t ps = join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
    uint64_t a = join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1");
    uint64_t b = join(r, MR_TRAINING_WORKER, 1, "j1-2/2/1");
    (void)join(r, MR_TRAINING_SCORER, 0, "j1-2/3/1");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    count(r, a, 100);
    /* The mean is over workers that have reported. */
    assert_true(look(r).counters.loss == 104);
    assert_int_equal(look(r).counters.epoch, 0);
    const struct mr_training_report other = {.counters = counters(40)},
                                    of_ps = {.counters = counters(7)};
    assert_int_equal(report(r, MR_TRAINING_WORKER, 1, b, other), MR_OK);
    assert_int_equal(report(r, MR_TRAINING_PS, 0, ps, of_ps), MR_OK);
    struct mr_training_counters c = look(r).counters;
    assert_int_equal(c.steps, 101 + 41);
    assert_int_equal(c.examples, 102 + 42);
    assert_int_equal(c.epoch, 43);
    assert_true(c.loss == (104 + 44) / 2.0 && c.accuracy == (105 + 45) / 2.0);
    assert_true(c.pull_s == 106 + 46 && c.feed_s == 110 + 50);
    /* These three sums include the counters of the parameter server. */
    assert_int_equal(c.gradients_stale, 111 + 51 + 18);
    assert_int_equal(c.gradients_lost, 112 + 52 + 19);
    assert_int_equal(c.gradients_applied, 114 + 54 + 21);
    assert_int_equal(c.moved_bytes, 116 + 56);
}

static void begin_again(struct rig *r, const char *json)
{
    char *record = mr_copy(r->record, r->record_bytes);
    size_t bytes = r->record_bytes;
    mr_training_id id = r->id;
    mr_time now = r->now;
    rig_end(r);
    memset(r, 0, sizeof *r);
    struct mr_trainer_config config;
    mr_trainer_config_default(&config);
    config.epoch = 2;
    r->t = mr_trainer_new(&config);
    mr_trainer_effects_init(&r->fx);
    r->id = id;
    r->now = now;
    r->ticket = 1000;
    struct mr_trainer_event ev = {
        .type = MR_TE_RECORD, .session = id, .text = mr_str_of(record, bytes)};
    assert_int_equal(mr_training_document_parse(mr_str(json), &ev.document, NULL), MR_OK);
    step(r, ev);
    step(r, (struct mr_trainer_event){.type = MR_TE_RECOVERED});
    mr_release(record);
}

static void what_is_shown_outlives_the_trainer(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    count(r, c.worker, 100);
    uint64_t second = join(r, MR_TRAINING_WORKER, 0, "j1-2/1/2");
    struct mr_training_report what = {.counters = counters(30)};
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, second, what), MR_OK);
    tick(r, MR_SECOND);
    /* The join makes the trainer write its record. */
    uint64_t third = join(r, MR_TRAINING_WORKER, 0, "j1-2/1/3");
    what.counters = counters(60);
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, third, what), MR_OK);
    /* The checkpoint makes the trainer write its record again, with the counters of the third
     * worker. */
    struct mr_training_report version = {
        .version = 9, .checkpoint_version = 9, .checkpoint_object = {5, 6}};
    assert_int_equal(report(r, MR_TRAINING_PS, 0, c.ps, version), MR_OK);
    struct mr_training_info before = look(r);
    struct mr_training_member_info m[3], n;
    for (uint32_t i = 0; i < 3; i++)
        m[i] = member(r, i);
    uint64_t change = before.change, created = before.created_ns, started = before.started_ns;
    uint32_t generation = before.generation;
    assert_int_equal(before.checkpoint.version, 9);
    char addresses[3][32];
    for (uint32_t i = 0; i < 3; i++)
        (void)snprintf(addresses[i], 32, "%.*s", MR_STR_ARG(m[i].address));
    begin_again(r, "{" MODEL "}");
    struct mr_training_info after = look(r);
    assert_true(after.change == change && after.created_ns == created);
    assert_true(after.started_ns == started && after.generation == generation);
    assert_int_equal(after.version, 9);
    assert_int_equal(after.checkpoint.version, 9);
    assert_true(mr_object_id_eq(after.checkpoint.objects[0], (mr_object_id){5, 6}));
    for (uint32_t i = 0; i < 3; i++) {
        n = member(r, i);
        assert_int_equal(n.incarnation, m[i].incarnation);
        assert_int_equal(n.state, m[i].state);
        assert_int_equal(n.address.n, strlen(addresses[i]));
        assert_memory_equal(n.address.p, addresses[i], n.address.n);
        assert_int_equal(n.counters.steps, m[i].counters.steps);
        assert_int_equal(n.counters.examples, m[i].counters.examples);
        assert_int_equal(n.counters.epoch, m[i].counters.epoch);
        assert_int_equal(n.counters.gradients_stale, m[i].counters.gradients_stale);
        assert_int_equal(n.counters.gradients_lost, m[i].counters.gradients_lost);
        assert_int_equal(n.counters.gradients_applied, m[i].counters.gradients_applied);
        assert_int_equal(n.counters.moved_parts, m[i].counters.moved_parts);
        assert_int_equal(n.counters.moved_bytes, m[i].counters.moved_bytes);
    }
    what.counters = counters(61); /* the third worker goes on counting from 60 */
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, third, what), MR_OK);
    n = member(r, 1);
    assert_int_equal(n.counters.steps, 101 + 31 + 62);
    assert_int_equal(n.counters.moved_bytes, 116 + 46 + 77);
    assert_int_equal(n.counters.gradients_applied, 114 + 44 + 75);
}

/* No role could reach the trainer while it was away. So all time limits begin anew. */
static void all_bounds_begin_anew_after_a_restart(void **state)
{
    struct rig *r = *state, next;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    tick(r, 40 * MR_SECOND);
    r->now += 30 * MR_SECOND;
    read_by(r, &next, "{" MODEL "}", mr_str_of(r->record, r->record_bytes));
    assert_int_equal(look(&next).state, MR_TRAINING_FORMING);
    tick(&next, 60 * MR_SECOND - 1);
    assert_int_equal(look(&next).state, MR_TRAINING_FORMING);
    tick(&next, 1);
    assert_int_equal(look(&next).state, MR_TRAINING_FAILED);
    rig_end(&next);
}

static void jobs_of_a_failed_session_are_cancelled_after_a_restart(void **state)
{
    struct rig *r = *state, next;
    (void)run(r, "");
    stop_it(r, true);
    read_by(r, &next, "{" MODEL "}", mr_str_of(r->record, r->record_bytes));
    tick(&next, MR_MS);
    assert_int_equal(next.seen[MR_TX_JOB_CANCEL], 1);
    assert_true(next.last[MR_TX_JOB_CANCEL].roles);
    assert_int_equal(next.seen[MR_TX_JOB_POLL], 0);
    rig_end(&next);
}

static void a_member_that_has_finished_stays_so_after_a_restart(void **state)
{
    static const char json[] = "{\"roles\":{\"worker\":{\"count\":2,\"exec\":[\"x\"]}}}";
    struct rig *r = *state, next;
    (void)start(r, "", json);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    uint64_t a = join(r, MR_TRAINING_WORKER, 0, "j1-2/0/1");
    uint64_t b = join(r, MR_TRAINING_WORKER, 1, "j1-2/1/1");
    const struct mr_training_report f = {.finished = true};
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, a, f), MR_OK);
    read_by(r, &next, json, mr_str_of(r->record, r->record_bytes));
    assert_int_equal(look(&next).state, MR_TRAINING_RUNNING);
    assert_int_equal(report(&next, MR_TRAINING_WORKER, 1, b, f), MR_OK);
    assert_int_equal(look(&next).state, MR_TRAINING_DONE);
    rig_end(&next);
}

static void a_job_that_goes_on_is_looked_at_again(void **state)
{
    struct rig *r = *state;
    (void)run(r, "");
    uint32_t polls = r->seen[MR_TX_JOB_POLL];
    for (uint32_t i = 1; i < 4; i++) {
        tick(r, 2 * MR_SECOND);
        assert_int_equal(r->seen[MR_TX_JOB_POLL], polls + i);
        tick(r, 2 * MR_SECOND); /* no second poll before the first is answered */
        assert_int_equal(r->seen[MR_TX_JOB_POLL], polls + i);
        assert_true(r->last[MR_TX_JOB_POLL].roles);
        assert_true(r->last[MR_TX_JOB_POLL].job.v == mr_job_id_make(1, 2).v);
        step(r, (struct mr_trainer_event){.type = MR_TE_JOB_STATE,
                    .session = r->id,
                    .roles = true,
                    .job_state = i == 2 ? MR_TRAINING_JOB_AWAY : MR_TRAINING_JOB_GOES_ON});
    }
}

/* The trainer does not write while Redis is away. When Redis is back, the trainer writes again what
 * Redis may lack. */
static void a_redis_that_was_away_is_told_once_it_is_back(void **state)
{
    struct rig *r = *state;
    (void)run(r, "");
    r->holds = true;
    uint32_t writes = r->seen[MR_TX_WRITE];
    stop_it(r, false);
    assert_int_equal(r->seen[MR_TX_WRITE], writes + 1);
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_AWAY});
    tick(r, MR_MS);
    assert_int_equal(r->seen[MR_TX_WRITE], writes + 1);
    assert_int_equal(r->seen[MR_TX_STOPPED], 0);
    r->holds = false;
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_BACK});
    assert_int_equal(r->seen[MR_TX_WRITE], writes + 2);
    assert_int_equal(r->seen[MR_TX_STOPPED], 1);
    assert_int_equal(r->last[MR_TX_STOPPED].err, MR_OK);
}

static void sessions_are_counted_by_their_state_and_listed_newest_first(void **state)
{
    struct rig *r = *state;
    assert_int_equal(mr_trainer_count(r->t, MR_TRAINING_RUNNING), 0);
    (void)run(r, "");
    mr_training_id first = r->id;
    (void)start(r, "", FEED);
    mr_training_id second = r->id;
    assert_int_equal(mr_trainer_count(r->t, MR_TRAINING_RUNNING), 1);
    assert_int_equal(mr_trainer_count(r->t, look(r).state), 1);
    assert_int_equal(mr_trainer_count(r->t, MR_TRAINING_FAILED), 0);
    assert_true(mr_trainer_older(r->t, (mr_training_id){0}).v == second.v);
    assert_true(mr_trainer_older(r->t, second).v == first.v);
    assert_true(mr_trainer_older(r->t, first).v == 0);
}

/* Servers and workers that are programs of the user find each other through environment variables
 * that TensorFlow and PyTorch read. */
static void a_foreign_server_has_an_environment_too(void **state)
{
    struct rig *r = *state;
    (void)start(r, "",
        "{\"roles\":{\"ps\":{\"count\":1,\"exec\":[\"x\"]},"
        "\"worker\":{\"count\":2,\"exec\":[\"x\"]}}}");
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1");
    (void)join(r, MR_TRAINING_WORKER, 1, "j1-2/2/1");
    struct mr_buf out;
    mr_buf_init(&out, 65536);
    mr_trainer_environment(r->t, r->id, 0, &out);
    char text[MR_TRAINING_ID_TEXT_MAX], expected[1024];
    mr_trainer_id_format(r->id, text);
    size_t n = (size_t)snprintf(expected, sizeof expected,
        "MILLRACE_SESSION|%s|MILLRACE_ROLE|ps|MILLRACE_INDEX|0|MILLRACE_CHANNEL|%.*s|"
        "TF_CONFIG|{\"cluster\":{\"ps\":[\"h:10\"],\"worker\":[\"h:20\",\"h:21\"]},"
        "\"task\":{\"type\":\"ps\",\"index\":0}}|",
        text, MR_STR_ARG(look(r).channel));
    for (size_t i = 0; i < out.n; i++)
        if (!out.p[i]) out.p[i] = '|';
    assert_int_equal(out.n, n);
    assert_memory_equal(out.p, expected, n);
    mr_buf_fini(&out);
}

static bool has_variable(struct rig *r, uint32_t i, const char *name, const char *value)
{
    struct mr_buf out;
    mr_buf_init(&out, 65536);
    mr_trainer_environment(r->t, r->id, i, &out);
    bool is = false;
    for (size_t at = 0; at < out.n;) {
        const char *key = (const char *)out.p + at, *text = key + strlen(key) + 1;
        is |= !strcmp(key, name) && !strcmp(text, value);
        at += strlen(key) + strlen(text) + 2;
    }
    mr_buf_fini(&out);
    return is;
}

static void addresses_of_programs_are_shown_as_they_are(void **state)
{
    struct rig *r = *state;
    char channel[257], json[1024];
    memset(channel, 'c', sizeof channel);
    channel[256] = 0;
    (void)snprintf(json, sizeof json,
        "{\"roles\":{\"ps\":{\"count\":1,\"exec\":[\"x\"]},\"worker\":{\"exec\":[\"x\"]}},"
        "\"channel\":\"%s\"}",
        channel);
    (void)start(r, "", json);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    static const char *const addresses[] = {"a\"\\:1", "[::1]:70"};
    for (uint32_t i = 0; i < 2; i++)
        step(r, (struct mr_trainer_event){.type = MR_TE_JOIN,
                    .ticket = ++r->ticket,
                    .session = r->id,
                    .role = i ? MR_TRAINING_WORKER : MR_TRAINING_PS,
                    .wait = MR_SECOND,
                    .join = {i ? MR_STR("j1-2/1/1") : MR_STR("j1-2/0/1"), mr_str(addresses[i]),
                        MR_STR("n"), MR_STR("")}});
    assert_true(has_variable(r, 0, "TF_CONFIG",
        "{\"cluster\":{\"ps\":[\"a\\\"\\\\:1\"],\"worker\":[\"[::1]:70\"]},"
        "\"task\":{\"type\":\"ps\",\"index\":0}}"));
    assert_true(has_variable(r, 1, "MASTER_ADDR", "[::1]"));
    assert_true(has_variable(r, 1, "MASTER_PORT", "70"));
    assert_true(has_variable(r, 1, "MILLRACE_CHANNEL", channel));
    assert_false(has_variable(r, 0, "RANK", "0"));
    step(r, (struct mr_trainer_event){.type = MR_TE_JOIN, /* this address has no port */
                .ticket = ++r->ticket,
                .session = r->id,
                .role = MR_TRAINING_WORKER,
                .wait = MR_SECOND,
                .join = {MR_STR("j1-2/1/2"), MR_STR("h"), MR_STR("n"), MR_STR("")}});
    assert_true(has_variable(r, 1, "MASTER_ADDR", ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_report_that_comes_late_takes_nothing_back),
        TEST(an_index_counts_over_its_incarnations),
        TEST(a_session_shows_the_sum_of_workers_and_their_mean),
        TEST(what_is_shown_outlives_the_trainer),
        TEST(a_job_that_goes_on_is_looked_at_again),
        TEST(a_redis_that_was_away_is_told_once_it_is_back),
        TEST(sessions_are_counted_by_their_state_and_listed_newest_first),
        TEST(a_foreign_server_has_an_environment_too),
        TEST(the_speed_is_that_of_the_last_seconds),
        TEST(addresses_of_programs_are_shown_as_they_are),
        TEST(all_bounds_begin_anew_after_a_restart),
        TEST(jobs_of_a_failed_session_are_cancelled_after_a_restart),
        TEST(a_member_that_has_finished_stays_so_after_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
