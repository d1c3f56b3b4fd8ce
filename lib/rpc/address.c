/* The addresses of a server. gRPC accepts on TCP ports. On UNIX sockets our own listener accepts
 * and checks the peer's user, because gRPC does not show the peer's credentials. */
#include "rpc/serve.h"

#include "base/assert.h"

#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <string.h>

/* On the listener's thread. */
static void welcome(void *ctx, int fd)
{
    struct mr_rpc_server *server = ctx;
    grpc_server_add_channel_from_fd(server->grpc, fd, server->credentials);
}

void mr_rpc_server_open_doors(struct mr_rpc_server *server)
{
    for (uint32_t i = 0; i < server->doormen_count; i++)
        mr_doorman_start(server->doormen[i], welcome, server);
}

void mr_rpc_server_shut_doors(struct mr_rpc_server *server)
{
    for (uint32_t i = 0; i < server->doormen_count; i++)
        mr_doorman_close(&server->doormen[i]);
}

static int listen_unix(
    struct mr_rpc_server *server, const char *path, int *port, struct mr_error *e)
{
    if (server->doormen_count == MR_ARRAY_LEN(server->doormen))
        return mr_fail(e, MR_ELIMIT, "at most %zu UNIX sockets", MR_ARRAY_LEN(server->doormen));
    struct mr_doorman **d = &server->doormen[server->doormen_count];
    int err = mr_doorman_open(path, &server->rules, d, e);
    if (err) return err;
    server->doormen_count++;
    if (port) *port = 0;
    return MR_OK;
}

int mr_rpc_server_listen(
    struct mr_rpc_server *server, const char *address, int *port, struct mr_error *e)
{
    mr_assert(!server->started);
    if (strncmp(address, "unix:", 5) == 0) return listen_unix(server, address + 5, port, e);
    if (!strrchr(address, ':'))
        return mr_fail(e, MR_EINVAL,
            "\"%s\" is no address: \"unix:/path\" or \"host:port\" would be one", address);
    struct mr_rpc_tls *tls = mr_rpc_tls_for(server->tls, address);
    grpc_server_credentials *own = tls ? mr_rpc_tls_server_credentials(tls) : NULL;
    int bound = grpc_server_add_http2_port(server->grpc, address, own ? own : server->credentials);
    if (own) grpc_server_credentials_release(own);
    if (bound <= 0)
        return mr_fail(e, MR_EIO,
            "cannot listen on \"%s\": the address is in use, not ours or not allowed", address);
    if (tls) server->has_tls = true;
    if (port) *port = bound;
    return MR_OK;
}
