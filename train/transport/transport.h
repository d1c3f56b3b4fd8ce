/* What roles need to reach the roles of other processes: the UNIX socket of this process, the name
 * of this node, and the cluster's secret. Descriptors of shared memory travel over the socket. This
 * file also tells which slice of a vector belongs to which shard or rank.
 *
 * The state is process-wide: all roles of a process use one socket, which is opened at its first
 * use. Any thread may call any function. */
#pragma once

#include "base/err.h"
#include "base/limits.h"
#include "base/time.h"
#include "host/flag.h"
#include "host/os/peer.h"
#include "rpc/secret_file.h"

#include <stdatomic.h>
#include <stddef.h>

#define MR_SESSION_MAX 64u /* limit of a session's id in bytes, with the NUL */

/* Where to reach the process that has a shard or a rank. The trainer's answer to Join tells it, as
 * a TrainingMember. */
struct mr_place {
    const char *address; /* gRPC address; "": none */
    const char *node;
    const char *socket; /* path of the UNIX socket; "": none */
    uint64_t incarnation;
};

struct mr_transport_options {
    const char *node; /* name of this node: roles on the same node use shared memory */
    /* the cluster's secret, which this process shows to servers and requires of clients; lent.
     * NULL: none */
    const struct mr_credential *credential;
    struct mr_peer_rules peers;
};

/* Sets the options and copies them. Called once, before any role runs. Without this call the node
 * is "" and there is no secret. */
void mr_transport_configure(const struct mr_transport_options *o);
const char *mr_transport_node(void);
/* Returns the cluster's secret; NULL: there is none. */
const struct mr_credential *mr_transport_credential(void);

/* Returns the path of this process's socket, which a role tells the trainer when it joins. The
 * first call opens the socket. The text lives as long as the process. */
int mr_transport_socket(const char **path, struct mr_error *e);
/* Closes the socket and ends its thread. All shards and groups must be closed. */
void mr_transport_close(void);
/* Removes the socket directories that killed processes of this user have left, and returns how
 * many. */
size_t mr_transport_sweep(void);
/* Removes the file of the socket and nothing else: for a process that exits while roles may still
 * run. */
void mr_transport_unlink(void);

/* Totals since the start of the process, for its metrics. */
struct mr_transport_traffic {
    /* Opened connections, by shared memory and by gRPC: one for each parameter shard that a client
     * opened, and one for each rank that joined its all-reduce group. */
    _Atomic uint64_t shm_links, grpc_links;
    _Atomic uint64_t grpc_bytes; /* bytes of parameters and gradients, sent and pulled */
    /* Totals over all rings that have a rank in this process: steps, including the exchange at the
     * opening; streams to the next rank; messages on these streams, and their bytes before TLS; how
     * often the network thread has woken a rank. */
    _Atomic uint64_t ring_steps, ring_streams, ring_messages, ring_bytes, ring_wakes;
};
struct mr_transport_traffic *mr_transport_traffic(void);

/* Sets `*first` and `*part_count` to the range of part `part` of `parts` of a vector of `count`
 * numbers. The shards of a model and the slices of an all-reduce are cut in this way. The last
 * parts of a short vector may be empty. */
void mr_transport_slice(
    uint64_t count, uint32_t parts, uint32_t part, uint64_t *first, uint64_t *part_count);
