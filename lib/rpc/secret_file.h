/* The secret file of a process, read again when it changes. New outgoing calls send the new
 * secrets, and incoming calls are compared with the new secrets. The functions may be called on any
 * thread. */
#pragma once

#include "base/buf.h"
#include "rpc/secrets.h"

struct mr_secret_file;

/* Reads the file, which must have mode 0600. Errors name --secret-file and the file. */
int mr_secret_file_open(const char *path, struct mr_secret_file **out, struct mr_error *e);
void mr_secret_file_free(struct mr_secret_file **file);

/* The secret that is sent to services of one kind. `file` is borrowed and must stay open. */
struct mr_credential {
    struct mr_secret_file *file; /* NULL: `fixed` is the secret */
    enum mr_service_kind to;
    const char *fixed;
};
/* Returns the credential for services of one kind. NULL: `file` is NULL, so there is no secret. */
const struct mr_credential *mr_secret_file_credential(
    struct mr_secret_file *file, enum mr_service_kind to);
/* Appends "Bearer SECRET" with the current secret, without a NUL. Appends nothing if there is no
 * secret. */
void mr_credential_add(const struct mr_credential *credential, struct mr_buf *out);

/* Like mr_secrets_accepted. For an unknown secret the file is checked at once, and read if it has
 * changed. So a new secret works at once when the files of all machines have it. */
unsigned mr_secret_file_accepted(struct mr_secret_file *file, struct mr_str shown);
/* Like mr_secret_file_accepted, but checks the file by stat(2) at most every two seconds, even for
 * an unknown secret. A caller with several files first calls this function and looks in the other
 * files. If the secret is unknown to all, the caller then calls mr_secret_file_accepted. */
unsigned mr_secret_file_knows(struct mr_secret_file *file, struct mr_str shown);
