/* X.509 certificates and their keys in PEM files: are they good, and how to make some. The files
 * are those of the flags --tls-cert, --tls-key and --tls-ca; errors name the flag. */
#pragma once

#include "base/err.h"
#include "base/time.h"
#include "host/config/config.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_certificate_files {
    const char *cert; /* "" and NULL: none */
    const char *key;  /* of mode 0600 */
    const char *ca;   /* whose certificates are accepted */
    const char *kind; /* of the flags that the errors name: "tls" for --tls-cert; NULL: tls */
};

bool mr_certificate_is_given(const char *path); /* neither NULL nor "" */

/* Can a server or client begin with these files? They are there, the key is nobody else's and
 * belongs to the certificate, both are unencrypted PEM, and the certificate is valid now. Where
 * there is a CA, it has signed the certificate, which clients and servers may use. MR_EINVAL,
 * MR_EPERM, MR_ENOENT. A certificate and its key go together; any of the rest may be missing. */
int mr_certificate_check(const struct mr_certificate_files *files, struct mr_error *e);

struct mr_certificate_spec {
    const char *common_name;
    struct mr_texts names; /* host names and IP addresses that the certificate is good for */
    int64_t begins_s;      /* from now; negative: earlier */
    int64_t lasts_s;
};

/* A CA: its certificate and its key (mode 0600), both new. */
int mr_certificate_make_ca(const char *cert_path, const char *key_path,
    const struct mr_certificate_spec *spec, struct mr_error *e);
/* A certificate for servers and clients, signed by the CA in `ca_path`. A key that is there already
 * is kept: then one rename replaces the certificate, and no reader sees half of a pair. */
int mr_certificate_make(const char *ca_path, const char *ca_key_path, const char *cert_path,
    const char *key_path, const struct mr_certificate_spec *spec, struct mr_error *e);

/* Is the certificate good by mr_certificate_check, for each of the names, and still after `left_s`
 * seconds? */
bool mr_certificate_lasts(
    const struct mr_certificate_files *files, const struct mr_texts *names, int64_t left_s);
