/* The listening addresses of a server. gRPC accepts connections on TCP ports. On UNIX sockets our
 * own listener accepts them and checks the peer's user, because gRPC does not give access to the
 * peer's credentials. */
#include "rpc/server/internal.h"

#include "base/assert.h"

#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <string.h>

/* Passes an accepted connection to gRPC. Runs on the listener's thread. */
static void on_accept(void *ctx, int fd)
{
    struct mr_rpc_server *server = ctx;
    grpc_server_add_channel_from_fd(server->grpc, fd, server->credentials);
}

void mr_rpc_server_start_unix_listeners(struct mr_rpc_server *server)
{
    for (uint32_t i = 0; i < server->unix_listeners_count; i++)
        mr_unix_listener_start(server->unix_listeners[i], on_accept, server);
}

void mr_rpc_server_close_unix_listeners(struct mr_rpc_server *server)
{
    for (uint32_t i = 0; i < server->unix_listeners_count; i++)
        mr_unix_listener_close(&server->unix_listeners[i]);
}

static int listen_unix(
    struct mr_rpc_server *server, const char *path, int *port, struct mr_error *e)
{
    if (server->unix_listeners_count == MR_ARRAY_LEN(server->unix_listeners))
        return mr_fail(
            e, MR_ELIMIT, "at most %zu UNIX sockets", MR_ARRAY_LEN(server->unix_listeners));
    struct mr_unix_listener **l = &server->unix_listeners[server->unix_listeners_count];
    int err = mr_unix_listener_open(path, &server->rules, l, e);
    if (err) return err;
    server->unix_listeners_count++;
    if (port) *port = 0;
    return MR_OK;
}

int mr_rpc_server_listen(
    struct mr_rpc_server *server, const char *address, int *port, struct mr_error *e)
{
    mr_assert(!server->started);
    if (strncmp(address, "unix:", 5) == 0) return listen_unix(server, address + 5, port, e);
    if (!strrchr(address, ':'))
        return mr_fail(
            e, MR_EINVAL, "\"%s\" is not an address: expected unix:/path or host:port", address);
    struct mr_rpc_tls *tls = mr_rpc_tls_for(server->tls, address);
    grpc_server_credentials *own = tls ? mr_rpc_tls_server_credentials(tls) : NULL;
    int bound = grpc_server_add_http2_port(server->grpc, address, own ? own : server->credentials);
    if (own) grpc_server_credentials_release(own);
    if (bound <= 0)
        return mr_fail(e, MR_EIO,
            "cannot listen on \"%s\": the address is in use, not of this machine, or not allowed",
            address);
    if (tls) server->has_tls = true;
    if (port) *port = bound;
    return MR_OK;
}
