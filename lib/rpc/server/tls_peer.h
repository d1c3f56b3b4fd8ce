/* What the connection of a server call says about its peer. */
#pragma once

#include "rpc/rpc.h"

enum mr_rpc_connection {
    MR_RPC_PLAIN,     /* no TLS: a UNIX socket, or TCP where TLS is off */
    MR_RPC_ENCRYPTED, /* TLS; the peer showed no certificate */
    MR_RPC_VERIFIED,  /* TLS, with a certificate that our CA has signed */
};
enum mr_rpc_connection mr_rpc_call_connection(const struct mr_rpc_call *call);
