/* The trainer's core: the life of a session from its start to its end, and the records that are
 * kept. */
#include "tests/unit/trainer/rig.h"

static void a_session_goes_from_start_to_a_kept_model(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, ",\"stop\":{\"steps\":100}");
    struct mr_training_report p = {.version = 99};
    assert_int_equal(report(r, MR_TRAINING_PS, 0, c.ps, p), MR_OK);
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    p.version = 100;
    (void)report(r, MR_TRAINING_PS, 0, c.ps, p);
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    says(look(r).reason, "version 100 is reached");
    struct mr_training_report f = {.finished = true};
    /* The worker learns of the stop from the answer to this report. */
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, f);
    assert_int_equal(r->last[MR_TX_REPORTED].instruction.phase, MR_TRAINING_HALT);
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, (struct mr_training_report){0});
    assert_int_equal(r->last[MR_TX_REPORTED].instruction.phase, MR_TRAINING_HALT);
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, f);
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, f);
    assert_int_equal(r->last[MR_TX_REPORTED].instruction.phase, MR_TRAINING_KEEP);
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, f);
    /* The scorer saves the model, so the worker waits. */
    assert_int_equal(r->last[MR_TX_REPORTED].instruction.phase, MR_TRAINING_HALT);
    f.model_object = (mr_object_id){5, 6};
    f.score_json = MR_STR("{\"accuracy\":1}");
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, f);
    (void)report(r, MR_TRAINING_PS, 0, c.ps, f);
    assert_int_equal(r->last[MR_TX_REPORTED].instruction.phase, MR_TRAINING_EXIT);
    job(r, true, MR_TRAINING_JOB_DONE, "");
    assert_int_equal(look(r).state, MR_TRAINING_DONE);
    assert_true(mr_object_id_eq(look(r).model_object, (mr_object_id){5, 6}));
    says(look(r).score_json, "accuracy");
    assert_true(r->seen[MR_TX_UNFOLLOW] == 1);
}

static void a_gang_that_is_not_there_in_time_fails_by_name(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL ",\"roles\":{\"worker\":2}}"), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    for (int i = 0; i < 61; i++) {
        (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
        (void)join(r, MR_TRAINING_WORKER, 1, "j1-2/2/1");
        if (look(r).state == MR_TRAINING_FAILED) break;
        tick(r, MR_SECOND);
    }
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
    says(look(r).reason, "forming took longer than 60 s: waited for worker 0, scorer 0");
    assert_int_equal(r->seen[MR_TX_JOB_CANCEL], 1);
}

static void a_request_id_means_one_session(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "a", "{" MODEL "}"), MR_OK);
    assert_false(r->last[MR_TX_STARTED].existed);
    mr_training_id first = r->id;
    assert_int_equal(start(r, "a", "{" MODEL "}"), MR_OK);
    assert_true(r->id.v == first.v && r->last[MR_TX_STARTED].existed);
    assert_int_equal(start(r, "a", "{" MODEL ",\"name\":\"other\"}"), MR_EEXIST);
    says(mr_str(r->text), "t1-1");
}

static void two_live_sessions_do_not_share_a_channel(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL ",\"channel\":\"scores\"}"), MR_OK);
    assert_int_equal(start(r, "", "{" MODEL ",\"channel\":\"scores\"}"), MR_EEXIST);
    says(mr_str(r->text), "\"scores\"");
    step(r, (struct mr_trainer_event){
                .type = MR_TE_STOP, .ticket = ++r->ticket, .session = r->id, .abandon = true});
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
    assert_int_equal(start(r, "", "{" MODEL ",\"channel\":\"scores\"}"), MR_OK);
}

static void nothing_is_told_before_redis_has_it(void **state)
{
    struct rig *r = *state;
    r->holds = true;
    (void)start(r, "", "{" MODEL "}");
    assert_int_equal(r->seen[MR_TX_STARTED], 0);
    assert_int_equal(r->seen[MR_TX_JOB_SUBMIT], 0);
    assert_int_equal(mr_trainer_older(r->t, (mr_training_id){0}).v, 0);
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_ACKED, .sequence = r->sequence});
    assert_int_equal(r->seen[MR_TX_STARTED], 1);
    assert_int_equal(r->seen[MR_TX_JOB_SUBMIT], 1);
}

static void a_start_that_redis_does_not_take_is_unavailable(void **state)
{
    struct rig *r = *state;
    r->holds = true;
    (void)start(r, "", "{" MODEL "}");
    tick(r, 11 * MR_SECOND);
    assert_int_equal(r->last[MR_TX_STARTED].err, MR_EAWAY);
}

static void a_barrier_opens_for_all_or_says_why_not(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    struct mr_trainer_event ev = {.type = MR_TE_BARRIER,
        .session = r->id,
        .parties = 2,
        .text = MR_STR("b"),
        .wait = MR_SECOND,
        .role = MR_TRAINING_PS,
        .incarnation = c.ps};
    ev.ticket = ++r->ticket;
    step(r, ev);
    assert_int_equal(r->seen[MR_TX_BARRIER], 0);
    struct mr_trainer_event other = ev;
    other.role = MR_TRAINING_WORKER;
    other.incarnation = c.worker;
    other.ticket = ++r->ticket;
    step(r, other);
    assert_int_equal(r->seen[MR_TX_BARRIER], 2);
    ev.ticket = ++r->ticket;
    step(r, ev);
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/2");
    assert_int_equal(r->last[MR_TX_BARRIER].err, MR_EABORTED);
    ev.ticket = ++r->ticket;
    step(r, ev);
    tick(r, MR_SECOND);
    assert_int_equal(r->last[MR_TX_BARRIER].err, MR_ETIMEOUT);
}

static void foreign_roles_get_their_environment_and_end_by_themselves(void **state)
{
    struct rig *r = *state;
    (void)start(r, "", "{\"roles\":{\"worker\":{\"count\":2,\"exec\":[\"x\"]}}}");
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    uint64_t a = join(r, MR_TRAINING_WORKER, 0, "j1-2/0/1");
    uint64_t b = join(r, MR_TRAINING_WORKER, 1, "j1-2/1/1");
    struct mr_buf out;
    mr_buf_init(&out, 65536);
    mr_trainer_environment(r->t, r->id, 1, &out);
    struct mr_str s = mr_buf_str(&out);
    says(s, "{\"cluster\":{\"worker\":[\"h:20\",\"h:21\"]},"
            "\"task\":{\"type\":\"worker\",\"index\":1}}");
    static const char rest[] = "MASTER_ADDR\0h\0MASTER_PORT\00020\0RANK\0001\0WORLD_SIZE\0002";
    assert_non_null(memmem(s.p, s.n, rest, sizeof rest));
    mr_buf_fini(&out);
    struct mr_training_report f = {.finished = true};
    (void)report(r, MR_TRAINING_WORKER, 0, a, f);
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    (void)report(r, MR_TRAINING_WORKER, 1, b, f);
    assert_int_equal(look(r).state, MR_TRAINING_DONE);
}

/* The rate of a training whose steps take many seconds is never shown as 0. */
static void slow_steps_have_a_speed(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    struct mr_training_report p = {0};
    for (uint32_t second = 1; second <= 40; second++) {
        tick(r, MR_SECOND);
        /* the worker makes a step of 800 examples every 8 s */
        p.counters.examples = second / 8 * (uint64_t)800;
        assert_int_equal(report(r, MR_TRAINING_WORKER, 0, c.worker, p), MR_OK);
        (void)report(r, MR_TRAINING_PS, 0, c.ps, (struct mr_training_report){0});
        (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, (struct mr_training_report){0});
        double rate = look(r).examples_per_s;
        if (second >= 16 && (rate < 80 || rate > 120)) fail_msg("%u s: %g", second, rate);
    }
    for (uint32_t second = 0; second < 400; second++) { /* without progress the rate falls */
        tick(r, MR_SECOND);
        (void)report(r, MR_TRAINING_WORKER, 0, c.worker, p);
        (void)report(r, MR_TRAINING_PS, 0, c.ps, (struct mr_training_report){0});
        (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, (struct mr_training_report){0});
    }
    assert_true(look(r).examples_per_s < 12);
}

static void ended_sessions_are_forgotten_oldest_first(void **state)
{
    struct rig *r = *state;
    for (int i = 0; i < 3; i++) {
        (void)start(r, "", "{" MODEL "}");
        step(r,
            (struct mr_trainer_event){.type = MR_TE_STOP, .ticket = ++r->ticket, .session = r->id});
        step(
            r, (struct mr_trainer_event){
                   .type = MR_TE_JOB_SUBMITTED, .session = r->id, .roles = true, .err = MR_EINVAL});
    }
    struct mr_training_info info;
    assert_int_equal(r->seen[MR_TX_DELETE], 1);
    assert_int_equal(
        mr_trainer_info(r->t, (mr_training_id){(uint64_t)1 << 32 | 1}, &info), MR_ENOENT);
    step(r,
        (struct mr_trainer_event){.type = MR_TE_FORGET, .ticket = ++r->ticket, .session = r->id});
    assert_int_equal(r->seen[MR_TX_FORGOTTEN], 1);
    assert_int_equal(mr_trainer_info(r->t, r->id, &info), MR_ENOENT);
}

static void what_is_asked_of_no_session_is_refused(void **state)
{
    struct rig *r = *state;
    const mr_training_id nobody = {(uint64_t)1 << 32 | 1};
    step(r, (struct mr_trainer_event){.type = MR_TE_STOP, .ticket = 7, .session = nobody});
    assert_int_equal(r->last[MR_TX_STOPPED].ticket, 7);
    assert_int_equal(r->last[MR_TX_STOPPED].err, MR_ENOENT);
    step(r, (struct mr_trainer_event){.type = MR_TE_FORGET, .ticket = 8, .session = nobody});
    assert_int_equal(r->last[MR_TX_FORGOTTEN].ticket, 8);
    assert_int_equal(r->last[MR_TX_FORGOTTEN].err, MR_ENOENT);
}

static void ended_sessions_are_bounded_by_the_bytes_of_their_documents(void **state)
{
    struct rig *r = *state;
    struct mr_trainer_config c;
    mr_trainer_free(&r->t);
    mr_trainer_config_default(&c);
    c.epoch = 1;
    c.ended_bytes_max = 2 * sizeof FEED;
    r->t = mr_trainer_new(&c);
    step(r, (struct mr_trainer_event){.type = MR_TE_RECOVERED});
    for (uint32_t i = 0; i < 4; i++) {
        (void)start(r, "", FEED);
        stop_it(r, true);
        step(r, (struct mr_trainer_event){
                    .type = MR_TE_JOB_SUBMITTED, .session = r->id, .err = MR_EINVAL});
        assert_int_equal(r->seen[MR_TX_DELETE], i > 1 ? i - 1 : 0);
        /* The text of the document is kept once, outside the parsed document. */
        assert_int_equal(mr_training_document_json(look(r).document).n, 0);
        assert_true(mr_trainer_document(r->t, r->id).n == sizeof FEED - 1);
    }
}

static void a_trainer_goes_on_from_its_records(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, ",\"stop\":{\"steps\":100}");
    char *record = mr_copy(r->record, r->record_bytes);
    size_t bytes = r->record_bytes;
    mr_training_id id = r->id;
    rig_end(r);
    /* A record that is cut short fails the session. */
    for (size_t cut = 0; cut <= bytes; cut += cut + 16 < bytes ? 16 : 1) {
        memset(r, 0, sizeof *r);
        struct mr_trainer_config config;
        mr_trainer_config_default(&config);
        config.epoch = 2;
        r->t = mr_trainer_new(&config);
        mr_trainer_effects_init(&r->fx);
        r->id = id;
        r->ticket = 1000;
        struct mr_trainer_event ev = {
            .type = MR_TE_RECORD, .session = id, .text = mr_str_of(record, cut)};
        assert_int_equal(mr_training_document_parse(
                             MR_STR("{" MODEL ",\"stop\":{\"steps\":100}}"), &ev.document, NULL),
            MR_OK);
        step(r, ev);
        step(r, (struct mr_trainer_event){.type = MR_TE_RECOVERED});
        assert_int_equal(look(r).state, cut < bytes ? MR_TRAINING_FAILED : MR_TRAINING_RUNNING);
        if (cut < bytes) rig_end(r);
    }
    mr_release(record);
    assert_int_equal(r->seen[MR_TX_FOLLOW], 1);
    struct mr_training_report p = {.version = 100};
    assert_int_equal(report(r, MR_TRAINING_PS, 0, c.ps, p), MR_OK);
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
}

static void a_role_joins_when_its_job_is_known_and_its_own(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    /* The join waits, because the trainer does not know the session's job yet. */
    assert_int_equal(join(r, MR_TRAINING_PS, 0, "j1-2/0/1"), 0);
    assert_int_equal(r->seen[MR_TX_JOINED], 0);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    assert_int_equal(r->seen[MR_TX_JOINED], 1);
    assert_false(r->last[MR_TX_JOINED].err || r->last[MR_TX_JOINED].joined.formed);
    static const char *const strange[] = {"j1-3/0/1", "j2-2/0/1", "j1-2", "x/0/1", ""};
    for (size_t i = 0; i < MR_ARRAY_LEN(strange); i++) {
        assert_int_equal(join(r, MR_TRAINING_PS, 0, strange[i]), 0);
        assert_int_equal(r->last[MR_TX_JOINED].err, MR_ESTATE);
        assert_non_null(strstr(r->text, "ps 0: task "));
        assert_non_null(strstr(r->text, "the session's roles are tasks of job j1-2"));
    }
    assert_true(join(r, MR_TRAINING_PS, 0, "j1-2/0/1") > 0);
}

static void ids_are_read_as_they_are_written(void **state)
{
    (void)state;
    mr_training_id id = {(uint64_t)3 << 32 | 17}, back;
    char text[MR_TRAINING_ID_TEXT_MAX];
    mr_trainer_id_format(id, text);
    assert_string_equal(text, "t3-17");
    assert_int_equal(mr_trainer_id_parse(mr_str(text), &back), MR_OK);
    assert_true(back.v == id.v);
    assert_int_equal(mr_trainer_id_parse(MR_STR("t10-4294967295"), &back), MR_OK);
    assert_true(back.v == ((uint64_t)10 << 32 | UINT32_MAX));
    static const char *const bad[] = {"", "t", "t1", "t1-", "t-1", "j1-1", "t01-1", "t1-1 ",
        "t1-2-3", "t4294967296-1", "t12-", "t1234", "t1-01", "t1-4294967296"};
    for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++)
        assert_int_equal(mr_trainer_id_parse(mr_str(bad[i]), &back), MR_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_session_goes_from_start_to_a_kept_model),
        TEST(a_gang_that_is_not_there_in_time_fails_by_name),
        TEST(a_role_joins_when_its_job_is_known_and_its_own),
        TEST(a_request_id_means_one_session),
        TEST(two_live_sessions_do_not_share_a_channel),
        TEST(nothing_is_told_before_redis_has_it),
        TEST(a_start_that_redis_does_not_take_is_unavailable),
        TEST(a_barrier_opens_for_all_or_says_why_not),
        TEST(foreign_roles_get_their_environment_and_end_by_themselves),
        TEST(slow_steps_have_a_speed),
        TEST(ended_sessions_are_forgotten_oldest_first),
        TEST(what_is_asked_of_no_session_is_refused),
        TEST(ended_sessions_are_bounded_by_the_bytes_of_their_documents),
        TEST(a_trainer_goes_on_from_its_records),
        cmocka_unit_test(ids_are_read_as_they_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
