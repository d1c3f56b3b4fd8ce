/* Authentication and authorization of calls, the same for every service.
 *
 * There are three kinds of callers:
 *
 * - A service presents a secret (--secret-file, rpc/secrets.h). With a secret that all services
 *   share it may call every method. With a secret of its own kind it may call the methods that list
 *   this kind (proto/methods.h). A gateway also names the user for whom it calls (metadata
 *   millrace-user and millrace-role); the call then has the rights of this user.
 * - A user presents a token (--token-file).
 * - A local caller presents nothing. Without a token file, a caller on a UNIX socket or on loopback
 *   is an admin. With a token file, such a caller is refused.
 *
 * proto/methods.h says which role a method needs and which services call it. With neither file,
 * every caller may call every method. Without a token file, the server listens only on UNIX sockets
 * and loopback addresses. Over TLS, a service must also present a certificate that the cluster's CA
 * has signed. A TLS caller without a certificate is refused if it presents a secret or calls a
 * method for services. Both files are read again when they change.
 *
 * An mr_rpc_auth is used on one thread. Credentials from it may be used on any thread.
 *
 *     err = mr_rpc_auth_new(&(struct mr_rpc_auth_options){…}, &auth, &e);
 *     server_options.auth = mr_rpc_auth_callback(auth); server_options.auth_ctx = auth;
 *     … mr_rpc_auth_listen(auth, server, address, &port, &e);
 *     channel_options.credential = mr_rpc_auth_credential(auth, MR_SERVICE_…); */
#pragma once

#include "rpc/secret_file.h"
#include "rpc/server.h"
#include "rpc/tokens.h"

/* Metadata: the name and the role of the user for whom a gateway calls. */
#define MR_RPC_USER "millrace-user"
#define MR_RPC_ROLE "millrace-role"

struct mr_rpc_auth;

struct mr_rpc_auth_options {
    /* Path of the token file; NULL: no tokens. A token file needs a secret_file. */
    const char *token_file;
    const char *secret_file; /* path of the secret file; NULL: none */
    /* Returns the role that "/package.Service/Method" needs. */
    enum mr_role (*role_of)(struct mr_str method);
    /* Returns the services that call the method: bits 1 << MR_SERVICE_…. */
    unsigned (*callers_of)(struct mr_str method);
};

int mr_rpc_auth_new(
    const struct mr_rpc_auth_options *options, struct mr_rpc_auth **out, struct mr_error *e);
void mr_rpc_auth_free(struct mr_rpc_auth **auth);

/* Returns the check for mr_rpc_server_options. NULL: every caller may call everything. */
mr_rpc_may_call mr_rpc_auth_callback(const struct mr_rpc_auth *auth);
/* Returns the credential for calls to services of one kind, valid as long as `auth`. NULL: there is
 * no secret file. */
const struct mr_credential *mr_rpc_auth_credential(
    const struct mr_rpc_auth *auth, enum mr_service_kind to);

/* The credentials of a call. A text whose `p` is NULL: the call has no such credential. */
struct mr_rpc_credentials {
    struct mr_str authorization;
    struct mr_str user;
    struct mr_str role;
    /* True: the connection has TLS, but no certificate that the cluster's CA has signed. */
    bool lacks_certificate;
};

struct mr_rpc_caller {
    struct mr_identity who;
    /* The kinds of services that have the presented secret, as bits 1 << MR_SERVICE_…. 0: the
     * caller presented no secret. A gateway's bit is set also if the gateway calls for a user. */
    unsigned services;
};

/* Identifies the caller and checks that it may call the method. MR_OK: it may. MR_EAUTH, MR_EPERM
 * or MR_EINVAL: it may not, and `e` has the sentence for the caller. */
int mr_rpc_auth_check(const struct mr_rpc_auth *auth, struct mr_str method,
    const struct mr_rpc_credentials *credentials, struct mr_error *e);

/* Returns the name to which the resources of a call are charged: the name of the user or of the
 * calling service, or else the address of the caller without the port. The text is valid until this
 * function is called again with the same `auth`. */
struct mr_str mr_rpc_auth_caller(const struct mr_rpc_auth *auth, struct mr_rpc_call *call);

/* Like mr_rpc_server_listen, but if there is no token file, refuses an address that other machines
 * can reach (MR_EPERM). */
int mr_rpc_auth_listen(const struct mr_rpc_auth *auth, struct mr_rpc_server *server,
    const char *address, int *port, struct mr_error *e);

/* True: other machines can reach the address. They cannot reach UNIX sockets, 127.0.0.0/8, [::1]
 * and localhost. */
bool mr_rpc_address_is_public(const char *address);
