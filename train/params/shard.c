/* The server's side of a shard. The state of clients and buffers is in private memory; the segments
 * have only what the other side reads. shard.c and shard_table.c call each other: shard.c adds a
 * new shard to the table, and shard_table.c frees the shard when its last reference is dropped. */
#include "train/params/shard.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"
#include "train/params/shard_state.h"
#include "train/params/shard_table.h"
#include "store/arena/segment.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READERS_DEFAULT 64u

void mr_shard_client_free(struct mr_shard_client *c)
{
    mr_segment_unmap(mr_unconst(c->map), c->bytes);
    *c = (struct mr_shard_client){0};
}

void mr_shard_free(struct mr_shard *s)
{
    for (uint32_t i = 0; i < s->readers_max && s->clients; i++)
        if (s->clients[i].map) mr_shard_client_free(&s->clients[i]);
    mr_segment_unmap(s->page, s->bytes);
    mr_segment_unmap(s->bell, sizeof *s->bell);
    if (s->fd >= 0) (void)close(s->fd);
    if (s->bell_fd >= 0) (void)close(s->bell_fd);
    mr_monitor_free(&s->lock);
    mr_release(s->clients);
    mr_release(s->workers);
    mr_release(s);
}

/* ---- clients come and go, on the socket's thread ----------------------------------------------*/

static int admit_check(
    const struct mr_shard *s, const struct mr_transport_hello *h, struct mr_error *e)
{
    if (h->parts != s->shards || h->count != s->model_count)
        return mr_fail(e, MR_EABORTED,
            "shard %u of session \"%s\" is one of %u of %" PRIu64
            " numbers, not one of %u of %" PRIu64,
            s->index, s->session, s->shards, s->model_count, h->parts, h->count);
    if (h->kind == MR_TRANSPORT_WORKER && h->from >= MR_TRAIN_WORKERS_MAX)
        return mr_fail(e, MR_EINVAL, "worker %u: at most %u may be", h->from, MR_TRAIN_WORKERS_MAX);
    return MR_OK;
}

static void line_clear(struct mr_shard_line *l)
{
    for (size_t i = 0; i < MR_PARAMS_UNDER_WAY; i++)
        atomic_store(&l->done[i], 0);
}

static int admit(struct mr_transport_host *host, const struct mr_transport_hello *h, int fd,
    struct mr_transport_admission *w, int fds[MR_TRANSPORT_FDS], struct mr_error *e)
{
    struct mr_shard *s = MR_CONTAINER_OF(host, struct mr_shard, host);
    struct mr_shard_client c = {
        .bytes = mr_client_bytes(s->model_count, h->kind == MR_TRANSPORT_READER),
        .is_worker = h->kind == MR_TRANSPORT_WORKER,
        .worker = h->from,
        .incarnation = h->incarnation};
    int err = admit_check(s, h, e);
    void *map = NULL;
    if (!err) err = mr_transport_map(fd, c.bytes, false, &map, e);
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
        return mr_fail(e, MR_ELIMIT,
            "%u clients read shard %u of session \"%s\" already: that is its limit", s->readers_max,
            s->index, s->session);
    }
    (void)atomic_fetch_add(&s->clients_count, 1);
    w->slot = slot;
    w->buffers = s->buffers_count;
    fds[0] = s->fd;
    fds[1] = s->bell_fd;
    return MR_OK;
}

static void gone(struct mr_transport_host *host, uint32_t slot)
{
    struct mr_shard *s = MR_CONTAINER_OF(host, struct mr_shard, host);
    mr_monitor_enter(s->lock);
    struct mr_shard_client *c = &s->clients[slot];
    mr_assert(c->map && !c->is_gone);
    c->is_gone = true;
    if (!c->held) mr_shard_client_free(c);
    mr_monitor_leave(s->lock);
    (void)atomic_fetch_sub(&s->clients_count, 1);
}

/* ---- opening ----------------------------------------------------------------------------------*/

static int segments_make(struct mr_shard *s, struct mr_error *e)
{
    s->bytes = mr_shard_bytes(s->count, s->buffers_count);
    void *map = NULL;
    int err = mr_transport_make("millrace-shard", s->bytes, true, &s->fd, &map, e);
    if (err) return err;
    s->page = map;
    err = mr_transport_make("millrace-bell", sizeof *s->bell, false, &s->bell_fd, &map, e);
    if (!err) s->bell = map;
    return err;
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
    mr_transport_slice(o->count, o->shards, o->shard, &s->first, &s->count);
    s->stop = o->stop;
    s->readers_max =
        MR_MIN(o->readers_max ? o->readers_max : READERS_DEFAULT, MR_PARAMS_READERS_MAX);
    s->buffers_count = s->readers_max + MR_PARAMS_REMOTE_PINS + 2;
    s->lock = mr_monitor_new();
    mr_list_init(&s->posted);
    s->clients = mr_alloc_array(s->readers_max, sizeof *s->clients);
    s->workers = mr_alloc_array(MR_TRAIN_WORKERS_MAX, sizeof *s->workers);
    s->host = (struct mr_transport_host){
        .session = s->session, .index = o->shard, .admit = admit, .gone = gone};
    int err = segments_make(s, e);
    if (!err) {
        s->epoch = o->restore_epoch;
        memcpy(mr_shard_next(s), o->params, s->count * sizeof(float));
        mr_shard_publish(s, o->version);
        err = mr_shard_list(s, e);
    }
    if (err) {
        mr_shard_free(s);
        return err;
    }
    *out = s;
    return MR_OK;
}

/* Answers the pushes in `posted` as lost. The caller has removed them from the shard. */
static void posted_drop(struct mr_list *posted)
{
    for (struct mr_list *node; (node = mr_list_pop_head(posted));) {
        struct mr_remote_push *p = MR_LIST_ITEM(node, struct mr_remote_push, node);
        p->outcome = MR_PUSH_LOST;
        mr_shard_notify(p);
    }
}

void mr_shard_close(struct mr_shard **shard)
{
    if (!*shard) return;
    struct mr_shard *s = *shard;
    mr_transport_host_remove(&s->host);
    struct mr_list posted;
    mr_list_init(&posted);
    mr_monitor_enter(s->lock);
    s->is_closed = true;
    for (struct mr_list *node; (node = mr_list_pop_head(&s->posted));)
        mr_list_add_tail(&posted, node);
    mr_monitor_leave(s->lock);
    atomic_store(&s->page->is_closed, 1);
    (void)atomic_fetch_add(&s->page->published, 1);
    mr_transport_wake(&s->page->published);
    for (uint32_t i = 0; i < s->readers_max; i++) {
        (void)atomic_fetch_add(&s->page->lines[i].done_word, 1);
        if (s->clients[i].map) mr_transport_wake(&s->page->lines[i].done_word);
    }
    mr_shard_unlist(s);
    posted_drop(&posted);
    mr_shard_notify(NULL);
    mr_shard_put(shard);
}

/* ---- versions ---------------------------------------------------------------------------------*/

const float *mr_shard_params(const struct mr_shard *s)
{
    return mr_shard_buffer_at(s, s->current);
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

/* Returns the lowest buffer that is neither current nor pinned. The lowest one most likely has
 * committed memory already. */
static uint32_t buffer_choose(struct mr_shard *s)
{
    uint64_t busy[MR_PARAMS_BUFFERS_MAX / 64 + 1] = {0};
    if (s->serial) busy[s->current / 64] |= (uint64_t)1 << s->current % 64;
    mr_monitor_enter(s->lock);
    for (uint32_t i = 0; i < s->readers_max; i++) {
        const struct mr_shard_client *c = &s->clients[i];
        if (!c->map || c->is_gone) continue;
        uint32_t pin = atomic_load(&c->line->pin);
        if (pin && pin <= s->buffers_count) busy[(pin - 1) / 64] |= (uint64_t)1 << (pin - 1) % 64;
    }
    mr_monitor_leave(s->lock);
    uint32_t b = 0;
    while ((busy[b / 64] >> b % 64 & 1) || atomic_load(&s->remote_pins[b])) {
        b++;
        /* each reader pins at most one buffer, gRPC at most MR_PARAMS_REMOTE_PINS, and one is
         * current */
        mr_assert(b < s->buffers_count);
    }
    return b;
}

float *mr_shard_next(struct mr_shard *s)
{
    if (s->next < 0) s->next = buffer_choose(s);
    return mr_unconst(mr_shard_buffer_at(s, (uint32_t)s->next));
}

static bool someone_waits(const struct mr_shard *s, uint32_t what)
{
    bool waits = false;
    mr_monitor_enter(s->lock);
    for (uint32_t i = 0; i < s->readers_max && !waits; i++) {
        const struct mr_shard_client *c = &s->clients[i];
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
    if (someone_waits(s, MR_WAITS_VERSION)) mr_transport_wake(&s->page->published);
    if (atomic_load(&s->remote_waiting) > 0) mr_shard_notify(NULL);
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
