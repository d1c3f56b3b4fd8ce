/* Opens and closes the connection to the object store; makes, holds and deletes objects.
 * client_get.c reads objects; client_link.c has the socket and its thread. */
#include "store/arena/client.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "host/pool/thread_pool.h"
#include "store/arena/client_link.h"
#include "store/arena/segment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A room is the memory of one object. Rooms up to this size share slabs. warm_up populates the
 * pages of a larger room before its first use. */
#define WARM_BYTES (MR_SMALL_BYTES_MAX + MR_EXTENT_HEAD)
#define HUGE_AGAIN MR_SECOND

static int make_pins(struct mr_store *st, int *fd, struct mr_error *e)
{
    int err = mr_segment_make("mr-pins", sizeof *st->pins, fd, e);
    if (err) return err;
    void *p = NULL;
    err = mr_segment_map(*fd, sizeof *st->pins, true, &p, e);
    if (err) return err;
    st->pins = p;
    mr_pin_page_format(st->pins);
    return mr_segment_seal(*fd, e);
}

static int take_welcome(
    struct mr_store *st, const struct mr_ctl_message *m, int fd, struct mr_error *e)
{
    if (m->type == MR_CTL_DONE) {
        const struct mr_ctl_done *d = m->fixed;
        return mr_fail(e, d->err ? d->err : MR_EFORMAT, "%s", d->text);
    }
    if (m->type != MR_CTL_WELCOME || fd < 0)
        return mr_fail(e, MR_EFORMAT, "object store: no answer to the first message");
    if (m->request != MR_CTL_VERSION)
        return mr_fail(e, MR_ESTATE,
            "this program speaks version %d of the control messages, the object store %llu: both "
            "must be of one version of millrace",
            MR_CTL_VERSION, m->request ? (unsigned long long)m->request : 1ull);
    memcpy(&st->welcome, m->fixed, sizeof st->welcome);
    uint64_t bytes = 0;
    int err = mr_segment_check(fd, st->welcome.catalog_bytes, true, &bytes, e);
    if (err) return err;
    if (st->welcome.slab_bytes < 2 * MR_SMALL_BYTES_MAX)
        return mr_fail(e, MR_EFORMAT, "object store: slabs of %llu bytes",
            (unsigned long long)st->welcome.slab_bytes);
    err = mr_segment_map(fd, st->welcome.catalog_bytes, false, &st->catalog_map, e);
    if (err) return err;
    return mr_catalog_attach(&st->catalog, st->catalog_map, st->welcome.catalog_bytes, e);
}

static int handshake(struct mr_store *st, const char *name, bool internal, struct mr_error *e)
{
    struct mr_ctl_hello hello = {.protocol = MR_PROTOCOL_VERSION,
        .layout = MR_LAYOUT_VERSION,
        .internal = internal,
        .control = MR_CTL_VERSION,
        .pid = (uint32_t)getpid()};
    snprintf(hello.name, sizeof hello.name, "%s", name ? name : "");
    int pins = -1;
    int err = make_pins(st, &pins, e);
    if (!err) {
        err = mr_ctl_send(st->socket, MR_CTL_HELLO, 0, &hello, NULL, 0, pins);
        if (err) (void)mr_store_dead_error(e);
    }
    if (pins >= 0) close(pins);
    if (err) return err;
    MR_AUTO(mr_free_ptr) void *buffer = mr_alloc(MR_CTL_BYTES_MAX);
    size_t n = 0;
    int fd = -1;
    struct mr_ctl_message m;
    if (mr_ctl_receive(st->socket, buffer, &n, &fd)) return mr_store_dead_error(e);
    err = mr_ctl_parse(buffer, n, false, &m, e);
    if (!err) err = take_welcome(st, &m, fd, e);
    if (fd >= 0) close(fd);
    return err;
}

int mr_store_open_socket(
    int socket, const char *name, bool internal, struct mr_store **out, struct mr_error *e)
{
    struct mr_store *st = mr_alloc(sizeof *st);
    st->socket = socket;
    st->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    mr_list_init(&st->completions);
    int err = st->event_fd < 0 ? mr_fail(e, MR_EIO, "eventfd: %s", strerror(errno))
                               : handshake(st, name, internal, e);
    if (err) {
        mr_segment_unmap(st->pins, sizeof *st->pins);
        mr_segment_unmap(st->catalog_map, st->welcome.catalog_bytes);
        if (st->event_fd >= 0) close(st->event_fd);
        close(socket);
        mr_release(st);
        return err;
    }
    mr_space_init(&st->space, st->welcome.slab_bytes);
    st->requests = mr_alloc_array(MR_REQUESTS_MAX, sizeof *st->requests);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&st->changed, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&st->lock, NULL);
    pthread_mutex_init(&st->space_lock, NULL);
    pthread_mutex_init(&st->pool_lock, NULL);
    if (pthread_create(&st->thread, NULL, mr_store_thread, st))
        MR_PANIC("cannot start a thread: %s", strerror(errno));
    *out = st;
    return MR_OK;
}

int mr_store_open(
    const char *socket_path, const char *name, struct mr_store **out, struct mr_error *e)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(socket_path) >= sizeof address.sun_path)
        return mr_fail(e, MR_EINVAL,
            "object store: the socket path \"%s\" is longer than %zu bytes", socket_path,
            sizeof address.sun_path - 1);
    strncpy(address.sun_path, socket_path, sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) return mr_fail(e, MR_EIO, "socket: %s", strerror(errno));
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) {
        int err =
            mr_fail(e, MR_EAWAY, "no object store answers at %s: %s", socket_path, strerror(errno));
        close(fd);
        return err;
    }
    return mr_store_open_socket(fd, name, false, out, e);
}

static void free_segments(struct mr_store *st)
{
    for (uint32_t b = 0; b < MR_ARRAY_LEN(st->segments); b++) {
        struct mr_store_segment *block = atomic_load(&st->segments[b]);
        for (uint32_t i = 0; block && i < MR_SEGMENT_BLOCK; i++)
            mr_segment_unmap(atomic_load(&block[i].base), block[i].bytes);
        mr_release(block);
    }
}

void mr_store_stop(struct mr_store *st)
{
    if (!st || st->is_stopped) return;
    st->is_stopped = true;
    shutdown(st->socket, SHUT_RDWR);
    pthread_join(st->thread, NULL);
}

void mr_store_close(struct mr_store **pst)
{
    struct mr_store *st = MR_STEAL(*pst);
    if (!st) return;
    mr_store_stop(st);
    mr_thread_pool_free(&st->pool);
    close(st->socket);
    close(st->event_fd);
    while (!mr_list_is_empty(&st->completions))
        mr_release(MR_LIST_ITEM(mr_list_pop_head(&st->completions), struct mr_store_done, node));
    free_segments(st);
    mr_space_fini(&st->space);
    mr_segment_unmap(st->pins, sizeof *st->pins);
    mr_segment_unmap(st->catalog_map, st->welcome.catalog_bytes);
    pthread_cond_destroy(&st->changed);
    pthread_mutex_destroy(&st->lock);
    pthread_mutex_destroy(&st->space_lock);
    pthread_mutex_destroy(&st->pool_lock);
    mr_release(st->requests);
    mr_release(st);
}

mr_node_id mr_store_node(const struct mr_store *st)
{
    return (mr_node_id){st->welcome.node};
}

bool mr_store_is_alive(const struct mr_store *st)
{
    return !atomic_load(&st->is_dead);
}

void mr_store_set_notify(struct mr_store *st, void (*notify)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&st->lock);
    st->notify_ctx = ctx;
    st->notify = notify;
    pthread_mutex_unlock(&st->lock);
}

/* ---- making objects -------------------------------------------------------------------------- */

static bool take_room(struct mr_store *st, uint64_t room_bytes, struct mr_room *room)
{
    pthread_mutex_lock(&st->space_lock);
    bool ok = mr_space_take(&st->space, room_bytes, room);
    pthread_mutex_unlock(&st->space_lock);
    return ok;
}

struct wait_for_room {
    mr_time deadline;
    struct mr_stop stop;
    mr_duration waited; /* time in which there was no room, so far */
};

/* Waits until there may be room: asks the store for a segment, or waits for a segment that another
 * thread has asked for. MR_OK: there may be room now, the deadline has passed, or `stop` is set. An
 * error: the store refused, is gone, or has too many requests of this client. The caller holds
 * `lock`, which is released during the wait. */
static int ask_for_room(
    struct mr_store *st, uint64_t wants, uint64_t seen, struct wait_for_room *w, struct mr_error *e)
{
    bool ordinary = wants <= st->welcome.segment_bytes / 4;
    mr_time now = mr_store_now(), deadline = w->deadline;
    struct mr_stop stop = w->stop;
    if (ordinary && st->grants_asked && deadline > now) {
        while (st->grants_asked && st->space_changes == seen && !atomic_load(&st->is_dead))
            if (stop.is_set ? mr_store_wait_or_stop(st, stop) || mr_store_now() >= deadline
                            : !mr_store_wait_changed(st, deadline))
                break;
        return MR_OK;
    }
    struct mr_store_request *r = mr_store_request_take(st);
    if (!r)
        return mr_fail(e, MR_ELIMIT, "more than %u requests to the object store are under way",
            MR_REQUESTS_MAX);
    uint64_t number = r->number;
    struct mr_ctl_grant grant = {
        ordinary ? st->welcome.segment_bytes : wants, wants, deadline > now ? deadline - now : 0};
    st->grants_asked += ordinary;
    pthread_mutex_unlock(&st->lock);
    const struct mr_ctl_message m = {MR_CTL_GRANT, number, .fixed = &grant};
    int err = mr_store_send_or_stop(st, &m, stop);
    pthread_mutex_lock(&st->lock);
    /* The store answers in any case, because it enforces the deadline. Room that other objects free
     * also ends the wait; the segment is then not needed. */
    while (!err && !r->done && st->space_changes == seen && !atomic_load(&st->is_dead))
        if (mr_store_wait_or_stop(st, stop)) break;
    bool answered = r->done;
    w->waited += answered ? r->waited_ns : mr_store_now() - now;
    int refused = r->err ? mr_fail(e, r->err, "%s", r->text) : MR_OK;
    if (err && err != MR_ECANCELED) refused = mr_store_dead_error(e);
    st->grants_asked -= ordinary;
    mr_store_request_drop(st, r);
    pthread_cond_broadcast(&st->changed);
    if (!answered && !err) {
        pthread_mutex_unlock(&st->lock);
        /* If this message is lost, the store grants a segment that is not needed, which does no
         * harm. */
        (void)mr_ctl_send_now(
            st->socket, &(struct mr_ctl_message){.type = MR_CTL_CANCEL, .request = number});
        pthread_mutex_lock(&st->lock);
        return MR_OK;
    }
    return refused;
}

static int find_room(struct mr_store *st, uint64_t room_bytes, mr_duration timeout,
    struct wait_for_room *w, struct mr_room *room, struct mr_error *e)
{
    w->deadline = mr_time_after(mr_store_now(), timeout);
    for (;;) {
        pthread_mutex_lock(&st->lock);
        /* The number of changes is read before the attempt, so that no change is missed. */
        uint64_t seen = st->space_changes;
        pthread_mutex_unlock(&st->lock);
        if (take_room(st, room_bytes, room)) return MR_OK;
        if (atomic_load(&st->is_dead)) return mr_store_dead_error(e);
        pthread_mutex_lock(&st->space_lock);
        uint64_t wants = mr_space_wants(&st->space, room_bytes);
        pthread_mutex_unlock(&st->space_lock);
        pthread_mutex_lock(&st->lock);
        int err = ask_for_room(st, wants, seen, w, e);
        pthread_mutex_unlock(&st->lock);
        if (err) return err;
        if (mr_stop_is_set(w->stop)) return mr_store_stopped_error(e);
        if (!timeout || mr_store_now() <= w->deadline) continue;
        if (take_room(st, room_bytes, room)) return MR_OK;
        return mr_fail(e, MR_ELIMIT, "no room for an object of %llu bytes came free within %llu ms",
            (unsigned long long)room_bytes, (unsigned long long)(timeout / MR_MS));
    }
}

#define ENTRY_LOOK_NS (2 * MR_MS)

/* Waits until the store accepts one more object. Drafts of this process that are not sealed yet
 * count as objects. MR_ELIMIT: `timeout` has passed, and the store still accepts no object. */
static int wait_for_entry(
    struct mr_store *st, mr_duration timeout, struct mr_stop stop, struct mr_error *e)
{
    mr_time deadline = mr_time_after(mr_store_now(), timeout);
    for (;;) {
        uint64_t mine = atomic_fetch_add(&st->drafts, 1);
        if (mine < mr_catalog_objects_left(&st->catalog)) return MR_OK;
        atomic_fetch_sub(&st->drafts, 1);
        if (atomic_load(&st->is_dead)) return mr_store_dead_error(e);
        if (mr_store_now() >= deadline)
            return mr_fail(e, MR_ELIMIT,
                "the object store keeps at most %u objects (--objects), and none was freed within "
                "%llu ms",
                st->catalog.entries_count, (unsigned long long)(timeout / MR_MS));
        if (mr_stop_is_set(stop)) return mr_store_stopped_error(e);
        struct timespec nap = {.tv_nsec = ENTRY_LOOK_NS};
        (void)nanosleep(&nap, NULL);
    }
}

/* Populates all pages of a large room that has never been written. Page faults one by one would
 * cost more than the writing itself. */
static void warm_up(struct mr_store *st, struct mr_store_segment *g, unsigned char *base,
    const struct mr_room *room)
{
    uint64_t end = room->offset + room->bytes;
    uint64_t warm = atomic_load_explicit(&g->warm, memory_order_relaxed);
    if (room->bytes <= WARM_BYTES || end <= warm) return;
    mr_time now = mr_store_now();
    bool huge = now >= atomic_load_explicit(&st->huge_from, memory_order_relaxed);
    bool again = huge;
    end = mr_segment_warm(base, g->bytes, MR_MAX(room->offset, warm), end, &again);
    if (huge && !again)
        atomic_store_explicit(&st->huge_from, now + HUGE_AGAIN, memory_order_relaxed);
    while (warm < end)
        if (atomic_compare_exchange_weak(&g->warm, &warm, end)) return;
}

static int draft_at(struct mr_store *st, mr_object_id id, uint64_t bytes, mr_duration timeout,
    struct mr_stop stop, struct mr_store_draft *out, struct mr_error *e)
{
    struct mr_room room;
    struct wait_for_room wait = {.stop = stop};
    int err = find_room(st, bytes + MR_EXTENT_HEAD, timeout, &wait, &room, e);
    if (err) return err;
    struct mr_store_segment *g = mr_store_segment(st, room.segment, false);
    unsigned char *base = atomic_load_explicit(&g->base, memory_order_acquire);
    mr_store_order_after(st);
    warm_up(st, g, base, &room);
    *out = (struct mr_store_draft){
        .p = base + room.offset + MR_EXTENT_HEAD,
        .bytes = bytes,
        .id = id,
        .waited = wait.waited,
        .segment = room.segment,
        .offset = room.offset,
        .room = room.bytes,
    };
    return MR_OK;
}

int mr_store_create_or_stop(struct mr_store *st, uint64_t bytes, mr_duration timeout,
    struct mr_stop stop, struct mr_store_draft *out, struct mr_error *e)
{
    if (bytes > MR_OBJECT_BYTES_MAX)
        return mr_fail(e, MR_ETOOBIG, "an object of %llu bytes: at most %llu are allowed",
            (unsigned long long)bytes, (unsigned long long)MR_OBJECT_BYTES_MAX);
    mr_time begun = mr_store_now();
    int err = wait_for_entry(st, timeout, stop, e);
    if (err) return err;
    mr_duration waited = mr_store_now() - begun;
    mr_object_id id = {st->welcome.maker, atomic_fetch_add(&st->number_next, 1) + 1};
    err = draft_at(st, id, bytes, timeout, stop, out, e);
    if (err)
        atomic_fetch_sub(&st->drafts, 1);
    else
        out->is_new = true;
    if (!err && waited > ENTRY_LOOK_NS) out->waited += waited;
    return err;
}

int mr_store_create(struct mr_store *st, uint64_t bytes, mr_duration timeout,
    struct mr_store_draft *out, struct mr_error *e)
{
    return mr_store_create_or_stop(st, bytes, timeout, (struct mr_stop){0}, out, e);
}

int mr_store_create_copy(struct mr_store *st, mr_object_id id, uint64_t bytes, mr_duration timeout,
    struct mr_store_draft *out, struct mr_error *e)
{
    return draft_at(st, id, bytes, timeout, (struct mr_stop){0}, out, e);
}

static void uncount(struct mr_store *st, const struct mr_store_draft *d)
{
    if (!d->is_new) return;
    uint64_t before = atomic_fetch_sub(&st->drafts, 1);
    mr_assert(before > 0);
}

static int seal(struct mr_store *st, struct mr_store_draft *d, const struct mr_store_owner *owner,
    uint32_t flags, struct mr_store_view *view, struct mr_error *e)
{
    mr_assert(d->p);
    mr_assert(d->bytes + MR_EXTENT_HEAD <= d->room);
    struct mr_store_owner nobody = {0};
    if (!owner) owner = &nobody;
    struct mr_extent_head *head = (void *)((unsigned char *)d->p - MR_EXTENT_HEAD);
    mr_extent_head_fill(head, d->id, d->bytes, owner->job, owner->task, owner->attempt);
    struct mr_ctl_seal item = {
        .id = d->id,
        .segment = d->segment,
        .flags = flags | (view ? MR_SEAL_KEEP : 0),
        .offset = d->offset + MR_EXTENT_HEAD,
        .bytes = d->bytes,
        .room = d->room,
        .job = owner->job.v,
        .task = owner->task,
        .attempt = owner->attempt,
    };
    struct mr_store_view made = {d->p, d->bytes, d->id, MR_PIN_BY_STORE, false, 0};
    uncount(st, d);
    *d = (struct mr_store_draft){0};
    mr_store_order_before(st);
    if (mr_ctl_send(st->socket, MR_CTL_SEAL, 0, NULL, &item, 1, -1)) return mr_store_dead_error(e);
    if (view) *view = made;
    return MR_OK;
}

int mr_store_seal(struct mr_store *st, struct mr_store_draft *draft,
    const struct mr_store_owner *owner, struct mr_store_view *view, struct mr_error *e)
{
    return seal(st, draft, owner, 0, view, e);
}

int mr_store_seal_copy(struct mr_store *st, struct mr_store_draft *draft, struct mr_error *e)
{
    return seal(st, draft, NULL, MR_SEAL_ADOPT, NULL, e);
}

void mr_store_abort(struct mr_store *st, struct mr_store_draft *d)
{
    if (!d->p) return;
    struct mr_room room = {d->segment, d->offset, d->room};
    uncount(st, d);
    *d = (struct mr_store_draft){0};
    pthread_mutex_lock(&st->space_lock);
    int err = mr_space_give(&st->space, &room);
    pthread_mutex_unlock(&st->space_lock);
    mr_assert(!err);
    pthread_mutex_lock(&st->lock);
    st->space_changes++;
    pthread_cond_broadcast(&st->changed);
    pthread_mutex_unlock(&st->lock);
}

/* ---- holding and deleting objects ------------------------------------------------------------ */

static void send_ids(struct mr_store *st, enum mr_ctl_type type, const void *fixed,
    const mr_object_id *ids, size_t n)
{
    for (size_t at = 0; at < n;) {
        uint32_t count = (uint32_t)MR_MIN(n - at, (size_t)mr_ctl_items_max(type));
        if (mr_ctl_send(st->socket, type, 0, fixed, ids + at, count, -1)) return;
        at += count;
    }
}

void mr_store_hold(
    struct mr_store *st, const mr_object_id *ids, size_t n, struct mr_store_holder holder)
{
    struct mr_ctl_hold fixed = {(uint32_t)holder.kind, 0, holder.key};
    send_ids(st, MR_CTL_HOLD, &fixed, ids, n);
}

void mr_store_unhold(
    struct mr_store *st, const mr_object_id *ids, size_t n, struct mr_store_holder holder)
{
    struct mr_ctl_hold fixed = {(uint32_t)holder.kind, 0, holder.key};
    send_ids(st, MR_CTL_UNHOLD, &fixed, ids, n);
}

/* Sends a request, whose number is chosen here, and waits for the answer. */
static int ask(struct mr_store *st, struct mr_ctl_message m, struct mr_stop stop,
    struct mr_store_stats *stats, struct mr_error *e)
{
    pthread_mutex_lock(&st->lock);
    struct mr_store_request *r = mr_store_request_take(st);
    if (!r) {
        pthread_mutex_unlock(&st->lock);
        return mr_fail(e, MR_ELIMIT, "more than %u requests to the object store are under way",
            MR_REQUESTS_MAX);
    }
    r->stats = stats;
    m.request = r->number;
    pthread_mutex_unlock(&st->lock);
    int err = mr_store_send_or_stop(st, &m, stop);
    bool is_stopped = err == MR_ECANCELED;
    pthread_mutex_lock(&st->lock);
    while (!err && !r->done && !is_stopped && !atomic_load(&st->is_dead))
        is_stopped = mr_store_wait_or_stop(st, stop);
    if (is_stopped && !r->done)
        /* The thread that reads the socket ignores an answer to a dropped request. */
        err = mr_store_stopped_error(e);
    else if (err || !r->done)
        err = mr_store_dead_error(e);
    else if (r->err)
        err = mr_fail(e, r->err, "%s", r->text);
    mr_store_request_drop(st, r);
    pthread_mutex_unlock(&st->lock);
    return err;
}

int mr_store_delete_or_stop(struct mr_store *st, const mr_object_id *ids, size_t n, bool force,
    struct mr_stop stop, struct mr_error *e)
{
    struct mr_ctl_delete fixed = {force, 0};
    for (size_t at = 0; at < n;) {
        uint32_t count = (uint32_t)MR_MIN(n - at, (size_t)mr_ctl_items_max(MR_CTL_DELETE));
        const struct mr_ctl_message m = {MR_CTL_DELETE, 0, &fixed, ids + at, count};
        int err = ask(st, m, stop, NULL, e);
        if (err) return err;
        at += count;
    }
    return MR_OK;
}

int mr_store_delete(
    struct mr_store *st, const mr_object_id *ids, size_t n, bool force, struct mr_error *e)
{
    return mr_store_delete_or_stop(st, ids, n, force, (struct mr_stop){0}, e);
}

int mr_store_stats_or_stop(
    struct mr_store *st, struct mr_stop stop, struct mr_store_stats *out, struct mr_error *e)
{
    return ask(st, (struct mr_ctl_message){.type = MR_CTL_STATS}, stop, out, e);
}

int mr_store_stats(struct mr_store *st, struct mr_store_stats *out, struct mr_error *e)
{
    return mr_store_stats_or_stop(st, (struct mr_stop){0}, out, e);
}
