/* Knows who shows what, what that allows, and which addresses are ours alone. */
#include "rpc/guard.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/log.h"
#include "rpc/tls.h"
#include "rpc/tls_peer.h"
#include "rpc/token_file.h"

#include <arpa/inet.h>
#include <string.h>

struct mr_rpc_guard {
    struct mr_token_file *tokens;   /* NULL: none */
    struct mr_secret_file *secrets; /* NULL: none */
    struct mr_token_holder *user;   /* whom the last question was about */
    enum mr_role (*role_of)(struct mr_str method);
    unsigned (*callers_of)(struct mr_str method);
};

/* ---- life ------------------------------------------------------------------------------------ */

int mr_rpc_guard_new(
    const struct mr_rpc_guard_options *options, struct mr_rpc_guard **out, struct mr_error *e)
{
    MR_AUTO(mr_rpc_guard_free) struct mr_rpc_guard *g = mr_alloc(sizeof *g);
    mr_assert(options->role_of);
    mr_assert(options->callers_of);
    g->role_of = options->role_of;
    g->callers_of = options->callers_of;
    g->user = mr_alloc(sizeof *g->user);
    if (options->token_file && !options->secret_file)
        return mr_fail(e, MR_EINVAL,
            "--token-file wants --secret-file beside it: with tokens, the services of a cluster "
            "know each other by the secret in that file");
    int err = MR_OK;
    if (options->secret_file) err = mr_secret_file_open(options->secret_file, &g->secrets, e);
    if (!err && options->token_file)
        err = mr_token_file_open(options->token_file, g->secrets, &g->tokens, e);
    if (err) return err;
    *out = MR_STEAL(g);
    return MR_OK;
}

void mr_rpc_guard_free(struct mr_rpc_guard **guard)
{
    if (!*guard) return;
    struct mr_rpc_guard *g = MR_STEAL(*guard);
    mr_token_file_free(&g->tokens);
    mr_secret_file_free(&g->secrets);
    mr_release(g->user);
    mr_release(g);
}

struct mr_secret_file *mr_rpc_guard_secrets(const struct mr_rpc_guard *g)
{
    return g->secrets;
}

const struct mr_credential *mr_rpc_guard_credential(
    const struct mr_rpc_guard *g, enum mr_service_kind to)
{
    return mr_secret_file_credential(g->secrets, to);
}

/* ---- who, and may they ----------------------------------------------------------------------- */

static const char *service_words(unsigned services) /* of the first one */
{
    for (unsigned i = 0; i < MR_SERVICE_COUNT; i++)
        if (services & 1u << i) return mr_service_name((enum mr_service_kind)i);
    return "nobody";
}

static int identify_service(unsigned services, const struct mr_rpc_shown *shown,
    struct mr_rpc_caller *out, struct mr_error *e)
{
    bool is_any = services == MR_SERVICES_ALL;
    if (shown->lacks_certificate)
        return mr_fail(e, MR_EAUTH,
            "who shows the cluster's secret shows a certificate of the cluster's CA, too "
            "(--tls-cert and --tls-key of the caller, signed by --tls-ca)");
    *out = (struct mr_rpc_caller){
        {is_any ? MR_STR("cluster") : mr_str(service_words(services)), MR_ROLE_SERVICE}, services};
    if (!shown->user.p && !shown->role.p) return MR_OK;
    if (!(services & 1u << MR_SERVICE_GATEWAY))
        return mr_fail(e, MR_EPERM,
            "%s may not pass a user on (" MR_RPC_USER ", " MR_RPC_ROLE "): a gateway may",
            service_words(services));
    if (!shown->user.n || !shown->role.p)
        return mr_fail(e, MR_EINVAL, MR_RPC_USER " and " MR_RPC_ROLE " go together");
    out->who.name = shown->user;
    if (mr_role_of_person(shown->role, &out->who.role)) return MR_OK;
    return mr_fail(e, MR_EINVAL, MR_RPC_ROLE ": \"%.*s\" is none of admin, user, reader",
        (int)MR_MIN(shown->role.n, (size_t)40), shown->role.p);
}

/* As which services is it known, and is it a user's? A service's secret is no token, and a token no
 * secret: the files are looked at with a call only for what neither knows. */
static unsigned find(const struct mr_rpc_guard *g, struct mr_str token, bool *is_user)
{
    unsigned services = g->secrets ? mr_secret_file_knows(g->secrets, token) : 0;
    *is_user = g->tokens && mr_token_file_knows(g->tokens, token, g->user);
    if (services || *is_user) return services;
    services = g->secrets ? mr_secret_file_accepted(g->secrets, token) : 0;
    *is_user = g->tokens && mr_token_file_find(g->tokens, token, g->user);
    return services;
}

int mr_rpc_guard_identify(const struct mr_rpc_guard *g, const struct mr_rpc_shown *shown,
    struct mr_rpc_caller *out, struct mr_error *e)
{
    struct mr_str token = {0};
    bool shows = mr_token_of(shown->authorization, &token);
    bool is_user = false;
    unsigned services = shows ? find(g, token, &is_user) : 0;
    if (services && is_user) /* both files have changed since they were told apart */
        return mr_fail(e, MR_EAUTH,
            "what \"authorization\" shows stands in --token-file and in --secret-file");
    if (services) return identify_service(services, shown, out, e);
    if (shown->authorization.p && !is_user)
        return mr_fail(e, MR_EAUTH, "what \"authorization\" shows is not known here");
    if (!is_user && g->tokens)
        return mr_fail(e, MR_EAUTH, "a token is wanted: metadata \"authorization: Bearer TOKEN\"");
    if (shown->user.p || shown->role.p)
        return mr_fail(e, MR_EPERM,
            MR_RPC_USER " and " MR_RPC_ROLE " are taken only from who shows the cluster's secret "
                        "(--secret-file)");
    *out = (struct mr_rpc_caller){{MR_STR("local"), MR_ROLE_ADMIN}, 0};
    if (is_user) out->who = (struct mr_identity){mr_str(g->user->name), g->user->role};
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

/* A service by itself: what its kind is listed for, whatever the method wants of users. */
static int check_service(
    const struct mr_rpc_guard *g, struct mr_str method, unsigned services, struct mr_error *e)
{
    if (g->callers_of(method) & services) return MR_OK;
    size_t slash = method.n && method.p[0] == '/' ? 1 : 0;
    return mr_fail(e, MR_EPERM, "%s may not call %.*s", service_words(services),
        (int)(method.n - slash), method.p + slash);
}

int mr_rpc_guard_check(const struct mr_rpc_guard *g, struct mr_str method,
    const struct mr_rpc_shown *shown, struct mr_error *e)
{
    struct mr_rpc_caller caller;
    int err = mr_rpc_guard_identify(g, shown, &caller, e);
    if (!err && shown->lacks_certificate) err = want_certificate(g, method, e);
    if (err) return err;
    const struct mr_identity *who = &caller.who;
    enum mr_role wanted = g->role_of(method);
    if (who->role == MR_ROLE_SERVICE && caller.services != MR_SERVICES_ALL)
        return check_service(g, method, caller.services, e);
    if (who->role >= wanted) return MR_OK;
    if (wanted == MR_ROLE_SERVICE)
        return mr_fail(e, MR_EPERM,
            "%.*s is for the services of the cluster: it wants the cluster's secret "
            "(--secret-file)",
            MR_STR_ARG(method));
    return mr_fail(e, MR_EPERM, "%.*s wants the role %s; \"%.*s\" is %s", MR_STR_ARG(method),
        mr_role_name(wanted), MR_STR_ARG(who->name), mr_role_name(who->role));
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
    struct mr_rpc_caller caller;
    struct mr_error e;
    int err = mr_rpc_guard_identify(g, &shown, &caller, &e);
    if (!err && !mr_str_eq(caller.who.name, MR_STR("local"))) return caller.who.name;
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
    if (g->tokens || g->secrets) return check;
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
