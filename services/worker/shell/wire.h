/* Between the bytes of WorkerSession and the core's columns. Decoded columns lie in the arena and
 * in the message; texts are checked to belong together, not to make sense. */
#pragma once

#include "ops/registry/registry.h"
#include "rpc/util/pb.h"
#include "services/worker/core/session_up.h"

#define MR_WORKER_RUNTIMES_MAX 4

/* The fields of Register that the core does not know. */
struct mr_worker_identity {
    const char *name;
    const char *node;
    const char *store_address; /* "": no store */
    const char *address;       /* of its own port; "": none */
    mr_node_id store;
    uint32_t slots;
    uint64_t memory_bytes;
    const struct mr_ws_resource *resources;
    uint32_t resources_count;
    const char *runtimes[MR_WORKER_RUNTIMES_MAX];
    uint32_t runtimes_count;
    const struct mr_registry *ops;
    const struct mr_registry *builtin; /* the scheduler has its descriptions already */
    struct mr_ws_refs suspects;
    bool knows_suspects; /* they are all that the process before ran, even if they are none */
    uint32_t pid;
};

struct mr_worker_log { /* what a task wrote, since the last one of it */
    mr_job_id job;
    uint32_t index;
    uint32_t attempt;
    struct mr_str text;
    uint64_t lost; /* bytes before it */
};

/* A SchedulerMessage; what it refers to is lent until the arena is cleared. MR_EFORMAT, MR_ELIMIT.
 */
int mr_worker_wire_read(
    struct mr_str bytes, struct mr_pb_arena *a, struct mr_ws_down *out, struct mr_error *e);

/* A WorkerMessage, appended. `up` or `logs` may be NULL. */
void mr_worker_wire_write(const struct mr_ws_up *up, const struct mr_worker_identity *identity,
    const struct mr_worker_log *logs, uint32_t logs_count, struct mr_pb_arena *a,
    struct mr_buf *out);
