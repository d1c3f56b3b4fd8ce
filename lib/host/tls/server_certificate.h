/* The certificate of an HTTPS server that uses GnuTLS. The files are read again when they change,
 * and new connections get the new certificate. A process has only one such server, because GnuTLS's
 * callback has no context argument.
 *
 *     err = mr_server_certificate_open(&files, &e);
 *     … MHD_OPTION_HTTPS_CERT_CALLBACK, mr_server_certificate_pick …
 *     mr_server_certificate_close(); */
#pragma once

#include "base/time.h"
#include "host/tls/certificate.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

/* Reads the files. The paths are borrowed until close. The error texts of MR_EINVAL, MR_EPERM
 * and MR_ENOENT name the command-line flag that gave the file, such as --tls-cert. */
int mr_server_certificate_open(const struct mr_certificate_files *files, struct mr_error *e);
void mr_server_certificate_close(void); /* to be called after the server has stopped */

/* A callback of type gnutls_certificate_retrieve_function2. Called on any thread. Returns 0, or -1
 * if mr_server_certificate_open has not succeeded. */
int mr_server_certificate_pick(gnutls_session_t session, const gnutls_datum_t *ca_names,
    int ca_names_count, const gnutls_pk_algorithm_t *algorithms, int algorithms_count,
    gnutls_pcert_st **certs, unsigned *certs_count, gnutls_privkey_t *key);
