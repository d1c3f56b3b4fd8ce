/* The facts about its process that a worker sends to the scheduler: the part of the message
 * Register that the worker's core does not know. */
#pragma once

#include "ops/registry/registry.h"
#include "rpc/util/pb.h"
#include "session/up.h"

#define MR_WORKER_RUNTIMES_MAX 4

struct mr_worker_identity {
    const char *name;
    const char *node;
    const char *store_address; /* "": no store */
    const char *address;       /* of the worker's own port; "": none */
    mr_node_id store;
    uint32_t slots;
    uint64_t memory_bytes;
    const struct mr_ws_resource *resources;
    uint32_t resources_count;
    struct mr_str runtimes[MR_WORKER_RUNTIMES_MAX];
    uint32_t runtimes_count;
    const struct mr_registry *ops;
    /* Operators that the scheduler knows. Register has no description (info_json) of them. */
    const struct mr_registry *builtin;
    struct mr_ws_refs suspects;
    /* `suspects` are all tasks, maybe none, that the worker's previous process ran when it
     * crashed */
    bool knows_suspects;
    uint32_t pid;
    uint32_t processors; /* that the process may use */
    mr_time began;       /* when the process began */
};

/* Sets the members of `out` whose values the core does not know. The array out->ops is in the
 * arena. */
void mr_worker_identity_fill(
    const struct mr_worker_identity *id, struct mr_pb_arena *a, struct mr_ws_register *out);
