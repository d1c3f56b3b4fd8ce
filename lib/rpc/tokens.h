/* The format of the token file, the same for every program. A line is "TOKEN ROLE NAME" (role:
 * admin, user or reader). Empty lines and lines that begin with # are skipped. This file also has
 * the functions that tokens and the cluster's secrets share. Only mr_tokens_open does I/O. */
#pragma once

#include "base/err.h"
#include "base/role.h"

#define MR_TOKENS_MAX 1024
#define MR_TOKEN_BYTES_MIN 16
#define MR_TOKEN_BYTES_MAX 256
#define MR_TOKEN_NAME_BYTES_MAX 128

struct mr_identity {
    struct mr_str name; /* in printable ASCII, because names travel in headers */
    enum mr_role role;
};

struct mr_tokens;

/* Parses the text of a token file. The error text of MR_EINVAL names the line, never the token. */
int mr_tokens_parse(struct mr_str text, struct mr_tokens **out, struct mr_error *e);
/* Reads and parses a token file, which must have mode 0600. Errors name --token-file and the
 * file. */
int mr_tokens_open(const char *path, struct mr_tokens **out, struct mr_error *e);
void mr_tokens_free(struct mr_tokens **tokens);

/* Returns the user of a token, valid as long as `tokens`. NULL: the token is unknown. The time
 * taken does not depend on the answer. */
const struct mr_identity *mr_tokens_find(const struct mr_tokens *tokens, struct mr_str token);

/* Sets `*token` and `*who` to the token at index `i` and its user, which are valid as long as
 * `tokens`, and returns true. False: there is no token at this index. */
bool mr_tokens_at(
    const struct mr_tokens *tokens, size_t i, struct mr_str *token, const struct mr_identity **who);

/* Sets `*token` to the token in "Bearer TOKEN" and returns true (upper and lower case of the scheme
 * are equal). False: the text has another form. */
bool mr_token_of(struct mr_str authorization, struct mr_str *token);
/* Checks that a token has 16 to 256 printable ASCII bytes without spaces. The error text of
 * MR_EINVAL says what is wrong. */
int mr_token_is_good(struct mr_str token, struct mr_error *e);
/* True: the texts are equal. The time taken does not depend on where the texts differ. */
bool mr_token_is_same(struct mr_str shown, struct mr_str secret);
