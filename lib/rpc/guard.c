/* Knows who shows what, what that allows, and which addresses are ours alone. */
#include "rpc/guard.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/file.h"
#include "host/log.h"
#include "rpc/tls.h"

#include <arpa/inet.h>
#include <string.h>

#define SECRET_BYTES_MAX ((size_t)MR_RPC_SECRETS_MAX * (MR_TOKEN_BYTES_MAX + 2))

struct mr_rpc_guard {
    struct mr_tokens *tokens; /* NULL: none */
    char *secrets[MR_RPC_SECRETS_MAX];
    size_t secrets_count;
    enum mr_role (*role_of)(struct mr_str method);
};

/* ---- the cluster's secret ------------------------------------------------------------------- */

static int add_secret(struct mr_rpc_guard *g, struct mr_str line, struct mr_error *e)
{
    if (line.n && line.p[line.n - 1] == '\r') line.n--;
    if (!line.n) return MR_OK;
    if (g->secrets_count == MR_RPC_SECRETS_MAX)
        return mr_fail(e, MR_EINVAL, "there are more than %d secrets", MR_RPC_SECRETS_MAX);
    int err = mr_token_is_good(line, e);
    if (!err) g->secrets[g->secrets_count++] = mr_format("%.*s", MR_STR_ARG(line));
    return err;
}

static int read_secrets(struct mr_rpc_guard *g, const char *path, struct mr_error *e)
{
    struct mr_buf b;
    struct mr_error why = {0};
    mr_buf_init(&b, SECRET_BYTES_MAX);
    int err = mr_file_read_secret(path, &b, &why);
    if (err) (void)mr_fail(e, err, "--secret-file: %s", why.text);
    struct mr_str rest = mr_buf_str(&b);
    for (size_t number = 1; !err && rest.n; number++) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t n = end ? (size_t)(end - rest.p) : rest.n;
        err = add_secret(g, mr_str_of(rest.p, n), &why);
        if (err)
            (void)mr_fail(e, err, "--secret-file: \"%s\": line %zu: %s", path, number, why.text);
        n = MR_MIN(n + 1, rest.n);
        rest = mr_str_of(rest.p + n, rest.n - n);
    }
    if (!err && !g->secrets_count)
        err = mr_fail(e, MR_EINVAL, "--secret-file: \"%s\" holds no secret", path);
    mr_buf_fini(&b);
    return err;
}

int mr_rpc_secret_read(const char *path, struct mr_buf *out, struct mr_error *e)
{
    MR_AUTO(mr_rpc_guard_free) struct mr_rpc_guard *g = mr_alloc(sizeof *g);
    int err = read_secrets(g, path, e);
    if (err) return err;
    mr_buf_add(out, g->secrets[0], strlen(g->secrets[0]) + 1);
    return mr_buf_status(out);
}

/* ---- life ------------------------------------------------------------------------------------ */

/* Whoever holds a token that is a secret, too, would be a service. */
static int tell_apart(const struct mr_rpc_guard *g, struct mr_error *e)
{
    for (size_t i = 0; i < g->secrets_count; i++) {
        const struct mr_identity *user = mr_tokens_find(g->tokens, mr_str(g->secrets[i]));
        if (user)
            return mr_fail(e, MR_EINVAL,
                "--token-file: the token of \"%.*s\" stands in --secret-file, too; only services "
                "may show what is in there",
                MR_STR_ARG(user->name));
    }
    return MR_OK;
}

int mr_rpc_guard_new(
    const struct mr_rpc_guard_options *options, struct mr_rpc_guard **out, struct mr_error *e)
{
    MR_AUTO(mr_rpc_guard_free) struct mr_rpc_guard *g = mr_alloc(sizeof *g);
    mr_assert(options->role_of);
    g->role_of = options->role_of;
    if (options->token_file && !options->secret_file)
        return mr_fail(e, MR_EINVAL,
            "--token-file wants --secret-file beside it: with tokens, the services of a cluster "
            "know each other by the secret in that file");
    int err = MR_OK;
    if (options->secret_file) err = read_secrets(g, options->secret_file, e);
    if (!err && options->token_file) err = mr_tokens_open(options->token_file, &g->tokens, e);
    if (!err && g->tokens) err = tell_apart(g, e);
    if (err) return err;
    *out = MR_STEAL(g);
    return MR_OK;
}

void mr_rpc_guard_free(struct mr_rpc_guard **guard)
{
    if (!*guard) return;
    struct mr_rpc_guard *g = MR_STEAL(*guard);
    mr_tokens_free(&g->tokens);
    for (size_t i = 0; i < g->secrets_count; i++)
        mr_release(g->secrets[i]);
    mr_release(g);
}

const char *mr_rpc_guard_secret(const struct mr_rpc_guard *g)
{
    return g->secrets_count ? g->secrets[0] : NULL;
}

/* ---- who, and may they ----------------------------------------------------------------------- */

static bool is_secret(const struct mr_rpc_guard *g, struct mr_str token)
{
    bool known = false;
    for (size_t i = 0; i < g->secrets_count; i++)
        if (mr_token_is_same(token, mr_str(g->secrets[i]))) known = true;
    return known;
}

static int identify_service(
    const struct mr_rpc_shown *shown, struct mr_identity *out, struct mr_error *e)
{
    if (shown->lacks_certificate)
        return mr_fail(e, MR_EAUTH,
            "who shows the cluster's secret shows a certificate of the cluster's CA, too "
            "(--tls-cert and --tls-key of the caller, signed by --tls-ca)");
    *out = (struct mr_identity){MR_STR("cluster"), MR_ROLE_SERVICE};
    if (!shown->user.p && !shown->role.p) return MR_OK;
    if (!shown->user.n || !shown->role.p)
        return mr_fail(e, MR_EINVAL, MR_RPC_USER " and " MR_RPC_ROLE " go together");
    out->name = shown->user;
    if (mr_role_of_person(shown->role, &out->role)) return MR_OK;
    return mr_fail(e, MR_EINVAL, MR_RPC_ROLE ": \"%.*s\" is none of admin, user, reader",
        (int)MR_MIN(shown->role.n, (size_t)40), shown->role.p);
}

int mr_rpc_guard_identify(const struct mr_rpc_guard *g, const struct mr_rpc_shown *shown,
    struct mr_identity *out, struct mr_error *e)
{
    struct mr_str token = {0};
    bool shows = mr_token_of(shown->authorization, &token);
    if (shows && is_secret(g, token)) return identify_service(shown, out, e);
    const struct mr_identity *user = shows && g->tokens ? mr_tokens_find(g->tokens, token) : NULL;
    if (shown->authorization.p && !user)
        return mr_fail(e, MR_EAUTH, "what \"authorization\" shows is not known here");
    if (!user && g->tokens)
        return mr_fail(e, MR_EAUTH, "a token is wanted: metadata \"authorization: Bearer TOKEN\"");
    if (shown->user.p || shown->role.p)
        return mr_fail(e, MR_EPERM,
            MR_RPC_USER " and " MR_RPC_ROLE " are taken only from who shows the cluster's secret "
                        "(--secret-file)");
    *out = user ? *user : (struct mr_identity){MR_STR("local"), MR_ROLE_ADMIN};
    return MR_OK;
}

static int want_certificate(const struct mr_rpc_guard *g, struct mr_str method, struct mr_error *e)
{
    if (g->role_of(method) != MR_ROLE_SERVICE) return MR_OK;
    return mr_fail(e, MR_EAUTH,
        "%.*s is for the services of the cluster: by TLS it wants a certificate of the cluster's CA "
        "(--tls-cert and --tls-key of the caller, signed by --tls-ca)",
        MR_STR_ARG(method));
}

int mr_rpc_guard_check(const struct mr_rpc_guard *g, struct mr_str method,
    const struct mr_rpc_shown *shown, struct mr_error *e)
{
    struct mr_identity who;
    int err = mr_rpc_guard_identify(g, shown, &who, e);
    if (!err && shown->lacks_certificate) err = want_certificate(g, method, e);
    if (err) return err;
    enum mr_role wanted = g->role_of(method);
    if (who.role >= wanted) return MR_OK;
    if (wanted == MR_ROLE_SERVICE)
        return mr_fail(e, MR_EPERM,
            "%.*s is for the services of the cluster: it wants the cluster's secret "
            "(--secret-file)",
            MR_STR_ARG(method));
    return mr_fail(e, MR_EPERM, "%.*s wants the role %s; \"%.*s\" is %s", MR_STR_ARG(method),
        mr_role_name(wanted), MR_STR_ARG(who.name), mr_role_name(who.role));
}

static struct mr_str shown_as(const struct mr_rpc_call *call, const char *name)
{
    struct mr_str value = {0};
    bool is_there = mr_rpc_call_metadata(call, name, &value);
    if (is_there && !value.p) value = MR_STR("");
    return is_there ? value : mr_str_of(NULL, 0);
}

static struct mr_rpc_shown shown_by(const struct mr_rpc_call *call)
{
    return (struct mr_rpc_shown){.authorization = shown_as(call, "authorization"),
        .user = shown_as(call, MR_RPC_USER),
        .role = shown_as(call, MR_RPC_ROLE),
        .lacks_certificate = mr_rpc_call_connection(call) == MR_RPC_ENCRYPTED};
}

struct mr_str mr_rpc_guard_caller(const struct mr_rpc_guard *g, struct mr_rpc_call *call)
{
    const struct mr_rpc_shown shown = shown_by(call);
    struct mr_identity who;
    struct mr_error e;
    int err = mr_rpc_guard_identify(g, &shown, &who, &e);
    if (!err && !mr_str_eq(who.name, MR_STR("local"))) return who.name;
    struct mr_str peer = mr_rpc_call_peer(call);
    size_t n = peer.n;
    while (n && peer.p[n - 1] != ':')
        n--;
    return mr_str_of(peer.p, n ? n - 1 : peer.n); /* without the port */
}

static int check(void *ctx, struct mr_rpc_call *call, struct mr_error *e)
{
    const struct mr_rpc_shown shown = shown_by(call);
    return mr_rpc_guard_check(ctx, mr_rpc_call_method(call), &shown, e);
}

/* With neither file: everyone may all, but be a service from afar. */
static int check_certificate(void *ctx, struct mr_rpc_call *call, struct mr_error *e)
{
    if (mr_rpc_call_connection(call) != MR_RPC_ENCRYPTED) return MR_OK;
    return want_certificate(ctx, mr_rpc_call_method(call), e);
}

mr_rpc_auth mr_rpc_guard_auth(const struct mr_rpc_guard *g)
{
    if (g->tokens || g->secrets_count) return check;
    return mr_rpc_tls_is_used() ? check_certificate : NULL;
}

/* ---- addresses ------------------------------------------------------------------------------- */

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
    if (!g->tokens && mr_rpc_address_is_public(address))
        return mr_fail(e, MR_EPERM,
            "--listen %s: others can reach this address, so it needs --token-file; unix: and "
            "127.0.0.1 do not",
            address);
    if (!mr_rpc_tls_is_used() && mr_rpc_address_is_public(address))
        mr_log(MR_WARN, "listen.plain",
            "address=%s why=\"no --tls-cert: tokens and data travel in the clear\"", address);
    return mr_rpc_server_listen(server, address, port, e);
}
