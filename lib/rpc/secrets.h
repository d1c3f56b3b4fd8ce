/* The format of the secret file (--secret-file): the secrets by which the services of a cluster
 * authenticate each other. Its lines have three forms, which may be mixed in one file. Empty lines,
 * and lines that begin with "# ", are skipped.
 *
 *     SECRET                       for all services, at most four: a caller that presents any of
 *                                  them counts as any service; the first one is sent to every
 *                                  service
 *     show SERVICE SECRET          sent to services of this kind, instead of the first SECRET
 *     accept SERVICE sha256:HEX    a caller whose secret has this SHA-256 is a service of this kind
 *
 * A thief of a file with only `show` and `accept` lines can impersonate only the file's owner, and
 * only towards the services that the owner calls: of the secrets that other services present, the
 * file has hashes only. A secret for one kind of service is accepted by services of this kind only.
 * `millrace secrets` makes such files. */
#pragma once

#include "base/err.h"
#include "base/service.h"

#define MR_RPC_SECRETS_MAX 4
#define MR_SECRETS_ACCEPTED_MAX 256

struct mr_secrets;

/* Parses the text of a secret file. The error text of MR_EINVAL names the line, never a secret. */
int mr_secrets_parse(struct mr_str text, struct mr_secrets **out, struct mr_error *e);
void mr_secrets_free(struct mr_secrets **secrets);

/* Returns the secret to send to a service of this kind, valid as long as `secrets`. NULL: the file
 * has no such secret. */
const char *mr_secrets_shown(const struct mr_secrets *secrets, enum mr_service_kind to);
/* Returns the kinds of services that have the secret `shown`, as bits 1 << MR_SERVICE_….
 * MR_SERVICES_ALL: the secret is of a SECRET line. 0: no service has the secret. The time taken
 * does not depend on the answer. */
unsigned mr_secrets_accepted(const struct mr_secrets *secrets, struct mr_str shown);
