/* train.ps: serves one shard of the parameters and applies the gradients that arrive. Decides when
 * to take a checkpoint and when to go back to a checkpoint. params/update.h has the update
 * rules. */
#include "train/role/ps.h"

#include "host/clock.h"
#include "host/thread.h"
#include "train/params/update.h"
#include "train/state/checkpoint.h"
#include "train/state/init.h"

/* limit of the wait until an earlier attempt has released the shard */
#define EARLIER_MAX (3 * MR_SECOND)

struct server {
    struct mr_role r;
    struct mr_shard *shard;
    struct mr_update *update;
    struct mr_checkpointer *checkpointer;
    uint64_t checkpoint_at; /* version of the next checkpoint; 0: none */
    bool drops;             /* the session stops, so gradients are dropped */
};

/* Opens the shard. An earlier attempt of this role may still be ending in this process and have the
 * shard. Then this function waits, at most EARLIER_MAX. */
static int shard_open(struct server *s, const struct mr_shard_options *o, struct mr_error *e)
{
    mr_time until = mr_time_after(mr_clock_now(), EARLIER_MAX);
    for (;;) {
        int err = mr_shard_open(o, &s->shard, e);
        if (err != MR_EEXIST || mr_clock_now() >= until) return err;
        if (mr_role_look(&s->r, NULL)) return MR_ECANCELED;
        mr_clock_sleep(10 * MR_MS);
    }
}

/* Returns the number of the processor that this shard prefers. The numbers of successive shards
 * differ by two, because the asynchronous rule updates a shard with two threads. */
static uint32_t processor_of(const struct mr_role *r)
{
    return r->env->processor + r->index * 2;
}

static int server_open(struct server *s, struct mr_error *e)
{
    struct mr_role *r = &s->r;
    const struct mr_role_plan *p = &r->plan;
    const struct mr_place me = mr_role_place(r, MR_ROLE_PS, r->index);
    uint64_t first = 0, count = 0;
    struct mr_role_state state;
    if (r->index >= p->servers)
        return mr_fail(e, MR_EINVAL, "ps %u: the document has %u of them", r->index, p->servers);
    mr_transport_slice(p->model->count, p->servers, r->index, &first, &count);
    int err = mr_role_state_load(r, first, count, &state, e);
    if (err) return err;
    const struct mr_shard_options shard = {.session = r->session,
        .shard = r->index,
        .shards = p->servers,
        .count = p->model->count,
        .incarnation = me.incarnation,
        .restore_epoch = r->members->m->restore_epoch,
        .version = state.version,
        .params = state.params,
        .readers_max = p->workers * 2 + p->scorers * 2 + 16,
        .stop = &r->stop};
    err = shard_open(s, &shard, e);
    const struct mr_update_options update = {.shard = s->shard,
        .optim = &p->optim,
        .trainable_count = p->model->trainable_count,
        .rule = p->rule == MR_ROLE_SYNC ? MR_UPDATE_SYNC : MR_UPDATE_ASYNC,
        .aggregate = p->aggregate,
        .workers = p->workers,
        .processor = processor_of(r),
        .slots = state.has_slots ? (const float *const *)state.slots : NULL};
    if (!err) err = mr_update_open(&update, &s->update, e);
    if (!err && p->checkpoint_steps) s->checkpointer = mr_checkpointer_start(r, r->index);
    s->checkpoint_at = mr_checkpoint_after(r, state.version);
    mr_role_state_fini(&state);
    return err;
}

/* Called when there is a new membership: revokes replaced workers, and goes back to a checkpoint if
 * the session has done so. */
static int take_members(struct server *s, struct mr_error *e)
{
    struct mr_role *r = &s->r;
    for (uint32_t i = 0; i < r->plan.workers; i++) {
        const struct mr_place at = mr_role_place(r, MR_ROLE_WORKER, i);
        if (at.incarnation) mr_shard_revoke(s->shard, i, at.incarnation);
    }
    uint32_t epoch = r->members->m->restore_epoch;
    if (epoch == mr_shard_epoch(s->shard)) return MR_OK;
    struct mr_role_state state;
    int err = mr_role_state_load(r, mr_shard_first(s->shard), mr_shard_count(s->shard), &state, e);
    if (err) return err;
    uint64_t was = mr_shard_version(s->shard);
    if (was > state.version) r->post.counters.steps_lost += was - state.version;
    mr_update_restore(s->update, epoch, state.version, state.params,
        state.has_slots ? (const float *const *)state.slots : NULL);
    s->checkpoint_at = mr_checkpoint_after(r, state.version);
    r->post.restore_epoch = epoch;
    mr_role_state_fini(&state);
    return MR_OK;
}

static void take_snapshot(struct server *s)
{
    uint64_t version = mr_shard_version(s->shard);
    mr_checkpointer_snapshot(s->checkpointer, version, mr_shard_params(s->shard),
        mr_update_slots(s->update), mr_shard_count(s->shard));
    s->checkpoint_at = mr_checkpoint_after(&s->r, version);
}

static void report(struct server *s)
{
    struct mr_update_counts n;
    mr_update_counts(s->update, &n);
    struct mr_agent_counters *c = &s->r.post.counters;
    c->steps = n.updates;
    c->examples = n.examples;
    c->gradients_applied = n.applied;
    c->gradients_stale = n.stale;
    c->gradients_lost = n.lost;
    c->compute_s = (double)n.update_ns / 1e9;
    c->wait_s = (double)n.wait_ns / 1e9;
    s->r.post.version = mr_shard_version(s->shard);
    mr_agent_report(s->r.agent, &s->r.post);
}

/* Returns the version at which updates have to pause: the version of the next checkpoint or the
 * last version of the session, whichever is first; 0: none. */
static uint64_t limit_of(const struct server *s)
{
    uint64_t last = s->r.plan.steps;
    return last && (!s->checkpoint_at || last < s->checkpoint_at) ? last : s->checkpoint_at;
}

/* Applies gradients for one turn. After the last version, gradients are dropped, so that no worker
 * waits for an answer. While the session stops, an update may wait for gradients that never come.
 * Then the gradients that have come for this update are dropped, too. */
static int turn(struct server *s)
{
    uint64_t last = s->r.plan.steps, version = mr_shard_version(s->shard);
    mr_time until = mr_time_after(mr_clock_now(), MR_ROLE_TURN);
    bool stops = s->r.view.phase != MR_ROLE_RUN;
    s->drops = s->drops && stops;
    if (s->drops || (last && version >= last)) return mr_update_drop(s->update, until);
    int err = mr_update_run(s->update, limit_of(s), until);
    s->drops = stops && err == MR_ETIMEOUT && mr_shard_version(s->shard) == version;
    return err;
}

static int serve(struct server *s, struct mr_error *e)
{
    int err = take_members(s, e);
    while (!err) {
        bool is_new = false;
        err = mr_role_look(&s->r, &is_new);
        if (!err && is_new) err = take_members(s, e);
        if (err) break;
        mr_update_set_live(s->update, s->r.view.workers_live);
        int ran = turn(s);
        report(s);
        if (ran == MR_OK && s->checkpoint_at && mr_shard_version(s->shard) >= s->checkpoint_at)
            take_snapshot(s);
    }
    return err;
}

static int ps_run(struct mr_op_call *call)
{
    struct server s = {0};
    struct mr_error e;
    e.text[0] = 0;
    const char *socket = "";
    struct mr_error *words = &e;
    int err = mr_transport_socket(&socket, &e);
    if (err) return mr_role_refuse(call, err, &e);
    err = mr_role_begin(call, &s.r, MR_ROLE_PS, socket, NULL);
    if (err) words = NULL;
    if (!err) err = server_open(&s, &e);
    /* workers compute for long and then wait for an update, so this thread should run soon when it
     * wakes */
    mr_thread_set_short_slice(true);
    mr_thread_cpu_prefer(processor_of(&s.r));
    if (!err) err = serve(&s, &e);
    mr_thread_cpu_clear();
    mr_thread_set_short_slice(false);
    mr_checkpointer_stop(&s.checkpointer);
    if (s.update) mr_update_close(&s.update);
    if (s.shard) mr_shard_close(&s.shard);
    return mr_role_end(&s.r, err, words);
}

static const struct mr_op_param params[] = {
    {"session", MR_TAKES_TEXT, NULL, "Id of the training session."},
    {"index", MR_TAKES_INT, NULL, "Index among the roles of this kind, from 0."},
    {"trainer", MR_TAKES_TEXT, NULL, "Address of the trainer."},
    {"data", MR_TAKES_NIL | MR_TAKES_DICT, "null", "Sets of x and y, by name."},
};

const struct mr_op_desc mr_train_ps_op = {.abi = MR_OP_ABI,
    .flags = MR_OP_BY_REFERENCE | MR_OP_LONG_RUNNING | MR_OP_MAY_BLOCK,
    .name = "train.ps",
    .summary = "Runs a role of a training session that serves parameters; started by the trainer.",
    .result = "null",
    .params = params,
    .params_count = MR_ARRAY_LEN(params),
    .cost_ns = 1000000000,
    .run = ps_run};
