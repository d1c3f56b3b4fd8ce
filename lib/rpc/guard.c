/* Knows tokens and which addresses are ours alone. */
#include "rpc/guard.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/file.h"

#include <arpa/inet.h>
#include <string.h>

#define FILE_BYTES_MAX ((size_t)MR_RPC_TOKENS_MAX * (MR_RPC_TOKEN_BYTES_MAX + 2))
#define BEARER "Bearer "

struct mr_rpc_guard {
    char *tokens[MR_RPC_TOKENS_MAX];
    size_t tokens_count;
};

static bool is_token_byte(char c) /* what a header may carry without quoting */
{
    return c > ' ' && c < 0x7f;
}

static int add_token(
    struct mr_rpc_guard *g, const char *file, struct mr_str line, struct mr_error *e)
{
    if (line.n && line.p[line.n - 1] == '\r') line.n--;
    if (!line.n) return MR_OK;
    if (g->tokens_count == MR_RPC_TOKENS_MAX)
        return mr_fail(e, MR_ELIMIT, "\"%s\": more than %d tokens", file, MR_RPC_TOKENS_MAX);
    if (line.n < MR_RPC_TOKEN_BYTES_MIN || line.n > MR_RPC_TOKEN_BYTES_MAX)
        return mr_fail(e, MR_EINVAL, "\"%s\": a token has from %d to %d bytes, token %zu has %zu",
            file, MR_RPC_TOKEN_BYTES_MIN, MR_RPC_TOKEN_BYTES_MAX, g->tokens_count + 1, line.n);
    for (size_t i = 0; i < line.n; i++)
        if (!is_token_byte(line.p[i]))
            return mr_fail(e, MR_EINVAL, "\"%s\": token %zu has a byte that is not printable ASCII",
                file, g->tokens_count + 1);
    char *token = mr_alloc(line.n + 1);
    memcpy(token, line.p, line.n);
    g->tokens[g->tokens_count++] = token;
    return MR_OK;
}

static int read_tokens(struct mr_rpc_guard *g, const char *file, struct mr_error *e)
{
    struct mr_buf b;
    mr_buf_init(&b, FILE_BYTES_MAX);
    int err = mr_file_read_secret(file, &b, e);
    struct mr_str rest = mr_buf_str(&b);
    while (!err && rest.n) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t n = end ? (size_t)(end - rest.p) : rest.n;
        err = add_token(g, file, mr_str_of(rest.p, n), e);
        n = MR_MIN(n + 1, rest.n);
        rest = mr_str_of(rest.p + n, rest.n - n);
    }
    mr_buf_fini(&b);
    return err;
}

int mr_rpc_guard_new(const char *token_file, struct mr_rpc_guard **out, struct mr_error *e)
{
    MR_AUTO(mr_rpc_guard_free) struct mr_rpc_guard *g = mr_alloc(sizeof *g);
    if (token_file) {
        int err = read_tokens(g, token_file, e);
        if (err) return err;
        if (!g->tokens_count) return mr_fail(e, MR_EINVAL, "\"%s\" holds no token", token_file);
    }
    *out = MR_STEAL(g);
    return MR_OK;
}

void mr_rpc_guard_free(struct mr_rpc_guard **guard)
{
    if (!*guard) return;
    struct mr_rpc_guard *g = MR_STEAL(*guard);
    for (size_t i = 0; i < g->tokens_count; i++)
        mr_release(g->tokens[i]);
    mr_release(g);
}

static bool is_same(struct mr_str a, const char *token)
{
    size_t n = strlen(token);
    if (a.n != n) return false;
    unsigned char differs = 0;
    for (size_t i = 0; i < n; i++)
        differs |= (unsigned char)(a.p[i] ^ token[i]);
    return !differs;
}

bool mr_rpc_guard_knows(const struct mr_rpc_guard *g, struct mr_str value)
{
    size_t skip = sizeof BEARER - 1;
    if (value.n < skip || memcmp(value.p, BEARER, skip) != 0) return false;
    struct mr_str token = mr_str_of(value.p + skip, value.n - skip);
    bool known = false;
    for (size_t i = 0; i < g->tokens_count; i++)
        if (is_same(token, g->tokens[i])) known = true;
    return known;
}

static int check(void *ctx, struct mr_rpc_call *call, struct mr_error *e)
{
    struct mr_str value;
    if (!mr_rpc_call_metadata(call, "authorization", &value))
        return mr_fail(e, MR_EAUTH, "a token is wanted: metadata \"authorization: Bearer TOKEN\"");
    if (mr_rpc_guard_knows(ctx, value)) return MR_OK;
    return mr_fail(e, MR_EAUTH, "the token in \"authorization\" is not one of this cluster's");
}

mr_rpc_auth mr_rpc_guard_auth(const struct mr_rpc_guard *g)
{
    return g->tokens_count ? check : NULL;
}

const char *mr_rpc_guard_token(const struct mr_rpc_guard *g)
{
    return g->tokens_count ? g->tokens[0] : NULL;
}

bool mr_rpc_address_is_public(const char *address)
{
    if (strncmp(address, "unix:", 5) == 0) return false;
    if (strncmp(address, "ipv4:", 5) == 0 || strncmp(address, "ipv6:", 5) == 0) address += 5;
    const char *colon = strrchr(address, ':');
    size_t n = colon ? (size_t)(colon - address) : strlen(address);
    char host[INET6_ADDRSTRLEN + 2];
    if (n >= sizeof host) return true;
    memcpy(host, address, n);
    host[n] = 0;
    if (strcmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0) return false;
    struct in_addr v4;
    return inet_pton(AF_INET, host, &v4) != 1 || ntohl(v4.s_addr) >> 24 != 127;
}

int mr_rpc_guard_listen(const struct mr_rpc_guard *g, struct mr_rpc_server *server,
    const char *address, int *port, struct mr_error *e)
{
    if (!g->tokens_count && mr_rpc_address_is_public(address))
        return mr_fail(e, MR_EPERM,
            "--listen %s: others can reach this address, so it needs --token-file; unix: and "
            "127.0.0.1 do not",
            address);
    return mr_rpc_server_listen(server, address, port, e);
}
