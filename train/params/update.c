/* The asynchronous and the synchronous rule. A pass moves a range of the shard along all gradients
 * of an update at once, in pieces that several threads share. The synchronous rule has early
 * passes: they apply the numbers of gradients that will not change any more, while workers still
 * compute the other numbers. */
#include "train/params/update.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/os/machine.h"
#include "host/pool/thread_pool.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define HELD_MAX MR_TRAIN_WORKERS_MAX
/* Limit of gradients that the asynchronous rule applies in one pass. */
#define EACH_MAX 16u
#define PIECE ((uint64_t)65536) /* how many numbers a thread takes at a time */
/* A pass over fewer numbers runs on one thread, because waking others would cost more than it
 * saves. */
#define ALONE_MAX ((uint64_t)262144)
/* How many numbers of a slot are copied and then updated at a time; they stay in the cache in
 * between. */
#define COPIED ((uint64_t)8192)
/* Limits of the threads of one update. More threads do not help: memory bandwidth is the limit. */
#define SYNC_THREADS_MAX 4
#define ASYNC_THREADS_MAX 2

struct gradient_id { /* identifies a gradient */
    uint32_t worker;
    uint64_t incarnation, step;
};

struct job { /* what the threads of one pass share */
    struct mr_update *u;
    uint32_t n;
    uint64_t t;
    uint64_t first, count; /* the pass updates `count` numbers of the shard, from `first` on */
    float *to;
    const float *from;
};

struct mr_update {
    struct mr_shard *shard;
    struct mr_nn_optim optim;
    uint64_t trainable_count;
    enum mr_update_rule rule;
    uint32_t aggregate, live;
    /* early passes are possible, because the gradients of all workers are to be aggregated */
    bool is_early;
    /* Early passes have already computed version `early_version` of the shard's numbers early_low …
     * early_top - 1, with the gradients `early_of`, which are in order of worker. early_version 0:
     * there was no early pass for the next version. */
    uint64_t early_version, early_low, early_top;
    struct gradient_id *early_of;
    uint32_t early_count;
    struct mr_early *early; /* room for HELD_MAX gradients that are still being computed */
    /* vectors of the optimizer, such as the momentum */
    float *slots[MR_NN_SLOTS_MAX];
    /* if is_early, the slots of the next version; else equal to `slots` */
    float *slots_next[MR_NN_SLOTS_MAX];
    uint32_t slots_count;
    struct mr_push *held; /* gradients of the next update */
    uint32_t held_count;
    /* only with the synchronous rule. By worker; true: the worker has pushed an empty gradient for
     * version `passed_version` */
    bool *passed;
    uint32_t passed_count;
    uint64_t passed_version;
    const float **grads;     /* room for pointers to HELD_MAX gradients */
    struct gradient_id *ids; /* room for the ids of the gradients in `grads` */
    struct mr_thread_pool *pool;
    _Atomic uint64_t updates, applied, examples, stale, early_passes, update_ns, wait_ns;
};

static void count(_Atomic uint64_t *c, uint64_t n)
{
    (void)atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static void slots_fill(struct mr_update *u, const float *const *slots)
{
    size_t bytes = mr_shard_count(u->shard) * sizeof(float);
    for (uint32_t i = 0; i < u->slots_count; i++) {
        if (slots)
            memcpy(u->slots[i], slots[i], bytes);
        else
            memset(u->slots[i], 0, bytes);
    }
}

/* Returns how many threads an update gets. Workers on all processors wait for a synchronous update,
 * so several threads are worth their cost. An asynchronous update competes with the workers for
 * processors. With two threads the update gets a larger share; one thread would fall behind
 * four workers. */
static uint32_t threads_of(enum mr_update_rule rule)
{
    struct mr_machine machine;
    mr_machine_read(&machine);
    uint32_t cores = machine.cpus;
    uint32_t most = rule == MR_UPDATE_SYNC ? SYNC_THREADS_MAX : ASYNC_THREADS_MAX;
    return MR_MIN(cores, most);
}

static float *slot_new(const struct mr_update *u)
{
    return mr_alloc_aligned((mr_shard_count(u->shard) + 1) * sizeof(float), 64);
}

int mr_update_open(const struct mr_update_options *o, struct mr_update **out, struct mr_error *e)
{
    if (o->rule == MR_UPDATE_SYNC && (!o->aggregate || o->aggregate > MR_TRAIN_WORKERS_MAX))
        return mr_fail(e, MR_EINVAL, "replicas_to_aggregate is %u: expected 1 to %u", o->aggregate,
            MR_TRAIN_WORKERS_MAX);
    struct mr_update *u = mr_alloc(sizeof *u);
    u->shard = o->shard;
    u->optim = *o->optim;
    u->trainable_count = o->trainable_count;
    u->rule = o->rule;
    u->aggregate = o->aggregate;
    u->live = UINT32_MAX;
    u->is_early = o->rule == MR_UPDATE_SYNC && o->workers && o->aggregate >= o->workers;
    u->slots_count = mr_nn_optim_slots(o->optim);
    for (uint32_t i = 0; i < u->slots_count; i++)
        u->slots[i] = slot_new(u);
    for (uint32_t i = 0; i < u->slots_count; i++)
        u->slots_next[i] = u->is_early ? slot_new(u) : u->slots[i];
    slots_fill(u, o->slots);
    u->held = mr_alloc_array(HELD_MAX, sizeof *u->held);
    u->grads = mr_alloc_array(HELD_MAX, sizeof *u->grads);
    u->ids = mr_alloc_array(HELD_MAX, sizeof *u->ids);
    u->early = mr_alloc_array(HELD_MAX, sizeof *u->early);
    u->early_of = mr_alloc_array(HELD_MAX, sizeof *u->early_of);
    u->passed = mr_alloc_array(MR_TRAIN_WORKERS_MAX, sizeof *u->passed);
    u->pool =
        mr_thread_pool_new_placed(o->threads ? o->threads : threads_of(o->rule), o->processor);
    *out = u;
    return MR_OK;
}

static void held_drop(struct mr_update *u, enum mr_push_outcome outcome)
{
    for (uint32_t i = 0; i < u->held_count; i++)
        mr_shard_done_push(u->shard, &u->held[i], outcome);
    u->held_count = 0;
}

void mr_update_close(struct mr_update **update)
{
    if (!*update) return;
    struct mr_update *u = MR_STEAL(*update);
    held_drop(u, MR_PUSH_STALE);
    mr_thread_pool_free(&u->pool);
    for (uint32_t i = 0; i < u->slots_count; i++) {
        mr_release(u->slots[i]);
        if (u->is_early) mr_release(u->slots_next[i]);
    }
    mr_release(u->held);
    mr_release(u->passed);
    mr_release(u->grads);
    mr_release(u->ids);
    mr_release(u->early);
    mr_release(u->early_of);
    mr_release(u);
}

/* ---- one pass over memory ---------------------------------------------------------------------*/

static void move(const struct job *j, uint64_t first, uint64_t n)
{
    const struct mr_update *u = j->u;
    float *slots[MR_NN_SLOTS_MAX] = {0};
    for (uint32_t i = 0; i < u->slots_count; i++) {
        slots[i] = u->slots_next[i] + first;
        if (u->is_early) memcpy(slots[i], u->slots[i] + first, n * sizeof(float));
    }
    const float *grads[HELD_MAX];
    for (uint32_t i = 0; i < j->n; i++)
        grads[i] = u->grads[i] + first;
    const struct mr_nn_range r = {.from = j->from + first,
        .to = j->to + first,
        .slots = slots,
        .first = mr_shard_first(u->shard) + first,
        .count = n,
        .trainable_count = u->trainable_count};
    if (u->rule == MR_UPDATE_SYNC)
        mr_nn_optim_apply_mean(&u->optim, j->t, &r, grads, j->n);
    else
        mr_nn_optim_apply_each(&u->optim, j->t, &r, grads, j->n, 1);
}

static void move_part(const struct job *j, uint64_t at, uint64_t n)
{
    uint64_t piece = j->u->is_early ? COPIED : n;
    for (uint64_t done = 0; done < n; done += MR_MIN(piece, n - done))
        move(j, j->first + at + done, MR_MIN(piece, n - done));
}

/* Applies one piece of a pass. Runs on any thread of the pool. */
static void move_piece(void *ctx, uint32_t item, uint32_t worker)
{
    const struct job *j = ctx;
    uint64_t at = item * PIECE;
    (void)worker;
    move_part(j, at, MR_MIN(PIECE, j->count - at));
}

static void pass(struct mr_update *u, uint32_t n, uint64_t first, uint64_t end)
{
    struct job j = {.u = u,
        .n = n,
        .t = mr_shard_version(u->shard) + 1,
        .first = first,
        .count = end - first,
        /* an empty shard needs its next buffer, too, because its versions are published as well */
        .to = mr_shard_next(u->shard),
        .from = mr_shard_params(u->shard)};
    if (first >= end) return;
    if (j.count < ALONE_MAX || mr_thread_pool_workers(u->pool) == 1)
        move_part(&j, 0, j.count);
    else
        mr_thread_pool_run(u->pool, move_piece, &j, (uint32_t)((j.count + PIECE - 1) / PIECE));
}

/* Fills `grads` and `ids` with the held gradients and `n` early ones, and returns their number.
 * Under the synchronous rule the gradients are in order of worker, which makes the mean
 * reproducible; under the asynchronous rule they are in order of arrival. */
static uint32_t grads_merge(struct mr_update *u, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < u->held_count + n; i++) {
        const struct mr_push *p = i < u->held_count ? &u->held[i] : NULL;
        const struct mr_early *y = p ? NULL : &u->early[i - u->held_count];
        struct gradient_id id = p ? (struct gradient_id){p->worker, p->incarnation, p->step}
                                  : (struct gradient_id){y->worker, y->incarnation, y->step};
        uint32_t at = count++;
        for (; at > 0 && u->ids[at - 1].worker > id.worker && u->rule == MR_UPDATE_SYNC; at--) {
            u->ids[at] = u->ids[at - 1];
            u->grads[at] = u->grads[at - 1];
        }
        u->ids[at] = id;
        u->grads[at] = p ? p->grad : y->grad;
    }
    return count;
}

/* True: early passes used exactly the gradients in `ids`. False: the whole update is computed anew.
 * Early passes have not changed the parameters and optimizer slots of the current version. */
static bool is_begun(const struct mr_update *u, uint32_t n)
{
    bool is_same = u->early_version == mr_shard_version(u->shard) + 1 && u->early_count == n;
    for (uint32_t i = 0; i < n && is_same; i++)
        is_same = u->ids[i].worker == u->early_of[i].worker &&
                  u->ids[i].incarnation == u->early_of[i].incarnation &&
                  u->ids[i].step == u->early_of[i].step;
    return is_same;
}

static void slots_swap(struct mr_update *u)
{
    for (uint32_t i = 0; i < u->slots_count; i++) {
        float *now = u->slots[i];
        u->slots[i] = u->slots_next[i];
        u->slots_next[i] = now;
    }
}

/* Moves the shard along the held gradients and publishes the new version. */
static void apply(struct mr_update *u)
{
    mr_time begun = mr_clock_now();
    uint64_t version = mr_shard_version(u->shard);
    uint64_t examples = 0;
    uint32_t n = grads_merge(u, 0);
    for (uint32_t i = 0; i < n; i++)
        examples += u->held[i].examples;
    bool begun_early = is_begun(u, n);
    pass(u, n, 0, begun_early ? u->early_low : 0);
    pass(u, n, begun_early ? u->early_top : 0, mr_shard_count(u->shard));
    u->early_version = 0;
    slots_swap(u);
    uint64_t steps = u->rule == MR_UPDATE_SYNC ? 1 : n;
    mr_shard_publish(u->shard, version + steps);
    for (uint32_t i = 0; i < n; i++)
        mr_shard_done_push(u->shard, &u->held[i], MR_PUSH_APPLIED);
    u->held_count = 0;
    count(&u->updates, steps);
    count(&u->applied, n);
    count(&u->examples, examples);
    count(&u->update_ns, mr_clock_now() - begun);
}

static int next(struct mr_update *u, mr_time deadline, struct mr_push *out)
{
    mr_time begun = mr_clock_now();
    int err = mr_shard_next_push(u->shard, deadline, out);
    count(&u->wait_ns, mr_clock_now() - begun);
    return err;
}

/* ---- the rules --------------------------------------------------------------------------------*/

static int run_async(struct mr_update *u, uint64_t most, mr_time deadline)
{
    uint32_t room = (uint32_t)MR_MIN((uint64_t)EACH_MAX, most);
    int err = next(u, deadline, &u->held[0]);
    if (err) return err;
    u->held_count = 1;
    while (u->held_count < room && !mr_shard_next_push(u->shard, 0, &u->held[u->held_count]))
        u->held_count++;
    apply(u);
    return MR_OK;
}

static uint32_t enough(const struct mr_update *u)
{
    uint32_t n = MR_MIN(u->aggregate, u->live);
    return n ? n : 1;
}

static bool is_held(const struct mr_update *u, uint32_t worker)
{
    bool is = false;
    for (uint32_t i = 0; i < u->held_count && !is; i++)
        is = u->held[i].worker == worker;
    return is;
}

static void pass_set(struct mr_update *u, uint32_t worker, bool on)
{
    uint64_t version = mr_shard_version(u->shard);
    if (u->passed_version != version) {
        memset(u->passed, 0, MR_TRAIN_WORKERS_MAX * sizeof *u->passed);
        u->passed_count = 0;
        u->passed_version = version;
    }
    if (u->passed[worker] == on) return;
    u->passed[worker] = on;
    u->passed_count = on ? u->passed_count + 1 : u->passed_count - 1;
}

/* True: the mean can be taken, because enough workers have pushed. A worker that has pushed an
 * empty gradient for this version counts, too, but there has to be one gradient with examples. */
static bool is_enough(const struct mr_update *u)
{
    bool counts = u->passed_version == mr_shard_version(u->shard);
    return u->held_count && u->held_count + (counts ? u->passed_count : 0) >= enough(u);
}

static uint64_t trained_end(const struct mr_update *u)
{
    uint64_t first = mr_shard_first(u->shard), count = mr_shard_count(u->shard);
    return MR_MIN(count, MR_MAX(u->trainable_count, first) - first);
}

/* Runs an early pass: updates the parameters for which all gradients of the next update are final.
 * False: no pass was run, for example because too few parameters were ready. */
static bool run_early(struct mr_update *u)
{
    if (!u->is_early || u->held_count >= u->aggregate) return false;
    uint64_t t = mr_shard_version(u->shard) + 1;
    uint32_t wanted = u->aggregate - u->held_count;
    uint32_t n = mr_shard_early(u->shard, u->early, wanted);
    uint64_t low = 0;
    for (uint32_t i = 0; i < n; i++)
        low = MR_MAX(low, u->early[i].low);
    /* False: a worker in `early` has a gradient in `held` already. The next update uses only one
     * gradient of each worker, so it will not use the early one. */
    bool are_others = true;
    for (uint32_t k = 0; k < n; k++)
        are_others = are_others && !is_held(u, u->early[k].worker);
    uint32_t all = grads_merge(u, n);
    bool goes_on = is_begun(u, all);
    uint64_t top = goes_on ? u->early_low : trained_end(u);
    bool is_worth_it = n == wanted && are_others && low + MR_PARAMS_EARLY_MIN <= top;
    if (is_worth_it) {
        mr_time begun = mr_clock_now();
        if (!goes_on) u->early_top = top;
        u->early_version = t;
        u->early_count = all;
        memcpy(u->early_of, u->ids, all * sizeof *u->ids);
        pass(u, all, low, top);
        u->early_low = low;
        count(&u->early_passes, 1);
        count(&u->update_ns, mr_clock_now() - begun);
    }
    mr_shard_early_done(u->shard, u->early, n);
    return is_worth_it;
}

/* Takes one gradient. If there is none, does an early pass. If that is not possible, sleeps until
 * there may be work. */
static int gather(struct mr_update *u, mr_time deadline)
{
    uint32_t word = mr_shard_word(u->shard);
    struct mr_push p;
    int err = mr_shard_next_push(u->shard, 0, &p);
    if (err == MR_ETIMEOUT) {
        if (run_early(u)) return MR_OK;
        mr_time begun = mr_clock_now();
        if (begun >= deadline) return MR_ETIMEOUT;
        mr_shard_sleep(u->shard, word, deadline);
        count(&u->wait_ns, mr_clock_now() - begun);
        return MR_OK;
    }
    if (err) return err;
    bool is_current = p.base_version == mr_shard_version(u->shard);
    if (is_current && !is_held(u, p.worker)) {
        pass_set(u, p.worker, !p.examples);
        if (p.examples) u->held[u->held_count++] = p;
        if (p.examples) return MR_OK;
    }
    if (p.examples) count(&u->stale, 1);
    mr_shard_done_push(u->shard, &p, p.examples ? MR_PUSH_STALE : MR_PUSH_APPLIED);
    return MR_OK;
}

static int run_sync(struct mr_update *u, mr_time deadline)
{
    while (!is_enough(u)) {
        int err = gather(u, deadline);
        if (err) return err;
    }
    apply(u);
    return MR_OK;
}

int mr_update_run(struct mr_update *u, uint64_t version_limit, mr_time deadline)
{
    for (;;) {
        uint64_t version = mr_shard_version(u->shard);
        if (version_limit && version >= version_limit) return MR_OK;
        uint64_t most = version_limit ? version_limit - version : UINT64_MAX;
        int err = u->rule == MR_UPDATE_SYNC ? run_sync(u, deadline) : run_async(u, most, deadline);
        if (err) return err;
        if (mr_clock_now() >= deadline &&
            (!version_limit || mr_shard_version(u->shard) < version_limit))
            return MR_ETIMEOUT;
    }
}

int mr_update_drop(struct mr_update *u, mr_time deadline)
{
    struct mr_push p;
    count(&u->stale, u->held_count);
    held_drop(u, MR_PUSH_STALE);
    for (;;) {
        int err = next(u, deadline, &p);
        if (err) return err;
        count(&u->stale, p.examples != 0);
        mr_shard_done_push(u->shard, &p, p.examples ? MR_PUSH_STALE : MR_PUSH_APPLIED);
        if (mr_clock_now() >= deadline) return MR_ETIMEOUT;
    }
}

void mr_update_set_live(struct mr_update *u, uint32_t workers)
{
    u->live = workers;
}

void mr_update_restore(struct mr_update *u, uint32_t restore_epoch, uint64_t version,
    const float *params, const float *const *slots)
{
    held_drop(u, MR_PUSH_LOST);
    u->early_version = 0;
    memset(u->passed, 0, MR_TRAIN_WORKERS_MAX * sizeof *u->passed);
    u->passed_count = 0;
    slots_fill(u, slots);
    mr_shard_restore(u->shard, restore_epoch, version, params);
}

float *const *mr_update_slots(struct mr_update *u)
{
    return u->slots;
}

void mr_update_counts(const struct mr_update *u, struct mr_update_counts *out)
{
    struct mr_shard_counts s;
    mr_shard_counts(u->shard, &s);
    *out = (struct mr_update_counts){.updates = atomic_load(&u->updates),
        .applied = atomic_load(&u->applied),
        .examples = atomic_load(&u->examples),
        .stale = atomic_load(&u->stale),
        .early = atomic_load(&u->early_passes),
        .lost = s.lost,
        .update_ns = atomic_load(&u->update_ns),
        .wait_ns = atomic_load(&u->wait_ns)};
}
