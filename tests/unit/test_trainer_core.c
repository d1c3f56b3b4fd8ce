/* Sessions one rule at a time: a rig with one core, and a Redis that acknowledges at once unless
 * the test says otherwise. */
#include "base/alloc.h"
#include "services/trainer/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SETS                                                                                       \
    "\"train\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"y\"}},"                                   \
    "\"validation\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"y\"}}"
#define MODEL                                                                                      \
    "\"model\":{\"input\":[4],\"layers\":[{\"type\":\"Dense\",\"units\":2}]},\"data\":{" SETS "}"
#define WALL 1700000000000000000u

struct rig {
    struct mr_trainer *t;
    struct mr_trainer_effects fx;
    mr_time now;
    uint64_t ticket;
    mr_training_id id;
    bool holds; /* Redis does not answer */
    uint64_t sequence;
    struct mr_trainer_effect last[32]; /* by type: the latest */
    uint32_t seen[32];
    char text[4096]; /* of the latest effect with an error, or a record */
    char record[65536];
    size_t record_bytes;
};

static void step(struct rig *r, struct mr_trainer_event ev)
{
    ev.wall_ns = WALL + r->now;
    mr_trainer_step(r->t, r->now, &ev, &r->fx);
    mr_trainer_check(r->t);
    uint64_t sequence = 0;
    for (size_t i = 0; i < mr_trainer_effects_count(&r->fx); i++) {
        const struct mr_trainer_effect *x = mr_trainer_effect_at(&r->fx, i);
        struct mr_str text = mr_trainer_effect_text(&r->fx, x);
        r->last[x->type] = *x;
        r->seen[x->type]++;
        if (x->err || x->type == MR_TX_FOLLOW)
            (void)snprintf(r->text, sizeof r->text, "%.*s", MR_STR_ARG(text));
        if (x->type == MR_TX_WRITE) memcpy(r->record, text.p, r->record_bytes = text.n);
        if (x->type == MR_TX_WRITE || x->type == MR_TX_DELETE) sequence = x->sequence;
        if (x->type == MR_TX_STARTED && !x->err) r->id = x->session;
    }
    mr_trainer_effects_clear(&r->fx);
    if (sequence) r->sequence = sequence;
    if (sequence && !r->holds)
        step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_ACKED, .sequence = sequence});
}

static void rig_begin(struct rig *r)
{
    struct mr_trainer_config c;
    memset(r, 0, sizeof *r);
    mr_trainer_config_default(&c);
    c.epoch = 1;
    c.ended_max = 2;
    r->t = mr_trainer_new(&c);
    r->now = MR_SECOND;
    mr_trainer_effects_init(&r->fx);
    step(r, (struct mr_trainer_event){.type = MR_TE_RECOVERED});
}

static void rig_end(struct rig *r)
{
    mr_trainer_free(&r->t);
    mr_trainer_effects_fini(&r->fx);
}

static int start(struct rig *r, const char *request, const char *json)
{
    struct mr_trainer_event ev = {
        .type = MR_TE_START, .ticket = ++r->ticket, .text = mr_str(request)};
    struct mr_error e = {0};
    if (mr_training_document_parse(mr_str(json), &ev.document, &e)) fail_msg("%s", e.text);
    step(r, ev);
    return r->last[MR_TX_STARTED].err;
}

static struct mr_training_info look(struct rig *r)
{
    struct mr_training_info info;
    assert_int_equal(mr_trainer_info(r->t, r->id, &info), MR_OK);
    return info;
}

static void job(struct rig *r, bool roles, enum mr_training_job_state state, const char *why)
{
    step(r, (struct mr_trainer_event){.type = MR_TE_JOB_SUBMITTED,
                .session = r->id,
                .roles = roles,
                .job = mr_job_id_make(1, 1 + roles)});
    step(r, (struct mr_trainer_event){.type = MR_TE_JOB_STATE,
                .session = r->id,
                .roles = roles,
                .job_state = state,
                .text = mr_str(why)});
}

static uint64_t join(struct rig *r, enum mr_training_role role, uint32_t index, const char *task)
{
    char address[32];
    (void)snprintf(address, sizeof address, "h:%d%u", role, index);
    struct mr_trainer_event ev = {.type = MR_TE_JOIN,
        .ticket = ++r->ticket,
        .session = r->id,
        .role = role,
        .index = index,
        .wait = MR_SECOND,
        .join = {mr_str(task), mr_str(address), MR_STR("n"), MR_STR("")}};
    step(r, ev);
    struct mr_training_info info = look(r);
    for (uint32_t i = 0; i < info.members_count; i++) {
        struct mr_training_member_info m;
        mr_trainer_member(r->t, r->id, i, &m);
        if (m.role == role && m.index == index) return m.incarnation;
    }
    return 0;
}

static int report(struct rig *r, enum mr_training_role role, uint32_t index, uint64_t incarnation,
    struct mr_training_report what)
{
    if (!what.restore_epoch) what.restore_epoch = look(r).restore_epoch;
    step(r, (struct mr_trainer_event){.type = MR_TE_REPORT,
                .ticket = ++r->ticket,
                .session = r->id,
                .role = role,
                .index = index,
                .incarnation = incarnation,
                .report = what});
    return r->last[MR_TX_REPORTED].err;
}

static void tick(struct rig *r, mr_duration after)
{
    r->now += after;
    step(r, (struct mr_trainer_event){.type = MR_TE_TICK});
}

static void score(struct rig *r, const char *channel, unsigned n, const char *json)
{
    char entry[32];
    (void)snprintf(entry, sizeof entry, "%llu-%u", (unsigned long long)(WALL / 1000000 + 2000), n);
    step(r, (struct mr_trainer_event){.type = MR_TE_ENTRY,
                .channel = mr_str(channel),
                .entry = mr_str(entry),
                .text = mr_str(json)});
}

struct cast {
    uint64_t ps, worker, scorer;
};

/* One of each, running. */
static struct cast run(struct rig *r, const char *more)
{
    char json[2048];
    (void)snprintf(json, sizeof json, "{" MODEL "%s}", more);
    assert_int_equal(start(r, "", json), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    struct cast c;
    c.ps = join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
    c.worker = join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1");
    assert_int_equal(look(r).state, MR_TRAINING_FORMING);
    c.scorer = join(r, MR_TRAINING_SCORER, 0, "j1-2/2/1");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    return c;
}

static void says(struct mr_str text, const char *words)
{
    if (!memmem(text.p, text.n, words, strlen(words)))
        fail_msg("\"%.*s\" does not say \"%s\"", MR_STR_ARG(text), words);
}

/* ---- tests -------------------------------------------------------------------------------------
 */

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
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, f); /* did not know yet */
    assert_int_equal(r->last[MR_TX_REPORTED].told.phase, MR_TRAINING_HALT);
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, (struct mr_training_report){0});
    assert_int_equal(r->last[MR_TX_REPORTED].told.phase, MR_TRAINING_HALT);
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, f);
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, f);
    assert_int_equal(r->last[MR_TX_REPORTED].told.phase, MR_TRAINING_KEEP);
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, f);
    assert_int_equal(r->last[MR_TX_REPORTED].told.phase, MR_TRAINING_HALT); /* one keeps */
    f.model_object = (mr_object_id){5, 6};
    f.score_json = MR_STR("{\"accuracy\":1}");
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, f);
    (void)report(r, MR_TRAINING_PS, 0, c.ps, f);
    assert_int_equal(r->last[MR_TX_REPORTED].told.phase, MR_TRAINING_EXIT);
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
    score(r, "v", 1, "{\"v\": 0}"); /* not located yet: of before */
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
    assert_int_equal(r->seen[MR_TX_FOLLOW], own + 1); /* but its own channel */
    assert_int_equal(start(r, "", "{" MODEL ABOUT_V "}"), MR_OK);
    located(r, "3-9");
    assert_int_equal(r->seen[MR_TX_FOLLOW], own + 3);
    assert_string_equal(r->text, "3-9");
}

static void stop_it(struct rig *r, bool abandon)
{
    step(r, (struct mr_trainer_event){
                .type = MR_TE_STOP, .ticket = ++r->ticket, .session = r->id, .abandon = abandon});
}

static void who_has_gone_is_not_answered(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/1"); /* waits for the others */
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
    assert_int_equal(look(r).state, MR_TRAINING_FAILED); /* what it asked for is done */
}

#define FEED                                                                                       \
    "{\"model\":{\"input\":[4],\"layers\":[{\"type\":\"Dense\",\"units\":2}]},"                    \
    "\"data\":{\"queue\":\"q\",\"validation\":{\"x\":{\"name\":\"x\"},\"y\":{\"name\":\"y\"}}},"   \
    "\"graph\":{\"tasks\":{}}}"

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
    assert_false(r->last[MR_TX_JOB_SUBMIT].feed); /* before the roles have their slots */
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
    stop_it(r, true); /* whether the scheduler took the feed was not heard yet */
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
    assert_true(next.last[MR_TX_JOB_SUBMIT].feed); /* by its request id: it is the same job */
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

static void a_lost_server_takes_all_back_to_the_checkpoint(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, ",\"checkpoint\":{\"every_steps\":50}");
    struct mr_training_report p = {
        .version = 50, .checkpoint_version = 50, .checkpoint_object = {1, 50}};
    (void)report(r, MR_TRAINING_PS, 0, c.ps, p);
    (void)report(r, MR_TRAINING_PS, 0, c.ps, (struct mr_training_report){.version = 80});
    assert_int_equal(look(r).checkpoint.version, 50);
    uint64_t again = join(r, MR_TRAINING_PS, 0, "j1-2/0/2");
    assert_true(again > c.ps);
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
    assert_int_equal(look(r).restore_epoch, 2);
    assert_int_equal(look(r).restore.version, 50);
    assert_int_equal(look(r).counters.steps_lost, 30);
    assert_int_equal(report(r, MR_TRAINING_PS, 0, c.ps, p), MR_ESTATE); /* revoked */
    (void)report(r, MR_TRAINING_PS, 0, again, (struct mr_training_report){.version = 50});
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
}

static void who_stops_without_parameters_and_checkpoint_fails(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, ",\"stop\":{\"steps\":100}");
    (void)report(r, MR_TRAINING_PS, 0, c.ps, (struct mr_training_report){.version = 100});
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/2");
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
    says(look(r).reason, "ps 0 was replaced while the session stopped");
    says(look(r).reason, "there is no checkpoint");
    assert_int_equal(look(r).counters.steps_lost, 100);
}

static void a_lost_worker_costs_no_parameters(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    for (int i = 0; i < 4; i++) {
        (void)report(r, MR_TRAINING_PS, 0, c.ps, (struct mr_training_report){.version = 5});
        (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, (struct mr_training_report){0});
        tick(r, MR_SECOND);
    }
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
    assert_int_equal(look(r).restores, 0);
    assert_int_equal(
        report(r, MR_TRAINING_WORKER, 0, c.worker, (struct mr_training_report){0}), MR_ESTATE);
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/2");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1");
    assert_int_equal(r->last[MR_TX_JOINED].err, MR_ESTATE); /* an older attempt */
}

static void a_role_that_is_lost_again_and_again_fails_the_session(void **state)
{
    struct rig *r = *state;
    (void)run(r, "");
    char task[32];
    for (int i = 2; i < 20 && look(r).state != MR_TRAINING_FAILED; i++) {
        (void)snprintf(task, sizeof task, "j1-2/1/%d", i);
        (void)join(r, MR_TRAINING_WORKER, 0, task);
    }
    says(look(r).reason, "worker 0 was lost 10 times");
}

static void a_failure_fails_with_its_words(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    struct mr_training_report f = {.failure = MR_STR("x has 3 rows and y has 4")};
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, f);
    says(look(r).reason, "worker 0: x has 3 rows and y has 4");
}

static void a_failed_graph_fails_the_session_with_its_reason(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL ",\"graph\":{\"tasks\":{}}}"), MR_OK);
    assert_false(r->last[MR_TX_JOB_SUBMIT].roles);
    job(r, false, MR_TRAINING_JOB_FAILED, "key a: no such file");
    says(look(r).reason, "the job of its graph failed: key a: no such file");
}

static void a_scheduler_that_is_away_is_asked_again(void **state)
{
    struct rig *r = *state;
    (void)start(r, "", "{" MODEL "}");
    assert_int_equal(r->seen[MR_TX_JOB_SUBMIT], 1);
    step(r, (struct mr_trainer_event){
                .type = MR_TE_JOB_SUBMITTED, .session = r->id, .roles = true, .err = MR_EAWAY});
    tick(r, MR_SECOND);
    assert_int_equal(r->seen[MR_TX_JOB_SUBMIT], 2);
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
        assert_int_equal(mr_training_document_json(look(r).document).n, 0); /* one copy */
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
    for (size_t cut = 0; cut <= bytes; cut += cut + 16 < bytes ? 16 : 1) { /* damaged ones too */
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

static void ids_are_read_as_they_are_written(void **state)
{
    (void)state;
    mr_training_id id = {(uint64_t)3 << 32 | 17}, back;
    char text[MR_TRAINING_ID_TEXT_MAX];
    mr_training_id_format(id, text);
    assert_string_equal(text, "t3-17");
    assert_int_equal(mr_training_id_parse(mr_str(text), &back), MR_OK);
    assert_true(back.v == id.v);
    static const char *const bad[] = {
        "", "t", "t1", "t1-", "t-1", "j1-1", "t01-1", "t1-1 ", "t1-2-3", "t4294967296-1"};
    for (size_t i = 0; i < MR_ARRAY_LEN(bad); i++)
        assert_int_equal(mr_training_id_parse(mr_str(bad[i]), &back), MR_EINVAL);
}

static int setup(void **state)
{
    struct rig *r = mr_alloc(sizeof *r);
    rig_begin(r);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    rig_end(*state);
    mr_release(*state);
    return 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_session_goes_from_start_to_a_kept_model),
        TEST(a_gang_that_is_not_there_in_time_fails_by_name),
        TEST(a_request_id_means_one_session),
        TEST(two_live_sessions_do_not_share_a_channel),
        TEST(nothing_is_told_before_redis_has_it),
        TEST(a_start_that_redis_does_not_take_is_unavailable),
        TEST(a_threshold_and_only_a_newer_score_stops),
        TEST(patience_ends_after_so_many_scores_without_a_gain),
        TEST(patience_ends_with_scores_that_ran_away),
        TEST(what_another_channel_says_before_it_runs_does_not_stop_it),
        TEST(a_channel_is_followed_from_the_first_that_anybody_has_not_seen),
        TEST(who_has_gone_is_not_answered),
        TEST(a_feed_begins_with_running_and_is_cancelled_until_that_is_answered),
        TEST(a_feed_of_unknown_fate_is_found_and_cancelled_after_a_restart),
        TEST(a_lost_server_takes_all_back_to_the_checkpoint),
        TEST(who_stops_without_parameters_and_checkpoint_fails),
        TEST(a_lost_worker_costs_no_parameters),
        TEST(a_role_that_is_lost_again_and_again_fails_the_session),
        TEST(a_failure_fails_with_its_words),
        TEST(a_failed_graph_fails_the_session_with_its_reason),
        TEST(a_scheduler_that_is_away_is_asked_again),
        TEST(a_barrier_opens_for_all_or_says_why_not),
        TEST(foreign_roles_get_their_environment_and_end_by_themselves),
        TEST(ended_sessions_are_forgotten_oldest_first),
        TEST(ended_sessions_are_bounded_by_the_bytes_of_their_documents),
        TEST(a_trainer_goes_on_from_its_records),
        cmocka_unit_test(ids_are_read_as_they_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
