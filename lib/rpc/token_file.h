/* The token file of a process, read again when it changes. Any thread. A file that does not work
 * any more is said in the log, and the tokens that were read before go on. */
#pragma once

#include "rpc/secret_file.h"
#include "rpc/tokens.h"

struct mr_token_file;

struct mr_token_holder {
    char name[MR_TOKEN_NAME_BYTES_MAX + 1];
    enum mr_role role;
};

/* Reads it; it has mode 0600. Errors name --token-file and the file. A token that is a secret of
 * `secrets` (may be NULL; lent) is refused: who holds it would be a service. */
int mr_token_file_open(const char *path, struct mr_secret_file *secrets, struct mr_token_file **out,
    struct mr_error *e);
void mr_token_file_free(struct mr_token_file **file);

/* Whose token is it? False: nobody's. */
bool mr_token_file_find(
    struct mr_token_file *file, struct mr_str token, struct mr_token_holder *out);
/* The same by the last look (secret_file.h). */
bool mr_token_file_knows(
    struct mr_token_file *file, struct mr_str token, struct mr_token_holder *out);
/* Of an Authorization header (p NULL: there is none). MR_EAUTH with the sentence. */
int mr_token_file_check(struct mr_token_file *file, struct mr_str authorization,
    struct mr_token_holder *out, struct mr_error *e);
