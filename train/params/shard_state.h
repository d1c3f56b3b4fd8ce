/* Private to train/params: the state of a shard on its server, in the server's private memory. The
 * role's thread owns all members, except where a comment says otherwise. */
#pragma once

#include "base/list.h"
#include "host/monitor.h"
#include "train/params/layout.h"
#include "train/params/shard.h"
#include "train/transport/host.h"

struct mr_shard_client { /* guarded by the shard's lock */
    /* this shard's line in the client's segment, which is mapped read-only */
    struct mr_client_line *line;
    const char *map;
    uint64_t bytes;
    bool is_gone; /* the client has hung up; the struct is freed when `held` is 0 */
    bool is_worker;
    uint32_t worker;
    uint64_t incarnation;
    uint32_t taken[MR_PARAMS_UNDER_WAY]; /* for each buffer, the serial of the last push taken */
    /* number of the client's gradients that mr_shard_next_push and mr_shard_early have returned and
     * that are still in use */
    uint32_t held;
};

/* One for each worker index: the newest incarnation of this worker, and its last push. */
struct mr_shard_worker {
    uint64_t incarnation;
    uint64_t step;
    bool has_step;
};

struct mr_shard {
    struct mr_transport_host host;
    struct mr_list node; /* member of the table of this process's shards */
    uint32_t users;      /* guarded by the table's lock */
    char session[MR_SESSION_MAX];
    uint32_t index, shards;
    uint64_t model_count, first, count;
    const struct mr_flag *stop;
    uint32_t readers_max, buffers_count;

    struct mr_shard_page *page;
    uint64_t bytes;
    int fd, bell_fd;
    struct mr_transport_bell *bell;
    uint64_t serial;  /* number of publications */
    uint32_t current; /* index of the buffer with the current version */
    int64_t next;     /* index of the buffer that is being written; -1: none is chosen */
    uint64_t version;
    uint32_t epoch;
    struct mr_shard_worker *workers;
    uint32_t cursor; /* slot of the client that is asked first for the next push */
    /* Any thread uses the members from here to `clients_count`. */
    _Atomic uint32_t remote_pins[MR_PARAMS_BUFFERS_MAX]; /* gRPC's pins on each buffer */
    _Atomic int32_t remote_waiting; /* number of network readers that wait for a version */
    _Atomic uint64_t pushes, lost, repeats;
    _Atomic uint32_t clients_count;

    struct mr_monitor *lock;         /* guards all members below */
    struct mr_shard_client *clients; /* array of readers_max clients */
    struct mr_list posted;           /* struct mr_remote_push each */
    uint64_t posted_bytes;
    bool posted_first; /* the next push is taken from `posted` rather than from shared memory */
    bool is_closed;
};

/* ---- shard.c --------------------------------------------------------------------------------- */

void mr_shard_client_free(struct mr_shard_client *c);
void mr_shard_free(struct mr_shard *s);

static inline const float *mr_shard_buffer_at(const struct mr_shard *s, uint32_t buffer)
{
    const char *base = (const char *)s->page + MR_SHARD_PAGE_BYTES;
    return (const float *)(const void *)(base + mr_vector_stride(s->count) * buffer);
}
