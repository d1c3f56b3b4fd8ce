/* The client's thread: reads the store's messages and hands the answers to the threads that wait
 * for them. A send of this thread may wait until the store has read. The store never waits for a
 * client, so full sockets in both directions cause no deadlock. */
#include "store/arena/client_link.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "store/arena/segment.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

mr_time mr_store_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (mr_time)t.tv_sec * MR_SECOND + (mr_time)t.tv_nsec;
}

int mr_store_dead_error(struct mr_error *e)
{
    return mr_fail(e, MR_EAWAY, "the object store of this node went away");
}

int mr_store_stopped_error(struct mr_error *e)
{
    return mr_fail(e, MR_ECANCELED, "given up");
}

/* ---- segments -------------------------------------------------------------------------------- */

struct mr_store_segment *mr_store_segment(struct mr_store *st, uint32_t number, bool make)
{
    if (number >= MR_SEGMENTS_MAX) return NULL;
    _Atomic(struct mr_store_segment *) *block = &st->segments[number / MR_SEGMENT_BLOCK];
    struct mr_store_segment *p = atomic_load_explicit(block, memory_order_acquire);
    if (!p && make) { /* no lock is needed: only the client's thread adds blocks */
        p = mr_alloc_array(MR_SEGMENT_BLOCK, sizeof *p);
        atomic_store_explicit(block, p, memory_order_release);
    }
    return p ? &p[number % MR_SEGMENT_BLOCK] : NULL;
}

static int map_segment(
    struct mr_store *st, uint32_t number, int fd, uint64_t bytes, bool ours, struct mr_error *e)
{
    struct mr_store_segment *g = mr_store_segment(st, number, true);
    if (!g) return mr_fail(e, MR_EFORMAT, "object store: segment %u is out of range", number);
    if (atomic_load_explicit(&g->base, memory_order_relaxed)) return MR_OK;
    uint64_t real = 0;
    int err = ours ? MR_OK : mr_segment_check(fd, bytes, true, &real, e);
    if (err) return err;
    void *p = NULL;
    err = mr_segment_map(fd, bytes, ours, &p, e);
    if (err) return err;
    if (ours) err = mr_segment_seal(fd, e);
    if (err) {
        mr_segment_unmap(p, bytes);
        return err;
    }
    g->bytes = bytes;
    g->ours = ours;
    atomic_store_explicit(&g->base, p, memory_order_release);
    return MR_OK;
}

static void unmap(struct mr_store *st, uint32_t number, bool ours)
{
    struct mr_store_segment *g = mr_store_segment(st, number, false);
    if (!g || g->ours != ours) return;
    unsigned char *p = atomic_exchange_explicit(&g->base, NULL, memory_order_acq_rel);
    mr_segment_unmap(p, g->bytes);
}

/* ---- requests -------------------------------------------------------------------------------- */

struct mr_store_request *mr_store_request_take(struct mr_store *st)
{
    for (uint32_t i = 0; i < MR_REQUESTS_MAX; i++) {
        uint32_t at = (st->requests_hint + i) % MR_REQUESTS_MAX;
        struct mr_store_request *r = &st->requests[at];
        if (r->number) continue;
        st->requests_hint = at + 1;
        *r = (struct mr_store_request){.number = ++st->requests_made * MR_REQUESTS_MAX + at};
        return r;
    }
    return NULL;
}

void mr_store_request_drop(struct mr_store *st, struct mr_store_request *r)
{
    st->requests_hint = (uint32_t)(r->number % MR_REQUESTS_MAX);
    r->number = 0;
}

static struct mr_store_request *request_find(struct mr_store *st, uint64_t number)
{
    struct mr_store_request *r = &st->requests[number % MR_REQUESTS_MAX];
    return number && r->number == number ? r : NULL;
}

bool mr_store_wait_changed(struct mr_store *st, mr_time deadline)
{
    if (deadline == MR_NEVER) {
        pthread_cond_wait(&st->changed, &st->lock);
        return true;
    }
    struct timespec t = {(time_t)(deadline / MR_SECOND), (long)(deadline % MR_SECOND)};
    return pthread_cond_timedwait(&st->changed, &st->lock, &t) != ETIMEDOUT;
}

bool mr_store_wait_or_stop(struct mr_store *st, struct mr_stop stop)
{
    if (!stop.is_set) {
        (void)mr_store_wait_changed(st, MR_NEVER);
        return false;
    }
    (void)mr_store_wait_changed(st, mr_time_after(mr_store_now(), MR_STOP_LOOK));
    pthread_mutex_unlock(&st->lock);
    bool is_set = mr_stop_is_set(stop);
    pthread_mutex_lock(&st->lock);
    return is_set;
}

int mr_store_send_or_stop(struct mr_store *st, const struct mr_ctl_message *m, struct mr_stop stop)
{
    if (!stop.is_set)
        return mr_ctl_send(st->socket, m->type, m->request, m->fixed, m->items, m->count, -1);
    for (;;) {
        int err = mr_ctl_send_now(st->socket, m);
        if (err != MR_EAGAIN) return err;
        struct pollfd writable = {.fd = st->socket, .events = POLLOUT};
        (void)poll(&writable, 1, (int)(MR_STOP_LOOK / MR_MS));
        if (mr_stop_is_set(stop)) return MR_ECANCELED;
    }
}

/* Ends a request. The caller holds `lock`. True: the caller has to call the notify function after
 * it has released the lock. False: a waiting thread has been woken instead. */
static bool finish(struct mr_store *st, struct mr_store_request *r)
{
    if (!r->async) {
        r->done = true;
        pthread_cond_broadcast(&st->changed);
        return false;
    }
    struct mr_store_done *d = mr_alloc(sizeof *d);
    r->view.id = r->id;
    d->completion = (struct mr_store_completion){r->token, r->err, r->view};
    mr_list_add_tail(&st->completions, &d->node);
    mr_store_request_drop(st, r);
    uint64_t one = 1;
    (void)!write(st->event_fd, &one, sizeof one);
    return true;
}

static void notify(struct mr_store *st)
{
    pthread_mutex_lock(&st->lock);
    void (*fn)(void *ctx) = st->notify;
    void *ctx = st->notify_ctx;
    pthread_mutex_unlock(&st->lock);
    if (fn) fn(ctx);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void space_changed(struct mr_store *st)
{
    pthread_mutex_lock(&st->lock);
    st->space_changes++;
    pthread_cond_broadcast(&st->changed);
    pthread_mutex_unlock(&st->lock);
}

static void on_granted(struct mr_store *st, const struct mr_ctl_message *m, int fd)
{
    const struct mr_ctl_granted *g = m->fixed;
    struct mr_error e = {.code = g->err};
    if (g->err) memcpy(e.text, g->text, sizeof g->text);
    if (!e.code && fd < 0) e.code = MR_EFORMAT;
    if (!e.code) (void)map_segment(st, g->segment, fd, g->bytes, true, &e);
    /* The segment belongs to this client even if the request for it was cancelled. */
    if (!e.code) {
        pthread_mutex_lock(&st->space_lock);
        mr_space_add(&st->space, g->segment, g->bytes);
        pthread_mutex_unlock(&st->space_lock);
    }
    pthread_mutex_lock(&st->lock);
    struct mr_store_request *r = request_find(st, m->request);
    if (r) {
        r->err = e.code;
        r->waited_ns = g->err ? 0 : g->waited_ns;
        memcpy(r->text, e.text, sizeof r->text - 1);
        (void)finish(st, r);
    }
    st->space_changes++;
    pthread_cond_broadcast(&st->changed);
    pthread_mutex_unlock(&st->lock);
}

static int take_got(struct mr_store *st, const struct mr_ctl_got *g, int fd,
    struct mr_store_view *view, struct mr_error *e)
{
    if (fd >= 0) {
        int err = map_segment(st, g->segment, fd, g->segment_bytes, false, e);
        if (err) return err;
    }
    struct mr_store_segment *s = mr_store_segment(st, g->segment, false);
    unsigned char *base = s ? atomic_load_explicit(&s->base, memory_order_acquire) : NULL;
    if (!base || g->offset > s->bytes || g->bytes > s->bytes - g->offset)
        return mr_fail(e, MR_EFORMAT, "object store: a place outside of segment %u", g->segment);
    *view = (struct mr_store_view){
        base + g->offset, g->bytes, g->id, MR_PIN_BY_STORE, g->came == MR_CTL_PULLED, 0};
    return MR_OK;
}

static void unpin(struct mr_store *st, mr_object_id id)
{
    (void)mr_ctl_send(st->socket, MR_CTL_UNPIN, 0, NULL, &id, 1, -1);
}

static void on_got(struct mr_store *st, const struct mr_ctl_message *m, int fd)
{
    const struct mr_ctl_got *g = m->fixed;
    struct mr_store_view view = {.id = g->id};
    struct mr_error e = {.code = g->err};
    memcpy(e.text, g->text, sizeof g->text);
    bool pinned = !e.code;
    if (!e.code) (void)take_got(st, g, fd, &view, &e);
    pthread_mutex_lock(&st->lock);
    struct mr_store_request *r = request_find(st, m->request);
    bool wanted = r != NULL;
    bool tell = false;
    if (r) {
        r->err = e.code;
        if (g->came == MR_CTL_RESTORED) view.restored_ns = mr_store_now() - r->asked_at;
        r->view = view;
        memcpy(r->text, e.text, sizeof r->text - 1);
        tell = finish(st, r);
    }
    pthread_mutex_unlock(&st->lock);
    if (pinned && (e.code || !wanted)) unpin(st, g->id);
    if (tell) notify(st);
}

static void on_answer(struct mr_store *st, const struct mr_ctl_message *m)
{
    pthread_mutex_lock(&st->lock);
    struct mr_store_request *r = request_find(st, m->request);
    if (r && m->type == MR_CTL_DONE) {
        const struct mr_ctl_done *d = m->fixed;
        r->err = d->err;
        memcpy(r->text, d->text, sizeof r->text);
    }
    if (r && m->type == MR_CTL_STATS_DONE && r->stats) memcpy(r->stats, m->fixed, sizeof *r->stats);
    if (r) (void)finish(st, r);
    pthread_mutex_unlock(&st->lock);
}

static void on_freed(struct mr_store *st, const struct mr_ctl_message *m)
{
    const struct mr_ctl_freed *items = m->items;
    pthread_mutex_lock(&st->space_lock);
    for (uint32_t i = 0; i < m->count; i++) {
        struct mr_room room = {items[i].segment, items[i].offset, items[i].room};
        /* A room that this client has not taken is ignored. */
        (void)mr_space_give(&st->space, &room);
    }
    pthread_mutex_unlock(&st->space_lock);
    space_changed(st);
}

static void on_reclaim(struct mr_store *st, uint64_t bytes)
{
    uint32_t numbers[256];
    uint32_t n = 0;
    uint64_t given = 0;
    pthread_mutex_lock(&st->space_lock);
    while (given < bytes && n < MR_ARRAY_LEN(numbers)) {
        if (!mr_space_drop_empty(&st->space, &numbers[n])) break;
        given += mr_store_segment(st, numbers[n], false)->bytes;
        n++;
    }
    pthread_mutex_unlock(&st->space_lock);
    for (uint32_t i = 0; i < n; i++)
        unmap(st, numbers[i], true);
    /* The message is sent even without any segment, as the answer to RECLAIM. */
    (void)mr_ctl_send(st->socket, MR_CTL_RETURN, 0, NULL, numbers, n, -1);
}

static void on_message(struct mr_store *st, const struct mr_ctl_message *m, int fd)
{
    if (m->type == MR_CTL_GRANTED)
        on_granted(st, m, fd);
    else if (m->type == MR_CTL_GOT)
        on_got(st, m, fd);
    else if (m->type == MR_CTL_FREED)
        on_freed(st, m);
    else if (m->type == MR_CTL_RECLAIM)
        on_reclaim(st, *(const uint64_t *)m->fixed);
    else if (m->type == MR_CTL_UNMAP)
        for (uint32_t i = 0; i < m->count; i++)
            unmap(st, ((const uint32_t *)m->items)[i], false);
    else
        on_answer(st, m);
    if (fd >= 0) close(fd);
}

static void fail_all(struct mr_store *st)
{
    bool tell = false;
    pthread_mutex_lock(&st->lock);
    for (uint32_t i = 0; i < MR_REQUESTS_MAX; i++) {
        struct mr_store_request *r = &st->requests[i];
        if (!r->number || r->done) continue;
        r->err = MR_EAWAY;
        struct mr_error e;
        (void)mr_store_dead_error(&e);
        memcpy(r->text, e.text, sizeof r->text - 1);
        tell |= finish(st, r);
    }
    pthread_cond_broadcast(&st->changed);
    pthread_mutex_unlock(&st->lock);
    if (tell) notify(st);
}

void *mr_store_thread(void *ctx)
{
    struct mr_store *st = ctx;
    void *buffer = mr_alloc(MR_CTL_BYTES_MAX);
    for (;;) {
        size_t n = 0;
        int fd = -1;
        struct mr_ctl_message m;
        if (mr_ctl_receive(st->socket, buffer, &n, &fd)) break;
        if (mr_ctl_parse(buffer, n, false, &m, NULL)) {
            if (fd >= 0) close(fd);
            break; /* a malformed message ends the connection */
        }
        on_message(st, &m, fd);
    }
    shutdown(st->socket, SHUT_RDWR); /* every later send fails */
    atomic_store(&st->is_dead, true);
    fail_all(st);
    mr_release(buffer);
    return NULL;
}
