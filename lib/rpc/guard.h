/* Who may call a service, and what: the same for every service.
 *
 * Three kinds of callers. A *service* shows the cluster's secret (--secret-file); it may all, or,
 * when it passes a user on (metadata millrace-user and millrace-role), what that user may. A *user*
 * shows a token (--token-file). A *local* one shows nothing: where there is no token file, whom the
 * UNIX socket or loopback lets in is an admin; where there is one, nobody is let in like this. A
 * method says which role it wants (proto/methods.h). With neither file everyone may all, and only
 * addresses of this machine are served. Where TLS is on, a service also shows a certificate that
 * the cluster's CA has signed: neither the secret nor a method for services is taken without.
 *
 *     err = mr_rpc_guard_new(&(struct mr_rpc_guard_options){…}, &guard, &e);
 *     server_options.auth = mr_rpc_guard_auth(guard); server_options.auth_ctx = guard;
 *     … mr_rpc_guard_listen(guard, server, address, &port, &e);
 *     channel_options.bearer = mr_rpc_guard_secret(guard);        calls to the other services */
#pragma once

#include "base/buf.h"
#include "rpc/server.h"
#include "rpc/tokens.h"

#define MR_RPC_SECRETS_MAX 4

#define MR_RPC_USER "millrace-user" /* metadata of a call that passes a user on */
#define MR_RPC_ROLE "millrace-role"

struct mr_rpc_guard;

struct mr_rpc_guard_options {
    const char *token_file;  /* NULL: no tokens; wants a secret_file with it */
    const char *secret_file; /* NULL: none. A secret a line, each is good, the first is shown */
    enum mr_role (*role_of)(struct mr_str method); /* what "/package.Service/Method" wants */
};

int mr_rpc_guard_new(
    const struct mr_rpc_guard_options *options, struct mr_rpc_guard **out, struct mr_error *e);
void mr_rpc_guard_free(struct mr_rpc_guard **guard);

mr_rpc_auth mr_rpc_guard_auth(const struct mr_rpc_guard *guard);   /* NULL: everyone may */
const char *mr_rpc_guard_secret(const struct mr_rpc_guard *guard); /* NULL: none; lent */

/* What a caller shows; p NULL: it does not. */
struct mr_rpc_shown {
    struct mr_str authorization;
    struct mr_str user;
    struct mr_str role;
    bool lacks_certificate; /* it came by TLS without a certificate of the cluster's CA */
};

/* Who shows this? MR_EAUTH, MR_EPERM, MR_EINVAL with the sentence for the caller. Texts of `out`
 * are the guard's or `shown`'s. */
int mr_rpc_guard_identify(const struct mr_rpc_guard *guard, const struct mr_rpc_shown *shown,
    struct mr_identity *out, struct mr_error *e);
/* The same, and may it call this method? */
int mr_rpc_guard_check(const struct mr_rpc_guard *guard, struct mr_str method,
    const struct mr_rpc_shown *shown, struct mr_error *e);

/* Whom what a call takes is counted for: a user's name, or where the call comes from. Lent until
 * the call's on_done. */
struct mr_str mr_rpc_guard_caller(const struct mr_rpc_guard *guard, struct mr_rpc_call *call);

/* mr_rpc_server_listen, refusing (MR_EPERM) an address that others can reach when there are no
 * tokens. */
int mr_rpc_guard_listen(const struct mr_rpc_guard *guard, struct mr_rpc_server *server,
    const char *address, int *port, struct mr_error *e);

/* Can other machines reach it? Not: UNIX sockets, 127.0.0.0/8, [::1], localhost. */
bool mr_rpc_address_is_public(const char *address);

/* The lines of a file of mode 0600 that holds the cluster's secret: the first one in `out`, with a
 * NUL. For a program that shows it and is shown none. Errors name --secret-file. */
int mr_rpc_secret_read(const char *path, struct mr_buf *out, struct mr_error *e);
