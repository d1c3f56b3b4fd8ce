/* A worker under all-reduce: a rank. All ranks take the same steps. The version of the parameters
 * counts the steps in which some rank had a batch. The reduced vector ends with two numbers that
 * are not part of the model. After a step all ranks see the same two numbers. The first number
 * becomes negative in a step in which some rank had to halt or had no more data; then all ranks
 * halt. The second number changes in a step in which some rank had a batch. */
#include "train/role/worker_ring.h"

#include "base/alloc.h"
#include "host/clock.h"
#include "train/allreduce/allreduce.h"
#include "train/params/shard.h"
#include "train/state/checkpoint.h"
#include "train/state/init.h"
#include "train/state/save_model.h"

/* Limit of one step. It is long, because another rank may wait for a batch from a queue; lost ranks
 * are noticed earlier. */
#define STEP_MAX (300 * MR_SECOND)
/* limit of the wait for a new membership after the ring broke */
#define REFORM_MAX (15 * MR_SECOND)
/* A rank that has had no batch for this long takes steps without one. */
#define STARVE_MAX (200 * MR_MS)
#define STARVE_TURN (5 * MR_MS)
#define FORM_TURN (500 * MR_MS)
#define ASK_TIMEOUT (2 * MR_SECOND)

struct ring {
    struct mr_trainee *t;
    struct mr_reduce *reduce; /* NULL: the group is not formed */
    struct mr_shard *shard;   /* rank 0: the shard that serves the scorer; NULL: none */
    struct mr_checkpointer *checkpointer;
    uint64_t incarnations[MR_RANKS_MAX];
    uint64_t version;
    struct mr_reduce_counts before;
    uint64_t updated_ns;    /* duration of the optimizer's work that compute_s already includes */
    double publish_s;       /* duration of making copies for the scorer and for checkpoints */
    mr_time broken_at;      /* time when the ring broke; 0: the ring is whole */
    mr_time starving_since; /* start of the present wait for a batch; 0: none */
    bool others_learn;      /* some rank had a batch in the last step */
    bool has_halted;        /* all ranks have halted, after the same step */
    float *kept; /* rank 0: the parameters to save, which are of version `kept_version` */
    uint64_t kept_version;
};

/* Returns the length of the reduced vector. */
static uint64_t numbers(const struct ring *g)
{
    return g->t->r.plan.model->count + MR_RING_WORDS;
}

static uint64_t halt_at(const struct ring *g)
{
    return g->t->r.plan.model->count;
}

static uint64_t batch_at(const struct ring *g)
{
    return g->t->r.plan.model->count + 1;
}

/* Returns a hash of the ranks' incarnations and the restore epoch. Only ranks with the same hash
 * form a group. */
static uint32_t ring_word(const struct ring *g)
{
    uint64_t h = g->t->r.members->m->restore_epoch;
    for (uint32_t i = 0; i < g->t->r.plan.workers; i++)
        h = mr_hash_u64(h ^ g->incarnations[i]);
    return (uint32_t)h;
}

static void leave(struct ring *g)
{
    if (!g->reduce) return;
    struct mr_reduce_counts n;
    mr_reduce_counts(g->reduce, &n);
    g->before.wait_ns += n.wait_ns;
    g->before.update_ns += n.update_ns;
    g->before.average_ns += n.average_ns;
    /* after a restore the worker goes on at another step, so the batch is of no use */
    if (g->t->feed) g->t->has_batch = false;
    mr_reduce_close(&g->reduce);
}

static int shard_open(struct ring *g, struct mr_error *e)
{
    struct mr_role *r = &g->t->r;
    if (r->index || !r->plan.scorers) return MR_OK;
    if (g->shard) mr_shard_close(&g->shard);
    const struct mr_shard_options o = {.session = r->session,
        .shards = 1,
        .count = r->plan.model->count,
        .incarnation = g->incarnations[0],
        .restore_epoch = r->members->m->restore_epoch,
        .version = g->version,
        .params = mr_reduce_params(g->reduce),
        .stop = &r->stop};
    return mr_shard_open(&o, &g->shard, e);
}

/* Forms the group with all other ranks. MR_EAGAIN: some rank is not ready yet. */
static int form(struct ring *g, struct mr_error *e)
{
    struct mr_role *r = &g->t->r;
    const struct mr_role_plan *p = &r->plan;
    struct mr_place places[MR_RANKS_MAX];
    if (p->workers > MR_RANKS_MAX)
        return mr_fail(e, MR_EINVAL, "roles.worker: expected at most %u under allreduce, got %u",
            MR_RANKS_MAX, p->workers);
    for (uint32_t i = 0; i < p->workers; i++) {
        places[i] = mr_role_place(r, MR_ROLE_WORKER, i);
        g->incarnations[i] = places[i].incarnation;
    }
    uint64_t first = 0, count = 0;
    mr_transport_slice(numbers(g), p->workers, r->index, &first, &count);
    struct mr_role_state state;
    int err = mr_role_state_load(r, first, count, &state, e);
    if (err) return err;
    const struct mr_reduce_options o = {.session = r->session,
        .generation = ring_word(g),
        .rank = r->index,
        .ranks = p->workers,
        .places = places,
        .count = numbers(g),
        .trainable_count = p->model->trainable_count,
        .optim = &p->optim,
        .version = state.version,
        .params = state.params,
        .slots = state.has_slots ? (const float *const *)state.slots : NULL,
        .stop = &r->is_void};
    mr_flag_set(&r->is_void, mr_flag_is_set(&r->stop));
    mr_time until = mr_time_after(mr_clock_now(), FORM_TURN);
    err = mr_reduce_open(&o, until, &g->reduce, e);
    if (!err) {
        if (!r->index && g->version > state.version)
            r->post.counters.steps_lost += g->version - state.version;
        g->version = state.version;
        r->post.restore_epoch = r->members->m->restore_epoch;
        g->broken_at = 0;
        err = shard_open(g, e);
    } else if (err != MR_EINVAL && err != MR_ELIMIT) {
        mr_role_wait(r, mr_time_after(mr_clock_now(), MR_ROLE_TURN));
        err = MR_EAGAIN;
    }
    mr_role_state_fini(&state);
    return err;
}

/* Called when there is a new membership: leaves the group if a rank was replaced or the session
 * went back to a checkpoint. A replaced scorer changes nothing. */
static void check_ranks(struct ring *g)
{
    struct mr_role *r = &g->t->r;
    bool same = r->post.restore_epoch == r->members->m->restore_epoch;
    for (uint32_t i = 0; i < r->plan.workers && same; i++)
        same = mr_role_place(r, MR_ROLE_WORKER, i).incarnation == g->incarnations[i];
    if (!same) leave(g);
}

/* Copies the parameters between two steps. The copy is the last state on which all ranks have
 * agreed, even if the ring breaks later. */
static void keep_copy(struct ring *g)
{
    uint64_t n = g->t->r.plan.model->count;
    if (g->t->r.index || !g->reduce) return;
    if (!g->kept) g->kept = mr_alloc_array(n, sizeof *g->kept);
    memcpy(g->kept, mr_reduce_params(g->reduce), n * sizeof *g->kept);
    g->kept_version = g->version;
}

static void publish(struct ring *g, const float *params, uint64_t version)
{
    if (!g->shard || mr_shard_version(g->shard) == version) return;
    memcpy(mr_shard_next(g->shard), params, g->t->r.plan.model->count * sizeof *params);
    mr_shard_publish(g->shard, version);
}

static void cut(struct ring *g)
{
    uint64_t every = g->t->r.plan.checkpoint_steps, first = 0, count = 0;
    if (!g->checkpointer || g->version % every) return;
    mr_reduce_slice(g->reduce, &first, &count);
    mr_checkpointer_snapshot(g->checkpointer, g->version, mr_reduce_params(g->reduce) + first,
        mr_reduce_slots(g->reduce), count);
}

static void report(struct ring *g)
{
    struct mr_reduce_counts n = {0};
    if (g->reduce) mr_reduce_counts(g->reduce, &n);
    struct mr_agent_counters *c = &g->t->r.post.counters;
    c->wait_s = (double)(g->before.wait_ns + n.wait_ns) / 1e9;
    c->push_s = (double)(g->before.average_ns + n.average_ns) / 1e9 + g->publish_s;
    uint64_t updated = g->before.update_ns + n.update_ns;
    c->compute_s += (double)(updated - g->updated_ns) / 1e9;
    g->updated_ns = updated;
    mr_trainee_report(g->t, g->version);
}

/* True: this rank has had no batch for so long that it should take a step without a batch, because
 * the other ranks wait for it. While some rank has batches, the result is true in each step. While
 * no rank has a batch, the result is true once every STARVE_MAX. */
static bool is_starving(struct ring *g)
{
    mr_time now = mr_clock_now();
    if (!g->starving_since) g->starving_since = now;
    if (now - g->starving_since < STARVE_MAX) return false;
    if (!g->others_learn) g->starving_since = 0;
    return true;
}

/* Computes the gradient of this step's batch into `grads`. Without a batch the gradient is zero.
 * grads[halt_at(g)] is 1 if this rank halts or has no more data, else 0. */
static int gradients(struct ring *g, float *grads, struct mr_error *e)
{
    struct mr_trainee *t = g->t;
    bool halts = t->r.view.phase != MR_ROLE_RUN;
    mr_time now = mr_clock_now();
    bool is_short = g->starving_since && now - g->starving_since >= STARVE_MAX;
    mr_time until = mr_time_after(now, is_short ? STARVE_TURN : MR_ROLE_TURN);
    int err = halts ? MR_ENOENT : mr_trainee_batch(t, g->version, until, e);
    if (err && err != MR_ENOENT && err != MR_EAGAIN) return err;
    if (err == MR_EAGAIN && !is_starving(g)) return err;
    if (err) {
        memset(grads, 0, numbers(g) * sizeof *grads);
        grads[halt_at(g)] = err == MR_ENOENT;
        mr_reduce_pass(g->reduce);
        return MR_OK;
    }
    g->starving_since = 0;
    err = mr_trainee_learn(t, mr_reduce_params(g->reduce), grads, e);
    grads[halt_at(g)] = 0;
    /* the sign alternates, so that the sum over the steps stays small and exact */
    grads[batch_at(g)] = g->version % 2 ? -1.0f : 1.0f;
    return err;
}

/* Called when all ranks have taken the step: the batch is learned. */
static void settle(struct ring *g, float batches_before)
{
    struct mr_trainee *t = g->t;
    const float *params = mr_reduce_params(g->reduce);
    g->version = mr_reduce_version(g->reduce);
    t->steps = g->version;
    g->others_learn = params[batch_at(g)] != batches_before;
    /* the number stays 0 until a rank halts, and then becomes negative, because the optimizer
     * subtracts */
    g->has_halted = params[halt_at(g)] < 0;
    if (!t->has_batch) return;
    uint64_t batch = mr_trainee_used(t);
    if (t->queue) mr_queue_feed_settle(t->queue, batch, true);
}

static int step(struct ring *g, struct mr_error *e)
{
    struct mr_trainee *t = g->t;
    float batches_before = mr_reduce_params(g->reduce)[batch_at(g)];
    uint64_t version = g->version;
    int err = gradients(g, mr_reduce_buffer(g->reduce), e);
    if (err) return err;
    (void)mr_role_lap(&t->lap);
    err = mr_reduce_step(g->reduce, mr_time_after(mr_clock_now(), STEP_MAX), e);
    if (err) {
        leave(g);
        g->broken_at = mr_clock_now();
        return MR_EAGAIN;
    }
    settle(g, batches_before);
    (void)mr_role_lap(&t->lap);
    if (g->shard && mr_shard_is_wanted(g->shard))
        publish(g, mr_reduce_params(g->reduce), g->version);
    if (!g->has_halted && g->version != version) cut(g);
    g->publish_s += mr_role_lap(&t->lap);
    return MR_OK;
}

static bool is_done(const struct ring *g)
{
    const struct mr_trainee *t = g->t;
    return t->feed && t->r.plan.epochs && g->version / mr_feed_steps(t->feed) >= t->r.plan.epochs;
}

/* True: this is the last version that `stop.steps` allows. */
static bool is_last(const struct ring *g)
{
    uint64_t last = g->t->r.plan.steps;
    return last && g->reduce && g->version >= last;
}

static int keep(struct mr_trainee *t, void *ctx, struct mr_error *e)
{
    struct ring *g = ctx;
    return mr_role_save_model(&t->r, g->kept, g->kept_version, e);
}

/* Asks the trainer for the session's newest complete checkpoint and loads it. The role itself only
 * knows an older checkpoint, the one from which training began. */
static int checkpoint_take(struct ring *g, struct mr_error *e)
{
    struct mr_role *r = &g->t->r;
    struct mr_pb_arena arena;
    struct mr_role_state state;
    Millrace__V1__GetTrainingRequest q = MILLRACE__V1__GET_TRAINING_REQUEST__INIT;
    const Millrace__V1__Training *t = NULL;
    q.id = r->session;
    mr_pb_arena_init(&arena, (size_t)64 << 20);
    int err;
    do { /* repeats until the trainer is back, or the session's time to stop is over */
        err = mr_role_call(r->link, "/millrace.v1.Trainings/Get", &q.base, ASK_TIMEOUT,
            mr_role_stop_of(r), &millrace__v1__training__descriptor, &arena, &t, e);
        if (err) mr_role_wait(r, mr_time_after(mr_clock_now(), MR_ROLE_TURN));
    } while (err && mr_role_may_retry(err));
    if (!err && !t->checkpoint && g->version)
        err = mr_fail(
            e, MR_ESTATE, "the ring broke while the session stopped, and there is no checkpoint");
    if (!err) err = mr_role_state_load_from(r, t->checkpoint, 0, r->plan.model->count, &state, e);
    mr_pb_arena_fini(&arena);
    if (err) return err;
    g->kept = MR_STEAL(state.params);
    g->kept_version = state.version;
    if (g->version > state.version) r->post.counters.steps_lost += g->version - state.version;
    mr_agent_report(r->agent, &r->post);
    mr_role_state_fini(&state);
    return MR_OK;
}

/* Makes rank 0 ready to save the model. Rank 0 will save its own parameters, or the last checkpoint
 * if the ring broke before rank 0 knew of the session's end. */
static int settle_model(struct ring *g, struct mr_error *e)
{
    struct mr_role *r = &g->t->r;
    if (r->index) return MR_OK;
    keep_copy(g);
    int err = g->kept ? MR_OK : checkpoint_take(g, e);
    if (!err) publish(g, g->kept, g->kept_version);
    return err;
}

/* Forms the group if there is none. MR_EAGAIN: try again. */
static int ensure(struct ring *g, struct mr_error *e)
{
    struct mr_role *r = &g->t->r;
    if (g->reduce) return MR_OK;
    if (g->broken_at && r->post.restore_epoch == r->members->m->restore_epoch) {
        /* The parameters are invalid until the trainer has noticed which rank is lost. If the
         * trainer notices no loss, this rank ends: its next attempt makes all ranks start from the
         * checkpoint. */
        if (mr_clock_now() - g->broken_at > REFORM_MAX)
            return mr_fail(e, MR_EABORTED,
                "the ring of ranks broke, and the trainer replaced none of them in time");
        mr_role_wait(r, mr_time_after(mr_clock_now(), MR_ROLE_TURN));
        return MR_EAGAIN;
    }
    return mr_role_is_current(r) ? form(g, e) : mr_role_await_members(r) ? MR_ECANCELED : MR_EAGAIN;
}

static int train(struct ring *g, struct mr_error *e)
{
    struct mr_trainee *t = g->t;
    for (;;) {
        bool is_new = false;
        int err = mr_role_look(&t->r, &is_new);
        if (err) return err;
        if (is_new) check_ranks(g);
        bool runs = t->r.view.phase == MR_ROLE_RUN;
        if (!runs && !g->reduce) g->has_halted = true;
        if (!runs) keep_copy(g);
        bool is_over = g->has_halted || is_done(g), done = is_over || is_last(g);
        if (done && !runs) {
            report(g);
            err = settle_model(g, e);
            if (!err) err = mr_trainee_linger(t, keep, g, e);
            if (err) return err;
            continue;
        }
        t->is_exhausted = is_over;
        if (done) {
            mr_role_wait(&t->r, mr_time_after(mr_clock_now(), MR_ROLE_TURN));
        } else {
            err = ensure(g, e);
            if (!err) err = step(g, e);
            if (err && err != MR_EAGAIN) return err;
        }
        report(g);
    }
}

static void ready(void *ctx, uint64_t offset, uint64_t count)
{
    struct ring *g = ctx;
    mr_reduce_ready(g->reduce, offset, count);
}

int mr_trainee_reduce(struct mr_trainee *t, struct mr_error *e)
{
    struct ring g = {.t = t};
    mr_trainee_follow(t, ready, &g);
    if (t->r.plan.checkpoint_steps) g.checkpointer = mr_checkpointer_start(&t->r, t->r.index);
    int err = train(&g, e);
    mr_checkpointer_stop(&g.checkpointer);
    leave(&g);
    if (g.shard) mr_shard_close(&g.shard);
    mr_release(g.kept);
    return err;
}
