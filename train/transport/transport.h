/* The transport of parameters between roles: the way to other roles of this machine (one UNIX
 * socket a process, opened at its first use, over which descriptors of shared memory travel), the
 * name of this node, the secret that it shows, and the split of a vector into slices.
 *
 * Process-wide: the roles of one process use one socket. Any thread may call any function. */
#pragma once

#include "base/err.h"
#include "base/limits.h"
#include "base/time.h"
#include "host/flag.h"
#include "host/os/peer.h"
#include "rpc/secret_file.h"

#include <stdatomic.h>
#include <stddef.h>

#define MR_SESSION_MAX 64u /* bytes of a session's id, with the NUL */

/* Where a shard's server or a rank is, as Join tells it (TrainingMember). */
struct mr_place {
    const char *address; /* gRPC; "": none */
    const char *node;
    const char *socket; /* "": none */
    uint64_t incarnation;
};

struct mr_transport_options {
    const char *node; /* of this process: places with the same name are reached by shared memory */
    const struct mr_credential *credential; /* of workers: shown, and asked for; NULL: none. Lent */
    struct mr_peer_rules peers;
};

/* Once, when the process starts, before any role; without it the node is "" and there is no
 * secret. Copies. */
void mr_transport_configure(const struct mr_transport_options *o);
const char *mr_transport_node(void);
const struct mr_credential *mr_transport_credential(void); /* NULL: none */

/* The path of this process's socket, for Join; opened at the first call. Lent for ever. */
int mr_transport_socket(const char **path, struct mr_error *e);
/* Closes the socket and its thread. No shard and no group is open any more. */
void mr_transport_close(void);
/* Removes the directories of sockets that killed processes of this user left; how many. */
size_t mr_transport_sweep(void);
/* For a process that leaves while roles may still be inside: removes the socket's file alone. */
void mr_transport_unlink(void);

/* What went which way since the process began: for its metrics. */
struct mr_transport_traffic {
    _Atomic uint64_t shm_links, grpc_links; /* to shards and in groups: shared memory, gRPC */
    _Atomic uint64_t grpc_bytes;            /* of parameters and gradients, sent or pulled */
    /* Of this process's ranks in rings: steps, the one at the opening included; streams to the next
     * rank; messages on them and their bytes, as they are before TLS; times that the network thread
     * woke a rank. */
    _Atomic uint64_t ring_steps, ring_streams, ring_messages, ring_bytes, ring_wakes;
};
struct mr_transport_traffic *mr_transport_traffic(void);

/* Which numbers of a vector of `count` stand on part `part` of `parts`: the same cut for shards
 * and for slices of an all-reduce. Late parts of a short vector may be empty. */
void mr_transport_slice(
    uint64_t count, uint32_t parts, uint32_t part, uint64_t *first, uint64_t *part_count);
