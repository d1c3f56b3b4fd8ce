/* The token file, the same for every program: a line is "TOKEN ROLE NAME" (role: admin, user or
 * reader), empty lines and lines that begin with # are skipped. And what both kinds of secrets,
 * tokens and the cluster's own, have in common. Pure, but for mr_tokens_open. */
#pragma once

#include "base/err.h"
#include "base/role.h"

#define MR_TOKENS_MAX 1024
#define MR_TOKEN_BYTES_MIN 16
#define MR_TOKEN_BYTES_MAX 256
#define MR_TOKEN_NAME_BYTES_MAX 128

struct mr_identity {
    struct mr_str name; /* printable ASCII: it travels in headers */
    enum mr_role role;
};

struct mr_tokens;

/* MR_EINVAL names the line, never the token. */
int mr_tokens_parse(struct mr_str text, struct mr_tokens **out, struct mr_error *e);
/* The same of a file of mode 0600; errors name --token-file and the file. */
int mr_tokens_open(const char *path, struct mr_tokens **out, struct mr_error *e);
void mr_tokens_free(struct mr_tokens **tokens);

/* The holder of a token; NULL: nobody. Lent as long as the tokens live. Takes as long for a wrong
 * token as for a right one. */
const struct mr_identity *mr_tokens_find(const struct mr_tokens *tokens, struct mr_str token);

/* One after the other, from 0. False: there are no more. Lent as long as the tokens live. */
bool mr_tokens_at(
    const struct mr_tokens *tokens, size_t i, struct mr_str *token, const struct mr_identity **who);

/* "Bearer TOKEN" (the scheme in any case): the token. False: it is something else. */
bool mr_token_of(struct mr_str authorization, struct mr_str *token);
/* 16 to 256 printable ASCII bytes without spaces? MR_EINVAL: says what it is instead. */
int mr_token_is_good(struct mr_str token, struct mr_error *e);
/* Compares without an early way out: the time tells nothing about where two texts differ. */
bool mr_token_is_same(struct mr_str shown, struct mr_str secret);
