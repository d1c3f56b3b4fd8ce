/* Reads the authentication context that gRPC keeps of a connection. */
#include "rpc/server/tls_peer.h"

#include "base/assert.h"
#include "rpc/server/internal.h"

#include <grpc/grpc_security.h>
#include <grpc/grpc_security_constants.h>
#include <string.h>

static bool has_property(const grpc_auth_context *ctx, const char *name)
{
    grpc_auth_property_iterator it = grpc_auth_context_find_properties_by_name(ctx, name);
    return grpc_auth_property_iterator_next(&it) != NULL;
}

/* A peer whose certificate fails the verification does not get past the handshake, so a certificate
 * that is present is valid. */
enum mr_rpc_connection mr_rpc_call_connection(const struct mr_rpc_call *call)
{
    mr_assert(call->server);
    if (!call->server->has_tls) return MR_RPC_PLAIN;
    grpc_auth_context *ctx = grpc_call_auth_context(call->grpc);
    if (!ctx) return MR_RPC_PLAIN;
    enum mr_rpc_connection c = MR_RPC_PLAIN;
    grpc_auth_property_iterator it =
        grpc_auth_context_find_properties_by_name(ctx, GRPC_TRANSPORT_SECURITY_TYPE_PROPERTY_NAME);
    const grpc_auth_property *type = grpc_auth_property_iterator_next(&it);
    if (type && strcmp(type->value, GRPC_TLS_TRANSPORT_SECURITY_TYPE) == 0)
        c = has_property(ctx, GRPC_X509_PEM_CERT_PROPERTY_NAME) ? MR_RPC_VERIFIED
                                                                : MR_RPC_ENCRYPTED;
    grpc_auth_context_release(ctx);
    return c;
}
