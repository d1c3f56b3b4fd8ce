/* The trainer's core: the requests of clients to start, to stop and to forget sessions; the
 * answers; and what watchers of sessions are told. */
#include "tests/unit/trainer/rig.h"

static int forget(struct rig *r)
{
    step(r,
        (struct mr_trainer_event){.type = MR_TE_FORGET, .ticket = ++r->ticket, .session = r->id});
    return r->last[MR_TX_FORGOTTEN].err;
}

static void acked(struct rig *r)
{
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_ACKED, .sequence = r->sequence});
}

/* Abandons the session. Then the scheduler refuses the job of the roles, so the session has no job
 * that runs. */
static void end(struct rig *r)
{
    stop_it(r, true);
    step(r, (struct mr_trainer_event){
                .type = MR_TE_JOB_SUBMITTED, .session = r->id, .roles = true, .err = MR_EINVAL});
}

static void gone(struct rig *r, uint64_t ticket)
{
    step(r, (struct mr_trainer_event){.type = MR_TE_GONE, .ticket = ticket});
}

/* ---- start ----------------------------------------------------------------------------------- */

static void each_request_id_has_its_own_session(void **state)
{
    struct rig *r = *state;
    char longest[MR_TRAINING_REQUEST_ID_BYTES_MAX + 2];
    memset(longest, 'a', sizeof longest);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(start(r, longest, "{" MODEL "}"), MR_EINVAL);
    says(mr_str(r->text), "request_id: at most 256 bytes");
    assert_int_equal(mr_trainer_older(r->t, (mr_training_id){0}).v, 0);
    longest[MR_TRAINING_REQUEST_ID_BYTES_MAX] = 0;
    const char *const requests[] = {"a", "b", "", "", longest};
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(start(r, requests[i], "{" MODEL "}"), MR_OK);
        assert_int_equal(r->last[MR_TX_STARTED].ticket, r->ticket);
        assert_false(r->last[MR_TX_STARTED].existed);
        assert_true(r->id.v == ((uint64_t)1 << 32 | (i + 1)));
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(start(r, requests[i], "{" MODEL "}"), MR_OK);
        assert_true(r->last[MR_TX_STARTED].existed);
        assert_true(r->id.v == ((uint64_t)1 << 32 | (i + 1)));
    }
}

/* Redis has not acknowledged the delete yet, so the second start with this request id waits. */
static void the_request_id_of_a_forgotten_session_is_free(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "a", "{" MODEL "}"), MR_OK);
    end(r);
    uint64_t first = r->id.v;
    r->holds = true;
    assert_int_equal(forget(r), MR_OK);
    (void)start(r, "a", "{" MODEL "}");
    assert_int_equal(r->seen[MR_TX_STARTED], 1);
    acked(r);
    assert_int_equal(r->seen[MR_TX_STARTED], 2);
    assert_false(r->last[MR_TX_STARTED].existed);
    assert_true(r->id.v > first);
}

static void so_many_sessions_live_at_a_time_and_no_more(void **state)
{
    struct rig *r = *state;
    struct mr_trainer_config c;
    mr_trainer_free(&r->t);
    mr_trainer_free(&r->t); /* does nothing: the pointer is NULL */
    mr_trainer_config_default(&c);
    c.epoch = 3;
    c.live_max = 2;
    r->t = mr_trainer_new(&c);
    step(r, (struct mr_trainer_event){.type = MR_TE_RECOVERED});
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_ELIMIT);
    says(mr_str(r->text), "2 sessions have not ended yet");
    end(r);
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    char id[MR_TRAINING_ID_TEXT_MAX];
    mr_trainer_id_format(r->id, id);
    assert_string_equal(id, "t3-3");
}

static void a_channel_is_taken_by_any_session_that_lives(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    assert_int_equal(start(r, "", "{" MODEL ",\"channel\":\"c\"}"), MR_OK);
    assert_int_equal(start(r, "", "{" MODEL ",\"channel\":\"c\"}"), MR_EEXIST);
    assert_int_equal(start(r, "", "{" MODEL ",\"channel\":\"t1-1.scores\"}"), MR_EEXIST);
    assert_int_equal(start(r, "", "{" MODEL ",\"channel\":\"d\"}"), MR_OK);
}

/* A channel that the document names may have entries of earlier sessions, so the session reads from
 * the channel's end. The session's default channel is empty. */
static void a_channel_is_followed_from_its_end(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    assert_int_equal(r->seen[MR_TX_LOCATE], 0);
    assert_int_equal(r->seen[MR_TX_FOLLOW], 1);
    assert_string_equal(r->channel, "t1-1.scores");
    assert_string_equal(r->text, "");
    assert_int_equal(start(r, "", "{" MODEL ",\"channel\":\"c\"}"), MR_OK);
    assert_int_equal(r->seen[MR_TX_LOCATE], 1);
    assert_int_equal(r->seen[MR_TX_FOLLOW], 1);
    assert_string_equal(r->channel, "c");
    struct mr_trainer_event ev = {.type = MR_TE_LOCATED, .channel = MR_STR("c")};
    static const char *const wrong[] = {"x", "1x-1", "1-1-1", "12:1"};
    for (size_t i = 0; i < MR_ARRAY_LEN(wrong); i++) {
        ev.entry = mr_str(wrong[i]);
        step(r, ev);
        assert_int_equal(r->seen[MR_TX_FOLLOW], 1);
    }
    ev.entry = MR_STR("7-0");
    step(r, ev);
    assert_int_equal(r->seen[MR_TX_FOLLOW], 2);
    assert_string_equal(r->text, "7-0");
    stop_it(r, true);
    assert_int_equal(r->seen[MR_TX_UNFOLLOW], 1);
    assert_string_equal(r->channel, "c");
}

/* ---- stop and forget ------------------------------------------------------------------------- */

/* Nothing has to be written, so the answer does not wait for Redis. */
static void a_stop_of_an_ended_session_is_answered_at_once(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    end(r);
    r->holds = true;
    uint32_t stopped = r->seen[MR_TX_STOPPED], writes = r->seen[MR_TX_WRITE];
    stop_it(r, false);
    assert_int_equal(r->seen[MR_TX_STOPPED], stopped + 1);
    assert_int_equal(r->seen[MR_TX_WRITE], writes);
    assert_true(r->last[MR_TX_STOPPED].session.v == r->id.v);
}

static void the_end_is_shown_when_redis_has_it(void **state)
{
    struct rig *r = *state;
    (void)run(r, "");
    uint64_t change = look(r).change;
    r->holds = true;
    stop_it(r, true);
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    assert_int_equal(look(r).reason.n, 0);
    assert_int_equal(look(r).ended_ns, 0);
    assert_int_equal(look(r).change, change);
    assert_int_equal(forget(r), MR_ESTATE);
    uint32_t changed = r->seen[MR_TX_CHANGED];
    acked(r);
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
    says(look(r).reason, "abandoned: a client asked for it");
    assert_int_equal(look(r).change, change + 1);
    assert_int_equal(r->seen[MR_TX_CHANGED], changed + 1);
    assert_true(r->last[MR_TX_CHANGED].session.v == r->id.v);
    assert_int_equal(r->last[MR_TX_CHANGED].change, change + 1);
}

static void all_calls_that_wait_for_a_write_are_answered_by_it(void **state)
{
    struct rig *r = *state;
    (void)run(r, "");
    r->holds = true;
    stop_it(r, false); /* this write is under way: the next calls wait for another write */
    uint64_t first = r->sequence;
    for (uint32_t i = 0; i < 3; i++)
        stop_it(r, false);
    assert_int_equal(r->seen[MR_TX_STOPPED], 0);
    acked(r);
    assert_int_equal(r->seen[MR_TX_STOPPED], 1);
    assert_int_equal(r->sequence, first + 1);
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_AWAY});
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_BACK});
    assert_int_equal(r->sequence, first + 2); /* Redis may have lost the write that was under way */
    acked(r);
    assert_int_equal(r->seen[MR_TX_STOPPED], 4);
    uint32_t writes = r->seen[MR_TX_WRITE];
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_AWAY});
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_BACK});
    assert_int_equal(r->seen[MR_TX_WRITE], writes); /* Redis lacks nothing */
}

static void only_the_call_whose_caller_has_gone_is_not_answered(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    (void)run(r, "");
    r->holds = true;
    for (uint32_t i = 0; i < 3; i++)
        stop_it(r, false);
    gone(r, r->ticket - 1);
    gone(r, 999);
    acked(r);
    acked(r);
    assert_int_equal(r->seen[MR_TX_STOPPED], 2);
    assert_int_equal(r->last[MR_TX_STOPPED].ticket, r->ticket);
}

static void a_session_is_forgotten_although_the_caller_has_gone(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    end(r);
    r->holds = true;
    (void)forget(r);
    assert_int_equal(r->seen[MR_TX_DELETE], 1);
    assert_true(r->last[MR_TX_DELETE].session.v == r->id.v);
    struct mr_training_info info;
    assert_int_equal(mr_trainer_info(r->t, r->id, &info), MR_ENOENT);
    assert_int_equal(forget(r), MR_ENOENT); /* the delete is under way already */
    stop_it(r, false);
    assert_int_equal(r->last[MR_TX_STOPPED].err, MR_ENOENT);
    uint32_t forgotten = r->seen[MR_TX_FORGOTTEN];
    gone(r, r->ticket - 2);
    acked(r);
    assert_int_equal(r->seen[MR_TX_FORGOTTEN], forgotten);
}

/* The session keeps its parsed document as long as a job may need it. */
static void a_document_is_kept_until_the_jobs_have_ended(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", FEED), MR_OK);
    step(r, (struct mr_trainer_event){
                .type = MR_TE_JOB_SUBMITTED, .session = r->id, .job = mr_job_id_make(1, 1)});
    stop_it(r, true);
    assert_true(mr_training_document_json(look(r).document).n > 0);
    step(r, (struct mr_trainer_event){.type = MR_TE_JOB_CANCELLED, .session = r->id});
    assert_int_equal(mr_training_document_json(look(r).document).n, 0);
    assert_true(mr_str_eq(mr_trainer_document(r->t, r->id), MR_STR(FEED)));
}

/* ---- watchers -------------------------------------------------------------------------------- */

static void each_change_of_a_session_has_a_number(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", FEED), MR_OK);
    assert_int_equal(r->seen[MR_TX_CHANGED], 1);
    assert_int_equal(r->last[MR_TX_CHANGED].change, 1);
    job(r, false, MR_TRAINING_JOB_DONE, "");
    assert_int_equal(look(r).state, MR_TRAINING_FORMING);
    /* one change was the id of the job, and one was the state */
    assert_int_equal(look(r).change, 3);
    assert_int_equal(r->seen[MR_TX_CHANGED], 3);
}

static void progress_is_told_twice_a_second_at_most(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    tick(r, MR_SECOND);
    uint32_t changed = r->seen[MR_TX_CHANGED];
    const struct mr_training_report w = {.counters = {.steps = 1}};
    for (uint32_t i = 0; i < 3; i++) {
        (void)report(r, MR_TRAINING_WORKER, 0, c.worker, w);
        assert_int_equal(r->seen[MR_TX_CHANGED], changed + 1);
        assert_int_equal(r->last[MR_TX_CHANGED].change, 0);
        tick(r, 100 * MR_MS);
    }
    assert_int_equal(mr_trainer_deadline(r->t), r->now + 200 * MR_MS);
    tick(r, 200 * MR_MS);
    assert_int_equal(r->seen[MR_TX_CHANGED], changed + 2);
    tick(r, 600 * MR_MS); /* no report came in this time */
    assert_int_equal(r->seen[MR_TX_CHANGED], changed + 2);
    score(r, "t1-1.scores", 1, "{\"accuracy\":0.5}");
    assert_int_equal(r->seen[MR_TX_CHANGED], changed + 3);
    assert_int_equal(r->last[MR_TX_CHANGED].change, 0);
}

static void every_session_has_its_own_time(void **state)
{
    struct rig *r = *state;
    mr_training_id sessions[3];
    for (uint32_t i = 0; i < 3; i++) {
        char json[2048];
        (void)snprintf(
            json, sizeof json, "{" MODEL ",\"limits\":{\"forming_s\":%u}}", i == 1 ? 9 : 5);
        assert_int_equal(start(r, "", json), MR_OK);
        job(r, true, MR_TRAINING_JOB_GOES_ON, "");
        sessions[i] = r->id;
    }
    tick(r, 5 * MR_SECOND);
    for (uint32_t i = 0; i < 3; i++) {
        r->id = sessions[i];
        assert_int_equal(look(r).state, i == 1 ? MR_TRAINING_FORMING : MR_TRAINING_FAILED);
    }
    tick(r, 4 * MR_SECOND);
    r->id = sessions[1];
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
}

/* Redis gives the records in any order. */
static void sessions_are_listed_newest_first_whatever_order_they_were_read_in(void **state)
{
    static const uint64_t order[] = {5, 9, 2, 7};
    struct rig *r = *state;
    struct mr_trainer_config c;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    mr_trainer_config_default(&c);
    struct mr_trainer *t = mr_trainer_new(&c);
    for (size_t i = 0; i < MR_ARRAY_LEN(order); i++) {
        struct mr_trainer_event ev = {.type = MR_TE_RECORD,
            .session = {order[i]},
            .text = mr_str_of(r->record, r->record_bytes)};
        assert_int_equal(
            mr_training_document_parse(MR_STR("{" MODEL "}"), &ev.document, NULL), MR_OK);
        mr_trainer_step(t, r->now, &ev, &r->fx);
    }
    mr_training_id id = {0};
    static const uint64_t newest[] = {9, 7, 5, 2, 0};
    for (size_t i = 0; i < MR_ARRAY_LEN(newest); i++) {
        id = mr_trainer_older(t, id);
        assert_int_equal(id.v, newest[i]);
    }
    mr_trainer_free(&t);
}

/* ---- texts ----------------------------------------------------------------------------------- */

/* No text is cut inside a character, because answers to clients must be valid UTF-8. */
static void long_texts_are_cut_between_characters(void **state)
{
    struct rig *r = *state;
    char text[3001] = "";
    for (size_t i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 2);
    struct cast c = run(r, "");
    const struct mr_training_report f = {.failure = mr_str(text)};
    /* The core puts "worker 0: " in front of the text: 10 bytes. */
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, f);
    assert_int_equal(look(r).reason.n, 1024);
    struct mr_training_report odd = {.failure = mr_str(text)};
    rig_end(r);
    rig_begin(r);
    c = run(r, "");
    text[0] = 'a';
    text[1] = 'b';
    text[2] = 'c';
    memmove(text + 3, text + 4, sizeof text - 4);
    odd.failure = mr_str(text);
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, odd);
    assert_int_equal(look(r).reason.n, 1023);
    assert_int_equal((unsigned char)look(r).reason.p[1022], 0xa9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_request_id_has_its_own_session),
        TEST(the_request_id_of_a_forgotten_session_is_free),
        TEST(so_many_sessions_live_at_a_time_and_no_more),
        TEST(a_channel_is_taken_by_any_session_that_lives),
        TEST(a_channel_is_followed_from_its_end),
        TEST(a_stop_of_an_ended_session_is_answered_at_once),
        TEST(the_end_is_shown_when_redis_has_it),
        TEST(all_calls_that_wait_for_a_write_are_answered_by_it),
        TEST(only_the_call_whose_caller_has_gone_is_not_answered),
        TEST(a_session_is_forgotten_although_the_caller_has_gone),
        TEST(a_document_is_kept_until_the_jobs_have_ended),
        TEST(each_change_of_a_session_has_a_number),
        TEST(progress_is_told_twice_a_second_at_most),
        TEST(every_session_has_its_own_time),
        TEST(sessions_are_listed_newest_first_whatever_order_they_were_read_in),
        TEST(long_texts_are_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
