/* Who may call a service, and what: the same for every service.
 *
 * Three kinds of callers. A *service* shows a secret (--secret-file, rpc/secrets.h): by one that is
 * the same for all it may all; by one of its own it may call what its kind is listed for. A gateway
 * also passes users on (metadata millrace-user and millrace-role) and may what these may. A *user*
 * shows a token (--token-file). A *local* one shows nothing: where there is no token file, whom the
 * UNIX socket or loopback lets in is an admin; where there is one, nobody is let in like this. A
 * method says which role it wants, and which services call it (proto/methods.h). With neither file
 * everyone may all, and only addresses of this machine are served. Where TLS is on, a service also
 * shows a certificate that the cluster's CA has signed: neither the secret nor a method for
 * services is taken without. Both files are read again when they change.
 *
 * A guard is used on one thread; what it lends for calls to others, on any.
 *
 *     err = mr_rpc_guard_new(&(struct mr_rpc_guard_options){…}, &guard, &e);
 *     server_options.auth = mr_rpc_guard_auth(guard); server_options.auth_ctx = guard;
 *     … mr_rpc_guard_listen(guard, server, address, &port, &e);
 *     channel_options.credential = mr_rpc_guard_credential(guard, MR_SERVICE_…); */
#pragma once

#include "rpc/secret_file.h"
#include "rpc/server.h"
#include "rpc/tokens.h"

#define MR_RPC_USER "millrace-user" /* metadata of a call that passes a user on */
#define MR_RPC_ROLE "millrace-role"

struct mr_rpc_guard;

struct mr_rpc_guard_options {
    const char *token_file;  /* NULL: no tokens; wants a secret_file with it */
    const char *secret_file; /* NULL: none */
    enum mr_role (*role_of)(struct mr_str method); /* what "/package.Service/Method" wants */
    unsigned (*callers_of)(struct mr_str method);  /* which services call it: 1 << MR_SERVICE_… */
};

int mr_rpc_guard_new(
    const struct mr_rpc_guard_options *options, struct mr_rpc_guard **out, struct mr_error *e);
void mr_rpc_guard_free(struct mr_rpc_guard **guard);

mr_rpc_auth mr_rpc_guard_auth(const struct mr_rpc_guard *guard); /* NULL: everyone may */
/* For calls to services of that kind. NULL: there is no secret file. Lent as long as the guard. */
const struct mr_credential *mr_rpc_guard_credential(
    const struct mr_rpc_guard *guard, enum mr_service_kind to);
struct mr_secret_file *mr_rpc_guard_secrets(const struct mr_rpc_guard *guard); /* NULL: none */

/* What a caller shows; p NULL: it does not. */
struct mr_rpc_shown {
    struct mr_str authorization;
    struct mr_str user;
    struct mr_str role;
    bool lacks_certificate; /* it came by TLS without a certificate of the cluster's CA */
};

struct mr_rpc_caller {
    struct mr_identity who;
    unsigned services; /* 1 << MR_SERVICE_…: as which it was known, also when it passes a user on */
};

/* Who shows this? MR_EAUTH, MR_EPERM, MR_EINVAL with the sentence for the caller. Texts of `out`
 * are the guard's, until it is asked again, or `shown`'s. */
int mr_rpc_guard_identify(const struct mr_rpc_guard *guard, const struct mr_rpc_shown *shown,
    struct mr_rpc_caller *out, struct mr_error *e);
/* The same, and may it call this method? */
int mr_rpc_guard_check(const struct mr_rpc_guard *guard, struct mr_str method,
    const struct mr_rpc_shown *shown, struct mr_error *e);

/* Whom what a call takes is counted for: a user's name, or where the call comes from. Lent until
 * the guard is asked again. */
struct mr_str mr_rpc_guard_caller(const struct mr_rpc_guard *guard, struct mr_rpc_call *call);

/* mr_rpc_server_listen, refusing (MR_EPERM) an address that others can reach when there are no
 * tokens. */
int mr_rpc_guard_listen(const struct mr_rpc_guard *guard, struct mr_rpc_server *server,
    const char *address, int *port, struct mr_error *e);

/* Can other machines reach it? Not: UNIX sockets, 127.0.0.0/8, [::1], localhost. */
bool mr_rpc_address_is_public(const char *address);
