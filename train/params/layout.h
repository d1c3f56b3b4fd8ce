/* Private to train/params: the shared memory between the server of a shard and its clients. Every
 * segment has one writer, except the bell (train/transport/segment.h), which all clients ring. The
 * server writes versions and the outcomes of pushes into its segment. A client writes into its own
 * segment: the number of the buffer that it reads, and the gradients that it pushes. Each side
 * treats the other's segment as untrusted input.
 *
 * Clients protect the version that they read as hazard pointers do (Michael, "Hazard Pointers: Safe
 * Memory Reclamation for Lock-Free Objects", 2004). The client announces the buffer that it is
 * about to read (the pin) and then checks again that this buffer is the current one. The server
 * first publishes another buffer and then looks for pins. In any total order of these four steps,
 * either the client sees the new buffer, or the server sees the pin. */
#pragma once

#include "train/transport/segment.h"
#include "train/plan/limits.h"

#define MR_PARAMS_READERS_MAX 1024u
#define MR_PARAMS_REMOTE_PINS 8u /* limit of buffers that gRPC may send from at the same time */
/* One buffer for each reader, MR_PARAMS_REMOTE_PINS for gRPC, the current one and the next one. */
#define MR_PARAMS_BUFFERS_MAX (MR_PARAMS_READERS_MAX + MR_PARAMS_REMOTE_PINS + 2)
#define MR_PARAMS_UNDER_WAY 2 /* limit of pushes of one client that have no answer yet */

enum { MR_WAITS_VERSION = 1, MR_WAITS_BUFFER = 2 };

/* What the server tells one client: one cache line in the server's segment. */
struct mr_shard_line {
    /* grows with each change of `done`; the client sleeps on this word */
    _Atomic uint32_t done_word;
    uint32_t unused;
    _Atomic uint64_t done[MR_PARAMS_UNDER_WAY]; /* serial << 8 | outcome */
    uint64_t unused_too[5];
};

struct mr_shard_buffer {
    _Atomic uint64_t version;
    _Atomic uint32_t restore_epoch;
    uint32_t unused;
};

struct mr_shard_page {        /* the start of the server's segment */
    _Atomic uint64_t current; /* serial of the publication << 16 | buffer */
    /* grows with each publication and when the shard closes; clients sleep on this word */
    _Atomic uint32_t published;
    _Atomic uint32_t is_closed;
    uint64_t unused[6];
    struct mr_shard_buffer buffers[MR_PARAMS_BUFFERS_MAX];
    struct mr_shard_line lines[MR_PARAMS_READERS_MAX];
};

struct mr_client_push {
    _Atomic uint64_t step, base_version;
    _Atomic uint32_t restore_epoch, examples;
    /* serial of the push among the client's pushes to this shard; written after all other
     * members */
    _Atomic uint32_t serial;
    /* Used while the client still computes the gradient. `early_serial` is the serial that the push
     * will have. From index `early_low` of the shard on, the gradient of the trained parameters is
     * final. For each push, the client writes step, base_version, restore_epoch and `early_low`,
     * and then `early_serial`. Each later announcement only lowers `early_low`. */
    _Atomic uint32_t early_serial;
    _Atomic uint64_t early_low;
};

/* What a client tells one shard: two cache lines in the client's segment. */
struct mr_client_line {
    _Atomic uint32_t pin;   /* number of the pinned buffer + 1; 0: none */
    _Atomic uint32_t waits; /* what the sleeping client waits for: bits MR_WAITS_… */
    struct mr_client_push push[MR_PARAMS_UNDER_WAY];
    uint64_t unused[5];
};

#define MR_SHARD_PAGE_BYTES ((sizeof(struct mr_shard_page) + 4095) / 4096 * 4096)
#define MR_CLIENT_PAGE_BYTES ((sizeof(struct mr_client_line) * MR_SHARDS_MAX + 4095) / 4096 * 4096)

static inline uint64_t mr_vector_stride(uint64_t count)
{
    return (count * sizeof(float) + 4095) / 4096 * 4096;
}

static inline uint64_t mr_shard_bytes(uint64_t count, uint32_t buffers)
{
    return MR_SHARD_PAGE_BYTES + mr_vector_stride(count) * buffers;
}

static inline uint64_t mr_client_bytes(uint64_t count, bool reads_only)
{
    return MR_CLIENT_PAGE_BYTES + (reads_only ? 0 : mr_vector_stride(count) * MR_PARAMS_UNDER_WAY);
}
