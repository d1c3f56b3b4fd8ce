/* Who may call a service, the same for every service: on UNIX sockets and loopback everyone whom
 * the socket lets in; elsewhere only with a token, and where a token file is given, everywhere
 * with a token.
 *
 *     err = mr_rpc_guard_new(config.token_file, &guard, &e);
 *     options = (struct mr_rpc_server_options){.auth = mr_rpc_guard_auth(guard), .auth_ctx =
 * guard}; … mr_rpc_guard_listen(guard, server, address, &port, &e); channel_options.bearer =
 * mr_rpc_guard_token(guard);        calls to the other services */
#pragma once

#include "rpc/server.h"

#define MR_RPC_TOKENS_MAX 64
#define MR_RPC_TOKEN_BYTES_MIN 16
#define MR_RPC_TOKEN_BYTES_MAX 1024

struct mr_rpc_guard;

/* `token_file` (NULL: no tokens) holds one token a line, mode 0600; each of them is good, the first
 * is what we send ourselves. */
int mr_rpc_guard_new(const char *token_file, struct mr_rpc_guard **out, struct mr_error *e);
void mr_rpc_guard_free(struct mr_rpc_guard **guard);

mr_rpc_auth mr_rpc_guard_auth(const struct mr_rpc_guard *guard);  /* NULL: everyone may */
const char *mr_rpc_guard_token(const struct mr_rpc_guard *guard); /* NULL: none; lent */

/* mr_rpc_server_listen, refusing (MR_EPERM) an address that others can reach when there are no
 * tokens. */
int mr_rpc_guard_listen(const struct mr_rpc_guard *guard, struct mr_rpc_server *server,
    const char *address, int *port, struct mr_error *e);

/* Can other machines reach it? Not: UNIX sockets, 127.0.0.0/8, [::1], localhost. */
bool mr_rpc_address_is_public(const char *address);

/* Is `value` of `authorization` "Bearer " and one of the tokens? Takes as long for a near miss. */
bool mr_rpc_guard_knows(const struct mr_rpc_guard *guard, struct mr_str value);
