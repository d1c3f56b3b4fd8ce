/* X.509 certificates and keys in PEM files: checks them and makes them. The files are those of the
 * flags --tls-cert, --tls-key and --tls-ca; error texts name the flag. */
#pragma once

#include "base/err.h"
#include "base/time.h"
#include "host/config/config.h"

#include <stdbool.h>
#include <stdint.h>

struct mr_certificate_files {
    const char *cert; /* path of the certificate; "" or NULL: none */
    const char *key;  /* path of the key, a file of mode 0600 */
    const char *ca;   /* path of the CA certificates that verify peers */
    /* Prefix of the flags in error texts: "tls" for --tls-cert. NULL: "tls". */
    const char *kind;
};

bool mr_certificate_is_given(const char *path); /* true: the path is neither NULL nor "" */

/* Checks that a server or a client can use these files. The files must exist and be unencrypted
 * PEM. Only the user of this process may be able to read the key. The key must belong to the
 * certificate. The certificate must be valid now. If a CA is given, the CA must have signed the
 * certificate for use by clients and by servers. A certificate and a key must be given together;
 * otherwise any file may be missing. Returns MR_OK, MR_EINVAL, MR_EPERM or MR_ENOENT. */
int mr_certificate_check(const struct mr_certificate_files *files, struct mr_error *e);

struct mr_certificate_spec {
    const char *common_name;
    struct mr_texts names; /* host names and IP addresses for subjectAltName */
    int64_t begins_s;      /* seconds from now; negative: in the past */
    int64_t lasts_s;
};

/* Makes a CA: a new certificate and a new key (mode 0600). */
int mr_certificate_make_ca(const char *cert_path, const char *key_path,
    const struct mr_certificate_spec *spec, struct mr_error *e);
/* Makes a certificate for servers and clients, signed by the CA in `ca_path`. Uses the key in
 * `key_path` if this file exists, else makes a key. With an existing key, one rename replaces the
 * certificate, so no process reads a certificate and a key that do not match. */
int mr_certificate_make(const char *ca_path, const char *ca_key_path, const char *cert_path,
    const char *key_path, const struct mr_certificate_spec *spec, struct mr_error *e);

/* True: the certificate passes mr_certificate_check, is valid for each of the names, and will still
 * be valid in `left_s` seconds. False: one of these conditions does not hold. */
bool mr_certificate_lasts(
    const struct mr_certificate_files *files, const struct mr_texts *names, int64_t left_s);
