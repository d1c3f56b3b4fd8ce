/* Private to lib/host/tls: reads certificates and keys as objects of libcrypto. */
#pragma once

#include "host/tls/certificate.h"

#include <openssl/evp.h>
#include <openssl/x509.h>

#define MR_CERTIFICATE_BYTES_MAX ((size_t)1 << 20)

/* Reads the first certificate of the file. */
int mr_certificate_read(const char *path, X509 **out, struct mr_error *e);
int mr_certificate_read_key(const char *path, EVP_PKEY **out, struct mr_error *e);
void mr_certificate_free(X509 **cert);
void mr_certificate_free_key(EVP_PKEY **key);
