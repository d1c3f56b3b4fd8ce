/* A worker with parameter servers (Li et al., "Scaling Distributed Machine Learning with the
 * Parameter Server", 2014): pulls parameters, computes gradients, pushes them. Under the
 * synchronous rule, the worker also waits for the next version after each push. */
#include "train/role/worker_ps.h"

#include "host/clock.h"
#include "train/params/client.h"
#include "train/state/save_model.h"

#define FLUSH_MAX (2 * MR_SECOND)
/* a synchronous worker that has had no batch for this long sends empty gradients */
#define STARVE_MAX (200 * MR_MS)
#define STARVE_TURN (5 * MR_MS)

struct link {
    struct mr_trainee *t;
    struct mr_params *params;             /* NULL: not connected */
    uint64_t incarnations[MR_SHARDS_MAX]; /* incarnations of the connected servers */
    struct mr_params_counts before;       /* totals over closed connections */
    uint64_t version, version_min;
    uint64_t push_step; /* number of pushes, over all connections */

    /* These members are used if batches come from a queue. The worker acknowledges a batch when the
     * servers have applied the batch's gradient. Under the synchronous rule, the servers drop a
     * late gradient. So the worker keeps each batch until the servers have answered the push; after
     * a drop it computes the gradient of the batch again. */
    uint64_t pushed;        /* number of the batch that was pushed last */
    uint64_t dropped;       /* number of dropped pushes at the last call of settle() */
    bool is_pushed;         /* sync: the gradient of the current batch was pushed */
    uint64_t passed;        /* sync: 1 + the version for which an empty gradient was pushed */
    mr_time starving_since; /* start of the present wait for a batch; 0: none */
};

static void counts_add(struct link *l)
{
    struct mr_params_counts n;
    mr_params_counts(l->params, &n);
    struct mr_agent_counters *c = &l->t->r.post.counters;
    c->pull_s = (double)(l->before.pull_ns + n.pull_ns) / 1e9;
    c->push_s = (double)(l->before.push_ns + n.push_ns) / 1e9;
    c->wait_s = (double)(l->before.wait_ns + n.wait_ns) / 1e9;
}

static void disconnect(struct link *l)
{
    if (!l->params) return;
    struct mr_params_counts n;
    mr_params_counts(l->params, &n);
    l->before.pull_ns += n.pull_ns;
    l->before.push_ns += n.push_ns;
    l->before.wait_ns += n.wait_ns;
    mr_params_close(&l->params);
    l->version_min = l->dropped = l->passed = 0;
    l->is_pushed = false;
    /* It is unknown whether the servers have applied the gradients of the batches that are not
     * settled yet. So these batches go back to the queue. */
    if (l->t->queue) mr_queue_feed_settle(l->t->queue, UINT64_MAX, false);
}

/* Connects to all servers. MR_EAGAIN: some server is not ready yet. */
static int connect_servers(struct link *l, bool reads_only, struct mr_error *e)
{
    struct mr_role *r = &l->t->r;
    const struct mr_role_plan *p = &r->plan;
    struct mr_place places[MR_SHARDS_MAX];
    if (!p->servers || p->servers > MR_SHARDS_MAX)
        return mr_fail(
            e, MR_EINVAL, "roles.ps: expected 1 to %u, got %u", MR_SHARDS_MAX, p->servers);
    for (uint32_t i = 0; i < p->servers; i++) {
        places[i] = mr_role_place(r, MR_ROLE_PS, i);
        l->incarnations[i] = places[i].incarnation;
    }
    const struct mr_place me = mr_role_place(r, MR_ROLE_WORKER, r->index);
    const struct mr_params_options o = {.session = r->session,
        .worker = r->index,
        .incarnation = me.incarnation,
        .count = p->model->count,
        .restore_epoch = r->members->m->restore_epoch,
        .shards = places,
        .shards_count = p->servers,
        .reads_only = reads_only,
        .same_version = p->rule == MR_ROLE_SYNC,
        .early_count = p->rule == MR_ROLE_SYNC ? p->model->trainable_count : 0,
        .stop = &r->stop};
    int err = mr_params_open(&o, mr_time_after(mr_clock_now(), 4 * MR_ROLE_TURN), &l->params, e);
    if (err == MR_ETIMEOUT || err == MR_EAWAY || err == MR_EABORTED) {
        mr_role_wait(r, mr_time_after(mr_clock_now(), MR_ROLE_TURN));
        return MR_EAGAIN;
    }
    if (!err) r->post.restore_epoch = r->members->m->restore_epoch;
    return err;
}

/* Called when there is a new membership: disconnects if a server was replaced or the session was
 * restored. */
static void check_servers(struct link *l)
{
    struct mr_role *r = &l->t->r;
    bool same = l->params && r->post.restore_epoch == r->members->m->restore_epoch;
    for (uint32_t i = 0; i < r->plan.servers && same; i++)
        same = mr_role_place(r, MR_ROLE_PS, i).incarnation == l->incarnations[i];
    if (!same) disconnect(l);
}

/* Turns the result of a function of params/client.h into MR_OK, MR_EAGAIN (try again in the next
 * turn), or an error that ends the role. */
static int sort_out(struct link *l, int err)
{
    if (!err || err == MR_ECANCELED) return err;
    if (err == MR_ETIMEOUT) return MR_EAGAIN;
    if (err != MR_EAWAY && err != MR_EABORTED) return err;
    disconnect(l);
    mr_role_wait(&l->t->r, mr_time_after(mr_clock_now(), MR_ROLE_TURN));
    return MR_EAGAIN;
}

/* True: this worker has done all epochs, or its data are used up. Under the synchronous rule
 * versions are counted, which are the same for all workers. So no worker waits for a gradient of a
 * worker that has finished. */
static bool is_done(const struct link *l)
{
    const struct mr_trainee *t = l->t;
    uint64_t epochs = t->r.plan.epochs;
    if (t->is_exhausted) return true;
    if (!t->feed || !epochs) return false;
    uint64_t at = t->r.plan.rule == MR_ROLE_SYNC ? l->version : t->steps;
    return at / mr_feed_steps(t->feed) >= epochs;
}

static int pull(struct link *l, mr_time deadline, struct mr_params_view *view, struct mr_error *e)
{
    int err = sort_out(l, mr_params_pull(l->params, l->version_min, deadline, view, e));
    if (!err) l->version = view->version;
    return err;
}

static bool is_sync(const struct link *l)
{
    return l->t->r.plan.rule == MR_ROLE_SYNC;
}

/* Called when the servers have answered the pushes of all batches up to number `batch`. True: the
 * servers have applied these pushes. False: the servers have dropped some of these pushes, so the
 * batches are learned again. */
static bool settle(struct link *l, uint64_t batch)
{
    struct mr_params_counts n;
    mr_params_counts(l->params, &n);
    bool learned = n.dropped == l->dropped;
    l->dropped = n.dropped;
    mr_queue_feed_settle(l->t->queue, batch, learned);
    return learned;
}

/* Waits until the servers have answered all pushes. Then the items of the pushed batches are
 * acknowledged, or go back to the queue. */
static int account(struct link *l, mr_time deadline)
{
    struct mr_trainee *t = l->t;
    if (!t->queue) return MR_OK;
    int err = sort_out(l, mr_params_flush(l->params, deadline, NULL));
    if (err) return err;
    bool learned = settle(l, l->pushed);
    if (l->is_pushed && learned) {
        l->pushed = mr_trainee_used(t);
        mr_queue_feed_settle(t->queue, l->pushed, true);
    }
    l->is_pushed = false;
    return MR_OK;
}

/* Pushes a gradient of no examples, once for each version, because the queue has no item for this
 * worker. Under the synchronous rule, other workers would otherwise wait for this worker's
 * gradient, although they may hold all items. */
static int pass(struct link *l, struct mr_error *e)
{
    struct mr_params_view view;
    float *grads = NULL;
    mr_time deadline = mr_time_after(mr_clock_now(), MR_ROLE_TURN);
    int err = pull(l, deadline, &view, e);
    if (!err) mr_params_release(l->params);
    if (err || l->passed == view.version + 1) return err;
    err = sort_out(l, mr_params_buffer(l->params, deadline, &grads, e));
    if (!err) err = sort_out(l, mr_params_push(l->params, ++l->push_step, 0, e));
    if (!err) l->passed = view.version + 1;
    return err;
}

/* Called when no batch came in time. Batches whose gradients the servers have applied leave the
 * queue, and batches whose gradients were dropped return to it. Under `sync`, an empty gradient is
 * pushed if the worker has had no batch for STARVE_MAX. */
static int starve(struct link *l, struct mr_error *e)
{
    mr_time now = mr_clock_now();
    if (!l->t->queue) return MR_EAGAIN;
    int err = account(l, mr_time_after(now, MR_ROLE_TURN));
    if (err) return err;
    if (!l->starving_since) l->starving_since = now;
    if (!is_sync(l) || now - l->starving_since < STARVE_MAX) return MR_EAGAIN;
    err = pass(l, e);
    return err ? err : MR_EAGAIN;
}

static mr_time batch_deadline(const struct link *l)
{
    mr_time now = mr_clock_now();
    bool waits = l->starving_since && now - l->starving_since >= STARVE_MAX;
    return mr_time_after(now, is_sync(l) && waits ? STARVE_TURN : MR_ROLE_TURN);
}

/* Computes the gradient of the current batch with the parameters of `view`, and pushes the
 * gradient. */
static int learn(
    struct link *l, const struct mr_params_view *view, mr_time deadline, struct mr_error *e)
{
    struct mr_trainee *t = l->t;
    float *grads = NULL;
    int err = sort_out(l, mr_params_buffer(l->params, deadline, &grads, e));
    if (err) return err;
    if (t->queue && !is_sync(l) && l->pushed) (void)settle(l, l->pushed - 1);
    err = mr_trainee_learn(t, view->params, grads, e);
    if (err) return err;
    mr_params_release(l->params);
    (void)mr_role_lap(&t->lap);
    err = sort_out(l, mr_params_push(l->params, ++l->push_step, t->r.plan.batch, e));
    if (is_sync(l)) l->version_min = view->version + 1;
    l->is_pushed = !err && t->queue && is_sync(l);
    if (!l->is_pushed && (!err || !t->queue)) l->pushed = mr_trainee_used(t);
    return err;
}

static int step(struct link *l, struct mr_error *e)
{
    struct mr_trainee *t = l->t;
    struct mr_params_view view;
    if (!l->params) return connect_servers(l, false, e);
    int err = mr_trainee_batch(t, t->steps, batch_deadline(l), e);
    if (err == MR_EAGAIN) return starve(l, e);
    l->starving_since = 0;
    t->is_exhausted = t->is_exhausted || err == MR_ENOENT;
    if (err) return err == MR_ENOENT ? MR_OK : err;
    mr_time deadline = mr_time_after(mr_clock_now(), MR_ROLE_TURN);
    err = pull(l, deadline, &view, e);
    if (err || is_done(l)) return err;
    if (l->is_pushed) {
        err = account(l, deadline);
        if (err || !t->has_batch) return err;
    }
    return learn(l, &view, deadline, e);
}

static int keep(struct mr_trainee *t, void *ctx, struct mr_error *e)
{
    struct link *l = ctx;
    for (;;) {
        int err = mr_role_look(&t->r, NULL);
        if (err) return err;
        check_servers(l);
        err = l->params ? MR_OK : connect_servers(l, true, e);
        struct mr_params_view view;
        mr_time deadline = mr_time_after(mr_clock_now(), MR_ROLE_TURN);
        if (!err) err = sort_out(l, mr_params_pull(l->params, 0, deadline, &view, e));
        if (!err) return mr_role_save_model(&t->r, view.params, view.version, e);
        if (err != MR_EAGAIN) return err;
    }
}

static int train(struct link *l, struct mr_error *e)
{
    struct mr_trainee *t = l->t;
    for (;;) {
        bool is_new = false;
        int err = mr_role_look(&t->r, &is_new);
        if (err) return err;
        if (is_new) check_servers(l);
        if (t->r.view.phase != MR_ROLE_RUN) {
            mr_time deadline = mr_time_after(mr_clock_now(), FLUSH_MAX);
            if (l->params) (void)mr_params_flush(l->params, deadline, NULL);
            if (l->params) (void)account(l, deadline);
            if (l->params) counts_add(l);
            mr_trainee_report(t, l->version);
            err = mr_trainee_linger(t, keep, l, e);
            if (err) return err;
            continue;
        }
        if (is_done(l)) {
            if (l->params && !t->is_exhausted)
                (void)mr_params_flush(l->params, mr_time_after(mr_clock_now(), FLUSH_MAX), NULL);
            t->is_exhausted = true;
            if (l->params && t->queue && is_sync(l)) (void)pass(l, e);
            mr_role_wait(&t->r, mr_time_after(mr_clock_now(), MR_ROLE_TURN));
        } else {
            err = step(l, e);
            if (err && err != MR_EAGAIN) return err;
        }
        if (l->params) counts_add(l);
        mr_trainee_report(t, l->version);
    }
}

static void ready(void *ctx, uint64_t offset, uint64_t count)
{
    struct link *l = ctx;
    mr_params_ready(l->params, l->push_step + 1, offset, count);
}

int mr_trainee_push(struct mr_trainee *t, struct mr_error *e)
{
    struct link l = {.t = t};
    if (t->r.plan.rule == MR_ROLE_SYNC) mr_trainee_follow(t, ready, &l);
    int err = train(&l, e);
    disconnect(&l);
    return err;
}
