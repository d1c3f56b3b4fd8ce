/* Splits the HOST:PORT of --grpc. Tries to listen at PORT, PORT + 1 and PORT + 2 before the
 * services start, so that a taken port is reported at once. */
#include "cli/up/grpc.h"

#include "base/defs.h"
#include "rpc/util/auth.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORTS 3
#define PORT_MAX (65535 - PORTS + 1)
/* The search for free ports begins here, below the usual range of ephemeral ports. */
#define FREE_FROM 20000
#define FREE_COUNT 12000
#define FREE_TRIES 200

bool mr_up_grpc_address(
    const struct mr_up_grpc *g, enum mr_up_grpc_service service, char out[MR_UP_GRPC_TEXT_MAX])
{
    if (!g->port) return false;
    (void)snprintf(out, MR_UP_GRPC_TEXT_MAX, "%s:%d", g->host, g->port + (int)service);
    return true;
}

static int split(struct mr_up_grpc *g, struct mr_error *e)
{
    const char *colon = strrchr(g->address, ':');
    char *end = NULL;
    long port = colon ? strtol(colon + 1, &end, 10) : -1;
    size_t n = colon ? (size_t)(colon - g->address) : 0;
    bool is_number = colon && end != colon + 1 && !*end;
    bool is_v6 = n && memchr(g->address, ':', n);
    if (!n || n >= sizeof g->host || !is_number || (is_v6 && g->address[0] != '['))
        return mr_fail(e, MR_EINVAL, "--grpc: \"%s\" is not HOST:PORT", g->address);
    if (port < 0 || port > PORT_MAX)
        return mr_fail(e, MR_EINVAL, "--grpc: port %ld: expected 1 to %d, as three ports are used",
            port, PORT_MAX);
    memcpy(g->host, g->address, n);
    g->port = (int)port;
    return MR_OK;
}

/* Tries to listen at the port. Returns 0 if that is possible, and otherwise errno. A host that does
 * not resolve counts as possible, because the service reports that error. */
static int try_port(const struct mr_up_grpc *g, int port)
{
    char host[sizeof g->host], service[16];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    size_t n = strlen(g->host);
    bool brackets = g->host[0] == '[' && g->host[n - 1] == ']';
    (void)snprintf(host, sizeof host, "%.*s", (int)(brackets ? n - 2 : n), g->host + brackets);
    (void)snprintf(service, sizeof service, "%d", port);
    if (getaddrinfo(host, service, &hints, &found)) return 0;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1, err = fd < 0 ? errno : 0;
    if (!err) (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (!err && (bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 1))) err = errno;
    if (fd >= 0) (void)close(fd);
    freeaddrinfo(found);
    return err;
}

static int try_ports(const struct mr_up_grpc *g, int first, int *taken)
{
    for (*taken = first; *taken < first + PORTS; (*taken)++) {
        int err = try_port(g, *taken);
        if (err) return err;
    }
    return 0;
}

static int find_free(struct mr_up_grpc *g, struct mr_error *e)
{
    int taken = 0, why = 0;
    for (int i = 0; i < FREE_TRIES; i++) {
        uint32_t dice = 0;
        (void)!getrandom(&dice, sizeof dice, 0);
        int first = FREE_FROM + (int)(dice % FREE_COUNT);
        why = try_ports(g, first, &taken);
        if (why) continue;
        g->port = first;
        return MR_OK;
    }
    return mr_fail(e, MR_EEXIST, "--grpc: no three free ports at %s: %s", g->host, strerror(why));
}

int mr_up_grpc_prepare(struct mr_up_grpc *g, bool has_tokens,
    const struct mr_certificate_files *tls, struct mr_error *e)
{
    if (!g->address) return MR_OK;
    int err = split(g, e);
    if (err) return err;
    if (!has_tokens && mr_rpc_address_is_public(g->address))
        return mr_fail(e, MR_EPERM,
            "--grpc: other machines can reach \"%s\", so --token-file is needed (or an address on "
            "loopback, e.g. 127.0.0.1:8480)",
            g->address);
    if (mr_certificate_is_given(tls->cert) && !mr_certificate_is_given(tls->ca))
        return mr_fail(e, MR_EINVAL,
            "--grpc: with --tls-cert these ports need --tls-ca, too: services verify each other by "
            "it");
    if (!g->port) return find_free(g, e);
    int taken = 0, why = try_ports(g, g->port, &taken);
    if (!why) return MR_OK;
    return mr_fail(e, MR_EEXIST, "--grpc: %s:%d: %s (--grpc %s:0 takes free ports)", g->host, taken,
        strerror(why), g->host);
}
