/* The control thread: one loop over the sockets, the inbox and the deadline of the core.
 *
 * shell.c, effects.c, local_client.c and disk_threads.c call each other. A message of a client is
 * an event, the event has effects, and an effect may be a message to a client, or a job for the
 * disk that is refused and so becomes an event. */
#include "services/objectstore/control/shell.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/clock.h"
#include "host/os/log.h"
#include "services/objectstore/control/disk_threads.h"
#include "services/objectstore/control/effects.h"
#include "services/objectstore/control/local_client.h"
#include "store/arena/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define INBOX_ITEMS 8192u
#define BATCH 64u

/* Returns the size of a slab. Slabs and segments are smaller in a small store, where otherwise a
 * few clients would reserve all memory. An ordinary segment (store/arena/control_messages.h) has 16
 * slabs. */
static uint64_t slab_bytes_for(uint64_t memory_bytes)
{
    if (memory_bytes >= 4096 * MIB) return 4 * MIB;
    if (memory_bytes >= 1024 * MIB) return 2 * MIB;
    if (memory_bytes >= 256 * MIB) return MIB;
    return MIB / 2;
}

static int make_catalog(struct mr_ostore_shell *sh, struct mr_error *e)
{
    uint64_t bytes = mr_catalog_bytes(sh->config.objects_max);
    int err = mr_segment_make("mr-catalog", bytes, &sh->catalog_fd, e);
    if (err) return err;
    err = mr_segment_map(sh->catalog_fd, bytes, true, &sh->catalog_map, e);
    if (err) return err;
    err = mr_segment_seal(sh->catalog_fd, e);
    if (err) return err;
    uint64_t node = 0;
    while (!node)
        if (getrandom(&node, sizeof node, 0) != sizeof node) node = 0;
    mr_catalog_format(&sh->catalog, sh->catalog_map, sh->config.objects_max, (mr_node_id){node});
    uint64_t slab = slab_bytes_for(sh->config.memory_bytes);
    sh->welcome = (struct mr_ctl_welcome){
        .node = node,
        .catalog_bytes = bytes,
        .slab_bytes = slab,
        .segment_bytes = MR_MIN(slab * 16, mr_align_up(sh->config.memory_bytes / 8, MR_ARENA_PAGE)),
    };
    sh->seen = mr_alloc_array(sh->config.objects_max, sizeof *sh->seen);
    return MR_OK;
}

static void epoll_turn(void *ctx, mr_time deadline);
static void epoll_wake(void *ctx);

int mr_ostore_shell_open(
    const struct mr_ostore_shell_config *config, struct mr_ostore_shell **out, struct mr_error *e)
{
    struct mr_ostore_shell *sh = mr_alloc(sizeof *sh);
    sh->config = *config;
    sh->listen_fd = sh->catalog_fd = -1;
    sh->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    sh->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sh->drained_fd = eventfd(0, EFD_CLOEXEC);
    mr_assert(sh->epoll_fd >= 0);
    mr_assert(sh->wake_fd >= 0);
    sh->buffer = mr_alloc(MR_CTL_BYTES_MAX);
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &sh->wake_fd};
    (void)epoll_ctl(sh->epoll_fd, EPOLL_CTL_ADD, sh->wake_fd, &ev);
    sh->inbox = mr_inbox_new(INBOX_ITEMS, sizeof(struct mr_ostore_shell_item));
    mr_inbox_set_waiter(sh->inbox, (struct mr_waiter){epoll_turn, epoll_wake, sh});
    int err = make_catalog(sh, e);
    if (!err) {
        struct mr_ostore_config core = {
            .memory_bytes = config->memory_bytes,
            .segment_bytes = sh->welcome.segment_bytes,
            .objects_max = config->objects_max,
            .links_max = config->objects_max * 2,
            .waiters_max = 65536,
            .segments_max = 65536,
            .clients_max = 1024,
            .may_spill = config->dir != NULL,
            .orphan_ns = config->claim_time,
        };
        sh->core = mr_ostore_new(&core);
        mr_ostore_effects_init(&sh->fx, &core);
        err = mr_local_clients_listen(sh, e);
    }
    if (err) {
        mr_ostore_shell_close(&sh);
        return err;
    }
    *out = sh;
    return MR_OK;
}

void mr_ostore_shell_close(struct mr_ostore_shell **psh)
{
    struct mr_ostore_shell *sh = MR_STEAL(*psh);
    if (!sh) return;
    mr_local_clients_close(sh);
    for (uint32_t i = 0; i < sh->segments_room; i++)
        if (sh->segments[i].bytes) close(sh->segments[i].fd);
    for (uint32_t i = 0; i < sh->sources_count; i++)
        mr_release(sh->sources[i]);
    if (sh->core) mr_ostore_effects_fini(&sh->fx);
    mr_ostore_free(&sh->core);
    mr_segment_unmap(sh->catalog_map, sh->welcome.catalog_bytes);
    if (sh->catalog_fd >= 0) close(sh->catalog_fd);
    close(sh->epoll_fd);
    mr_inbox_free(&sh->inbox);
    close(sh->wake_fd);
    close(sh->drained_fd);
    mr_release(sh->segments);
    mr_release(sh->sources);
    mr_release(sh->seen);
    mr_release(sh->buffer);
    mr_release(sh->queue);
    mr_release(sh->evicts);
    mr_release(sh->asks);
    mr_release(sh);
}

int mr_ostore_shell_connect(struct mr_ostore_shell *sh, int *out, struct mr_error *e)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return mr_fail(e, MR_EIO, "socketpair: %s", strerror(errno));
    (void)fcntl(pair[0], F_SETFL, O_NONBLOCK);
    mr_local_clients_add(sh, pair[0], true);
    *out = pair[1];
    return MR_OK;
}

/* ---- the core ---------------------------------------------------------------------------------*/

void mr_ostore_shell_queue(struct mr_ostore_shell *sh, const struct mr_ostore_event *ev)
{
    if (sh->queue_count == sh->queue_room) {
        size_t room = sh->queue_room ? sh->queue_room * 2 : 64;
        sh->queue =
            mr_grow(sh->queue, sh->queue_room * sizeof *sh->queue, room * sizeof *sh->queue);
        sh->queue_room = room;
    }
    sh->queue[sh->queue_count++] = *ev;
}

static void tell_disk(struct mr_ostore_shell *sh)
{
    bool is_full = mr_ostore_disk(sh->core).is_full;
    if (is_full == sh->said_full) return;
    sh->said_full = is_full;
    if (is_full)
        mr_log(MR_ERROR, "disk.full",
            "dir=%s what=\"no space left on %s: nothing is spilled or persisted until there is space\"",
            sh->config.dir, sh->config.dir);
    else
        mr_log(MR_INFO, "disk.has_space", "dir=%s", sh->config.dir);
}

void mr_ostore_shell_step(struct mr_ostore_shell *sh, const struct mr_ostore_event *ev)
{
    mr_assert(!sh->queue_count);
    mr_ostore_shell_queue(sh, ev);
    for (size_t i = 0; i < sh->queue_count; i++) {
        struct mr_ostore_event next = sh->queue[i];
        sh->fx.n = 0;
        mr_ostore_step(sh->core, mr_clock_now(), &next, &sh->fx);
        mr_ostore_shell_effects(sh);
    }
    sh->queue_count = 0;
    tell_disk(sh);
    for (uint32_t i = 0; i < sh->clients_count; i++)
        mr_local_client_flush_freed(sh, sh->clients[i]);
    sh->is_draining = sh->is_draining || ev->type == MR_OE_DRAIN;
    if (!sh->is_draining || mr_ostore_is_writing(sh->core)) return;
    uint64_t one = 1;
    (void)!write(sh->drained_fd, &one, sizeof one);
}

static void saw_recent(void *ctx, uint32_t entry)
{
    struct mr_ostore_shell *sh = ctx;
    mr_ostore_shell_queue(sh, &(struct mr_ostore_event){.type = MR_OE_USED, .object = entry});
}

/* Tells the core which objects were read. A read sends no message: the reader notes the object in a
 * ring in its pin page. */
void mr_ostore_shell_note_recent(struct mr_ostore_shell *sh)
{
    mr_assert(!sh->queue_count);
    for (uint32_t i = 0; i < sh->clients_count; i++) {
        const struct mr_pin_page *page = mr_local_client_pins(sh->clients[i]);
        if (page)
            mr_pin_page_recent(
                &sh->catalog, page, mr_local_client_recent(sh->clients[i]), saw_recent, sh);
    }
    for (size_t i = 0; i < sh->queue_count; i++) {
        sh->fx.n = 0;
        struct mr_ostore_event ev = sh->queue[i];
        mr_ostore_step(sh->core, mr_clock_now(), &ev, &sh->fx);
        mr_ostore_shell_effects(sh);
    }
    sh->queue_count = 0;
}

uint32_t mr_ostore_shell_source(struct mr_ostore_shell *sh, const char *address)
{
    for (uint32_t i = 0; i < sh->sources_count; i++)
        if (!strcmp(sh->sources[i], address)) return i + 1;
    if (sh->sources_count == MR_SOURCES_MAX) return 0;
    sh->sources = mr_grow(
        sh->sources, sh->sources_count * sizeof(char *), (sh->sources_count + 1) * sizeof(char *));
    sh->sources[sh->sources_count++] = mr_copy_text(address);
    return sh->sources_count;
}

void mr_ostore_shell_holder_text(struct mr_store_holder h, char *out, size_t n)
{
    char job[MR_JOB_ID_TEXT_MAX];
    switch (h.kind) {
    case MR_HOLD_CLIENT: snprintf(out, n, "client %" PRIu64, h.key); return;
    case MR_HOLD_JOB:
        if (!h.key) { /* the scheduler asked for the hold and named no job */
            snprintf(out, n, "a job");
            return;
        }
        mr_job_id_format((mr_job_id){h.key}, job);
        snprintf(out, n, "job %s", job);
        return;
    case MR_HOLD_NAME: snprintf(out, n, "a name"); return;
    case MR_HOLD_QUEUE: snprintf(out, n, "queue %" PRIu64, h.key); return;
    case MR_HOLD_COLLECTION: snprintf(out, n, "a collection"); return;
    case MR_HOLD_CHECKPOINT: snprintf(out, n, "checkpoint %" PRIu64, h.key); return;
    }
    snprintf(out, n, "an unknown holder");
}

/* ---- questions of the gRPC thread -------------------------------------------------------------*/

void mr_ostore_shell_post(struct mr_ostore_shell *sh, const struct mr_ostore_event *ev)
{
    struct mr_ostore_shell_item item = {.ev = *ev};
    (void)mr_inbox_push_wait(sh->inbox, &item, MR_NEVER);
}

int mr_ostore_shell_ask(struct mr_ostore_shell *sh, struct mr_ask *ask)
{
    struct mr_ostore_shell_item item = {.ask = ask};
    return mr_inbox_push(sh->inbox, &item);
}

static void on_ask_event(struct mr_ostore_shell *sh, struct mr_ask *ask)
{
    bool waits = ask->ev.type == MR_OE_DELETE || ask->ev.type == MR_OE_PERSIST;
    ask->ev.client = 0;
    ask->ev.request = ask->number = ++sh->ask_number;
    if (waits && sh->asks_count == MR_ASKS_MAX) {
        ask->err = MR_ELIMIT;
        waits = false;
    } else if (waits) {
        sh->asks = mr_grow(
            sh->asks, sh->asks_count * sizeof(void *), (sh->asks_count + 1) * sizeof(void *));
        sh->asks[sh->asks_count++] = ask;
    }
    /* a copy, because the step may answer `ask`, which the gRPC thread may then free */
    struct mr_ostore_event ev = ask->ev;
    if (!ask->err) mr_ostore_shell_step(sh, &ev);
    if (!waits) sh->answer(sh->answer_ctx, ask);
}

static void on_offer(struct mr_ostore_shell *sh, struct mr_ask *ask)
{
    MR_AUTO(mr_free_ptr) mr_object_id *ids = mr_alloc_array(ask->n_max, sizeof *ids);
    ask->infos_count = mr_ostore_unvouched(sh->core, ids, ask->n_max);
    ask->infos = mr_alloc_array(ask->n_max, sizeof *ask->infos);
    for (size_t i = 0; i < ask->infos_count; i++) {
        ask->infos[i].id = ids[i];
        mr_ostore_shell_step(sh, &(struct mr_ostore_event){.type = MR_OE_OFFERED, .id = ids[i]});
    }
}

static void on_missing(const struct mr_ostore_shell *sh, struct mr_ask *ask)
{
    size_t n = 0;
    for (size_t i = 0; i < ask->infos_count; i++) {
        struct mr_ostore_info here;
        mr_object_id id = ask->infos[i].id;
        if (mr_ostore_stat(sh->core, id, &here)) ask->infos[n++].id = id;
    }
    ask->infos_count = n;
}

static void on_ask(struct mr_ostore_shell *sh, struct mr_ask *ask)
{
    if (ask->type == MR_ASK_EVENT) {
        on_ask_event(sh, ask);
        return;
    }
    if (ask->type == MR_ASK_OFFER) {
        on_offer(sh, ask);
    } else if (ask->type == MR_ASK_MISSING) {
        on_missing(sh, ask);
    } else if (ask->type == MR_ASK_STATS) {
        mr_ostore_shell_stats(sh, &ask->stats);
        ask->disk = mr_ostore_disk(sh->core);
    } else {
        ask->n_max = ask->type == MR_ASK_STAT ? 1 : ask->n_max;
        ask->infos = mr_alloc_array(ask->n_max, sizeof *ask->infos);
        if (ask->type == MR_ASK_STAT) {
            ask->err = mr_ostore_stat(sh->core, ask->ev.id, ask->infos);
            ask->infos_count = ask->err ? 0 : 1;
        } else {
            ask->infos_count = mr_ostore_page(sh->core, ask->after, ask->infos, ask->n_max);
        }
    }
    sh->answer(sh->answer_ctx, ask);
}

/* ---- the loop ---------------------------------------------------------------------------------*/

static void epoll_turn(void *ctx, mr_time deadline)
{
    struct mr_ostore_shell *sh = ctx;
    mr_time now = mr_clock_now();
    int timeout_ms = -1;
    if (deadline != MR_NEVER) {
        uint64_t ms = deadline > now ? (deadline - now + MR_MS - 1) / MR_MS : 0;
        timeout_ms = (int)MR_MIN(ms, (uint64_t)60000);
    }
    struct epoll_event events[BATCH];
    int n = epoll_wait(sh->epoll_fd, events, BATCH, timeout_ms);
    for (int i = 0; i < n; i++) {
        if (events[i].data.ptr == &sh->wake_fd) {
            uint64_t count;
            (void)!read(sh->wake_fd, &count, sizeof count);
        } else if (events[i].data.ptr == &sh->listen_fd) {
            mr_local_clients_accept(sh);
        } else {
            mr_local_client_handle(sh, events[i].data.ptr, events[i].events);
        }
    }
}

static void epoll_wake(void *ctx)
{
    struct mr_ostore_shell *sh = ctx;
    uint64_t one = 1;
    (void)!write(sh->wake_fd, &one, sizeof one);
}

void mr_ostore_shell_run(void *ctx)
{
    struct mr_ostore_shell *sh = ctx;
    struct mr_ostore_shell_item *batch = mr_alloc_array(BATCH, sizeof *batch);
    while (!mr_inbox_is_closed(sh->inbox)) {
        size_t n = mr_inbox_wait(sh->inbox, mr_ostore_deadline(sh->core), batch, BATCH);
        for (size_t i = 0; i < n; i++) {
            if (batch[i].ask)
                on_ask(sh, batch[i].ask);
            else
                mr_ostore_shell_step(sh, &batch[i].ev);
        }
        if (mr_ostore_deadline(sh->core) > mr_clock_now()) continue;
        mr_ostore_shell_note_recent(sh);
        mr_ostore_shell_step(sh, &(struct mr_ostore_event){.type = MR_OE_TICK});
    }
    mr_release(batch);
}

bool mr_ostore_shell_drain(struct mr_ostore_shell *sh, mr_duration timeout)
{
    struct pollfd fd = {.fd = sh->drained_fd, .events = POLLIN};
    mr_ostore_shell_post(sh, &(struct mr_ostore_event){.type = MR_OE_DRAIN});
    return poll(&fd, 1, (int)(timeout / MR_MS)) > 0;
}

void mr_ostore_shell_end_asks(struct mr_ostore_shell *sh)
{
    while (sh->asks_count) {
        struct mr_ask *ask = sh->asks[--sh->asks_count];
        ask->err = MR_EAWAY;
        ask->done(ask);
    }
}

void mr_ostore_shell_stop(struct mr_ostore_shell *sh)
{
    mr_inbox_close(sh->inbox);
    mr_inbox_wake(sh->inbox);
}
