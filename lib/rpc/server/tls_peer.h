/* How the peer of a server call is connected, and whether its certificate was verified. */
#pragma once

#include "rpc/rpc.h"

enum mr_rpc_connection {
    MR_RPC_PLAIN,     /* no TLS: a UNIX socket, or TCP where TLS is off */
    MR_RPC_ENCRYPTED, /* TLS; the peer has sent no certificate */
    MR_RPC_VERIFIED,  /* TLS; the peer has sent a certificate that the configured CA has signed */
};
enum mr_rpc_connection mr_rpc_call_connection(const struct mr_rpc_call *call);
