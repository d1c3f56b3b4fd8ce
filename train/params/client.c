/* The client of a model's shards. Each shard is reached by shared memory or by gRPC (remote.c),
 * which is decided when the client opens. This file has the shared-memory side, and the parts that
 * both sides share. A restore epoch begins when the session goes back to a checkpoint. */
#include "train/params/client.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/unconst.h"
#include "host/clock.h"
#include "train/params/layout.h"
#include "train/params/mailbox.h"
#include "train/params/remote.h"
#include "train/transport/host.h"
#include "store/arena/segment.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OPEN_PAUSE (10 * MR_MS) /* pause between two attempts to connect */
/* limit of the wait for a shard whose version is behind that of the others */
#define SAME_VERSION_WAIT (100 * MR_MS)

struct shard {
    char *address, *socket_path;
    bool is_same_node; /* the shard is on this node, so its socket is tried */
    uint64_t first, count;
    uint64_t version;  /* version that was pulled last */
    uint64_t gathered; /* version of the shard's part of `gather`; UINT64_MAX: none */
    uint32_t gathered_epoch;
    uint32_t serial; /* serial of the last push */
    /* For each buffer, the serial of its push; 0: the buffer is free. */
    uint32_t under_way[MR_PARAMS_UNDER_WAY];

    int socket; /* -1: the shard is remote */
    uint32_t slot, buffers_count;
    /* the shard's server was told that the shard's gradients are final from this index on, counted
     * from the shard's start (mr_params_ready) */
    uint64_t early_low;
    const struct mr_shard_page *page;
    uint64_t bytes;
    struct mr_transport_bell *bell;
    struct mr_client_line *line; /* this shard's line in the client's segment */

    struct mr_params_remote *remote;
};

struct mr_params {
    char session[MR_SESSION_MAX];
    uint32_t worker;
    uint64_t incarnation, count;
    uint32_t epoch;
    uint64_t early_count;
    uint64_t early_low; /* gradients in the current buffer are final from this index on */
    bool reads_only, same_version;
    const struct mr_flag *stop;
    struct shard *shards;
    uint32_t shards_count;
    float *gather; /* the whole vector; NULL: there is only one shard, which is read in place */
    /* this client's segment: a struct mr_client_line for each shard, then the gradient buffers */
    char *segment;
    uint64_t segment_bytes;
    int fd;
    uint32_t buffer; /* index of the current gradient buffer */
    bool has_buffer;
    struct mr_params_counts counts;
};

/* ---- shared memory ----------------------------------------------------------------------------*/

static int shm_map(struct shard *s, int fds[MR_TRANSPORT_FDS],
    const struct mr_transport_admission *w, struct mr_error *e)
{
    if (w->slot >= MR_PARAMS_READERS_MAX || !w->buffers || w->buffers > MR_PARAMS_BUFFERS_MAX)
        return mr_fail(e, MR_EFORMAT, "the admission to a shard is malformed");
    s->slot = w->slot;
    s->buffers_count = w->buffers;
    s->bytes = mr_shard_bytes(s->count, w->buffers);
    void *map = NULL;
    int err = mr_transport_map(fds[0], s->bytes, false, &map, e);
    if (err) return err;
    s->page = map;
    err = mr_transport_map(fds[1], sizeof *s->bell, true, &map, e);
    if (!err) s->bell = map;
    return err;
}

static void shm_close(struct shard *s)
{
    mr_segment_unmap(mr_unconst(s->page), s->bytes);
    mr_segment_unmap(s->bell, sizeof *s->bell);
    if (s->socket >= 0) (void)close(s->socket);
    s->page = NULL;
    s->bell = NULL;
    s->socket = -1;
}

static int shm_connect(struct mr_params *p, uint32_t index, mr_time deadline, struct mr_error *e)
{
    struct shard *s = &p->shards[index];
    struct mr_transport_hello h = {
        .kind = p->reads_only ? MR_TRANSPORT_READER : MR_TRANSPORT_WORKER,
        .index = index,
        .parts = p->shards_count,
        .from = p->worker,
        .generation = p->epoch,
        .incarnation = p->incarnation,
        .count = p->count};
    mr_transport_hello_fill(&h, p->session);
    struct mr_transport_admission w;
    int fds[MR_TRANSPORT_FDS];
    int err = mr_transport_connect(s->socket_path, &h, p->fd, deadline, &w, fds, &s->socket, e);
    if (err) return err;
    err = shm_map(s, fds, &w, e);
    for (int i = 0; i < MR_TRANSPORT_FDS; i++)
        if (fds[i] >= 0) (void)close(fds[i]);
    if (err) shm_close(s);
    s->line = (struct mr_client_line *)(void *)p->segment + index;
    return err;
}

static int gone(const struct mr_params *p, const struct shard *s, struct mr_error *e)
{
    return mr_fail(e, MR_EAWAY, "the server of shard %u of session \"%s\" is gone",
        (uint32_t)(s - p->shards), p->session);
}

static int late(
    const struct mr_params *p, const struct shard *s, const char *what, struct mr_error *e)
{
    return mr_fail(e, MR_ETIMEOUT, "shard %u of session \"%s\": %s did not come in time",
        (uint32_t)(s - p->shards), p->session, what);
}

/* Called between two reads of a shared word. Returns MR_OK, or the reason to stop waiting. */
static int may_wait(const struct mr_params *p, const struct shard *s, mr_time deadline,
    const char *what, struct mr_error *e)
{
    if (mr_transport_is_stopped(p->stop)) return mr_fail(e, MR_ECANCELED, "asked to stop");
    if (atomic_load(&s->page->is_closed) || mr_transport_is_hung_up(s->socket))
        return gone(p, s, e);
    if (mr_clock_now() >= deadline) return late(p, s, what, e);
    return MR_OK;
}

static void sleep_on(struct mr_params *p, struct shard *s, const _Atomic uint32_t *word,
    uint32_t seen, uint32_t why, mr_time deadline)
{
    mr_time now = mr_clock_now();
    (void)atomic_fetch_or(&s->line->waits, why);
    mr_transport_sleep(word, seen, MR_MIN(deadline, mr_time_after(now, MR_TRANSPORT_SLICE)));
    (void)atomic_fetch_and(&s->line->waits, ~why);
    p->counts.wait_ns += mr_clock_now() - now;
}

/* Pins the current version. MR_EAGAIN: the version is older than version_min, or of an earlier
 * restore epoch. MR_EABORTED: the shard has a later restore epoch. */
static int shm_pin(const struct mr_params *p, struct shard *s, uint64_t version_min,
    const float **params, struct mr_error *e)
{
    for (;;) {
        uint64_t current = atomic_load(&s->page->current);
        uint32_t b = (uint32_t)(current & 0xffff);
        if (b >= s->buffers_count) return mr_fail(e, MR_EFORMAT, "a shard's segment is malformed");
        atomic_store(&s->line->pin, b + 1);
        if (atomic_load(&s->page->current) != current) continue;
        uint32_t epoch = atomic_load(&s->page->buffers[b].restore_epoch);
        uint64_t version = atomic_load(&s->page->buffers[b].version);
        if (epoch == p->epoch && version >= version_min) {
            s->version = version;
            const char *base = (const char *)s->page + MR_SHARD_PAGE_BYTES;
            *params = (const float *)(const void *)(base + mr_vector_stride(s->count) * b);
            return MR_OK;
        }
        atomic_store(&s->line->pin, 0);
        if (epoch > p->epoch)
            return mr_fail(e, MR_EABORTED,
                "shard %u of session \"%s\" was restored: its epoch is %u, not %u",
                (uint32_t)(s - p->shards), p->session, epoch, p->epoch);
        return MR_EAGAIN;
    }
}

static int shm_pull(struct mr_params *p, struct shard *s, uint64_t version_min, mr_time deadline,
    const float **params, struct mr_error *e)
{
    for (;;) {
        uint32_t seen = atomic_load(&s->page->published);
        if (atomic_load(&s->page->is_closed)) return gone(p, s, e);
        int err = shm_pin(p, s, version_min, params, e);
        if (err != MR_EAGAIN) return err;
        err = may_wait(p, s, deadline, "a new version", e);
        if (err) return err;
        sleep_on(p, s, &s->page->published, seen, MR_WAITS_VERSION, deadline);
    }
}

static struct mr_client_push *shm_describe(struct mr_params *p, struct shard *s, uint64_t step)
{
    struct mr_client_push *n = &s->line->push[p->buffer];
    atomic_store_explicit(&n->step, step, memory_order_relaxed);
    atomic_store_explicit(&n->base_version, s->version, memory_order_relaxed);
    atomic_store_explicit(&n->restore_epoch, p->epoch, memory_order_relaxed);
    return n;
}

static uint32_t serial_after(uint32_t serial)
{
    return serial == UINT32_MAX ? 1 : serial + 1;
}

/* Announces that the gradient of the shard's trained numbers is final from index `low` on. */
static void shm_ready(struct mr_params *p, struct shard *s, uint64_t step, uint64_t low)
{
    struct mr_client_push *n = &s->line->push[p->buffer];
    uint32_t serial = serial_after(s->serial);
    s->early_low = low;
    bool is_first = atomic_load(&n->early_serial) != serial;
    if (is_first) (void)shm_describe(p, s, step);
    atomic_store(&n->early_low, low);
    if (is_first) atomic_store(&n->early_serial, serial);
    mr_transport_bell_ring(s->bell);
}

static void shm_push(struct mr_params *p, struct shard *s, uint64_t step, uint32_t examples)
{
    struct mr_client_push *n = shm_describe(p, s, step);
    atomic_store_explicit(&n->examples, examples, memory_order_relaxed);
    atomic_store(&n->serial, s->under_way[p->buffer]);
    mr_transport_bell_ring(s->bell);
}

static int shm_wait(
    struct mr_params *p, struct shard *s, uint32_t buffer, mr_time deadline, struct mr_error *e)
{
    const struct mr_shard_line *l = &s->page->lines[s->slot];
    for (;;) {
        uint32_t seen = atomic_load(&l->done_word);
        uint64_t done = atomic_load(&l->done[buffer]);
        if ((uint32_t)(done >> 8) == s->under_way[buffer]) {
            uint64_t outcome = done & 0xff;
            p->counts.dropped += outcome == MR_PUSH_STALE || outcome == MR_PUSH_LOST;
            return MR_OK;
        }
        int err = may_wait(p, s, deadline, "the answer to a push", e);
        if (err) return err;
        sleep_on(p, s, &l->done_word, seen, MR_WAITS_BUFFER, deadline);
    }
}

/* ---- opening ----------------------------------------------------------------------------------*/

static void far_open(struct mr_params *p, uint32_t index)
{
    struct shard *s = &p->shards[index];
    struct mr_params_remote_options o = {.session = p->session,
        .address = s->address,
        .shard = index,
        .worker = p->worker,
        .incarnation = p->incarnation,
        .count = s->count,
        .stop = p->stop};
    s->remote = mr_params_remote_open(&o);
    p->counts.shards_remote++;
    (void)atomic_fetch_add(&mr_transport_traffic()->grpc_links, 1);
}

/* Connects to a shard. If the shard is on this node, tries the socket until the server listens or
 * the deadline has passed. Uses gRPC for a shard on another node, and also if the socket refuses
 * this process or the path of the socket does not exist here. */
static int shard_open(struct mr_params *p, uint32_t index, mr_time deadline, struct mr_error *e)
{
    struct shard *s = &p->shards[index];
    int err = MR_EAWAY;
    while (s->is_same_node) {
        err = shm_connect(p, index, deadline, e);
        if (!err) p->counts.shards_local++;
        if (!err) (void)atomic_fetch_add(&mr_transport_traffic()->shm_links, 1);
        if (err != MR_EAWAY && err != MR_ENOENT) break;
        /* the path does not exist here: the server has another mount namespace */
        if (*s->address && access(s->socket_path, F_OK)) break;
        if (mr_transport_is_stopped(p->stop)) return mr_fail(e, MR_ECANCELED, "asked to stop");
        if (mr_clock_now() >= deadline) break;
        mr_clock_sleep(OPEN_PAUSE);
    }
    if (!err) return MR_OK;
    if (err == MR_ENOENT)
        return mr_fail(
            e, MR_ETIMEOUT, "shard %u of session \"%s\" is not served yet", index, p->session);
    if (!*s->address || (s->is_same_node && err != MR_EAWAY && err != MR_EPERM)) {
        if (s->is_same_node) return err;
        return mr_fail(e, MR_EAWAY,
            "shard %u of session \"%s\" has neither a socket on this node nor an address", index,
            p->session);
    }
    far_open(p, index);
    return MR_OK;
}

static int segment_open(struct mr_params *p, struct mr_error *e)
{
    void *map = NULL;
    p->segment_bytes = mr_client_bytes(p->count, p->reads_only);
    int err = mr_transport_make("millrace-gradients", p->segment_bytes, true, &p->fd, &map, e);
    if (!err) p->segment = map;
    return err;
}

static int shards_open(
    struct mr_params *p, const struct mr_params_options *o, mr_time deadline, struct mr_error *e)
{
    p->shards = mr_alloc_array(o->shards_count, sizeof *p->shards);
    p->shards_count = o->shards_count;
    for (uint32_t i = 0; i < o->shards_count; i++) {
        const struct mr_place *at = &o->shards[i];
        struct shard *s = &p->shards[i];
        s->socket = -1;
        s->gathered = UINT64_MAX;
        s->address = mr_copy_text(at->address ? at->address : "");
        s->socket_path = mr_copy_text(at->socket ? at->socket : "");
        s->is_same_node = !o->only_remote && *s->socket_path &&
                          !strcmp(at->node ? at->node : "", mr_transport_node());
        mr_transport_slice(p->count, o->shards_count, i, &s->first, &s->count);
    }
    for (uint32_t i = 0; i < o->shards_count; i++) {
        int err = shard_open(p, i, deadline, e);
        if (err) return err;
    }
    return MR_OK;
}

int mr_params_open(
    const struct mr_params_options *o, mr_time deadline, struct mr_params **out, struct mr_error *e)
{
    if (!o->shards_count || o->shards_count > MR_SHARDS_MAX)
        return mr_fail(
            e, MR_EINVAL, "%u shards: from 1 to %u may be", o->shards_count, MR_SHARDS_MAX);
    if (strlen(o->session) >= MR_SESSION_MAX)
        return mr_fail(e, MR_EINVAL, "the id \"%s\" of a session is too long", o->session);
    MR_AUTO(mr_params_close) struct mr_params *p = mr_alloc(sizeof *p);
    (void)snprintf(p->session, sizeof p->session, "%s", o->session);
    p->worker = o->worker;
    p->incarnation = o->incarnation;
    p->count = o->count;
    p->epoch = o->restore_epoch;
    p->reads_only = o->reads_only;
    p->same_version = o->same_version && o->shards_count > 1;
    p->early_count = MR_MIN(o->early_count, o->count);
    p->stop = o->stop;
    p->fd = -1;
    int err = segment_open(p, e);
    if (!err) err = shards_open(p, o, deadline, e);
    if (err) return err;
    if (p->shards_count > 1 || p->counts.shards_remote)
        p->gather = mr_alloc_aligned(p->count * sizeof(float), 64);
    *out = MR_STEAL(p);
    return MR_OK;
}

void mr_params_close(struct mr_params **params)
{
    if (!*params) return;
    struct mr_params *p = MR_STEAL(*params);
    for (uint32_t i = 0; i < p->shards_count; i++) {
        struct shard *s = &p->shards[i];
        /* closed before the segment is unmapped, because the push thread reads gradients there */
        mr_params_remote_close(&s->remote);
        shm_close(s);
        mr_release(s->address);
        mr_release(s->socket_path);
    }
    mr_segment_unmap(p->segment, p->segment_bytes);
    if (p->fd >= 0) (void)close(p->fd);
    mr_release(p->gather);
    mr_release(p->shards);
    mr_release(p);
}

/* ---- pull -------------------------------------------------------------------------------------*/

static int shard_pull(struct mr_params *p, struct shard *s, uint64_t version_min, mr_time deadline,
    const float **params, struct mr_error *e)
{
    if (s->remote)
        return mr_params_remote_pull(
            s->remote, version_min, p->epoch, deadline, p->gather + s->first, &s->version, e);
    int err = shm_pull(p, s, version_min, deadline, params, e);
    if (err || !p->gather) return err;
    if (s->gathered != s->version || s->gathered_epoch != p->epoch)
        memcpy(p->gather + s->first, *params, s->count * sizeof(float));
    s->gathered = s->version;
    s->gathered_epoch = p->epoch;
    atomic_store(&s->line->pin, 0);
    return MR_OK;
}

static uint64_t newest(const struct mr_params *p)
{
    uint64_t version = 0;
    for (uint32_t i = 0; i < p->shards_count; i++)
        version = MR_MAX(version, p->shards[i].version);
    return version;
}

/* Waits a little for shards whose version is behind that of the others. If a shard does not catch
 * up, its older version is used. */
static int level(struct mr_params *p, mr_time deadline, struct mr_error *e)
{
    uint64_t version = newest(p);
    mr_time until = MR_MIN(deadline, mr_time_after(mr_clock_now(), SAME_VERSION_WAIT));
    for (uint32_t i = 0; i < p->shards_count; i++) {
        const float *unused = NULL;
        if (p->shards[i].version >= version) continue;
        int err = shard_pull(p, &p->shards[i], version, until, &unused, e);
        if (err && err != MR_ETIMEOUT) return err;
    }
    return MR_OK;
}

int mr_params_pull(struct mr_params *p, uint64_t version_min, mr_time deadline,
    struct mr_params_view *out, struct mr_error *e)
{
    mr_time begun = mr_clock_now();
    uint64_t waited = p->counts.wait_ns;
    const float *params = NULL;
    mr_params_release(p);
    int err = MR_OK;
    for (uint32_t i = 0; i < p->shards_count && !err; i++)
        err = shard_pull(p, &p->shards[i], version_min, deadline, &params, e);
    if (!err && p->same_version) err = level(p, deadline, e);
    p->counts.pull_ns += mr_clock_now() - begun - (p->counts.wait_ns - waited);
    if (err) return err;
    uint64_t version = UINT64_MAX;
    for (uint32_t i = 0; i < p->shards_count; i++)
        version = MR_MIN(version, p->shards[i].version);
    p->counts.pulls++;
    *out = (struct mr_params_view){p->gather ? p->gather : params, version, p->epoch};
    return MR_OK;
}

void mr_params_release(struct mr_params *p)
{
    for (uint32_t i = 0; i < p->shards_count; i++)
        if (p->shards[i].line) atomic_store(&p->shards[i].line->pin, 0);
}

void mr_params_set_epoch(struct mr_params *p, uint32_t restore_epoch)
{
    mr_params_release(p);
    p->epoch = restore_epoch;
}

/* ---- push -------------------------------------------------------------------------------------*/

static int shard_wait(
    struct mr_params *p, struct shard *s, uint32_t buffer, mr_time deadline, struct mr_error *e)
{
    if (!s->under_way[buffer]) return MR_OK;
    int err = MR_OK;
    if (s->remote) {
        bool dropped = false;
        mr_time begun = mr_clock_now();
        err = mr_params_remote_wait(s->remote, buffer, s->under_way[buffer], deadline, &dropped, e);
        p->counts.wait_ns += mr_clock_now() - begun;
        p->counts.dropped += dropped;
    } else {
        err = shm_wait(p, s, buffer, deadline, e);
    }
    if (!err) s->under_way[buffer] = 0;
    return err;
}

static int buffer_wait(struct mr_params *p, uint32_t buffer, mr_time deadline, struct mr_error *e)
{
    for (uint32_t i = 0; i < p->shards_count; i++) {
        int err = shard_wait(p, &p->shards[i], buffer, deadline, e);
        if (err) return err;
    }
    return MR_OK;
}

static float *buffer_at(const struct mr_params *p, uint32_t buffer)
{
    char *base = p->segment + MR_CLIENT_PAGE_BYTES + mr_vector_stride(p->count) * buffer;
    return (float *)(void *)base;
}

int mr_params_buffer(struct mr_params *p, mr_time deadline, float **out, struct mr_error *e)
{
    mr_assert(!p->reads_only);
    if (!p->has_buffer) {
        int err = buffer_wait(p, p->buffer, deadline, e);
        if (err) return err;
        p->has_buffer = true;
        p->early_low = p->early_count;
        for (uint32_t i = 0; i < p->shards_count; i++)
            p->shards[i].early_low = p->shards[i].count;
    }
    *out = buffer_at(p, p->buffer);
    return MR_OK;
}

void mr_params_ready(struct mr_params *p, uint64_t step, uint64_t offset, uint64_t count)
{
    if (!p->has_buffer || offset + count != p->early_low) return;
    p->early_low = offset;
    for (uint32_t i = 0; i < p->shards_count; i++) {
        struct shard *s = &p->shards[i];
        uint64_t low = MR_MAX(offset, s->first) - s->first;
        if (s->remote || low + MR_PARAMS_EARLY_MIN > s->early_low) continue;
        shm_ready(p, s, step, low);
    }
}

static void shard_push(struct mr_params *p, struct shard *s, uint64_t step, uint32_t examples)
{
    s->serial = serial_after(s->serial);
    s->under_way[p->buffer] = s->serial;
    if (!s->remote) {
        shm_push(p, s, step, examples);
        return;
    }
    const struct mr_params_job job = {.grad = buffer_at(p, p->buffer) + s->first,
        .serial = s->serial,
        .examples = examples,
        .restore_epoch = p->epoch,
        .step = step,
        .base_version = s->version};
    mr_params_remote_push(s->remote, p->buffer, &job);
}

int mr_params_push(struct mr_params *p, uint64_t step, uint32_t examples, struct mr_error *e)
{
    mr_assert(p->has_buffer);
    mr_time begun = mr_clock_now();
    for (uint32_t i = 0; i < p->shards_count; i++) {
        struct shard *s = &p->shards[i];
        if (s->page && atomic_load(&s->page->is_closed)) return gone(p, s, e);
    }
    for (uint32_t i = 0; i < p->shards_count; i++)
        shard_push(p, &p->shards[i], step, examples);
    p->has_buffer = false;
    p->buffer = (p->buffer + 1) % MR_PARAMS_UNDER_WAY;
    p->counts.pushes++;
    p->counts.push_ns += mr_clock_now() - begun;
    return MR_OK;
}

int mr_params_flush(struct mr_params *p, mr_time deadline, struct mr_error *e)
{
    for (uint32_t i = 0; i < MR_PARAMS_UNDER_WAY && !p->reads_only; i++) {
        int err = buffer_wait(p, i, deadline, e);
        if (err) return err;
    }
    return MR_OK;
}

void mr_params_counts(const struct mr_params *p, struct mr_params_counts *out)
{
    *out = p->counts;
}
