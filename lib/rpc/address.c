/* Knows addresses: what is one, and who sits on a socket file. */
#include "rpc/serve.h"

#include "base/alloc.h"
#include "base/assert.h"

#include <errno.h>
#include <grpc/grpc_security.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* gRPC unlinks whatever stands in the way, so we look first: a living server's socket stays. */
static int clear_socket_file(const char *path, struct mr_error *e)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t n = strlen(path);
    if (!n || n >= sizeof at.sun_path)
        return mr_fail(e, MR_EINVAL, "\"unix:%s\": the path of a socket has from 1 to %zu bytes",
            path, sizeof at.sun_path - 1);
    memcpy(at.sun_path, path, n);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return mr_fail(e, MR_EIO, "cannot make a socket: error %d", errno);
    int failed = connect(fd, (const struct sockaddr *)&at, sizeof at);
    int why = failed ? errno : 0;
    (void)close(fd);
    if (!failed || why == EAGAIN)
        return mr_fail(e, MR_EEXIST, "another server listens on \"unix:%s\"", path);
    if (why == ENOTSOCK || why == EPROTOTYPE)
        return mr_fail(e, MR_EEXIST, "\"%s\" exists and is not a stream socket", path);
    return MR_OK;
}

int mr_rpc_server_listen(
    struct mr_rpc_server *server, const char *address, int *port, struct mr_error *e)
{
    mr_assert(!server->started);
    bool is_unix = strncmp(address, "unix:", 5) == 0;
    if (is_unix) {
        int err = clear_socket_file(address + 5, e);
        if (err) return err;
    } else if (!strrchr(address, ':')) {
        return mr_fail(e, MR_EINVAL,
            "\"%s\" is no address: \"unix:/path\" or \"host:port\" would be one", address);
    }
    grpc_server_credentials *credentials = grpc_insecure_server_credentials_create();
    int bound = grpc_server_add_http2_port(server->grpc, address, credentials);
    grpc_server_credentials_release(credentials);
    if (bound <= 0)
        return mr_fail(e, MR_EIO,
            "cannot listen on \"%s\": the address is in use, not ours or not allowed", address);
    if (port) *port = bound;
    return MR_OK;
}
