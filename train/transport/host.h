/* What a process serves at its UNIX socket: shards and all-reduce groups, each a *host*. A client
 * connects, sends one hello, and gets an admission with descriptors of shared memory. After that
 * the open connection only shows that both sides live. transport.c has the functions. */
#pragma once

#include "base/list.h"
#include "train/transport/packet.h"
#include "train/transport/transport.h"

#define MR_TRANSPORT_MAGIC 0x6d72736bu
#define MR_TRANSPORT_PROTOCOL 1u
#define MR_TRANSPORT_SECRET_MAX 264u
#define MR_TRANSPORT_TEXT_MAX 400u

enum mr_transport_kind { MR_TRANSPORT_READER = 1, MR_TRANSPORT_WORKER, MR_TRANSPORT_RANK };

/* a client's first packet; readers and workers send the descriptor of their segment with it */
struct mr_transport_hello {
    uint32_t magic, protocol;
    uint32_t kind;
    uint32_t index; /* index of the shard; with kind RANK: generation of the group */
    uint32_t parts; /* number of shards or ranks */
    uint32_t from;  /* index of the worker or rank that connects */
    uint32_t generation;
    uint32_t unused;
    uint64_t incarnation;
    /* how many numbers the whole model has; with kind RANK: how many numbers the vector of the
     * ranks has (mr_reduce_options.count) */
    uint64_t count;
    uint64_t version;
    char session[MR_SESSION_MAX];
    char secret[MR_TRANSPORT_SECRET_MAX];
};

/* the answer to a hello, with descriptors: of the shard's segment and its bell (segment.h), or of
 * the group's segment */
struct mr_transport_admission {
    uint32_t magic;
    int32_t err; /* MR_OK, or an error for which `text` is the reason */
    uint32_t slot;
    uint32_t buffers;
    char text[MR_TRANSPORT_TEXT_MAX];
};

/* A host. Its functions run on the thread of the process's UNIX socket, one at a time, and never
 * after mr_transport_host_remove. */
struct mr_transport_host {
    struct mr_list node;
    const char *session;
    uint32_t index;
    bool is_group;
    /* Fills in slot and buffers of `w` and lends descriptors in `fds`. Owns `fd` (-1: none), also
     * when it fails. */
    int (*admit)(struct mr_transport_host *h, const struct mr_transport_hello *hello, int fd,
        struct mr_transport_admission *w, int fds[MR_TRANSPORT_FDS], struct mr_error *e);
    void (*gone)(struct mr_transport_host *h, uint32_t slot); /* the client hung up */
};

/* Adds a host. MR_EEXIST: this process already serves the same shard or group. */
int mr_transport_host_add(struct mr_transport_host *h, struct mr_error *e);
/* Removes a host: hangs up its connections, without calling `gone`. */
void mr_transport_host_remove(struct mr_transport_host *h);

void mr_transport_hello_fill(struct mr_transport_hello *h, const char *session);
/* Connects to a host: sends the hello and waits for the admission. `*socket` stays open as long as
 * the client uses the host. */
int mr_transport_connect(const char *path, const struct mr_transport_hello *hello, int fd,
    mr_time deadline, struct mr_transport_admission *w, int fds[MR_TRANSPORT_FDS], int *socket,
    struct mr_error *e);
bool mr_transport_is_hung_up(int socket);
