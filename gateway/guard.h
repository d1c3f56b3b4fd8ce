/* Who may ask: bearer tokens with roles, and the Host and Origin checks that keep web pages of
 * others away from a server on loopback. */
#pragma once

#include "base/err.h"
#include "base/str.h"

#define MR_TOKENS_MAX 1024
#define MR_TOKEN_BYTES_MIN 16
#define MR_TOKEN_BYTES_MAX 256

enum mr_role { /* each may all that the ones before it may */
    MR_ROLE_READER,
    MR_ROLE_USER,
    MR_ROLE_ADMIN,
};
const char *mr_role_name(enum mr_role role);

struct mr_identity {
    const char *name;
    enum mr_role role;
};

struct mr_tokens;

/* Lines "token role name"; empty lines and lines that begin with # are skipped. MR_EINVAL names the
 * line, never the token. */
int mr_tokens_parse(struct mr_str text, struct mr_tokens **out, struct mr_error *e);
void mr_tokens_free(struct mr_tokens **tokens);

/* The holder of the token in an Authorization header (p NULL: there is none). MR_EAUTH. Takes as
 * long for a wrong token as for a right one. */
int mr_tokens_check(const struct mr_tokens *tokens, struct mr_str authorization,
    const struct mr_identity **out, struct mr_error *e);

/* Is the name in a Host header ("localhost:8470", "[::1]") one of `names`? MR_EPERM. */
int mr_guard_host(
    struct mr_str host, const char *const *names, size_t names_count, struct mr_error *e);
/* An Origin must be http:// or https:// and this very Host; absent (p NULL) is fine. MR_EPERM. */
int mr_guard_origin(struct mr_str origin, struct mr_str host, struct mr_error *e);
