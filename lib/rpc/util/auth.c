/* Authenticates callers, decides which methods they may call, and decides which addresses only this
 * machine can reach. */
#include "rpc/util/auth.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "host/os/log.h"
#include "rpc/tls.h"
#include "rpc/server/tls_peer.h"
#include "rpc/util/token_file.h"

#include <arpa/inet.h>
#include <string.h>

struct mr_rpc_auth {
    struct mr_token_file *tokens;   /* NULL: no token file */
    struct mr_secret_file *secrets; /* NULL: no secret file */
    /* The user whose token a call has shown most recently. Callers of identify_caller borrow the
     * user's name. */
    struct mr_token_holder *user;
    enum mr_role (*role_of)(struct mr_str method);
    unsigned (*callers_of)(struct mr_str method);
};

/* ---- open and close -------------------------------------------------------------------------- */

int mr_rpc_auth_new(
    const struct mr_rpc_auth_options *options, struct mr_rpc_auth **out, struct mr_error *e)
{
    MR_AUTO(mr_rpc_auth_free) struct mr_rpc_auth *a = mr_alloc(sizeof *a);
    mr_assert(options->role_of);
    mr_assert(options->callers_of);
    a->role_of = options->role_of;
    a->callers_of = options->callers_of;
    a->user = mr_alloc(sizeof *a->user);
    if (options->token_file && !options->secret_file)
        return mr_fail(e, MR_EINVAL,
            "--token-file needs --secret-file: with tokens, the services of a cluster authenticate "
            "each other by the secret in that file");
    int err = MR_OK;
    if (options->secret_file) err = mr_secret_file_open(options->secret_file, &a->secrets, e);
    if (!err && options->token_file)
        err = mr_token_file_open(options->token_file, a->secrets, &a->tokens, e);
    if (err) return err;
    *out = MR_STEAL(a);
    return MR_OK;
}

void mr_rpc_auth_free(struct mr_rpc_auth **auth)
{
    if (!*auth) return;
    struct mr_rpc_auth *a = MR_STEAL(*auth);
    mr_token_file_free(&a->tokens);
    mr_secret_file_free(&a->secrets);
    mr_release(a->user);
    mr_release(a);
}

const struct mr_credential *mr_rpc_auth_credential(
    const struct mr_rpc_auth *a, enum mr_service_kind to)
{
    return mr_secret_file_credential(a->secrets, to);
}

/* ---- identify and check ---------------------------------------------------------------------- */

static const char *service_words(unsigned services) /* the name of the first service in the set */
{
    for (unsigned i = 0; i < MR_SERVICE_COUNT; i++)
        if (services & 1u << i) return mr_service_name((enum mr_service_kind)i);
    return "nobody";
}

static int identify_service(unsigned services, const struct mr_rpc_credentials *credentials,
    struct mr_rpc_caller *out, struct mr_error *e)
{
    bool is_any = services == MR_SERVICES_ALL;
    if (credentials->lacks_certificate)
        return mr_fail(e, MR_EAUTH,
            "a caller with the cluster's secret also needs a certificate of the cluster's CA "
            "(--tls-cert and --tls-key of the caller, signed by --tls-ca)");
    *out = (struct mr_rpc_caller){
        {is_any ? MR_STR("cluster") : mr_str(service_words(services)), MR_ROLE_SERVICE}, services};
    if (!credentials->user.p && !credentials->role.p) return MR_OK;
    if (!(services & 1u << MR_SERVICE_GATEWAY))
        return mr_fail(e, MR_EPERM,
            "%s may not name a user (" MR_RPC_USER ", " MR_RPC_ROLE "): only a gateway may",
            service_words(services));
    if (!credentials->user.n || !credentials->role.p)
        return mr_fail(e, MR_EINVAL, MR_RPC_USER " and " MR_RPC_ROLE " go together");
    out->who.name = credentials->user;
    if (mr_role_of_person(credentials->role, &out->who.role)) return MR_OK;
    return mr_fail(e, MR_EINVAL, MR_RPC_ROLE ": \"%.*s\" is none of admin, user, reader",
        (int)MR_MIN(credentials->role.n, (size_t)40), credentials->role.p);
}

/* Returns the kinds of services whose secret is `token`. Sets `*is_user` to true if `token` is a
 * user's token. `token` is both only if the secret file and the token file have changed since they
 * were last compared. If neither file knows `token`, both are checked for changes without delay. */
static unsigned find(const struct mr_rpc_auth *a, struct mr_str token, bool *is_user)
{
    unsigned services = a->secrets ? mr_secret_file_knows(a->secrets, token) : 0;
    *is_user = a->tokens && mr_token_file_knows(a->tokens, token, a->user);
    if (services || *is_user) return services;
    services = a->secrets ? mr_secret_file_accepted(a->secrets, token) : 0;
    *is_user = a->tokens && mr_token_file_find(a->tokens, token, a->user);
    return services;
}

/* Identifies the caller. MR_EAUTH, MR_EPERM, MR_EINVAL: the caller is refused, and `e` has a
 * sentence for the caller. The texts of `out` are constants, or belong to `credentials`, or are
 * valid until the next call with the same `a`. */
static int identify_caller(const struct mr_rpc_auth *a,
    const struct mr_rpc_credentials *credentials, struct mr_rpc_caller *out, struct mr_error *e)
{
    struct mr_str token = {0};
    bool shows = mr_token_of(credentials->authorization, &token);
    bool is_user = false;
    unsigned services = shows ? find(a, token, &is_user) : 0;
    if (services && is_user) /* the two files have changed since they were last compared */
        return mr_fail(e, MR_EAUTH,
            "the token of \"authorization\" is both in --token-file and in --secret-file");
    if (services) return identify_service(services, credentials, out, e);
    if (credentials->authorization.p && !is_user)
        return mr_fail(e, MR_EAUTH, "the token of \"authorization\" is unknown");
    if (!is_user && a->tokens)
        return mr_fail(
            e, MR_EAUTH, "a token is required: metadata \"authorization: Bearer TOKEN\"");
    if (credentials->user.p || credentials->role.p)
        return mr_fail(e, MR_EPERM,
            MR_RPC_USER " and " MR_RPC_ROLE " are accepted only with the cluster's secret "
                        "(--secret-file)");
    *out = (struct mr_rpc_caller){{MR_STR("local"), MR_ROLE_ADMIN}, 0};
    if (is_user) out->who = (struct mr_identity){mr_str(a->user->name), a->user->role};
    return MR_OK;
}

static int want_certificate(const struct mr_rpc_auth *a, struct mr_str method, struct mr_error *e)
{
    if (a->role_of(method) != MR_ROLE_SERVICE) return MR_OK;
    return mr_fail(e, MR_EAUTH,
        "%.*s is for the services of the cluster: over TLS it needs a certificate of the cluster's CA "
        "(--tls-cert and --tls-key of the caller, signed by --tls-ca)",
        MR_STR_ARG(method));
}

/* Checks a call that a service makes on its own behalf, not for a user. The method must list the
 * kind of the service as a caller. The role that a user needs for the method does not matter. */
static int check_service(
    const struct mr_rpc_auth *a, struct mr_str method, unsigned services, struct mr_error *e)
{
    if (a->callers_of(method) & services) return MR_OK;
    size_t slash = method.n && method.p[0] == '/' ? 1 : 0;
    return mr_fail(e, MR_EPERM, "%s may not call %.*s", service_words(services),
        (int)(method.n - slash), method.p + slash);
}

int mr_rpc_auth_check(const struct mr_rpc_auth *a, struct mr_str method,
    const struct mr_rpc_credentials *credentials, struct mr_error *e)
{
    struct mr_rpc_caller caller;
    int err = identify_caller(a, credentials, &caller, e);
    if (!err && credentials->lacks_certificate) err = want_certificate(a, method, e);
    if (err) return err;
    const struct mr_identity *who = &caller.who;
    enum mr_role wanted = a->role_of(method);
    if (who->role == MR_ROLE_SERVICE && caller.services != MR_SERVICES_ALL)
        return check_service(a, method, caller.services, e);
    if (who->role >= wanted) return MR_OK;
    if (wanted == MR_ROLE_SERVICE)
        return mr_fail(e, MR_EPERM,
            "%.*s is for the services of the cluster: it needs the cluster's secret "
            "(--secret-file)",
            MR_STR_ARG(method));
    return mr_fail(e, MR_EPERM, "%.*s needs the role %s; \"%.*s\" is %s", MR_STR_ARG(method),
        mr_role_name(wanted), MR_STR_ARG(who->name), mr_role_name(who->role));
}

static struct mr_str credential_in(const struct mr_rpc_call *call, const char *name)
{
    struct mr_str value = {0};
    bool is_there = mr_rpc_call_metadata(call, name, &value);
    if (is_there && !value.p) value = MR_STR("");
    return is_there ? value : mr_str_of(NULL, 0);
}

static struct mr_rpc_credentials credentials_of(const struct mr_rpc_call *call)
{
    return (struct mr_rpc_credentials){.authorization = credential_in(call, "authorization"),
        .user = credential_in(call, MR_RPC_USER),
        .role = credential_in(call, MR_RPC_ROLE),
        .lacks_certificate = mr_rpc_call_connection(call) == MR_RPC_ENCRYPTED};
}

struct mr_str mr_rpc_auth_caller(const struct mr_rpc_auth *a, struct mr_rpc_call *call)
{
    const struct mr_rpc_credentials credentials = credentials_of(call);
    struct mr_rpc_caller caller;
    struct mr_error e;
    int err = identify_caller(a, &credentials, &caller, &e);
    if (!err && !mr_str_eq(caller.who.name, MR_STR("local"))) return caller.who.name;
    struct mr_str peer = mr_rpc_call_peer(call);
    size_t n = peer.n;
    while (n && peer.p[n - 1] != ':')
        n--;
    return mr_str_of(peer.p, n ? n - 1 : peer.n); /* the address without the port */
}

static int check(void *ctx, struct mr_rpc_call *call, struct mr_error *e)
{
    const struct mr_rpc_credentials credentials = credentials_of(call);
    return mr_rpc_auth_check(ctx, mr_rpc_call_method(call), &credentials, e);
}

/* The check of a server without token file and secret file. Every caller may call everything,
 * except that on a TLS connection the methods for services need a certificate. */
static int check_certificate(void *ctx, struct mr_rpc_call *call, struct mr_error *e)
{
    if (mr_rpc_call_connection(call) != MR_RPC_ENCRYPTED) return MR_OK;
    return want_certificate(ctx, mr_rpc_call_method(call), e);
}

mr_rpc_may_call mr_rpc_auth_callback(const struct mr_rpc_auth *a)
{
    if (a->tokens || a->secrets) return check;
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

int mr_rpc_auth_listen(const struct mr_rpc_auth *a, struct mr_rpc_server *server,
    const char *address, int *port, struct mr_error *e)
{
    if (!a->tokens && mr_rpc_address_is_public(address))
        return mr_fail(e, MR_EPERM,
            "--listen %s: other machines can reach this address, so it needs --token-file; unix: and "
            "127.0.0.1 do not",
            address);
    if (!mr_rpc_tls_is_used() && mr_rpc_address_is_public(address))
        mr_log(MR_WARN, "listen.plain",
            "address=%s why=\"no --tls-cert: tokens and data travel in the clear\"", address);
    return mr_rpc_server_listen(server, address, port, e);
}
