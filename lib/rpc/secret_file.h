/* The secret file of a process, read again when it changes: new calls show what stands there then,
 * and calls that come are known by what stands there then. Any thread. */
#pragma once

#include "base/buf.h"
#include "rpc/secrets.h"

struct mr_secret_file;

/* Reads it; it has mode 0600. Errors name --secret-file and the file. */
int mr_secret_file_open(const char *path, struct mr_secret_file **out, struct mr_error *e);
void mr_secret_file_free(struct mr_secret_file **file);

/* What is shown to services of one kind. Lent as long as the file is open. */
struct mr_credential {
    struct mr_secret_file *file; /* NULL: `fixed` */
    enum mr_service_kind to;
    const char *fixed;
};
/* NULL when there is no file. */
const struct mr_credential *mr_secret_file_credential(
    struct mr_secret_file *file, enum mr_service_kind to);
/* Appends "Bearer SECRET" as it is now, without a NUL; nothing when nothing is shown there. */
void mr_credential_add(const struct mr_credential *credential, struct mr_buf *out);

/* As mr_secrets_accepted. What is not known makes the file be looked at, so that a secret that was
 * changed everywhere at once is known everywhere at once. */
unsigned mr_secret_file_accepted(struct mr_secret_file *file, struct mr_str shown);
/* The same by the last look, for who asks other files before: a stat(2) every two seconds. */
unsigned mr_secret_file_knows(struct mr_secret_file *file, struct mr_str shown);
