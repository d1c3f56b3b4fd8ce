/* The secret file (--secret-file): by what the services of a cluster know each other. Lines of two
 * forms, which may stand in one file; empty lines, and lines that begin with "# ", are skipped.
 *
 *     SECRET                       one for all services. At most four: each is accepted as any
 *                                  service, the first is shown to any
 *     show SERVICE SECRET          shown to services of this kind, instead of the first one
 *     accept SERVICE sha256:HEX    who shows the secret of this SHA-256 is a service of this kind
 *
 * A service's file with lines of the second form alone lets its reader pose as this service towards
 * those it calls, and as nobody else: what others show is there as a hash, and what is shown to one
 * kind of services is of no use with another. `millrace secrets` makes such files. */
#pragma once

#include "base/err.h"
#include "base/service.h"

#define MR_RPC_SECRETS_MAX 4
#define MR_SECRETS_ACCEPTED_MAX 256

struct mr_secrets;

/* MR_EINVAL names the line, never a secret. */
int mr_secrets_parse(struct mr_str text, struct mr_secrets **out, struct mr_error *e);
void mr_secrets_free(struct mr_secrets **secrets);

/* What is shown to a service of this kind. NULL: nothing. Lent as long as the secrets live. */
const char *mr_secrets_shown(const struct mr_secrets *secrets, enum mr_service_kind to);
/* Which services show this? Bits 1 << MR_SERVICE_…; MR_SERVICES_ALL for a plain secret; 0: none.
 * Takes as long for a wrong secret as for a right one. */
unsigned mr_secrets_accepted(const struct mr_secrets *secrets, struct mr_str shown);
