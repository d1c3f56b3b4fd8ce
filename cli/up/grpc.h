/* gRPC over TCP under `up`: one port each for the scheduler, the object store of node 0 and the
 * trainer, one after the other from the one that was asked for. The services listen there besides
 * their UNIX sockets, and know who calls by tokens. */
#pragma once

#include "base/err.h"
#include "host/tls/certificate.h"

#include <stdbool.h>

struct mr_up_grpc {
    const char *address; /* as given: HOST:PORT; NULL: none */
    char host[256];      /* as the next, after settle */
    int port;            /* the scheduler's */
};

enum mr_up_grpc_service { /* offsets of their ports */
    MR_UP_GRPC_SCHEDULER,
    MR_UP_GRPC_STORE,
    MR_UP_GRPC_TRAINER,
};

#define MR_UP_GRPC_OPTION(offset)                                                                  \
    {                                                                                              \
        .name = "grpc", .env = "MILLRACE_UP_GRPC", .type = MR_OPTION_TEXT, .value = "HOST:PORT",   \
        .help = "serve gRPC over TCP, too: the scheduler at PORT, node 0's object store at "       \
                "PORT+1, the trainer at PORT+2; PORT 0 takes free ones",                           \
        .at = (offset) + offsetof(struct mr_up_grpc, address)                                      \
    }

/* Before the children start: what is wrong with the address, a port that is taken (MR_EEXIST), an
 * address that others reach without tokens (MR_EPERM), a certificate without a CA (MR_EINVAL). */
int mr_up_grpc_settle(struct mr_up_grpc *g, bool has_tokens, const struct mr_certificate_files *tls,
    struct mr_error *e);

/* "HOST:PORT" of a service; false: it has none. */
#define MR_UP_GRPC_TEXT_MAX 300
bool mr_up_grpc_address(
    const struct mr_up_grpc *g, enum mr_up_grpc_service service, char out[MR_UP_GRPC_TEXT_MAX]);
