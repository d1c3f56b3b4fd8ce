/* Private to share*.c, params*.c and reduce*.c: what travels over the socket, words in shared
 * memory, and the table of what this process serves.
 *
 * Shared memory from another process is outside bytes: each side keeps sizes, places and counts in
 * memory of its own, reads a word once, and checks it before use. Segments are sealed against
 * shrinking, so that reading them never faults; all but the bell and a group's segment are sealed
 * against writing by anyone but their maker. */
#pragma once

#include "base/list.h"
#include "train/transport/transport.h"

#include <stdatomic.h>

#define MR_SHARE_MAGIC 0x6d72736bu
#define MR_SHARE_PROTOCOL 1u
#define MR_SHARE_SECRET_MAX 264u
#define MR_SHARE_TEXT_MAX 400u
#define MR_SHARE_FDS 2
#define MR_SHARE_SLICE (20 * MR_MS) /* of a wait, between looks at stop flags and sockets */

enum mr_share_kind { MR_SHARE_READER = 1, MR_SHARE_WORKER, MR_SHARE_RANK };

struct mr_share_hello { /* + descriptor of the client's own segment (reader, worker) */
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
    char secret[MR_SHARE_SECRET_MAX];
};

struct mr_share_welcome { /* + descriptors: shard and bell, or the group */
    uint32_t magic;
    int32_t err;
    uint32_t slot;
    uint32_t buffers;
    char text[MR_SHARE_TEXT_MAX];
};

/* What is served. The functions run on the socket's thread, one at a time; none after remove. */
struct mr_share_host {
    struct mr_list node;
    const char *session;
    uint32_t index;
    bool is_group;
    /* Fills slot and buffers and lends descriptors; takes `fd` (may be -1), also on failure. */
    int (*admit)(struct mr_share_host *h, const struct mr_share_hello *hello, int fd,
        struct mr_share_welcome *w, int fds[MR_SHARE_FDS], struct mr_error *e);
    void (*gone)(struct mr_share_host *h, uint32_t slot);
};

int mr_share_host_add(struct mr_share_host *h, struct mr_error *e); /* MR_EEXIST */
/* Its connections are hung up; `gone` is not called for them. */
void mr_share_host_remove(struct mr_share_host *h);

/* Connects, says hello, waits for the answer. The socket stays open as a sign of life of both. */
int mr_share_connect(const char *path, const struct mr_share_hello *hello, int fd, mr_time deadline,
    struct mr_share_welcome *w, int fds[MR_SHARE_FDS], int *socket, struct mr_error *e);
bool mr_share_is_hung_up(int socket);
void mr_share_hello_fill(struct mr_share_hello *h, const char *session);

/* ---- sockets (wire.c) -------------------------------------------------------------- */

int mr_share_send(int socket, const void *p, size_t n, const int *fds, size_t fds_count);
/* One packet of exactly n bytes. MR_EAGAIN, MR_EAWAY, MR_EFORMAT. Descriptors are the caller's. */
int mr_share_receive(int socket, void *p, size_t n, int fds[MR_SHARE_FDS]);
int mr_share_address(const char *path, void *sockaddr_un, struct mr_error *e);

/* ---- shared memory ----------------------------------------------------------------------- */

/* A segment mapped for writing and sealed: against size changes, and with `alone` against being
 * mapped for writing by others. */
int mr_share_make(
    const char *name, uint64_t bytes, bool alone, int *fd, void **map, struct mr_error *e);
/* One that came from a peer: checked for seals and size, mapped. The descriptor stays open. */
int mr_share_map(int fd, uint64_t bytes, bool writable, void **map, struct mr_error *e);

/* Sleeps while *word is `seen`, until `deadline` at most; may return early. */
void mr_share_sleep(const _Atomic uint32_t *word, uint32_t seen, mr_time deadline);
void mr_share_wake(const _Atomic uint32_t *word); /* all who sleep there */

/* A bell: many ring, one sleeps. In a segment of its own that all may write to. */
struct mr_share_bell {
    _Atomic uint32_t rung;
    _Atomic uint32_t sleeps;
};
void mr_share_ring(struct mr_share_bell *b);
/* `seen` was read before looking for work; sleeps a slice at most. */
void mr_share_bell_wait(struct mr_share_bell *b, uint32_t seen, mr_time deadline);

static inline bool mr_share_is_stopped(const struct mr_flag *stop)
{
    return stop && mr_flag_is_set(stop);
}
