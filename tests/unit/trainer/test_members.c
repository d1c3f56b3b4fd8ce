/* The trainer's core: the members of a session, which are its roles. Which joins are accepted, and
 * what they are told; which reports count; what the loss of a member costs; barriers; and the order
 * in which members end while a session stops. */
#include "tests/unit/trainer/rig.h"

static int barrier(struct rig *r, enum mr_training_role role, uint32_t index, uint64_t incarnation,
    const char *name, uint32_t parties)
{
    uint32_t seen = r->seen[MR_TX_BARRIER];
    step(r, (struct mr_trainer_event){.type = MR_TE_BARRIER,
                .ticket = ++r->ticket,
                .session = r->id,
                .role = role,
                .index = index,
                .incarnation = incarnation,
                .text = mr_str(name),
                .parties = parties,
                .wait = MR_SECOND});
    return r->seen[MR_TX_BARRIER] > seen ? r->last[MR_TX_BARRIER].err : 1; /* 1: the call waits */
}

static struct mr_training_member_info member(struct rig *r, uint32_t i)
{
    struct mr_training_member_info m;
    mr_trainer_member(r->t, r->id, i, &m);
    return m;
}

static const struct mr_training_report nothing = {0}, finished = {.finished = true};

/* ---- joins ----------------------------------------------------------------------------------- */

static void a_join_that_is_let_in_learns_all_it_needs(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, ",\"checkpoint\":{\"every_steps\":50}");
    struct mr_trainer_effect x = r->last[MR_TX_JOINED]; /* the last join was the scorer's */
    assert_int_equal(x.ticket, r->ticket);
    assert_true(x.session.v == r->id.v);
    assert_int_equal(x.role, MR_TRAINING_SCORER);
    assert_int_equal(x.index, 0);
    assert_true(x.joined.formed && !x.joined.has_checkpoint);
    assert_int_equal(x.joined.incarnation, c.scorer);
    assert_int_equal(x.joined.resume_steps, 0);
    assert_int_equal(x.instruction.phase, MR_TRAINING_RUN);
    assert_int_equal(x.instruction.restore_epoch, 1);
    assert_int_equal(x.instruction.generation, look(r).generation);
    struct mr_training_report p = {
        .version = 50, .checkpoint_version = 50, .checkpoint_object = {1, 50}};
    (void)report(r, MR_TRAINING_PS, 0, c.ps, p);
    struct mr_training_report w = {.counters = {.steps = 7}};
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, w);
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/2");
    x = r->last[MR_TX_JOINED];
    assert_true(x.joined.formed && x.joined.has_checkpoint);
    assert_int_equal(x.instruction.restore_epoch, 2);
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/2");
    x = r->last[MR_TX_JOINED];
    assert_int_equal(x.joined.resume_steps, 7);
    assert_int_equal(x.role, MR_TRAINING_WORKER);
}

/* A role calls Join again before its first call is answered. The first call then gets the answer
 * that the session is not formed, and the second call waits. */
static void a_second_join_of_a_role_ends_the_first(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL "}"), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    uint64_t incarnation = join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
    uint64_t first = r->ticket;
    assert_int_equal(r->seen[MR_TX_JOINED], 0);
    /* The same task calls again. */
    assert_int_equal(join(r, MR_TRAINING_PS, 0, "j1-2/0/1"), incarnation);
    assert_int_equal(r->seen[MR_TX_JOINED], 1);
    assert_int_equal(r->last[MR_TX_JOINED].ticket, first);
    assert_false(r->last[MR_TX_JOINED].joined.formed);
    tick(r, MR_SECOND - 1);
    assert_int_equal(r->seen[MR_TX_JOINED], 1);
    tick(r, 1); /* the second call ends after its own `wait` */
    assert_int_equal(r->seen[MR_TX_JOINED], 2);
    assert_int_equal(r->last[MR_TX_JOINED].ticket, r->ticket);
    assert_false(r->last[MR_TX_JOINED].joined.formed);
    assert_int_equal(r->last[MR_TX_JOINED].joined.incarnation, incarnation);
}

static void who_asks_for_no_place_of_the_session_is_refused(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL ",\"graph\":{\"tasks\":{}}}"), MR_OK);
    assert_int_equal(join(r, MR_TRAINING_PS, 0, "j1-2/0/1"), 0);
    assert_int_equal(r->last[MR_TX_JOINED].err, MR_ESTATE);
    says(mr_str(r->text), "data is not ready yet");
    job(r, false, MR_TRAINING_JOB_DONE, "");
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    (void)join(r, MR_TRAINING_WORKER, 1, "j1-2/1/1");
    assert_int_equal(r->last[MR_TX_JOINED].err, MR_EINVAL);
    says(mr_str(r->text), "the session has no worker 1");
    (void)join(r, (enum mr_training_role)4, 0, "j1-2/1/1");
    assert_int_equal(r->last[MR_TX_JOINED].err, MR_EINVAL);
    says(mr_str(r->text), "the session has no role 0");
    (void)join(r, MR_TRAINING_PS, 5, "j1-2/1/1");
    says(mr_str(r->text), "the session has no ps 5");
    (void)join(r, MR_TRAINING_SCORER, 1, "j1-2/1/1");
    says(mr_str(r->text), "the session has no scorer 1");
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/7");
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/6");
    assert_int_equal(r->last[MR_TX_JOINED].err, MR_ESTATE);
    says(mr_str(r->text), "ps 0: task j1-2/0/6 was replaced by j1-2/0/7");
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/10"); /* attempts are compared as numbers */
    assert_true(r->last[MR_TX_JOINED].err == MR_OK);
    says(member(r, 0).task, "j1-2/0/10");
    r->id.v++;
    assert_int_equal(
        report(r, MR_TRAINING_PS, 0, 1, (struct mr_training_report){.restore_epoch = 1}),
        MR_ENOENT);
}

/* A worker that comes back finds no server, so the worker waits for the server. */
static void a_member_is_let_in_when_those_it_needs_are_there(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    for (uint32_t i = 0; i < 5; i++) { /* server and worker fall silent */
        tick(r, 900 * MR_MS);
        (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, nothing);
    }
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
    uint32_t seen = r->seen[MR_TX_JOINED];
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/2");
    assert_int_equal(r->seen[MR_TX_JOINED], seen);
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/2");
    assert_int_equal(r->seen[MR_TX_JOINED], seen + 2);
    assert_true(r->last[MR_TX_JOINED].joined.formed);
    /* the session recovers until the server has its shard */
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
    (void)report(r, MR_TRAINING_PS, 0, member(r, 0).incarnation, nothing);
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
}

#define RING ",\"update\":{\"rule\":\"allreduce\"},\"roles\":{\"worker\":2}"

static void run_ring(struct rig *r, const char *more, uint64_t workers[2])
{
    char json[2048];
    (void)snprintf(json, sizeof json, "{" MODEL RING "%s}", more);
    assert_int_equal(start(r, "", json), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    workers[0] = join(r, MR_TRAINING_WORKER, 0, "j1-2/0/1");
    workers[1] = join(r, MR_TRAINING_WORKER, 1, "j1-2/1/1");
    (void)join(r, MR_TRAINING_SCORER, 0, "j1-2/2/1");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
}

/* Each rank owns a shard. So the loss of any rank takes all ranks back to the checkpoint. */
static void a_lost_rank_takes_the_ring_back(void **state)
{
    struct rig *r = *state;
    uint64_t w[2];
    run_ring(r, ",\"checkpoint\":{\"every_steps\":10}", w);
    for (uint32_t i = 0; i < 2; i++) {
        struct mr_training_report p = {
            .version = 10, .checkpoint_version = 10, .checkpoint_object = {i + 1, 10}};
        assert_int_equal(report(r, MR_TRAINING_WORKER, i, w[i], p), MR_OK);
    }
    assert_int_equal(look(r).checkpoint.version, 10);
    uint32_t seen = r->seen[MR_TX_JOINED];
    w[1] = join(r, MR_TRAINING_WORKER, 1, "j1-2/1/2");
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
    assert_int_equal(look(r).restores, 1);
    assert_int_equal(look(r).restore.version, 10);
    assert_int_equal(r->seen[MR_TX_JOINED], seen + 1);
    (void)report(r, MR_TRAINING_WORKER, 1, w[1], nothing);
    /* Rank 0 has not reported the new restore epoch. */
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
    (void)report(r, MR_TRAINING_WORKER, 0, w[0], nothing);
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
}

/* While a session stops, all ranks have the same parameters, and rank 0 alone saves them. The loss
 * of another rank costs nothing. */
static void a_rank_that_is_lost_at_the_stop_costs_nothing_but_the_first(void **state)
{
    struct rig *r = *state;
    uint64_t w[2];
    run_ring(r, ",\"stop\":{\"steps\":10}", w);
    for (uint32_t i = 0; i < 2; i++)
        (void)report(r, MR_TRAINING_WORKER, i, w[i], (struct mr_training_report){.version = 10});
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    (void)join(r, MR_TRAINING_WORKER, 1, "j1-2/1/2");
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    assert_int_equal(look(r).restores, 0);
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/0/2");
    assert_int_equal(look(r).state, MR_TRAINING_FAILED);
    says(look(r).reason, "worker 0 was replaced while the session stopped");
}

/* ---- leases ---------------------------------------------------------------------------------- */

/* Lets time pass in ticks of 400 ms. After a gap of more than 500 ms the core would extend all
 * leases, because the trainer itself seems to have slept. */
static void pass(struct rig *r, mr_duration time)
{
    for (mr_time end = r->now + time; r->now < end;)
        tick(r, MR_MIN(end - r->now, (mr_duration)400 * MR_MS));
}

static void a_member_is_lost_when_it_was_silent_for_its_lease(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, ",\"limits\":{\"lease_s\":2}");
    r->now += 100 * MR_MS;
    (void)report(r, MR_TRAINING_PS, 0, c.ps, nothing);
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, nothing);
    assert_true(mr_trainer_deadline(r->t) <= r->now + 1900 * MR_MS);
    pass(r, 1900 * MR_MS - 1);
    assert_int_equal(member(r, 1).state, MR_MEMBER_HERE);
    tick(r, 1);
    assert_int_equal(member(r, 1).state, MR_MEMBER_LOST);
    assert_int_equal(member(r, 1).incarnation, 0);
    assert_int_equal(member(r, 0).state, MR_MEMBER_HERE);
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
    tick(r, 100 * MR_MS);
    assert_int_equal(member(r, 0).state, MR_MEMBER_LOST);
    assert_int_equal(look(r).restores, 1);
}

/* The trainer's own process was suspended. The members' reports of that time wait to be read, so no
 * lease may end. */
static void a_trainer_that_slept_takes_nobody_for_dead(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    tick(r, 30 * MR_SECOND);
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    (void)report(r, MR_TRAINING_PS, 0, c.ps, nothing);
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, nothing);
    for (uint32_t i = 0; i < 8; i++)
        tick(r, 400 * MR_MS);
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING); /* the worker stays silent */
}

/* A lost worker had used up its data. That says nothing about the worker's replacement. */
static void a_lost_worker_has_used_up_nothing(void **state)
{
    struct rig *r = *state;
    assert_int_equal(
        start(r, "", "{" MODEL ",\"roles\":{\"worker\":2},\"stop\":{\"epochs\":9}}"), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
    uint64_t a = join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1");
    uint64_t b = join(r, MR_TRAINING_WORKER, 1, "j1-2/2/1");
    (void)join(r, MR_TRAINING_SCORER, 0, "j1-2/3/1");
    const struct mr_training_report over = {.exhausted = true};
    (void)report(r, MR_TRAINING_WORKER, 0, a, over);
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/2");
    (void)report(r, MR_TRAINING_WORKER, 1, b, over);
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    b = join(r, MR_TRAINING_WORKER, 1, "j1-2/2/2");
    (void)report(r, MR_TRAINING_WORKER, 0, member(r, 1).incarnation, over);
    /* Worker 0 falls silent; then worker 1 has used up its data. */
    for (uint32_t i = 0; i < 10; i++) {
        pass(r, 800 * MR_MS);
        bool is_lost = member(r, 1).state == MR_MEMBER_LOST;
        (void)report(r, MR_TRAINING_WORKER, 1, b, is_lost ? over : nothing);
        (void)report(r, MR_TRAINING_PS, 0, member(r, 0).incarnation, nothing);
        (void)report(r, MR_TRAINING_SCORER, 0, member(r, 3).incarnation, nothing);
    }
    assert_int_equal(member(r, 1).state, MR_MEMBER_LOST);
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
}

/* A role joins before Redis has the session. The role is told to wait, and to run later. */
static void who_joins_before_redis_has_the_session_is_to_run_later(void **state)
{
    struct rig *r = *state;
    r->holds = true;
    struct mr_trainer_event ev = {.type = MR_TE_START, .ticket = ++r->ticket};
    assert_int_equal(mr_training_document_parse(MR_STR("{" MODEL "}"), &ev.document, NULL), MR_OK);
    step(r, ev);
    r->id = r->last[MR_TX_WRITE].session;
    step(r, (struct mr_trainer_event){.type = MR_TE_JOIN,
                .ticket = ++r->ticket,
                .session = r->id,
                .role = MR_TRAINING_PS,
                .wait = 100 * MR_MS,
                .join = {MR_STR("j1-2/0/1"), MR_STR("h:1"), MR_STR("n"), MR_STR("")}});
    assert_int_equal(r->seen[MR_TX_JOINED], 0);
    tick(r, 100 * MR_MS);
    assert_int_equal(r->seen[MR_TX_JOINED], 1);
    assert_false(r->last[MR_TX_JOINED].joined.formed);
    assert_int_equal(r->last[MR_TX_JOINED].instruction.phase, MR_TRAINING_RUN);
}

/* ---- barriers -------------------------------------------------------------------------------- */

static void a_barrier_names_what_is_wrong_with_a_call(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    char name[MR_TRAINING_BARRIER_BYTES_MAX + 2];
    memset(name, 'b', sizeof name);
    name[MR_TRAINING_BARRIER_BYTES_MAX + 1] = 0;
    assert_int_equal(barrier(r, MR_TRAINING_PS, 0, c.ps, name, 1), MR_EINVAL);
    name[MR_TRAINING_BARRIER_BYTES_MAX] = 0;
    assert_int_equal(barrier(r, MR_TRAINING_PS, 0, c.ps, name, 1), MR_OK);
    assert_int_equal(barrier(r, MR_TRAINING_PS, 0, c.ps, "", 1), MR_EINVAL);
    assert_int_equal(barrier(r, MR_TRAINING_PS, 0, c.ps, "b", 0), MR_EINVAL);
    assert_int_equal(barrier(r, MR_TRAINING_PS, 0, c.ps + 9, "b", 1), MR_ESTATE);
    assert_int_equal(barrier(r, MR_TRAINING_PS, 0, 0, "b", 1), MR_ESTATE);
    assert_int_equal(barrier(r, MR_TRAINING_PS, 3, c.ps, "b", 1), MR_EINVAL);
    assert_int_equal(barrier(r, MR_TRAINING_PS, 0, c.ps, "b", 3), 1);
    assert_int_equal(barrier(r, MR_TRAINING_WORKER, 0, c.worker, "b", 2), MR_EINVAL);
    says(mr_str(r->text), "ps 0 said 3 of barrier \"b\"");
    assert_int_equal(barrier(r, MR_TRAINING_WORKER, 0, c.worker, "b", 3), 1);
    assert_int_equal(barrier(r, MR_TRAINING_SCORER, 0, c.scorer, "b", 3), MR_OK);
    assert_int_equal(r->last[MR_TX_BARRIER].instruction.generation, look(r).generation);
    assert_true(r->last[MR_TX_BARRIER].session.v == r->id.v);
}

static void barriers_of_two_names_do_not_meet(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    assert_int_equal(barrier(r, MR_TRAINING_PS, 0, c.ps, "a", 2), 1);
    assert_int_equal(barrier(r, MR_TRAINING_WORKER, 0, c.worker, "b", 2), 1);
    uint64_t first = r->ticket - 1;
    assert_int_equal(barrier(r, MR_TRAINING_PS, 0, c.ps, "b", 2), MR_OK);
    /* The server's wait for barrier "a" was given up. */
    assert_int_equal(r->seen[MR_TX_BARRIER], 3);
    assert_true(first > 0);
    assert_int_equal(barrier(r, MR_TRAINING_PS, 0, c.ps, "c", 2), 1);
    tick(r, MR_SECOND - 1);
    assert_int_equal(r->seen[MR_TX_BARRIER], 3);
    tick(r, 1);
    assert_int_equal(r->last[MR_TX_BARRIER].err, MR_ETIMEOUT);
    assert_int_equal(barrier(r, MR_TRAINING_PS, 0, c.ps, "c", 2), 1);
    uint32_t seen = r->seen[MR_TX_BARRIER], joined = r->seen[MR_TX_JOINED];
    stop_it(r, true);
    assert_int_equal(r->last[MR_TX_BARRIER].err, MR_EABORTED);
    says(mr_str(r->text), "the session has ended");
    /* Only the server's barrier was still waiting. */
    assert_int_equal(r->seen[MR_TX_BARRIER], seen + 1);
    assert_int_equal(r->seen[MR_TX_JOINED], joined);
}

static void barriers_of_all_that_wait_end_with_a_loss(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    assert_int_equal(barrier(r, MR_TRAINING_WORKER, 0, c.worker, "a", 3), 1);
    assert_int_equal(barrier(r, MR_TRAINING_SCORER, 0, c.scorer, "b", 3), 1);
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/2");
    assert_int_equal(r->seen[MR_TX_BARRIER], 2);
    assert_int_equal(r->last[MR_TX_BARRIER].err, MR_EABORTED);
    says(mr_str(r->text), "a member came or went meanwhile");
}

static void only_the_role_whose_call_has_gone_waits_no_more(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    assert_int_equal(barrier(r, MR_TRAINING_WORKER, 0, c.worker, "a", 2), 1);
    uint64_t ticket = r->ticket;
    assert_int_equal(barrier(r, MR_TRAINING_SCORER, 0, c.scorer, "b", 2), 1);
    step(r, (struct mr_trainer_event){.type = MR_TE_GONE, .ticket = ticket});
    /* No other role waits for "a". */
    assert_int_equal(barrier(r, MR_TRAINING_PS, 0, c.ps, "a", 2), 1);
    assert_int_equal(barrier(r, MR_TRAINING_PS, 0, c.ps, "b", 2), MR_OK);
    assert_int_equal(r->seen[MR_TX_BARRIER], 3);
    r->holds = true; /* the joins of two roles wait for Redis */
    (void)join(r, MR_TRAINING_WORKER, 0, "j1-2/1/2");
    ticket = r->ticket;
    (void)join(r, MR_TRAINING_SCORER, 0, "j1-2/2/2");
    uint32_t joined = r->seen[MR_TX_JOINED];
    step(r, (struct mr_trainer_event){.type = MR_TE_GONE, .ticket = ticket});
    r->holds = false;
    step(r, (struct mr_trainer_event){.type = MR_TE_REDIS_ACKED, .sequence = r->sequence});
    assert_int_equal(r->seen[MR_TX_JOINED], joined + 1);
    assert_int_equal(r->last[MR_TX_JOINED].role, MR_TRAINING_SCORER);
}

static void a_barrier_wakes_the_trainer_when_it_ends(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    step(r, (struct mr_trainer_event){.type = MR_TE_BARRIER,
                .ticket = ++r->ticket,
                .session = r->id,
                .role = MR_TRAINING_WORKER,
                .incarnation = c.worker,
                .text = MR_STR("a"),
                .parties = 2,
                .wait = 300 * MR_MS});
    assert_int_equal(mr_trainer_deadline(r->t), r->now + 300 * MR_MS);
}

/* ---- the stop -------------------------------------------------------------------------------- */

/* All roles are told HALT until all have halted. Then the scorer, which saves the model, is told
 * KEEP. At last all are told EXIT. */
static void the_phases_of_a_stop_come_one_after_another(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    stop_it(r, false);
    uint64_t incarnations[] = {0, c.ps, c.worker, c.scorer};
    /* Each role learns of the stop. */
    for (int role = MR_TRAINING_PS; role <= MR_TRAINING_SCORER; role++) {
        (void)report(r, (enum mr_training_role)role, 0, incarnations[role], nothing);
        struct mr_trainer_effect x = r->last[MR_TX_REPORTED];
        assert_int_equal(x.instruction.phase, MR_TRAINING_HALT);
        assert_true(x.role == (enum mr_training_role)role && x.index == 0);
        assert_true(x.ticket == r->ticket && x.session.v == r->id.v);
    }
    struct mr_training_report kept = {.finished = true, .model_object = {5, 6}};
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, kept); /* too early: no role has halted */
    assert_int_equal(r->last[MR_TX_REPORTED].instruction.phase, MR_TRAINING_HALT);
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, finished);
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, kept); /* the worker does not save the model */
    assert_int_equal(r->last[MR_TX_REPORTED].instruction.phase, MR_TRAINING_HALT);
    /* too early: the scorer has not been told to save yet */
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, kept);
    assert_int_equal(r->last[MR_TX_REPORTED].instruction.phase, MR_TRAINING_KEEP);
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, finished); /* the report has no model */
    assert_int_equal(r->last[MR_TX_REPORTED].instruction.phase, MR_TRAINING_KEEP);
    assert_true(mr_object_id_is_none(look(r).model_object));
    uint32_t writes = r->seen[MR_TX_WRITE];
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, kept);
    /* The core writes the session's record, now with the model. So a trainer that restarts knows
     * the model. */
    assert_int_equal(r->seen[MR_TX_WRITE], writes + 1);
    assert_true(mr_object_id_eq(look(r).model_object, (mr_object_id){5, 6}));
    for (int role = MR_TRAINING_PS; role <= MR_TRAINING_SCORER; role++) {
        assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
        (void)report(r, (enum mr_training_role)role, 0, incarnations[role], nothing);
        assert_int_equal(r->last[MR_TX_REPORTED].instruction.phase, MR_TRAINING_EXIT);
        writes = r->seen[MR_TX_WRITE];
        (void)report(r, (enum mr_training_role)role, 0, incarnations[role], finished);
        assert_int_equal(r->seen[MR_TX_WRITE], writes + 1);
    }
    assert_int_equal(look(r).state, MR_TRAINING_DONE);
    says(look(r).reason, "stopped: a client asked for it");
}

/* Without a scorer, worker 0 saves the model. */
static void a_session_without_a_scorer_is_saved_by_worker_0(void **state)
{
    struct rig *r = *state;
    assert_int_equal(start(r, "", "{" MODEL ",\"roles\":{\"worker\":2,\"scorer\":0}}"), MR_OK);
    job(r, true, MR_TRAINING_JOB_GOES_ON, "");
    uint64_t w[2];
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/1");
    w[0] = join(r, MR_TRAINING_WORKER, 0, "j1-2/1/1");
    w[1] = join(r, MR_TRAINING_WORKER, 1, "j1-2/2/1");
    assert_int_equal(look(r).state, MR_TRAINING_RUNNING);
    stop_it(r, false);
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t i = 0; i < 2; i++) {
            (void)report(r, MR_TRAINING_WORKER, i, w[i], round ? finished : nothing);
            assert_int_equal(r->last[MR_TX_REPORTED].index, i);
        }
    (void)report(r, MR_TRAINING_WORKER, 0, w[0], nothing);
    assert_int_equal(r->last[MR_TX_REPORTED].instruction.phase, MR_TRAINING_KEEP);
    (void)report(r, MR_TRAINING_WORKER, 1, w[1], nothing);
    assert_int_equal(r->last[MR_TX_REPORTED].instruction.phase, MR_TRAINING_HALT);
}

/* A role that ends after EXIT is not lost: no other member needs it any more. */
static void who_goes_at_the_end_is_not_missed(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    stop_it(r, false);
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, nothing);
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, finished);
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, nothing);
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer,
        (struct mr_training_report){.finished = true, .model_object = {5, 6}});
    uint32_t generation = look(r).generation;
    for (uint32_t i = 0; i < 10; i++)
        tick(r, 400 * MR_MS);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(member(r, i).state, MR_MEMBER_FINISHED);
    assert_int_equal(look(r).state, MR_TRAINING_DONE);
    assert_int_equal(look(r).generation, generation);
    assert_int_equal(look(r).restores, 0);
    uint32_t seen = r->seen[MR_TX_JOINED];
    /* A worker's attempt that joins after the session has ended is told to end. */
    assert_int_equal(join(r, MR_TRAINING_WORKER, 0, "j1-2/1/9"), 0);
    assert_int_equal(r->seen[MR_TX_JOINED], seen + 1);
    assert_int_equal(r->last[MR_TX_JOINED].instruction.phase, MR_TRAINING_EXIT);
    assert_true(r->last[MR_TX_JOINED].joined.formed);
    assert_int_equal(r->last[MR_TX_JOINED].joined.incarnation, 0);
}

/* A failure that a role reports after the model was saved does not fail the session. */
static void a_failure_after_the_model_is_kept_fails_nothing(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, "");
    stop_it(r, false);
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, nothing);
    (void)report(r, MR_TRAINING_WORKER, 0, c.worker, finished);
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer, nothing);
    (void)report(r, MR_TRAINING_SCORER, 0, c.scorer,
        (struct mr_training_report){.finished = true, .model_object = {5, 6}});
    struct mr_training_report f = {.failure = MR_STR("too late")};
    (void)report(r, MR_TRAINING_PS, 0, c.ps, f);
    assert_int_equal(look(r).state, MR_TRAINING_STOPPING);
    step(r, (struct mr_trainer_event){.type = MR_TE_JOB_STATE,
                .session = r->id,
                .roles = true,
                .job_state = MR_TRAINING_JOB_FAILED});
    assert_int_equal(look(r).state, MR_TRAINING_DONE);
}

static void reports_of_revoked_ones_change_nothing(void **state)
{
    struct rig *r = *state;
    struct cast c = run(r, ",\"stop\":{\"steps\":5}");
    (void)join(r, MR_TRAINING_PS, 0, "j1-2/0/2");
    struct mr_training_report p = {.version = 9, .failure = MR_STR("no"), .finished = true};
    assert_int_equal(report(r, MR_TRAINING_PS, 0, c.ps, p), MR_ESTATE);
    says(mr_str(r->text), "ps 0: incarnation");
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
    /* This report belongs to the restore epoch before the current one. */
    p = (struct mr_training_report){.version = 9, .restore_epoch = 1};
    assert_int_equal(report(r, MR_TRAINING_PS, 0, member(r, 0).incarnation, p), MR_OK);
    assert_int_equal(look(r).version, 0);
    assert_int_equal(look(r).state, MR_TRAINING_RECOVERING);
    stop_it(r, true);
    p.restore_epoch = look(r).restore_epoch;
    /* The session is over: every role is told to end. */
    assert_int_equal(report(r, MR_TRAINING_PS, 0, c.ps, p), MR_OK);
    assert_int_equal(r->last[MR_TX_REPORTED].instruction.phase, MR_TRAINING_EXIT);
    assert_int_equal(look(r).version, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_join_that_is_let_in_learns_all_it_needs),
        TEST(a_second_join_of_a_role_ends_the_first),
        TEST(who_asks_for_no_place_of_the_session_is_refused),
        TEST(a_member_is_let_in_when_those_it_needs_are_there),
        TEST(a_lost_rank_takes_the_ring_back),
        TEST(a_rank_that_is_lost_at_the_stop_costs_nothing_but_the_first),
        TEST(a_member_is_lost_when_it_was_silent_for_its_lease),
        TEST(a_trainer_that_slept_takes_nobody_for_dead),
        TEST(a_lost_worker_has_used_up_nothing),
        TEST(who_joins_before_redis_has_the_session_is_to_run_later),
        TEST(a_barrier_names_what_is_wrong_with_a_call),
        TEST(barriers_of_two_names_do_not_meet),
        TEST(the_phases_of_a_stop_come_one_after_another),
        TEST(a_session_without_a_scorer_is_saved_by_worker_0),
        TEST(who_goes_at_the_end_is_not_missed),
        TEST(a_failure_after_the_model_is_kept_fails_nothing),
        TEST(reports_of_revoked_ones_change_nothing),
        TEST(barriers_of_all_that_wait_end_with_a_loss),
        TEST(only_the_role_whose_call_has_gone_waits_no_more),
        TEST(a_barrier_wakes_the_trainer_when_it_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
