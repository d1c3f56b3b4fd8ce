/* A shard on its server's side. Truth about clients, pushes and buffers is in this process's own
 * memory; the segments only carry it over. */
#include "services/worker/params_shard.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/log.h"
#include "host/monitor.h"
#include "services/worker/params_parts.h"
#include "store/arena/segment.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READERS_DEFAULT 64u
#define REMOTE_BYTES_MIN                                                                           \
    ((uint64_t)1 << 30) /* of gradients that wait, whatever the shard's size                       \
                         */
#define REMOTE_VECTORS_MAX 64u

struct client { /* guarded by the shard's lock, but for what only the role's thread uses */
    struct mr_client_line *line; /* NULL: free; ours in its segment, read-only */
    const char *map;
    uint64_t bytes;
    bool is_gone; /* hung up; waits for `held` */
    bool is_worker;
    uint32_t worker;
    uint64_t incarnation;
    uint32_t taken[MR_PARAMS_UNDER_WAY]; /* serials */
    uint32_t held;                       /* pushes handed out and not done */
};

struct worker { /* what is known of one index; the role's thread only */
    uint64_t incarnation;
    uint64_t step;
    bool has_step;
};

struct mr_shard {
    struct mr_share_host host;
    struct mr_list node; /* in the table of this process */
    uint64_t id;
    uint32_t users; /* guarded by the table's lock */
    char session[MR_SESSION_MAX];
    uint32_t index, shards;
    uint64_t model_count, first, count;
    const struct mr_flag *stop;
    uint32_t readers_max, buffers_count;

    struct mr_shard_page *page;
    uint64_t bytes;
    int fd, bell_fd;
    struct mr_share_bell *bell;
    uint64_t serial;  /* of publications; the role's thread */
    uint32_t current; /* buffer */
    int64_t next;     /* buffer being written; -1: none chosen */
    uint64_t version;
    uint32_t epoch;
    struct worker *workers;
    uint32_t cursor; /* client to look at first */
    _Atomic uint32_t remote_pins[MR_PARAMS_BUFFERS_MAX];
    _Atomic int32_t remote_waiting;
    _Atomic uint64_t pushes, lost, repeats;
    _Atomic uint32_t clients_count;

    struct mr_monitor *lock;
    struct client *clients; /* readers_max */
    struct mr_list posted;  /* struct mr_remote_push */
    uint64_t posted_bytes;
    bool posted_first;
    bool is_closed;
};

static struct {
    pthread_mutex_t lock;
    struct mr_list shards;
    uint64_t ids;
    void (*sink)(void *ctx, struct mr_remote_push *p);
    void *sink_ctx;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- for the network --------------------------------------------------------------------------*/

struct mr_shard *mr_shard_get(const char *session, uint32_t shard)
{
    struct mr_shard *found = NULL;
    pthread_mutex_lock(&table.lock);
    if (!table.shards.next) mr_list_init(&table.shards);
    MR_LIST_EACH(node, &table.shards)
    {
        struct mr_shard *s = MR_LIST_ITEM(node, struct mr_shard, node);
        if (s->index != shard || strcmp(s->session, session)) continue;
        s->users++;
        found = s;
        break;
    }
    pthread_mutex_unlock(&table.lock);
    return found;
}

static void client_free(struct client *c)
{
    mr_segment_unmap((void *)(uintptr_t)c->map, c->bytes);
    *c = (struct client){0};
}

static void shard_free(struct mr_shard *s)
{
    for (uint32_t i = 0; i < s->readers_max && s->clients; i++)
        if (s->clients[i].map) client_free(&s->clients[i]);
    mr_segment_unmap(s->page, s->bytes);
    mr_segment_unmap(s->bell, sizeof *s->bell);
    if (s->fd >= 0) (void)close(s->fd);
    if (s->bell_fd >= 0) (void)close(s->bell_fd);
    mr_monitor_free(&s->lock);
    mr_release(s->clients);
    mr_release(s->workers);
    mr_release(s);
}

void mr_shard_put(struct mr_shard **shard)
{
    if (!*shard) return;
    struct mr_shard *s = MR_STEAL(*shard);
    pthread_mutex_lock(&table.lock);
    bool last = --s->users == 0;
    pthread_mutex_unlock(&table.lock);
    if (last) shard_free(s);
}

uint64_t mr_shard_id(const struct mr_shard *s)
{
    return s->id;
}

void mr_shard_set_sink(void (*sink)(void *ctx, struct mr_remote_push *p), void *ctx)
{
    pthread_mutex_lock(&table.lock);
    table.sink = sink;
    table.sink_ctx = ctx;
    pthread_mutex_unlock(&table.lock);
}

/* Under the table's lock, so that no call outlives the sink; a sink only notes and wakes. */
static void tell(struct mr_remote_push *p)
{
    pthread_mutex_lock(&table.lock);
    if (table.sink) {
        table.sink(table.sink_ctx, p);
    } else if (p) {
        mr_release(p->grad);
        mr_release(p);
    }
    pthread_mutex_unlock(&table.lock);
}

static const float *buffer_at(const struct mr_shard *s, uint32_t buffer)
{
    const char *base = (const char *)s->page + MR_SHARD_PAGE_BYTES;
    return (const float *)(const void *)(base + mr_vector_stride(s->count) * buffer);
}

/* May network reads hold one more buffer? A guess that errs by a few is covered by `buffers`
 * being chosen under the same rule: each distinct one is counted once. */
static bool may_pin(const struct mr_shard *s, uint32_t buffer)
{
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < s->buffers_count; i++)
        distinct += i != buffer && atomic_load(&s->remote_pins[i]) != 0;
    return distinct < MR_PARAMS_REMOTE_PINS;
}

int mr_shard_pin(
    struct mr_shard *s, uint64_t version_min, uint32_t restore_epoch, struct mr_shard_pin *out)
{
    for (;;) {
        if (atomic_load(&s->page->is_closed)) return MR_EAWAY;
        uint64_t current = atomic_load(&s->page->current);
        uint32_t b = (uint32_t)(current & 0xffff);
        if (!may_pin(s, b)) return MR_EAGAIN;
        (void)atomic_fetch_add(&s->remote_pins[b], 1);
        if (atomic_load(&s->page->current) != current) {
            mr_shard_unpin(s, b);
            continue;
        }
        *out = (struct mr_shard_pin){b, atomic_load(&s->page->buffers[b].version),
            atomic_load(&s->page->buffers[b].restore_epoch), buffer_at(s, b)};
        int err = MR_OK;
        if (out->restore_epoch > restore_epoch) err = MR_EABORTED;
        if (out->restore_epoch < restore_epoch || out->version < version_min)
            err = err ? err : MR_EAGAIN;
        if (err) mr_shard_unpin(s, b);
        return err;
    }
}

void mr_shard_unpin(struct mr_shard *s, uint32_t buffer)
{
    uint32_t before = atomic_fetch_sub(&s->remote_pins[buffer], 1);
    mr_assert(before > 0);
}

void mr_shard_note_waiting(struct mr_shard *s, int change)
{
    (void)atomic_fetch_add(&s->remote_waiting, change);
}

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
    if (!err) mr_share_ring(s->bell);
    return err;
}

/* ---- clients come and go, on the socket's thread
 * -----------------------------------------------*/

static int admit_check(const struct mr_shard *s, const struct mr_share_hello *h, struct mr_error *e)
{
    if (h->parts != s->shards || h->count != s->model_count)
        return mr_fail(e, MR_EABORTED,
            "shard %u of \"%s\" is one of %u of %" PRIu64 " numbers, not one of %u of %" PRIu64,
            s->index, s->session, s->shards, s->model_count, h->parts, h->count);
    if (h->kind == MR_SHARE_WORKER && h->from >= MR_TRAIN_WORKERS_MAX)
        return mr_fail(e, MR_EINVAL, "worker %u: at most %u may be", h->from, MR_TRAIN_WORKERS_MAX);
    return MR_OK;
}

static void line_clear(struct mr_shard_line *l)
{
    for (size_t i = 0; i < MR_PARAMS_UNDER_WAY; i++)
        atomic_store(&l->done[i], 0);
}

static int admit(struct mr_share_host *host, const struct mr_share_hello *h, int fd,
    struct mr_share_welcome *w, int fds[MR_SHARE_FDS], struct mr_error *e)
{
    struct mr_shard *s = MR_CONTAINER_OF(host, struct mr_shard, host);
    struct client c = {.bytes = mr_client_bytes(s->model_count, h->kind == MR_SHARE_READER),
        .is_worker = h->kind == MR_SHARE_WORKER,
        .worker = h->from,
        .incarnation = h->incarnation};
    int err = admit_check(s, h, e);
    void *map = NULL;
    if (!err) err = mr_share_map(fd, c.bytes, false, &map, e);
    if (fd >= 0) (void)close(fd);
    if (err) return err;
    c.map = map;
    c.line = (struct mr_client_line *)map + s->index;
    mr_monitor_enter(s->lock);
    uint32_t slot = 0;
    while (slot < s->readers_max && s->clients[slot].map)
        slot++;
    if (slot < s->readers_max) {
        line_clear(&s->page->lines[slot]);
        s->clients[slot] = c;
    }
    mr_monitor_leave(s->lock);
    if (slot == s->readers_max) {
        mr_segment_unmap(map, c.bytes);
        return mr_fail(e, MR_ELIMIT, "%u clients read shard %u of \"%s\" already", s->readers_max,
            s->index, s->session);
    }
    (void)atomic_fetch_add(&s->clients_count, 1);
    w->slot = slot;
    w->buffers = s->buffers_count;
    fds[0] = s->fd;
    fds[1] = s->bell_fd;
    return MR_OK;
}

static void gone(struct mr_share_host *host, uint32_t slot)
{
    struct mr_shard *s = MR_CONTAINER_OF(host, struct mr_shard, host);
    mr_monitor_enter(s->lock);
    struct client *c = &s->clients[slot];
    mr_assert(c->map && !c->is_gone);
    c->is_gone = true;
    if (!c->held) client_free(c);
    mr_monitor_leave(s->lock);
    (void)atomic_fetch_sub(&s->clients_count, 1);
}

/* ---- opening ----------------------------------------------------------------------------------*/

static int segments_make(struct mr_shard *s, struct mr_error *e)
{
    s->bytes = mr_shard_bytes(s->count, s->buffers_count);
    void *map = NULL;
    int err = mr_share_make("millrace-shard", s->bytes, true, &s->fd, &map, e);
    if (err) return err;
    s->page = map;
    err = mr_share_make("millrace-bell", sizeof *s->bell, false, &s->bell_fd, &map, e);
    if (!err) s->bell = map;
    return err;
}

static int table_add(struct mr_shard *s, struct mr_error *e)
{
    int err = mr_share_host_add(&s->host, e); /* also refuses a second one */
    if (err) return err;
    pthread_mutex_lock(&table.lock);
    if (!table.shards.next) mr_list_init(&table.shards);
    s->id = ++table.ids;
    mr_list_add_tail(&table.shards, &s->node);
    pthread_mutex_unlock(&table.lock);
    return MR_OK;
}

int mr_shard_open(const struct mr_shard_options *o, struct mr_shard **out, struct mr_error *e)
{
    mr_assert(o->shards && o->shard < o->shards);
    if (o->shards > MR_SHARDS_MAX)
        return mr_fail(e, MR_EINVAL, "%u shards: at most %u may be", o->shards, MR_SHARDS_MAX);
    if (strlen(o->session) >= MR_SESSION_MAX)
        return mr_fail(e, MR_EINVAL, "the id \"%s\" of a session is too long", o->session);
    struct mr_shard *s = mr_alloc(sizeof *s);
    s->users = 1;
    s->fd = s->bell_fd = -1;
    s->next = -1;
    (void)snprintf(s->session, sizeof s->session, "%s", o->session);
    s->index = o->shard;
    s->shards = o->shards;
    s->model_count = o->count;
    mr_share_cut(o->count, o->shards, o->shard, &s->first, &s->count);
    s->stop = o->stop;
    s->readers_max =
        MR_MIN(o->readers_max ? o->readers_max : READERS_DEFAULT, MR_PARAMS_READERS_MAX);
    s->buffers_count = s->readers_max + MR_PARAMS_REMOTE_PINS + 2;
    s->lock = mr_monitor_new();
    mr_list_init(&s->posted);
    s->clients = mr_alloc_array(s->readers_max, sizeof *s->clients);
    s->workers = mr_alloc_array(MR_TRAIN_WORKERS_MAX, sizeof *s->workers);
    s->host = (struct mr_share_host){
        .session = s->session, .index = o->shard, .admit = admit, .gone = gone};
    int err = segments_make(s, e);
    if (!err) {
        s->epoch = o->restore_epoch;
        memcpy(mr_shard_next(s), o->params, s->count * sizeof(float));
        mr_shard_publish(s, o->version);
        err = table_add(s, e);
    }
    if (err) {
        shard_free(s);
        return err;
    }
    *out = s;
    return MR_OK;
}

/* The lock is held, or nobody else knows the shard any more. */
static void posted_drop(struct mr_list *posted)
{
    for (struct mr_list *node; (node = mr_list_pop_head(posted));) {
        struct mr_remote_push *p = MR_LIST_ITEM(node, struct mr_remote_push, node);
        p->outcome = MR_PUSH_LOST;
        tell(p);
    }
}

void mr_shard_close(struct mr_shard **shard)
{
    if (!*shard) return;
    struct mr_shard *s = *shard;
    mr_share_host_remove(&s->host);
    struct mr_list posted;
    mr_list_init(&posted);
    mr_monitor_enter(s->lock);
    s->is_closed = true;
    for (struct mr_list *node; (node = mr_list_pop_head(&s->posted));)
        mr_list_add_tail(&posted, node);
    mr_monitor_leave(s->lock);
    atomic_store(&s->page->is_closed, 1);
    (void)atomic_fetch_add(&s->page->published, 1);
    mr_share_wake(&s->page->published);
    for (uint32_t i = 0; i < s->readers_max; i++) {
        (void)atomic_fetch_add(&s->page->lines[i].done_word, 1);
        if (s->clients[i].map) mr_share_wake(&s->page->lines[i].done_word);
    }
    pthread_mutex_lock(&table.lock);
    mr_list_remove(&s->node);
    pthread_mutex_unlock(&table.lock);
    posted_drop(&posted);
    tell(NULL);
    mr_shard_put(shard);
}

/* ---- versions ---------------------------------------------------------------------------------*/

const float *mr_shard_params(const struct mr_shard *s)
{
    return buffer_at(s, s->current);
}

uint64_t mr_shard_version(const struct mr_shard *s)
{
    return s->version;
}

uint32_t mr_shard_epoch(const struct mr_shard *s)
{
    return s->epoch;
}

uint64_t mr_shard_first(const struct mr_shard *s)
{
    return s->first;
}

uint64_t mr_shard_count(const struct mr_shard *s)
{
    return s->count;
}

/* The lowest that nobody reads: it has its memory already, most likely. */
static uint32_t buffer_choose(struct mr_shard *s)
{
    uint64_t busy[MR_PARAMS_BUFFERS_MAX / 64 + 1] = {0};
    if (s->serial) busy[s->current / 64] |= (uint64_t)1 << s->current % 64;
    mr_monitor_enter(s->lock);
    for (uint32_t i = 0; i < s->readers_max; i++) {
        const struct client *c = &s->clients[i];
        if (!c->map || c->is_gone) continue;
        uint32_t pin = atomic_load(&c->line->pin);
        if (pin && pin <= s->buffers_count) busy[(pin - 1) / 64] |= (uint64_t)1 << (pin - 1) % 64;
    }
    mr_monitor_leave(s->lock);
    uint32_t b = 0;
    while ((busy[b / 64] >> b % 64 & 1) || atomic_load(&s->remote_pins[b])) {
        b++;
        mr_assert(b < s->buffers_count); /* a reader holds one, the network a few, and current */
    }
    return b;
}

float *mr_shard_next(struct mr_shard *s)
{
    if (s->next < 0) s->next = buffer_choose(s);
    return (float *)(uintptr_t)buffer_at(s, (uint32_t)s->next);
}

static bool someone_waits(const struct mr_shard *s, uint32_t what)
{
    bool waits = false;
    mr_monitor_enter(s->lock);
    for (uint32_t i = 0; i < s->readers_max && !waits; i++) {
        const struct client *c = &s->clients[i];
        waits = c->map && !c->is_gone && (atomic_load(&c->line->waits) & what);
    }
    mr_monitor_leave(s->lock);
    return waits;
}

void mr_shard_publish(struct mr_shard *s, uint64_t version)
{
    mr_assert(s->next >= 0);
    uint32_t b = (uint32_t)s->next;
    atomic_store(&s->page->buffers[b].version, version);
    atomic_store(&s->page->buffers[b].restore_epoch, s->epoch);
    s->serial++;
    s->current = b;
    s->next = -1;
    s->version = version;
    atomic_store(&s->page->current, s->serial << 16 | b);
    (void)atomic_fetch_add(&s->page->published, 1);
    if (someone_waits(s, MR_WAITS_VERSION)) mr_share_wake(&s->page->published);
    if (atomic_load(&s->remote_waiting) > 0) tell(NULL);
}

bool mr_shard_is_wanted(const struct mr_shard *s)
{
    return atomic_load(&s->remote_waiting) > 0 || someone_waits(s, MR_WAITS_VERSION);
}

void mr_shard_restore(
    struct mr_shard *s, uint32_t restore_epoch, uint64_t version, const float *params)
{
    s->epoch = restore_epoch;
    memcpy(mr_shard_next(s), params, s->count * sizeof(float));
    mr_shard_publish(s, version);
}

/* ---- the mailbox ------------------------------------------------------------------------------*/

void mr_shard_revoke(struct mr_shard *s, uint32_t worker, uint64_t incarnation)
{
    if (worker >= MR_TRAIN_WORKERS_MAX) return;
    struct worker *w = &s->workers[worker];
    if (w->incarnation < incarnation) *w = (struct worker){.incarnation = incarnation};
}

/* What one client announced and was not taken: the older one first. With the lock held. */
static bool take_from(struct mr_shard *s, uint32_t slot, struct mr_push *out)
{
    struct client *c = &s->clients[slot];
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

static bool take_near(struct mr_shard *s, struct mr_push *out)
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

/* Those of this node and those of others take turns, so that neither waits for ever. */
static bool take_any(struct mr_shard *s, struct mr_push *out)
{
    mr_monitor_enter(s->lock);
    bool found = s->posted_first && take_posted(s, out);
    if (!found) found = take_near(s, out);
    if (!found) found = take_posted(s, out);
    if (found) s->posted_first = !out->remote;
    mr_monitor_leave(s->lock);
    return found;
}

/* Is it worth handing out? Notes its step and its incarnation. */
static enum mr_push_outcome judge(struct mr_shard *s, const struct mr_push *p)
{
    if (p->worker >= MR_TRAIN_WORKERS_MAX) return MR_PUSH_LOST;
    struct worker *w = &s->workers[p->worker];
    if (p->incarnation < w->incarnation) return MR_PUSH_LOST;
    if (p->incarnation > w->incarnation) *w = (struct worker){.incarnation = p->incarnation};
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
        if (mr_share_is_stopped(s->stop)) return MR_ECANCELED;
        if (mr_clock_now() >= deadline) return MR_ETIMEOUT;
        mr_share_bell_wait(s->bell, seen, deadline);
    }
}

static void done_remote(struct mr_shard *s, struct mr_remote_push *p, enum mr_push_outcome outcome)
{
    p->outcome = outcome;
    p->version = s->version;
    tell(p);
}

void mr_shard_done_push(struct mr_shard *s, const struct mr_push *p, enum mr_push_outcome outcome)
{
    if (p->remote) {
        done_remote(s, p->remote, outcome);
        return;
    }
    mr_monitor_enter(s->lock);
    struct client *c = &s->clients[p->source];
    mr_assert(c->map && c->held);
    c->held--;
    uint64_t done = (uint64_t)c->taken[p->buffer] << 8 | (uint64_t)outcome;
    bool gone_now = c->is_gone;
    struct mr_shard_line *l = &s->page->lines[p->source];
    if (!gone_now) {
        atomic_store(&l->done[p->buffer], done);
        (void)atomic_fetch_add(&l->done_word, 1);
        if (atomic_load(&c->line->waits) & MR_WAITS_BUFFER) mr_share_wake(&l->done_word);
    } else if (!c->held) {
        client_free(c);
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
