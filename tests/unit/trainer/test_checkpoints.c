/* The trainer's core: which checkpoints are kept and which are erased; and which rules and limits
 * end a session, because of the reports of its roles (servers, workers, scorer) or because time is
 * over. */
#include "tests/unit/trainer/rig.h"

struct many { /* two servers, two workers, a scorer */
    uint64_t ps[2], worker[2], scorer;
};

static struct many run_many(struct rig *r, const char *more)
{
    char json[2048];
    struct many m;
    (void)snprintf(json, sizeof json, "{" MODEL ",\"roles\":{\"ps\":2,\"worker\":2}%s}", more);
    assert_int_equal(start(r, "", json), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    for (uint32_t i = 0; i < 2; i++) {
        char task[32];
        (void)snprintf(task, sizeof task, "j1-2/%u/1", i);
        m.ps[i] = join(r, MR_TRAINING_PS, i, task);
        (void)snprintf(task, sizeof task, "j1-2/%u/1", 2 + i);
        m.worker[i] = join(r, MR_TRAINING_WORKER, i, task);
    }
    m.scorer = join(r, MR_TRAINING_SCORER, 0, "j1-2/4/1");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    return m;
}

static void cut(struct rig *r, const struct many *m, uint32_t shard, uint64_t version)
{
    const struct mr_training_report p = {.version = version,
        .checkpoint_version = version,
        .checkpoint_object = {shard + 1, version}};
    assert_int_equal(report(r, MR_TRAINING_PS, shard, m->ps[shard], p), MR_OK);
}

static void assert_erased(const struct rig *r, uint32_t at, uint64_t version, uint32_t shard)
{
    assert_true(at < r->erased_count);
    assert_int_equal(r->erased[at].version, version);
    assert_int_equal(r->erased[at].index, shard);
    assert_true(mr_object_id_eq(r->erased[at].object, (mr_object_id){shard + 1, version}));
}

static void a_checkpoint_is_one_when_all_shards_are_there_and_the_oldest_goes(void **state)
{
    struct rig *r = *state;
    struct many m = run_many(r, ",\"checkpoint\":{\"every_steps\":10,\"keep\":2}");
    for (uint64_t v = 10; v <= 30; v += 10) {
        cut(r, &m, 0, v);
        assert_int_equal(look(r).checkpoint.version, v - 10);
        cut(r, &m, 0, v); /* a repeated report changes nothing */
        cut(r, &m, 1, v);
        struct mr_training_checkpoint c = look(r).checkpoint;
        assert_int_equal(c.version, v);
        assert_int_equal(c.wall_ns, WALL + r->now);
        assert_int_equal(c.objects_count, 2);
        assert_true(mr_object_id_eq(c.objects[0], (mr_object_id){1, v}));
        assert_true(mr_object_id_eq(c.objects[1], (mr_object_id){2, v}));
    }
    assert_int_equal(r->erased_count, 2);
    assert_erased(r, 0, 10, 0);
    assert_erased(r, 1, 10, 1);
    /* The shard of version 25 is erased, because the complete version 30 is newer. */
    cut(r, &m, 1, 25);
    assert_int_equal(r->erased_count, 3);
    assert_erased(r, 2, 25, 1);
    assert_int_equal(look(r).checkpoint.version, 30);
}

static void a_version_that_not_all_cut_goes(void **state)
{
    struct rig *r = *state;
    struct many m = run_many(r, ",\"checkpoint\":{\"every_steps\":10,\"keep\":2}");
    for (uint64_t v = 10; v <= 40; v += 10)
        cut(r, &m, 0, v);
    /* The core keeps up to four incomplete versions at a time. */
    assert_int_equal(r->erased_count, 0);
    cut(r, &m, 0, 50);
    assert_int_equal(r->erased_count, 1);
    assert_erased(r, 0, 10, 0);
    /* The complete version 40 makes the incomplete versions before it useless. */
    cut(r, &m, 1, 40);
    assert_int_equal(look(r).checkpoint.version, 40);
    assert_int_equal(r->erased_count, 3);
    assert_erased(r, 1, 20, 0);
    assert_erased(r, 2, 30, 0);
    cut(r, &m, 1, 50);
    assert_int_equal(look(r).checkpoint.version, 50);
    assert_int_equal(r->erased_count, 3);
}

static void what_was_cut_before_a_restore_goes(void **state)
{
    struct rig *r = *state;
    struct many m = run_many(r, ",\"checkpoint\":{\"every_steps\":10,\"keep\":2}");
    cut(r, &m, 0, 10);
    cut(r, &m, 1, 10);
    cut(r, &m, 0, 20); /* server 1 dies before it has reported its shard of version 20 */
    (void)report(r, MR_TRAINING_PS, 0, m.ps[0], (struct mr_training_report){.version = 27});
    m.ps[1] = join(r, MR_TRAINING_PS, 1, "j1-2/1/2");
    assert_int_equal(look(r).restore.version, 10);
    assert_int_equal(look(r).restores, 1);
    assert_int_equal(look(r).counters.steps_lost, 17);
    assert_int_equal(look(r).version, 10);
    assert_int_equal(r->erased_count, 1);
    assert_erased(r, 0, 20, 0);
    struct mr_training_report late = {
        .restore_epoch = 1, .checkpoint_version = 30, .checkpoint_object = {1, 30}};
    assert_int_equal(report(r, MR_TRAINING_PS, 0, m.ps[0], late), MR_OK);
    cut(r, &m, 0, 40);
    assert_true(r->erased_count >= 2);
    assert_erased(r, 1, 30, 0);
    cut(r, &m, 1, 40);
    assert_int_equal(look(r).checkpoint.version, 40);
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
}

static void forgetting_a_session_erases_its_checkpoints(void **state)
{
    struct rig *r = *state;
    struct many m = run_many(r, ",\"checkpoint\":{\"every_steps\":10,\"keep\":2}");
    for (uint32_t shard = 0; shard < 2; shard++)
        cut(r, &m, shard, 10);
    cut(r, &m, 1, 20); /* version 20 stays incomplete */
    stop_it(r, true);
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
    step(
        r, (struct mr_trainer_event){.type = MR_TE_JOB_CANCELLED, .session = r->id, .roles = true});
    step(r,
        (struct mr_trainer_event){.type = MR_TE_FORGET, .ticket = ++r->ticket, .session = r->id});
    assert_int_equal(r->last[MR_TX_FORGOTTEN].err, MR_OK);
    assert_int_equal(r->seen[MR_TX_FORGOTTEN], 1);
    struct mr_training_info info;
    assert_int_equal(mr_trainer_info(r->t, r->id, &info), MR_ENOENT);
    assert_int_equal(r->erased_count, 3);
    assert_erased(r, 0, 20, 1);
    assert_erased(r, 1, 10, 0);
    assert_erased(r, 2, 10, 1);
    assert_true(r->erased[2].session.v == r->id.v);
}

static void what_is_reported_again_is_no_other_checkpoint(void **state)
{
    struct rig *r = *state;
    struct many m = run_many(r, ",\"checkpoint\":{\"every_steps\":10,\"keep\":3}");
    for (uint64_t v = 10; v <= 30; v += 10)
        for (uint32_t shard = 0; shard < 2; shard++)
            cut(r, &m, shard, v);
    cut(r, &m, 0, 20); /* the complete version 20 has this object already */
    assert_int_equal(r->erased_count, 0);
    uint32_t writes = r->seen[MR_TX_WRITE];
    for (uint32_t i = 0; i < 3; i++)
        cut(r, &m, 1, 25); /* this version is older than the newest complete one */
    assert_int_equal(r->erased_count, 1);
    /* One write adds the object to the record, another one removes it after it was erased. */
    assert_int_equal(r->seen[MR_TX_WRITE], writes + 2);
    const struct mr_training_report other = {
        .version = 30, .checkpoint_version = 30, .checkpoint_object = {9, 30}};
    assert_int_equal(report(r, MR_TRAINING_PS, 0, m.ps[0], other), MR_OK);
    assert_int_equal(r->erased_count, 2);
    assert_true(mr_object_id_eq(r->erased[1].object, (mr_object_id){9, 30}));
    assert_int_equal(look(r).checkpoint.version, 30);
    assert_true(mr_object_id_eq(look(r).checkpoint.objects[0], (mr_object_id){1, 30}));
}

static void what_is_doomed_during_a_write_is_erased_after_the_next(void **state)
{
    struct rig *r = *state;
    struct many m = run_many(r, ",\"checkpoint\":{\"every_steps\":10}");
    for (uint32_t shard = 0; shard < 2; shard++)
        cut(r, &m, shard, 90);
    r->holds = true;
    for (uint64_t v = 10; v <= 30; v += 10)
        cut(r, &m, 0, v); /* this version is older than the newest complete one */
    assert_int_equal(r->erased_count, 0);
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_ACKED, .sequence = r->sequence});
    assert_int_equal(r->erased_count, 1);
    assert_erased(r, 0, 10, 0);
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_ACKED, .sequence = r->sequence});
    assert_int_equal(r->erased_count, 3);
    assert_erased(r, 1, 20, 0);
    assert_erased(r, 2, 30, 0);
    assert_true(r->erased[2].session.v == r->id.v);
}

/* Redis is away for a long time. The list of objects to erase has 32 places. Objects beyond that
 * stay in the store. */
static void so_many_objects_wait_to_be_erased_and_no_more(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, ",\"checkpoint\":{\"every_steps\":10}");
    struct mr_training_report p = {
        .version = 90, .checkpoint_version = 90, .checkpoint_object = {1, 90}};
    assert_int_equal(report(r, MR_TRAINING_PS, 0, c.ps, p), MR_OK);
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_AWAY});
    for (uint64_t v = 1; v <= 40; v++) {
        p.checkpoint_version = v;
        p.checkpoint_object.number = v;
        assert_int_equal(report(r, MR_TRAINING_PS, 0, c.ps, p), MR_OK);
    }
    uint32_t before = r->seen[MR_TX_ERASE];
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_BACK});
    assert_int_equal(r->seen[MR_TX_ERASE], before + 32);
}

/* After a restore all servers have the checkpoint's version, also those that were not lost. */
static void a_restore_takes_every_server_back(void **state)
{
    struct rig *r = *state;
    struct many m = run_many(r, ",\"checkpoint\":{\"every_steps\":10}");
    for (uint32_t shard = 0; shard < 2; shard++)
        cut(r, &m, shard, 10);
    (void)report(r, MR_TRAINING_PS, 0, m.ps[0], (struct mr_training_report){.version = 27});
    m.ps[1] = join(r, MR_TRAINING_PS, 1, "j1-2/1/2");
    for (uint32_t shard = 0; shard < 2; shard++) {
        assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
        const struct mr_training_report p = {.version = shard ? 30 : 11};
        assert_int_equal(report(r, MR_TRAINING_PS, shard, m.ps[shard], p), MR_OK);
    }
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    assert_int_equal(look(r).version, 11);
}

static void a_checkpoint_ahead_of_all_reports_loses_no_steps(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, ",\"checkpoint\":{\"every_steps\":10}");
    const struct mr_training_report p = {
        .version = 40, .checkpoint_version = 50, .checkpoint_object = {1, 50}};
    assert_int_equal(report(r, MR_TRAINING_PS, 0, c.ps, p), MR_OK);
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/2");
    assert_int_equal(look(r).restore.version, 50);
    assert_int_equal(look(r).version, 50);
    assert_int_equal(look(r).counters.steps_lost, 0);
}

/* A server is lost before any checkpoint is complete. So the versions begin again, and are lower
 * than those of the dropped checkpoints. */
static void versions_after_a_restore_may_be_lower(void **state)
{
    struct rig *r = *state;
    struct many m = run_many(r, ",\"checkpoint\":{\"every_steps\":10}");
    for (uint64_t v = 50; v <= 80; v += 10)
        cut(r, &m, 0, v);
    m.ps[1] = join(r, MR_TRAINING_PS, 1, "j1-2/1/2");
    assert_int_equal(r->erased_count, 4);
    for (uint64_t v = 10; v <= 40; v += 10)
        cut(r, &m, 0, v);
    assert_int_equal(r->erased_count, 4);
    cut(r, &m, 1, 10);
    assert_int_equal(look(r).checkpoint.version, 10);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void epochs_are_over_when_the_slowest_worker_says_so(void **state)
{
    struct rig *r = *state;
    struct many m = run_many(r, ",\"stop\":{\"epochs\":3}");
    struct mr_training_report p = {.counters = {.epoch = 3}};
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, m.worker[0], p), MR_OK);
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    p.counters.epoch = 2;
    assert_int_equal(report(r, MR_TRAINING_WORKER, 1, m.worker[1], p), MR_OK);
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    p.counters.epoch = 3;
    assert_int_equal(report(r, MR_TRAINING_WORKER, 1, m.worker[1], p), MR_OK);
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    says(look(r).reason, "3 epochs are over");
}

static void the_data_is_used_up_when_all_workers_say_so(void **state)
{
    struct rig *r = *state;
    struct many m = run_many(r, ",\"stop\":{\"epochs\":30}");
    const struct mr_training_report p = {.exhausted = true};
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
        assert_int_equal(report(r, MR_TRAINING_WORKER, i, m.worker[i], p), MR_OK);
    }
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    says(look(r).reason, "the data is used up");
}

static void a_version_counts_when_all_shards_have_it(void **state)
{
    struct rig *r = *state;
    struct many m = run_many(r, ",\"stop\":{\"steps\":100}");
    struct mr_training_report p = {.version = 100};
    assert_int_equal(report(r, MR_TRAINING_PS, 0, m.ps[0], p), MR_OK);
    assert_int_equal(look(r).version, 0);
    p.version = 99;
    assert_int_equal(report(r, MR_TRAINING_PS, 1, m.ps[1], p), MR_OK);
    assert_int_equal(look(r).version, 99);
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    p.version = 101;
    assert_int_equal(report(r, MR_TRAINING_PS, 1, m.ps[1], p), MR_OK);
    says(look(r).reason, "version 100 is reached");
}

static void all_live(struct rig *r, const struct many *m)
{
    for (uint32_t i = 0; i < 2; i++) {
        (void)report(r, MR_TRAINING_PS, i, m->ps[i], (struct mr_training_report){0});
        (void)report(r, MR_TRAINING_WORKER, i, m->worker[i], (struct mr_training_report){0});
    }
    (void)report(r, MR_TRAINING_SCORER, 0, m->scorer, (struct mr_training_report){0});
}

static void the_time_of_a_session_ends(void **state)
{
    struct rig *r = *state;
    struct many m = run_many(r, ",\"stop\":{\"time_s\":2.5}");
    assert_true(mr_trainer_deadline(r->t) <= r->now + 2500 * MR_MS);
    for (uint32_t i = 0; i < 2; i++) {
        tick(r, 1200 * MR_MS);
        assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
        all_live(r, &m);
    }
    tick(r, 110 * MR_MS);
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    says(look(r).reason, "2.5 s are over");
}

static void a_stop_that_takes_too_long_fails_and_names_who_is_waited_for(void **state)
{
    struct rig *r = *state;
    struct many m = run_many(r, ",\"limits\":{\"stopping_s\":5}");
    const struct mr_training_report halted = {.finished = true};
    stop_it(r, false);
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    for (uint32_t i = 0; i < 4; i++) {
        all_live(r, &m);
        (void)report(r, MR_TRAINING_WORKER, 0, m.worker[0], halted);
        assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
        tick(r, 1200 * MR_MS);
    }
    all_live(r, &m);
    tick(r, 300 * MR_MS);
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
    says(look(r).reason, "stopping took longer than 5 s: waited for worker 1");
}

static void a_recovery_that_takes_too_long_fails_and_names_who_is_waited_for(void **state)
{
    struct rig *r = *state;
    struct many m = run_many(r, ",\"limits\":{\"recovering_s\":4,\"lease_s\":1}");
    for (uint32_t i = 0; i < 8 && look(r).state != MR_TRAINING_FAILED; i++) {
        tick(r, 900 * MR_MS);
        all_live(r, &(struct many){{m.ps[0], m.ps[1]}, {m.worker[0], 0}, m.scorer});
    }
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
    says(look(r).reason, "recovering took longer than 4 s: waited for worker 1");
    assert_int_equal(look(r).ended_ns, WALL + r->now);
}

/* The workers are programs of the user. While one worker is replaced, the session does not wait for
 * the other one, which has ended. */
static void a_worker_that_has_ended_does_not_hold_up_a_recovery(void **state)
{
    struct rig *r = *state;
    (void)start(r, "", "{\"roles\":{\"worker\":{\"count\":2,\"exec\":[\"x\"]}}}");
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    uint64_t a = join(r, MR_TRAINING_WORKER, 0, "j1-2/0/1");
    (void)join(r, MR_TRAINING_WORKER, 1, "j1-2/1/1");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    const struct mr_training_report f = {.finished = true};
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, a, f), MR_OK);
    for (uint32_t i = 0; i < 10; i++)
        tick(r, 400 * MR_MS);
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
    uint64_t b = join(r, MR_TRAINING_WORKER, 1, "j1-2/1/2");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    assert_int_equal(report(r, MR_TRAINING_WORKER, 1, b, f), MR_OK);
    assert_int_equal(look(r).state, MR_TRAINING_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_checkpoint_is_one_when_all_shards_are_there_and_the_oldest_goes),
        TEST(a_version_that_not_all_cut_goes),
        TEST(what_was_cut_before_a_restore_goes),
        TEST(forgetting_a_session_erases_its_checkpoints),
        TEST(epochs_are_over_when_the_slowest_worker_says_so),
        TEST(the_data_is_used_up_when_all_workers_say_so),
        TEST(a_version_counts_when_all_shards_have_it),
        TEST(the_time_of_a_session_ends),
        TEST(a_stop_that_takes_too_long_fails_and_names_who_is_waited_for),
        TEST(a_recovery_that_takes_too_long_fails_and_names_who_is_waited_for),
        TEST(a_worker_that_has_ended_does_not_hold_up_a_recovery),
        TEST(what_is_reported_again_is_no_other_checkpoint),
        TEST(what_is_doomed_during_a_write_is_erased_after_the_next),
        TEST(so_many_objects_wait_to_be_erased_and_no_more),
        TEST(a_restore_takes_every_server_back),
        TEST(a_checkpoint_ahead_of_all_reports_loses_no_steps),
        TEST(versions_after_a_restore_may_be_lower),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
