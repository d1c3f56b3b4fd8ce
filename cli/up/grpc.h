/* The flag --grpc of `up`: gRPC over TCP at three consecutive ports, for the scheduler, the object
 * store of node 0 and the trainer. The services listen there and at their UNIX sockets. Clients
 * need tokens if there is a token file. An address that other machines can reach needs a token
 * file. */
#pragma once

#include "base/err.h"
#include "host/tls/certificate.h"

#include <stdbool.h>

struct mr_up_grpc {
    const char *address; /* HOST:PORT as the user gave it; NULL: --grpc was not given */
    char host[256];      /* set by mr_up_grpc_prepare */
    /* Port of the scheduler, set by mr_up_grpc_prepare; 0: --grpc was not given. */
    int port;
};

enum mr_up_grpc_service { /* the offset of each service's port from the scheduler's */
    MR_UP_GRPC_SCHEDULER,
    MR_UP_GRPC_STORE,
    MR_UP_GRPC_TRAINER,
};

#define MR_UP_GRPC_OPTION(offset)                                                                  \
    {                                                                                              \
        .name = "grpc", .env = "MILLRACE_UP_GRPC", .type = MR_OPTION_TEXT, .value = "HOST:PORT",   \
        .help = "serve gRPC over TCP, too: the scheduler at PORT, node 0's object store at "       \
                "PORT+1, the trainer at PORT+2; PORT 0 takes free ports",                          \
        .at = (offset) + offsetof(struct mr_up_grpc, address)                                      \
    }

/* Checks the address and finds the ports; to be called before the children start. MR_EINVAL: a
 * malformed address, or a certificate without a CA. MR_EEXIST: a port is taken. MR_EPERM: other
 * machines can reach the address, and there are no tokens. */
int mr_up_grpc_prepare(struct mr_up_grpc *g, bool has_tokens,
    const struct mr_certificate_files *tls, struct mr_error *e);

/* Writes "HOST:PORT" of a service. False: --grpc was not given. */
#define MR_UP_GRPC_TEXT_MAX 300
bool mr_up_grpc_address(
    const struct mr_up_grpc *g, enum mr_up_grpc_service service, char out[MR_UP_GRPC_TEXT_MAX]);
