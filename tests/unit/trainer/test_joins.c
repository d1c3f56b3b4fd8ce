/* The trainer's core: when a member that joins a session is let in, and what a lost member leaves
 * behind. */
#include "tests/unit/trainer/rig.h"

static const struct mr_training_report nothing = {0}, finished = {.finished = true};

static struct mr_training_member_info member(struct rig *r, uint32_t i)
{
    struct mr_training_member_info m;
    mr_trainer_member(r->t, r->id, i, &m);
    return m;
}

/* Starts a session and lets all of its roles join. `incarnations` gets one incarnation for each
 * member, in the order of members. */
static void run_all(struct rig *r, const char *json, uint64_t incarnations[])
{
    assert_int_equal(start(r, "", json), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    uint32_t n = look(r).members_count;
    for (uint32_t i = 0; i < n; i++) {
        char task[32];
        (void)snprintf(task, sizeof task, "j1-2/%u/1", i);
        incarnations[i] = join(r, member(r, i).role, member(r, i).index, task);
    }
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
}

/* Lets the leases of all members end, except of those in `live`, a set of bits by member. */
static void silence(struct rig *r, const uint64_t incarnations[], uint32_t live)
{
    for (uint32_t t = 0; t < 8; t++) {
        tick(r, 450 * MR_MS);
        for (uint32_t i = 0; i < look(r).members_count; i++)
            if (live >> i & 1)
                (void)report(r, member(r, i).role, member(r, i).index, incarnations[i], nothing);
    }
    for (uint32_t i = 0; i < look(r).members_count; i++)
        assert_int_equal(member(r, i).state, live >> i & 1 ? MR_MEMBER_HERE : MR_MEMBER_LOST);
}

/* Lets the second attempt of member `i` join. Returns true if the join is answered at once, false
 * if it waits. */
static bool is_let_in(struct rig *r, uint32_t i, uint64_t *incarnation)
{
    char task[32];
    (void)snprintf(task, sizeof task, "j1-2/%u/2", i);
    uint32_t seen = r->seen[MR_TX_JOINED];
    *incarnation = join(r, member(r, i).role, member(r, i).index, task);
    if (r->seen[MR_TX_JOINED] > seen) assert_true(r->last[MR_TX_JOINED].joined.formed);
    return r->seen[MR_TX_JOINED] > seen;
}

#define WORKERS(n) "{" MODEL ",\"roles\":{\"worker\":" #n "}}"
#define RANKS(n) "{" MODEL ",\"update\":{\"rule\":\"allreduce\"},\"roles\":{\"worker\":" #n "}}"

/* Member 0 is the server, members 1 and 2 are the workers, and member 3 is the scorer. */
static void workers_of_a_server_do_not_wait_for_each_other(void **state)
{
    struct rig *r = *state;
    uint64_t in[4];
    run_all(r, WORKERS(2), in);
    silence(r, in, 1);
    assert_true(is_let_in(r, 1, &in[1]));
    assert_true(is_let_in(r, 3, &in[3]));
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
    assert_true(is_let_in(r, 2, &in[2]));
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    assert_int_equal(look(r).restores, 0);
}

/* Members 0 to 2 are the ranks. Member 3 is the scorer, which reads from rank 0. */
static void ranks_wait_for_each_other_and_a_scorer_for_rank_0(void **state)
{
    struct rig *r = *state;
    uint64_t in[4];
    run_all(r, RANKS(3), in);
    silence(r, in, 1 << 2);
    assert_false(is_let_in(r, 3, &in[3]));
    assert_false(is_let_in(r, 1, &in[1]));
    uint32_t seen = r->seen[MR_TX_JOINED];
    assert_true(is_let_in(r, 0, &in[0]));
    assert_int_equal(r->seen[MR_TX_JOINED], seen + 3);
    silence(r, in, 1 | 1 << 2);
    assert_true(is_let_in(r, 3, &in[3]));
    assert_true(is_let_in(r, 1, &in[1]));
}

/* All ranks have the same parameters while the session stops, and no rank computes a gradient any
 * more. */
static void ranks_do_not_wait_for_each_other_while_the_session_stops(void **state)
{
    struct rig *r = *state;
    uint64_t in[4];
    run_all(r, RANKS(3), in);
    stop_it(r, false);
    silence(r, in, 1 | 1 << 3);
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    assert_true(is_let_in(r, 1, &in[1]));
    assert_int_equal(r->last[MR_TX_JOINED].instruction.phase, MR_TRAINING_HALT);
}

static void programs_wait_for_each_other(void **state)
{
    struct rig *r = *state;
    uint64_t in[3];
    run_all(r,
        "{\"roles\":{\"worker\":{\"count\":2,\"exec\":[\"x\"]},"
        "\"ps\":{\"count\":1,\"exec\":[\"y\"]}},\"stop\":{\"steps\":5}}",
        in);
    /* Every role is a program of the user. The core ignores the versions and checkpoints that a
     * program reports, because the core cannot restore the parameters of a program. */
    const struct mr_training_report p = {
        .version = 9, .checkpoint_version = 9, .checkpoint_object = {1, 9}};
    assert_int_equal(report(r, MR_TRAINING_PS, 0, in[0], p), MR_OK);
    assert_int_equal(look(r).version, 0);
    assert_int_equal(look(r).checkpoint.objects_count, 0);
    silence(r, in, 1 << 1);
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
    assert_int_equal(look(r).restores, 0);
    assert_false(is_let_in(r, 0, &in[0]));
    assert_true(is_let_in(r, 2, &in[2]));
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
}

static void a_program_that_has_ended_may_start_again(void **state)
{
    struct rig *r = *state;
    uint64_t in[2], again;
    run_all(r, "{\"roles\":{\"worker\":{\"count\":2,\"exec\":[\"x\"]}}}", in);
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, in[0], finished), MR_OK);
    assert_int_equal(member(r, 0).state, MR_MEMBER_FINISHED);
    assert_true(is_let_in(r, 0, &again));
    assert_true(again > in[1]);
    assert_int_equal(member(r, 0).state, MR_MEMBER_HERE);
    assert_int_equal(report(r, MR_TRAINING_WORKER, 1, in[1], finished), MR_OK);
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, again, finished), MR_OK);
    assert_int_equal(look(r).state, MR_TRAINING_DONE);
}

/* A role that joins again, because its call was cut off, is the same member. It keeps its
 * counters. */
static void a_role_that_joins_again_goes_on(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    const struct mr_training_report w = {.counters = {.steps = 7}};
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, c.worker, w), MR_OK);
    uint32_t generation = look(r).generation;
    assert_int_equal(join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1"), c.worker);
    assert_int_equal(r->last[MR_TX_JOINED].joined.resume_steps, 7);
    assert_int_equal(r->last[MR_TX_JOINED].joined.incarnation, c.worker);
    assert_int_equal(look(r).generation, generation);
}

/* The call waits longer than the lease lasts. */
static void a_role_that_is_lost_while_its_join_waits_is_not_let_in(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    step(r, (struct mr_trainer_event){.type = MR_TE_JOIN,
                .ticket = ++r->ticket,
                .session = r->id,
                .role = MR_TRAINING_PS,
                .wait = 30 * MR_SECOND,
                .join = {MR_STR("j1-2/0/1"), MR_STR("h:1"), MR_STR("n"), MR_STR("")}});
    for (uint32_t i = 0; i < 7; i++)
        tick(r, 450 * MR_MS);
    assert_int_equal(member(r, 0).state, MR_MEMBER_LOST);
    assert_int_equal(look(r).state, MR_TRAINING_FORMING);
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1");
    (void)join(r, MR_TRAINING_SCORER, 0, "j1-2/2/1");
    assert_int_equal(look(r).state, MR_TRAINING_FORMING);
    assert_int_equal(r->seen[MR_TX_JOINED], 0);
    stop_it(r, true);
    assert_int_equal(r->seen[MR_TX_JOINED], 3);
    assert_false(r->last[MR_TX_JOINED].joined.formed);
}

/* Before the session runs, the loss of a role costs nothing. */
static void a_role_may_be_replaced_often_while_the_session_forms(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    for (uint32_t i = 1; i < 20; i++) {
        char task[32];
        (void)snprintf(task, sizeof task, "j1-2/0/%u", i);
        (void)join(r, MR_TRAINING_PS, 0, task);
    }
    assert_int_equal(look(r).state, MR_TRAINING_FORMING);
    assert_int_equal(look(r).restores, 0);
    assert_int_equal(look(r).restore_epoch, 1);
}

/* The other members learn of the loss by a new generation, before another attempt takes the lost
 * member's place. */
static void a_loss_is_a_new_generation(void **state)
{
    struct rig *r = *state;
    uint64_t in[4];
    run_all(r, WORKERS(2), in);
    uint32_t generation = look(r).generation;
    silence(r, in, 1 | 1 << 1 | 1 << 3);
    assert_int_equal(look(r).generation, generation + 1);
    assert_int_equal(report(r, MR_TRAINING_WORKER, 0, in[1], nothing), MR_OK);
    assert_int_equal(r->last[MR_TX_REPORTED].instruction.generation, generation + 1);
}

/* All losses count towards the limit. The program reports no version of parameters, and each of its
 * attempts is lost within a minute. */
static void a_program_that_is_lost_again_and_again_fails_the_session(void **state)
{
    struct rig *r = *state;
    uint64_t in[1];
    tick(r, 100 * MR_SECOND);
    run_all(r, "{\"roles\":{\"worker\":{\"exec\":[\"x\"]}}}", in);
    for (uint32_t i = 2; i < 12; i++) {
        assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
        char task[32];
        tick(r, 2 * MR_SECOND);
        (void)snprintf(task, sizeof task, "j1-2/0/%u", i);
        (void)join(r, MR_TRAINING_WORKER, 0, task);
    }
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
    assert_true(mr_str_eq(look(r).reason,
        MR_STR("worker 0 was lost 10 times without a new version of the parameters, the last time "
               "because it was replaced")));
}

/* ---- at the end ------------------------------------------------------------------------------ */

static void a_role_that_joins_a_failed_session_is_sent_away(void **state)
{
    struct rig *r = *state;
    (void)run(r, "");
    r->holds = true;
    stop_it(r, true);
    uint32_t seen = r->seen[MR_TX_JOINED];
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/2");
    assert_int_equal(r->seen[MR_TX_JOINED], seen + 1);
    /* Redis does not have the session's end yet. */
    assert_false(r->last[MR_TX_JOINED].joined.formed);
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_ACKED, .sequence = r->sequence});
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/2");
    assert_int_equal(r->seen[MR_TX_JOINED], seen + 2);
    assert_true(r->last[MR_TX_JOINED].joined.formed);
    assert_int_equal(r->last[MR_TX_JOINED].instruction.phase, MR_TRAINING_EXIT);
    assert_int_equal(member(r, 1).incarnation, 0);
    assert_true(mr_str_eq(member(r, 1).task, MR_STR("j1-2/1/1")));
}

/* The model has been saved, and other roles have not ended yet. */
static void a_role_that_joins_at_the_end_learns_that_it_may_go(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    stop_it(r, false);
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, nothing);
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, finished);
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, nothing);
    r->holds = true;
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer,
        (struct mr_training_report){.finished = true, .model_object = {5, 6}});
    uint32_t seen = r->seen[MR_TX_JOINED];
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/2");
    assert_int_equal(r->seen[MR_TX_JOINED], seen); /* Redis does not have the model yet */
    r->holds = false;
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_ACKED, .sequence = r->sequence});
    assert_int_equal(r->seen[MR_TX_JOINED], seen + 1);
    assert_int_equal(r->last[MR_TX_JOINED].instruction.phase, MR_TRAINING_EXIT);
    assert_int_equal(r->last[MR_TX_JOINED].joined.incarnation, 0);
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1"); /* the worker that has finished joins again */
    assert_int_equal(r->last[MR_TX_JOINED].joined.incarnation, c.worker);
}

/* The scorer saves the parameters of the server, so a lost server has to come back first. */
static void a_stop_waits_for_a_server_that_was_lost_and_for_no_lost_worker(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, ",\"checkpoint\":{\"every_steps\":50},\"limits\":{\"stopping_s\":9}");
    const struct mr_training_report p = {
        .version = 50, .checkpoint_version = 50, .checkpoint_object = {1, 50}};
    assert_int_equal(report(r, MR_TRAINING_PS, 0, c.ps, p), MR_OK);
    stop_it(r, false);
    c.ps = join(r, MR_TRAINING_PS, 0, "j1-2/0/2");
    assert_int_equal(look(r).restores, 1);
    c.worker = join(r, MR_TRAINING_WORKER, 0, "j1-2/1/2");
    assert_int_equal(r->last[MR_TX_JOINED].instruction.phase, MR_TRAINING_HALT);
    /* The answer to the worker's join has told it to halt. So the worker's first report may say
     * that it has halted. */
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, finished);
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, nothing);
    assert_int_equal(r->last[MR_TX_REPORTED].instruction.phase, MR_TRAINING_HALT);
    (void)report(r, MR_TRAINING_PS, 0, c.ps, nothing); /* the server has loaded the checkpoint */
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, nothing);
    assert_int_equal(r->last[MR_TX_REPORTED].instruction.phase, MR_TRAINING_KEEP);
    for (uint32_t i = 0; i < 20 && look(r).state == MR_TRAINING_STOPPING; i++) {
        tick(r, 450 * MR_MS);
        (void)report(r, MR_TRAINING_PS, 0, c.ps, nothing);
        (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, nothing);
    }
    assert_true(
        mr_str_eq(look(r).reason, MR_STR("stopping took longer than 9 s: waited for scorer 0")));
}

static void a_session_whose_roles_do_not_go_says_that_its_model_is_kept(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, ",\"limits\":{\"stopping_s\":2}");
    stop_it(r, false);
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, nothing);
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, finished);
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, nothing);
    static char score[MR_TRAINING_SCORE_BYTES_MAX];
    memset(score, '0', sizeof score);
    const struct mr_training_report kept = {
        .finished = true, .model_object = {5, 6}, .score_json = mr_str_of(score, sizeof score)};
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, kept);
    assert_int_equal(look(r).score_json.n, sizeof score);
    for (uint32_t i = 0; i < 5; i++)
        tick(r, 450 * MR_MS);
    assert_true(mr_str_eq(look(r).reason, MR_STR("stopping took longer than 2 s: waited for ps 0, "
                                                 "worker 0, scorer 0; its model is kept")));
    assert_true(mr_object_id_eq(look(r).model_object, (mr_object_id){5, 6}));
}

static void many_that_are_waited_for_are_counted(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", WORKERS(12)), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    tick(r, 60 * MR_SECOND);
    says(look(r).reason, "waited for ps 0, worker 0, worker 1, ");
    says(look(r).reason, ", worker 10 and 2 more");
    rig_end(r);
    rig_begin(r);
    assert_int_equal(start(r, "", WORKERS(11)), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    tick(r, 60 * MR_SECOND);
    says(look(r).reason, ", worker 10 and 1 more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(workers_of_a_server_do_not_wait_for_each_other),
        TEST(ranks_wait_for_each_other_and_a_scorer_for_rank_0),
        TEST(ranks_do_not_wait_for_each_other_while_the_session_stops),
        TEST(programs_wait_for_each_other),
        TEST(a_program_that_has_ended_may_start_again),
        TEST(a_role_that_joins_again_goes_on),
        TEST(a_role_that_is_lost_while_its_join_waits_is_not_let_in),
        TEST(a_role_may_be_replaced_often_while_the_session_forms),
        TEST(a_loss_is_a_new_generation),
        TEST(a_program_that_is_lost_again_and_again_fails_the_session),
        TEST(a_role_that_joins_a_failed_session_is_sent_away),
        TEST(a_role_that_joins_at_the_end_learns_that_it_may_go),
        TEST(a_stop_waits_for_a_server_that_was_lost_and_for_no_lost_worker),
        TEST(a_session_whose_roles_do_not_go_says_that_its_model_is_kept),
        TEST(many_that_are_waited_for_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
