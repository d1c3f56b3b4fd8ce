/* TLS of `up`: certificates that the user gives, or a CA and a certificate that `up` makes in
 * DIR/tls. */
#pragma once

#include "host/tls/certificate.h"
#include "host/config/common_options.h"

struct mr_up_tls {
    bool own; /* --tls */
    /* The files as the user gave them; absolute paths after mr_up_tls_prepare. */
    struct mr_certificate_files files;
    /* DIR/tls. "": --tls was not given. NULL: not prepared yet. */
    char *directory;
    struct mr_texts names; /* host names for the certificate that --tls makes */
};

// clang-format off
#define MR_UP_TLS_OPTIONS(offset)                                                                  \
    {.name = "tls",                                                                                \
        .type = MR_OPTION_BOOL,                                                                    \
        .help = "HTTPS, and TLS at each TCP port, with a CA and a certificate made in DIR/tls",    \
        .at = (offset) + offsetof(struct mr_up_tls, own)},                                         \
    MR_OPTION_TLS_CERT((offset) + offsetof(struct mr_up_tls, files.cert),                          \
        "HTTPS with this certificate (PEM); with --tls-ca it is used at the TCP ports, too"),            \
    MR_OPTION_TLS_KEY((offset) + offsetof(struct mr_up_tls, files.key)),                           \
    MR_OPTION_TLS_CA((offset) + offsetof(struct mr_up_tls, files.ca),                              \
        "the CA that has signed it (PEM): services verify each other by it")
// clang-format on

/* Adds a host name to the certificate; to be called before mr_up_tls_prepare. */
void mr_up_tls_name(struct mr_up_tls *t, const char *host);
/* Checks the given files, or makes those of --tls in `directory`/tls for a gateway that listens at
 * `host`. To be called before the children start. Removes MILLRACE_TLS_* from the environment,
 * because children get the files as flags. */
int mr_up_tls_prepare(
    struct mr_up_tls *t, const char *directory, const char *host, struct mr_error *e);
/* Replaces the certificate of --tls if it expires soon. */
int mr_up_tls_renew(struct mr_up_tls *t, struct mr_error *e);
bool mr_up_tls_is_on(const struct mr_up_tls *t); /* true: the gateway speaks HTTPS */
void mr_up_tls_fini(struct mr_up_tls *t);
