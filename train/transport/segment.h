/* Private to train: packets of the socket, words in shared memory, and the table of what this
 * process serves.
 *
 * Shared memory of another process is outside bytes. Each side keeps sizes, offsets and counts in
 * its own memory, reads a word once, and checks it before use. Segments are sealed against
 * shrinking, so that a read never faults. All but the bell and a group's segment are also sealed
 * against writing by any process but their maker. */
#pragma once

#include "base/list.h"
#include "train/transport/transport.h"

#include <stdatomic.h>

#define MR_TRANSPORT_MAGIC 0x6d72736bu
#define MR_TRANSPORT_PROTOCOL 1u
#define MR_TRANSPORT_SECRET_MAX 264u
#define MR_TRANSPORT_TEXT_MAX 400u
#define MR_TRANSPORT_FDS 2
#define MR_TRANSPORT_SLICE (20 * MR_MS) /* of a wait, between looks at stop flags and sockets */

enum mr_transport_kind { MR_TRANSPORT_READER = 1, MR_TRANSPORT_WORKER, MR_TRANSPORT_RANK };

struct mr_transport_hello { /* + descriptor of the client's own segment (reader, worker) */
    uint32_t magic, protocol;
    uint32_t kind;
    uint32_t index; /* shard; 0 of a group */
    uint32_t parts; /* shards, or ranks */
    uint32_t from;  /* worker or rank that connects */
    uint32_t generation;
    uint32_t unused;
    uint64_t incarnation;
    uint64_t count; /* of the whole model */
    uint64_t version;
    char session[MR_SESSION_MAX];
    char secret[MR_TRANSPORT_SECRET_MAX];
};

struct mr_transport_admission { /* + descriptors: shard and bell, or the group */
    uint32_t magic;
    int32_t err;
    uint32_t slot;
    uint32_t buffers;
    char text[MR_TRANSPORT_TEXT_MAX];
};

/* What is served. The functions run on the socket's thread, one at a time; none after remove. */
struct mr_transport_host {
    struct mr_list node;
    const char *session;
    uint32_t index;
    bool is_group;
    /* Fills slot and buffers and lends descriptors; takes `fd` (may be -1), also on failure. */
    int (*admit)(struct mr_transport_host *h, const struct mr_transport_hello *hello, int fd,
        struct mr_transport_admission *w, int fds[MR_TRANSPORT_FDS], struct mr_error *e);
    void (*gone)(struct mr_transport_host *h, uint32_t slot);
};

int mr_transport_host_add(struct mr_transport_host *h, struct mr_error *e); /* MR_EEXIST */
/* Its connections are hung up; `gone` is not called for them. */
void mr_transport_host_remove(struct mr_transport_host *h);

/* Connects, sends the hello, waits for the answer. The open socket shows that both sides live. */
int mr_transport_connect(const char *path, const struct mr_transport_hello *hello, int fd,
    mr_time deadline, struct mr_transport_admission *w, int fds[MR_TRANSPORT_FDS], int *socket,
    struct mr_error *e);
bool mr_transport_is_hung_up(int socket);
void mr_transport_hello_fill(struct mr_transport_hello *h, const char *session);

/* ---- sockets (wire.c) -------------------------------------------------------------- */

int mr_transport_send(int socket, const void *p, size_t n, const int *fds, size_t fds_count);
/* One packet of exactly n bytes. MR_EAGAIN, MR_EAWAY, MR_EFORMAT. Descriptors are the caller's. */
int mr_transport_receive(int socket, void *p, size_t n, int fds[MR_TRANSPORT_FDS]);
int mr_transport_address(const char *path, void *sockaddr_un, struct mr_error *e);

/* ---- shared memory ----------------------------------------------------------------------- */

/* A segment mapped for writing and sealed: against size changes, and with `alone` against being
 * mapped for writing by others. */
int mr_transport_make(
    const char *name, uint64_t bytes, bool alone, int *fd, void **map, struct mr_error *e);
/* One that came from a peer: checked for seals and size, mapped. The descriptor stays open. */
int mr_transport_map(int fd, uint64_t bytes, bool writable, void **map, struct mr_error *e);

/* Sleeps while *word is `seen`, until `deadline` at most; may return early. */
void mr_transport_sleep(const _Atomic uint32_t *word, uint32_t seen, mr_time deadline);
void mr_transport_wake(const _Atomic uint32_t *word); /* wakes all threads that sleep there */

/* A bell: many ring, one sleeps. In a segment of its own that all may write to. */
struct mr_transport_bell {
    _Atomic uint32_t rung;
    _Atomic uint32_t sleeps;
};
void mr_transport_bell_ring(struct mr_transport_bell *b);
/* `seen` was read before looking for work; sleeps a slice at most. */
void mr_transport_bell_wait(struct mr_transport_bell *b, uint32_t seen, mr_time deadline);

static inline bool mr_transport_is_stopped(const struct mr_flag *stop)
{
    return stop && mr_flag_is_set(stop);
}
