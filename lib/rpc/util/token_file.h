/* The token file of a process, read again when it changes. If the file can no longer be read or is
 * malformed, the error is logged, and the last good tokens stay valid. The functions may be called
 * on any thread. */
#pragma once

#include "rpc/secret_file.h"
#include "rpc/tokens.h"

struct mr_token_file;

struct mr_token_holder {
    char name[MR_TOKEN_NAME_BYTES_MAX + 1];
    enum mr_role role;
};

/* Reads the file, which must have mode 0600. Errors name --token-file and the file. A token that is
 * also a secret of `secrets` (may be NULL; borrowed) is refused, because its user would count as a
 * service. */
int mr_token_file_open(const char *path, struct mr_secret_file *secrets, struct mr_token_file **out,
    struct mr_error *e);
void mr_token_file_free(struct mr_token_file **file);

/* Copies the user of a token to `*out` and returns true. False: the token is unknown, even after
 * the file was checked again. */
bool mr_token_file_find(
    struct mr_token_file *file, struct mr_str token, struct mr_token_holder *out);
/* Like mr_token_file_find, but checks the file at most every two seconds, as mr_secret_file_knows
 * does. */
bool mr_token_file_knows(
    struct mr_token_file *file, struct mr_str token, struct mr_token_holder *out);
/* Copies to `*out` the user whose token is in an Authorization header. If the header is missing,
 * `authorization.p` is NULL. MR_EAUTH: the header has no token, or the token is unknown; `e` has
 * the sentence for the client. */
int mr_token_file_check(struct mr_token_file *file, struct mr_str authorization,
    struct mr_token_holder *out, struct mr_error *e);
