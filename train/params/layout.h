/* Private to train/params: the layout of shards and clients in shared memory, and what the gRPC
 * service asks of a shard. Every segment has one writer. The server writes versions and the fate
 * of pushes into its own; the client writes what it reads and what it pushed into its own. Each
 * side reads the other's segment as outside bytes.
 *
 * Reading a version (the announcement and re-check of hazard pointers: Michael, "Hazard Pointers:
 * Safe Memory Reclamation for Lock-Free Objects", 2004): the client writes down the buffer that it
 * is about to read (pin) and checks again that it is still the current one. The server publishes
 * another buffer first and looks for pins afterwards. In any total order of these four steps,
 * either the client sees the new buffer, or the server sees the pin. */
#pragma once

#include "base/buf.h"
#include "train/params/client.h"
#include "train/params/shard.h"
#include "train/transport/segment.h"

#define MR_PARAMS_READERS_MAX 1024u
#define MR_PARAMS_REMOTE_PINS 8u /* buffers that network reads may hold at once */
#define MR_PARAMS_BUFFERS_MAX (MR_PARAMS_READERS_MAX + MR_PARAMS_REMOTE_PINS + 2)
#define MR_PARAMS_UNDER_WAY 2 /* pushes of one client */

enum { MR_WAITS_VERSION = 1, MR_WAITS_BUFFER = 2 };

struct mr_shard_line {          /* of one client, in the server's segment */
    _Atomic uint32_t done_word; /* grows with each done; slept on */
    uint32_t unused;
    _Atomic uint64_t done[MR_PARAMS_UNDER_WAY]; /* serial << 8 | outcome */
    uint64_t unused_too[5];
};

struct mr_shard_buffer {
    _Atomic uint64_t version;
    _Atomic uint32_t restore_epoch;
    uint32_t unused;
};

struct mr_shard_page {          /* the start of the server's segment */
    _Atomic uint64_t current;   /* serial << 16 | buffer */
    _Atomic uint32_t published; /* grows with each publish, and at the end; slept on */
    _Atomic uint32_t is_closed;
    uint64_t unused[6];
    struct mr_shard_buffer buffers[MR_PARAMS_BUFFERS_MAX];
    struct mr_shard_line lines[MR_PARAMS_READERS_MAX];
};

struct mr_client_push {
    _Atomic uint64_t step, base_version;
    _Atomic uint32_t restore_epoch, examples;
    _Atomic uint32_t serial; /* of the client's pushes to this shard; written last */
    /* Before: this serial is being computed, of the shard's trained numbers those from `early_low`
     * on are final. The serial is written after step, version and epoch, and after the first low.
     */
    _Atomic uint32_t early_serial;
    _Atomic uint64_t early_low;
};

struct mr_client_line {     /* for one shard, in the client's segment */
    _Atomic uint32_t pin;   /* buffer + 1; 0: none */
    _Atomic uint32_t waits; /* MR_WAITS_… */
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

/* ---- for the network thread (service/service.c); any thread ---------------------------------- */

/* The shard of a session in this process, counted: put it back. NULL: none. */
struct mr_shard *mr_shard_get(const char *session, uint32_t shard);
void mr_shard_put(struct mr_shard **s);
uint64_t mr_shard_id(const struct mr_shard *s); /* of this opening, never reused */

struct mr_shard_pin {
    uint32_t buffer;
    uint64_t version;
    uint32_t restore_epoch;
    const float *params;
};
/* Holds the current version if it is `version_min` at least and of the epoch. MR_EAGAIN: not yet;
 * MR_EABORTED: the shard is at a later epoch; MR_EAWAY: closed. */
int mr_shard_pin(
    struct mr_shard *s, uint64_t version_min, uint32_t restore_epoch, struct mr_shard_pin *out);
void mr_shard_unpin(struct mr_shard *s, uint32_t buffer);
void mr_shard_note_waiting(struct mr_shard *s, int change); /* network readers that wait */

struct mr_remote_push { /* one gradient that came by gRPC */
    struct mr_list node;
    struct mr_push push;
    float *grad;      /* of the shard's count */
    uint64_t call;    /* mr_rpc_call_id */
    uint64_t version; /* filled when done */
    enum mr_push_outcome outcome;
};
/* Into the mailbox. MR_EAWAY: closed; it stays the caller's. */
int mr_shard_post(struct mr_shard *s, struct mr_remote_push *p);

/* Told, on any thread, that a version was published or a shard closed while network readers wait
 * (p NULL), or that a posted push is done (and the sink's from now on). One; NULL: none, then
 * pushes that are done are freed. No call is under way once it has returned. */
void mr_shard_set_sink(void (*sink)(void *ctx, struct mr_remote_push *p), void *ctx);

/* ---- client, the way over the network (remote.c) ------------------------------------- */

struct mr_params_remote;

struct mr_params_job { /* a push */
    const float *grad;
    uint32_t serial;
    uint32_t examples;
    uint32_t restore_epoch;
    uint64_t step, base_version;
};

struct mr_params_remote_options {
    const char *session, *address;
    uint32_t shard, worker;
    uint64_t incarnation;
    uint64_t count; /* of the shard */
    const struct mr_flag *stop;
};

struct mr_params_remote *mr_params_remote_open(const struct mr_params_remote_options *o);
void mr_params_remote_close(struct mr_params_remote **r);
/* Into `to`; leaves it and `*version` alone unless it is MR_OK. */
int mr_params_remote_pull(struct mr_params_remote *r, uint64_t version_min, uint32_t restore_epoch,
    mr_time deadline, float *to, uint64_t *version, struct mr_error *e);
void mr_params_remote_push(
    struct mr_params_remote *r, uint32_t buffer, const struct mr_params_job *j);
/* Waits until the push of that serial is accounted for. */
int mr_params_remote_wait(struct mr_params_remote *r, uint32_t buffer, uint32_t serial,
    mr_time deadline, bool *dropped, struct mr_error *e);
