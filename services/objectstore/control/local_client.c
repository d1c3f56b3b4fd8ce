/* Clients of this node. Everything that a client sends is checked as bytes from outside. A client
 * that breaks the protocol is disconnected, and only its own state is lost. */
#include "services/objectstore/control/local_client.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/limits.h"
#include "host/os/log.h"
#include "services/objectstore/control/effects.h"
#include "store/arena/segment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* limit of one client's messages that are read before other clients are served */
#define TURN_MESSAGES 256u
/* limit of bytes that wait for a client which does not read */
#define QUEUE_BYTES_MAX ((uint64_t)256 << 20)
#define FREED_MAX 512u

struct queued {
    struct mr_list node;
    enum mr_ctl_type type;
    uint32_t count;
    uint64_t request;
    int fd;
    char *fixed;
    char *items;
};

struct mr_local_client {
    int fd;
    uint32_t number; /* 0: the client has sent no HELLO yet */
    bool internal;
    bool broken;
    uint64_t maker;
    char name[MR_CTL_NAME_MAX];
    uint32_t pid;
    struct mr_pin_page *pins;
    uint32_t recent;
    uint64_t *segments; /* a bit for each segment: the client was sent its descriptor */
    uint32_t segments_words;
    struct mr_list queue;
    uint64_t queue_bytes;
    struct mr_ctl_freed freed[FREED_MAX];
    uint32_t freed_count;
    struct mr_ctl_done deleted; /* the answer to the DELETE that is being carried out */
    uint32_t deletes_left;
};

/* ---- sending ----------------------------------------------------------------------------------*/

static void watch(struct mr_ostore_shell *sh, struct mr_local_client *p, bool writable)
{
    struct epoll_event ev = {
        .events = EPOLLIN | (writable ? (uint32_t)EPOLLOUT : 0u), .data.ptr = p};
    (void)epoll_ctl(sh->epoll_fd, EPOLL_CTL_MOD, p->fd, &ev);
}

static void queued_free(struct queued *q)
{
    if (q->fd >= 0) close(q->fd);
    mr_release(q->fixed);
    mr_release(q->items);
    mr_release(q);
}

static void enqueue(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_local_message *m)
{
    size_t fixed_bytes = mr_ctl_fixed_bytes(m->type);
    size_t items_bytes = m->count * mr_ctl_item_bytes(m->type);
    p->queue_bytes += fixed_bytes + items_bytes + sizeof(struct queued);
    if (p->queue_bytes > QUEUE_BYTES_MAX) {
        mr_log(MR_WARN, "client.send_overflow", "client=%u pid=%u", p->number, p->pid);
        p->broken = true;
        /* epoll reports the socket, and then the loop frees the client */
        shutdown(p->fd, SHUT_RDWR);
        return;
    }
    struct queued *q = mr_alloc(sizeof *q);
    *q = (struct queued){.type = m->type, .count = m->count, .request = m->request, .fd = -1};
    if (m->fd) q->fd = dup(*m->fd);
    if (fixed_bytes) q->fixed = mr_copy(m->fixed, fixed_bytes);
    if (items_bytes) q->items = mr_copy(m->items, items_bytes);
    if (mr_list_is_empty(&p->queue)) watch(sh, p, true);
    mr_list_add_tail(&p->queue, &q->node);
}

void mr_local_client_send(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_local_message *m)
{
    if (p->broken) return;
    int err = MR_EAGAIN;
    if (mr_list_is_empty(&p->queue))
        err = mr_ctl_send(
            p->fd, m->type, m->request, m->fixed, m->items, m->count, m->fd ? *m->fd : -1);
    if (err == MR_EAGAIN)
        enqueue(sh, p, m);
    else if (err)
        p->broken = true;
}

static void drain_queue(struct mr_ostore_shell *sh, struct mr_local_client *p)
{
    while (!mr_list_is_empty(&p->queue) && !p->broken) {
        struct queued *q = MR_LIST_ITEM(p->queue.next, struct queued, node);
        int err = mr_ctl_send(p->fd, q->type, q->request, q->fixed, q->items, q->count, q->fd);
        if (err == MR_EAGAIN) return;
        if (err) p->broken = true;
        p->queue_bytes -=
            mr_ctl_fixed_bytes(q->type) + q->count * mr_ctl_item_bytes(q->type) + sizeof *q;
        mr_list_remove(&q->node);
        queued_free(q);
    }
    watch(sh, p, false);
}

void mr_local_client_flush_freed(struct mr_ostore_shell *sh, struct mr_local_client *p)
{
    if (p->freed_count)
        mr_local_client_send(sh, p,
            &(struct mr_local_message){
                .type = MR_CTL_FREED, .items = p->freed, .count = p->freed_count});
    p->freed_count = 0;
}

void mr_local_client_free_room(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_ctl_freed *room)
{
    if (p->freed_count == FREED_MAX) mr_local_client_flush_freed(sh, p);
    p->freed[p->freed_count++] = *room;
}

void mr_local_client_deleted(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_ostore_effect *x)
{
    if (x->err && !p->deleted.err) {
        char id[MR_OBJECT_ID_TEXT_MAX];
        char holder[64];
        mr_object_id_format(x->id, id);
        mr_ostore_shell_holder_text(x->holder, holder, sizeof holder);
        p->deleted.err = x->err;
        snprintf(p->deleted.text, sizeof p->deleted.text,
            "object %s is held by %s; delete it with force, or remove what holds it first", id,
            holder);
    }
    if (--p->deletes_left) return;
    mr_local_client_send(sh, p,
        &(struct mr_local_message){
            .type = MR_CTL_DONE, .request = x->request, .fixed = &p->deleted});
    p->deleted = (struct mr_ctl_done){0};
}

bool mr_local_client_knows_segment(struct mr_local_client *p, uint32_t segment)
{
    uint32_t word = segment / 64;
    if (word >= p->segments_words) {
        uint32_t words = MR_MAX(word + 1, p->segments_words * 2);
        p->segments =
            mr_grow(p->segments, p->segments_words * sizeof(uint64_t), words * sizeof(uint64_t));
        p->segments_words = words;
    }
    uint64_t bit = (uint64_t)1 << segment % 64;
    bool knew = p->segments[word] & bit;
    p->segments[word] |= bit;
    return knew;
}

void mr_local_client_forget_segment(struct mr_local_client *p, uint32_t segment, bool *knew)
{
    uint32_t word = segment / 64;
    uint64_t bit = (uint64_t)1 << segment % 64;
    *knew = word < p->segments_words && (p->segments[word] & bit);
    if (*knew) p->segments[word] &= ~bit;
}

const struct mr_pin_page *mr_local_client_pins(const struct mr_local_client *p)
{
    return p->pins;
}

uint32_t *mr_local_client_recent(struct mr_local_client *p)
{
    return &p->recent;
}

/* ---- what clients say -------------------------------------------------------------------------*/

static uint64_t random_u64(void)
{
    uint64_t v = 0;
    while (!v)
        if (getrandom(&v, sizeof v, 0) != sizeof v) v = 0;
    return v;
}

static void refuse(struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_error *e)
{
    struct mr_ctl_done done = {.err = e->code};
    snprintf(done.text, sizeof done.text, "%.*s", (int)sizeof done.text - 1, e->text);
    mr_local_client_send(sh, p, &(struct mr_local_message){.type = MR_CTL_DONE, .fixed = &done});
    p->broken = true;
}

static int take_hello(struct mr_ostore_shell *sh, struct mr_local_client *p,
    const struct mr_ctl_hello *h, int fd, struct mr_error *e)
{
    if (h->protocol != MR_PROTOCOL_VERSION || h->layout != MR_LAYOUT_VERSION)
        return mr_fail(e, MR_ESTATE,
            "the object store speaks protocol %d with layout %d, the client %u with %u",
            MR_PROTOCOL_VERSION, MR_LAYOUT_VERSION, h->protocol, h->layout);
    if (h->control != MR_CTL_VERSION)
        return mr_fail(e, MR_ESTATE,
            "the object store speaks version %d of its control messages, the client %u: both must be "
            "of one version of millrace",
            MR_CTL_VERSION, h->control ? h->control : 1);
    if (sh->clients_count > 1000)
        return mr_fail(e, MR_ELIMIT, "the object store has 1000 clients already");
    uint64_t bytes = 0;
    if (fd < 0) return mr_fail(e, MR_EINVAL, "hello came without a pin page");
    int err = mr_segment_check(fd, sizeof *p->pins, false, &bytes, e);
    if (err) return err;
    void *map = NULL;
    err = mr_segment_map(fd, sizeof *p->pins, false, &map, e);
    if (err) return err;
    p->pins = map;
    if (!mr_pin_page_is_valid(p->pins))
        return mr_fail(e, MR_EFORMAT, "the pin page has another layout");
    return MR_OK;
}

static void on_hello(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_ctl_message *m, int fd)
{
    const struct mr_ctl_hello *h = m->fixed;
    struct mr_error e;
    if (take_hello(sh, p, h, fd, &e)) {
        refuse(sh, p, &e);
        return;
    }
    p->number = ++sh->client_number;
    p->maker = random_u64();
    p->pid = h->pid;
    memcpy(p->name, h->name, sizeof p->name);
    p->internal = p->internal && h->internal;
    struct mr_ctl_welcome w = sh->welcome;
    w.maker = p->maker;
    mr_ostore_shell_step(sh,
        &(struct mr_ostore_event){
            .type = MR_OE_JOIN, .client = p->number, .maker = p->maker, .internal = p->internal});
    mr_local_client_send(sh, p,
        &(struct mr_local_message){
            .type = MR_CTL_WELCOME, .request = MR_CTL_VERSION, .fixed = &w, .fd = &sh->catalog_fd});
    char name[80];
    mr_log(MR_INFO, "client.joined", "client=%u pid=%u name=%s", p->number, p->pid,
        mr_log_quote(mr_str(p->name), name, sizeof name));
}

static void on_seal(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_ctl_message *m)
{
    const struct mr_ctl_seal *items = m->items;
    for (uint32_t i = 0; i < m->count; i++)
        mr_ostore_shell_step(sh, &(struct mr_ostore_event){.type = MR_OE_SEAL,
                                     .client = p->number,
                                     .id = items[i].id,
                                     .segment = items[i].segment,
                                     .flags = items[i].flags,
                                     .offset = items[i].offset,
                                     .bytes = items[i].bytes,
                                     .room = items[i].room,
                                     .owner = {{items[i].job}, items[i].task, items[i].attempt}});
}

static void on_ids(struct mr_ostore_shell *sh, struct mr_local_client *p,
    const struct mr_ctl_message *m, enum mr_ostore_event_type type)
{
    const mr_object_id *ids = m->items;
    struct mr_ostore_event ev = {.type = type, .client = p->number, .request = m->request};
    if (type == MR_OE_HOLD || type == MR_OE_UNHOLD) {
        const struct mr_ctl_hold *h = m->fixed;
        if (h->kind < MR_HOLD_CLIENT || h->kind > MR_HOLD_CHECKPOINT) return;
        ev.holder = (struct mr_store_holder){(enum mr_store_holder_kind)h->kind, h->key};
    }
    if (type == MR_OE_DELETE)
        ev.flags = ((const struct mr_ctl_delete *)m->fixed)->force ? MR_OSTORE_FORCE : 0;
    for (uint32_t i = 0; i < m->count; i++) {
        ev.id = ids[i];
        mr_ostore_shell_step(sh, &ev);
    }
}

static void on_delete(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_ctl_message *m)
{
    p->deleted = (struct mr_ctl_done){0};
    p->deletes_left = m->count;
    if (m->count)
        on_ids(sh, p, m, MR_OE_DELETE);
    else
        mr_local_client_send(sh, p,
            &(struct mr_local_message){
                .type = MR_CTL_DONE, .request = m->request, .fixed = &p->deleted});
}

static void on_get(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_ctl_message *m)
{
    const struct mr_ctl_get *g = m->fixed;
    /* True: the client names this store itself as the source. Such a get is not a pull: if the core
     * does not know the object yet, the get waits for the seal. */
    bool is_ours = sh->address && !strcmp(g->source, sh->address);
    uint32_t source = g->source[0] ? mr_ostore_shell_source(sh, g->source) : MR_OSTORE_SEEK;
    mr_ostore_shell_step(sh, &(struct mr_ostore_event){.type = MR_OE_GET,
                                 .client = p->number,
                                 .request = m->request,
                                 .id = g->id,
                                 .timeout = g->timeout_ns,
                                 .source = is_ours ? 0 : source});
}

static void on_grant(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_ctl_message *m)
{
    const struct mr_ctl_grant *g = m->fixed;
    mr_ostore_shell_note_recent(sh);
    mr_ostore_shell_step(sh, &(struct mr_ostore_event){.type = MR_OE_GRANT,
                                 .client = p->number,
                                 .request = m->request,
                                 .bytes = g->bytes,
                                 .room = g->bytes_min,
                                 .timeout = g->timeout_ns});
}

/* Takes the memory limit of a client's control group. Segments of a client in the store's own
 * control group are covered by --memory, which was chosen to fit that group. */
static void on_limit(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_ctl_message *m)
{
    const struct mr_ctl_limit *l = m->fixed;
    if (l->group == sh->config.group) return;
    mr_log(MR_INFO, "client.limited",
        "client=%u group=%016" PRIx64 " limit=%" PRIu64 " own=%" PRIu64, p->number, l->group,
        l->memory_bytes, l->own_bytes);
    mr_ostore_shell_step(sh, &(struct mr_ostore_event){.type = MR_OE_LIMIT,
                                 .client = p->number,
                                 .group = l->group,
                                 .bytes = l->memory_bytes,
                                 .room = l->own_bytes});
}

static void on_return(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_ctl_message *m)
{
    const uint32_t *numbers = m->items;
    struct mr_ostore_event ev = {.type = MR_OE_RETURN, .client = p->number};
    for (uint32_t i = 0; i < m->count; i++) {
        ev.segment = numbers[i];
        if (ev.segment) mr_ostore_shell_step(sh, &ev);
    }
    ev.segment = 0;
    mr_ostore_shell_step(sh, &ev);
}

static void on_stats(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_ctl_message *m)
{
    struct mr_store_stats stats;
    mr_ostore_shell_stats(sh, &stats);
    mr_local_client_send(sh, p,
        &(struct mr_local_message){
            .type = MR_CTL_STATS_DONE, .request = m->request, .fixed = &stats});
}

static void on_want(struct mr_ostore_shell *sh, const struct mr_ctl_message *m)
{
    const mr_object_id *ids = m->items;
    for (uint32_t i = 0; i < m->count; i++)
        mr_ostore_shell_step(
            sh, &(struct mr_ostore_event){
                    .type = MR_OE_WANT, .id = ids[i], .flags = m->request ? MR_OSTORE_AT_ONCE : 0});
}

static void on_message(
    struct mr_ostore_shell *sh, struct mr_local_client *p, const struct mr_ctl_message *m, int fd)
{
    bool said_hello = p->number != 0;
    if (said_hello == (m->type == MR_CTL_HELLO)) {
        p->broken = true; /* HELLO has to be the first message, and comes once */
        return;
    }
    if (m->type == MR_CTL_HELLO)
        on_hello(sh, p, m, fd);
    else if (m->type == MR_CTL_SEAL)
        on_seal(sh, p, m);
    else if (m->type == MR_CTL_GET)
        on_get(sh, p, m);
    else if (m->type == MR_CTL_UNPIN)
        on_ids(sh, p, m, MR_OE_UNPIN);
    else if (m->type == MR_CTL_HOLD)
        on_ids(sh, p, m, MR_OE_HOLD);
    else if (m->type == MR_CTL_UNHOLD)
        on_ids(sh, p, m, MR_OE_UNHOLD);
    else if (m->type == MR_CTL_DELETE)
        on_delete(sh, p, m);
    else if (m->type == MR_CTL_GRANT)
        on_grant(sh, p, m);
    else if (m->type == MR_CTL_LIMIT)
        on_limit(sh, p, m);
    else if (m->type == MR_CTL_RETURN)
        on_return(sh, p, m);
    else if (m->type == MR_CTL_STATS)
        on_stats(sh, p, m);
    else if (m->type == MR_CTL_WANT)
        on_want(sh, m);
    else
        mr_ostore_shell_step(
            sh, &(struct mr_ostore_event){
                    .type = MR_OE_CANCEL, .client = p->number, .request = m->request});
}

/* ---- coming and going -------------------------------------------------------------------------*/

static void client_free(struct mr_ostore_shell *sh, struct mr_local_client *p)
{
    (void)epoll_ctl(sh->epoll_fd, EPOLL_CTL_DEL, p->fd, NULL);
    close(p->fd);
    while (!mr_list_is_empty(&p->queue))
        queued_free(MR_LIST_ITEM(mr_list_pop_head(&p->queue), struct queued, node));
    mr_segment_unmap(p->pins, sizeof *p->pins);
    mr_release(p->segments);
    mr_release(p);
}

static void client_gone(struct mr_ostore_shell *sh, struct mr_local_client *p)
{
    uint32_t number = p->number;
    for (uint32_t i = 0; i < sh->clients_count; i++) {
        if (sh->clients[i] != p) continue;
        sh->clients[i] = sh->clients[--sh->clients_count];
        break;
    }
    if (number) mr_log(MR_INFO, "client.left", "client=%u pid=%u", number, p->pid);
    client_free(sh, p); /* the client is freed first: its pins must be gone when the core evicts */
    if (number)
        mr_ostore_shell_step(sh, &(struct mr_ostore_event){.type = MR_OE_GONE, .client = number});
}

void mr_local_client_handle(struct mr_ostore_shell *sh, struct mr_local_client *p, uint32_t events)
{
    if (events & EPOLLOUT) drain_queue(sh, p);
    for (uint32_t i = 0; i < TURN_MESSAGES && !p->broken; i++) {
        size_t n = 0;
        int fd = -1;
        int err = mr_ctl_receive(p->fd, sh->buffer, &n, &fd);
        if (err == MR_EAGAIN) break;
        struct mr_ctl_message m;
        struct mr_error e;
        if (err) {
            p->broken = true;
        } else if (mr_ctl_parse(sh->buffer, n, true, &m, &e)) {
            mr_log(MR_WARN, "client.protocol_error", "client=%u pid=%u what=\"%s\"", p->number,
                p->pid, e.text);
            p->broken = true;
        } else {
            on_message(sh, p, &m, fd);
        }
        if (fd >= 0) close(fd);
    }
    if (p->broken) client_gone(sh, p);
}

void mr_local_clients_add(struct mr_ostore_shell *sh, int fd, bool internal)
{
    struct mr_local_client *p = mr_alloc(sizeof *p);
    p->fd = fd;
    p->internal = internal;
    mr_list_init(&p->queue);
    sh->clients = mr_grow(
        sh->clients, sh->clients_count * sizeof(void *), (sh->clients_count + 1) * sizeof(void *));
    sh->clients[sh->clients_count++] = p;
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = p};
    if (!epoll_ctl(sh->epoll_fd, EPOLL_CTL_ADD, fd, &ev)) return;
    mr_log(MR_ERROR, "client.refused", "why=\"epoll_ctl: %s\"", strerror(errno));
    /* the system has no memory or descriptors left; the client sees that the connection ends */
    sh->clients_count--;
    close(fd);
    mr_release(p);
}

void mr_local_clients_accept(struct mr_ostore_shell *sh)
{
    int fd = accept4(sh->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (mr_peer_may_enter(&sh->config.peers, fd, sh->config.socket_path))
        mr_local_clients_add(sh, fd, false);
    else
        close(fd);
}

int mr_local_clients_listen(struct mr_ostore_shell *sh, struct mr_error *e)
{
    const char *path = sh->config.socket_path;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return mr_fail(e, MR_EINVAL, "--socket: the path \"%s\" is longer than %zu bytes", path,
            sizeof address.sun_path - 1);
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return mr_fail(e, MR_EIO, "socket: %s", strerror(errno));
    if (!connect(fd, (struct sockaddr *)&address, sizeof address)) {
        close(fd);
        return mr_fail(e, MR_EEXIST, "--socket: another object store answers at %s", path);
    }
    (void)unlink(path); /* removes the socket that a dead process left behind */
    mode_t before = umask(0077);
    int failed = bind(fd, (struct sockaddr *)&address, sizeof address);
    umask(before);
    failed = failed || chmod(path, mr_peer_socket_mode(&sh->config.peers)) || listen(fd, 128);
    if (failed) {
        int err = mr_fail(e, MR_EIO, "--socket: cannot listen at %s: %s", path, strerror(errno));
        close(fd);
        return err;
    }
    sh->listen_fd = fd;
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &sh->listen_fd};
    if (!epoll_ctl(sh->epoll_fd, EPOLL_CTL_ADD, fd, &ev)) return MR_OK;
    return mr_fail(e, MR_EIO, "--socket: epoll_ctl: %s", strerror(errno));
}

void mr_local_clients_close(struct mr_ostore_shell *sh)
{
    while (sh->clients_count)
        client_free(sh, sh->clients[--sh->clients_count]);
    mr_release(sh->clients);
    sh->clients = NULL;
    if (sh->listen_fd < 0) return;
    close(sh->listen_fd);
    sh->listen_fd = -1;
    (void)unlink(sh->config.socket_path);
}

struct mr_local_client *mr_local_client_find(struct mr_ostore_shell *sh, uint32_t client)
{
    for (uint32_t i = 0; i < sh->clients_count; i++)
        if (client && sh->clients[i]->number == client) return sh->clients[i];
    return NULL;
}
