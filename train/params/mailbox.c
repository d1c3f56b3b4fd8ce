/* Collects the gradients that clients have announced in their own segments and those that came by
 * gRPC. Drops a gradient that cannot be used or that came before: enum mr_push_outcome has the
 * reasons. Tells the sender of each gradient the outcome. */
#include "train/params/mailbox.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "train/params/shard_state.h"
#include "train/params/shard_table.h"

/* Limit of the gradients from gRPC that wait: this many vectors or this many bytes, whichever is
 * larger. */
#define REMOTE_VECTORS_MAX 64u
#define REMOTE_BYTES_MIN ((uint64_t)1 << 30)

int mr_shard_post(struct mr_shard *s, struct mr_remote_push *p)
{
    uint64_t bytes = s->count * sizeof(float);
    int err = MR_OK;
    mr_monitor_enter(s->lock);
    if (s->is_closed) err = MR_EAWAY;
    if (!err && s->posted_bytes > MR_MAX(REMOTE_BYTES_MIN, bytes * REMOTE_VECTORS_MAX))
        err = MR_ELIMIT;
    if (!err) {
        s->posted_bytes += bytes;
        mr_list_add_tail(&s->posted, &p->node);
    }
    mr_monitor_leave(s->lock);
    if (!err) mr_transport_bell_ring(s->bell);
    return err;
}

void mr_shard_revoke(struct mr_shard *s, uint32_t worker, uint64_t incarnation)
{
    if (worker >= MR_TRAIN_WORKERS_MAX) return;
    struct mr_shard_worker *w = &s->workers[worker];
    if (w->incarnation < incarnation) *w = (struct mr_shard_worker){.incarnation = incarnation};
}

/* Takes a push that the client has made; of two pushes, the older one. False: the client has made
 * none. Called with the lock held. */
static bool take_from(struct mr_shard *s, uint32_t slot, struct mr_push *out)
{
    struct mr_shard_client *c = &s->clients[slot];
    if (!c->map || !c->is_worker || c->is_gone) return false;
    uint32_t serial[MR_PARAMS_UNDER_WAY];
    int b = -1;
    for (int i = 0; i < MR_PARAMS_UNDER_WAY; i++) {
        serial[i] = atomic_load(&c->line->push[i].serial);
        if (serial[i] == c->taken[i]) continue;
        if (b < 0 || (int32_t)(serial[i] - serial[b]) < 0) b = i;
    }
    if (b < 0) return false;
    const struct mr_client_push *p = &c->line->push[b];
    c->taken[b] = serial[b];
    c->held++;
    const char *grads = c->map + MR_CLIENT_PAGE_BYTES +
                        mr_vector_stride(s->model_count) * (uint64_t)b + s->first * sizeof(float);
    *out = (struct mr_push){.worker = c->worker,
        .examples = atomic_load(&p->examples),
        .incarnation = c->incarnation,
        .step = atomic_load(&p->step),
        .base_version = atomic_load(&p->base_version),
        .restore_epoch = atomic_load(&p->restore_epoch),
        .source = slot,
        .buffer = (uint32_t)b,
        .grad = (const float *)(const void *)grads};
    return true;
}

static bool take_shm(struct mr_shard *s, struct mr_push *out)
{
    for (uint32_t i = 0; i < s->readers_max; i++) {
        uint32_t slot = (s->cursor + i) % s->readers_max;
        if (!take_from(s, slot, out)) continue;
        s->cursor = slot + 1;
        return true;
    }
    return false;
}

static bool take_posted(struct mr_shard *s, struct mr_push *out)
{
    struct mr_list *node = mr_list_pop_head(&s->posted);
    if (!node) return false;
    struct mr_remote_push *p = MR_LIST_ITEM(node, struct mr_remote_push, node);
    s->posted_bytes -= s->count * sizeof(float);
    *out = p->push;
    out->remote = p;
    out->grad = p->grad;
    return true;
}

/* Takes a push. False: no push waits. Pushes of this node and of other nodes take turns, so that
 * neither side starves. */
static bool take_any(struct mr_shard *s, struct mr_push *out)
{
    mr_monitor_enter(s->lock);
    bool found = s->posted_first && take_posted(s, out);
    if (!found) found = take_shm(s, out);
    if (!found) found = take_posted(s, out);
    if (found) s->posted_first = !out->remote;
    mr_monitor_leave(s->lock);
    return found;
}

/* Returns MR_PUSH_LOST, MR_PUSH_REPEAT or MR_PUSH_APPLIED (mailbox.h says what they mean). The
 * update rule may still change MR_PUSH_APPLIED to MR_PUSH_STALE. Remembers the worker's latest step
 * and incarnation. */
static enum mr_push_outcome judge(struct mr_shard *s, const struct mr_push *p)
{
    if (p->worker >= MR_TRAIN_WORKERS_MAX) return MR_PUSH_LOST;
    struct mr_shard_worker *w = &s->workers[p->worker];
    if (p->incarnation < w->incarnation) return MR_PUSH_LOST;
    if (p->incarnation > w->incarnation)
        *w = (struct mr_shard_worker){.incarnation = p->incarnation};
    if (w->has_step && p->step <= w->step) return MR_PUSH_REPEAT;
    w->has_step = true;
    w->step = p->step;
    return p->restore_epoch == s->epoch ? MR_PUSH_APPLIED : MR_PUSH_LOST;
}

int mr_shard_next_push(struct mr_shard *s, mr_time deadline, struct mr_push *out)
{
    for (;;) {
        uint32_t seen = atomic_load(&s->bell->rung);
        while (take_any(s, out)) {
            enum mr_push_outcome o = judge(s, out);
            if (o == MR_PUSH_APPLIED) {
                (void)atomic_fetch_add(&s->pushes, 1);
                return MR_OK;
            }
            (void)atomic_fetch_add(o == MR_PUSH_LOST ? &s->lost : &s->repeats, 1);
            mr_shard_done_push(s, out, o);
        }
        if (mr_transport_is_stopped(s->stop)) return MR_ECANCELED;
        if (mr_clock_now() >= deadline) return MR_ETIMEOUT;
        mr_transport_bell_wait(s->bell, seen, deadline);
    }
}

uint32_t mr_shard_word(const struct mr_shard *s)
{
    return atomic_load(&s->bell->rung);
}

void mr_shard_sleep(struct mr_shard *s, uint32_t word, mr_time deadline)
{
    mr_transport_bell_wait(s->bell, word, deadline);
}

/* ---- gradients under way ----------------------------------------------------------------------*/

static const char *grads_at(const struct mr_shard *s, const struct mr_shard_client *c, uint32_t b)
{
    return c->map + MR_CLIENT_PAGE_BYTES + mr_vector_stride(s->model_count) * b +
           s->first * sizeof(float);
}

/* True: the client has announced a part of this gradient, and the push of the gradient would count
 * if it came now. `*low` becomes the first number of that part. */
static bool is_early(
    const struct mr_shard *s, const struct mr_shard_client *c, uint32_t b, uint64_t *low)
{
    const struct mr_client_push *p = &c->line->push[b];
    uint32_t serial = atomic_load(&p->early_serial);
    if (serial == c->taken[b]) return false;
    *low = MR_MIN(atomic_load(&p->early_low), s->count);
    if (atomic_load(&p->base_version) != s->version) return false;
    if (atomic_load(&p->restore_epoch) != s->epoch) return false;
    const struct mr_shard_worker *w = &s->workers[c->worker];
    if (c->incarnation < w->incarnation) return false;
    return c->incarnation > w->incarnation || !w->has_step || atomic_load(&p->step) > w->step;
}

static bool has_worker(const struct mr_early *early, uint32_t n, uint32_t worker)
{
    for (uint32_t i = 0; i < n; i++)
        if (early[i].worker == worker) return true;
    return false;
}

uint32_t mr_shard_early(struct mr_shard *s, struct mr_early *out, uint32_t most)
{
    uint32_t n = 0;
    mr_monitor_enter(s->lock);
    for (uint32_t i = 0; i < s->readers_max * MR_PARAMS_UNDER_WAY && n < most; i++) {
        uint32_t slot = i / MR_PARAMS_UNDER_WAY, b = i % MR_PARAMS_UNDER_WAY;
        struct mr_shard_client *c = &s->clients[slot];
        uint64_t low = 0;
        if (!c->map || !c->is_worker || c->is_gone || c->worker >= MR_TRAIN_WORKERS_MAX) continue;
        if (!is_early(s, c, b, &low) || has_worker(out, n, c->worker)) continue;
        c->held++;
        out[n++] = (struct mr_early){.worker = c->worker,
            .source = slot,
            .incarnation = c->incarnation,
            .step = atomic_load(&c->line->push[b].step),
            .low = low,
            .grad = (const float *)(const void *)grads_at(s, c, b)};
    }
    mr_monitor_leave(s->lock);
    return n;
}

void mr_shard_early_done(struct mr_shard *s, const struct mr_early *early, uint32_t n)
{
    mr_monitor_enter(s->lock);
    for (uint32_t i = 0; i < n; i++) {
        struct mr_shard_client *c = &s->clients[early[i].source];
        mr_assert(c->held);
        c->held--;
        if (c->is_gone && !c->held) mr_shard_client_free(c);
    }
    mr_monitor_leave(s->lock);
}

/* ---- outcomes of pushes -----------------------------------------------------------------------*/

static void done_remote(struct mr_shard *s, struct mr_remote_push *p, enum mr_push_outcome outcome)
{
    p->outcome = outcome;
    p->version = s->version;
    mr_shard_notify(p);
}

void mr_shard_done_push(struct mr_shard *s, const struct mr_push *p, enum mr_push_outcome outcome)
{
    if (p->remote) {
        done_remote(s, p->remote, outcome);
        return;
    }
    mr_monitor_enter(s->lock);
    struct mr_shard_client *c = &s->clients[p->source];
    mr_assert(c->map && c->held);
    c->held--;
    uint64_t done = (uint64_t)c->taken[p->buffer] << 8 | (uint64_t)outcome;
    bool gone_now = c->is_gone;
    struct mr_shard_line *l = &s->page->lines[p->source];
    if (!gone_now) {
        atomic_store(&l->done[p->buffer], done);
        (void)atomic_fetch_add(&l->done_word, 1);
        if (atomic_load(&c->line->waits) & MR_WAITS_BUFFER) mr_transport_wake(&l->done_word);
    } else if (!c->held) {
        mr_shard_client_free(c);
    }
    mr_monitor_leave(s->lock);
}

void mr_shard_counts(const struct mr_shard *s, struct mr_shard_counts *out)
{
    *out = (struct mr_shard_counts){.pushes = atomic_load(&s->pushes),
        .lost = atomic_load(&s->lost),
        .repeats = atomic_load(&s->repeats),
        .clients = atomic_load(&s->clients_count)};
}
