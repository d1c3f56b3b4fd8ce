/* TLS under `up`: certificates that are given, or a CA and a certificate of its own in DIR/tls. */
#pragma once

#include "host/certificate.h"

struct mr_up_tls {
    bool own;                          /* --tls */
    struct mr_certificate_files files; /* as given; after settle absolute, and --tls's own */
    char *directory;                   /* of the own ones */
    struct mr_texts names;             /* that the own one is good for */
};

#define MR_UP_TLS_OPTIONS(offset)                                                                  \
    {.name = "tls",                                                                                \
        .type = MR_OPTION_BOOL,                                                                    \
        .help = "HTTPS, and TLS at each TCP port, with a CA and a certificate made in DIR/tls",    \
        .at = (offset) + offsetof(struct mr_up_tls, own)},                                         \
        {.name = "tls-cert",                                                                       \
            .env = "MILLRACE_TLS_CERT",                                                            \
            .type = MR_OPTION_TEXT,                                                                \
            .value = "FILE",                                                                       \
            .help = "HTTPS with this certificate (PEM); with --tls-ca the TCP ports have it, too", \
            .at = (offset) + offsetof(struct mr_up_tls, files.cert)},                              \
        {.name = "tls-key",                                                                        \
            .env = "MILLRACE_TLS_KEY",                                                             \
            .type = MR_OPTION_TEXT,                                                                \
            .value = "FILE",                                                                       \
            .help = "its key (PEM), in a file of mode 0600",                                       \
            .at = (offset) + offsetof(struct mr_up_tls, files.key)},                               \
    {                                                                                              \
        .name = "tls-ca", .env = "MILLRACE_TLS_CA", .type = MR_OPTION_TEXT, .value = "FILE",       \
        .help = "the CA that has signed it (PEM): services know each other by it",                 \
        .at = (offset) + offsetof(struct mr_up_tls, files.ca)                                      \
    }

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
