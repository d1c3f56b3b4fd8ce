/* The trainer's core: the jobs of a session: when each job is submitted, polled and cancelled, and
 * what the end of a job means for the session. */
#include "tests/unit/trainer/rig.h"

enum which { GRAPH, ROLES, FEED_JOB };

static const mr_job_id ids[] = {{(uint64_t)1 << 32 | 1}, {(uint64_t)1 << 32 | 2}, {77}};

static void submitted(struct rig *r, enum which which, int err, const char *why)
{
    step(r, (struct mr_trainer_event){.type = MR_TE_JOB_SUBMITTED,
                .session = r->id,
                .roles = which == ROLES,
                .feed = which == FEED_JOB,
                .job = err ? (mr_job_id){0} : ids[which],
                .err = err,
                .text = mr_str(why)});
}

static void told(struct rig *r, enum which which, enum mr_training_job_state state, const char *why)
{
    step(r, (struct mr_trainer_event){.type = MR_TE_JOB_STATE,
                .session = r->id,
                .roles = which == ROLES,
                .feed = which == FEED_JOB,
                .job_state = state,
                .text = mr_str(why)});
}

static void cancelled(struct rig *r, enum which which, int err)
{
    step(r, (struct mr_trainer_event){.type = MR_TE_JOB_CANCELLED,
                .session = r->id,
                .roles = which == ROLES,
                .feed = which == FEED_JOB,
                .err = err});
}

static int forget(struct rig *r)
{
    step(r,
        (struct mr_trainer_event){.type = MR_TE_FORGET, .ticket = ++r->ticket, .session = r->id});
    return r->last[MR_TX_FORGOTTEN].err;
}

/* Starts a session and submits its feed. The scheduler has not answered the submission yet. */
static struct cast run_with_a_feed(struct rig *r)
{
    struct cast c;
    assert_int_equal(start(r, "", FEED), MR_OK);
    submitted(r, GRAPH, MR_OK, "");
    told(r, GRAPH, MR_TRAINING_JOB_DONE, "");
    submitted(r, ROLES, MR_OK, "");
    c.ps = join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
    c.worker = join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1");
    c.scorer = join(r, MR_TRAINING_SCORER, 0, "j1-2/2/1");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    assert_true(r->last[MR_TX_JOB_SUBMIT].feed && !r->last[MR_TX_JOB_SUBMIT].roles);
    return c;
}

static void what_redis_never_had_is_not_submitted_after_its_end(void **state)
{
    struct rig *r = *state;
    r->holds = true;
    struct mr_trainer_event ev = {.type = MR_TE_START, .ticket = ++r->ticket};
    assert_int_equal(mr_training_document_parse(MR_STR(FEED), &ev.document, NULL), MR_OK);
    step(r, ev);
    r->id = r->last[MR_TX_WRITE].session;
    stop_it(r, true);
    r->holds = false;
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_ACKED, .sequence = r->sequence});
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
    tick(r, MR_SECOND);
    assert_int_equal(r->seen[MR_TX_JOB_SUBMIT], 0);
    assert_int_equal(mr_trainer_deadline(r->t), MR_NEVER);
    assert_int_equal(forget(r), MR_OK);
    assert_int_equal(r->seen[MR_TX_JOB_FORGET], 0);
}

static void a_graph_that_was_not_answered_is_submitted_again_after_a_pause(void **state)
{
    static const int away[] = {MR_EAWAY, MR_EAGAIN, MR_ETIMEOUT};
    struct rig *r = *state;
    assert_int_equal(start(r, "", FEED), MR_OK);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(r->seen[MR_TX_JOB_SUBMIT], 1 + i);
        assert_true(!r->last[MR_TX_JOB_SUBMIT].roles && !r->last[MR_TX_JOB_SUBMIT].feed);
        submitted(r, GRAPH, away[i], "");
        assert_int_equal(mr_trainer_deadline(r->t), r->now + MR_SECOND);
        tick(r, MR_SECOND - 1);
        assert_int_equal(r->seen[MR_TX_JOB_SUBMIT], 1 + i);
        tick(r, 1);
    }
    stop_it(r, true);
    assert_int_equal(forget(r), MR_EAWAY); /* the scheduler may have the job */
    submitted(r, GRAPH, MR_EINVAL, "no such op");
    assert_true(r->last[MR_TX_FORGOTTEN].err && !forget(r));
}

static void a_graph_is_polled_until_it_ends(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", FEED), MR_OK);
    submitted(r, GRAPH, MR_OK, "");
    assert_int_equal(r->seen[MR_TX_JOB_POLL], 1);
    assert_true(r->last[MR_TX_JOB_POLL].job.v == ids[GRAPH].v);
    assert_true(r->last[MR_TX_JOB_POLL].session.v == r->id.v);
    told(r, GRAPH, MR_TRAINING_JOB_GOES_ON, "");
    assert_int_equal(mr_trainer_deadline(r->t), r->now + MR_SECOND);
    tick(r, MR_SECOND);
    assert_int_equal(r->seen[MR_TX_JOB_POLL], 2);
    told(r, GRAPH, MR_TRAINING_JOB_DONE, "");
    assert_int_equal(look(r).state, MR_TRAINING_FORMING);
    assert_true(r->last[MR_TX_JOB_SUBMIT].roles);
    told(r, GRAPH, MR_TRAINING_JOB_FAILED, "too late"); /* too late: the graph's job has ended */
    assert_int_equal(look(r).state, MR_TRAINING_FORMING);
    submitted(r, ROLES, MR_OK, "");
    step(r, (struct mr_trainer_event){.type = MR_TE_JOB_SUBMITTED,
                .session = r->id,
                .roles = true,
                .job = {99}}); /* a second answer */
    assert_true(look(r).role_job.v == ids[ROLES].v);
    assert_true(look(r).graph_job.v == ids[GRAPH].v);
}

static void a_graph_that_takes_too_long_fails_the_session(void **state)
{
    struct rig *r = *state;
    char json[2048];
    (void)snprintf(
        json, sizeof json, "%.*s,\"limits\":{\"preparing_s\":5}}", (int)strlen(FEED) - 1, FEED);
    assert_int_equal(start(r, "", json), MR_OK);
    submitted(r, GRAPH, MR_OK, "");
    tick(r, 5 * MR_SECOND);
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
    assert_true(mr_str_eq(look(r).reason,
        MR_STR("preparing its data took longer than 5 s: waited for the graph's job")));
    assert_true(r->last[MR_TX_JOB_CANCEL].job.v == ids[GRAPH].v);
    cancelled(r, GRAPH, MR_OK);
    assert_int_equal(forget(r), MR_OK);
    assert_int_equal(r->seen[MR_TX_JOB_FORGET], 1);
    struct mr_trainer_effect x = r->last[MR_TX_JOB_FORGET];
    assert_true(x.job.v == ids[GRAPH].v && x.session.v == r->id.v && !x.roles && !x.feed);
}

/* Lists the ways in which a job ends without success, and the reasons that a user reads. */
static void the_end_of_a_job_that_is_needed_fails_the_session(void **state)
{
    static const struct {
        enum which job;
        enum mr_training_job_state state;
        const char *why, *reason;
    } ends[] = {
        {ROLES, MR_TRAINING_JOB_FAILED, "x", "the job of its roles failed: x"},
        {ROLES, MR_TRAINING_JOB_CANCELLED, "by me", "the job of its roles was cancelled: by me"},
        {ROLES, MR_TRAINING_JOB_UNKNOWN, "", "the job of its roles is not known any more"},
        {ROLES, MR_TRAINING_JOB_DONE, "", "all roles ended by themselves"},
        {FEED_JOB, MR_TRAINING_JOB_FAILED, "y", "the job that feeds its queue failed: y"},
    };
    struct rig *r = *state;
    for (size_t i = 0; i < MR_ARRAY_LEN(ends); i++) {
        (void)run_with_a_feed(r);
        submitted(r, FEED_JOB, MR_OK, "");
        told(r, ends[i].job, ends[i].state, ends[i].why);
        assert_int_equal(look(r).state, MR_TRAINING_FAILED);
        assert_true(mr_str_eq(look(r).reason, mr_str(ends[i].reason)));
        rig_end(r);
        rig_begin(r);
    }
}

static void a_feed_that_has_ended_is_recorded(void **state)
{
    struct rig *r = *state;
    (void)run_with_a_feed(r);
    submitted(r, FEED_JOB, MR_OK, "");
    uint32_t writes = r->seen[MR_TX_WRITE], polls = r->seen[MR_TX_JOB_POLL];
    told(r, FEED_JOB, MR_TRAINING_JOB_DONE, "");
    /* The record says that the feed has ended, so a restart does not poll the feed's job. */
    assert_int_equal(r->seen[MR_TX_WRITE], writes + 1);
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    stop_it(r, false);
    assert_int_equal(r->seen[MR_TX_JOB_CANCEL], 0);
    assert_int_equal(r->seen[MR_TX_JOB_POLL], polls);
}

static void a_feed_that_is_refused_fails_a_session_that_needs_it(void **state)
{
    struct rig *r = *state;
    (void)run_with_a_feed(r);
    stop_it(r, false);
    submitted(r, FEED_JOB, MR_EINVAL, "no");
    /* A session that stops does not need the feed. */
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    rig_end(r);
    rig_begin(r);
    (void)run_with_a_feed(r);
    submitted(r, FEED_JOB, MR_EINVAL, "no");
    assert_true(mr_str_eq(look(r).reason, MR_STR("the job that feeds its queue was refused: no")));
}

static void a_feed_that_fails_while_it_is_cancelled_fails_nothing(void **state)
{
    struct rig *r = *state;
    (void)run_with_a_feed(r);
    submitted(r, FEED_JOB, MR_OK, "");
    stop_it(r, false);
    assert_true(r->last[MR_TX_JOB_CANCEL].feed);
    assert_true(r->last[MR_TX_JOB_CANCEL].job.v == ids[FEED_JOB].v);
    told(r, FEED_JOB, MR_TRAINING_JOB_FAILED, "the queue is closed");
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
}

/* A waiting join can be answered when the job of the roles is submitted. The submission of another
 * job, here the feed's, must not answer the join. */
static void the_answer_to_another_job_answers_no_join(void **state)
{
    struct rig *r = *state;
    (void)run_with_a_feed(r);
    r->holds = true;
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/2"); /* the join waits for Redis */
    uint32_t joined = r->seen[MR_TX_JOINED];
    submitted(r, FEED_JOB, MR_OK, "");
    assert_int_equal(r->seen[MR_TX_JOINED], joined);
}

static void all_roles_that_wait_are_told_when_their_job_is_known(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1");
    (void)join(r, MR_TRAINING_SCORER, 0, "j1-2/2/1");
    assert_int_equal(r->seen[MR_TX_JOINED], 0);
    submitted(r, ROLES, MR_OK, "");
    assert_int_equal(r->seen[MR_TX_JOINED], 3);
}

/* Roles end by themselves after the last report. The job of roles that do not end is cancelled. */
static void roles_that_do_not_end_are_cancelled(void **state)
{
    struct rig *r = *state;
    (void)start(r, "", "{\"roles\":{\"worker\":{\"exec\":[\"x\"]}},\"limits\":{\"stopping_s\":7}}");
    submitted(r, ROLES, MR_OK, "");
    uint64_t w = join(r, MR_TRAINING_WORKER, 0, "j1-2/0/1");
    const struct mr_training_report f = {.finished = true};
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, w, f), MR_OK);
    assert_int_equal(look(r).state, MR_TRAINING_DONE);
    assert_int_equal(mr_trainer_deadline(r->t), r->now + 7 * MR_SECOND);
    tick(r, 7 * MR_SECOND - 1);
    assert_int_equal(r->seen[MR_TX_JOB_CANCEL], 0);
    tick(r, 1);
    assert_int_equal(r->seen[MR_TX_JOB_CANCEL], 1);
    assert_true(r->last[MR_TX_JOB_CANCEL].roles);
    cancelled(r, ROLES, MR_OK);
    assert_int_equal(look(r).state, MR_TRAINING_DONE);
    assert_int_equal(mr_trainer_deadline(r->t), MR_NEVER);
    assert_int_equal(forget(r), MR_OK);
    assert_true(r->last[MR_TX_JOB_FORGET].roles && !r->last[MR_TX_JOB_FORGET].feed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_roles_that_wait_are_told_when_their_job_is_known),
        TEST(what_redis_never_had_is_not_submitted_after_its_end),
        TEST(a_graph_that_was_not_answered_is_submitted_again_after_a_pause),
        TEST(a_graph_is_polled_until_it_ends),
        TEST(a_graph_that_takes_too_long_fails_the_session),
        TEST(the_end_of_a_job_that_is_needed_fails_the_session),
        TEST(a_feed_that_has_ended_is_recorded),
        TEST(a_feed_that_is_refused_fails_a_session_that_needs_it),
        TEST(a_feed_that_fails_while_it_is_cancelled_fails_nothing),
        TEST(the_answer_to_another_job_answers_no_join),
        TEST(roles_that_do_not_end_are_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
