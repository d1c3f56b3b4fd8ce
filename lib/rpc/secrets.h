/* The format of the secret file (--secret-file): the secrets by which the services of a cluster
 * authenticate each other. Its lines have three forms, which may stand in one file. Empty lines,
 * and lines that begin with "# ", are skipped.
 *
 *     SECRET                       for all services. At most four: a caller with any of them is any
 *                                  service; the first one is shown to every service
 *     show SERVICE SECRET          shown to services of this kind, instead of the first SECRET
 *     accept SERVICE sha256:HEX    a caller whose secret has this SHA-256 is a service of this kind
 *
 * Somebody who reads a file with only `show` and `accept` lines can pose as the file's owner
 * towards the services that the owner calls, and as no other service: the secrets of others are
 * hashes there, and a secret for one kind of services is refused by the other kinds. `millrace
 * secrets` makes such files. */
#pragma once

#include "base/err.h"
#include "base/service.h"

#define MR_RPC_SECRETS_MAX 4
#define MR_SECRETS_ACCEPTED_MAX 256

struct mr_secrets;

/* The sentence of MR_EINVAL names the line, never a secret. */
int mr_secrets_parse(struct mr_str text, struct mr_secrets **out, struct mr_error *e);
void mr_secrets_free(struct mr_secrets **secrets);

/* The secret for a service of this kind. NULL: none. Lent as long as the secrets live. */
const char *mr_secrets_shown(const struct mr_secrets *secrets, enum mr_service_kind to);
/* Which services have this secret? Bits 1 << MR_SERVICE_…; MR_SERVICES_ALL for a SECRET line; 0:
 * none, which takes as long as a known secret. */
unsigned mr_secrets_accepted(const struct mr_secrets *secrets, struct mr_str shown);
