/* The trainer's core: when a session stops; and when its feed, the job that fills the session's
 * queue, is submitted and cancelled. */
#include "tests/unit/trainer/rig.h"

static void a_threshold_and_only_a_newer_score_stops(void **state)
{
    struct rig *r = *state;
    (void)run(r, ",\"stop\":{\"threshold\":{\"field\":\"cross_entropy\",\"below\":0.12}}");
    score(r, "t1-1.scores", 1, "{\"cross_entropy\": 0.12}");
    score(r, "t1-1.scores", 2, "{\"other\": 0.01}");
    score(r, "another", 3, "{\"cross_entropy\": 0.01}");
    score(r, "t1-1.scores", 1, "{\"cross_entropy\": 0.01}");
    score(r, "t1-1.scores", 4, "no JSON");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    score(r, "t1-1.scores", 5, "{\"cross_entropy\": 0.119}");
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    says(look(r).reason, "cross_entropy is 0.119, below 0.12");
}

static void patience_ends_after_so_many_scores_without_a_gain(void **state)
{
    struct rig *r = *state;
    (void)run(r, ",\"stop\":{\"patience\":{\"field\":\"accuracy\",\"scores\":2,\"min_delta\":0.1,"
                 "\"mode\":\"max\"}}");
    score(r, "t1-1.scores", 1, "{\"accuracy\": 0.5}");
    score(r, "t1-1.scores", 2, "{\"accuracy\": 0.55}");
    score(r, "t1-1.scores", 3, "{\"accuracy\": 0.7}");
    score(r, "t1-1.scores", 4, "{\"accuracy\": 0.75}");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    score(r, "t1-1.scores", 5, "{\"accuracy\": 0.6}");
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
}

static void patience_ends_with_scores_that_ran_away(void **state)
{
    struct rig *r = *state;
    (void)run(r, ",\"stop\":{\"patience\":{\"field\":\"accuracy\",\"scores\":2}}");
    score(r, "t1-1.scores", 1, "{\"b\": \"NaN\"}");
    score(r, "t1-1.scores", 2, "{\"accuracy\": \"NaN\"}");
    score(r, "t1-1.scores", 3, "{\"accuracy\": 0.5}");
    score(r, "t1-1.scores", 4, "{\"accuracy\": \"Infinity\"}");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    score(r, "t1-1.scores", 5, "{\"accuracy\": \"NaN\"}");
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    says(look(r).reason, "accuracy was not better than 0.5 in 2 scores");
}

#define ABOUT_V ",\"stop\":{\"threshold\":{\"field\":\"v\",\"below\":1,\"channel\":\"v\"}}"

static void located(struct rig *r, const char *entry)
{
    assert_int_equal(r->last[MR_TX_LOCATE].channel_bytes, 1);
    step(r, (struct mr_trainer_event){
                .type = MR_TE_LOCATED, .channel = MR_STR("v"), .entry = mr_str(entry)});
}

static void what_another_channel_says_before_it_runs_does_not_stop_it(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL ABOUT_V "}"), MR_OK);
    /* A score counts only if it is newer than the last entry that channel "v" had before the
     * session. The core does not know that entry yet, so this score does not count. */
    score(r, "v", 1, "{\"v\": 0}");
    located(r, "5-1");
    assert_string_equal(r->text, "5-1");
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    score(r, "v", 2, "{\"v\": 0}");
    assert_int_equal(look(r).state, MR_TRAINING_FORMING);
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1");
    (void)join(r, MR_TRAINING_SCORER, 0, "j1-2/2/1");
    score(r, "v", 2, "{\"v\": 0}");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    score(r, "v", 3, "{\"v\": 0}");
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
}

static void a_channel_is_followed_from_the_first_that_anybody_has_not_seen(void **state)
{
    struct rig *r = *state;
    uint32_t own = 0;
    assert_int_equal(start(r, "", "{" MODEL ABOUT_V "}"), MR_OK);
    located(r, "5-1");
    own = r->seen[MR_TX_FOLLOW];
    assert_int_equal(start(r, "", "{" MODEL ABOUT_V "}"), MR_OK);
    located(r, "7-0");
    /* Channel "v" is followed already, so only the session's own channel is new. */
    assert_int_equal(r->seen[MR_TX_FOLLOW], own + 1);
    assert_int_equal(start(r, "", "{" MODEL ABOUT_V "}"), MR_OK);
    located(r, "3-9");
    assert_int_equal(r->seen[MR_TX_FOLLOW], own + 3);
    assert_string_equal(r->text, "3-9");
}

static void who_has_gone_is_not_answered(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/1"); /* the call waits until the other roles join */
    uint64_t gone = r->ticket;
    uint32_t answered = r->seen[MR_TX_JOINED];
    step(r, (struct mr_trainer_event){.type = MR_TE_GONE, .ticket = gone, .session = r->id});
    tick(r, 2 * MR_SECOND);
    assert_int_equal(r->seen[MR_TX_JOINED], answered);
    r->holds = true;
    stop_it(r, true);
    step(r, (struct mr_trainer_event){.type = MR_TE_GONE, .ticket = r->ticket, .session = r->id});
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_ACKED, .sequence = r->sequence});
    tick(r, 20 * MR_SECOND);
    assert_int_equal(r->seen[MR_TX_STOPPED], 0);
    /* The session stops although the caller has gone. */
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
}

static void a_session_that_is_stopped_before_it_ran_has_failed(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    step(r, (struct mr_trainer_event){.type = MR_TE_STOP,
                .ticket = ++r->ticket,
                .session = r->id,
                .text = MR_STR("no need")});
    assert_int_equal(r->last[MR_TX_STOPPED].err, MR_OK);
    assert_int_equal(r->last[MR_TX_STOPPED].ticket, r->ticket);
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
    says(look(r).reason, "stopped: no need, before it ran");
    assert_int_equal(look(r).started_ns, 0);
    assert_int_equal(look(r).ended_ns, WALL + r->now);
}

/* Three calls of Stop wait for Redis. Forgetting the session answers these calls at once. The call
 * that forgets the session waits until Redis has acknowledged the deletion. */
static void calls_that_wait_for_redis_are_answered_when_the_session_is_forgotten(void **state)
{
    struct rig *r = *state;
    (void)run(r, "");
    stop_it(r, true);
    r->holds = true;
    step(
        r, (struct mr_trainer_event){.type = MR_TE_JOB_CANCELLED, .session = r->id, .roles = true});
    uint32_t stopped = r->seen[MR_TX_STOPPED];
    for (uint32_t i = 0; i < 3; i++)
        stop_it(r, false);
    assert_int_equal(r->seen[MR_TX_STOPPED], stopped);
    step(r,
        (struct mr_trainer_event){.type = MR_TE_FORGET, .ticket = ++r->ticket, .session = r->id});
    assert_int_equal(r->seen[MR_TX_STOPPED], stopped + 3);
    assert_int_equal(r->last[MR_TX_STOPPED].ticket, r->ticket - 1);
    assert_int_equal(r->seen[MR_TX_FORGOTTEN], 0);
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_ACKED, .sequence = r->sequence});
    assert_int_equal(r->seen[MR_TX_FORGOTTEN], 1);
    assert_int_equal(r->last[MR_TX_FORGOTTEN].ticket, r->ticket);
}

static void so_many_calls_wait_for_a_session_and_no_more(void **state)
{
    struct rig *r = *state;
    (void)run(r, "");
    r->holds = true;
    uint32_t before = r->seen[MR_TX_STOPPED];
    for (uint32_t i = 0; i < 16; i++)
        stop_it(r, false);
    assert_int_equal(r->seen[MR_TX_STOPPED], before);
    stop_it(r, false);
    assert_int_equal(r->last[MR_TX_STOPPED].err, MR_ELIMIT);
    tick(r, 10 * MR_SECOND - 1);
    assert_int_equal(r->seen[MR_TX_STOPPED], before + 1);
    tick(r, 1);
    assert_int_equal(r->seen[MR_TX_STOPPED], before + 17);
    assert_int_equal(r->last[MR_TX_STOPPED].err, MR_EAWAY);
}

/* A trainer that restarts must know after which entry it goes on reading a channel, and which job
 * is the session's. */
static void what_a_restart_must_know_is_written_at_once(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL ABOUT_V "}"), MR_OK);
    uint32_t writes = r->seen[MR_TX_WRITE];
    located(r, "5-1");
    assert_int_equal(r->seen[MR_TX_WRITE], writes + 1);
    uint64_t change = look(r).change;
    step(r, (struct mr_trainer_event){.type = MR_TE_JOB_SUBMITTED,
                .session = r->id,
                .roles = true,
                .job = mr_job_id_make(1, 2)});
    assert_int_equal(r->seen[MR_TX_WRITE], writes + 2);
    assert_true(look(r).role_job.v == mr_job_id_make(1, 2).v);
    assert_int_equal(look(r).change, change + 1);
}

static void a_job_that_is_refused_is_no_job_of_the_session(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    step(r, (struct mr_trainer_event){.type = MR_TE_JOB_SUBMITTED,
                .session = r->id,
                .roles = true,
                .err = MR_EINVAL,
                .job = mr_job_id_make(1, 2),
                .text = MR_STR("no such op")});
    says(look(r).reason, "the job of its roles was refused: no such op");
    assert_int_equal(look(r).role_job.v, 0);
    step(r,
        (struct mr_trainer_event){.type = MR_TE_FORGET, .ticket = ++r->ticket, .session = r->id});
    assert_int_equal(r->last[MR_TX_FORGOTTEN].err, MR_OK);
    assert_int_equal(r->seen[MR_TX_JOB_FORGET], 0);
}

static void said(struct rig *r, const char *channel, const char *entry, const char *json)
{
    step(r, (struct mr_trainer_event){.type = MR_TE_ENTRY,
                .channel = mr_str(channel),
                .entry = mr_str(entry),
                .text = mr_str(json)});
}

/* Each channel has its own entry ids. */
static void an_entry_of_one_channel_makes_none_of_another_old(void **state)
{
    struct rig *r = *state;
    char json[2048];
    (void)snprintf(json, sizeof json, "{" MODEL "%s}", ABOUT_V);
    (void)start(r, "", json);
    located(r, "5-1");
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1");
    (void)join(r, MR_TRAINING_SCORER, 0, "j1-2/2/1");
    said(r, "v", "9-1", "{\"v\": 3}");
    said(r, "t1-1.scores", "8-1", "{\"accuracy\": 0.5}");
    says(look(r).score_json, "0.5");
    said(r, "t1-1.scores", "8-0", "{\"accuracy\": 0.6}");
    said(r, "t1-1.scores", "8", "{\"accuracy\": 0.6}");
    said(r, "t1-1.scores", "9x-0", "{\"accuracy\": 0.6}"); /* not an entry id */
    said(r, "t1-1.scores", "", "{\"accuracy\": 0.6}");
    says(look(r).score_json, "0.5");
    said(r, "v", "9-0", "{\"v\": 0}");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    stop_it(r, true);
    said(r, "t1-1.scores", "10-0", "{\"accuracy\": 0.7}");
    says(look(r).score_json, "0.5"); /* the score stays that of the time when the session ended */
}

/* Appends a score of `bytes` bytes with cross_entropy `n` to the session's channel. */
static void score_of(struct rig *r, unsigned n, size_t bytes)
{
    char *text = mr_alloc(bytes + 1);
    size_t at = (size_t)snprintf(text, bytes, "{\"cross_entropy\":%u,\"a\":[1", n);
    for (; at + 3 < bytes; at += 2)
        memcpy(text + at, ",1", 2);
    memset(text + at, ' ', bytes - at);
    memcpy(text + bytes - 2, "]}", 2);
    score(r, "t1-1.scores", n, text);
    mr_release(text);
}

static void a_large_score_is_judged_and_a_small_one_shown(void **state)
{
    struct rig *r = *state;
    (void)run(r, ",\"stop\":{\"threshold\":{\"field\":\"cross_entropy\",\"above\":3.5}}");
    score_of(r, 1, MR_TRAINING_SCORE_BYTES_MAX);
    assert_int_equal(look(r).score_json.n, MR_TRAINING_SCORE_BYTES_MAX);
    says(look(r).score_json, "{\"cross_entropy\":1,");
    score_of(r, 2, MR_TRAINING_SCORE_BYTES_MAX + 1);
    says(look(r).score_json, "{\"cross_entropy\":1,");
    score_of(r, 4, MR_TRAINING_ENTRY_BYTES_MAX + 1);
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    score_of(r, 5, MR_TRAINING_ENTRY_BYTES_MAX);
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    says(look(r).reason, "cross_entropy is 5, above 3.5");
}

/* The first session does not follow the channel "v"; the second and the third session do. */
static void a_channel_that_another_session_follows_is_followed_once(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    assert_int_equal(start(r, "", "{" MODEL ABOUT_V "}"), MR_OK);
    located(r, "5-1");
    mr_training_id second = r->id;
    uint32_t follows = r->seen[MR_TX_FOLLOW];
    assert_int_equal(start(r, "", "{" MODEL ABOUT_V "}"), MR_OK);
    located(r, "7-0");
    /* The third session adds only its own channel: "v" is followed already. */
    assert_int_equal(r->seen[MR_TX_FOLLOW], follows + 1);
    stop_it(r, true);
    /* Only the session's own channel is not followed any more: the other session still follows
     * "v". */
    assert_int_equal(r->seen[MR_TX_UNFOLLOW], 1);
    assert_string_equal(r->channel, "t1-3.scores");
    r->id = second;
    stop_it(r, true);
    assert_int_equal(r->seen[MR_TX_UNFOLLOW], 3);
    assert_string_equal(r->channel, "v");
}

static void time_counts_from_the_begin_of_the_work(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL ",\"stop\":{\"time_s\":2}}"), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
    /* The deadline is that of the next poll of the job, not that of time_s. */
    assert_int_equal(mr_trainer_deadline(r->t), r->now + MR_SECOND);
    for (uint32_t i = 0; i < 8; i++) {
        tick(r, 400 * MR_MS);
        (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
    }
    assert_int_equal(look(r).state, MR_TRAINING_FORMING);
}

static void feed_event(struct rig *r, enum mr_trainer_event_type type, int err)
{
    step(r,
        (struct mr_trainer_event){
            .type = type, .session = r->id, .feed = true, .err = err, .job = mr_job_id_make(1, 3)});
}

static void run_with_a_feed(struct rig *r)
{
    assert_int_equal(start(r, "", FEED), MR_OK);
    job(r, false, MR_TRAINING_JOB_DONE, "");
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1");
    /* The feed is submitted only when all roles have joined. */
    assert_false(r->last[MR_TX_JOB_SUBMIT].feed);
    (void)join(r, MR_TRAINING_SCORER, 0, "j1-2/2/1");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    assert_true(r->last[MR_TX_JOB_SUBMIT].feed);
}

static void a_feed_begins_with_running_and_is_cancelled_until_that_is_answered(void **state)
{
    struct rig *r = *state;
    run_with_a_feed(r);
    feed_event(r, MR_TE_JOB_SUBMITTED, MR_OK);
    assert_int_equal(r->seen[MR_TX_JOB_CANCEL], 0);
    stop_it(r, false);
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    for (uint32_t i = 1; i <= 3; i++) {
        assert_int_equal(r->seen[MR_TX_JOB_CANCEL], i);
        assert_true(r->last[MR_TX_JOB_CANCEL].feed);
        feed_event(r, MR_TE_JOB_CANCELLED, i == 1 ? MR_ETIMEOUT : i == 2 ? MR_EAWAY : MR_ENOENT);
        tick(r, 2 * MR_SECOND);
    }
    assert_int_equal(r->seen[MR_TX_JOB_CANCEL], 3);
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
}

static void a_feed_of_unknown_fate_is_found_and_cancelled_after_a_restart(void **state)
{
    struct rig *r = *state;
    struct rig next;
    run_with_a_feed(r);
    /* The scheduler has not answered the submission of the feed yet. */
    stop_it(r, true);
    feed_event(r, MR_TE_JOB_SUBMITTED, MR_ETIMEOUT);
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
    step(r,
        (struct mr_trainer_event){.type = MR_TE_FORGET, .ticket = ++r->ticket, .session = r->id});
    assert_int_equal(r->last[MR_TX_FORGOTTEN].err, MR_EAWAY);
    struct mr_trainer_config c;
    memset(&next, 0, sizeof next);
    mr_trainer_config_default(&c);
    c.epoch = 2;
    next.t = mr_trainer_new(&c);
    next.now = MR_SECOND;
    next.id = r->id;
    mr_trainer_effects_init(&next.fx);
    struct mr_trainer_event record = {
        .type = MR_TE_RECORD, .session = r->id, .text = mr_str_of(r->record, r->record_bytes)};
    assert_int_equal(mr_training_document_parse(MR_STR(FEED), &record.document, NULL), MR_OK);
    step(&next, record);
    step(&next, (struct mr_trainer_event){.type = MR_TE_RECOVERED});
    tick(&next, MR_MS);
    /* The feed is submitted again. If the scheduler has the feed's job already, it finds the job by
     * the request id and returns it. */
    assert_true(next.last[MR_TX_JOB_SUBMIT].feed);
    feed_event(&next, MR_TE_JOB_SUBMITTED, MR_OK);
    tick(&next, MR_MS);
    assert_true(next.last[MR_TX_JOB_CANCEL].feed);
    feed_event(&next, MR_TE_JOB_CANCELLED, MR_OK);
    step(&next, (struct mr_trainer_event){
                    .type = MR_TE_FORGET, .ticket = ++next.ticket, .session = next.id});
    assert_int_equal(next.last[MR_TX_FORGOTTEN].err, MR_OK);
    assert_true(next.last[MR_TX_JOB_FORGET].feed);
    rig_end(&next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_threshold_and_only_a_newer_score_stops),
        TEST(patience_ends_after_so_many_scores_without_a_gain),
        TEST(patience_ends_with_scores_that_ran_away),
        TEST(what_another_channel_says_before_it_runs_does_not_stop_it),
        TEST(a_channel_is_followed_from_the_first_that_anybody_has_not_seen),
        TEST(who_has_gone_is_not_answered),
        TEST(a_session_that_is_stopped_before_it_ran_has_failed),
        TEST(calls_that_wait_for_redis_are_answered_when_the_session_is_forgotten),
        TEST(so_many_calls_wait_for_a_session_and_no_more),
        TEST(what_a_restart_must_know_is_written_at_once),
        TEST(a_job_that_is_refused_is_no_job_of_the_session),
        TEST(a_feed_begins_with_running_and_is_cancelled_until_that_is_answered),
        TEST(a_feed_of_unknown_fate_is_found_and_cancelled_after_a_restart),
        TEST(an_entry_of_one_channel_makes_none_of_another_old),
        TEST(a_large_score_is_judged_and_a_small_one_shown),
        TEST(a_channel_that_another_session_follows_is_followed_once),
        TEST(time_counts_from_the_begin_of_the_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
