/* TLS under `up`: certificates that are given, or a CA and a certificate of its own in DIR/tls. */
#pragma once

#include "host/tls/certificate.h"
#include "host/config/common_options.h"

struct mr_up_tls {
    bool own;                          /* --tls */
    struct mr_certificate_files files; /* as given; after settle absolute, and --tls's own */
    char *directory;                   /* of the own ones */
    struct mr_texts names;             /* that the own one is good for */
};

// clang-format off
#define MR_UP_TLS_OPTIONS(offset)                                                                  \
    {.name = "tls",                                                                                \
        .type = MR_OPTION_BOOL,                                                                    \
        .help = "HTTPS, and TLS at each TCP port, with a CA and a certificate made in DIR/tls",    \
        .at = (offset) + offsetof(struct mr_up_tls, own)},                                         \
    MR_OPTION_TLS_CERT((offset) + offsetof(struct mr_up_tls, files.cert),                          \
        "HTTPS with this certificate (PEM); with --tls-ca the TCP ports have it, too"),            \
    MR_OPTION_TLS_KEY((offset) + offsetof(struct mr_up_tls, files.key)),                           \
    MR_OPTION_TLS_CA((offset) + offsetof(struct mr_up_tls, files.ca),                              \
        "the CA that has signed it (PEM): services know each other by it")
// clang-format on

/* Before settle: others reach the cluster at this host, too, as the certificate has to say. */
void mr_up_tls_name(struct mr_up_tls *t, const char *host);
/* Before the children start: checks what was given, or makes what `--tls` wants in `directory`/tls
 * for a gateway that listens at `host`. MILLRACE_TLS_* is then no longer in the environment: a
 * child has the flags that it is given. */
int mr_up_tls_settle(
    struct mr_up_tls *t, const char *directory, const char *host, struct mr_error *e);
/* Makes a new certificate in place of an own one that ends soon. */
int mr_up_tls_renew(struct mr_up_tls *t, struct mr_error *e);
bool mr_up_tls_is_on(const struct mr_up_tls *t); /* the gateway speaks HTTPS */
void mr_up_tls_fini(struct mr_up_tls *t);
